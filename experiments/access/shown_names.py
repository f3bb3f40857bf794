"""Withheld names in what is shown: the notice, the DDL, both JSON forms of the graph, and the reason of a refusal."""

import json
import re

from bayeslink.grounding.access import NOTICE, Visible
from bayeslink.grounding.ddl import prune_schema
from bayeslink.schema.graph import Column, RawKey, SchemaGraph, Table, build_graph
from bayeslink.schema.schema_lines import schema_line


def shown_names(graph: SchemaGraph, seen: Visible, reason: str, sql: str) -> int:
    """Number of withheld names that stand in something shown; a reason may repeat words of its query.

    A name that something visible has, and one that every DDL holds as a word of SQL, tells nothing and is not counted.
    """
    withheld = _names(graph) - _names(seen.graph)
    texts = shown(seen)
    known = _words(" ".join(shown(_neutral())))
    queried = sql.casefold().replace('""', '"')
    # The sentences of reasons are constant but for what they quote.
    told = " ".join(re.findall(r"'[^']*'|\"[^\"]*\"|: .*", reason))
    return sum(
        any(_stands_in(name, text) for text in texts) or (_stands_in(name, told) and name not in queried)
        for name in withheld
        if name not in known
    )


def shown(seen: Visible) -> list[str]:
    """All texts made of a visible graph; the database's own name is no secret."""
    every = prune_schema(seen.graph, range(seen.graph.num_tables))
    line = schema_line("", seen.graph)
    more = [*seen.graph.dropped, *seen.graph.warnings, *(table.definition or "" for table in seen.graph.tables)]
    return [
        seen.notice,
        every.text,
        json.dumps(every.to_dict(), ensure_ascii=False),
        json.dumps(line, ensure_ascii=False),
        *more,
    ]


def _neutral() -> Visible:
    """A graph whose DDL has every word that a DDL can have."""
    tables = [
        Table("q0", (Column("q1", "INTEGER TEXT REAL", primary_key=True),), is_view=True, definition="SELECT FROM AS")
    ]
    return Visible(build_graph("", tables, [RawKey("q0", ("q1",), "q0", ("q1",))]), NOTICE)


def _names(graph: SchemaGraph) -> set[str]:
    own = {column.name.casefold() for table in graph.tables for column in table.columns}
    return own | {table.name.casefold() for table in graph.tables}


def _words(text: str) -> set[str]:
    return set(re.findall(r"\w+", text.casefold()))


def _stands_in(name: str, text: str) -> bool:
    return re.search(rf"(?<!\w){re.escape(name)}(?!\w)", text.casefold()) is not None
