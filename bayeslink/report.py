"""A page about one link that needs nothing else: picture, tables, sets, columns, what to ask, DDL."""

from collections.abc import Sequence

import numpy as np
from markupsafe import Markup

from bayeslink.linker import Link
from bayeslink.plots.graphs import neighbourhood
from bayeslink.plots.pages import render, schema_svg
from bayeslink.plots.style import ACCENT

__all__ = ["report_page"]

MOST_COLUMNS, MOST_SETS, MOST_NAMED = 40, 5, 12
"""Rows of the tables of columns and of sets; tables of a set that a sentence names."""

NARROW, WIDEST = (2.6, 6.0), 520.0
"""Inches whose shape the picture takes on a narrow screen, and pixels from which its texts would be too small there."""

MIN_GAIN = 0.05
"""Expected information below which no question is suggested, nats."""


def report_page(link: Link, max_tokens: int | None = None, notes: Sequence[str] = ()) -> str:
    """A self-contained HTML page about a link.

    Args:
        link: What a question needs of a database.
        max_tokens: Tokens of the DDL at most; all of it by default.
        notes: Further sentences to show, such as the notice that the view is partial.
    """
    frame = link.to_frame()
    rows = [
        row | {"alone": "" if np.isnan(row["independent_probability"]) else f"{row['independent_probability']:.3f}"}
        for row in frame.to_dict(orient="records")
    ]
    marginals, cover = link.probabilities, link.cover.chosen[0]
    shown = neighbourhood(marginals, cover, link.graph.edge_array)
    left_out = link.graph.num_tables - len(shown)
    drawn = link.graph.table_names, marginals, link.graph.edge_array, cover
    columns = [] if link.columns_given_table is None else link.columns().head(MOST_COLUMNS).to_dict(orient="records")
    asked = link.clarify() if link.graph.num_tables > 1 else None
    return render(
        "report.html.j2",
        link=link,
        rows=rows[: len(shown)],
        others=rows[len(shown) :],
        sets=link.top(MOST_SETS),
        wide=Markup(schema_svg(*drawn)),
        narrow=Markup(schema_svg(*drawn, room=NARROW, widest=WIDEST)),
        hidden=f"; {left_out} less probable tables not shown" if left_out else "",
        warnings=[*notes, *link.graph.dropped, *link.graph.warnings, *link.warnings],
        reason=link.abstention.reasons[0],
        covered=float(link.cover.cover_probability[0]),
        entropy=float(link.distribution.entropy[0]),
        size=float(link.distribution.expected_size[0]),
        asked=asked if asked is not None and asked.gain_nats > MIN_GAIN else None,
        columns=columns,
        most_named=MOST_NAMED,
        ddl=link.ddl(max_tokens=max_tokens).text,
        accent=ACCENT,
    )
