"""The page and the picture of each value that shows itself in a notebook (`display`)."""

import textwrap
from functools import singledispatch
from pathlib import Path

import numpy as np
from markupsafe import Markup
from matplotlib.figure import Figure

from bayeslink.decision.covers import certified_cover
from bayeslink.decision.selection import Selection
from bayeslink.decision.sets import abstention
from bayeslink.inference.exports import checked_names
from bayeslink.inference.factored import FactoredDistribution
from bayeslink.inference.posterior import Posterior
from bayeslink.inference.predictive import SubgraphDistribution
from bayeslink.plots.graphs import draw_schema_graph, neighbourhood
from bayeslink.plots.intervals import draw_intervals
from bayeslink.plots.pages import render, schema_svg
from bayeslink.plots.style import new_figure, save

__all__ = ["figure", "page"]

LEVEL = 0.95
"""Level of the cover that a distribution shows, which has none of its own."""

MOST_ROWS, MOST_SETS, MOST_DRAWN = 24, 5, 60
"""Rows of a table, and sets, that a page shows; parameters that a figure draws."""


@singledispatch
def page(value: object) -> str:
    """What a notebook shows of a value, as HTML in which every name is escaped."""
    raise TypeError(f"value is a {type(value).__name__}, which has no page")


@singledispatch
def figure(value: object, path: Path | str | None = None, **settings) -> Figure:
    """The picture of a value; arguments as in `display.Drawn.plot`."""
    raise TypeError(f"value is a {type(value).__name__}, which has no picture")


@page.register(SubgraphDistribution)
@page.register(FactoredDistribution)
def _(value: SubgraphDistribution | FactoredDistribution) -> str:
    num_questions, num_tables = value.marginals.shape
    if not num_questions or not num_tables:
        return render("empty.html.j2", what=f"A distribution of {num_questions} questions over {num_tables} tables.")
    cover = certified_cover(value, LEVEL).selection
    names, marginals, chosen = checked_names(None, num_tables), value.marginals[0], cover.chosen[0]
    sets, probability = value.top(MOST_SETS)
    order = np.argsort(-marginals, kind="stable")
    rows = [(names[t], float(marginals[t]), bool(chosen[t]), bool(value.mode[0, t])) for t in order[:MOST_ROWS]]
    subsets = [
        (", ".join(names[t] for t in order if row[t]) or "no table", float(p))
        for row, p in zip(sets[0], probability[0], strict=True)
    ]
    return render(
        "distribution.html.j2",
        num_questions=num_questions,
        num_tables=num_tables,
        picture=Markup(schema_svg(names, marginals, value.edges, chosen)),
        hidden=num_tables - len(neighbourhood(marginals, chosen, value.edges)),
        rows=rows,
        more=num_tables - len(rows),
        sets=subsets,
        level=LEVEL,
        cover=[names[t] for t in order if chosen[t]],
        covered=float(cover.cover_probability[0]),
        entropy=float(value.entropy[0]),
        size=float(value.expected_size[0]),
        reason=abstention(value).reasons[0],
    )


@page.register(Posterior)
def _(value: Posterior) -> str:
    table = value.to_frame().reset_index(names="parameter")
    bounds = table.columns[-2:]
    shown = table.head(MOST_ROWS)
    low, high = float(shown[bounds[0]].min()), float(shown[bounds[1]].max())
    width = max(high - low, 1e-12)
    rows = [
        {
            "name": str(row["parameter"]),
            "mean": float(row["mean"]),
            "sd": float(row["sd"]),
            "low": float(row[bounds[0]]),
            "high": float(row[bounds[1]]),
            "left": round(100 * (float(row[bounds[0]]) - low) / width, 2),
            "wide": round(100 * (float(row[bounds[1]]) - float(row[bounds[0]])) / width, 2),
        }
        for row in shown.to_dict(orient="records")
    ]
    return render(
        "posterior.html.j2",
        posterior=value,
        rows=rows,
        more=len(table) - len(rows),
        failed=[name for name, passed in value.checks.items() if not passed],
        questions=value.info.get("num_questions"),
    )


@page.register(Selection)
def _(value: Selection) -> str:
    shown = value.to_frame().head(MOST_ROWS)
    rows = [row | {"tables": ", ".join(row["tables"]) or "no table"} for row in shown.to_dict(orient="records")]
    return render("selection.html.j2", rule=value.rule, rows=rows, more=len(value.chosen) - len(rows))


@figure.register(SubgraphDistribution)
@figure.register(FactoredDistribution)
def _(
    value: SubgraphDistribution | FactoredDistribution,
    path: Path | str | None = None,
    names=None,
    question: int = 0,
    title: str = "",
) -> Figure:
    one = _question(len(value.marginals), question)
    named = checked_names(names, value.num_tables)
    cover = certified_cover(value, LEVEL).selection.chosen[one]
    found = new_figure(9.0, 6.0)
    draw_schema_graph(
        found.add_subplot(),
        named,
        value.marginals[one],
        value.edges,
        cover,
        title="\n".join(textwrap.wrap(title, 90)),
    )
    return _written(found, path)


@figure.register(Posterior)
def _(value: Posterior, path: Path | str | None = None) -> Figure:
    whole = value.to_frame().reset_index(names="parameter")
    table = whole.head(MOST_DRAWN)
    found = new_figure(7.0, 1.0 + 0.25 * len(table))
    if len(whole) > len(table):
        found.suptitle(f"the first {len(table)} of {len(whole)} parameters; to_frame() has all", fontsize=9)
    draw_intervals(found.add_subplot(), table.set_axis(["parameter", "mean", "sd", "low", "high"], axis=1))
    return _written(found, path)


def _question(count: int, question: int) -> int:
    if not 0 <= question < count:
        raise ValueError(f"question={question}: there are {count}; count them from 0")
    return question


def _written(found: Figure, path: Path | str | None) -> Figure:
    if path is not None:
        save(found, path)
    return found
