"""Covers by size and by weight: nested families, a search with a certificate, and covers within a budget of tokens.

With cover(S) = P(gold inside S) and w_t the weight of a table, such as the tokens of its DDL,

    of size m          S_m maximises cover(S) over |S| = m; the smallest cover is the first S_m that reaches the level
    within a budget    the largest cover(S) over sum of w_t <= B
    of least weight    the least sum of w_t over cover(S) >= 1 - eps

all exact where subsets are listed. On a larger schema sets are compared by their exact probabilities, but not all are:
the smallest cover is searched by branch and bound from the shortest prefix of the marginal order, and says what it
has proved. Two facts bound its size from below: a table with p_t > eps is in every cover, since without it S covers
with probability at most 1 - p_t; and a cover of m tables has P(N <= m) >= 1 - eps.
"""

from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int

from bayeslink.decision.selection import Selection
from bayeslink.decision.sets import shortest_prefix, smallest_cover
from bayeslink.inference.factored import FactoredDistribution
from bayeslink.inference.predictive import SubgraphDistribution

__all__ = [
    "CertifiedCover",
    "CoverFamily",
    "best_within_budget",
    "certified_cover",
    "cover_family",
    "lightest_cover",
    "required_level",
]

Distribution = SubgraphDistribution | FactoredDistribution
Weights = Float[np.ndarray, " tables"]

FORGIVEN = 1e-12
"""Rounding forgiven where a probability is compared with a level, as in `smallest_cover`."""

MAX_EVALUATIONS = 100
"""Sets whose probability the search of one question may ask for; a count."""

LARGEST_SEARCHED = 300
"""Tables of the largest schema in which a cover smaller than the shortest prefix is searched for; a count."""


class CoverFamily(NamedTuple):
    """One set of every size for each question.

    Attributes:
        chosen: The set of m tables; axes questions, sizes 0 to n, tables.
        probability: P(gold inside it), which does not fall with m.
    """

    chosen: Bool[np.ndarray, "questions sizes tables"]
    probability: Float[np.ndarray, "questions sizes"]


class CertifiedCover(NamedTuple):
    """A cover, and the number of tables that no cover of its level can go below.

    Attributes:
        selection: The smallest cover found.
        fewest: A proved lower bound on the size of every cover.
    """

    selection: Selection
    fewest: Int[np.ndarray, " questions"]

    @property
    def gap(self) -> Int[np.ndarray, " questions"]:
        """Tables by which the cover found may exceed the smallest; 0 where it is proved to be it."""
        return self.selection.chosen.sum(axis=1) - self.fewest


def cover_family(distribution: Distribution) -> CoverFamily:
    """The best set of every size; on a schema too large to list, the prefixes of the marginal order.

    `smallest_cover` at any level is one of these sets: the first whose probability reaches it.
    """
    sizes = range(distribution.num_tables + 1)
    if isinstance(distribution, FactoredDistribution):
        order = np.argsort(-distribution.marginals, axis=1, kind="stable")
        rank = np.argsort(order, axis=1, kind="stable")
        chosen = rank[:, None, :] < np.arange(len(sizes))[None, :, None]
        probability = np.stack([distribution.coverage(q, sets) for q, sets in enumerate(chosen)])
        return CoverFamily(chosen, probability)
    count = distribution.states.sum(axis=1)
    best = np.stack([np.where(count == m, distribution.covered, -1.0).argmax(axis=1) for m in sizes], axis=1)
    return CoverFamily(distribution.states[best] > 0, np.take_along_axis(distribution.covered, best, axis=1))


def required_level(
    distribution: Distribution, gold: Bool[np.ndarray, "questions tables"]
) -> Float[np.ndarray, " questions"]:
    """The level above which the smallest cover holds gold: the largest cover(S_m) among the S_m that do not hold it.

    At any level above it gold is inside the cover, whether the covers are nested or not, but for gold so improbable
    (1e-12) that rounding forgives it: the nonconformity score of `conformal`. 0 where even the empty set holds gold.
    On a schema too large to list the covers are the shortest prefixes, as those of `smallest_cover`.

    Raises:
        ValueError: If `gold` has another shape than the marginals.
    """
    if gold.shape != distribution.marginals.shape:
        raise ValueError(f"gold has shape {gold.shape}, the distribution {distribution.marginals.shape}")
    family = cover_family(distribution)
    misses = (gold[:, None, :] & ~family.chosen).any(axis=2)
    return np.where(misses, family.probability, 0.0).max(axis=1)


