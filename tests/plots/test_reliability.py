"""Reliability diagrams: what is drawn is what the table holds, and a bin off the diagonal is told without colour."""

import numpy as np
import pandas as pd
import pytest

from bayeslink.plots.reliability import draw_counts, draw_reliability
from bayeslink.plots.style import new_figure, save

BINS = pd.DataFrame(
    {
        "left": [0.0, 0.25, 0.5, 0.75],
        "right": [0.25, 0.5, 0.75, 1.0],
        "mean_probability": [0.1, 0.4, np.nan, 0.9],
        "frequency": [0.12, 0.2, np.nan, 0.95],
        "lower": [0.08, 0.1, np.nan, 0.85],
        "upper": [0.15, 0.3, np.nan, 0.99],
        "count": [900, 40, 0, 1],
    }
)


@pytest.fixture
def axes():
    return new_figure(3.0, 2.0).add_subplot()


def points(line) -> list[tuple[float, float]]:
    return list(zip(line.get_xdata(), line.get_ydata(), strict=True))


def test_line_and_band_are_the_tables_numbers_and_empty_bins_are_left_out(axes, tmp_path):
    assert draw_reliability(axes, BINS.iloc[::-1]) is axes
    diagonal, line, inside, outside = axes.lines
    assert points(diagonal) == [(0, 0), (1, 1)]
    assert points(line) == [(0.1, 0.12), (0.4, 0.2), (0.9, 0.95)]
    assert points(inside) == [(0.1, 0.12), (0.9, 0.95)]
    assert points(outside) == [(0.4, 0.2)]
    assert inside.get_marker() != outside.get_marker()
    band = {tuple(corner) for corner in axes.collections[0].get_paths()[0].vertices.tolist()}
    assert band == {(0.1, 0.08), (0.4, 0.1), (0.9, 0.85), (0.1, 0.15), (0.4, 0.3), (0.9, 0.99)}
    assert (axes.get_xlim(), axes.get_ylim()) == ((0, 1), (0, 1))
    save(axes.figure, tmp_path / "reliability.png")


def test_a_calibrated_forecast_has_no_mark_off_the_diagonal(axes):
    draw_reliability(axes, BINS[BINS["left"] != 0.25], "hierarchical")
    assert axes.get_legend_handles_labels()[1] == ["calibrated", "95 % band", "hierarchical"]


def test_bars_have_the_bins_widths_and_counts(axes, tmp_path):
    assert draw_counts(axes, BINS) is axes
    found = [(bar.get_x(), bar.get_width(), bar.get_height()) for bar in axes.patches]
    assert found == [(0.0, 0.25, 900), (0.25, 0.25, 40), (0.75, 0.25, 1)]
    assert axes.get_yscale() == "log"
    # A bin of one pair shows.
    assert axes.get_ylim()[0] < 1
    save(axes.figure, tmp_path / "counts.png")


def test_several_forecasts_in_one_table_are_refused(axes):
    twice = pd.concat([BINS, BINS])
    with pytest.raises(ValueError, match="bins of one forecast"):
        draw_reliability(axes, twice)
    with pytest.raises(ValueError, match="bins of one forecast"):
        draw_counts(axes, twice)
