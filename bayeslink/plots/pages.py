"""The schema graph as one SVG element, from a template.

Every name comes from a database and every question from a user: templates escape all of it. Characters that no page may
hold, or that turn the text after them around, are shown as U+FFFD.
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

MOST_LAYOUTS = 6
"""Rooms that are tried for a picture that may not be wide; a count."""

ROOM = (8.0, 4.5)
"""Inches whose shape the picture takes."""

_UNSEEN = dict.fromkeys(
    [code for code in range(0x20) if chr(code) not in "\t\n\r"]
    + [*range(0x7F, 0xA0), *range(0x202A, 0x202F), *range(0x2066, 0x206A), 0x200E, 0x200F, 0x061C, 0x2028, 0x2029]
    + [*range(0xD800, 0xE000), 0xFFFE, 0xFFFF],
    "\ufffd",
)
"""Controls, marks and overrides of direction, line separators, halves of surrogate pairs, noncharacters."""


@lru_cache(maxsize=1)
def _templates() -> Environment:
    # autoescape=True, not by file name: SVG would be left out.
    return Environment(
        loader=PackageLoader("bayeslink.plots"), autoescape=True, undefined=StrictUndefined, finalize=_legible
    )


def _legible(value: object) -> object:
    """A text without what HTML has no character for and without what reorders text beyond itself."""
    return value.translate(_UNSEEN) if isinstance(value, str) else value


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
    room: tuple[float, float] = ROOM,
    captions: Sequence[str] | None = None,
    widest: float = np.inf,
) -> str:
    """The neighbourhood of the cover as one SVG element, shaded by probability, the cover outlined.

    Args:
        names: Name of each table.
        marginals: Probability of each table.
        edges: Node positions of each edge.
        in_cover: Tables of the cover.
        room: Width and height, inches, whose shape the picture takes.
        captions: What is written below each name; its probability by default.
        widest: Pixels; a wider picture is laid out anew in a narrower room, as far as its labels allow.
    """
    below = [f"{float(p):.2f}" for p in marginals] if captions is None else list(captions)
    shown = neighbourhood(marginals, in_cover, edges)
    for narrower in range(MOST_LAYOUTS):
        graph, places, sizes = schema_layout(names, shown, edges, np.array(room) * (0.7**narrower, 1.0))
        corners = np.array([[places[t] - sizes[t] / 2, places[t] + sizes[t] / 2] for t in graph.nodes]).reshape(
            -1, 2, 2
        )
        low, high = (
            (corners.min(axis=(0, 1)), corners.max(axis=(0, 1))) if len(corners) else (np.zeros(2), np.array(room))
        )
        low, high = low - 0.1, high + 0.1
        if PIXELS * (high - low)[0] <= widest:
            break

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
                "caption": below[table],
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
