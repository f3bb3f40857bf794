"""Proposition 3 out of fold: the size that Cov(N, M) predicts, and the intercept that would restore it."""

from collections.abc import Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from measures import COLUMNS
from scipy.integrate import cumulative_simpson

from bayeslink.evaluation.held_out import HeldOut
from bayeslink.inference import elimination, make_room
from bayeslink.theory.shift import compensating_intercept, size_moments


class _Part(NamedTuple):
    """Where one database stands in the row of all pairs, and its graph."""

    start: int
    questions: int
    tables: int
    plan: elimination.Plan


def predicted_sizes(parts: Sequence[HeldOut], couplings: Sequence[float]) -> tuple[np.ndarray, np.ndarray]:
    """E[N] per question: at each coupling, and from coupling 0 by integrating Cov(N, M).

    Both average over posterior draws, whose intercepts and slopes do not move; by elimination, where the
    predictive distributions list all subsets.
    """
    totals = np.zeros((2, len(couplings)))
    for own in _by_database(parts):
        unary = np.concatenate([_unary(item) for item in own])
        tables = own[0].evidence.num_tables
        plan = elimination.plan(own[0].evidence.edges, tables)
        moments = jax.jit(lambda a, beta, plan=plan: size_moments(a, plan, beta))
        rows = jnp.asarray(unary.reshape(-1, tables))
        for place, coupling in enumerate(couplings):
            found = moments(rows, coupling)
            totals[:, place] += np.array([found.mean.mean(), found.covariance.mean()]) * len(unary)
        make_room()
    mean, slope = totals / sum(len(item.questions) for item in parts)
    return mean, mean[0] + cumulative_simpson(slope, x=np.asarray(couplings), initial=0.0)


def intercept_path(parts: Sequence[HeldOut], couplings: Sequence[float]) -> tuple[np.ndarray, np.ndarray]:
    """alpha(beta), at which E[N] of all questions together is the gold number, and its slope.

    Each question's slopes are the posterior means of the fit that has not seen it; the one intercept solves the
    score equation of these very questions, so it describes them and predicts nothing.
    """
    pieces, scores, start = [], [], 0
    for own in _by_database(parts):
        values = np.concatenate([item.evidence.values @ item.draws.slopes.mean(axis=0) for item in own])
        plan = elimination.plan(own[0].evidence.edges, values.shape[1])
        pieces.append(_Part(start, *values.shape, plan))
        scores.append(values.ravel())
        start += values.size
    gold = sum(float(np.asarray(item.evidence.gold).sum()) for item in parts)
    row = jnp.asarray(np.concatenate(scores)[None])
    path = compensating_intercept(row, tuple(pieces), np.asarray(couplings), gold, _log_partition)
    make_room()
    return path.intercept, path.slope


def shift_rows(parts: Sequence[HeldOut], pooled: Sequence[HeldOut], couplings: Sequence[float]) -> list[dict]:
    """Rows of the curves along the coupling, and the pooled fit's own intercept and coupling."""
    curves = dict(zip(("size_exact", "size_predicted"), predicted_sizes(parts, couplings), strict=True))
    curves |= dict(zip(("intercept", "intercept_slope"), intercept_path(parts, couplings), strict=True))
    blank = {"model": "curve", "against": ""}
    rows = [
        blank | {"quantity": quantity} | dict.fromkeys(COLUMNS) | {"coupling": coupling, "value": float(value)}
        for quantity, values in curves.items()
        for coupling, value in zip(couplings, values, strict=True)
    ]
    fitted = [
        np.average([part.mean() for part in site], weights=[len(item.questions) for item in pooled])
        for site in ([item.draws.coupling for item in pooled], [item.draws.intercept for item in pooled])
    ]
    at = {"coupling": float(fitted[0]), "value": float(fitted[1])}
    return [*rows, {"model": "pooled", "against": "", "quantity": "intercept"} | dict.fromkeys(COLUMNS) | at]


def _log_partition(unary: jax.Array, plan: tuple[_Part, ...], coupling: jax.Array) -> jax.Array:
    """Log Z of independent questions together: the sum over them, all pairs in one row."""
    total = jnp.zeros(1)
    for part in plan:
        own = unary[0, part.start : part.start + part.questions * part.tables].reshape(part.questions, part.tables)
        total = total + elimination.log_partition(own, part.plan, coupling).sum()
    return total


def _by_database(parts: Sequence[HeldOut]) -> list[list[HeldOut]]:
    found: dict[tuple[str, str], list[HeldOut]] = {}
    for item in parts:
        found.setdefault(item.evidence.key, []).append(item)
    return list(found.values())


def _unary(item: HeldOut) -> np.ndarray:
    """Log-odds [questions draws tables] under every draw."""
    weighted = np.einsum("qtk,sk->qst", item.evidence.values, item.draws.slopes)
    return weighted + np.asarray(item.draws.intercept)[:, None]
