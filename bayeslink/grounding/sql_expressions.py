"""Expressions of a query: columns, stars, fields and functions; what they read is noted or refused.

Every node is visited by one rule. A kind of syntax without a rule is visited by its parts, if `is_allowed` knows it.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence

from sqlglot import exp

from bayeslink.grounding.sql_allowed import is_allowed
from bayeslink.grounding.sql_scope import (
    Level,
    RefusedQueryError,
    Source,
    find_column,
    find_source,
    folded,
    identifiers,
    written,
)
from bayeslink.schema.graph import SchemaGraph, Table

__all__ = ["STRUCTS", "Ctes", "Expressions", "is_star"]

Ctes = Mapping[str, Source | None]
"""What the names of common table expressions stand for; None for one that cannot be read yet."""

STRUCTS = frozenset({"bigquery", "duckdb", "snowflake", "databricks", "spark", "clickhouse", "trino", "presto"})
"""Dialects in which a.b may be a field of column a."""
_WHOLE_ROWS = frozenset({"postgres", "redshift", "bigquery", "duckdb"})
"""Dialects in which a table's name stands for its row."""


def is_star(node: exp.Expression) -> bool:
    """Whether this is `*` or `t.*`."""
    return isinstance(node, exp.Star) or (isinstance(node, exp.Column) and isinstance(node.this, exp.Star))


