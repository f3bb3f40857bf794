"""Risk against coverage under abstention: what is gained by asking about the least certain questions first.

With the questions in order of uncertainty, most certain first, and k of n answered,

    coverage(k) = k / n,   risk(k) = mean loss of the k answered,   area = 1/n sum over k of risk(k)

(El-Yaniv & Wiener 2010; Geifman, Uziel & El-Yaniv 2019). Questions of equal uncertainty come in random order:
each counts with the mean loss of its tie, which is the exact expectation of every quantity here. So an
uninformative score has the risk of answering everything as its area. Intervals and bands resample databases, then
gold queries (`comparison`); a question drawn twice ties with itself.
"""

from collections.abc import Callable, Hashable, Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int

from bayeslink.evaluation.comparison import LEVEL, Interval, clustered_bootstrap

__all__ = [
    "Band",
    "RiskCurve",
    "area_difference",
    "area_interval",
    "area_under_risk",
    "clustered_band",
    "least_area",
    "risk_at",
    "risk_band",
    "risk_curve",
]

Uncertainty = Float[np.ndarray, " questions"]
Loss = Bool[np.ndarray, " questions"]
Groups = Int[np.ndarray, " questions"]


class RiskCurve(NamedTuple):
    """Risk at every coverage 1/n, 2/n, ..., 1.

    Attributes:
        coverage: Share of questions answered.
        risk: Mean loss of the answered questions, a probability.
    """

    coverage: Float[np.ndarray, " questions"]
    risk: Float[np.ndarray, " questions"]


class Band(NamedTuple):
    """A curve and its pointwise 95 % bootstrap bounds; NaN where a point is undefined."""

    estimate: np.ndarray
    lower: np.ndarray
    upper: np.ndarray


def risk_curve(uncertainty: Uncertainty, loss: Loss) -> RiskCurve:
    """Expected risk when the most certain questions are answered first.

    Args:
        uncertainty: Any score that is larger where the answer is less trusted.
        loss: True where the answer is wrong.

    Raises:
        ValueError: If there is no question, the lengths differ or a score is NaN.
    """
    _check(uncertainty, loss)
    _, tie = np.unique(uncertainty, return_inverse=True)
    size = np.bincount(tie)
    expected = np.repeat(np.bincount(tie, weights=loss) / size, size)
    answered = np.arange(1, len(loss) + 1)
    return RiskCurve(answered / len(loss), np.cumsum(expected) / answered)


def area_under_risk(uncertainty: Uncertainty, loss: Loss) -> float:
    """Area under the risk-coverage curve (AURC), a probability; arguments as in `risk_curve`."""
    return float(risk_curve(uncertainty, loss).risk.mean())


def least_area(loss: Loss) -> float:
    """The least area that any score can reach with these answers: every right one before every wrong one."""
    return area_under_risk(loss.astype(np.float64), loss)


def risk_at(uncertainty: Uncertainty, loss: Loss, coverage: float) -> float:
    """Risk when this share of the questions, rounded up to whole questions, is answered.

    Raises:
        ValueError: If `coverage` is not in (0, 1], or as `risk_curve`.
    """
    return float(risk_curve(uncertainty, loss).risk[_answered([coverage], len(loss))[0] - 1])


def area_interval(
    uncertainty: Uncertainty,
    loss: Loss,
    databases: Sequence[Hashable],
    groups: Groups,
    num_resamples: int,
    rng: np.random.Generator,
) -> Interval:
    """AURC with its clustered 95 % interval.

    Args:
        uncertainty: As in `risk_curve`.
        loss: As in `risk_curve`.
        databases: Database of each question.
        groups: Number of each question's gold SQL, counted inside its database.
        num_resamples: Number of resamples.
        rng: Source of the resamples.

    Raises:
        ValueError: As `risk_curve` and `clustered_bootstrap`.
    """
    _check(uncertainty, loss)
    values = np.stack([uncertainty, loss.astype(np.float64)], axis=1)
    return clustered_bootstrap(values, databases, groups, num_resamples, rng, _area)


