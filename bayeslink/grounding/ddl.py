"""DDL of the selected tables: what a language model is shown, within a budget of tokens.

One statement a table, in catalogue order: its columns with type and comment, its primary key, and its foreign keys to
other selected tables, so that no name stands there that the model cannot read about; a view is written like a table,
and said to be one; an inferred key is said to be inferred. Where a budget does not hold all columns, those of primary
and foreign keys stay, others stay in the order of their scores, and an ellipsis stands for those left out. Identifiers
are quoted where the dialect would read them otherwise: reserved words, characters beyond letters, digits and
underscore, and capitals where unquoted names are folded.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from math import ceil

import numpy as np
from jaxtyping import Float
from sqlglot import exp

from bayeslink.schema.graph import Column, ForeignKey, Origin, SchemaGraph, Table

__all__ = [
    "CHARACTERS_PER_TOKEN",
    "PrunedSchema",
    "ddl_tokens",
    "estimated_tokens",
    "prune_schema",
    "quoted",
    "quoted_table",
]

CHARACTERS_PER_TOKEN = 4
"""Characters of a token, the usual rule for English text and SQL under byte-pair encodings; a count."""

_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_BETWEEN = "\n\n"
_FOLDS_DOWN = ("postgres", "redshift", "")
"""Dialects that read unquoted names in lower case, and the generic one."""
_FOLDS_UP = ("oracle", "snowflake")
"""Dialects that read unquoted names in upper case; SQLAlchemy states such names in lower case."""


@dataclass(frozen=True)
class PrunedSchema:
    """The part of a schema that is shown.

    Attributes:
        text: The DDL.
        tokens: Its tokens by the counter that was given; a count.
        graph: The whole schema.
        columns: Positions of the columns shown, by position of the table, in catalogue order.
    """

    text: str
    tokens: int
    graph: SchemaGraph
    columns: dict[int, tuple[int, ...]]

    def __repr__(self) -> str:
        return f"PrunedSchema({', '.join(self.tables) or 'no table'}; {self.tokens} tokens)"

    @property
    def tables(self) -> tuple[str, ...]:
        """Names of the tables shown."""
        return tuple(self.graph.table_names[table] for table in self.columns)

    @property
    def left_out(self) -> dict[str, tuple[str, ...]]:
        """Names of the columns left out, by table; tables that are whole are not in it."""
        found = {}
        for table, shown in self.columns.items():
            columns = self.graph.tables[table].columns
            names = tuple(column.name for place, column in enumerate(columns) if place not in shown)
            found |= {self.graph.table_names[table]: names} if names else {}
        return found

    def to_dict(self) -> dict:
        """The same for an agent: tables with their columns and keys, as JSON values."""
        keys = _keys_among(self.graph, self.columns)
        tables = []
        for table, shown in self.columns.items():
            node = self.graph.tables[table]
            listed = [node.columns[place] for place in shown]
            tables.append(
                {
                    "table": node.full_name,
                    "is_view": node.is_view,
                    "description": node.description,
                    "columns": [
                        {"name": column.name, "type": column.type, "description": column.description}
                        for column in listed
                    ],
                    "columns_left_out": len(node.columns) - len(listed),
                    "primary_key": list(node.primary_key),
                    "foreign_keys": [
                        {
                            "columns": list(key.columns),
                            "ref_table": self.graph.table_names[key.ref_table],
                            "ref_columns": list(key.ref_columns),
                            "origin": key.origin.value,
                        }
                        for key in keys
                        if key.table == table
                    ],
                }
            )
        return {"dialect": self.graph.dialect, "tokens": self.tokens, "text": self.text, "tables": tables}


def estimated_tokens(text: str) -> int:
    """Tokens of a text at four characters each, rounded up: an estimate that ties budgets to no one model."""
    return ceil(len(text) / CHARACTERS_PER_TOKEN)


def ddl_tokens(graph: SchemaGraph) -> Float[np.ndarray, " tables"]:
    """Estimated tokens of each whole table's DDL; the DDL of some tables never has more than their sum."""
    every = range(graph.num_tables)
    texts = [_statement(graph, t, range(len(graph.tables[t].columns)), graph.foreign_keys) + _BETWEEN for t in every]
    return np.array([estimated_tokens(text) for text in texts], dtype=np.float64)


def prune_schema(
    graph: SchemaGraph,
    tables: Sequence[int],
    max_tokens: int | None = None,
    column_scores: Float[np.ndarray, " columns"] | None = None,
    count: Callable[[str], int] = estimated_tokens,
) -> PrunedSchema:
    """DDL of some tables, within a budget.

    Args:
        graph: The schema.
        tables: Positions of the tables.
        max_tokens: Most tokens of the text by `count`; None for no bound. It is never exceeded.
        column_scores: How much the question needs each column, in the order of the tables' columns; by default
            catalogue order decides which stay.
        count: Tokens of a text, such as `lambda text: len(encoding.encode(text))`.

    Raises:
        ValueError: If a table is not one of the graph's, the scores do not fit, or the budget does not hold the tables
            with their keys.
    """
    chosen = sorted(set(tables))
    if bad := [table for table in chosen if not 0 <= table < graph.num_tables]:
        raise ValueError(f"tables={list(tables)}: the schema has no table {bad[0]}; use 0 to {graph.num_tables - 1}")
    starts = np.cumsum([0, *(len(table.columns) for table in graph.tables)])
    if column_scores is not None and len(column_scores) != starts[-1]:
        raise ValueError(f"column_scores: {len(column_scores)} for {starts[-1]} columns; give one each")
    keys = _keys_among(graph, chosen)
    kept = {table: _key_columns(graph, table) for table in chosen}
    for table, own in kept.items():
        # A table without keys keeps the column that is needed most: one without columns is no table.
        if not own and graph.tables[table].columns:
            scores = None if column_scores is None else column_scores[starts[table] : starts[table + 1]]
            own.add(0 if scores is None else int(np.argmax(scores)))
    free = [(table, place) for table in chosen for place in _others(graph.tables[table], kept[table])]
    if column_scores is not None:
        free.sort(key=lambda pair: -column_scores[starts[pair[0]] + pair[1]])

    def shown(number: int) -> PrunedSchema:
        columns = {table: set(own) for table, own in kept.items()}
        for table, place in free[:number]:
            columns[table].add(place)
        ordered = {table: tuple(sorted(own)) for table, own in columns.items()}
        text = _BETWEEN.join(_statement(graph, table, places, keys) for table, places in ordered.items())
        return PrunedSchema(text, count(text), graph, ordered)

    whole = shown(len(free))
    if max_tokens is None or whole.tokens <= max_tokens:
        return whole
    least = shown(0)
    if least.tokens > max_tokens:
        raise ValueError(
            f"max_tokens={max_tokens}: {len(chosen)} tables with their keys alone need {least.tokens}; raise it, or "
            "select fewer tables"
        )
    low, high = 0, len(free)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if shown(middle).tokens <= max_tokens else (low, middle)
    return shown(low)


