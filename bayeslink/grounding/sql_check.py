"""Whether SQL stays inside what may be seen: `check_sql`.

Every node of the syntax tree is visited by exactly one rule, and what no rule knows is refused, so that a construct
that nobody thought of is an error and never a hole. Two things follow. The check does not use the resolvers of
`schema.gold` and `schema.gold_columns`, which are made to find a meaning for as many queries as can be and guess where
a name is open; and it takes only the visible graph, so that neither its answer nor its reasons depend on what is
withheld. A query is read as one database reads it: state the dialect, and have the default schema be what the
connection's search path says.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from sqlglot import exp

from bayeslink.grounding.sql_allowed import SELECT_PARTS, SET_PARTS
from bayeslink.grounding.sql_expressions import STRUCTS, Ctes, is_star
from bayeslink.grounding.sql_scope import Level, RefusedQueryError, Source, folded, identifiers, written
from bayeslink.grounding.sql_sources import Sources, check_parts, renamed
from bayeslink.grounding.sql_text import parsed
from bayeslink.schema.graph import SchemaGraph, Table

__all__ = ["Read", "SqlCheck", "check_sql", "check_view"]

_OWN_NAME_IS_OUTSIDE = frozenset({"postgres", "redshift", "mysql", "duckdb"})
"""Dialects in which a CTE that is not recursive and reads its own name, or a later CTE's, reads a table."""
_RECURSIVE_UNASKED = frozenset({"sqlite", "tsql", "oracle"})
"""Dialects in which a CTE that reads its own name is recursive without the word."""


class Read(NamedTuple):
    """Columns of one table that a query reads; none where it counts rows alone."""

    table: str
    columns: tuple[str, ...]


@dataclass(frozen=True)
class SqlCheck:
    """The answer of `check_sql`.

    Attributes:
        allowed: Whether the query may run.
        reason: Why not, in one sentence; empty where it may.
        reads: What it reads, by full names in the order of the graph; empty where it may not run.
    """

    allowed: bool
    reason: str = ""
    reads: tuple[Read, ...] = ()


def check_sql(
    sql: str,
    allowed: SchemaGraph,
    dialect: str | None = None,
    default_schema: str | None = None,
    owner_views: bool = False,
) -> SqlCheck:
    """Whether a text is one plain query that reads nothing but tables and columns of a graph.

    What the graph lacks does not exist: it is refused in the same words as a misspelt name. Refused too is what
    cannot be parsed or resolved, a `*` of a table marked `partial`, and a function that is not known to read only its
    arguments. A view is replaced by its definition, which must pass itself.

    Args:
        sql: The text.
        allowed: What may be read, such as `visible(...).graph`.
        dialect: sqlglot dialect of the text; the graph's by default.
        default_schema: Schema in which the database looks up unqualified names, where the graph qualifies its tables.
        owner_views: Take a view for a table: it may be read whatever it reads, as databases have it.
    """
    own = allowed.dialect if dialect is None else dialect
    checker = _Checker(allowed, own, default_schema, owner_views)
    try:
        checker.check(sql)
    except RefusedQueryError as error:
        return SqlCheck(False, str(error))
    except RecursionError:
        return SqlCheck(False, "the query is nested too deeply to be checked")
    return SqlCheck(True, "", checker.told())


def check_view(view: Table, allowed: SchemaGraph, default_schema: str | None = None) -> tuple[Read, ...] | None:
    """What the definition of a view reads; None if that is not known or more than may be read.

    Args:
        view: The view.
        allowed: What may be read.
        default_schema: As in `check_sql`.
    """
    checker = _Checker(allowed, allowed.dialect, default_schema, owner_views=False)
    try:
        checker.view(view)
    except (RefusedQueryError, RecursionError):
        return None
    return checker.told()


