"""The schema graph as one SVG element, from a template.

Every name comes from a database and every question from a user: templates escape all of it.
"""

from collections.abc import Sequence
from functools import lru_cache

import numpy as np
from jaxtyping import Bool, Float, Int
from jinja2 import Environment, PackageLoader, StrictUndefined
from matplotlib.colors import to_hex

from bayeslink.plots.graphs import neighbourhood, schema_layout, short_name
from bayeslink.plots.style import ACCENT, INK, PROBABILITY

__all__ = ["render", "schema_svg"]

PIXELS = 96.0
"""Pixels of an inch, as browsers have it."""

ROOM = np.array([8.0, 4.5])
"""Inches whose shape the picture takes."""


@lru_cache(maxsize=1)
def _templates() -> Environment:
    # autoescape=True, not by file name: SVG would be left out.
    return Environment(loader=PackageLoader("bayeslink.plots"), autoescape=True, undefined=StrictUndefined)


def render(template: str, **values: object) -> str:
    """A template of the package with these values, all text among them escaped.

    Args:
        template: Its file name.
        values: What it reads; what is markup already says so by its type (`markupsafe.Markup`).
    """
    return _templates().get_template(template).render(**values)


def schema_svg(
    names: Sequence[str],
    marginals: Float[np.ndarray, " tables"],
    edges: Int[np.ndarray, "edges 2"],
    in_cover: Bool[np.ndarray, " tables"],
) -> str:
    """The neighbourhood of the cover as one SVG element, shaded by probability, the cover outlined.

    Args:
        names: Name of each table.
        marginals: Probability of each table.
        edges: Node positions of each edge.
        in_cover: Tables of the cover.
    """
    shown = neighbourhood(marginals, in_cover, edges)
    graph, places, sizes = schema_layout(names, shown, edges, ROOM)
    corners = np.array([[places[t] - sizes[t] / 2, places[t] + sizes[t] / 2] for t in graph.nodes]).reshape(-1, 2, 2)
    low, high = (corners.min(axis=(0, 1)), corners.max(axis=(0, 1))) if len(corners) else (np.zeros(2), ROOM)
    low, high = low - 0.1, high + 0.1

    def at(point: np.ndarray) -> list[float]:
        """Pixels from the top left corner."""
        return [round(float(PIXELS * (point[0] - low[0])), 1), round(float(PIXELS * (high[1] - point[1])), 1)]

    lines = [
        dict(zip(("x1", "y1", "x2", "y2"), at(places[first]) + at(places[second]), strict=True))
        | {"strong": bool(in_cover[first] and in_cover[second])}
        for first, second in graph.edges
    ]
    nodes = []
    for table in graph.nodes:
        width, height = (round(float(PIXELS * side), 1) for side in sizes[table])
        x, y = at(places[table])
        nodes.append(
            {
                "name": names[table],
                "short": short_name(names[table]),
                "probability": f"{float(marginals[table]):.2f}",
                "x": round(x - width / 2, 1),
                "y": round(y - height / 2, 1),
                "width": width,
                "height": height,
                "middle": x,
                "first": round(y - 3, 1),
                "second": round(y + 13, 1),
                "fill": to_hex(PROBABILITY(float(marginals[table]))),
                "ink": "#ffffff" if marginals[table] > 0.55 else INK,
                "in_cover": bool(in_cover[table]),
            }
        )
    wide, tall = (round(float(PIXELS * side), 1) for side in high - low)
    label = f"{len(nodes)} tables and their foreign keys"
    return render(
        "graph.svg.j2", lines=lines, nodes=nodes, box=f"0 0 {wide} {tall}", width=wide, accent=ACCENT, label=label
    )
