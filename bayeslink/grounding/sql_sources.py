"""The FROM clause: tables, queries, functions and their joins, as the sources in which names are looked up."""

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import replace

from sqlglot import exp

from bayeslink.grounding.sql_allowed import TABLE_FUNCTIONS
from bayeslink.grounding.sql_expressions import Ctes, Expressions
from bayeslink.grounding.sql_scope import (
    Level,
    RefusedQueryError,
    Source,
    find_table,
    folded,
    identifiers,
    same_spelling,
    table_source,
    written,
)
from bayeslink.schema.graph import SchemaGraph, Table

__all__ = ["Sources", "check_parts", "renamed"]


def check_parts(node: exp.Expression, known: frozenset[str] | set[str]) -> None:
    """Refuses a node that has parts which no rule knows.

    Raises:
        RefusedQueryError: If it has.
    """
    unknown = [name for name, value in node.args.items() if value and name not in known]
    if unknown:
        raise RefusedQueryError(f"{unknown[0].strip('_').upper()} in {written(node)} cannot be checked")


def renamed(found: Source, alias: str, names: Sequence[str]) -> Source:
    """What a query returns, under an alias and with new names for its first columns, if any are given.

    Raises:
        RefusedQueryError: If there are more names than columns.
    """
    if len(names) > len(found.names):
        if found.certain:
            raise RefusedQueryError(f"{len(names)} names are given to {len(found.names)} columns")
        return replace(found, alias=alias, names=tuple(names), certain=True)
    certain = found.certain or 0 < len(names) == len(found.names)
    return replace(found, alias=alias, names=(*names, *found.names[len(names) :]), certain=certain)


