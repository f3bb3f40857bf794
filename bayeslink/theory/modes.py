"""Proposition 2: whether a set R of tables is the unique mode, and how much mass the other sets can hold.

MODEL.md section 6. For coupling >= 0, R is the unique mode of H(S) = sum_{t in S} a_t + beta e(S) if and only if

    (6) sum_A mu_r > beta ( e(A) + e(A, R) )            for every non-empty A outside R   (mu_r = -a_r), and
    (7) beta ( e(B) + e(B, R-B) ) > sum_B (-a_b)        for every non-empty B inside R.

The left sides minus the right sides are H(R) - H(R + A) and H(R) - H(R - B), both submodular, so that each
condition is one minimum cut (`mincut`) with R forced in, or everything outside R forced out.

Mass bound: if H(R) - H(S) >= eps |S symmetric-difference R| for all S, then, for this one parameter value,

    P(x != R) <= 1 - (1 + e^-eps)^-n <= (1 + e^-eps)^n - 1.
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

import numpy as np
from jaxtyping import ArrayLike, Bool, Float, Int

from bayeslink.inference.mincut import minimise_cut
from bayeslink.theory.stability import flip_gains, num_relevant_neighbours

__all__ = [
    "TIE_TOLERANCE",
    "MassBound",
    "ModeCheck",
    "SufficientBound",
    "Verdict",
    "is_unique_mode",
    "mass_bound",
    "sufficient_bound",
]

TIE_TOLERANCE = 1e-9
"""Gap in nats per table below which two scores tie, times the largest parameter where that exceeds 1."""


class Verdict(StrEnum):
    """Whether R is the only mode, one of several, or none."""

    YES = "yes"
    TIE = "tie"
    NO = "no"


@dataclass(frozen=True)
class ModeCheck:
    """Answer of Proposition 2; true where R is the unique mode.

    Attributes:
        verdict: The worse of (6) and (7).
        entering: A set A that breaks (6), by most, or that ties; empty if (6) holds.
        leaving: A set B that breaks (7), by most, or that ties; empty if (7) holds.
        entering_margin: Smallest H(R) - H(R + A) over all A, nats; 0 for the empty A.
        leaving_margin: Smallest H(R) - H(R - B) over all B, nats; 0 for the empty B.
    """

    verdict: Verdict
    entering: Bool[np.ndarray, " tables"]
    leaving: Bool[np.ndarray, " tables"]
    entering_margin: float
    leaving_margin: float

    def __bool__(self) -> bool:
        return self.verdict is Verdict.YES


class SufficientBound(NamedTuple):
    """The sufficient form of (6): it holds for 0 <= coupling < upper where `uncorrectable` is empty.

    Attributes:
        upper: min_r 2 mu_r / (d_r + k_r) over r outside R with d_r + k_r > 0, nats; inf if there is none.
        uncorrectable: Isolated tables outside R with mu_r <= 0, which break (6) at every coupling.
    """

    upper: Float[np.ndarray, "*questions"]
    uncorrectable: Bool[np.ndarray, "*questions tables"]

    def holds(self, coupling: Float[ArrayLike, "..."]) -> Bool[np.ndarray, "..."]:
        """Whether this coupling, nats, is small enough; says nothing about (7)."""
        beta = np.asarray(coupling)
        return np.asarray((beta >= 0) & (beta < self.upper) & ~self.uncorrectable.any(axis=-1))


class MassBound(NamedTuple):
    """Bound on the probability of all sets but R, for one parameter value; not for a mixture over draws.

    Attributes:
        eps: Smallest ( H(R) - H(S) ) / |S symmetric-difference R| over all S, nats per table; positive if and only
            if R is the unique mode. The bound holds for negative values too, but then exceeds 1 - 2^-n.
        other_prob: 1 - (1 + e^-eps)^-n, an upper bound on P(x != R).
        looser: (1 + e^-eps)^n - 1, the looser form; may exceed 1.
        nearest: A set S that attains eps.
    """

    eps: float
    other_prob: float
    looser: float
    nearest: Bool[np.ndarray, " tables"]


def is_unique_mode(
    unary: Float[ArrayLike, " tables"],
    edges: Int[np.ndarray, "edges 2"],
    relevant: Bool[ArrayLike, " tables"],
    coupling: Float[ArrayLike, "*edges"],
    tolerance: float = TIE_TOLERANCE,
) -> ModeCheck:
    """Whether R is the unique mode (yes), one of several (tie) or no mode (no): Proposition 2.

    The empty set always attains 0 in (6) and (7), so each holds strictly if the *largest* minimiser is empty after
    every table's cost has been lowered by the tolerance; without it, a negative minimum is a violation.

    Args:
        unary: a, log-odds.
        edges: Node positions of each edge.
        relevant: Membership of R.
        coupling: Gain in nats when both tables of a pair are selected, >= 0, one value or one per edge.
        tolerance: Gap in nats per table that counts as a tie, for parameters up to 1; grows with larger ones.

    Raises:
        ValueError: If there is no table, `unary` is not finite or `coupling` is negative.
    """
    cost, inside = _cost(unary), np.asarray(relevant)
    slack = tolerance * float(np.abs(np.append(cost, coupling)).max(initial=1.0))
    base = _value(cost, edges, inside, coupling)

    def search(lowered: np.ndarray, entering: bool) -> tuple[Verdict, np.ndarray, float]:
        forced_in = np.flatnonzero(inside).tolist() if entering else []
        forced_out = [] if entering else np.flatnonzero(~inside).tolist()
        exact = minimise_cut(cost, edges, coupling, forced_in, forced_out)
        margin = min(exact.value - base, 0.0)
        if margin < -slack:
            smallest = exact.minimal if entering else exact.maximal
            return Verdict.NO, smallest ^ inside, margin
        eased = minimise_cut(lowered, edges, coupling, forced_in, forced_out)
        moved = (eased.maximal if entering else eased.minimal) ^ inside
        return (Verdict.TIE if moved.any() else Verdict.YES), moved, margin

    first, entering, entering_margin = search(cost - slack, entering=True)
    second, leaving, leaving_margin = search(cost + slack, entering=False)
    verdict = max(first, second, key=list(Verdict).index)
    return ModeCheck(verdict, entering, leaving, entering_margin, leaving_margin)


def sufficient_bound(
    unary: Float[ArrayLike, "*questions tables"],
    edges: Int[np.ndarray, "edges 2"],
    relevant: Bool[ArrayLike, "*questions tables"],
) -> SufficientBound:
    """Coupling, nats, below which (6) is certain: e(A) <= 1/2 sum_A (d_r - k_r) makes (6) a sum over single tables."""
    margin, outside = -np.asarray(unary), ~np.asarray(relevant)
    degree = num_relevant_neighbours(edges, np.ones(outside.shape, dtype=bool))
    reach = degree + num_relevant_neighbours(edges, ~outside)
    ratio = 2 * margin / np.where(reach > 0, reach, 1)
    upper = np.where(outside & (reach > 0), ratio, np.inf).min(axis=-1, initial=np.inf)
    return SufficientBound(np.asarray(upper), outside & (reach == 0) & (margin <= 0))


def mass_bound(
    unary: Float[ArrayLike, " tables"],
    edges: Int[np.ndarray, "edges 2"],
    relevant: Bool[ArrayLike, " tables"],
    coupling: Float[ArrayLike, "*edges"],
) -> MassBound:
    """Upper bound on P(x != R) from the best eps.

    Whether an eps is valid is one minimum cut, with a_t lowered by eps in R and raised by eps outside. Starting at
    the best single flip, eps moves to the ratio of the set that breaks it most (Dinkelbach 1967), and so reaches
    the smallest ratio in a few cuts, where bisection would approach it.

    Args:
        unary: a, log-odds, finite.
        edges: Node positions of each edge.
        relevant: Membership of R.
        coupling: Gain in nats when both tables of a pair are selected, >= 0, one value or one per edge.

    Raises:
        ValueError: If there is no table, `unary` is not finite or `coupling` is negative.
    """
    cost, inside = _cost(unary), np.asarray(relevant)
    losses = -flip_gains(unary, edges, inside, coupling)
    eps = float(losses.min())
    nearest = inside ^ (np.arange(len(cost)) == losses.argmin())
    base = _value(cost, edges, inside, coupling)
    while True:
        rival = minimise_cut(cost + np.where(inside, eps, -eps), edges, coupling).minimal
        moved = int((rival ^ inside).sum())
        ratio = (_value(cost, edges, rival, coupling) - base) / max(moved, 1)
        if not moved or ratio >= eps:
            break
        eps, nearest = ratio, rival
    log_odds_sum = float(len(cost) * np.logaddexp(0.0, -eps))
    with np.errstate(over="ignore"):
        looser = float(np.expm1(log_odds_sum))
    return MassBound(eps, float(-np.expm1(-log_odds_sum)), looser, nearest)


def _cost(unary: Float[ArrayLike, " tables"]) -> Float[np.ndarray, " tables"]:
    cost = -np.asarray(unary)
    if not len(cost) or not np.isfinite(cost).all():
        raise ValueError(f"unary={-cost}: finite log-odds of at least one table are needed; leave forced tables out")
    return cost


def _value(cost: np.ndarray, edges: np.ndarray, inside: np.ndarray, coupling: Float[ArrayLike, "*edges"]) -> float:
    """-H of a set, nats."""
    pairs = np.asarray(coupling) * (inside[edges[:, 0]] & inside[edges[:, 1]])
    return float(cost[inside].sum() - pairs.sum())
