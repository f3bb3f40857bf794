"""Reliability diagrams: observed frequency against stated probability, with a strip of counts below.

the two panels share their horizontal axis;  a calibrated forecast lies on the diagonal
"""

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.ticker import LogLocator, NullLocator

from bayeslink.plots.style import ACCENT, INK

__all__ = ["draw_counts", "draw_reliability"]

_BAND = "#9fc5e0"


def draw_reliability(axes: Axes, table: pd.DataFrame, label: str = "observed") -> Axes:
    """Frequency of gold in each bin of the probability, with its bootstrap band; empty bins are left out.

    A bin whose band leaves out the diagonal is a cross.

    Args:
        axes: Where to draw.
        table: One row per bin of one forecast: mean_probability, frequency, lower, upper.
        label: Name of the line in the legend.

    Raises:
        ValueError: If two bins have one mean probability: the table holds several forecasts.
    """
    rows = table.dropna(subset=["mean_probability", "frequency"]).sort_values("mean_probability")
    if rows["mean_probability"].duplicated().any():
        raise ValueError("table holds a mean probability twice: give the bins of one forecast")
    axes.plot([0, 1], [0, 1], color="0.5", linewidth=0.8, linestyle=(0, (2, 2)), label="calibrated")
    axes.fill_between(
        rows["mean_probability"], rows["lower"], rows["upper"], color=_BAND, alpha=0.5, linewidth=0, label="95 % band"
    )
    axes.plot(rows["mean_probability"], rows["frequency"], color=INK, linewidth=1.2, label="_line")
    inside = (rows["lower"] <= rows["mean_probability"]) & (rows["mean_probability"] <= rows["upper"])
    for chosen, marker, colour, name in ((inside, "o", INK, label), (~inside, "X", ACCENT, f"{label}, off diagonal")):
        if chosen.any():
            bins = rows[chosen]
            axes.plot(
                bins["mean_probability"],
                bins["frequency"],
                color=colour,
                marker=marker,
                markersize=4.5,
                linestyle="",
                label=name,
                clip_on=False,
            )
    axes.set_xlim(0.0, 1.0)
    axes.set_ylim(0.0, 1.0)
    axes.tick_params(labelsize=8)
    axes.spines[["top", "right"]].set_visible(False)
    return axes


def draw_counts(axes: Axes, table: pd.DataFrame) -> Axes:
    """Number of pairs in each bin, on a logarithmic scale.

    Args:
        axes: The strip below the diagram.
        table: One row per bin of one forecast: left, right (ends of the bin, probabilities), count.

    Raises:
        ValueError: If a bin occurs twice: the table holds several forecasts.
    """
    if table["left"].duplicated().any():
        raise ValueError("table holds a bin twice: give the bins of one forecast")
    rows = table[table["count"] > 0]
    axes.bar(
        rows["left"],
        rows["count"],
        width=rows["right"] - rows["left"],
        align="edge",
        color="#8a8f98",
        edgecolor="white",
        linewidth=0.5,
    )
    # A bar of one pair is as high as nothing at all on an axis that starts at 1.
    axes.set_yscale("log")
    axes.set_ylim(bottom=0.5)
    axes.yaxis.set_major_locator(LogLocator(base=1000.0, numticks=4))
    axes.yaxis.set_minor_locator(NullLocator())
    axes.set_xlim(0.0, 1.0)
    axes.tick_params(labelsize=8)
    axes.spines[["top", "right"]].set_visible(False)
    return axes
