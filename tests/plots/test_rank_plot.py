"""The rank envelope: the table's numbers, and a curve outside that is seen without colour."""

import pandas as pd
import pytest
from matplotlib.colors import to_rgba

from bayeslink.plots.ranks import draw_rank_envelope
from bayeslink.plots.style import new_figure


def table(*differences: float) -> pd.DataFrame:
    points = [(k + 1) / 4 for k in range(len(differences))]
    return pd.DataFrame({"point": points, "difference": differences, "half_width": 0.1})


def drawn(rows: pd.DataFrame):
    axes = new_figure(2.0, 2.0).add_subplot()
    assert draw_rank_envelope(axes, rows) is axes
    return axes


def test_curve_and_band_are_the_tables_numbers():
    rows = table(0.05, -0.02, 0.01)
    axes = drawn(rows.iloc[::-1])
    curve = axes.lines[-1]
    assert curve.get_xdata().tolist() == [0.25, 0.5, 0.75]
    assert curve.get_ydata().tolist() == [0.05, -0.02, 0.01]
    band = axes.collections[0].get_paths()[0].vertices
    assert (band[:, 1].min(), band[:, 1].max()) == (-0.1, 0.1)
    assert axes.get_xlim() == (0.0, 1.0)


def test_a_curve_outside_its_band_is_told_by_its_dashes_too():
    inside, outside = (drawn(table(0.05, value)).lines[-1] for value in (0.1, -0.11))
    assert (inside.get_linestyle(), outside.get_linestyle()) == ("-", "--")
    assert to_rgba(inside.get_color()) != to_rgba(outside.get_color())
    assert inside.get_linewidth() < outside.get_linewidth()


def test_rows_of_several_parameters_are_refused():
    with pytest.raises(ValueError, match="holds a point twice"):
        drawn(pd.concat([table(0.0, 0.0), table(0.1, 0.1)]))
