"""Gold columns: the physical columns that a gold SQL query reads, resolved through scopes.

Tables are found as in `gold`. sqlglot then qualifies every column with the source that it comes from, common table
expressions, aliases, subqueries and NATURAL or USING joins included, and spells out `*`, wherever it stands: in
EXISTS (SELECT * ...) too. What comes from a physical table is a gold column; of a table that stands for several, the
column of each that has it. COUNT(*) reads no column. A word in double quotes that no source has is a string in SQLite.
An unqualified column that cannot be told (two sources could have it, or none has) is left out and listed; a qualified
one that its table lacks fails the query.
"""

import re
from typing import NamedTuple

from sqlglot import exp
from sqlglot.errors import SqlglotError
from sqlglot.optimizer.qualify import qualify
from sqlglot.optimizer.scope import Scope, traverse_scope

from bayeslink.schema.gold import TableNames, UnresolvedQueryError, parsed_query
from bayeslink.schema.graph import SchemaGraph

__all__ = ["GoldColumns", "gold_columns", "told_columns"]


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
    for name in tree.find_all(exp.Identifier):
        name.set("this", name.name.casefold())
    for column in tree.find_all(exp.Column):
        # The qualifier alone names the source, once its tables have names of their own.
        column.set("db", None)
        column.set("catalog", None)
    try:
        tables = _renamed(tree, graph)
        whole = qualify(
            tree,
            dialect=graph.dialect,
            schema={name: _columns(graph, places) for name, places in tables.items()},
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
            hits = _physical(column, scope, tables, graph)
            found |= hits
            if not hits and not _is_known(column, scope) and not _is_string(column, query, graph):
                unknown.add(column.sql())
    return GoldColumns(frozenset(found), tuple(sorted(unknown)))


def told_columns(query: str | None, graph: SchemaGraph) -> frozenset[tuple[int, int]] | None:
    """Positions of the columns that a query reads; None where they cannot all be told.

    Args:
        query: SQL in the graph's dialect, or None.
        graph: The schema.
    """
    try:
        found = gold_columns(query or "", graph)
    except UnresolvedQueryError:
        return None
    return None if found.unknown else found.columns


def _renamed(tree: exp.Expression, graph: SchemaGraph) -> dict[str, set[int]]:
    """Gives every physical table in the tree a name of its own, its old one as alias; positions by that name."""
    names, tables = TableNames(graph), {}
    for scope in traverse_scope(tree):
        for source in scope.sources.values():
            if not isinstance(source, exp.Table) or not all(isinstance(part, exp.Identifier) for part in source.parts):
                continue
            hits = names.find([part.name for part in source.parts])
            if not hits:
                raise UnresolvedQueryError(f"unknown table {'.'.join(part.name for part in source.parts)}")
            own = "physical_" + "_".join(map(str, sorted(hits)))
            tables[own] = hits
            if not source.alias:
                source.set("alias", exp.TableAlias(this=exp.to_identifier(source.name, quoted=True)))
            source.set("this", exp.to_identifier(own))
            source.set("db", None)
            source.set("catalog", None)
    return tables


def _columns(graph: SchemaGraph, places: set[int]) -> dict[str, str]:
    """Names and types of all columns of some tables."""
    listed = (column for place in sorted(places) for column in graph.tables[place].columns)
    # A table without columns must not let its query's columns pass for anybody's.
    return {column.name.casefold(): column.type or "TEXT" for column in listed} or {"": "TEXT"}


def _source(column: exp.Column, scope: Scope) -> exp.Expression | Scope | None:
    """What the column's qualifier names, in its own scope or one around it."""
    around: Scope | None = scope
    while around is not None:
        if column.table in around.sources:
            return around.sources[column.table]
        around = around.parent
    return None


def _physical(
    column: exp.Column, scope: Scope, tables: dict[str, set[int]], graph: SchemaGraph
) -> set[tuple[int, int]]:
    """(table, column) of each physical column that is meant."""
    source = _source(column, scope)
    found: set[tuple[int, int]] = set()
    for table in tables.get(source.name, ()) if isinstance(source, exp.Table) else ():
        names = [item.name.casefold() for item in graph.tables[table].columns]
        if column.name.casefold() in names:
            found.add((table, names.index(column.name.casefold())))
    return found


def _is_string(column: exp.Column, query: str, graph: SchemaGraph) -> bool:
    """Whether the name stands in double quotes, which SQLite reads as a string where no column has it."""
    quoted = re.escape('"' + column.name.replace('"', '""') + '"')
    return graph.dialect == "sqlite" and not column.table and re.search(quoted, query, re.IGNORECASE) is not None


def _is_known(column: exp.Column, scope: Scope) -> bool:
    """Whether the column comes from a query inside the query, or names a result of its own SELECT."""
    if isinstance(_source(column, scope), Scope):
        return True
    results = scope.expression.selects if isinstance(scope.expression, exp.Query) else []
    named = [item for item in results if item.alias_or_name == column.name]
    return not column.table and any(all(column is not inner for inner in item.find_all(exp.Column)) for item in named)
