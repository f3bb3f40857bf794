"""Sets with a probability attached: the smallest cover, credible collections of subsets, abstention.

cover at level 1-eps:        the smallest S with P(gold inside S) >= 1-eps; ties by the larger probability
collection at level 1-eps:   the fewest subsets whose probabilities sum to 1-eps (highest mass first)
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int

from bayeslink.decision.selection import Selection
from bayeslink.inference.factored import FactoredDistribution
from bayeslink.inference.pooled import PooledDistribution
from bayeslink.inference.predictive import SubgraphDistribution

__all__ = ["Abstention", "abstention", "credible_collection", "level_of_size", "shortest_prefix", "smallest_cover"]

Distribution = SubgraphDistribution | FactoredDistribution

OFF_TOPIC = 0.7
"""P(no table) above which a question is off topic; no question of BIRD dev or Spider dev exceeds 0.54."""

FAINT = 1 / 3
"""Probability of the likeliest table below which an empty mode is taken at its word; a convention. It holds back none
of Spider dev's 1,034 questions, and of BIRD dev's 1,534 none with `learned` and 13 with `lexical` evidence."""

ROUNDING = 1e-9
"""Probabilities by different routes may differ by so much."""

LEAST_EPS = 1e-12
"""Smallest eps that `level_of_size` tries."""

LEVEL_STEPS = 40
"""Bisections of `level_of_size`: eps is then within a part in 1e10."""


class Abstention(NamedTuple):
    """Whether to ask instead of answering, with the reason for each question (empty where it answers)."""

    abstained: Bool[np.ndarray, " questions"]
    reasons: tuple[str, ...]


def smallest_cover(distribution: Distribution, level: float) -> Selection:
    """The smallest set that holds every needed table with probability at least `level`.

    Exact over all sets of tables where these are listed; on a larger schema the smallest set among the
    prefixes of the marginal order, whose covering probabilities are exact. Rounding is forgiven up to
    1e-12, so that the whole schema, which covers with probability 1, always qualifies.

    Args:
        distribution: Posterior predictive.
        level: 1 - eps, in (0, 1].

    Raises:
        ValueError: If `level` is outside (0, 1].
    """
    if not 0 < level <= 1:
        raise ValueError(f"level={level}: a probability above 0 and at most 1 is needed")
    if isinstance(distribution, FactoredDistribution):
        return shortest_prefix(distribution, level)
    sizes = distribution.states.sum(axis=1)
    # Fewest tables first, then the larger covering probability: probabilities add less than one table.
    cost = np.where(distribution.covered >= level - 1e-12, sizes[None, :] - distribution.covered / 2, np.inf)
    chosen = distribution.states[cost.argmin(axis=1)] > 0
    nothing = np.zeros(len(chosen), dtype=bool)
    return Selection(chosen, nothing, f"cover {level:g}", distribution.cover_probability(chosen))


def level_of_size(distributions: Sequence[Distribution], size: float) -> float:
    """The largest level whose smallest covers have at most this many tables in the mean over all questions.

    No label is used, so that a cover may be compared with another system's answer at that answer's mean size. Bisection
    on log eps down to 1e-12: a larger level never has smaller covers.

    Args:
        distributions: Posterior predictives, one per database.
        size: Mean number of tables.

    Raises:
        ValueError: If there is no question, or `size` is negative.
    """

    def mean_size(level: float) -> float:
        return float(np.concatenate([smallest_cover(item, level).chosen.sum(axis=1) for item in distributions]).mean())

    if not sum(len(item.marginals) for item in distributions):
        raise ValueError("distributions hold no question: there is no cover to size")
    if size < 0:
        raise ValueError(f"size={size}: a mean number of tables is at least 0")
    # The empty set covers a level of about 0, under a support without it too, as 1e-12 is forgiven: some level fits.
    widest, narrowest = LEAST_EPS, 1 - LEAST_EPS
    if mean_size(1 - widest) <= size:
        return 1 - widest
    for _ in range(LEVEL_STEPS):
        middle = float(np.sqrt(widest * narrowest))
        if mean_size(1 - middle) <= size:
            narrowest = middle
        else:
            widest = middle
    return 1 - narrowest


def shortest_prefix(distribution: FactoredDistribution | PooledDistribution, level: float) -> Selection:
    """The fewest of the most probable tables that hold every needed table with probability at least `level`.

    Bisection on the prefix length: a longer prefix covers with a larger probability. Rounding is forgiven up to 1e-12.
    The marginals bound it from both sides, max_t p_t <= P(a table outside is needed) <= sum_t p_t over the tables t
    outside, so that few prefixes are asked for.
    """
    order = np.argsort(-distribution.marginals, axis=1, kind="stable")
    rank = np.argsort(order, axis=1, kind="stable")
    falling = np.take_along_axis(distribution.marginals, order, axis=1)
    outside = np.cumsum(falling[:, ::-1], axis=1)[:, ::-1]
    too_short = (falling > 1 - level + ROUNDING).sum(axis=1) - 1
    enough = (outside > 1 - level - ROUNDING).sum(axis=1)
    while (enough - too_short > 1).any():
        middle = np.where(enough - too_short > 1, (too_short + enough) // 2, enough)
        holds = distribution.cover_probability(rank < middle[:, None]) >= level - 1e-12
        enough, too_short = np.where(holds, middle, enough), np.where(holds, too_short, middle)
    chosen = rank < enough[:, None]
    nothing = np.zeros(len(chosen), dtype=bool)
    return Selection(chosen, nothing, f"shortest prefix that covers {level:g}", distribution.cover_probability(chosen))


def credible_collection(
    distribution: Distribution, level: float
) -> tuple[Int[np.ndarray, " questions"], Bool[np.ndarray, "questions states"]]:
    """Number of subsets in the highest-mass collection at `level`, and which subsets it holds.

    Raises:
        ValueError: If `level` is outside (0, 1].
    """
    if not 0 < level <= 1:
        raise ValueError(f"level={level}: a probability above 0 and at most 1 is needed")
    if isinstance(distribution, FactoredDistribution):
        raise ValueError(
            f"distribution over {distribution.num_tables} tables: its subsets are not listed; use its collection(level)"
        )
    order = np.argsort(-distribution.probabilities, axis=1, kind="stable")
    mass: Float[np.ndarray, "questions states"] = np.cumsum(
        np.take_along_axis(distribution.probabilities, order, axis=1), axis=1
    )
    count = np.minimum((mass < level - 1e-12).sum(axis=1) + 1, mass.shape[1])
    rank = np.argsort(order, axis=1, kind="stable")
    return count, rank < count[:, None]


def abstention(
    distribution: Distribution,
    max_risk: float | None = None,
    no_evidence: Bool[np.ndarray, " questions"] | None = None,
) -> Abstention:
    """Where to ask rather than answer.

    A question is off topic when P(no table), all-subsets form, exceeds `OFF_TOPIC`. No table stands out when the empty
    set is the most probable one and no table reaches `FAINT`. With `max_risk` a question is also too uncertain when the
    most probable subset is wrong with a larger probability than that. P(no table) falls with the number of tables, so
    a question whose evidence tells no table from another is told apart.

    Args:
        distribution: Posterior predictive.
        max_risk: Largest accepted probability that the joint mode is not the needed set; None accepts any.
        no_evidence: True where every channel scores all tables alike.

    Raises:
        ValueError: If `max_risk` is outside [0, 1].
    """
    if max_risk is not None and not 0 <= max_risk <= 1:
        raise ValueError(f"max_risk={max_risk}: a probability between 0 and 1 is needed")
    reasons = []
    count = len(distribution.marginals)
    silent = np.zeros(count, dtype=bool) if no_evidence is None else no_evidence
    risk, nothing = np.zeros(count), distribution.marginals.max(axis=1) < FAINT
    # On a large schema the mode is a search: it is not asked for where it decides nothing.
    if max_risk is not None or nothing.any():
        risk, nothing = 1 - distribution.mode_probability, nothing & (distribution.mode.sum(axis=1) == 0)
    for empty, wrong, mute, none in zip(distribution.prob_empty, risk, silent, nothing, strict=True):
        if mute:
            reasons.append("nothing in the question tells one table from another")
        elif empty > OFF_TOPIC:
            reasons.append(f"no table seems to be concerned (probability {empty:.2f})")
        elif none:
            reasons.append(f"no table stands out: that none is needed is the likeliest single answer ({1 - wrong:.2f})")
        elif max_risk is not None and wrong > max_risk:
            reasons.append(f"the most probable set is wrong with probability {wrong:.2f} > {max_risk:g}")
        else:
            reasons.append("")
    return Abstention(np.array([bool(reason) for reason in reasons], dtype=bool), tuple(reasons))