def certified_cover(distribution: Distribution, level: float, max_evaluations: int = MAX_EVALUATIONS) -> CertifiedCover:
    """The smallest cover with a lower bound on its size.

    Where subsets are listed both are the size of the smallest cover. On a larger schema tables are left out in every
    order, the least probable first, by branch and bound, until a cover of the proved size is found, everything was
    tried, or `max_evaluations` sets were asked for; the shortest prefix stands where nothing smaller was found. Above
    `LARGEST_SEARCHED` tables that prefix is the answer, and the bound counts the tables that no cover can do without.

    Args:
        distribution: Posterior predictive.
        level: 1 - eps, in (0, 1].
        max_evaluations: Sets whose probability is asked for, for each question.

    Raises:
        ValueError: If `level` is outside (0, 1] or `max_evaluations` negative.
    """
    if max_evaluations < 0:
        raise ValueError(f"max_evaluations={max_evaluations}: a count of at least 0 is needed")
    found = smallest_cover(distribution, level)
    if isinstance(distribution, SubgraphDistribution):
        return CertifiedCover(found, found.chosen.sum(axis=1))
    if found.chosen.shape[1] > LARGEST_SEARCHED:
        # Each evaluation is a pass over the whole graph for every draw, so that a search would take seconds.
        required = (distribution.marginals > 1 - level + FORGIVEN).sum(axis=1)
        return CertifiedCover(found, np.minimum(required, found.chosen.sum(axis=1)))
    chosen, fewest = found.chosen.copy(), np.zeros(len(found.chosen), dtype=np.int64)
    at_most = np.cumsum(distribution.size_distribution, axis=1) >= level - FORGIVEN
    for question, start in enumerate(found.chosen):
        search = _Search(distribution, question, level, int(at_most[question].argmax()), max_evaluations)
        chosen[question] = search.run(start)
        size = int(chosen[question].sum())
        fewest[question] = size if search.finished else min(search.least, size)
    probability = distribution.cover_probability(chosen)
    return CertifiedCover(Selection(chosen, found.abstained, f"smallest cover found {level:g}", probability), fewest)


class _Search:
    """Branch and bound for one question: which of the improbable tables can be left out together.

    With S the tables that are kept, cover(S without t) >= cover(S) - p_t, so that no set need be asked for as long as
    the tables left out have little probability together.
    """

    def __init__(
        self, distribution: FactoredDistribution, question: int, level: float, least: int, max_evaluations: int
    ) -> None:
        self._distribution, self._question = distribution, question
        self._level, self._left = level - FORGIVEN, max_evaluations
        self._marginals = distribution.marginals[question]
        required = self._marginals > 1 - level + FORGIVEN
        order = np.argsort(self._marginals, kind="stable")
        self._optional = order[~required[order]].tolist()
        self.least = max(least, int(required.sum()))
        self.finished = False

    def run(self, start: Bool[np.ndarray, " tables"]) -> Bool[np.ndarray, " tables"]:
        """The smallest cover found, no larger than `start`."""
        self._best = start
        self.finished = self._branch(np.ones(len(start), dtype=bool), self._optional, 1.0)
        return self._best

    def _branch(self, kept: Bool[np.ndarray, " tables"], optional: list[int], at_least: float) -> bool:
        """Leave out more of the optional tables; False where evaluations ran out before all was tried.

        Args:
            kept: A cover.
            optional: Tables that may still go, the least probable first.
            at_least: A lower bound on the probability of `kept`.
        """
        for place, table in enumerate(optional):
            size, goal = int(kept.sum()), int(self._best.sum())
            if goal <= self.least or size - (len(optional) - place) >= goal:
                return True
            without = kept.copy()
            without[table] = False
            bound = at_least - float(self._marginals[table])
            if bound < self._level:
                if self._left == 0:
                    return False
                self._left -= 1
                bound = float(self._distribution.coverage(self._question, without[None])[0])
                if bound < self._level:
                    # It cannot go now, and cannot go later either: leaving out more never covers more.
                    continue
            if size - 1 < goal:
                self._best = without
            if not self._branch(without, optional[place + 1 :], bound):
                return False
        return True


