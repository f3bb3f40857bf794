"""Guessed keys on real warehouses: how right they are, how strong their coupling is, and what they gain."""

from guessed_keys import agreement_rows, coupling_rows, peer_of, warehouse_rows

from bayeslink.evidence.peers import peers_home
from bayeslink.evidence.store import evidence_home, stored_files
from bayeslink.inference import keep_compiled
from bayeslink.inference.posterior import shipped_path
from bayeslink.provenance import Experiment

CLAIM = (
    "Foreign keys guessed from names and types agree with declared ones on databases they were not fitted on, their "
    "coupling is weaker than that of declared keys, and they help on warehouses that declare none."
)


def main(arguments: list[str] | None = None) -> None:
    """Write table.csv and table.json."""
    run = Experiment.from_command(__file__, arguments)
    config, home = run.config, evidence_home()
    read = {path for name in config["train"] for path in stored_files(name, config["coupling_channels"])}
    for name in config["sets"]:
        for keys in ("", "-inferred"):
            read |= set(stored_files(f"{name}{keys}", [config["list"], "name_any"]))
    inputs = {f"data/evidence/{path.relative_to(home)}": path for path in sorted(read)}
    inputs["data/evidence/warehouses/joins.json"] = home / "warehouses" / "joins.json"
    inputs |= {f"data/evidence/{name}": home / name for name in ("twins.json", "fingerprints.npz")}
    inputs |= {f"data/peers/{peer_of(name)}.npz": peers_home() / f"{peer_of(name)}.npz" for name in config["sets"]}
    inputs[f"bayeslink/posteriors/{config['list']}.nc"] = shipped_path(config["list"])
    inputs["bayeslink/posteriors/inferred_coupling.json"] = shipped_path("lexical").parent / "inferred_coupling.json"
    if run.is_current(inputs):
        return
    keep_compiled()
    rows = [*agreement_rows(config), *coupling_rows(config), *warehouse_rows(config)]
    columns = dict.fromkeys(name for row in rows for name in row)
    table = [dict.fromkeys(columns) | row for row in rows]
    figures, checks = {}, {}
    kinds = {row["kind"]: row for row in table if row["part"] == "coupling"}
    for kind, row in kinds.items():
        figures |= {f"coupling_{kind}": row["value"]}
        figures |= {f"coupling_{kind}_{end}_95": row[end] for end in ("lower", "upper")}
    checks["coupling_of_guessed_keys_above_0"] = kinds["inferred"]["lower"] > 0
    checks["coupling_of_guessed_keys_below_declared"] = kinds["inferred"]["value"] < kinds["plain"]["value"]
    for row in table:
        bench = row["set"].replace("-dev", "").replace("-", "_")
        if row["part"] == "agreement":
            # Where nothing is guessed there is no precision.
            agreed = {f"{name}_{row['unit']}_{row['shown']}_{bench}": row[name] for name in ("precision", "recall")}
            figures |= {name: value for name, value in agreed.items() if value is not None}
        elif row["part"] == "score":
            figures[f"joint_log_score_{row['case']}_{bench}"] = row["value"]
            figures |= {f"questions_{bench}": row["questions"], f"left_out_{bench}": row["questions_left_out"]}
        elif row["part"] == "cover":
            figures[f"coverage_{row['case']}_k{row['k']}_{bench}"] = row["value"]
            figures[f"silent_found_{row['case']}_k{row['k']}_{bench}"] = row["silent_found"]
            figures[f"silent_found_peer_k{row['k']}_{bench}"] = row["silent_found_peer"]
        elif row["part"] == "gain_score":
            figures[f"gain_of_guessed_keys_{bench}"] = row["value"]
            checks[f"guessed_keys_raise_the_log_score_{bench}"] = row["lower"] > 0
        elif row["part"] == "gain_cover":
            figures[f"gain_of_guessed_keys_in_coverage_k{row['k']}_{bench}"] = row["value"]
    run.write(table, CLAIM, figures, checks, inputs)


if __name__ == "__main__":
    main()
