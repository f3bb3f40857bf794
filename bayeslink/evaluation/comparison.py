"""Paired comparisons on the same questions: exact McNemar test, bootstrap over databases then gold queries.

Questions of one database resemble each other and some share their gold SQL, so a bootstrap resamples
databases with replacement and, inside each drawn one, groups of equal gold SQL with replacement; an
interval holds the middle 95 % of the resampled statistics (percentiles; Davison & Hinkley 1997, section
3.8). With d differing pairs, b of them in favour of the first, the McNemar p-value is two-sided,

    p = min(1, 2 P(B <= min(b, d - b))),   B ~ Binomial(d, 1/2).
"""

from collections.abc import Callable, Hashable, Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int
from scipy.stats import binom

from bayeslink.evidence.channel import Evidence

__all__ = ["Interval", "McNemar", "clustered_bootstrap", "mcnemar", "paired_difference", "question_clusters"]

LEVEL = 0.95
"""Share of the resampled statistics that an interval holds."""


class Interval(NamedTuple):
    """A statistic and the bounds of its bootstrap interval."""

    estimate: float
    lower: float
    upper: float


class McNemar(NamedTuple):
    """Questions that only one of two methods got right, and the p-value of no difference."""

    only_first: int
    only_second: int
    p_value: float


def mcnemar(first: Bool[np.ndarray, " questions"], second: Bool[np.ndarray, " questions"]) -> McNemar:
    """Exact two-sided McNemar test (1947) of two methods' successes on the same questions.

    Raises:
        ValueError: If the two are not about the same number of questions.
    """
    if first.shape != second.shape:
        raise ValueError(f"first {first.shape} and second {second.shape} differ in shape; give the same questions")
    only_first, only_second = int((first & ~second).sum()), int((second & ~first).sum())
    tail = float(binom.cdf(min(only_first, only_second), only_first + only_second, 0.5))
    return McNemar(only_first, only_second, min(1.0, 2 * tail))


def clustered_bootstrap(
    values: Float[np.ndarray, "questions *parts"],
    databases: Sequence[Hashable],
    groups: Int[np.ndarray, " questions"],
    num_resamples: int,
    rng: np.random.Generator,
    statistic: Callable[[np.ndarray], float] = np.mean,
) -> Interval:
    """The statistic of the questions' values with its 95 % interval under clustered resampling.

    Args:
        values: One value, or one row of values, per question.
        databases: Database of each question.
        groups: Number of each question's gold SQL, counted inside its database.
        num_resamples: Number of resamples.
        rng: Source of the resamples.
        statistic: A number from the values of resampled questions; their order carries no meaning.

    Raises:
        ValueError: If there is no question or no resample, or the lengths differ.
    """
    if not len(values) or num_resamples < 1:
        raise ValueError(f"{len(values)} questions, num_resamples={num_resamples}: at least one of each is needed")
    if not len(values) == len(databases) == len(groups):
        raise ValueError(f"values ({len(values)}), databases ({len(databases)}), groups ({len(groups)}) differ")
    numbers: dict[Hashable, int] = {}
    database = np.array([numbers.setdefault(key, len(numbers)) for key in databases])
    clusters, cluster = np.unique(np.stack([database, groups], axis=1), axis=0, return_inverse=True)
    size = np.bincount(clusters[:, 0])
    start = np.cumsum(size) - size
    order = np.argsort(cluster, kind="stable")
    ordered, owner = values[order], cluster[order]
    found = np.empty(num_resamples)
    for index in range(num_resamples):
        drawn = rng.integers(len(size), size=len(size))
        each = np.repeat(drawn, size[drawn])
        groups_drawn = start[each] + rng.integers(size[each])
        times = np.bincount(groups_drawn, minlength=len(clusters))
        found[index] = statistic(np.repeat(ordered, times[owner], axis=0))
    lower, upper = np.quantile(found, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return Interval(float(statistic(values)), float(lower), float(upper))


def paired_difference(
    first: Float[np.ndarray, " questions"],
    second: Float[np.ndarray, " questions"],
    databases: Sequence[Hashable],
    groups: Int[np.ndarray, " questions"],
    num_resamples: int,
    rng: np.random.Generator,
) -> Interval:
    """Mean of first - second over questions with its clustered 95 % interval, in the unit of the values.

    Raises:
        ValueError: As `clustered_bootstrap`, or if the two are not about the same number of questions.
    """
    if first.shape != second.shape:
        raise ValueError(f"first {first.shape} and second {second.shape} differ in shape; give the same questions")
    return clustered_bootstrap(first - second, databases, groups, num_resamples, rng)


def question_clusters(evidences: Sequence[Evidence]) -> tuple[list[tuple[str, str]], Int[np.ndarray, " questions"]]:
    """Database and group of equal gold SQL of each question, as the bootstrap resamples them.

    Questions of evidence without groups are a group each.

    Raises:
        ValueError: If there is no evidence.
    """
    if not evidences:
        raise ValueError("evidences are empty; there is no question to resample")
    databases = [item.key for item in evidences for _ in range(item.num_questions)]
    groups = [np.arange(item.num_questions) if item.group is None else item.group for item in evidences]
    return databases, np.concatenate(groups)
