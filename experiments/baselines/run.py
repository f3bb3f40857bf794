"""Every baseline against every variant: precision and recall, each at its own rule and at matched mean set size."""

import jax
from baseline_rows import COMPARED, rows_of

from bayeslink.evidence.store import evidence_home
from bayeslink.inference import keep_compiled
from bayeslink.provenance import Experiment

CLAIM = (
    "Shortest paths between the independent picks are more precise than the hierarchical posterior's tables above "
    "1/2 and recall fewer gold tables."
)
ENDS = ("", "_lower", "_upper")


def main(arguments: list[str] | None = None) -> None:
    """Write table.csv and table.json."""
    run = Experiment.from_command(__file__, arguments)
    config = run.config
    inputs = {f"data/evidence/{name}.npz": evidence_home() / f"{name}.npz" for name in config["data"]}
    if run.is_current(inputs):
        return
    keep_compiled()
    table = []
    for data in config["data"]:
        table += rows_of(data, config)
        jax.clear_caches()
    figures, checks = {}, {}
    for row in table:
        benchmark = row["data"].removesuffix("-dev")
        for score in ("precision", "recall", "f1", "strict_recall", "exact_match", "mean_size"):
            figures[f"{score}_{row['method']}_{benchmark}"] = row[score]
        if row["method"] != "shortest_path":
            continue
        figures |= {f"{name}_{benchmark}": row[name] for name in ("questions", "databases")}
        for at in COMPARED:
            precise, less = f"precision_difference{at}", f"recall_difference{at}"
            for name in (precise, less):
                figures |= {f"shortest_path_{name}{end}_{benchmark}": row[f"{name}{end}"] for end in ENDS}
            checks |= {
                f"shortest_path_more_precise{at}_{benchmark}": row[precise] > 0,
                f"shortest_path_recalls_less{at}_{benchmark}": row[less] < 0,
                f"both_beyond_interval{at}_{benchmark}": row[f"{precise}_lower"] > 0 > row[f"{less}_upper"],
            }
    run.write(table, CLAIM, figures, checks, inputs)


if __name__ == "__main__":
    main()