class Sources(Expressions):
    """Visits FROM clauses."""

    def __init__(self, graph: SchemaGraph, dialect: str, default_schema: str | None, owner_views: bool) -> None:
        super().__init__(graph, dialect)
        self.default_schema, self.owner_views = default_schema, owner_views

    @abstractmethod
    def view(self, table: Table) -> None:
        """Checks what a view reads."""

    def joined(
        self,
        first: exp.Expression | None,
        joins: Sequence[exp.Expression],
        level: Level,
        outer: Sequence[Level],
        ctes: Ctes,
    ) -> None:
        """Adds the sources of a FROM clause to a level, and visits the conditions of its joins."""
        if first is not None:
            self.add(first, level, [], outer, ctes)
        group = Level(list(level.sources), level.merged)
        before = Level(merged=level.merged)
        for join in joins:
            self.seen.add(id(join))
            check_parts(join, {"this", "on", "side", "kind", "using", "method"})
            if (join.args.get("kind") or "").upper() not in ("", "INNER", "OUTER", "CROSS"):
                raise RefusedQueryError(f"{join.args['kind']} JOIN cannot be checked")
            method = (join.args.get("method") or "").upper()
            if method not in ("", "NATURAL"):
                raise RefusedQueryError(f"{method} JOIN cannot be checked")
            is_comma = not any(join.args.get(name) for name in ("on", "side", "kind", "using", "method"))
            if is_comma:
                # JOIN binds closer than a comma: its condition need not see what stands before.
                before.sources += group.sources
                group.sources = []
            left = list(group.sources)
            new = self.add(join.this, level, [group, before], outer, ctes)
            group.sources += new
            if method == "NATURAL":
                self.natural(left, new, level)
            for name in join.args.get("using") or []:
                self.using(name, left, new, level)
            on = join.args.get("on")
            self.visit([on] if on is not None else [], [group, before, *outer], ctes)

    def natural(self, left: Sequence[Source], right: Sequence[Source], level: Level) -> None:
        """A NATURAL JOIN compares all columns of equal name, those too that cannot be seen."""
        if any(source.partial for source in (*left, *right)):
            raise RefusedQueryError("NATURAL JOIN may compare more columns than may be read; write ON or USING")
        shared = {name for source in left for name in source.names} & {n for source in right for n in source.names}
        for name in shared:
            if name is not None:
                self.merge(name, [*left, *right], level)

    def using(self, node: exp.Expression, left: Sequence[Source], right: Sequence[Source], level: Level) -> None:
        """USING compares the column with that of any table before."""
        name = folded(node, self.dialect)
        lacking = [source for source in (*left, *right) if name not in source.names]
        if any(source.partial or not source.certain for source in lacking):
            raise RefusedQueryError(f"USING ({node.name}) may mean a column that may not be read; write ON")
        if not all(any(name in source.names for source in side) for side in (left, right)):
            raise RefusedQueryError(f"there is no column {node.name!r} on both sides of USING")
        self.merge(name, [*left, *right], level)

    def merge(self, name: str, sources: Sequence[Source], level: Level) -> None:
        """Makes one column of those of a name."""
        level.merged.add(name)
        for source in sources:
            if name in source.names:
                self.note(source, source.names.index(name))

    def add(
        self, node: exp.Expression, level: Level, siblings: Sequence[Level], outer: Sequence[Level], ctes: Ctes
    ) -> list[Source]:
        """Adds what stands at one place of FROM, several sources for joins in parentheses, and returns it."""
        new = self.sources(node, siblings, outer, ctes)
        for source in new:
            for other in level.sources:
                if source.alias and source.alias == other.alias and source.schema == other.schema:
                    raise RefusedQueryError(f"two tables are called {source.alias!r}; give them aliases")
            level.sources.append(source)
        return new

    def sources(
        self, node: exp.Expression, siblings: Sequence[Level], outer: Sequence[Level], ctes: Ctes
    ) -> list[Source]:
        """The sources that stand at one place of FROM; those before it are the siblings."""
        alias, names = self.alias(node)
        lateral = [*siblings, *outer]
        if isinstance(node, exp.Table):
            self.seen.add(id(node))
            if isinstance(node.this, exp.Func):
                check_parts(node, {"this", "alias", "joins", "ordinality"})
                own = self.function(node.this, alias, names, lateral, ctes)
            else:
                check_parts(node, {"this", "db", "catalog", "alias", "joins"})
                own = self.named(identifiers(node), alias, names, ctes)
            return self.with_joins(node, [own], outer, ctes)
        if isinstance(node, exp.Subquery) and isinstance(node.this, exp.Table):
            self.seen.add(id(node))
            check_parts(node, {"this", "alias", "joins"})
            inside = self.sources(node.this, [], outer, ctes)
            if alias is not None or names:
                if len(inside) > 1 or names:
                    raise RefusedQueryError(f"an alias of what stands in parentheses cannot be checked: {alias!r}")
                inside = [replace(inside[0], alias=alias, schema=None)]
            return self.with_joins(node, inside, outer, ctes)
        if isinstance(node, exp.Subquery):
            # DuckDB looks among the tables before it, unasked.
            around = lateral if self.dialect == "duckdb" else outer
            own = renamed(self.query(node, around, ctes), alias or "", names)
            return self.with_joins(node, [own], outer, ctes)
        if isinstance(node, exp.Unnest):
            check_parts(node, {"expressions", "alias", "offset"})
            return [self.function(node, alias, names, lateral, ctes)]
        if isinstance(node, exp.Lateral):
            check_parts(node, {"this", "alias", "cross_apply"})
            if isinstance(node.this, exp.Func):
                return [self.function(node.this, alias, names, lateral, ctes)]
            return [renamed(self.query(node.this, lateral, ctes), alias or "", names)]
        if isinstance(node, exp.Values):
            return [renamed(self.query(node, outer, ctes), alias or "", names)]
        raise RefusedQueryError(f"{written(node)} in FROM cannot be checked")

    def with_joins(self, node: exp.Expression, own: list[Source], outer: Sequence[Level], ctes: Ctes) -> list[Source]:
        """The sources of a table and of the joins that hang on it, as they do in parentheses."""
        level = Level(list(own))
        joins = node.args.get("joins") or []
        if joins:
            self.joined(None, joins, level, outer, ctes)
            if level.merged:
                raise RefusedQueryError("USING or NATURAL in parentheses cannot be checked; write ON")
        return level.sources

    def named(self, parts: Sequence[exp.Expression], alias: str | None, names: list[str], ctes: Ctes) -> Source:
        """A table, a view or a common table expression."""
        name = folded(parts[-1], self.dialect)
        if len(parts) == 1 and name in ctes:
            found = ctes[name]
            if found is None:
                raise RefusedQueryError(f"{parts[0].name!r} is read before it is defined")
            if not same_spelling(parts[0].name, found.spelling, self.dialect):
                raise RefusedQueryError(f"{parts[0].name!r} is spelled {found.spelling!r} where it is defined")
            return renamed(found, alias or name, names)
        table = find_table(parts, self.graph, self.dialect, self.default_schema)
        self.noted(table)
        if table.is_view and not self.owner_views:
            self.view(table)
        return table_source(table, alias, names, self.dialect)

    def function(
        self, node: exp.Expression, alias: str | None, names: list[str], levels: Sequence[Level], ctes: Ctes
    ) -> Source:
        """A function that makes rows."""
        name = node.this.lower() if isinstance(node, exp.Anonymous) and isinstance(node.this, str) else node.key
        name = {"explodinggenerateseries": "generate_series", "generateseries": "generate_series"}.get(name, name)
        if name not in TABLE_FUNCTIONS:
            raise RefusedQueryError(f"function {name!r} in FROM is not known to read only its arguments")
        offset = node.args.get("offset")
        self.visit(
            [child for child in node.iter_expressions() if child.arg_key not in ("alias", "offset")], levels, ctes
        )
        own = [*TABLE_FUNCTIONS[name], *([alias] if alias else [])]
        if isinstance(offset, exp.Expression):
            own.append(folded(offset, self.dialect))
        # What a database calls the columns differs: only names that the query gives are sure.
        found = Source(alias or name, tuple(own), certain=self.dialect == "sqlite" and name.startswith("json_"))
        return renamed(replace(found, certain=False), found.alias, names) if names else found

    def alias(self, node: exp.Expression) -> tuple[str | None, list[str]]:
        """Folded alias and names of columns that stand behind a place in FROM."""
        alias = node.args.get("alias")
        if alias is None:
            return None, []
        if not isinstance(alias, exp.TableAlias):
            raise RefusedQueryError(f"alias {written(alias)} cannot be checked")
        own = None if alias.this is None else folded(alias.this, self.dialect)
        return own, [folded(column, self.dialect) for column in alias.columns]
