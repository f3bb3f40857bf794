"""Forms of a channel: its value, and how that stands among the tables of the same question.

z_t is the standardised value of one channel for table t of n. Its forms are

    value(t)      = z_t
    below_best(t) = z_t - max_s z_s
    above_mean(t) = z_t - (1/n) sum_s z_s
    rank(t)       = log((n + 1) / 2) - log r_t,   r_t = 1 + #{s: z_s > z_t} + #{s other than t: z_s = z_t} / 2

with r_t the rank from the top, ties sharing their average. The rank is taken in logarithms because a question needs
a few tables however many there are: being first rather than second then counts the same in each schema, where on a
scale of shares r_t / n it would vanish as n grows. Measured from the middle rank (n + 1) / 2, a channel that ties all
tables has rank 0 in each schema, so that one that says nothing adds nothing.

Forms move with their tables. Two are linear in z_t and the channel's maximum or mean over tables: beside those
covariates of the intercept (`context`) they let a linear predictor say nothing new, and only spread its prior.
"""

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float
from scipy.stats import rankdata

__all__ = ["FORMS", "form_names", "form_values"]

FORMS = ("value", "below_best", "above_mean", "rank")
"""What may be asked for."""


def form_names(asked: Sequence[str], channels: Sequence[str]) -> tuple[str, ...]:
    """Name of each predictor: the first form of all channels, then the next; a value keeps its channel's name.

    Args:
        asked: Some of `FORMS`; the values alone where there is none.
        channels: Names of the channels.

    Raises:
        ValueError: If a form is not one of `FORMS`, or is asked for twice.
    """
    if unknown := [form for form in asked if form not in FORMS]:
        raise ValueError(f"forms={unknown}: use some of {', '.join(FORMS)}")
    if len(set(asked)) < len(asked):
        raise ValueError(f"forms={tuple(asked)} repeats a form; give each once")
    wanted = asked or ("value",)
    return tuple(channel if form == "value" else f"{form}_{channel}" for form in wanted for channel in channels)


def form_values(
    values: Float[np.ndarray, "questions tables channels"], asked: Sequence[str]
) -> Float[np.ndarray, "questions tables predictors"]:
    """The forms of each value, in the order of `form_names`.

    Args:
        values: Standardised evidence.
        asked: Some of `FORMS`; the values alone where there is none.
    """
    return np.concatenate([_FORMS[form](values) for form in asked or ("value",)], axis=2)


def _below_best(
    values: Float[np.ndarray, "questions tables channels"],
) -> Float[np.ndarray, "questions tables channels"]:
    return values - values.max(axis=1, keepdims=True)


def _above_mean(
    values: Float[np.ndarray, "questions tables channels"],
) -> Float[np.ndarray, "questions tables channels"]:
    # Where all tables tie, the rounding of the mean must not pass for a difference.
    tied = np.ptp(values, axis=1, keepdims=True) == 0
    return np.where(tied, 0.0, values - values.mean(axis=1, keepdims=True))


def _rank(
    values: Float[np.ndarray, "questions tables channels"],
) -> Float[np.ndarray, "questions tables channels"]:
    if not values.size:
        return values.copy()
    return np.log((values.shape[1] + 1) / 2) - np.log(rankdata(-values, method="average", axis=1))


_FORMS = {"value": np.asarray, "below_best": _below_best, "above_mean": _above_mean, "rank": _rank}
