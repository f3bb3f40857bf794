"""Sets that are prefixes of a ranking, at another system's mean size or mean cost.

A ranking of the tables gives a set for each length l, its first l tables. Which length to show is chosen for each
question by the posterior, the shortest with P(gold inside) >= level, or is the same for all. To compare with another
system the level, or the common length, is the largest whose mean cost over all questions does not exceed the other's;
no label is used (MODEL.md section 9). Cost is the number of tables, or their DDL's tokens.
"""

from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int

from bayeslink.inference.factored import FactoredDistribution
from bayeslink.inference.predictive import SubgraphDistribution

__all__ = ["Prefixes", "constant_lengths", "level_lengths", "prefixes_of", "ranked_prefixes"]

LEVEL_STEPS = 60
"""Bisections of a level on a logarithmic scale; a count."""


class Prefixes(NamedTuple):
    """The first tables of each question's ranking.

    Attributes:
        cost: Cost of the first l tables, l = 0, 1, ... up to the longest that is looked at.
        coverage: P(they hold every needed table), a probability; NaN for a ranking without a posterior.
        needed: The least l with all gold tables among the first l; beyond the longest where there is none.
    """

    cost: Float[np.ndarray, "questions lengths"]
    coverage: Float[np.ndarray, "questions lengths"]
    needed: Int[np.ndarray, " questions"]


def prefixes_of(
    distribution: SubgraphDistribution | FactoredDistribution,
    gold: Bool[np.ndarray, "questions tables"],
    weights: Float[np.ndarray, " tables"],
    longest: int,
) -> Prefixes:
    """Prefixes of the order of the marginals, with their exact covering probabilities.

    Args:
        distribution: Posterior predictive.
        gold: Gold tables, by which prefixes are judged and never chosen.
        weights: Cost of each table.
        longest: Longest prefix.
    """
    plain = ranked_prefixes(distribution.marginals, gold, weights, longest)
    order = np.argsort(-distribution.marginals, axis=1, kind="stable")
    coverage = np.empty_like(plain.cost)
    chosen = np.zeros_like(gold)
    for length in range(plain.cost.shape[1]):
        coverage[:, length] = distribution.cover_probability(chosen)
        if length < plain.cost.shape[1] - 1:
            chosen[np.arange(len(gold)), order[:, length]] = True
    return plain._replace(coverage=np.maximum.accumulate(coverage, axis=1))


def ranked_prefixes(
    scores: Float[np.ndarray, "questions tables"],
    gold: Bool[np.ndarray, "questions tables"],
    weights: Float[np.ndarray, " tables"],
    longest: int,
) -> Prefixes:
    """Prefixes of the order of some scores, largest first, ties in catalogue order.

    Args:
        scores: Score of each table.
        gold: Gold tables.
        weights: Cost of each table.
        longest: Longest prefix; the number of tables where that is less.
    """
    num = min(longest, scores.shape[1])
    order = np.argsort(-scores, axis=1, kind="stable")
    ordered = np.take_along_axis(gold, order, axis=1)
    needed = ordered.shape[1] - ordered[:, ::-1].argmax(axis=1)
    cost = np.concatenate([np.zeros((len(scores), 1)), weights[order[:, :num]].cumsum(axis=1)], axis=1)
    return Prefixes(cost, np.full_like(cost, np.nan), np.where(ordered.any(axis=1), needed, 0))


def level_lengths(found: list[Prefixes], mean_cost: float) -> tuple[float, list[Int[np.ndarray, " questions"]]]:
    """The largest level whose shortest prefixes have at most this mean cost over all questions; their lengths.

    Raises:
        ValueError: If the mean cost is negative.
    """
    if mean_cost < 0:
        raise ValueError(f"mean_cost={mean_cost}: a cost of at least 0 is needed")

    def lengths(eps: float) -> list[np.ndarray]:
        short = [(item.coverage < 1 - eps - 1e-12).sum(axis=1) for item in found]
        return [np.minimum(own, item.cost.shape[1] - 1) for own, item in zip(short, found, strict=True)]

    narrow, wide = 1e-12, 1.0
    if _mean_cost(found, lengths(narrow)) <= mean_cost:
        return 1 - narrow, lengths(narrow)
    for _ in range(LEVEL_STEPS):
        middle = float(np.sqrt(narrow * wide))
        narrow, wide = (narrow, middle) if _mean_cost(found, lengths(middle)) <= mean_cost else (middle, wide)
    return 1 - wide, lengths(wide)


def constant_lengths(found: list[Prefixes], mean_cost: float) -> tuple[int, list[Int[np.ndarray, " questions"]]]:
    """The largest length, one for all questions, of at most this mean cost; a database's own tables at most."""
    best = 0
    for length in range(1, max(item.cost.shape[1] for item in found)):
        if _mean_cost(found, _same(found, length)) > mean_cost:
            break
        best = length
    return best, _same(found, best)


def _same(found: list[Prefixes], length: int) -> list[np.ndarray]:
    return [np.full(len(item.cost), min(length, item.cost.shape[1] - 1)) for item in found]


def _mean_cost(found: list[Prefixes], lengths: list[np.ndarray]) -> float:
    costs = [item.cost[np.arange(len(own)), own] for item, own in zip(found, lengths, strict=True)]
    return float(np.concatenate(costs).mean())
