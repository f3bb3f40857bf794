"""The drawn schema graph: every label there, none on another, and names drawn as they are."""

import itertools

import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import to_hex

from bayeslink.plots import graphs
from bayeslink.plots.graphs import draw_schema_graph, neighbourhood
from bayeslink.plots.style import ACCENT, new_figure, save

NAMES = ("customers", "order_lines_2024", "mécènes", "Führungen", "顧客メモ", "$a$ b_{c}", "x_y^z", "50 %", "a\\b", "t")


def random_graph(num_tables: int, seed: int = 0):
    """Some connected parts and some isolated tables; names of all kinds."""
    rng = np.random.default_rng([num_tables, seed])
    joined = max(num_tables - 3, 0) if num_tables > 4 else num_tables
    pairs = {(int(rng.integers(max(t - 5, 0), t)), t) for t in range(1, joined) if t % 6}
    edges = np.array(sorted(pairs), dtype=np.int64).reshape(-1, 2)
    names = [f"{NAMES[t % len(NAMES)]}{t}" for t in range(num_tables)]
    marginals = rng.random(num_tables)
    return names, marginals, edges, marginals > 0.7


def drawn(case, title="How much is $5 and $6?"):
    figure = new_figure(9.0, 6.0)
    axes = figure.add_subplot()
    assert draw_schema_graph(axes, *case, title=title) is axes
    return figure, axes


@pytest.mark.parametrize("num_tables", [1, 2, 3, 14, 24, 40])
@pytest.mark.parametrize("suffix", [".png", ".svg"])
def test_graphs_of_all_sizes_are_written_without_a_warning(tmp_path, num_tables, suffix):
    figure, axes = drawn(random_graph(num_tables))
    save(figure, tmp_path / f"graph{suffix}")
    assert (tmp_path / f"graph{suffix}").stat().st_size > 1000
    assert len(axes.texts) == min(num_tables, 24)


def crowded(num_tables: int):
    """Long names, and every table joined to two hubs, so that the layout alone puts labels on one another."""
    edges = np.array([(hub, t) for hub in (0, 1) for t in range(2, num_tables)])
    names = [f"a_rather_long_name_{t:02d}" for t in range(num_tables)]
    return names, np.full(num_tables, 0.5), edges, np.zeros(num_tables, dtype=bool)


def overlapping(figure, axes) -> int:
    FigureCanvasAgg(figure).draw()
    boxes = [text.get_window_extent().padded(0.4 * text.get_fontsize() * figure.dpi / 72) for text in axes.texts]
    assert all(figure.bbox.contains(*box.min) and figure.bbox.contains(*box.max) for box in boxes)
    return sum(bool(first.overlaps(second)) for first, second in itertools.combinations(boxes, 2))


def test_labels_of_a_crowded_graph_do_not_overlap():
    assert overlapping(*drawn(crowded(18))) == 0


@pytest.mark.parametrize("spread", [0.0, 0.3, 2.0])
def test_boxes_are_pushed_apart(spread):
    rng = np.random.default_rng(0)
    points, boxes = spread * rng.normal(size=(12, 2)), rng.uniform(0.5, 1.5, (12, 2))
    found = graphs._apart(points, boxes)
    for i, j in itertools.combinations(range(12), 2):
        assert (np.abs(found[i] - found[j]) > (boxes[i] + boxes[j]) / 2 - 1e-5).any()


@pytest.mark.filterwarnings("ignore:Glyph .* missing from font:UserWarning")
@pytest.mark.parametrize("num_tables", [2, 5, 9, 14, 24, 40])
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_no_label_lies_on_another_or_outside(num_tables, seed):
    figure, axes = drawn(random_graph(num_tables, seed))
    assert overlapping(figure, axes) == 0
    assert all(text.get_fontsize() >= 4 for text in axes.texts)


def test_names_and_title_are_not_read_as_mathematics():
    names, *rest = random_graph(10)
    _, axes = drawn((names, *rest))
    assert [text.get_text().split("\n")[0] for text in axes.texts] == names
    assert not any(text.get_parse_math() for text in [*axes.texts, axes.title])


def test_long_names_are_shortened_visibly():
    case = (["x" * 60], np.array([0.5]), np.zeros((0, 2), dtype=np.int64), np.array([False]))
    assert drawn(case)[1].texts[0].get_text() == "x" * 21 + "…\n0.50"


def test_the_cover_is_outlined_and_its_edges_are_strong():
    names, edges = ["a", "b", "c"], np.array([[0, 1], [1, 2]])
    _, axes = drawn((names, np.array([0.9, 0.8, 0.1]), edges, np.array([True, True, False])))
    outlines = [to_hex(text.get_bbox_patch().get_edgecolor()) for text in axes.texts]
    assert [outline == ACCENT for outline in outlines] == [True, True, False]
    assert [line.get_linewidth() for line in axes.lines] == [2.0, 0.8]


def test_what_is_not_shown_is_said():
    _, axes = drawn(random_graph(40))
    assert "16 less probable tables not shown" in axes.get_legend().get_texts()[1].get_text()
    _, small = drawn(random_graph(5))
    assert "not shown" not in small.get_legend().get_texts()[1].get_text()


def test_neighbourhood_prefers_the_cover_then_its_neighbours_then_the_likeliest():
    marginals = np.array([0.1, 0.2, 0.3, 0.9, 0.05, 0.8])
    in_cover = np.array([True, False, False, False, False, False])
    edges = np.array([[0, 4], [2, 3]])
    assert neighbourhood(marginals, in_cover, edges, most=1).tolist() == [0]
    assert neighbourhood(marginals, in_cover, edges, most=2).tolist() == [0, 4]
    assert neighbourhood(marginals, in_cover, edges, most=4).tolist() == [0, 3, 4, 5]
    assert neighbourhood(marginals, in_cover, edges, most=6).tolist() == list(range(6))
