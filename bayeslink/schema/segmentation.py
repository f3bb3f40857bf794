"""Words of names that are written without any mark between them: ACCOUNTSPAYABLEDETAILS.

Evidence compares words, and a glued name has none that a question would use. A schema counts as glued when one of its
names holds a run of letters longer than `LONGEST_WORD` that falls into several English words; in it every run of at
least `SHORTEST_RUN` letters is cut where the product of its words' frequencies is largest (Norvig 2009, by the
package wordsegment with Google's counts), and the words become the natural name. Names that have one already keep it.
"""

import re
from collections.abc import Iterable
from dataclasses import replace
from functools import lru_cache

from bayeslink.schema.graph import Column, SchemaGraph, Table

__all__ = ["LONGEST_WORD", "SHORTEST_RUN", "with_natural_names"]

LONGEST_WORD = 14
"""Letters that a word of a name has at most, as a rule; a count."""
SHORTEST_RUN = 8
"""Letters of the shortest run that is cut, in a schema that has longer ones; a count."""
_SHORTEST_PART = 2
_RUN = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")


def with_natural_names(graph: SchemaGraph) -> SchemaGraph:
    """The schema with natural names for tables and columns whose words are glued; the graph itself where none are."""
    names = [item.name for table in graph.tables for item in (table, *table.columns) if item.natural_name is None]
    long = {run for name in names for run in _RUN.findall(name) if len(run) > LONGEST_WORD}
    if not any(len(_words(run.lower())) > 1 for run in long):
        return graph
    return replace(graph, tables=tuple(_table(table) for table in graph.tables))


def _table(table: Table) -> Table:
    columns: Iterable[Column] = (
        column if column.natural_name else replace(column, natural_name=_natural(column.name))
        for column in table.columns
    )
    return replace(table, natural_name=table.natural_name or _natural(table.name), columns=tuple(columns))


def _natural(name: str) -> str | None:
    """The name with its long runs cut into words; None where nothing is cut."""
    long = [run for run in _RUN.findall(name) if len(run) >= SHORTEST_RUN]
    if all(len(_words(run.lower())) == 1 for run in long):
        return None
    cut = _RUN.sub(lambda run: f" {' '.join(_words(run[0].lower()))} " if run[0] in long else run[0], name)
    return " ".join(cut.replace("_", " ").split())


@lru_cache(maxsize=65536)
def _words(run: str) -> tuple[str, ...]:
    """The run's words; itself where a part would be a single letter."""
    import wordsegment

    if not wordsegment.UNIGRAMS:
        wordsegment.load()
    parts = tuple(wordsegment.segment(run))
    refused = "".join(parts) != run or any(len(part) < _SHORTEST_PART for part in parts)
    return (run,) if refused else parts
