"""Criticism of a fit: replicated statistics against observed ones, and forests of estimates."""

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from bayeslink.plots.style import ACCENT, INK, LOOKS

__all__ = ["draw_forest", "draw_predictive_check", "draw_strips"]

_AXIS = {
    "num_selected": "mean N per question (tables)",
    "num_joined_pairs": "mean M per question (joined pairs)",
}


def draw_predictive_check(axes: Axes, table: pd.DataFrame, statistic: str) -> Axes:
    """Each database's replicated mean with its interval, and the observed mean as a dot, sorted by the latter.

    A dot outside its interval is a cross.

    Args:
        axes: Where to draw.
        table: Rows of `evaluation.replicates.predictive_check` of one fit.
        statistic: "num_selected" or "num_joined_pairs".

    Raises:
        ValueError: If the table has no row of the statistic.
    """
    rows = table[table["statistic"] == statistic].sort_values(["observed", "database"], kind="stable")
    if rows.empty:
        raise ValueError(f"statistic={statistic!r}: the table has {sorted(set(table['statistic']))}")
    places = range(len(rows))
    axes.hlines(places, rows["lower"], rows["upper"], color="#9aa5b1", linewidth=5.0, label="replicated, 95 %")
    axes.plot(rows["predicted"], places, color=INK, marker="|", markersize=7, linestyle="", label="replicated, mean")
    for inside, marker, colour, label in ((True, "o", INK, "observed"), (False, "X", ACCENT, "observed, outside")):
        chosen = [place for place, held in zip(places, rows["inside"], strict=True) if bool(held) is inside]
        if chosen:
            values = rows["observed"].iloc[chosen]
            axes.plot(values, chosen, color=colour, marker=marker, markersize=4.5, linestyle="", label=label)
    axes.set_xlabel(_AXIS[statistic], fontsize=9)
    return _name_rows(axes, [str(name).rpartition("/")[2] for name in rows["database"]])


def draw_forest(axes: Axes, table: pd.DataFrame, unit: str, group: str | None = None) -> Axes:
    """A mean and an interval for each row, first row on top, with a line at 0.

    Where labels or groups are categorical, every category keeps its place, so that panels side by side agree.

    Args:
        axes: Where to draw.
        table: Columns `label`, `mean`, `lower`, `upper`.
        unit: What the horizontal axis shows, with its unit.
        group: Column of groups, methods for instance; rows of one label stand together, a mark for each group.

    Raises:
        ValueError: If there are more groups than marks.
    """
    labels = _distinct(table["label"])
    groups = [None] if group is None else _distinct(table[group])
    if len(groups) > len(LOOKS):
        raise ValueError(f"group={group!r} has {len(groups)} values: at most {len(LOOKS)} can be told apart")
    heights = {label: len(labels) - 1 - place for place, label in enumerate(labels)}
    axes.axvline(0.0, color="0.5", linewidth=0.8, linestyle=(0, (2, 2)))
    for place, (name, (colour, _, marker, filling)) in enumerate(zip(groups, LOOKS, strict=False)):
        rows = table if group is None else table[table[group] == name]
        if rows.empty:
            continue
        offset = 0.6 * ((len(groups) - 1) / 2 - place) / len(groups)
        at = [heights[label] + offset for label in rows["label"]]
        axes.hlines(at, rows["lower"], rows["upper"], color=colour, linewidth=1.4)
        axes.plot(
            rows["mean"],
            at,
            color=colour,
            marker=marker,
            markerfacecolor=filling,
            markersize=4.5,
            linestyle="",
            label="_one" if name is None else str(name),
        )
    axes.set_xlabel(unit, fontsize=9)
    return _name_rows(axes, labels[::-1])


def draw_strips(axes: Axes, table: pd.DataFrame, unit: str, reference: float, limit: tuple[float, float]) -> Axes:
    """A dot for each row of a label, first label on top, with a line at a reference value.

    A dot beyond the limits is an arrow at the edge.

    Args:
        axes: Where to draw.
        table: Columns `label` and `value`.
        unit: What the horizontal axis shows, with its unit.
        reference: Where the line is.
        limit: Ends of the horizontal axis.
    """
    labels = _distinct(table["label"])
    axes.axvline(reference, color="0.5", linewidth=0.8, linestyle=(0, (2, 2)))
    lower, upper = limit
    places = np.array([len(labels) - 1 - labels.index(label) for label in table["label"]])
    values = table["value"].to_numpy()
    for chosen, marker, colour in (
        ((values >= lower) & (values <= upper), "o", INK),
        (values < lower, "<", ACCENT),
        (values > upper, ">", ACCENT),
    ):
        if not chosen.any():
            continue  # An empty line that is not clipped would still take up room.
        axes.plot(
            values[chosen].clip(lower, upper),
            places[chosen],
            color=colour,
            marker=marker,
            markerfacecolor="none",
            markersize=4.5,
            linestyle="",
            clip_on=False,
        )
    axes.set_xlim(lower, upper)
    axes.set_xlabel(unit, fontsize=9)
    return _name_rows(axes, labels[::-1])


def _distinct(column: pd.Series) -> list[str]:
    """Values in the order of the column's categories, or of their first row."""
    return list(column.cat.categories if isinstance(column.dtype, pd.CategoricalDtype) else dict.fromkeys(column))


def _name_rows(axes: Axes, names: list[str]) -> Axes:
    """Names along the vertical axis, from the bottom up."""
    axes.set_yticks(range(len(names)), names, fontsize=8)
    axes.set_ylim(-0.6, len(names) - 0.4)
    axes.tick_params(axis="x", labelsize=8)
    axes.tick_params(axis="y", length=0)
    axes.spines[["top", "right", "left"]].set_visible(False)
    axes.grid(axis="y", color="0.93", linewidth=0.6)
    axes.set_axisbelow(True)
    return axes
