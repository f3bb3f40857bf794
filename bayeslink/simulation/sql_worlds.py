"""Random schemas, grants and queries, on which a check of SQL can be measured.

Names are chosen to collide: tables share columns, names are keywords, hold quotes and spaces, differ in case where they
are used. About half of the queries keep to what is granted, so far as their form allows; whether they do is not for the
generator to say but for SQLite (`authorizer`).
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from bayeslink.grounding.access import Policy
from bayeslink.schema.graph import Column, RawKey, SchemaGraph, Table, build_graph

__all__ = ["COMMON_FORMS", "RARE_FORMS", "RandomQuery", "World", "random_query", "random_world"]

_TABLES = ("customers", "orders", "Line Items", "group", "(2)", 'say "hi"', "Größe", "Payments", "order", "t1", "x")
_COLUMNS = ("id", "name", "total", "code", "Full Name", "select", "born", "x", "t1", 'a"b', "salary", "ref_id", "note")


@dataclass(frozen=True)
class World:
    """A schema and what a principal may read of it."""

    graph: SchemaGraph
    policy: Policy

    def granted(self, table: Table) -> tuple[str, ...]:
        """Names of the columns of a table that may be read."""
        if table.key not in self.policy.tables:
            return ()
        columns = self.policy.tables[table.key]
        return tuple(column.name for column in table.columns if columns is None or column.name in columns)

    def permits(self, reads: frozenset[tuple[str, str]]) -> bool:
        """Whether all of these (table, column) are granted."""
        own = {table.key[1]: {name.casefold() for name in self.granted(table)} for table in self.graph.tables}
        return all(own.get(table) and (not column or column in own[table]) for table, column in reads)


def random_world(rng: np.random.Generator) -> World:
    """Two to five tables with keys, comments that name other tables, sometimes a view, and grants of some of them."""
    names = rng.choice(_TABLES, rng.integers(2, 6), replace=False).tolist()
    tables = []
    for name in names:
        columns = rng.choice(_COLUMNS, rng.integers(1, 7), replace=False).tolist()
        said = f"see {rng.choice(names)} and its {rng.choice(_COLUMNS)}" if rng.random() < 0.3 else None
        own = tuple(Column(column, "INTEGER", primary_key=column == "id") for column in columns)
        tables.append(Table(name, own, description=said))
    keys = [
        RawKey(child.name, ("ref_id",), parent.name, ("id",))
        for child in tables
        for parent in tables
        if rng.random() < 0.5
    ]
    base = tables[int(rng.integers(len(tables)))]
    if rng.random() < 0.3 and len(base.columns) > 1:
        shown = rng.choice([column.name for column in base.columns], 2, replace=False).tolist()
        definition = f"SELECT {_quoted(shown[0])} AS v1, {_quoted(shown[1])} AS v2 FROM {_quoted(base.name)}"
        tables.append(Table("seen", (Column("v1"), Column("v2")), is_view=True, definition=definition))
    graph = build_graph("world", tables, keys)
    grants: dict[tuple[str, str], frozenset[str] | None] = {}
    for table in tables:
        kind = rng.random()
        if kind < 0.5:
            grants[table.key] = None
        elif kind < 0.8 and len(table.columns) > 1:
            own_names = [column.name for column in table.columns]
            grants[table.key] = frozenset(
                rng.choice(own_names, rng.integers(1, len(own_names)), replace=False).tolist()
            )
    if not grants:
        grants[tables[0].key] = None
    return World(graph, Policy("reader", grants))


class RandomQuery(NamedTuple):
    """A query, and what USING and NATURAL compare in it, of which SQLite's authorizer says nothing."""

    sql: str
    compared: frozenset[tuple[str, str]]


def random_query(form: str, world: World, rng: np.random.Generator) -> RandomQuery:
    """One query of a form; it need not be valid, since names may be ambiguous."""
    writer = _Writer(world, rng)
    sql = _FORMS[form](writer)
    return RandomQuery(sql, frozenset(writer.compared))