class _Checker(Sources):
    """One check: walks the tree of a text and notes what is read."""

    def __init__(self, graph: SchemaGraph, dialect: str, default_schema: str | None, owner_views: bool) -> None:
        super().__init__(graph, dialect, default_schema, owner_views)
        self.inside: list[Table] = []
        self.passed: set[str] = set()

    def check(self, sql: str) -> None:
        """The whole text.

        Raises:
            RefusedQueryError: If it may not run.
        """
        tree = parsed(sql, self.dialect)
        if self.inside and isinstance(tree, exp.Create) and tree.kind == "VIEW":
            tree = tree.expression
        if not isinstance(tree, exp.Query):
            raise RefusedQueryError(f"the text is no query but {type(tree).__name__.upper()}; only SELECT may run")
        self.query(tree, [], {})
        # What the rules passed by would be read unseen.
        for node in tree.find_all(exp.Column, exp.Table, exp.Query, exp.Join):
            if id(node) not in self.seen:
                raise RefusedQueryError("a part of the query stands where it cannot be checked")

    def told(self) -> tuple[Read, ...]:
        """What has been read, in the order of the graph."""
        read = [table for table in self.graph.tables if table.full_name in self.reads]
        names = [self.reads[table.full_name] for table in read]
        return tuple(
            Read(table.full_name, tuple(column.name for column in table.columns if column.name in own))
            for table, own in zip(read, names, strict=True)
        )

    def view(self, table: Table) -> None:
        """Checks the definition of a view in place of the view.

        Raises:
            RefusedQueryError: If it is not known or reads more than may be read; the reason does not quote it.
        """
        if table.full_name in self.passed:
            return
        if table in self.inside or table.definition is None:
            raise RefusedQueryError(f"what the view {table.full_name!r} reads cannot be checked")
        self.inside.append(table)
        seen, self.seen = self.seen, set()
        try:
            self.check(table.definition)
        except RefusedQueryError as error:
            raise RefusedQueryError(f"the view {table.full_name!r} reads more than may be read") from error
        finally:
            self.seen = seen
            self.inside.pop()
        self.passed.add(table.full_name)

    def query(self, node: exp.Expression, levels: Sequence[Level], ctes: Ctes) -> Source:
        """A query at any depth: a source whose columns are its results."""
        self.seen.add(id(node))
        if isinstance(node, exp.Select):
            return self.select(node, levels, ctes)
        if isinstance(node, exp.SetOperation):
            check_parts(node, SET_PARTS)
            ctes = self.with_(node, levels, ctes)
            found = self.query(node.this, levels, ctes)
            other = self.query(node.expression, levels, ctes)
            self.ends(node, {*found.names, *other.names}, levels, ctes)
            return found
        if isinstance(node, exp.Subquery):
            check_parts(node, SET_PARTS | {"alias", "joins"})
            ctes = self.with_(node, levels, ctes)
            found = self.query(node.this, levels, ctes)
            self.ends(node, set(found.names), levels, ctes)
            return found
        if isinstance(node, exp.Values):
            check_parts(node, {"expressions", "alias"})
            self.visit(node.expressions, levels, ctes)
            row = node.expressions[0] if node.expressions else None
            width = len(row.expressions) if isinstance(row, exp.Tuple) else 1
            return Source("", (None,) * width)
        raise RefusedQueryError(f"{written(node)} is no query that can be checked")

    def select(self, node: exp.Select, outer: Sequence[Level], ctes: Ctes) -> Source:
        check_parts(node, SELECT_PARTS)
        if node.args.get("kind") not in (None, "STRUCT"):
            raise RefusedQueryError(f"SELECT AS {node.args['kind']} cannot be checked")
        ctes = self.with_(node, outer, ctes)
        level = Level()
        from_ = node.args.get("from_")
        if from_ is not None:
            check_parts(from_, {"this"})
        self.joined(from_.this if from_ is not None else None, node.args.get("joins") or [], level, outer, ctes)
        level.aliases = {
            folded(item.args["alias"], self.dialect) for item in node.expressions if isinstance(item, exp.Alias)
        }
        levels = [level, *outer]
        names: list[str | None] = []
        certain = node.args.get("kind") is None
        for item in node.expressions:
            if is_star(item):
                starred, sure = self.star(item, levels, ctes)
                names += starred
                certain = certain and sure
                continue
            self.visit([item], levels, ctes)
            names.append(self.result_name(item))
        for clause in ("distinct", "where", "group", "having", "qualify", "windows"):
            found = node.args.get(clause)
            self.visit(found if isinstance(found, list) else [found] if found is not None else [], levels, ctes)
        self.ends(node, {*names, *level.aliases}, levels, ctes)
        return Source("", tuple(names), certain=certain)

    def ends(self, node: exp.Expression, results: set[str | None], levels: Sequence[Level], ctes: Ctes) -> None:
        """ORDER BY, LIMIT and OFFSET; a name alone in ORDER BY means a result before it means a column."""
        for clause in ("limit", "offset"):
            found = node.args.get(clause)
            self.visit([found] if found is not None else [], levels, ctes)
        order = node.args.get("order")
        if order is None:
            return
        check_parts(order, {"expressions"})
        for item in order.expressions:
            column = item.this if isinstance(item, exp.Ordered) else item
            if isinstance(column, exp.Collate) and not isinstance(node, exp.Select):
                column = column.this
            if (
                isinstance(column, exp.Column)
                and len(identifiers(column)) == 1
                and folded(column.this, self.dialect) in results
            ):
                self.seen.add(id(column))
            elif isinstance(node, exp.Select):
                self.visit([item], levels, ctes)
            elif not isinstance(column, exp.Literal):
                raise RefusedQueryError(f"ORDER BY {written(column)} is no column of the result")

    def with_(self, node: exp.Expression, levels: Sequence[Level], ctes: Ctes) -> Ctes:
        with_ = node.args.get("with_")
        if with_ is None:
            return ctes
        check_parts(with_, {"expressions", "recursive"})
        recursive = bool(with_.args.get("recursive"))
        known = dict(ctes)
        names = [folded(cte.args["alias"].this, self.dialect) for cte in with_.expressions]
        if len(set(names)) < len(names):
            raise RefusedQueryError("two common table expressions have one name")
        if recursive or self.dialect not in _OWN_NAME_IS_OUTSIDE:
            known |= dict.fromkeys(names)
        for cte, name in zip(with_.expressions, names, strict=True):
            check_parts(cte, {"this", "alias", "materialized"})
            body = cte.this
            itself = recursive or self.dialect in _RECURSIVE_UNASKED
            if itself and isinstance(body, exp.SetOperation):
                self.recursive(cte, body, levels, known)
            known[name] = self.cte(cte, self.query(body, levels, known))
        return known

    def recursive(self, cte: exp.CTE, body: exp.SetOperation, levels: Sequence[Level], known: dict) -> None:
        """Lets the body of a common table expression read itself, with the columns of its first SELECT."""
        first: exp.Expression = body
        while isinstance(first, (exp.SetOperation, exp.Subquery)):
            if first.args.get("with_") is not None:
                return
            first = first.this
        # The first part cannot read the name: it is not known yet.
        known[folded(cte.args["alias"].this, self.dialect)] = self.cte(cte, self.query(first, levels, known))

    def cte(self, cte: exp.CTE, found: Source) -> Source:
        """What the name of a common table expression stands for."""
        alias = cte.args["alias"]
        names = [folded(column, self.dialect) for column in alias.columns]
        return replace(renamed(found, folded(alias.this, self.dialect), names), spelling=alias.this.name)

    def result_name(self, item: exp.Expression) -> str | None:
        """Folded name of a result; None where databases name it differently."""
        if isinstance(item, exp.Alias):
            return folded(item.args["alias"], self.dialect)
        plain = isinstance(item, exp.Column) and (self.dialect not in STRUCTS or len(identifiers(item)) == 1)
        return folded(item.this, self.dialect) if plain else None
