"""Predictive checks and forests: what is drawn is what the table holds, and marks differ without colour."""

import numpy as np
import pandas as pd
import pytest

from bayeslink.plots.criticism import draw_forest, draw_predictive_check, draw_strips
from bayeslink.plots.style import new_figure, save

CHECKED = pd.DataFrame(
    {
        "database": ["toy/b", "toy/a", "toy/b", "toy/a"],
        "statistic": ["num_selected", "num_selected", "num_joined_pairs", "num_joined_pairs"],
        "observed": [2.0, 3.0, 1.5, 1.0],
        "predicted": [2.1, 2.0, 1.4, 1.1],
        "lower": [1.8, 1.5, 1.0, 0.8],
        "upper": [2.4, 2.5, 1.8, 1.3],
        "inside": [True, False, True, True],
    }
)
GROUPED = pd.DataFrame(
    {
        "label": ["x", "y", "x", "y"],
        "mean": [0.1, -0.2, 0.3, 0.4],
        "lower": [0.0, -0.5, 0.2, 0.1],
        "upper": [0.2, 0.1, 0.4, 0.8],
        "method": ["laplace", "laplace", "hmc", "hmc"],
    }
)


@pytest.fixture
def axes():
    return new_figure(3.0, 2.0).add_subplot()


def names(axes) -> list[str]:
    return [label.get_text() for label in axes.get_yticklabels()]


def intervals(axes) -> list[list[list[float]]]:
    return [[np.asarray(path).tolist() for path in part.get_segments()] for part in axes.collections]


def test_predictive_check_is_sorted_and_tells_what_is_outside(axes, tmp_path):
    assert draw_predictive_check(axes, CHECKED, "num_selected") is axes
    assert names(axes) == ["b", "a"]
    assert intervals(axes) == [[[[1.8, 0.0], [2.4, 0.0]], [[1.5, 1.0], [2.5, 1.0]]]]
    predicted, inside, outside = axes.lines
    assert predicted.get_xdata().tolist() == [2.1, 2.0]
    assert (inside.get_xdata().tolist(), list(inside.get_ydata())) == ([2.0], [0])
    assert (outside.get_xdata().tolist(), list(outside.get_ydata())) == ([3.0], [1])
    assert inside.get_marker() != outside.get_marker()
    assert axes.get_xlabel() == "mean N per question (tables)"
    save(axes.figure, tmp_path / "check.png")


def test_predictive_check_of_the_other_statistic_has_its_own_order_and_no_empty_legend_entry(axes):
    draw_predictive_check(axes, CHECKED, "num_joined_pairs")
    assert names(axes) == ["a", "b"]
    assert axes.get_legend_handles_labels()[1] == ["replicated, 95 %", "replicated, mean", "observed"]
    with pytest.raises(ValueError, match="statistic='M': the table has"):
        draw_predictive_check(axes, CHECKED, "M")


def test_forest_has_its_first_row_on_top(axes):
    assert draw_forest(axes, GROUPED[:2], "gain (nats)") is axes
    assert names(axes) == ["y", "x"]
    assert intervals(axes) == [[[[0.0, 1.0], [0.2, 1.0]], [[-0.5, 0.0], [0.1, 0.0]]]]
    zero, means = axes.lines
    assert set(zero.get_xdata()) == {0.0}
    assert (means.get_xdata().tolist(), list(means.get_ydata())) == ([0.1, -0.2], [1.0, 0.0])
    assert axes.get_xlabel() == "gain (nats)"
    assert axes.get_legend_handles_labels()[1] == []


def test_groups_stand_apart_and_are_marked_differently(axes, tmp_path):
    draw_forest(axes, GROUPED, "coupling (nats)", group="method")
    assert names(axes) == ["y", "x"]
    _, laplace, hmc = axes.lines
    assert [line.get_label() for line in (laplace, hmc)] == ["laplace", "hmc"]
    assert laplace.get_marker() != hmc.get_marker()
    assert laplace.get_markerfacecolor() != hmc.get_markerfacecolor()
    heights = np.array([laplace.get_ydata(), hmc.get_ydata()])
    assert (heights[0] > heights[1]).all()
    assert heights.round().tolist() == [[1.0, 0.0], [1.0, 0.0]]
    axes.legend()
    save(axes.figure, tmp_path / "forest.png")


def test_more_groups_than_marks_are_refused(axes):
    table = pd.DataFrame({"label": list("abcdef"), "mean": 0.0, "lower": -1.0, "upper": 1.0, "method": list("uvwxyz")})
    with pytest.raises(ValueError, match="at most 5 can be told apart"):
        draw_forest(axes, table, "nats", group="method")


def test_categories_keep_their_places_where_they_have_no_row(axes):
    table = GROUPED[2:].assign(
        label=lambda rows: pd.Categorical(rows["label"], ["w", "x", "y"]),
        method=lambda rows: pd.Categorical(rows["method"], ["laplace", "hmc"]),
    )
    draw_forest(axes, table, "nats", group="method")
    assert names(axes) == ["y", "x", "w"]
    _, hmc = axes.lines
    assert (hmc.get_label(), hmc.get_marker()) == ("hmc", "s")
    assert np.allclose(hmc.get_ydata(), [1 - 0.15, 0 - 0.15])


def test_strips_draw_every_value_and_mark_those_beyond_the_axis(axes, tmp_path):
    table = pd.DataFrame({"label": ["x", "y", "x", "y"], "value": [0.9, 1.1, 3.0, 0.1]})
    assert draw_strips(axes, table, "sd / reference sd", 1.0, (0.5, 1.5)) is axes
    assert names(axes) == ["y", "x"]
    _, inside, below, above = axes.lines
    assert (inside.get_xdata().tolist(), inside.get_ydata().tolist()) == ([0.9, 1.1], [1, 0])
    assert (below.get_xdata().tolist(), below.get_ydata().tolist()) == ([0.5], [0])
    assert (above.get_xdata().tolist(), above.get_ydata().tolist()) == ([1.5], [1])
    assert len({line.get_marker() for line in (inside, below, above)}) == 3
    save(axes.figure, tmp_path / "strips.png")
