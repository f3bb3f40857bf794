"""Proposition 1: the window of couplings in which no single flip improves a set R of tables.

MODEL.md section 6, exact form for any sign of the coupling. With k_t the number of neighbours of t in R,
R is a strict single-flip optimum of H(x) = sum_t a_t x_t + beta M(x) if and only if

    (i)   a_t > 0     for every t in R with k_t = 0,
    (ii)  -a_r > 0    for every r outside R with k_r = 0, and
    (iii) max_{t in R, k_t >= 1} -a_t / k_t  <  beta  <  min_{r not in R, k_r >= 1} -a_r / k_r.

For beta > 0 this is the paper's window max_b delta_b / k_b < beta < min_r mu_r / k_r (`Window.positive`), with
delta_b = -a_b of the weak tables (a_b < 0) and mu_r = -a_r of the distractors. The optimum is strict: on a
boundary one flip leaves H unchanged, and R does not count as stable. Stable means neither that R is the mode
(`modes`) nor that adding tables one by one to the salient ones arrives at R.
"""

from typing import NamedTuple

import numpy as np
from jaxtyping import ArrayLike, Bool, Float, Int

__all__ = ["Window", "flip_gains", "is_single_flip_stable", "num_relevant_neighbours", "stability_window"]


class Window(NamedTuple):
    """Couplings in which R is single-flip stable: the open interval, unless (i) or (ii) fails.

    Attributes:
        lower: Left side of (iii), nats; -inf if no relevant table has a relevant neighbour.
        upper: Right side of (iii), nats; inf if no distractor touches R.
        unsupported: Tables that fail (i): relevant, without relevant neighbour, a_t <= 0. No coupling recovers them.
        uncorrectable: Tables that fail (ii): irrelevant, without relevant neighbour, a_r >= 0. No coupling keeps
            them out.
    """

    lower: Float[np.ndarray, "*questions"]
    upper: Float[np.ndarray, "*questions"]
    unsupported: Bool[np.ndarray, "*questions tables"]
    uncorrectable: Bool[np.ndarray, "*questions tables"]

    @property
    def is_empty(self) -> Bool[np.ndarray, "*questions"]:
        """Whether no coupling at all makes R stable."""
        failed = self.unsupported.any(axis=-1) | self.uncorrectable.any(axis=-1)
        return np.asarray(failed | (self.lower >= self.upper))

    def contains(self, coupling: Float[ArrayLike, "..."]) -> Bool[np.ndarray, "..."]:
        """Whether R is single-flip stable at this coupling, nats; the boundaries are not inside."""
        beta = np.asarray(coupling)
        return np.asarray(~self.is_empty & (self.lower < beta) & (beta < self.upper))

    def positive(self) -> "Window":
        """The paper's window: the part with coupling > 0."""
        return self._replace(lower=np.asarray(np.maximum(self.lower, 0.0)))

    def failures(self, question: tuple[int, ...] = ()) -> list[str]:
        """One sentence for each condition that fails for every coupling; empty if the window is not.

        Args:
            question: Position of the question, () where there is no question axis.
        """
        lower, upper = self.lower[question], self.upper[question]
        relevant, other = np.flatnonzero(self.unsupported[question]), np.flatnonzero(self.uncorrectable[question])
        found = []
        if len(relevant):
            found.append(f"(i) relevant tables {relevant.tolist()} have log-odds <= 0 and no relevant neighbour")
        if len(other):
            found.append(f"(ii) irrelevant tables {other.tolist()} have log-odds >= 0 and no relevant neighbour")
        if lower >= upper:
            found.append(f"(iii) the coupling would have to exceed {lower:g} and stay below {upper:g}")
        return found


def stability_window(
    unary: Float[ArrayLike, "*questions tables"],
    edges: Int[np.ndarray, "edges 2"],
    relevant: Bool[ArrayLike, "*questions tables"],
) -> Window:
    """Couplings, nats, in which the relevant set is single-flip stable: Proposition 1 for any sign.

    Args:
        unary: a, log-odds.
        edges: Node positions of each edge.
        relevant: Membership of R.
    """
    log_odds, inside = np.asarray(unary), np.asarray(relevant)
    joined = num_relevant_neighbours(edges, inside)
    touching = joined > 0
    ratio = -log_odds / np.where(touching, joined, 1)
    return Window(
        np.asarray(np.where(inside & touching, ratio, -np.inf).max(axis=-1, initial=-np.inf)),
        np.asarray(np.where(~inside & touching, ratio, np.inf).min(axis=-1, initial=np.inf)),
        inside & ~touching & (log_odds <= 0),
        ~inside & ~touching & (log_odds >= 0),
    )


def is_single_flip_stable(
    unary: Float[ArrayLike, "*questions tables"],
    edges: Int[np.ndarray, "edges 2"],
    relevant: Bool[ArrayLike, "*questions tables"],
    coupling: Float[ArrayLike, "*edges"],
) -> Bool[np.ndarray, "*questions"]:
    """Whether every single flip lowers H, by the definition: one value of the coupling, or one per edge."""
    return np.asarray((flip_gains(unary, edges, relevant, coupling) < 0).all(axis=-1))


def flip_gains(
    unary: Float[ArrayLike, "*questions tables"],
    edges: Int[np.ndarray, "edges 2"],
    relevant: Bool[ArrayLike, "*questions tables"],
    coupling: Float[ArrayLike, "*edges"],
) -> Float[np.ndarray, "*questions tables"]:
    """H(R with table t flipped) - H(R), nats: the full conditional's logit, signed by the direction of the flip."""
    inside = np.asarray(relevant)
    logit = np.asarray(unary) + _sum_over_neighbours(edges, inside, np.asarray(coupling))
    return np.where(inside, -logit, logit)


def num_relevant_neighbours(
    edges: Int[np.ndarray, "edges 2"], relevant: Bool[ArrayLike, "*questions tables"]
) -> Float[np.ndarray, "*questions tables"]:
    """k_t, the number of neighbours of each table in R."""
    return _sum_over_neighbours(edges, np.asarray(relevant), np.asarray(1.0))


def _sum_over_neighbours(edges: np.ndarray, inside: np.ndarray, coupling: np.ndarray) -> np.ndarray:
    """Sum of the coupling over the edges from each table to R."""
    total = np.zeros(inside.shape)
    for near, far in (edges.T, edges.T[::-1]):
        np.add.at(total.T, near, (coupling * inside[..., far]).T)
    return total
