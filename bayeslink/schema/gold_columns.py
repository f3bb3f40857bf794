"""Gold columns: the physical columns that a gold SQL query reads, resolved through scopes.

sqlglot qualifies every column with the source that it comes from, common table expressions, aliases, subqueries and
NATURAL or USING joins included, and spells out `*`; what comes from a physical table is a gold column. COUNT(*) reads
no column. A word in double quotes that no source has is a string in SQLite. An unqualified column that cannot be told
(two sources could have it, or none has) is left out and listed; a qualified one that its table lacks fails the query.
"""

from typing import NamedTuple

from sqlglot import exp
from sqlglot.errors import SqlglotError
from sqlglot.optimizer.qualify import qualify
from sqlglot.optimizer.scope import Scope, traverse_scope

from bayeslink.schema.gold import UnresolvedQueryError, parsed_query
from bayeslink.schema.graph import SchemaGraph

__all__ = ["GoldColumns", "gold_columns"]


class GoldColumns(NamedTuple):
    """What a query reads.

    Attributes:
        columns: (table, column) positions in the graph.
        unknown: Names in the query that could not be told to be a column of one table.
    """

    columns: frozenset[tuple[int, int]]
    unknown: tuple[str, ...]


def gold_columns(query: str, graph: SchemaGraph) -> GoldColumns:
    """Positions of the columns that a query reads; none for COUNT(*) alone.

    Args:
        query: SQL in the graph's dialect.
        graph: The schema.

    Raises:
        UnresolvedQueryError: If the query does not parse, is not a query, or cannot be resolved.
    """
    tree = parsed_query(query, graph.dialect)
    places = {table.name.casefold(): place for place, table in enumerate(graph.tables)}
    places |= {table.full_name.casefold(): place for place, table in enumerate(graph.tables)}
    schema: dict[str, object] = {
        table.name.casefold(): {column.name.casefold(): column.type or "TEXT" for column in table.columns}
        for table in graph.tables
        if table.columns
    }
    for name in tree.find_all(exp.Identifier):
        name.set("this", name.name.casefold())
    try:
        whole = qualify(
            tree,
            dialect=graph.dialect,
            schema=schema,
            validate_qualify_columns=False,
            identify=False,
            quote_identifiers=False,
            canonicalize_table_aliases=False,
        )
        scopes = list(traverse_scope(whole))
    except (SqlglotError, RecursionError, KeyError, AttributeError) as error:
        reason = " ".join(str(error).split())[:200]
        raise UnresolvedQueryError(f"columns cannot be resolved: {reason}") from error
    found: set[tuple[int, int]] = set()
    unknown: set[str] = set()
    for scope in scopes:
        for column in scope.columns:
            hit = _physical(column, scope, places, graph)
            if hit is not None:
                found.add(hit)
            elif not _is_known(column, scope) and not (graph.dialect == "sqlite" and column.this.quoted):
                unknown.add(column.sql())
    return GoldColumns(frozenset(found), tuple(sorted(unknown)))


def _source(column: exp.Column, scope: Scope) -> exp.Expression | Scope | None:
    """What the column's qualifier names, in its own scope or one around it."""
    around: Scope | None = scope
    while around is not None:
        if column.table in around.sources:
            return around.sources[column.table]
        around = around.parent
    return None


def _physical(column: exp.Column, scope: Scope, places: dict[str, int], graph: SchemaGraph) -> tuple[int, int] | None:
    source = _source(column, scope)
    if not isinstance(source, exp.Table):
        return None
    full = ".".join(part.name for part in source.parts).casefold()
    table = places.get(full, places.get(source.name.casefold()))
    if table is None:
        return None
    names = [item.name.casefold() for item in graph.tables[table].columns]
    wanted = column.name.casefold()
    return (table, names.index(wanted)) if wanted in names else None


def _is_known(column: exp.Column, scope: Scope) -> bool:
    """Whether the column comes from a query inside the query, or names a result of its own SELECT."""
    if isinstance(_source(column, scope), Scope):
        return True
    results = scope.expression.selects if isinstance(scope.expression, exp.Query) else []
    named = [item for item in results if item.alias_or_name == column.name]
    return not column.table and any(all(column is not inner for inner in item.find_all(exp.Column)) for item in named)
