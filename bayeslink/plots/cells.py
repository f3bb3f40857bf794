"""Cells of a grid: lines with their bands, cells as dots with their intervals, and shares as bars.

Groups are drawn in order with the first of `LOOKS`, or with those at the positions given, so that a group that several
panels show looks the same in all of them.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pandas as pd
from matplotlib.axes import Axes

from bayeslink.plots.style import LOOKS

__all__ = ["draw_bands", "draw_cells", "draw_pairs", "draw_shares"]


def draw_bands(
    axes: Axes,
    table: pd.DataFrame,
    x: str,
    y: str,
    group: str,
    names: Mapping[str, str],
    looks: Sequence[int] | None = None,
) -> Axes:
    """A line for each group with the band between `{y}_lower` and `{y}_upper`, and a line at 0.

    Args:
        axes: Where to draw.
        table: One row for each group and value of x.
        x: Column along the horizontal axis.
        y: Column along the vertical axis.
        group: Column of groups.
        names: Label of each group that is drawn, in order.
        looks: Position in `LOOKS` of each group; in order by default.

    Raises:
        ValueError: If there are more groups than looks.
    """
    axes.axhline(0.0, color="0.5", linewidth=0.8)
    for (value, label), (colour, dashes, marker, filling) in _with_looks(names, looks):
        rows = table[table[group] == value].sort_values(x)
        axes.fill_between(rows[x], rows[f"{y}_lower"], rows[f"{y}_upper"], color=colour, alpha=0.18, linewidth=0)
        dots = _dots(colour, marker, filling, 4.0)
        axes.plot(rows[x], rows[y], **dots | {"linestyle": dashes}, linewidth=1.4, label=label)
    return _plain(axes)


def draw_cells(axes: Axes, table: pd.DataFrame, x: str, y: str, group: str, labels: Mapping[float | str, str]) -> Axes:
    """A dot with its interval for each row, groups and the rows of a group side by side at each value of x.

    The values of x are names: they stand at equal distances. A line marks 0.

    Args:
        axes: Where to draw.
        table: One row for each cell, with the columns `{y}_lower` and `{y}_upper`.
        x: Column along the horizontal axis.
        y: Column along the vertical axis.
        group: Column of groups.
        labels: Label of each group that is drawn, in order.

    Raises:
        ValueError: If there are more groups than looks.
    """
    axes.axhline(0.0, color="0.5", linewidth=0.8)
    values = sorted(table[x].unique())
    width = 0.8 / max(len(labels), 1)
    for place, ((value, label), (colour, _, marker, filling)) in enumerate(_with_looks(labels)):
        rows = table[table[group] == value]
        nth = rows.groupby(x).cumcount()
        count = max(int(nth.max()) + 1, 1) if len(nth) else 1
        at = rows[x].map(values.index) + width * (place - (len(labels) - 1) / 2 + 0.7 * ((nth + 0.5) / count - 0.5))
        axes.vlines(at, rows[f"{y}_lower"], rows[f"{y}_upper"], color=colour, linewidth=0.9)
        axes.plot(at, rows[y], **_dots(colour, marker, filling, 2.8), label=label)
    axes.set_xticks(range(len(values)), [f"{value:g}" for value in values])
    return _plain(axes)


def draw_pairs(
    axes: Axes,
    table: pd.DataFrame,
    x: str,
    y: str,
    group: str,
    names: Mapping[str, str],
    looks: Sequence[int] | None = None,
) -> Axes:
    """Two values of each cell against each other, the second with its interval, and a line at 0.

    Args:
        axes: Where to draw.
        table: One row for each cell and group, with the columns `{y}_lower` and `{y}_upper`.
        x: Column along the horizontal axis.
        y: Column along the vertical axis.
        group: Column of groups.
        names: Label of each group that is drawn, in order.
        looks: Position in `LOOKS` of each group; in order by default.

    Raises:
        ValueError: If there are more groups than looks.
    """
    axes.axhline(0.0, color="0.5", linewidth=0.8)
    for (value, label), (colour, _, marker, filling) in _with_looks(names, looks):
        rows = table[table[group] == value]
        axes.vlines(rows[x], rows[f"{y}_lower"], rows[f"{y}_upper"], color=colour, linewidth=0.7, alpha=0.6)
        axes.plot(rows[x], rows[y], **_dots(colour, marker, filling, 2.8), label=label)
    return _plain(axes)


def draw_shares(
    axes: Axes, table: pd.DataFrame, label: str, columns: Mapping[str, str], looks: Sequence[int] | None = None
) -> Axes:
    """Shares as dots from 0 to 1, one row of the plot for each row of the table, first on top.

    Args:
        axes: Where to draw.
        table: One row for each label.
        label: Column of the labels.
        columns: Label of each column of shares, in order.
        looks: Position in `LOOKS` of each column; in order by default.

    Raises:
        ValueError: If there are more columns than looks.
    """
    height = 0.6 / max(len(columns), 1)
    for place, ((column, name), (colour, _, marker, filling)) in enumerate(_with_looks(columns, looks)):
        at = [len(table) - 1 - row + height * ((len(columns) - 1) / 2 - place) for row in range(len(table))]
        axes.hlines(at, 0.0, table[column], color=colour, linewidth=0.9)
        axes.plot(table[column], at, **_dots(colour, marker, filling, 4.0), label=name, clip_on=False)
    axes.set_xlim(0.0, 1.0)
    axes.set_yticks(range(len(table)), list(table[label])[::-1], fontsize=8)
    axes.set_ylim(-0.6, len(table) - 0.4)
    axes.tick_params(axis="y", length=0)
    return _plain(axes)


def _with_looks(names: Mapping, looks: Sequence[int] | None = None) -> Iterator[tuple]:
    """Each name and its label with its look."""
    if len(names) > len(LOOKS):
        raise ValueError(f"groups={list(names)}: at most {len(LOOKS)} can be told apart; draw two panels")
    chosen = range(len(names)) if looks is None else looks
    return zip(names.items(), (LOOKS[place] for place in chosen), strict=True)


def _dots(colour: str, marker: str, filling: str, size: float) -> dict[str, Any]:
    """How dots of one look are drawn, without a line."""
    return {"color": colour, "marker": marker, "markerfacecolor": filling, "markersize": size, "linestyle": ""}


def _plain(axes: Axes) -> Axes:
    axes.spines[["top", "right"]].set_visible(False)
    return axes
