"""A mean over independent replicates with its 95 % interval.

mean +- t sd / sqrt(R),   t the 0.975 quantile of Student's t with R - 1 degrees of freedom
"""

from typing import NamedTuple

import numpy as np
from jaxtyping import Float
from scipy.stats import t

__all__ = ["MeanInterval", "mean_interval"]

LEVEL = 0.95
"""Probability that an interval holds the true mean."""


class MeanInterval(NamedTuple):
    """A mean and the bounds of its interval, in the unit of the values."""

    mean: float
    lower: float
    upper: float


def mean_interval(values: Float[np.ndarray, " replicates"]) -> MeanInterval:
    """The mean of independent values and its 95 % interval; a single value has an interval without bounds.

    Raises:
        ValueError: If there is no value, or one is not finite.
    """
    if not values.size or not np.isfinite(values).all():
        raise ValueError(
            f"values: {np.isfinite(values).sum()} finite ones of {values.size}; give one or more, all finite"
        )
    mean = float(values.mean())
    if values.size == 1:
        return MeanInterval(mean, -np.inf, np.inf)
    half = float(t.ppf((1 + LEVEL) / 2, values.size - 1) * values.std(ddof=1) / np.sqrt(values.size))
    return MeanInterval(mean, mean - half, mean + half)