def area_difference(
    first: tuple[Uncertainty, Loss],
    second: tuple[Uncertainty, Loss],
    databases: Sequence[Hashable],
    groups: Groups,
    num_resamples: int,
    rng: np.random.Generator,
) -> Interval:
    """AURC of the first less that of the second, on the same resampled questions; below 0 the first is better.

    Args:
        first: Uncertainty and loss of one method.
        second: The same of another on the same questions; its answers may differ.
        databases: As in `area_interval`.
        groups: As in `area_interval`.
        num_resamples: Number of resamples.
        rng: Source of the resamples.

    Raises:
        ValueError: As `area_interval`, or if the two are not about the same number of questions.
    """
    for uncertainty, loss in (first, second):
        _check(uncertainty, loss)
    if len(first[0]) != len(second[0]):
        raise ValueError(f"first has {len(first[0])} questions, second {len(second[0])}; give the same questions")
    values = np.stack([column.astype(np.float64) for column in (*first, *second)], axis=1)
    return clustered_bootstrap(
        values, databases, groups, num_resamples, rng, lambda drawn: _area(drawn[:, :2]) - _area(drawn[:, 2:])
    )


def risk_band(
    uncertainty: Uncertainty,
    loss: Loss,
    coverages: Sequence[float],
    databases: Sequence[Hashable],
    groups: Groups,
    num_resamples: int,
    rng: np.random.Generator,
) -> Band:
    """Risk at each coverage with its clustered pointwise 95 % band; arguments as in `risk_at`, `area_interval`."""
    _check(uncertainty, loss)
    _answered(coverages, len(loss))

    def curve(drawn: np.ndarray) -> np.ndarray:
        found = risk_curve(drawn[:, 0], drawn[:, 1] > 0.5)
        return found.risk[_answered(coverages, len(drawn)) - 1]

    values = np.stack([uncertainty, loss.astype(np.float64)], axis=1)
    return clustered_band(values, databases, groups, num_resamples, rng, curve)


def clustered_band(
    values: Float[np.ndarray, "questions *parts"],
    databases: Sequence[Hashable],
    groups: Groups,
    num_resamples: int,
    rng: np.random.Generator,
    curve: Callable[[np.ndarray], np.ndarray],
) -> Band:
    """Several statistics of the same resamples at once, each with its 95 % interval.

    A resample in which a statistic is NaN, an empty bin for instance, does not count for that statistic.

    Args:
        values: One value, or one row of values, per question.
        databases: Database of each question.
        groups: Number of each question's gold SQL, counted inside its database.
        num_resamples: Number of resamples.
        rng: Source of the resamples.
        curve: A one-dimensional array from the values of resampled questions; their order carries no meaning.

    Raises:
        ValueError: As `clustered_bootstrap`.
    """
    seen: list[np.ndarray] = []

    def keep(drawn: np.ndarray) -> float:
        seen.append(curve(drawn))
        return 0.0

    clustered_bootstrap(values, databases, groups, num_resamples, rng, keep)
    estimate, resampled = seen.pop(), np.stack(seen)
    # One column at a time: a column without any number has no quantiles, which NumPy would warn of.
    known = [column[~np.isnan(column)] for column in resampled.T]
    tails = [(1 - LEVEL) / 2, (1 + LEVEL) / 2]
    bounds = np.array([np.quantile(column, tails) if len(column) else (np.nan, np.nan) for column in known])
    return Band(estimate, bounds[:, 0], bounds[:, 1])


def _area(values: np.ndarray) -> float:
    return area_under_risk(values[:, 0], values[:, 1] > 0.5)


def _answered(coverages: Sequence[float], num_questions: int) -> np.ndarray:
    """Number of questions answered at each coverage, at least 1."""
    asked = np.asarray(coverages, dtype=np.float64)
    if not ((asked > 0) & (asked <= 1)).all():
        raise ValueError(f"coverage={list(coverages)}: shares above 0 and at most 1 are needed")
    # A share such as 0.8 times 1,535 may come out a rounding error above the whole number that it means.
    return np.maximum(np.ceil(asked * num_questions - 1e-9).astype(np.int64), 1)


def _check(uncertainty: np.ndarray, loss: np.ndarray) -> None:
    if not len(uncertainty) or uncertainty.shape != loss.shape:
        raise ValueError(
            f"uncertainty {uncertainty.shape}, loss {loss.shape}: give one of each for at least one question"
        )
    if np.isnan(uncertainty).any():
        raise ValueError("uncertainty holds NaN, which has no place in an order; give every question a score")
