"""Spider dev asked in other words: synonyms of the schema's words, and questions that do not name columns."""

import numpy as np

from bayeslink.evaluation.comparison import clustered_bootstrap
from bayeslink.evaluation.questions import stored_questions
from bayeslink.evaluation.ranking import average_precision
from bayeslink.evaluation.report import evaluate
from bayeslink.evidence.store import evidence_home, load_evidence, stored_files
from bayeslink.inference import keep_compiled
from bayeslink.inference.posterior import load_posteriors, shipped_path
from bayeslink.provenance import Experiment

CLAIM = (
    "Where questions avoid the schema's words, rankings by words fall most, those by embeddings and trees less, and "
    "the hierarchical posterior stays calibrated: it selects and covers with less confidence, not wrongly."
)
SCORES = ("map", "all_gold_at_3", "strict_recall", "precision", "joint_log_score", "ece", "mean_shift")


def main(arguments: list[str] | None = None) -> None:
    """Write table.csv and table.json."""
    run = Experiment.from_command(__file__, arguments)
    config, home = run.config, evidence_home()
    every = (*config["lists"], *config["channels"])
    inputs = {
        f"data/evidence/{path.relative_to(home)}": path for n in config["sets"] for path in stored_files(n, every)
    }
    inputs |= {f"bayeslink/posteriors/{kind}.nc": shipped_path(kind) for kind in config["lists"]}
    if run.is_current(inputs):
        return
    keep_compiled()
    table = [row for data in config["sets"] for row in (*alone(data, config), *fitted(data, config))]
    figures, checks = {}, {}
    first = config["sets"][0]
    for row in table:
        bench = row["data"].removesuffix("-dev").replace("-", "_")
        figures |= {f"{row['name']}_{score}_{bench}": row[score] for score in SCORES if row[score] is not None}
        base = next(r for r in table if (r["name"], r["data"]) == (row["name"], first))
        row["map_drop"] = base["map"] - row["map"]
        figures |= {f"{row['name']}_map_drop_{bench}": row["map_drop"]} if row is not base else {}
        if row["part"] == "fitted":
            inside = row["shift_lower"] <= 0 <= row["shift_upper"]
            checks[f"{row['name']}_shift_interval_holds_0_{bench}"] = inside
    for data in config["sets"][1:]:
        drops = {row["name"]: row["map_drop"] for row in table if row["data"] == data}
        checks[f"trees_fall_less_than_names_{data.removesuffix('-dev').replace('-', '_')}"] = (
            drops[config["lists"][0]] < drops["name_share"]
        )
    run.write(table, CLAIM, figures, checks, inputs)


def alone(data: str, config: dict) -> list[dict]:
    """Every channel's own ranking."""
    evidences = load_evidence(data, config["channels"])
    databases = [item.key for item in evidences for _ in range(item.num_questions)]
    groups = np.concatenate([item.group for item in evidences])
    rows = []
    for place, channel in enumerate(config["channels"]):
        values = np.concatenate([average_precision(item.values[:, :, place], item.gold) for item in evidences])
        rng = np.random.default_rng(config["seed"])
        found = clustered_bootstrap(values, databases, groups, config["resamples"], rng)
        row = {"part": "channel", "name": channel, "data": data, "questions": len(values)}
        row |= dict.fromkeys((*SCORES, "shift_lower", "shift_upper", "coverage_95", "size_95"))
        rows.append(row | {"map": found.estimate, "map_lower": found.lower, "map_upper": found.upper})
    return rows


def fitted(data: str, config: dict) -> list[dict]:
    """The hierarchical posterior of each list that the package carries."""
    rows = []
    for kind in config["lists"]:
        document = evaluate(stored_questions([data], [kind]), "transfer", load_posteriors(shipped_path(kind)))
        found = document["variants"]["hierarchical"]
        row = {"part": "fitted", "name": kind, "data": data, "questions": document["n_questions"]}
        row |= {score: found[score] for score in SCORES} | {"map_lower": None, "map_upper": None}
        row |= dict(zip(("shift_lower", "shift_upper"), found["mean_shift_interval"], strict=True))
        cover = found["cover"]["0.95"]
        rows.append(row | {"coverage_95": cover["coverage"], "size_95": cover["mean_size"]})
    return rows


if __name__ == "__main__":
    main()