class Expressions(ABC):
    """Visits expressions and notes what they read.

    Attributes:
        graph: What may be read.
        dialect: sqlglot dialect.
        reads: Names of the columns read, by full name of their table.
        seen: Ids of the nodes that a rule has visited.
    """

    def __init__(self, graph: SchemaGraph, dialect: str) -> None:
        self.graph, self.dialect = graph, dialect
        self.reads: dict[str, set[str]] = {}
        self.seen: set[int] = set()

    @abstractmethod
    def query(self, node: exp.Expression, levels: Sequence[Level], ctes: Ctes) -> Source:
        """What a query inside the query returns."""

    @abstractmethod
    def named(self, parts: Sequence[exp.Expression], alias: str | None, names: list[str], ctes: Ctes) -> Source:
        """What a name in FROM stands for."""

    def visit(self, nodes: Sequence[exp.Expression], levels: Sequence[Level], ctes: Ctes) -> None:
        """Expressions and all that they are made of.

        Raises:
            RefusedQueryError: If they read, or may read, what may not be read.
        """
        # A stack and not recursion: conditions nest as deep as they are long.
        stack = list(nodes)
        while stack:
            node = stack.pop()
            if isinstance(node, exp.Query):
                self.query(node, levels, ctes)
            elif is_star(node):
                self.star(node, levels, ctes)
            elif isinstance(node, exp.Column):
                self.column(node, levels)
            elif not is_allowed(node):
                raise RefusedQueryError(f"{written(node)} is not known to be safe ({type(node).__name__})")
            elif isinstance(node, exp.Count) and isinstance(node.this, exp.Star) and not any(node.this.args.values()):
                continue  # it counts rows
            elif isinstance(node, exp.In) and node.args.get("field") is not None and self.dialect == "sqlite":
                self.in_table(node.args["field"], ctes)
                stack += [child for child in node.iter_expressions() if child is not node.args["field"]]
            else:
                stack += node.iter_expressions()

    def in_table(self, node: exp.Expression, ctes: Ctes) -> None:
        """SQLite reads `x IN name` as a table, the parser as a column."""
        if not isinstance(node, exp.Column):
            raise RefusedQueryError(f"IN {written(node)} cannot be checked")
        self.seen.add(id(node))
        self.whole(self.named(identifiers(node), None, [], ctes))

    def column(self, node: exp.Column, levels: Sequence[Level]) -> None:
        """A column, a field of one, or a table's row."""
        self.seen.add(id(node))
        if node.args.get("join_mark"):
            raise RefusedQueryError(f"{written(node)}: write the join with JOIN")
        written_parts = identifiers(node)
        shown = ".".join(part.name for part in written_parts)
        parts = [folded(part, self.dialect) for part in written_parts]
        for length in range(len(parts) - 1, 0, -1):
            source = find_source(parts[:length], levels)
            if source is None or (length < len(parts) - 1 and self.dialect not in STRUCTS):
                continue
            partial = any(other.partial for level in levels for other in level.sources)
            if parts[length] not in source.names:
                raise RefusedQueryError(f"there is no column {shown!r}")
            # A field of an inner table's column would be meant before a column of a table outside.
            if partial and (not source.certain or (self.dialect in STRUCTS and source not in levels[0].sources)):
                raise RefusedQueryError(f"column {shown!r} cannot be told from others; rename it")
            self.note(source, source.names.index(parts[length]))
            return
        if len(parts) > 1 and self.dialect not in STRUCTS:
            raise RefusedQueryError(f"there is no column {shown!r}")
        try:
            hits = find_column(parts[0], levels, written_parts[0].name)
        except RefusedQueryError:
            if self.is_string(node, levels):
                return
            row = find_source(parts, levels) if len(parts) == 1 and self.dialect in _WHOLE_ROWS else None
            # A column that cannot be seen would be meant before the row.
            if row is None or any(source.partial for level in levels for source in level.sources):
                raise
            self.whole(row)
            return
        for source, place in hits:
            self.note(source, place)

    def is_string(self, node: exp.Column, levels: Sequence[Level]) -> bool:
        """Whether SQLite is sure to read an unknown "word" as a string: no table here can have such a column."""
        sources = [source for level in levels for source in level.sources]
        word = node.this
        quoted = isinstance(word, exp.Identifier) and word.quoted and len(identifiers(node)) == 1
        is_row = word.name.lower() in ("rowid", "oid", "_rowid_")
        return self.dialect == "sqlite" and quoted and not is_row and not any(source.partial for source in sources)

    def star(self, node: exp.Expression, levels: Sequence[Level], ctes: Ctes) -> tuple[list[str | None], bool]:
        """Names of the columns that `*` or `t.*` stands for, and whether every database says the same."""
        self.seen.add(id(node))
        star = node if isinstance(node, exp.Star) else node.this
        if unknown := [name for name, value in star.args.items() if value and name not in ("except_", "replace")]:
            raise RefusedQueryError(f"{written(node)}: {unknown[0].upper()} cannot be checked; name the columns")
        if isinstance(node, exp.Column):
            source = find_source([folded(part, self.dialect) for part in identifiers(node)[:-1]], levels)
            sources = [] if source is None else [source]
        else:
            sources = levels[0].sources if levels else []
        if not sources:
            raise RefusedQueryError(f"{written(node)} stands for no table")
        names: list[str | None] = []
        for source in sources:
            self.whole(source)
            merged = levels[0].merged if isinstance(node, exp.Star) else set()
            names += [name for name in source.names if name not in merged or name not in names]
        left_out = set()
        for item in star.args.get("except_") or []:
            self.seen.add(id(item))
            left_out.add(folded(item.this if isinstance(item, exp.Column) else item, self.dialect))
        self.visit(star.args.get("replace") or [], levels, ctes)
        return [name for name in names if name not in left_out], all(source.certain for source in sources)

    def whole(self, source: Source) -> None:
        """All columns of a source are read."""
        if source.partial:
            raise RefusedQueryError(f"all columns of {source.alias!r} are more than may be read; name the columns")
        for place in range(len(source.names)):
            self.note(source, place)

    def note(self, source: Source, place: int) -> None:
        """One column of a source is read."""
        if source.table is not None:
            self.noted(source.table).add(source.table.columns[place].name)

    def noted(self, table: Table) -> set[str]:
        """Names of the columns of a table that are read, to be added to."""
        return self.reads.setdefault(table.full_name, set())
