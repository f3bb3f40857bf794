"""Curves of the experiments: one line per group, a shaded window, a reference slope."""

from collections.abc import Mapping, Sequence

import pandas as pd
from matplotlib.axes import Axes

from bayeslink.plots.style import INK, LOOKS

__all__ = ["draw_lines", "draw_power_law", "label_panel", "mark_value", "shade_window"]


def draw_lines(
    axes: Axes, table: pd.DataFrame, x: str, lines: Mapping[str, str], markers: bool = False, width: float = 1.6
) -> Axes:
    """One line per column of a table.

    Args:
        axes: Where to draw.
        table: One row per point.
        x: Column along the horizontal axis.
        lines: Label of each column that is drawn; rows where it is missing are left out.
        markers: Mark every point.
        width: Width of the lines, points.

    Raises:
        ValueError: If there are more lines than looks.
    """
    if len(lines) > len(LOOKS):
        raise ValueError(f"lines={list(lines)}: at most {len(LOOKS)} can be told apart; draw two panels")
    for (column, label), (colour, dashes, marker, filling) in zip(lines.items(), LOOKS, strict=False):
        rows = table[[x, column]].dropna()
        axes.plot(
            rows[x],
            rows[column],
            color=colour,
            linestyle=dashes,
            linewidth=width,
            marker=marker if markers else "",
            markerfacecolor=filling,
            markersize=4.5,
            label=label,
        )
    axes.spines[["top", "right"]].set_visible(False)
    return axes


def shade_window(axes: Axes, lower: float, upper: float, label: str) -> Axes:
    """A shaded range of the horizontal axis with its name at the top."""
    axes.axvspan(lower, upper, color="#9fc5e0", alpha=0.35, linewidth=0)
    axes.text((lower + upper) / 2, 0.98, label, transform=axes.get_xaxis_transform(), ha="center", va="top", fontsize=8)
    return axes


def mark_value(axes: Axes, value: float, label: str, height: float = 0.98, left: bool = False) -> Axes:
    """A thin vertical line with its name beside it.

    Args:
        axes: Where to draw.
        value: Position along the horizontal axis.
        label: The name.
        height: Top of the name, as a share of the axes.
        left: Put the name to the left of the line.
    """
    axes.axvline(value, color=INK, linewidth=0.8, linestyle=(0, (2, 2)))
    axes.annotate(
        label,
        (value, height),
        xycoords=axes.get_xaxis_transform(),
        xytext=(-3 if left else 3, 0),
        textcoords="offset points",
        ha="right" if left else "left",
        va="top",
        fontsize=8,
    )
    return axes


def draw_power_law(
    axes: Axes, sizes: Sequence[float | int], at: tuple[float | int, float], slope: float, label: str
) -> Axes:
    """A reference line y ~ x^slope through a point, on logarithmic axes."""
    first, last = min(sizes), max(sizes)
    ends = [at[1] * (size / at[0]) ** slope for size in (first, last)]
    axes.plot([first, last], ends, color="#8a8f98", linewidth=1.0, linestyle=":", label=label)
    return axes


def label_panel(axes: Axes, title: str, x: str, y: str, legend: str | None = "best") -> Axes:
    """Title and axis labels, with units, and a legend where one is asked for."""
    axes.set_title(title, fontsize=9, loc="left")
    axes.set_xlabel(x, fontsize=9)
    axes.set_ylabel(y, fontsize=9)
    axes.tick_params(labelsize=8)
    if legend:
        axes.legend(loc=legend, fontsize=8, handlelength=2.8, frameon=False)
    return axes
