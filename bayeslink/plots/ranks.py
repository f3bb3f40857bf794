"""Rank calibration: how far the ranks' ECDF is from uniform, with its simultaneous band."""

import pandas as pd
from matplotlib.axes import Axes

from bayeslink.plots.style import ACCENT, INK

__all__ = ["draw_rank_envelope"]


def draw_rank_envelope(axes: Axes, table: pd.DataFrame) -> Axes:
    """One parameter's ECDF difference in its band; strong and dashed where the curve leaves the band.

    Args:
        axes: Where to draw.
        table: One row per point of one parameter: point, difference, half_width (see `Envelope.rows`).

    Raises:
        ValueError: If a point occurs twice: the table holds several parameters or fits.
    """
    if table["point"].duplicated().any():
        raise ValueError("table holds a point twice: give the rows of one parameter of one fit")
    rows = table.sort_values("point")
    outside = (rows["difference"].abs() > rows["half_width"]).any()
    axes.fill_between(rows["point"], -rows["half_width"], rows["half_width"], color="#9fc5e0", alpha=0.45, linewidth=0)
    axes.axhline(0.0, color="#8a8f98", linewidth=0.6)
    axes.plot(
        rows["point"],
        rows["difference"],
        color=ACCENT if outside else INK,
        linestyle="--" if outside else "-",
        linewidth=1.6 if outside else 1.0,
    )
    axes.set_xlim(0.0, 1.0)
    axes.spines[["top", "right"]].set_visible(False)
    return axes
