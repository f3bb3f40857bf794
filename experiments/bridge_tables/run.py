"""Gold tables that share no word with the question: found by the posterior, its coupling, expansion or a peer."""

from found_tables import SILENT, WORDS, rows_of

from bayeslink.evidence.peers import peers_home
from bayeslink.evidence.store import evidence_home, stored_files
from bayeslink.inference import keep_compiled
from bayeslink.inference.posterior import shipped_path
from bayeslink.provenance import Experiment
from bayeslink.schema.corpus import data_home

CLAIM = (
    "Of the gold tables that share no word with the question the posterior finds at least as many as schemagate at "
    "equal mean size, its coupling finds some of them, and no expansion along foreign keys does better at its own size."
)
SIGNIFICANT = 0.05


def main(arguments: list[str] | None = None) -> None:
    """Write table.csv and table.json."""
    run = Experiment.from_command(__file__, arguments)
    config, home = run.config, evidence_home()
    read = {path for item in config["sets"] for path in stored_files(item["data"], [config["list"], SILENT, WORDS])}
    inputs = {f"data/evidence/{path.relative_to(home)}": path for path in sorted(read)}
    for item in config["sets"]:
        inputs[f"data/peers/{item['peer']}.npz"] = peers_home() / f"{item['peer']}.npz"
        folder = data_home() / item["folder"]
        inputs |= {f"{folder.name}/{path.name}": path for path in sorted(folder.glob("*.jsonl*"))}
    inputs[f"bayeslink/posteriors/{config['list']}.nc"] = shipped_path(config["list"])
    if run.is_current(inputs):
        return
    keep_compiled()
    rows = list(rows_of(config))
    columns = dict.fromkeys(name for row in rows for name in row)
    table = [dict.fromkeys(columns) | row for row in rows]
    figures, checks = {}, {}
    peers = {(row["set"], row["k"]): row for row in table if row["method"] == "schemagate"}
    for row in table:
        where = f"{row['method']}_k{row['k']}_{row['set']}"
        if row["part"] == "found":
            figures |= {f"silent_found_{where}": row["silent_found"], f"coverage_{where}": row["coverage"]}
            figures[f"mean_size_{where}"] = row["mean_size"]
            if row["method"] == "hierarchical":
                rival = peers[row["set"], row["k"]]["silent_found"]
                checks[f"as_many_silent_tables_as_schemagate_k{row['k']}_{row['set']}"] = row["silent_found"] >= rival
        elif row["part"] == "coupling":
            figures[f"silent_gain_of_coupling_k{row['k']}_{row['set']}"] = row["gain"]
            checks[f"coupling_finds_silent_tables_k{row['k']}_{row['set']}"] = row["gain_lower"] > 0
        else:
            figures |= {f"coverage_{where}": row["coverage"], f"closure_{where}": row["closure"]}
            figures |= {f"mean_size_{where}": row["mean_size"], f"gain_over_{where}": row["gain"]}
            checks[f"not_significantly_behind_{where}"] = not (row["gain"] < 0 and row["p_value"] < SIGNIFICANT)
    run.write(table, CLAIM, figures, checks, inputs)


if __name__ == "__main__":
    main()
