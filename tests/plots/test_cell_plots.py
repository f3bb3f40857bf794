"""Cells of a grid on axes: every row has its mark at its value, groups keep their looks."""

import numpy as np
import pandas as pd
import pytest
from matplotlib.colors import to_hex

from bayeslink.plots.cells import draw_bands, draw_cells, draw_pairs, draw_shares
from bayeslink.plots.style import LOOKS, new_figure

NAMES = {"one": "the first", "two": "the second"}


def table() -> pd.DataFrame:
    rows = [
        {"x": x, "group": group, "family": family, "y": y, "y_lower": y - 0.1, "y_upper": y + 0.2}
        for place, family in enumerate(("tree", "star"))
        for group in NAMES
        for x in (0.5, 0.0)
        for y in [x + place + (group == "two")]
    ]
    return pd.DataFrame(rows)


def axes():
    return new_figure(3.0, 2.0).subplots()


def labelled(drawn) -> dict:
    handles, labels = drawn.get_legend_handles_labels()
    return dict(zip(labels, handles, strict=True))


def test_bands_are_lines_in_order_of_x_with_the_looks_asked_for():
    rows = table()[table()["family"] == "tree"]
    drawn = draw_bands(axes(), rows, "x", "y", "group", NAMES, looks=[3, 0])
    lines = labelled(drawn)
    assert list(lines) == list(NAMES.values())
    assert lines["the first"].get_xdata().tolist() == [0.0, 0.5]
    assert lines["the second"].get_ydata().tolist() == [1.0, 1.5]
    assert lines["the first"].get_color() == LOOKS[3][0]
    assert lines["the second"].get_marker() == LOOKS[0][2]
    low, high = (band.get_paths()[0].vertices[:, 1] for band in drawn.collections)
    assert (low.min(), low.max()) == pytest.approx((-0.1, 0.7))
    assert (high.min(), high.max()) == pytest.approx((0.9, 1.7))


def test_cells_stand_side_by_side_at_their_value():
    drawn = draw_cells(axes(), table(), "x", "y", "group", NAMES)
    assert [text.get_text() for text in drawn.get_xticklabels()] == ["0", "0.5"]
    dots = labelled(drawn)
    places = np.concatenate([line.get_xdata() for line in dots.values()])
    assert len(set(np.round(places, 6))) == 8
    assert (np.abs(places - np.round(places)) < 0.5).all()
    for label, group in zip(NAMES.values(), NAMES, strict=True):
        rows = table()[table()["group"] == group]
        assert dots[label].get_ydata().tolist() == rows["y"].tolist()
        assert np.round(dots[label].get_xdata()).tolist() == (rows["x"] * 2).tolist()
    segments = np.concatenate([np.array(lines.get_segments()) for lines in drawn.collections])
    np.testing.assert_allclose(segments[:, 1, 1] - segments[:, 0, 1], 0.3)


def test_pairs_are_drawn_where_they_are():
    drawn = draw_pairs(axes(), table(), "x", "y", "group", NAMES, looks=[1, 2])
    dots = labelled(drawn)
    assert dots["the second"].get_xdata().tolist() == [0.5, 0.0, 0.5, 0.0]
    assert dots["the second"].get_ydata().tolist() == [1.5, 1.0, 2.5, 2.0]
    assert to_hex(dots["the first"].get_color()) == LOOKS[1][0]


def test_shares_are_named_from_the_top():
    rows = pd.DataFrame({"family": ["tree", "star"], "one": [1.0, 0.5], "two": [0.25, 0.0]})
    drawn = draw_shares(axes(), rows, "family", NAMES)
    assert [text.get_text() for text in drawn.get_yticklabels()] == ["star", "tree"]
    dots = labelled(drawn)
    assert dots["the first"].get_xdata().tolist() == [1.0, 0.5]
    assert np.round(dots["the first"].get_ydata()).tolist() == [1, 0]
    assert (dots["the first"].get_ydata() > dots["the second"].get_ydata()).all()
    assert drawn.get_xlim() == (0.0, 1.0)


def test_more_groups_than_looks_are_refused():
    names = {str(place): "x" for place in range(len(LOOKS) + 1)}
    rows = table()
    for draw in (
        lambda: draw_bands(axes(), rows, "x", "y", "group", names),
        lambda: draw_cells(axes(), rows, "x", "y", "group", names),
        lambda: draw_pairs(axes(), rows, "x", "y", "group", names),
        lambda: draw_shares(axes(), rows, "family", names),
    ):
        with pytest.raises(ValueError, match="at most 5 can be told apart"):
            draw()
