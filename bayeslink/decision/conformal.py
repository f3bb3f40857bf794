"""A level for covers that holds on databases never seen, whatever the model: conformal, with databases exchangeable.

The questions of a database resemble each other, so that not questions but databases are exchangeable: K databases
with labels and the next one, each with its questions, are K + 1 draws from one unknown source, and the questions of a
database are exchangeable among themselves. With r the level that a question's gold required (`covers.required_level`),
the calibrated level is a weighted quantile of hierarchical conformal prediction (Lee, Barber & Willett 2023, HCP; Dunn,
Wasserman & Ramdas 2023),

    level = the smallest l with   sum over databases d of 1/(K + 1) . share of d's questions with r <= l   >=   target

so that each database counts alike and the one to come counts as missing. Covers at any level above it then hold gold

    with probability >= target   over the calibration databases, a new one drawn like them and a question of it,

in finite samples and without any assumption on the model, if target <= K / (K + 1). With fewer databases no level
below 1 can be promised: `holds` is False, and the level is the largest that any of their questions required, the most
that these databases can say. The probability is an average over databases, each counted once: one database may have a
smaller share, and databases of another kind than those that calibrate are promised nothing.
"""

from collections.abc import Hashable, Sequence
from math import ceil
from typing import NamedTuple

import numpy as np
from jaxtyping import Float

__all__ = ["ConformalLevel", "conformal_level", "least_databases"]

ABOVE = 2e-12
"""Added to a required level, so that covers at the sum hold; twice what a comparison of levels forgives."""

ROUNDING = 1e-9
"""Shares of databases are compared with the target up to this."""


class ConformalLevel(NamedTuple):
    """A calibrated level for covers.

    Attributes:
        target: The share of questions of new databases whose gold is to be inside the cover.
        level: The level to ask of `smallest_cover`; covers above it hold, so it is a number just above the quantile.
        holds: Whether the finite-sample guarantee holds; it needs `least_databases(target)` databases.
        num_databases: Number of calibration databases K.
        num_questions: Number of their questions.
    """

    target: float
    level: float
    holds: bool
    num_databases: int
    num_questions: int


def least_databases(target: float) -> int:
    """The fewest calibration databases for which a level below 1 can be promised: target <= K / (K + 1).

    Raises:
        ValueError: If `target` is outside (0, 1).
    """
    if not 0 < target < 1:
        raise ValueError(f"target={target}: a share above 0 and below 1 is needed")
    return ceil(target / (1 - target) - ROUNDING)


def conformal_level(
    required: Float[np.ndarray, " questions"], databases: Sequence[Hashable], target: float
) -> ConformalLevel:
    """The level at which covers hold gold for at least `target` of the questions of new databases.

    Args:
        required: Level that each calibration question required, from a fit that has not seen its database.
        databases: Database of each question.
        target: As in `ConformalLevel`, in (0, 1).

    Raises:
        ValueError: If there is no question, lengths differ, a level is outside [0, 1], or the target outside (0, 1).
    """
    if not len(required) or len(required) != len(databases):
        raise ValueError(f"required has {len(required)} questions, databases {len(databases)}; give the same, not none")
    if not ((required >= 0) & (required <= 1)).all():
        raise ValueError(f"required holds {np.nanmax(np.abs(required)):g}; levels between 0 and 1 are needed")
    enough = least_databases(target)
    number = {key: place for place, key in enumerate(dict.fromkeys(databases))}
    owner = np.array([number[key] for key in databases])
    count = np.bincount(owner)
    holds = len(number) >= enough
    order = np.argsort(required, kind="stable")
    mass = np.cumsum(1 / (len(number) + 1) / count[owner[order]])
    place = int(np.searchsorted(mass, target - ROUNDING)) if holds else len(order) - 1
    quantile = float(required[order[min(place, len(order) - 1)]])
    # Gold is inside covers above the level that it required, beyond what `smallest_cover` forgives.
    level = min(1.0, quantile + ABOVE)
    return ConformalLevel(target, level, holds, len(number), len(required))