def quoted(name: str, dialect: str) -> str:
    """An identifier as the dialect's SQL must write it.

    Args:
        name: The identifier as the catalogue has it.
        dialect: sqlglot dialect; empty for the generic one.
    """
    lower, upper = name == name.lower(), name == name.upper()
    folded = (dialect in _FOLDS_DOWN and not lower) or (dialect in _FOLDS_UP and not (lower or upper))
    needed = folded or not _PLAIN.fullmatch(name) or name.lower() in _reserved(dialect)
    return exp.to_identifier(name, quoted=needed).sql(dialect=dialect or None)


def quoted_table(table: Table, dialect: str) -> str:
    """Full name of a table as the dialect's SQL must write it."""
    # The schema itself may be dotted: project.dataset.
    parts = [*(table.schema.split(".") if table.schema else ()), table.name]
    return ".".join(quoted(part, dialect) for part in parts)


@cache
def _reserved(dialect: str) -> frozenset[str]:
    """Reserved words of a dialect, in lower case; those of every dialect where SQLAlchemy does not know this one."""
    from sqlalchemy.dialects import mssql, mysql, oracle, postgresql, sqlite

    known = {"sqlite": sqlite, "postgres": postgresql, "mysql": mysql, "tsql": mssql, "oracle": oracle}
    asked = [known[dialect]] if dialect in known else list(known.values())
    words = {"nothing", "returning"}  # SQLite's, which SQLAlchemy leaves out
    for module in asked:
        words |= set(module.dialect().identifier_preparer.reserved_words)
    return frozenset(word.lower() for word in words)


def _keys_among(graph: SchemaGraph, tables: Sequence[int] | dict[int, tuple[int, ...]]) -> list[ForeignKey]:
    chosen = set(tables)
    return [key for key in graph.foreign_keys if {key.table, key.ref_table} <= chosen]


def _key_columns(graph: SchemaGraph, table: int) -> set[int]:
    """Columns of the table's primary key and of its keys from and to any table."""
    node = graph.tables[table]
    names = {name.casefold() for name in node.primary_key}
    for key in graph.foreign_keys:
        names |= {name.casefold() for name in key.columns} if key.table == table else set()
        names |= {name.casefold() for name in key.ref_columns} if key.ref_table == table else set()
    return {place for place, column in enumerate(node.columns) if column.name.casefold() in names}


def _others(table: Table, kept: set[int]) -> list[int]:
    return [place for place in range(len(table.columns)) if place not in kept]


def _statement(graph: SchemaGraph, table: int, places: Sequence[int], keys: Sequence[ForeignKey]) -> str:
    node, dialect = graph.tables[table], graph.dialect
    own = [(_column(node.columns[place], dialect), node.columns[place].description) for place in places]
    if node.primary_key:
        own.append((f"PRIMARY KEY ({_listed(node.primary_key, dialect)})", None))
    for key in keys:
        if key.table == table and key.origin is not Origin.VIEW:
            target = quoted_table(graph.tables[key.ref_table], dialect)
            clause = f"FOREIGN KEY ({_listed(key.columns, dialect)}) REFERENCES {target}"
            guessed = "inferred, not declared" if key.origin is Origin.INFERRED else None
            own.append((f"{clause} ({_listed(key.ref_columns, dialect)})", guessed))
    said = ": ".join(part for part in ("a view" if node.is_view else "", _one_line(node.description)) if part)
    lines = [f"-- {said}"] if said else []
    lines.append(f"CREATE TABLE {quoted_table(node, dialect)} (")
    for number, (clause, comment) in enumerate(own):
        comma = "," if number < len(own) - 1 else ""
        lines.append(f"  {clause}{comma} -- {_one_line(comment)}" if _one_line(comment) else f"  {clause}{comma}")
    if len(places) < len(node.columns):
        lines.append("  -- ...")  # shorter than any column that it stands for
    return "\n".join([*lines, ");"])


def _column(column: Column, dialect: str) -> str:
    return f"{quoted(column.name, dialect)} {_one_line(column.type)}".strip()


def _listed(names: Sequence[str], dialect: str) -> str:
    return ", ".join(quoted(name, dialect) for name in names)


def _one_line(text: str | None) -> str:
    """A comment ends with its line, so that none of a catalogue's text may stand outside one."""
    return " ".join((text or "").split())
