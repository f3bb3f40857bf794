"""What a notebook shows of a linker and of a link."""

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from markupsafe import Markup
from matplotlib.figure import Figure

from bayeslink.plots.graphs import draw_schema_graph, neighbourhood
from bayeslink.plots.pages import render, schema_svg
from bayeslink.plots.style import new_figure, save
from bayeslink.schema.exports import schema_frame
from bayeslink.schema.graph import SchemaGraph

if TYPE_CHECKING:
    from bayeslink.linker import Link, SchemaLinker

__all__ = ["link_view", "linker_view", "schema_figure"]

MOST_ROWS = 24
"""Tables that a view lists; a count."""


def link_view(link: "Link") -> str:
    """A link as HTML: picture, a row for each of the most probable tables, cover, and whether it would ask."""
    frame, marginals, cover = link.to_frame(), link.probabilities, link.cover.chosen[0]
    rows = [
        row | {"alone": "" if np.isnan(row["independent_probability"]) else f"{row['independent_probability']:.2f}"}
        for row in frame.head(MOST_ROWS).to_dict(orient="records")
    ]
    return render(
        "link.html.j2",
        link=link,
        rows=rows,
        more=len(frame) - len(rows),
        picture=Markup(schema_svg(link.graph.table_names, marginals, link.graph.edge_array, cover)),
        hidden=link.graph.num_tables - len(neighbourhood(marginals, cover, link.graph.edge_array)),
        reason=link.abstention.reasons[0],
        covered=float(link.cover.cover_probability[0]),
        entropy=float(link.distribution.entropy[0]),
    )


def linker_view(linker: "SchemaLinker") -> str:
    """A linker as HTML: the schema, the posterior, and what was not read."""
    graph = linker.graph
    frame = schema_frame(graph)
    rows = [row | {"joined_to": ", ".join(row["joined_to"])} for row in frame.head(MOST_ROWS).to_dict(orient="records")]
    none = np.zeros(graph.num_tables, dtype=bool)
    shade = _most_joined(graph)
    captions = [f"{columns} columns" for columns in frame["columns"]]
    return render(
        "linker.html.j2",
        graph=graph,
        name=linker.name,
        variant=linker.variant.value,
        channels=[channel.name for channel in linker.channels],
        rows=rows,
        more=len(frame) - len(rows),
        picture=Markup(schema_svg(graph.table_names, shade, graph.edge_array, none, captions=captions)),
        hidden=graph.num_tables - len(neighbourhood(shade, none, graph.edge_array)),
        notes=[*graph.dropped, *graph.warnings],
    )


def schema_figure(graph: SchemaGraph, path: Path | str | None = None) -> Figure:
    """The schema graph of a linker, before any question; written to `path` where given."""
    figure = new_figure(9.0, 6.0)
    frame, none = schema_frame(graph), np.zeros(graph.num_tables, dtype=bool)
    captions = [f"{columns} columns" for columns in frame["columns"]]
    axes = draw_schema_graph(
        figure.add_subplot(), graph.table_names, _most_joined(graph), graph.edge_array, none, graph.name, captions
    )
    # The legend is about probabilities, and there are none.
    if (legend := axes.get_legend()) is not None:
        legend.remove()
    if path is not None:
        save(figure, path)
    return figure


def _most_joined(graph: SchemaGraph) -> np.ndarray:
    """Next to nothing, and more for tables with many edges: of a large schema these are drawn, and none is shaded."""
    return 1e-6 * np.bincount(graph.edge_array.ravel(), minlength=graph.num_tables)
