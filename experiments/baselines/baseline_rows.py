"""Scores of each method's choice, and what the hierarchical posterior chooses beside it."""

from collections.abc import Callable, Mapping, Sequence

import numpy as np
from baseline_sets import Choice, Part, Sets, choices_of, predicted_parts

from bayeslink.evaluation.comparison import clustered_bootstrap
from bayeslink.evaluation.recovery import exact_match, f1, precision, recall, strict_recall
from bayeslink.evaluation.weak_tables import matched_threshold

SCORES = {"precision": precision, "recall": recall}

COMPARED = ("", "_never_empty", "_matched", "_matched_never_empty")
"""The hierarchical posterior's tables above 1/2; with the best table where that leaves none; both at matched size."""


def rows_of(data: str, config: Mapping) -> list[dict]:
    """One row for each method on one set."""
    parts = predicted_parts(data, config)
    choices = choices_of(parts, config)
    ours = [choices[name].sets for name in ("hierarchical", "hierarchical_never_empty")]
    return [row_of(data, name, choice, ours, parts, config) for name, choice in choices.items()]


def row_of(data: str, name: str, choice: Choice, ours: Sequence[Sets], parts: Sequence[Part], config: Mapping) -> dict:
    """Scores, and paired differences to what the hierarchical posterior chooses."""
    databases = [part.whole.key for part in parts for _ in part.held]
    groups = np.concatenate([np.asarray(part.whole.group)[part.held] for part in parts])
    golds = [part.gold[part.held] for part in parts]
    size = float(np.mean(np.concatenate([sets.sum(axis=1) for sets in choice.sets])))
    marginals = [part.marginals["hierarchical"] for part in parts]
    # One more for each question's best table puts these before all others.
    lifted = [one + (np.arange(one.shape[1]) == one.argmax(axis=1)[:, None]) for one in marginals]
    compared = dict(zip(COMPARED, [*ours, *(matched(some, size) for some in (marginals, lifted))], strict=True))

    def each(score: Callable[..., np.ndarray], sets: Sets) -> np.ndarray:
        return np.concatenate([score(*pair) for pair in zip(sets, golds, strict=True)])

    def interval(name: str, values: np.ndarray) -> dict[str, float]:
        rng = np.random.default_rng(config["seed"])
        found = clustered_bootstrap(values, databases, groups, config["resamples"], rng)
        return {name: found.estimate, f"{name}_lower": found.lower, f"{name}_upper": found.upper}

    row: dict = {"data": data, "method": name, "questions": len(groups), "databases": len(set(databases))}
    for score, function in SCORES.items():
        own = each(function, choice.sets)
        row |= interval(score, own)
        for at, sets in compared.items():
            row |= interval(f"{score}_difference{at}", own - each(function, sets))
    row["f1"] = f1(row["precision"], row["recall"])
    row["strict_recall"] = float(each(strict_recall, choice.sets).mean())
    row["exact_match"] = float(each(exact_match, choice.exact).mean())
    row["mean_size"] = size
    row["share_empty"] = float(np.mean(np.concatenate([~some.any(axis=1) for some in choice.sets])))
    return row | {"fitted": choice.fitted}


def matched(marginals: Sets, size: float) -> Sets:
    """Tables above one threshold for all questions, at which their mean number is nearest to a given one."""
    threshold = matched_threshold(marginals, size).threshold
    return [one > threshold for one in marginals]