def best_within_budget(distribution: Distribution, weights: Weights, budget: float) -> Selection:
    """The set of at most `budget` weight that holds every needed table with the largest probability.

    Exact where subsets are listed; of equally probable sets the lightest. On a larger schema tables are taken in two
    orders, by probability and by probability per weight, each that still fits, and the better set is returned.

    Args:
        distribution: Posterior predictive.
        weights: Weight of each table, such as the tokens of its DDL; at least 0.
        budget: Largest total weight, in the unit of the weights.

    Raises:
        ValueError: If weights are negative or not one for each table, or the budget is negative.
    """
    _check(distribution, weights)
    if not 0 <= budget < np.inf:
        raise ValueError(f"budget={budget}: a finite total of at least 0, in the unit of the weights, is needed")
    rule = f"best within {budget:g}"
    if isinstance(distribution, SubgraphDistribution):
        total = distribution.states @ weights
        fits = total <= budget + FORGIVEN * max(1.0, budget)
        value = np.where(fits, distribution.covered, -1.0)
        tied = value >= value.max(axis=1, keepdims=True) - FORGIVEN
        chosen = distribution.states[np.where(tied, total, np.inf).argmin(axis=1)] > 0
        return _selected(distribution, chosen, rule)
    candidates = []
    for score in (distribution.marginals, distribution.marginals / np.maximum(weights, FORGIVEN)):
        taken = np.zeros(score.shape, dtype=bool)
        for row, order in zip(taken, np.argsort(-score, axis=1, kind="stable"), strict=True):
            left = budget
            for table in order.tolist():
                if weights[table] <= left:
                    row[table], left = True, left - weights[table]
        candidates.append(taken)
    held = [distribution.cover_probability(sets) for sets in candidates]
    chosen = np.where((held[1] > held[0])[:, None], candidates[1], candidates[0])
    return _selected(distribution, chosen, f"{rule}, of two greedy orders")


def lightest_cover(distribution: Distribution, level: float, weights: Weights) -> Selection:
    """The set of least weight that holds every needed table with probability at least `level`.

    Exact where subsets are listed; of equally light sets the more probable. On a larger schema the shortest prefix
    without the tables, the heaviest first, that it can lose and still cover.

    Args:
        distribution: Posterior predictive.
        level: 1 - eps, in (0, 1].
        weights: As in `best_within_budget`.

    Raises:
        ValueError: If `level` is outside (0, 1], or weights are negative or not one for each table.
    """
    if not 0 < level <= 1:
        raise ValueError(f"level={level}: a probability above 0 and at most 1 is needed")
    _check(distribution, weights)
    rule = f"lightest cover {level:g}"
    if isinstance(distribution, SubgraphDistribution):
        total = np.where(distribution.covered >= level - FORGIVEN, distribution.states @ weights, np.inf)
        tied = total <= total.min(axis=1, keepdims=True)
        chosen = distribution.states[np.where(tied, distribution.covered, -1.0).argmax(axis=1)] > 0
        return _selected(distribution, chosen, rule)
    chosen = shortest_prefix(distribution, level).chosen.copy()
    for question, row in enumerate(chosen):
        for table in np.flatnonzero(row)[np.argsort(-weights[row], kind="stable")].tolist():
            row[table] = False
            if distribution.coverage(question, row[None])[0] < level - FORGIVEN:
                row[table] = True
    return _selected(distribution, chosen, f"{rule}, greedy")


def _check(distribution: Distribution, weights: Weights) -> None:
    if weights.shape != (distribution.num_tables,):
        raise ValueError(f"weights have shape {weights.shape}: give one for each of {distribution.num_tables} tables")
    if not ((weights >= 0) & np.isfinite(weights)).all():
        raise ValueError(f"weights hold {weights.min():g} to {weights.max():g}: finite ones of at least 0 are needed")


def _selected(distribution: Distribution, chosen: Bool[np.ndarray, "questions tables"], rule: str) -> Selection:
    nothing = np.zeros(len(chosen), dtype=bool)
    return Selection(chosen, nothing, rule, distribution.cover_probability(chosen))