class _Writer:
    """Writes queries over a world, half of them over what is granted alone."""

    def __init__(self, world: World, rng: np.random.Generator) -> None:
        self.world, self.rng = world, rng
        self.compared: set[tuple[str, str]] = set()
        self.inside = rng.random() < 0.6
        tables = [table for table in world.graph.tables if world.granted(table)]
        self.tables = tables if self.inside else list(world.graph.tables)

    def table(self) -> Table:
        whole = [table for table in self.tables if len(self.world.granted(table)) == len(table.columns)]
        return (
            self.tables[int(self.rng.integers(len(self.tables)))]
            if not (self.star and whole)
            else (whole[int(self.rng.integers(len(whole)))])
        )

    star = False

    def starred(self) -> "_Writer":
        """From here on whole tables, where only what is granted is to be read."""
        self.star = self.inside
        return self

    def column(self, table: Table) -> str:
        names = self.world.granted(table) if self.inside else tuple(column.name for column in table.columns)
        return self.written(names[int(self.rng.integers(len(names)))])

    def written(self, name: str) -> str:
        """A name as SQLite allows it: in another case, quoted in one of three ways."""
        if self.rng.random() < 0.3:
            name = "".join(c.swapcase() if c.isascii() and self.rng.random() < 0.5 else c for c in name)
        plain = name.isascii() and name.isidentifier() and name.lower() not in ("group", "order", "select")
        way = self.rng.random()
        if plain and way < 0.7:
            return name
        return f"[{name}]" if way < 0.1 else f"`{name}`" if way < 0.2 else _quoted(name)

    def source(self, alias: str) -> tuple[Table, str]:
        """A table with an alias, and how FROM has it; the alias in any case."""
        table = self.table()
        word = ("AS ", "as ", "")[int(self.rng.integers(3))]
        return table, f"{self.written(table.name)} {word}{alias.upper() if self.rng.random() < 0.3 else alias}"

    def condition(self, column: str) -> str:
        return f"{column} {('> 1', 'IS NOT NULL', 'BETWEEN 1 AND 3', 'IN (1, 2)')[int(self.rng.integers(4))]}"

    def compare(self, first: Table, second: Table, names: set[str]) -> None:
        """Notes the columns of these names that both tables have."""
        names = names & {column.name.casefold() for column in second.columns}
        self.compared |= {(table.name.casefold(), name) for table in (first, second) for name in names}

    def plain(self) -> str:
        table = self.table()
        one, two, three = (self.column(table) for _ in range(3))
        return (
            f"SELECT {one}, upper({two}) FROM {self.written(table.name)} WHERE {self.condition(three)} "
            f"ORDER BY {one} DESC LIMIT 3"
        )

    def aggregate(self) -> str:
        table, text = self.source("a")
        one, two = self.column(table), self.column(table)
        return f"SELECT a.{one}, count(*), max({two}) FROM {text} GROUP BY {one} HAVING count(DISTINCT A.{two}) > 1"

    def joined(self) -> str:
        (first, one), (second, two) = self.source("a"), self.source("b")
        kind = ("JOIN", "LEFT JOIN", "INNER JOIN")[int(self.rng.integers(3))]
        on = f"a.{self.column(first)} = B.{self.column(second)}"
        return f"SELECT A.{self.column(first)}, b.{self.column(second)} FROM {one} {kind} {two} ON {on}"

    def three_tables(self) -> str:
        (first, one), (second, two), (third, three) = (self.source(alias) for alias in "abc")
        # Every other name is not qualified: it may be of any table, and most are of two.
        chosen = [
            ("" if self.rng.random() < 0.5 else f"{alias}.") + self.column(table)
            for alias, table in zip("abc", (first, second, third), strict=True)
        ]
        return f"SELECT {chosen[0]} FROM {one}, {two} JOIN {three} ON {chosen[1]} = {chosen[2]}"

    def using(self) -> str:
        (first, one), (second, two) = self.source("a"), self.source("b")
        name = self.column(first)
        self.compare(first, second, {name.strip('"`[]').replace('""', '"').casefold()})
        return f"SELECT {name} FROM {one} JOIN {two} USING ({name})"

    def natural(self) -> str:
        (first, one), (second, two) = self.starred().source("a"), self.source("b")
        self.compare(first, second, {column.name.casefold() for column in first.columns})
        return f"SELECT a.{self.column(first)}, b.{self.column(second)} FROM {one} NATURAL JOIN {two}"

    def every(self) -> str:
        (_, one), (_, two) = self.starred().source("a"), self.source("b")
        return f"SELECT * FROM {one}" + (f", {two}" if self.rng.random() < 0.5 else "")

    def every_of_one(self) -> str:
        table, two = self.source("b")
        _, one = self.starred().source("a")
        return f"SELECT A.*, b.{self.column(table)} FROM {one}, {two}"

    def inside_in(self) -> str:
        (first, one), (second, two) = self.source("a"), self.source("b")
        inner = f"SELECT {self.column(second)} FROM {two} WHERE {self.condition(self.column(second))}"
        return f"SELECT {self.column(first)} FROM {one} WHERE {self.column(first)} NOT IN ({inner})"

    def correlated(self) -> str:
        (first, one), (second, two) = self.source("a"), self.source("b")
        # Every other time not qualified: what it means depends on what the inner table has.
        outside = ("a." if self.rng.random() < 0.9 else "") + self.column(first)
        inner = f"SELECT 1 FROM {two} WHERE b.{self.column(second)} = {outside}"
        return f"SELECT a.{self.column(first)} FROM {one} WHERE EXISTS ({inner})"

    def scalar(self) -> str:
        (first, one), (second, two) = self.source("a"), self.source("b")
        return f"SELECT a.{self.column(first)}, (SELECT max(b.{self.column(second)}) FROM {two}) AS m FROM {one}"

    def derived(self) -> str:
        (first, one), (second, two) = self.source("a"), self.source("b")
        inner = f"SELECT a.{self.column(first)} AS k, count(*) AS n FROM {one} GROUP BY 1"
        return f"SELECT d.n, b.{self.column(second)} FROM ({inner}) AS d JOIN {two} ON d.K = b.{self.column(second)}"

    def cte(self) -> str:
        (first, one), (second, two) = self.source("a"), self.source("b")
        body = f"SELECT {self.column(first)} AS k FROM {one}"
        return f"WITH c AS ({body}), d(k, m) AS (SELECT k, b.{self.column(second)} FROM C, {two}) SELECT * FROM d"

    def cte_that_shadows(self) -> str:
        first, one = self.source("a")
        shadowed = self.table()
        name = self.written(shadowed.name)
        if first == shadowed:
            return f"SELECT count(*) FROM {one}"
        return (
            f"WITH {name} AS (SELECT {self.column(first)} AS k FROM {one}) SELECT k FROM {self.written(shadowed.name)}"
        )

    def recursive(self) -> str:
        first, one = self.source("a")
        step = f"SELECT n + 1, {self.column(first)} FROM r, {one} WHERE n < 3"
        return f"WITH RECURSIVE r(n, k) AS (SELECT 1, 2 UNION ALL {step}) SELECT n, k FROM R ORDER BY n"

    def set_operation(self) -> str:
        (first, one), (second, two) = self.source("a"), self.source("b")
        kind = ("UNION", "UNION ALL", "EXCEPT", "INTERSECT")[int(self.rng.integers(4))]
        return f"SELECT {self.column(first)} AS k FROM {one} {kind} SELECT {self.column(second)} FROM {two} ORDER BY k"

    def window(self) -> str:
        first, one = self.source("a")
        names = [self.column(first) for _ in range(3)]
        return f"SELECT sum({names[0]}) OVER (PARTITION BY {names[1]} ORDER BY a.{names[2]}) AS s FROM {one} ORDER BY s"

    def result_in_group(self) -> str:
        first, one = self.source("a")
        alias = ("label", "name", "salary")[int(self.rng.integers(3))]
        return f"SELECT {self.column(first)} AS {alias}, count(*) FROM {one} GROUP BY {alias}"

    def result_in_order(self) -> str:
        first, one = self.source("a")
        alias = ("label", "name", "salary")[int(self.rng.integers(3))]
        return f"SELECT {self.column(first)} AS {alias} FROM {one} ORDER BY {alias}"

    def in_a_table(self) -> str:
        first, one = self.source("a")
        second = self.table()
        return f"SELECT {self.column(first)} FROM {one} WHERE {self.column(first)} IN {self.written(second.name)}"

    def row_number(self) -> str:
        first, one = self.source("a")
        name = ("rowid", "oid", "_rowid_")[int(self.rng.integers(3))]
        return f"SELECT {self.column(first)} FROM {one} WHERE a.{name} = 1"

    def word_in_quotes(self) -> str:
        first, one = self.source("a")
        word = ("salary", "name", "Paris")[int(self.rng.integers(3))]
        return f'SELECT {self.column(first)} FROM {one} WHERE {self.column(first)} = "{word}"'


_RARE = (
    _Writer.natural,
    _Writer.three_tables,
    _Writer.result_in_group,
    _Writer.row_number,
    _Writer.word_in_quotes,
    _Writer.in_a_table,
)
_COMMON = (
    _Writer.plain,
    _Writer.aggregate,
    _Writer.joined,
    _Writer.using,
    _Writer.every,
    _Writer.every_of_one,
    _Writer.inside_in,
    _Writer.correlated,
    _Writer.scalar,
    _Writer.derived,
    _Writer.cte,
    _Writer.cte_that_shadows,
    _Writer.recursive,
    _Writer.set_operation,
    _Writer.window,
    _Writer.result_in_order,
)
_FORMS: dict[str, Callable[[_Writer], str]] = {form.__name__: form for form in (*_COMMON, *_RARE)}
COMMON_FORMS = tuple(form.__name__ for form in _COMMON)
"""Names of the forms that questions ask for day by day."""
RARE_FORMS = tuple(form.__name__ for form in _RARE)
"""Names of the forms that are there to break a check: most use what databases read in ways of their own."""


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
