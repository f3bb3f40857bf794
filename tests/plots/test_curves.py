"""Curves: what is drawn is what the table holds, and lines can be told apart without colour."""

import pandas as pd
import pytest
from matplotlib.colors import to_rgba

from bayeslink.plots.curves import draw_lines, draw_power_law, label_panel, mark_value, shade_window
from bayeslink.plots.style import new_figure


@pytest.fixture
def axes():
    return new_figure(3.0, 2.0).add_subplot()


def test_lines_hold_the_tables_numbers_and_leave_out_what_is_missing(axes):
    table = pd.DataFrame({"x": [1.0, 2.0, 3.0], "a": [1.0, 4.0, 9.0], "b": [1.0, None, 3.0]})
    assert draw_lines(axes, table, "x", {"a": "first", "b": "second"}, markers=True) is axes
    first, second = axes.lines
    assert first.get_ydata().tolist() == [1.0, 4.0, 9.0]
    assert second.get_xdata().tolist() == [1.0, 3.0]
    assert [line.get_label() for line in axes.lines] == ["first", "second"]


def test_five_lines_differ_without_colour_and_a_sixth_is_refused(axes):
    table = pd.DataFrame({name: [0.0, 1.0] for name in "xabcdef"})
    draw_lines(axes, table, "x", {name: name for name in "abcde"}, markers=True)
    assert len({line.get_marker() for line in axes.lines}) == 5
    assert len({to_rgba(line.get_color()) for line in axes.lines}) == 5
    with pytest.raises(ValueError, match="at most 5 can be told apart"):
        draw_lines(axes, table, "x", {name: name for name in "abcdef"})


def test_window_marks_and_labels(axes):
    shade_window(axes, 0.5, 1.0, "window")
    mark_value(axes, 0.75, "here", left=True)
    assert axes.patches[0].get_extents().width > 0
    assert {text.get_text() for text in axes.texts} == {"window", "here"}
    axes.plot([0, 1], [0, 1], label="line")
    label_panel(axes, "a  title", "coupling (nats)", "tables", "upper left")
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("coupling (nats)", "tables")
    assert axes.get_legend() is not None


def test_power_law_goes_through_its_point_with_its_slope(axes):
    draw_power_law(axes, [10.0, 1000.0], (100.0, 5.0), 2.0, "slope 2")
    assert axes.lines[0].get_ydata() == pytest.approx([0.05, 500.0])
