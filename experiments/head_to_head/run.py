"""All gold tables against mean size and against prompt tokens, beside a measured schemagate."""

from peer_curves import curve_rows, pooled_figures

from bayeslink.evidence.peers import POOLED_RUNS, peers_home
from bayeslink.evidence.store import evidence_home, stored_files
from bayeslink.inference import keep_compiled
from bayeslink.inference.posterior import shipped_path
from bayeslink.provenance import Experiment

CLAIM = (
    "At the mean number of tables, and of prompt tokens, that schemagate returns, prefixes of the posterior's ranking "
    "hold all gold tables of at least as many questions, on databases that nothing was fitted on."
)
SIGNIFICANT = 0.05
NEARLY_ALL = 0.99


def main(arguments: list[str] | None = None) -> None:
    """Write table.csv and table.json."""
    run = Experiment.from_command(__file__, arguments)
    config = run.config
    home = evidence_home()
    read = {path for item in config["sets"] for path in stored_files(item["data"], [item["list"], *config["plain"]])}
    inputs = {f"data/evidence/{path.relative_to(home)}": path for path in sorted(read)}
    inputs["data/evidence/warehouses/ddl_tokens.json"] = home / "warehouses" / "ddl_tokens.json"
    inputs |= {f"data/peers/{item['peer']}.npz": peers_home() / f"{item['peer']}.npz" for item in config["sets"]}
    inputs |= {f"data/peers/{name}.npz": peers_home() / f"{name}.npz" for name in POOLED_RUNS}
    kinds = {item["posterior"] for item in config["sets"]}
    inputs |= {f"bayeslink/posteriors/{name}.nc": shipped_path(name) for name in sorted(kinds)}
    if run.is_current(inputs):
        return
    keep_compiled()
    table = list(curve_rows(config))
    figures, checks = pooled_figures(), {}
    for row in table:
        where = f"k{row['k']}_{row['set']}"
        unit = "" if row["unit"] == "tables" else "_tokens"
        share = row["questions"] / (row["questions"] + row["unresolved"])
        lead = "ours" if row["method"] == "hierarchical" else row["method"]
        # CONTRACT.md puts the set before k.
        name = f"{row['set']}_k{row['k']}"
        figures[f"coverage_{lead}_at_peer{unit or '_size'}_{name}"] = row["coverage"]
        behind = row["gain"] < 0 and row["p_value"] < SIGNIFICANT
        if row["method"] == "top_k" and not unit:
            checks[f"top_k_not_significantly_behind_{where}"] = not behind
        if row["method"] != "hierarchical":
            continue
        figures |= {f"coverage_peer_{name}": row["peer_coverage"], f"peer{unit or '_size'}_{name}": row["peer_cost"]}
        if row["unresolved"]:
            figures[f"coverage_ours_at_peer{unit or '_size'}_all_questions_{name}"] = row["coverage"] * share
            figures[f"coverage_peer_all_questions_{name}"] = row["peer_coverage"] * share
        if unit:
            continue
        figures[f"closure_peer_{name}"] = row["closure"]
        checks[f"not_significantly_behind_{where}"] = not behind
        if row["peer_coverage"] < NEARLY_ALL:
            checks[f"ahead_{where}"] = row["gain"] > 0
        if row["set"].startswith("bird"):
            missed = (1 - row["coverage"]) <= (1 - row["peer_coverage"]) / 2
            checks[f"at_most_half_the_misses_{where}"] = missed
    run.write(table, CLAIM, figures, checks, inputs)


if __name__ == "__main__":
    main()
