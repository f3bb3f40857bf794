"""Edges of views: a view is joined to each table that its SQL reads, by a key of origin `view` without columns."""

from collections.abc import Sequence
from dataclasses import replace

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from bayeslink.schema.gold import UnresolvedQueryError, gold_tables
from bayeslink.schema.graph import Origin, RawKey, Table, build_graph

__all__ = ["view_keys", "view_query"]


def view_keys(
    tables: Sequence[Table], dialect: str, default_schema: str | None = None
) -> tuple[list[RawKey], list[str]]:
    """A key from each view to each table that it reads; one sentence for each view whose SQL cannot be resolved.

    A name that the SQL does not qualify means a table of the view's own schema first, then the only one of that name.

    Args:
        tables: Tables and views; a view without `definition` gets no key.
        dialect: sqlglot dialect of the definitions.
        default_schema: Name by which definitions may call the schema of the tables that name none.
    """
    graph = build_graph(
        "views", [replace(table, schema=table.schema or default_schema) for table in tables], (), dialect
    )
    keys: list[RawKey] = []
    notes: list[str] = []
    for place, view in enumerate(tables):
        if not view.is_view or view.definition is None:
            continue
        try:
            read = gold_tables(view_query(view.definition, dialect), graph, view.schema or default_schema)
        except UnresolvedQueryError as error:
            notes.append(f"view {view.full_name!r} has no edges: its SQL cannot be resolved ({error})")
            continue
        keys += [
            RawKey(view.name, (), tables[hit].name, (), view.schema, tables[hit].schema or "", Origin.VIEW)
            for hit in sorted(read - {place})
        ]
    return keys, notes


def view_query(definition: str, dialect: str) -> str:
    """The query of a view: of CREATE VIEW name AS query, what follows AS; any other text as it is."""
    try:
        tree = sqlglot.parse_one(definition, read=dialect)
    except (SqlglotError, RecursionError):
        return definition  # whoever reads the query will say what does not parse
    if isinstance(tree, exp.Create) and tree.expression is not None:
        return tree.expression.sql(dialect=dialect)
    return definition
