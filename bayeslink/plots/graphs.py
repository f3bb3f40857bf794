"""A schema graph with the probability of each table.

Labels are boxes of known size, so places are found in inches: each connected part by a stress layout
(Kamada & Kawai 1989), boxes that overlap pushed apart, parts set in rows of the figure's shape.
"""

from collections.abc import Sequence

import networkx as nx
import numpy as np
from jaxtyping import Bool, Float, Int
from matplotlib.axes import Axes
from matplotlib.patches import Patch

from bayeslink.plots.style import ACCENT, INK, PROBABILITY, font_families

__all__ = ["draw_schema_graph", "neighbourhood", "schema_layout", "short_name"]

FONT_SIZE = 9.0
"""Points, of the labels of a graph that fits at full size."""

_CHARACTER, _HEIGHT, _PADDING = 0.085, 0.46, 0.26
"""Inches at `FONT_SIZE`: width of a character, height of a label, its padding."""

_GAP = (0.40, 0.32)
"""Inches that are kept free between two labels, across and down."""


def neighbourhood(
    marginals: Float[np.ndarray, " tables"],
    in_cover: Bool[np.ndarray, " tables"],
    edges: Int[np.ndarray, "edges 2"],
    most: int = 24,
) -> Int[np.ndarray, " shown"]:
    """Positions of the tables worth drawing: all of a small schema, else the cover, its neighbours and the likeliest.

    Args:
        marginals: Probability of each table.
        in_cover: Tables of the cover.
        edges: Node positions of each edge.
        most: Largest number of tables drawn.
    """
    if len(marginals) <= most:
        return np.arange(len(marginals))
    joined = np.zeros(len(marginals), dtype=bool)
    for first, second in edges:
        joined[first] |= in_cover[second]
        joined[second] |= in_cover[first]
    rank = np.lexsort((-marginals, ~joined, ~in_cover))
    return np.sort(rank[:most])


def schema_layout(
    names: Sequence[str],
    shown: Int[np.ndarray, " shown"],
    edges: Int[np.ndarray, "edges 2"],
    room: Float[np.ndarray, "2"],
) -> tuple[nx.Graph, dict[int, Float[np.ndarray, "2"]], dict[int, Float[np.ndarray, "2"]]]:
    """The graph of the tables shown, the centre of each label and its width and height, inches.

    Args:
        names: Name of each table.
        shown: Positions of the tables to place.
        edges: Node positions of each edge.
        room: Width and height whose shape the layout takes; it may be larger.
    """
    graph = nx.Graph()
    graph.add_nodes_from(int(table) for table in shown)
    graph.add_edges_from((int(a), int(b)) for a, b in edges if int(a) in graph and int(b) in graph)
    sizes = {table: np.array([_width(names[table]), _HEIGHT]) for table in graph.nodes}
    return graph, _layout(graph, sizes, room), sizes


def draw_schema_graph(
    axes: Axes,
    names: Sequence[str],
    marginals: Float[np.ndarray, " tables"],
    edges: Int[np.ndarray, "edges 2"],
    in_cover: Bool[np.ndarray, " tables"],
    title: str = "",
    captions: Sequence[str] | None = None,
) -> Axes:
    """Nodes shaded by probability, the cover outlined, edges where a foreign key joins two tables.

    Args:
        axes: Where to draw.
        names: Name of each table.
        marginals: Probability of each table.
        edges: Node positions of each edge.
        in_cover: Tables of the cover.
        title: Text above the graph; wrapped by the caller.
        captions: What is written below each name; its probability by default.
    """
    below = [f"{float(p):.2f}" for p in marginals] if captions is None else list(captions)
    shown = neighbourhood(marginals, in_cover, edges)
    room = np.array(axes.figure.bbox.size) / axes.figure.dpi - np.array([0.3, 0.9])
    graph, places, sizes = schema_layout(names, shown, edges, room)
    labels = {table: f"{short_name(names[table])}\n{below[table]}" for table in graph.nodes}
    corners = np.array([[places[t] - sizes[t] / 2, places[t] + sizes[t] / 2] for t in graph.nodes])
    low, high = corners.min(axis=(0, 1)) - 0.1, corners.max(axis=(0, 1)) + 0.1
    shrink = min(1.0, *(room / (high - low)))
    # The extent shown is what one inch per unit gives, so that labels keep the size they were laid out with.
    half = np.maximum(high - low, room) / 2
    axes.set_xlim((low + high)[0] / 2 - half[0], (low + high)[0] / 2 + half[0])
    axes.set_ylim((low + high)[1] / 2 - half[1], (low + high)[1] / 2 + half[1])
    for first, second in graph.edges:
        strong = bool(in_cover[first] and in_cover[second])
        axes.plot(
            *zip(places[first], places[second], strict=True),
            color=INK,
            linewidth=2.0 if strong else 0.8,
            alpha=0.9 if strong else 0.45,
            zorder=1,
        )
    for table in graph.nodes:
        axes.text(
            places[table][0],
            places[table][1],
            labels[table],
            ha="center",
            va="center",
            linespacing=1.3,
            fontsize=FONT_SIZE * shrink,
            fontfamily=font_families(),
            parse_math=False,
            color="white" if marginals[table] > 0.55 else INK,
            zorder=3,
            bbox={
                "boxstyle": "round,pad=0.4",
                "facecolor": PROBABILITY(float(marginals[table])),
                "edgecolor": ACCENT if in_cover[table] else "#9aa5b1",
                "linewidth": 2.2 if in_cover[table] else 0.8,
            },
        )
    axes.set_axis_off()
    axes.set_title(title, fontsize=10, color=INK, fontfamily=font_families(), parse_math=False)
    hidden = len(marginals) - len(shown)
    note = f"; {hidden} less probable tables not shown" if hidden else ""
    axes.legend(
        handles=[
            Patch(facecolor="white", edgecolor=ACCENT, linewidth=2.2, label="in the cover"),
            Patch(facecolor=PROBABILITY(0.9), label="darker: more probable" + note),
        ],
        loc="upper center",
        bbox_to_anchor=(0.5, 0.0),
        ncols=2,
        frameon=False,
        fontsize=8,
    )
    return axes


