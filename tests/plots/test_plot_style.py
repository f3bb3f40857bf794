"""Saving: the formats, the same bytes twice, and what is refused."""

from itertools import pairwise

import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg

from bayeslink.plots.style import PROBABILITY, SUFFIXES, font_families, new_figure, save


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_a_figure_has_the_same_bytes_twice(tmp_path, suffix):
    for name in ("one", "two"):
        figure = new_figure(3.0, 2.0)
        figure.add_subplot().plot([0, 1], [0, 1])
        save(figure, tmp_path / "new" / f"{name}{suffix}")
    first, second = ((tmp_path / "new" / f"{name}{suffix}").read_bytes() for name in ("one", "two"))
    assert first == second
    assert len(first) > 500


@pytest.mark.parametrize("name", ["x.gif", "x", "x.PNG.txt"])
def test_other_formats_are_refused(tmp_path, name):
    with pytest.raises(ValueError, match=r"ends in \.png, \.svg, \.pdf"):
        save(new_figure(3.0, 2.0), tmp_path / name)
    assert not list(tmp_path.iterdir())


def test_darker_means_more_probable_also_in_grey():
    grey = [0.299 * r + 0.587 * g + 0.114 * b for r, g, b, _ in (PROBABILITY(p / 50) for p in range(51))]
    assert all(later < earlier for earlier, later in pairwise(grey))


def test_figures_are_not_kept_by_pyplot():
    import matplotlib.pyplot as plt

    before = plt.get_fignums()
    new_figure(3.0, 2.0)
    assert plt.get_fignums() == before


def test_the_font_that_is_always_there_comes_first():
    assert font_families()[0] == "DejaVu Sans"


def figure_with(text):
    figure = new_figure(3.0, 2.0)
    figure.add_subplot().text(0.2, 0.5, text)
    return figure


def test_a_character_that_no_font_has_does_not_stop_the_saving(tmp_path):
    # Private-use characters, which no font has.
    with pytest.warns(UserWarning, match=r"Glyph \d+ .* missing from font"):
        FigureCanvasAgg(figure_with("\U000f0000")).draw()
    save(figure_with("\U000f0001"), tmp_path / "x.png")
