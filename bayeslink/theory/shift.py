"""Proposition 3: the coupling raises the expected number of tables, and the intercept that restores it.

MODEL.md section 7, all-subsets support. With N the number of selected tables and M of edges inside the selection,

    d E[N] / d beta = Cov(N, M) >= 0    for beta >= 0, strictly if the graph has an edge

(Fortuin, Kasteleyn & Ginibre 1971), and the intercept's score equation sum_q E[N_q] = sum_q N(y_q), gamma held, is
kept by moving alpha along

    d alpha / d beta = - sum_q Cov(N_q, M_q) / sum_q Var(N_q) <= 0.

Moments are derivatives of log Z(a + s, beta + b) in the shifts s and b, so any solver serves: E[N] the first in s,
Var N the second, Cov(N, M) the mixed one. A coupling per edge is shifted alike on every edge.
"""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, ArrayLike, Float

from bayeslink.inference import elimination

__all__ = [
    "InterceptPath",
    "SizeMoments",
    "compensating_intercept",
    "compensating_slope",
    "mean_shift_slope",
    "size_moments",
]

MAX_ITERATIONS = 200
"""Steps of the safeguarded Newton search at each coupling before it raises."""

SCORE_TOLERANCE = 1e-10
"""Largest error of the score equation that is accepted, as a share of all table-question pairs."""

LogPartition = Callable[..., Float[Array, "*questions"]]


class SizeMoments(NamedTuple):
    """Moments of the number of selected tables, per question.

    Attributes:
        mean: E[N], tables.
        variance: Var N, tables squared.
        covariance: Cov(N, M), tables times edges.
    """

    mean: Float[Array, "*questions"]
    variance: Float[Array, "*questions"]
    covariance: Float[Array, "*questions"]


class InterceptPath(NamedTuple):
    """The intercept that solves the score equation, along couplings.

    Attributes:
        intercept: alpha(beta), log-odds.
        slope: d alpha / d beta at each coupling, log-odds per nat: `compensating_slope`.
    """

    intercept: Float[np.ndarray, " draws"]
    slope: Float[np.ndarray, " draws"]


def size_moments(
    unary: Float[Array, "*questions tables"],
    plan: object,
    coupling: Float[ArrayLike, "*edges"],
    log_partition: LogPartition = elimination.log_partition,
) -> SizeMoments:
    """E[N], Var N and Cov(N, M) of each question.

    Args:
        unary: a, log-odds.
        plan: Plan of the graph, made by the module of `log_partition`.
        coupling: Gain in nats when both tables of a pair are selected, one value or one per edge.
        log_partition: Solver with the signature (unary, plan, coupling).
    """

    def log_z(shifts: Float[Array, "2"]) -> Float[Array, "*questions"]:
        return log_partition(unary + shifts[0], plan, jnp.asarray(coupling) + shifts[1])

    def first(shifts: Float[Array, "2"]) -> tuple[Array, Array]:
        gradient = jax.jacfwd(log_z)(shifts)
        return gradient, gradient

    # Twice forward: two shifts serve all questions, and reverse mode through a scan of logaddexp (JAX 0.10) takes
    # the wrong second derivative where its two arguments are equal.
    second, gradient = jax.jacfwd(first, has_aux=True)(jnp.zeros(2))
    return SizeMoments(gradient[..., 0], second[..., 0, 0], second[..., 0, 1])


def mean_shift_slope(
    unary: Float[Array, "*questions tables"],
    plan: object,
    coupling: Float[ArrayLike, "*edges"],
    log_partition: LogPartition = elimination.log_partition,
) -> Float[Array, "*questions"]:
    """The slope d E[N] / d beta = Cov(N, M) of each question, tables per nat; arguments as in `size_moments`."""
    return size_moments(unary, plan, coupling, log_partition).covariance


def compensating_slope(
    unary: Float[Array, "*questions tables"],
    plan: object,
    coupling: Float[ArrayLike, "*edges"],
    log_partition: LogPartition = elimination.log_partition,
) -> Float[Array, ""]:
    """The slope d alpha / d beta that keeps sum_q E[N_q], log-odds per nat; arguments as in `size_moments`."""
    moments = size_moments(unary, plan, coupling, log_partition)
    return -moments.covariance.sum() / moments.variance.sum()


def compensating_intercept(
    evidence: Float[Array, "questions tables"],
    plan: object,
    couplings: Float[ArrayLike, " draws"],
    num_relevant: float,
    log_partition: LogPartition = elimination.log_partition,
) -> InterceptPath:
    """The intercept alpha(beta) at which the expected number of tables equals the observed one.

    E[N] rises with alpha, so the root is single: Newton steps, halving the bracket wherever one would leave it.
    Each coupling starts from the root of the one before, moved along the slope.

    Args:
        evidence: gamma . z, log-odds without the intercept.
        plan: Plan of the graph, made by the module of `log_partition`.
        couplings: A grid of couplings of any sign, or draws, nats.
        num_relevant: sum_q N(y_q), the gold tables of all questions, strictly between none and all.
        log_partition: Solver with the signature (unary, plan, coupling).

    Raises:
        ValueError: If `num_relevant` is not strictly between 0 and questions times tables.
        ArithmeticError: If the search does not converge.
    """
    if not 0 < num_relevant < evidence.size:
        raise ValueError(
            f"num_relevant={num_relevant} of {evidence.size}: the intercept is infinite unless some tables and not "
            "all are relevant; pool more questions"
        )

    @jax.jit
    def score(alpha: Array, beta: Array) -> tuple[Array, Array, Array]:
        moments = size_moments(evidence + alpha, plan, beta, log_partition)
        return moments.mean.sum() - num_relevant, moments.variance.sum(), moments.covariance.sum()

    intercepts, slopes = [], []
    alpha, slope, before = 0.0, 0.0, None
    for beta in np.asarray(couplings).tolist():
        start = alpha if before is None else alpha + slope * (beta - before)
        alpha, slope = _root(lambda a, b=beta: score(jnp.asarray(a), jnp.asarray(b)), start, evidence.size)
        intercepts.append(alpha)
        slopes.append(slope)
        before = beta
    return InterceptPath(np.array(intercepts), np.array(slopes))


def _root(score: Callable[[float], tuple[Array, Array, Array]], start: float, num_pairs: int) -> tuple[float, float]:
    """Root of an increasing score from its value, derivative and mixed term; and the slope of the root."""
    lower, upper, alpha = -np.inf, np.inf, start
    for _ in range(MAX_ITERATIONS):
        error, variance, covariance = (float(part) for part in score(alpha))
        if abs(error) <= SCORE_TOLERANCE * num_pairs:
            return alpha, -covariance / variance
        lower, upper = (alpha, upper) if error < 0 else (lower, alpha)
        step = -error / variance if variance > 0 else np.copysign(np.inf, -error)
        # Far from the root the score is flat and Newton's step far too long.
        step = float(np.clip(step, -1.0 - abs(alpha), 1.0 + abs(alpha)))
        alpha = alpha + step if lower < alpha + step < upper else (lower + upper) / 2
    raise ArithmeticError(
        f"start={start}: no intercept after {MAX_ITERATIONS} steps, last error {error:g} tables; "
        "check that the evidence and the couplings are finite"
    )
