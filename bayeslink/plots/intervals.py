"""Parameters of a posterior: mean and interval of each, one below the other."""

import pandas as pd
from matplotlib.axes import Axes

from bayeslink.plots.style import ACCENT, INK

__all__ = ["draw_intervals"]


def draw_intervals(axes: Axes, table: pd.DataFrame) -> Axes:
    """A point and a line for each parameter, the first at the top.

    Args:
        axes: Where to draw.
        table: Columns parameter, mean, low and high; log-odds, or nats for couplings.
    """
    places = range(len(table) - 1, -1, -1)
    axes.hlines(places, table["low"], table["high"], color=INK, linewidth=1.6)
    axes.plot(table["mean"], list(places), "o", color=ACCENT, markersize=4)
    axes.axvline(0.0, color="0.75", linewidth=0.8, zorder=0)
    axes.set_yticks(list(places), table["parameter"].astype(str), fontsize=8, parse_math=False)
    axes.set_xlabel("posterior mean and 90 % interval (log-odds)", fontsize=9)
    axes.spines[["top", "right"]].set_visible(False)
    return axes
