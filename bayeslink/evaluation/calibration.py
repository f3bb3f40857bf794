"""Calibration and proper scores of probabilities, pooled over (question, table) pairs.

ECE = sum over bins of (pairs in bin / pairs) |mean p - mean y|,   15 equal-width bins
"""

from typing import NamedTuple

import numpy as np
from jaxtyping import Float

__all__ = [
    "NUM_BINS",
    "Reliability",
    "brier",
    "calibration_error",
    "marginal_log_score",
    "mean_shift",
    "reliability",
]

NUM_BINS = 15

Pairs = Float[np.ndarray, " pairs"]


class Reliability(NamedTuple):
    """A reliability diagram; empty bins hold NaN.

    Attributes:
        mean_probability: Mean stated probability of each bin.
        frequency: Share of gold pairs of each bin.
        count: Pairs of each bin.
    """

    mean_probability: np.ndarray
    frequency: np.ndarray
    count: np.ndarray


def reliability(probability: Pairs, outcome: Pairs, num_bins: int = NUM_BINS) -> Reliability:
    """Mean probability and observed frequency in equal-width bins of the probability.

    Raises:
        ValueError: If a probability is outside [0, 1] or the lengths differ.
    """
    if probability.shape != outcome.shape:
        raise ValueError(f"probability {probability.shape} and outcome {outcome.shape} differ in shape")
    if not ((probability >= 0) & (probability <= 1)).all():
        raise ValueError("probability holds a value outside [0, 1]")
    index = np.minimum((probability * num_bins).astype(int), num_bins - 1)
    count = np.bincount(index, minlength=num_bins)
    divisor = np.where(count > 0, count, np.nan)
    mean = np.bincount(index, weights=probability, minlength=num_bins) / divisor
    frequency = np.bincount(index, weights=outcome, minlength=num_bins) / divisor
    return Reliability(mean, frequency, count)


def calibration_error(probability: Pairs, outcome: Pairs, num_bins: int = NUM_BINS) -> float:
    """Expected calibration error (Guo et al. 2017), a probability."""
    bins = reliability(probability, outcome, num_bins)
    gap = np.abs(bins.mean_probability - bins.frequency)
    return float(np.nansum(gap * bins.count) / max(bins.count.sum(), 1))


def brier(probability: Pairs, outcome: Pairs) -> float:
    """Mean squared difference of probability and outcome (Brier 1950)."""
    return float(np.mean((probability - outcome) ** 2))


def marginal_log_score(probability: Pairs, outcome: Pairs) -> float:
    """Mean log probability of what happened, nats per pair; always finite."""
    # No marginal is 0 or 1 under finite log-odds, but it may round to either: the nearest double inside stands for it.
    inside = np.clip(probability, np.finfo(np.float64).tiny, 1 - 2**-53)
    return float(np.mean(np.log(np.where(outcome > 0.5, inside, 1 - inside))))


def mean_shift(probability: Pairs, outcome: Pairs) -> float:
    """Mean of p - y: calibration in the large, positive when too much is selected."""
    return float(np.mean(probability - outcome))
