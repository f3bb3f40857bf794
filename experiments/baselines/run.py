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
PATHS = ("shortest_path", "shortest_path_on_independent_hierarchical", "tuned_shortest_path")
"""Methods whose differences to the hierarchical posterior's choices are figures."""
TUNED = ("tuned_shortest_path", "hierarchical", "hierarchical_tuned_cut", "hierarchical_never_empty")
SAME = 0.02
"""A method's sets are called comparable if their F1 is no further below."""


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
        method = row["method"]
        figures |= {f"{name}_{benchmark}": row[name] for name in ("questions", "databases")}
        for at in COMPARED if method in PATHS else ():
            precise, less = f"precision_difference{at}", f"recall_difference{at}"
            for name in (precise, less):
                figures |= {f"{method}_{name}{end}_{benchmark}": row[f"{name}{end}"] for end in ENDS}
            both = "" if method == "shortest_path" else f"{method}_"
            checks |= {
                f"{method}_more_precise{at}_{benchmark}": row[precise] > 0,
                f"{method}_recalls_less{at}_{benchmark}": row[less] < 0,
                f"{both}both_beyond_interval{at}_{benchmark}": row[f"{precise}_lower"] > 0 > row[f"{less}_upper"],
            }
    for benchmark in dict.fromkeys(row["data"].removesuffix("-dev") for row in table):
        tuned, *ours = (figures[f"f1_{name}_{benchmark}"] for name in TUNED)
        checks[f"tuned_shortest_path_f1_at_most_{SAME:g}_below_{benchmark}"] = all(tuned >= f1 - SAME for f1 in ours)
    run.write(table, CLAIM, figures, checks, inputs)


if __name__ == "__main__":
    main()