def short_name(name: str, most: int = 22) -> str:
    """The name, cut where it is longer than so many characters."""
    return name if len(name) <= most else name[: most - 1] + "…"


def _width(name: str) -> float:
    """Inches of a label at `FONT_SIZE`; characters beyond Latin, Greek and Cyrillic are about twice as wide."""
    return _PADDING + _CHARACTER * max(4, sum(1.7 if ord(letter) > 0x2E80 else 1.0 for letter in short_name(name)))


def _layout(
    graph: nx.Graph, sizes: dict[int, Float[np.ndarray, "2"]], room: Float[np.ndarray, "2"]
) -> dict[int, Float[np.ndarray, "2"]]:
    """Centre of each label, inches: connected parts in rows, largest first, as wide as fits the room best."""
    if not len(graph):
        return {}
    parts = sorted(nx.connected_components(graph), key=lambda part: (-len(part), min(part)))
    blocks = [_part_layout(graph.subgraph(sorted(part)), sizes, float(room[0] / room[1])) for part in parts]
    widths = np.cumsum([size[0] + 1.5 * _GAP[0] for _, size in blocks])
    options = [_rows(blocks, float(limit)) for limit in widths]
    return min(options, key=lambda option: float(np.max(option[1] / room)))[0]


def _rows(
    blocks: Sequence[tuple[dict[int, Float[np.ndarray, "2"]], Float[np.ndarray, "2"]]], limit: float
) -> tuple[dict[int, Float[np.ndarray, "2"]], Float[np.ndarray, "2"]]:
    """Centres with the blocks side by side in rows of at most this width, and the whole width and height."""
    places: dict[int, Float[np.ndarray, "2"]] = {}
    left = top = depth = right = 0.0
    for block, (width, height) in blocks:
        if left > 0 and left + width > limit:
            left, top, depth = 0.0, top - depth - 1.5 * _GAP[1], 0.0
        places |= {table: place + np.array([left, top]) for table, place in block.items()}
        right, depth = max(right, left + width), max(depth, height)
        left += width + 1.5 * _GAP[0]
    return places, np.array([right, depth - top])


def _part_layout(
    part: nx.Graph, sizes: dict[int, Float[np.ndarray, "2"]], aspect: float
) -> tuple[dict[int, Float[np.ndarray, "2"]], Float[np.ndarray, "2"]]:
    """Centres of the labels of one connected part, its top left corner at 0, and its width and height."""
    tables = list(part.nodes)
    boxes = np.array([sizes[table] for table in tables])
    found = nx.kamada_kawai_layout(part) if len(tables) > 1 else {tables[0]: np.zeros(2)}
    points = np.array([found[table] for table in tables])
    # Longest direction across, then stretched until the labels cover about a third of the ground.
    points = points - points.mean(axis=0)
    points = points @ np.linalg.svd(points, full_matrices=False)[2].T if len(tables) > 2 else points
    extent = np.maximum(np.ptp(points, axis=0), 1e-9)
    ground = 3.0 * np.prod(boxes + _GAP, axis=1).sum()
    stretch = np.array([np.sqrt(ground * aspect), np.sqrt(ground / aspect)]) / np.maximum(extent, 0.15 * extent.max())
    points = _apart(points * stretch, boxes + _GAP)
    low, high = (points - boxes / 2).min(axis=0), (points + boxes / 2).max(axis=0)
    points = points - np.array([low[0], high[1]])
    return dict(zip(tables, points, strict=True)), high - low


def _apart(
    points: Float[np.ndarray, "tables 2"], boxes: Float[np.ndarray, "tables 2"]
) -> Float[np.ndarray, "tables 2"]:
    """The points moved, each pair along its shorter way, until no two boxes around them overlap."""
    points = points.copy()
    for _ in range(500):
        moved = False
        for i in range(len(points)):
            for j in range(i):
                overlap = (boxes[i] + boxes[j]) / 2 - np.abs(points[i] - points[j])
                if (overlap > 1e-6).all():
                    axis = int(overlap.argmin())
                    side = 1.0 if points[i, axis] >= points[j, axis] else -1.0
                    points[i, axis] += side * overlap[axis] / 2
                    points[j, axis] -= side * overlap[axis] / 2
                    moved = True
        if not moved:
            break
    return points
