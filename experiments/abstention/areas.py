"""The table's rows: areas with intervals, paired differences, curves with bands; and the headline numbers."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from orders import STATED, TASKS, Asked, Ordering

from bayeslink.evaluation.comparison import Interval
from bayeslink.evaluation.coverage import area_difference, area_interval, least_area, risk_at, risk_band

CONTRASTS = {
    "max_marginal": ("independent", "max_marginal"),
    "product": ("independent", "product"),
    "independent": ("independent", None),
    "independent_hierarchical": ("independent_hierarchical", None),
    "pooled": ("pooled", None),
    "own_max_marginal": ("hierarchical", "max_marginal"),
    "own_product": ("hierarchical", "product"),
    "own_entropy": ("hierarchical", "entropy"),
}
"""What `hierarchical`, ordered by its own probability of being wrong, is compared with: a model and its score;
None is the score that is that model's own probability of being wrong."""

HEADLINES = {"independent": "max_marginal"}
"""The score behind a model's headline numbers, where it is not its own probability of being wrong."""


class Bootstrap(NamedTuple):
    """How intervals are made; every one restarts from the seed, so all share their resamples."""

    asked: Asked
    num_resamples: int
    seed: int

    @property
    def arguments(self) -> tuple:
        """Databases, groups, number of resamples and a fresh generator."""
        return *self.asked, self.num_resamples, np.random.default_rng(self.seed)


def rows_for(items: Sequence[Ordering], steps: int, bootstrap: Bootstrap) -> list[dict]:
    """All rows of one benchmark."""
    curves = [row for item in items for row in _curve_rows(item, steps, bootstrap)]
    return [*_area_rows(items, bootstrap), *_difference_rows(items, bootstrap), *curves]


def figures_of(rows: Sequence[Mapping], items: Sequence[Ordering]) -> dict[str, float]:
    """Headline numbers by name, without the benchmark; "contained_" leads those of that task."""
    leads = {"exact": "", "contained": "contained_"}
    figures: dict[str, float] = {}
    for item in items:
        usual = HEADLINES.get(item.model, STATED[item.task])
        name = f"{leads[item.task]}{item.model}" + ("" if item.score == usual else f"_{item.score}")
        for coverage in (0.8, 1.0):
            if item.score in (usual, STATED[item.task]):
                percent = f"risk_at_{100 * coverage:.0f}_percent"
                figures[f"{percent}_{name}"] = risk_at(item.uncertainty, item.loss, coverage)
        if item.score == STATED[item.task]:
            figures[f"stated_risk_at_80_percent_{leads[item.task]}{item.model}"] = _stated(item, 0.8)
            figures[f"least_aurc_{leads[item.task]}{item.model}"] = least_area(item.loss)
        figures[f"aurc_{name}"] = _found(rows, item, "area")
    for row in rows:
        if row["quantity"] == "difference":
            name = f"aurc_difference_{leads[row['task']]}{row['against']}"
            figures |= {name: row["value"]} | {f"{name}_{end}": row[end] for end in ("lower", "upper")}
    return figures


def checks_of(rows: Sequence[Mapping]) -> dict[str, bool]:
    """Whether each difference of areas is below 0 with its interval."""
    return {
        f"{row['task']}_better_than_{row['against']}": bool(row["upper"] < 0)
        for row in rows
        if row["quantity"] == "difference"
    }


def _row(
    item: Ordering, quantity: str, found: Interval | float, against: str = "", coverage: float | None = None
) -> dict:
    names = {"task": item.task, "model": item.model, "score": item.score, "quantity": quantity, "against": against}
    names |= {"questions": len(item.loss), "coverage": coverage}
    if isinstance(found, float):
        return names | {"value": found, "lower": None, "upper": None}
    return names | {"value": found.estimate, "lower": found.lower, "upper": found.upper}


def _found(rows: Sequence[Mapping], item: Ordering, quantity: str) -> float:
    wanted = item.task, item.model, item.score, quantity
    return next(row["value"] for row in rows if (row["task"], row["model"], row["score"], row["quantity"]) == wanted)


def _area_rows(items: Sequence[Ordering], bootstrap: Bootstrap) -> list[dict]:
    """The area of every ordering with its interval, and the least that its answers allow."""
    rows = []
    for item in items:
        rows.append(_row(item, "area", area_interval(item.uncertainty, item.loss, *bootstrap.arguments)))
        if item.score == STATED[item.task]:
            rows.append(_row(item, "least_area", least_area(item.loss)))
    return rows


def _difference_rows(items: Sequence[Ordering], bootstrap: Bootstrap) -> list[dict]:
    """The differences of `CONTRASTS` whose comparator is there, and to the same answers in no order at all."""
    by_name = {(item.task, item.model, item.score): item for item in items}
    rows = []
    for task in TASKS:
        ours = by_name[task, "hierarchical", STATED[task]]
        pairs = {name: by_name.get((task, model, score or STATED[task])) for name, (model, score) in CONTRASTS.items()}
        pairs["no_order"] = ours._replace(uncertainty=np.zeros(len(ours.loss)))
        for name, other in pairs.items():
            if other is not None:
                first, second = ((one.uncertainty, one.loss) for one in (ours, other))
                rows.append(_row(ours, "difference", area_difference(first, second, *bootstrap.arguments), name))
    return rows


def _curve_rows(item: Ordering, steps: int, bootstrap: Bootstrap) -> list[dict]:
    """Risk along the coverage with its band, and the risk that the model itself states for what it answers."""
    coverages = [(step + 1) / steps for step in range(steps)]
    band = risk_band(item.uncertainty, item.loss, coverages, *bootstrap.arguments)
    points = [Interval(*(float(value) for value in point)) for point in zip(*band, strict=True)]
    rows = [_row(item, "risk", at, coverage=coverage) for at, coverage in zip(points, coverages, strict=True)]
    if item.score == STATED[item.task]:
        rows += [_row(item, "stated_risk", _stated(item, coverage), coverage=coverage) for coverage in coverages]
    return rows


def _stated(item: Ordering, coverage: float) -> float:
    """Mean of the score over the share of questions where it is least."""
    answered = max(int(np.ceil(coverage * len(item.loss) - 1e-9)), 1)
    return float(np.sort(item.uncertainty)[:answered].mean())
