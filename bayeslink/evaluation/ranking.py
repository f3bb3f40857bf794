"""Scores of a ranking of tables by a score; ties take the expectation over random order.

In a group of m tied tables, r of them gold, behind i tables of which R are gold, a gold table stands at
place j of the group with probability r/m for each j, and then, on average, (j-1)(r-1)/(m-1) other gold
tables of the group stand before it. So the group adds to the sum of precisions

    sum_{j=1..m} (r/m) (R + 1 + (j-1)(r-1)/(m-1)) / (i+j).
"""

from math import comb

import numpy as np
from jaxtyping import Bool, Float

__all__ = ["all_gold_at_k", "average_precision"]


def average_precision(
    scores: Float[np.ndarray, "questions tables"], gold: Bool[np.ndarray, "questions tables"]
) -> Float[np.ndarray, " questions"]:
    """Expected average precision of each question's ranking, over all tables."""
    return np.array([_average_precision(s, g) for s, g in zip(scores, gold, strict=True)])


def all_gold_at_k(
    scores: Float[np.ndarray, "questions tables"], gold: Bool[np.ndarray, "questions tables"], k: int
) -> Float[np.ndarray, " questions"]:
    """Probability that every gold table is among the k best, for each question."""
    return np.array([_all_gold(s, g, k) for s, g in zip(scores, gold, strict=True)])


def _tied_groups(scores: np.ndarray, gold: np.ndarray) -> list[tuple[int, int]]:
    """(size, gold tables) of each group of tied tables, best first; scores within 1e-12 are tied."""
    order = np.argsort(-scores, kind="stable")
    groups: list[tuple[int, int]] = []
    last = None
    for table in order:
        if last is not None and last - scores[table] <= 1e-12:
            size, relevant = groups[-1]
            groups[-1] = (size + 1, relevant + int(gold[table]))
        else:
            groups.append((1, int(gold[table])))
        last = scores[table]
    return groups


def _average_precision(scores: np.ndarray, gold: np.ndarray) -> float:
    before, relevant_before, total = 0, 0, 0.0
    for size, relevant in _tied_groups(scores, gold):
        others = (relevant - 1) / (size - 1) if size > 1 else 0.0
        for place in range(1, size + 1):
            total += relevant / size * (relevant_before + 1 + (place - 1) * others) / (before + place)
        before += size
        relevant_before += relevant
    return total / max(int(gold.sum()), 1)


def _all_gold(scores: np.ndarray, gold: np.ndarray, k: int) -> float:
    left = min(k, len(scores))
    wanted = int(gold.sum())
    for size, relevant in _tied_groups(scores, gold):
        if wanted == 0:
            return 1.0
        if size <= left:
            left -= size
            wanted -= relevant
            continue
        if relevant < wanted or relevant > left:
            return 0.0
        return comb(size - relevant, left - relevant) / comb(size, left)
    return 1.0 if wanted == 0 else 0.0
