"""Rows of the table: rankings by single channels, and the hierarchical posteriors that the package carries."""

import numpy as np

from bayeslink.evaluation.comparison import clustered_bootstrap, paired_difference, question_clusters
from bayeslink.evaluation.questions import stored_questions
from bayeslink.evaluation.ranking import average_precision
from bayeslink.evaluation.report import evaluate
from bayeslink.evidence.store import load_evidence
from bayeslink.inference.posterior import load_posteriors, shipped_path

SCORES = ("map", "all_gold_at_3", "strict_recall", "precision", "joint_log_score", "ece", "mean_shift")


def alone(data: str, config: dict) -> list[dict]:
    """Every channel's own ranking."""
    evidences = load_evidence(data, config["channels"])
    clusters = question_clusters(evidences)
    rows = []
    for place, channel in enumerate(config["channels"]):
        values = np.concatenate([average_precision(item.values[:, :, place], item.gold) for item in evidences])
        rng = np.random.default_rng(config["seed"])
        found = clustered_bootstrap(values, *clusters, config["resamples"], rng)
        row = {"part": "channel", "name": channel, "data": data, "questions": len(values)}
        row |= dict.fromkeys((*SCORES, "shift_lower", "shift_upper", "coverage_95", "size_95"))
        rows.append(row | {"map": found.estimate, "map_lower": found.lower, "map_upper": found.upper})
    return rows


def gains(config: dict) -> list[dict]:
    """What the text encoder adds to the trees' own ranking of each set, question by question."""
    rows = []
    for data in config["gain_sets"]:
        for new, old in config["gains"]:
            evidences = load_evidence(data, (new, old))
            first, second = (
                np.concatenate([average_precision(item.values[:, :, place], item.gold) for item in evidences])
                for place in (0, 1)
            )
            rng = np.random.default_rng(config["seed"])
            found = paired_difference(first, second, *question_clusters(evidences), config["resamples"], rng)
            row = {"part": "gain", "name": f"{new}_over_{old}", "data": data, "questions": len(first)}
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
