"""The smallest set of a pool's tables that holds every needed one with probability 1 - eps.

The probability that a set covers is a sum over databases d of f_d(the set's tables in d). So with f_d(m) the largest
f_d of m tables of d, the smallest cover is

    min sum_d m_d   subject to   sum_d f_d(m_d) >= 1 - eps,

a knapsack over databases that dynamic programming solves exactly. f_d(m) comes from the list of d's subsets, and
where they are too many to list from the first m tables of d by probability.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float

from bayeslink.decision.selection import Selection
from bayeslink.decision.sets import shortest_prefix
from bayeslink.inference import enumeration
from bayeslink.inference.pooled import PooledDistribution
from bayeslink.inference.predictive import SubgraphDistribution

__all__ = ["prefix_coverage", "smallest_pooled_cover"]

MIN_PROBABILITY = 1e-3
"""A database less probable than this is left to the prefix rule."""


class _Best(NamedTuple):
    """Best sets of 0, 1, ..., n tables of one database and the probabilities that they cover."""

    probability: Float[np.ndarray, " sizes"]
    chosen: Bool[np.ndarray, "sizes tables"]


def smallest_pooled_cover(
    distribution: PooledDistribution, level: float, min_probability: float = MIN_PROBABILITY
) -> Selection:
    """The smallest set that holds every needed table with probability at least `level`, the right database included.

    The first candidate is the shortest prefix of the pool's ranking that covers. A smaller set, or one as small that
    covers with a larger probability, is then sought among the tables of the probable databases, as the module says.
    The result is the smallest cover of all where every database has at most `enumeration.MAX_TABLES` tables and
    `min_probability` is 0; it is never larger than the prefix. Rounding is forgiven up to 1e-12.

    Args:
        distribution: Posterior predictive of the pool.
        level: 1 - eps, in (0, 1].
        min_probability: Databases with P(d | q) below this give tables to the prefix alone.

    Raises:
        ValueError: If `level` is outside (0, 1] or `min_probability` outside [0, 1].
    """
    if not 0 < level <= 1:
        raise ValueError(f"level={level}: a probability above 0 and at most 1 is needed")
    if not 0 <= min_probability <= 1:
        raise ValueError(f"min_probability={min_probability}: a probability between 0 and 1 is needed")
    prefix = shortest_prefix(distribution, level)
    chosen = prefix.chosen.copy()
    for question, size in enumerate(prefix.chosen.sum(axis=1).tolist()):
        probable = np.flatnonzero(distribution.database_probability[question] >= min_probability)
        best = {int(d): _best_sets(distribution, int(d), question) for d in probable}
        counts = _fewest([best[d].probability for d in best], level, size)
        if counts is None:
            continue
        held = sum(best[d].probability[count] for d, count in zip(best, counts, strict=True))
        if sum(counts) < size or held > prefix.cover_probability[question]:
            chosen[question] = False
            for d, count in zip(best, counts, strict=True):
                chosen[question, distribution.database_of == d] = best[d].chosen[count]
    nothing = np.zeros(len(chosen), dtype=bool)
    return Selection(chosen, nothing, f"pooled cover {level:g}", distribution.cover_probability(chosen))


def prefix_coverage(distribution: PooledDistribution, longest: int) -> Float[np.ndarray, "questions lengths"]:
    """P(every needed table is among the m most probable of the pool), for m = 0, 1, ..., `longest`.

    The m-th table changes the probability of its own database alone, so each length costs one elimination there.

    Args:
        distribution: Posterior predictive of the pool.
        longest: Largest number of tables, at least 1; more than there are counts as all.

    Raises:
        ValueError: If `longest` is less than 1.
    """
    if longest < 1:
        raise ValueError(f"longest={longest}: at least one table is needed")
    order = distribution.ranking[:, : min(longest, distribution.num_tables)]
    owner = distribution.database_of[order]
    added = np.zeros((len(order), order.shape[1] + 1))
    for database in range(len(distribution.members)):
        own = np.flatnonzero(distribution.database_of == database)
        questions, places = np.nonzero(owner == database)
        if not len(questions):
            continue
        rank = np.full((len(order), len(own)), order.shape[1])
        rank[questions, order[questions, places] - own[0]] = places
        covered = distribution.coverage(database, rank[questions] <= places[:, None], questions)
        # Of one question's places in this database, each adds what it covers beyond the one before.
        before = np.where(np.diff(questions, prepend=-1) == 0, np.roll(covered, 1), 0.0)
        added[questions, places + 1] = covered - before
    return np.clip(np.cumsum(added, axis=1), 0.0, 1.0)


def _best_sets(distribution: PooledDistribution, database: int, question: int) -> _Best:
    """From the list of the database's subsets, or where they are too many from the prefixes of its ranking."""
    member = distribution.members[database]
    n = member.num_tables
    if n > enumeration.MAX_TABLES:
        order = np.argsort(-distribution.marginals[question, distribution.database_of == database], kind="stable")
        prefixes = np.argsort(order, kind="stable") < np.arange(n + 1)[:, None]
        return _Best(distribution.coverage(database, prefixes, np.full(n + 1, question)), prefixes)
    probabilities = distribution.subset_probabilities(database, question)[None]
    listed = SubgraphDistribution(probabilities, probabilities[:, 0], member.edges)
    covered, states = listed.covered[0], listed.states > 0
    sizes = states.sum(axis=1)
    places = [int(np.where(sizes == size, covered, -1.0).argmax()) for size in range(n + 1)]
    return _Best(covered[places], states[places])


def _fewest(curves: Sequence[Float[np.ndarray, " _"]], level: float, limit: int) -> list[int] | None:
    """How many tables of each database, few in all and at most `limit`, cover the level; None where none do.

    Of equally few, those that cover with the largest probability.
    """
    best = np.zeros(1)
    taken = []
    for curve in curves:
        size = min(len(best) + len(curve) - 1, limit + 1)
        longer, choice = np.full(size, -np.inf), np.zeros(size, dtype=np.int64)
        for count, probability in enumerate(curve[:size]):
            reached = best[: size - count] + probability
            end = count + len(reached)
            better = reached > longer[count:end]
            longer[count:end][better] = reached[better]
            choice[count:end][better] = count
        best = longer
        taken.append(choice)
    enough = np.flatnonzero(best >= level - 1e-12)
    if not len(enough):
        return None
    left, counts = int(enough[0]), []
    for choice in reversed(taken):
        counts.append(int(choice[left]))
        left -= counts[-1]
    return counts[::-1]
