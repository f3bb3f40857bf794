"""Labelled questions of a new database: what they are worth to each method."""

import numpy as np

from bayeslink.evaluation.learners import population_learners
from bayeslink.evaluation.learning import learning_curve, paired
from bayeslink.evidence.store import evidence_home, load_evidence
from bayeslink.inference import keep_compiled
from bayeslink.provenance import Experiment

CLAIM = (
    "A few labelled questions of a new database are worth most to the hierarchical model with table effects: "
    "it is never worse than its comparators and better from ten questions on."
)
OURS = "hierarchical_tables"


def main(arguments: list[str] | None = None) -> None:
    """Write table.csv and table.json."""
    run = Experiment.from_command(__file__, arguments)
    config = run.config
    names = [f"{name}.npz" for name in (*config["train"], *config["data"], "fingerprints")] + ["twins.json"]
    inputs = {f"data/evidence/{name}": evidence_home() / name for name in names}
    if run.is_current(inputs):
        return
    keep_compiled()
    learners, figures = population_learners(config)
    table, lowest, gains = [], [], []
    for data in config["data"]:
        name = data.replace("-dev", "").replace("-", "_")
        stored = load_evidence(data, config["channels"])
        small = [item for item in stored if item.num_tables <= config["max_tables"]][: config["databases"]]
        figures[f"databases_left_out_{name}"] = sum(item.num_tables > config["max_tables"] for item in stored)
        points = learning_curve(small, learners, config["counts"], config["replicates"], config["seed"], progress=True)
        ours = {point.num_labelled: point for point in points if point.method == OURS}
        for point in points:
            row: dict[str, object] = {"data": name, "method": point.method, "labelled": point.num_labelled}
            row |= {"databases": len(set(point.databases)), "least_pool": point.least_pool}
            row |= {"questions": len(point.groups), "joint_log_score": float(np.nanmean(point.log_score))}
            row |= {"exact_match": float(np.nanmean(point.exact)), "strict_recall": float(np.nanmean(point.strict))}
            row |= {"ece": point.ece, "mean_shift": point.mean_shift}
            gain = paired(ours[point.num_labelled], point, config["resamples"], np.random.default_rng(config["seed"]))
            row |= {"gain": gain.estimate, "gain_lower": gain.lower, "gain_upper": gain.upper}
            row |= {"failed": point.num_failed, "largest_gradient": point.largest_gradient}
            table.append(row | {"share_uneven": point.share_uneven})
            for score in ("exact_match", "joint_log_score", "ece"):
                figures[f"{point.method}_{score}_{point.num_labelled}_{name}"] = row[score]
            if point.method != OURS:
                lowest.append(gain.upper)
                gains += [gain.lower] if point.num_labelled >= 10 else []
    checks = {
        "nowhere_below_a_comparator": min(lowest) >= 0,
        "above_every_comparator_from_10_questions": bool(gains) and min(gains) > 0,
        "every_update_converged": all(row["failed"] == 0 for row in table if row["method"] != "unpooled"),
        "updates_weigh_the_draws_evenly": all(row["share_uneven"] < 0.05 for row in table),
    }
    run.write(table, CLAIM, figures, checks, inputs)


if __name__ == "__main__":
    main()
