"""Reliability, calibration error and mean shift of each model with clustered bands, and paired differences."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from forecasts import Forecast

from bayeslink.evaluation.calibration import NUM_BINS, calibration_error, mean_shift
from bayeslink.evaluation.comparison import Interval, clustered_bootstrap
from bayeslink.evaluation.coverage import Band, clustered_band
from bayeslink.evaluation.held_out import HeldOut

SCORES = ("ece", "mean_shift", "size", "brier")
"""Expected calibration error; mean of p - y over pairs; E[N] per question; mean squared error over pairs."""

COLUMNS = ("coupling", "bin", "left", "right", "mean_probability", "value", "lower", "upper", "count")


class Asked(NamedTuple):
    """The questions of all parts, in order: gold by part, database and gold-SQL group of each question."""

    gold: list[np.ndarray]
    databases: list[str]
    groups: np.ndarray
    num_resamples: int
    seed: int

    @classmethod
    def of(cls, parts: Sequence[HeldOut], num_resamples: int, seed: int) -> "Asked":
        """The questions of these parts."""
        gold = [np.asarray(item.evidence.gold) for item in parts]
        databases = [item.evidence.db_id for item in parts for _ in item.questions]
        groups = np.concatenate([np.asarray(item.evidence.group) for item in parts])
        return cls(gold, databases, groups, num_resamples, seed)

    @property
    def arguments(self) -> tuple:
        """What a bootstrap takes; it restarts from the seed, so all share their resamples."""
        return self.databases, self.groups, self.num_resamples, np.random.default_rng(self.seed)


def totals(forecast: Forecast, asked: Asked) -> np.ndarray:
    """Each question's sums over its tables: of p, of y and of 1 in every bin, and of (p - y)^2."""
    rows = []
    for probability, gold in zip(forecast.marginals, asked.gold, strict=True):
        place = np.minimum((probability * NUM_BINS).astype(int), NUM_BINS - 1)
        inside = place[:, :, None] == np.arange(NUM_BINS)
        sums = [(inside * part[:, :, None]).sum(axis=1) for part in (probability, gold, np.ones(gold.shape))]
        rows.append(np.concatenate([*sums, ((probability - gold) ** 2).sum(axis=1)[:, None]], axis=1))
    return np.concatenate(rows)


def statistics(rows: np.ndarray) -> np.ndarray:
    """`SCORES`, then the frequency of gold in each bin, NaN where the bin is empty."""
    total = rows.sum(axis=0)
    stated, observed, count = total[:-1].reshape(3, NUM_BINS)
    pairs = count.sum()
    shift = (stated.sum() - observed.sum()) / pairs
    scores = np.abs(stated - observed).sum() / pairs, shift, stated.sum() / len(rows), total[-1] / pairs
    return np.concatenate([scores, observed / np.where(count > 0, count, np.nan)])


def rows_of(forecast: Forecast, asked: Asked) -> list[dict]:
    """The scores and, but for the curve, the reliability of one model."""
    sums = totals(forecast, asked)
    band = clustered_band(sums, *asked.arguments, statistics)
    _, _, count = sums.sum(axis=0)[:-1].reshape(3, NUM_BINS)
    names = {"model": forecast.model, "against": ""}
    blank = dict.fromkeys(COLUMNS)
    rows = [
        names
        | {"quantity": score}
        | blank
        | {"coupling": forecast.coupling, "count": int(count.sum())}
        | _at(band, place)
        for place, score in enumerate(SCORES)
    ]
    if forecast.model == "curve":
        return rows
    stated = sums.sum(axis=0)[:NUM_BINS]
    for place in range(NUM_BINS):
        ends = {"bin": place, "left": place / NUM_BINS, "right": (place + 1) / NUM_BINS, "count": int(count[place])}
        row = names | {"quantity": "reliability"} | blank | {"coupling": forecast.coupling} | ends
        if count[place]:
            row |= {"mean_probability": float(stated[place] / count[place])} | _at(band, len(SCORES) + place)
        rows.append(row)
    return rows


def difference(first: Forecast, second: Forecast, score: str, asked: Asked) -> dict:
    """A score of the first less that of the second on the same resampled questions."""
    both = np.concatenate([totals(item, asked) for item in (first, second)], axis=1)
    width, place = both.shape[1] // 2, SCORES.index(score)

    def statistic(drawn: np.ndarray) -> float:
        return float(statistics(drawn[:, :width])[place] - statistics(drawn[:, width:])[place])

    found = clustered_bootstrap(both, *asked.arguments, statistic)
    names = {"model": first.model, "against": second.model, "quantity": f"{score}_difference"}
    return names | dict.fromkeys(COLUMNS) | _named(found)


def agrees(forecast: Forecast, asked: Asked) -> bool:
    """Whether calibration error and mean shift from the sums are those of the package."""
    p = np.concatenate([item.ravel() for item in forecast.marginals])
    y = np.concatenate([item.ravel() for item in asked.gold]).astype(np.float64)
    found = statistics(totals(forecast, asked))
    functions: Sequence[Callable[[np.ndarray, np.ndarray], float]] = (calibration_error, mean_shift)
    return bool(np.allclose(found[:2], [function(p, y) for function in functions], rtol=1e-10, atol=1e-12))


def _at(band: Band, place: int) -> dict[str, float]:
    return _named(Interval(*(float(part[place]) for part in band)))


def _named(found: Interval) -> dict[str, float]:
    return {"value": found.estimate, "lower": found.lower, "upper": found.upper}
