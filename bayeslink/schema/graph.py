"""The schema graph: tables, and one edge per table pair joined by at least one foreign key.

G = (V, E) of MODEL.md section 1. It is read from the catalogue, never estimated. A self key stays
in the schema but adds no edge; several keys between one pair make one edge that lists them; a
composite key is one key. Names compare case-insensitively and keep their original spelling.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from jaxtyping import Int

__all__ = ["Column", "Edge", "ForeignKey", "Origin", "RawKey", "SchemaGraph", "Table", "build_graph", "raw_key"]


class Origin(StrEnum):
    """Where a key comes from, the strongest first; an edge takes the strongest origin among its keys.

    A constraint of the catalogue, the user, the SQL of a view (which reads the table), or a guess.
    """

    DECLARED = "declared"
    USER = "user"
    VIEW = "view"
    INFERRED = "inferred"


@dataclass(frozen=True, slots=True)
class Column:
    """One column: its name in original spelling and what the catalogue says of it."""

    name: str
    type: str = ""
    natural_name: str | None = None
    description: str | None = None
    primary_key: bool = False


@dataclass(frozen=True)
class Table:
    """One node: a table or a view, keyed by (schema, name).

    `key_columns` states the primary key in constraint order; left empty, the order is that of the
    flagged columns. The order matters where a foreign key names no column of its parent.
    `definition` is the SQL of a view, a query or the CREATE VIEW around it, where the catalogue tells it.
    `members` are the full names of the tables that a folded family stands for (`partitions`); a table that
    stands for itself has none. `partial` says that the table has further columns which its reader may not
    see (`grounding.access`), so that a `*` of it may not run. `num_rows` is what the catalogue estimates,
    where that was asked for.
    """

    name: str
    columns: tuple[Column, ...]
    schema: str | None = None
    natural_name: str | None = None
    description: str | None = None
    is_view: bool = False
    key_columns: tuple[str, ...] = ()
    definition: str | None = None
    members: tuple[str, ...] = ()
    partial: bool = False
    num_rows: int | None = None

    @property
    def key(self) -> tuple[str, str]:
        """Case-folded (schema, name); the schema is empty where there is none."""
        return ((self.schema or "").casefold(), self.name.casefold())

    @property
    def full_name(self) -> str:
        """`schema.name`, or the name alone where there is no schema."""
        return f"{self.schema}.{self.name}" if self.schema else self.name

    @property
    def primary_key(self) -> tuple[str, ...]:
        """Names of the primary-key columns in constraint order."""
        return self.key_columns or tuple(column.name for column in self.columns if column.primary_key)


@dataclass(frozen=True)
class RawKey:
    """A foreign key as a source states it, by names, before it is checked against the tables.

    `ref_columns` may be empty: `REFERENCES t` without a column means t's primary key, in order. A key of origin
    `view` names no column: it says that the view `table` reads `ref_table`.
    """

    table: str
    columns: tuple[str, ...]
    ref_table: str
    ref_columns: tuple[str, ...] = ()
    schema: str | None = None
    ref_schema: str | None = None
    origin: Origin = Origin.DECLARED

    @property
    def child_key(self) -> tuple[str, str]:
        """`Table.key` of the table that holds the key."""
        return ((self.schema or "").casefold(), self.table.casefold())

    @property
    def parent_key(self) -> tuple[str, str]:
        """`Table.key` of the table referenced; without `ref_schema` it lies in the child's schema."""
        schema = self.schema if self.ref_schema is None else self.ref_schema
        return ((schema or "").casefold(), self.ref_table.casefold())


@dataclass(frozen=True)
class ForeignKey:
    """A checked foreign key between two tables, given by their positions in `SchemaGraph.tables`."""

    table: int
    columns: tuple[str, ...]
    ref_table: int
    ref_columns: tuple[str, ...]
    origin: Origin = Origin.DECLARED

    @property
    def is_self(self) -> bool:
        """True when the key references its own table; such a key adds no edge."""
        return self.table == self.ref_table


@dataclass(frozen=True)
class Edge:
    """One joined table pair (`first` < `second`) with every key between the two."""

    first: int
    second: int
    keys: tuple[ForeignKey, ...]
    origin: Origin


@dataclass(frozen=True)
class SchemaGraph:
    """Tables and foreign keys of one database.

    Attributes:
        name: The database's name (db_id).
        tables: The nodes, in catalogue order.
        foreign_keys: Every kept key, self keys included.
        edges: One per joined pair, in order of first appearance.
        dropped: One sentence for each key that could not be kept.
        dialect: sqlglot dialect of the database's SQL.
        warnings: One sentence for each thing of the catalogue that could not be read.
    """

    name: str
    tables: tuple[Table, ...]
    foreign_keys: tuple[ForeignKey, ...] = ()
    edges: tuple[Edge, ...] = ()
    dropped: tuple[str, ...] = ()
    dialect: str = "sqlite"
    warnings: tuple[str, ...] = ()

    @property
    def num_tables(self) -> int:
        """Number of nodes n."""
        return len(self.tables)

    @property
    def edge_array(self) -> Int[np.ndarray, "edges 2"]:
        """Node positions of each edge."""
        return np.array([(edge.first, edge.second) for edge in self.edges], dtype=np.int64).reshape(-1, 2)

    @property
    def table_names(self) -> tuple[str, ...]:
        """Full names of the nodes in order."""
        return tuple(table.full_name for table in self.tables)

    def find(self, name: str, schema: str | None = None) -> int | None:
        """Position of the table called `name` (case-insensitive), or None.

        With `schema` the pair must match. Without it the name may itself be qualified
        (`schema.name`); an unqualified name that two schemas share is ambiguous and gives None.
        """
        wanted = name.casefold()
        if schema is not None:
            hits = [i for i, t in enumerate(self.tables) if t.key == (schema.casefold(), wanted)]
        else:
            hits = [i for i, t in enumerate(self.tables) if t.key[1] == wanted]
            if not hits:
                hits = [i for i, t in enumerate(self.tables) if t.full_name.casefold() == wanted]
        return hits[0] if len(hits) == 1 else None


def build_graph(
    name: str,
    tables: Sequence[Table],
    keys: Iterable[RawKey] = (),
    dialect: str = "sqlite",
    warnings: Sequence[str] = (),
) -> SchemaGraph:
    """The schema graph of checked tables and keys; a key that cannot be kept is reported in `dropped`.

    A key is dropped, with a sentence that names it, when a table or column it names is missing,
    when it names a column twice, when its two sides have different lengths, or when it references
    a table without a primary key and names no column. Exact repeats of a key are kept once.

    Args:
        name: The database's name.
        tables: The nodes; two tables with the same case-folded (schema, name) are refused.
        keys: Foreign keys by name.
        dialect: sqlglot dialect of the database's SQL.
        warnings: What the reader of the catalogue has to report, kept as it is.

    Raises:
        ValueError: If two tables have the same key.
    """
    position: dict[tuple[str, str], int] = {}
    for index, table in enumerate(tables):
        if table.key in position:
            raise ValueError(f"tables of {name!r}: {table.full_name!r} repeats; names compare without case")
        position[table.key] = index

    kept: list[ForeignKey] = []
    dropped: list[str] = []
    for raw in keys:
        key, reason = _check_key(raw, tables, position)
        if key is None:
            dropped.append(f"{_describe(raw)}: {reason}")
        elif key not in kept:
            kept.append(key)
    return SchemaGraph(name, tuple(tables), tuple(kept), _edges(kept), tuple(dropped), dialect, tuple(warnings))


def raw_key(key: ForeignKey, child: Table, parent: Table) -> RawKey:
    """A checked key by name again, between these two tables.

    Args:
        key: The key.
        child: The table that is to hold it.
        parent: The table that it is to reference.
    """
    return RawKey(child.name, key.columns, parent.name, key.ref_columns, child.schema, parent.schema or "", key.origin)


def _describe(raw: RawKey) -> str:
    table = f"{raw.schema}.{raw.table}" if raw.schema else raw.table
    ref_table = f"{raw.ref_schema}.{raw.ref_table}" if raw.ref_schema else raw.ref_table
    return f"foreign key {table}({', '.join(raw.columns)}) -> {ref_table}({', '.join(raw.ref_columns)})"


def _check_key(
    raw: RawKey, tables: Sequence[Table], position: dict[tuple[str, str], int]
) -> tuple[ForeignKey | None, str]:
    child = position.get(raw.child_key)
    parent = position.get(raw.parent_key)
    if child is None:
        return None, f"table {raw.table!r} does not exist"
    if parent is None:
        return None, f"table {raw.ref_table!r} does not exist"
    if raw.origin is Origin.VIEW:
        return ForeignKey(child, (), parent, (), raw.origin), ""
    columns, missing = _spelled(raw.columns, tables[child])
    if missing is not None:
        return None, f"column {missing!r} does not exist in {tables[child].full_name!r}"
    ref_columns, missing = _spelled(raw.ref_columns or tables[parent].primary_key, tables[parent])
    if missing is not None:
        return None, f"column {missing!r} does not exist in {tables[parent].full_name!r}"
    if not columns or not ref_columns:
        return None, f"it names no column and {tables[parent].full_name!r} has no primary key"
    if len(set(columns)) < len(columns) or len(set(ref_columns)) < len(ref_columns):
        return None, "it names a column twice"
    if len(columns) != len(ref_columns):
        verb = "column references" if len(columns) == 1 else "columns reference"
        return None, f"{len(columns)} {verb} {len(ref_columns)}"
    return ForeignKey(child, columns, parent, ref_columns, raw.origin), ""


def _spelled(names: Sequence[str], table: Table) -> tuple[tuple[str, ...], str | None]:
    spelling = {column.name.casefold(): column.name for column in table.columns}
    exact = {column.name for column in table.columns}  # two columns may differ in case alone
    for name in names:
        if name.casefold() not in spelling:
            return (), name
    return tuple(name if name in exact else spelling[name.casefold()] for name in names), None


def _edges(keys: Sequence[ForeignKey]) -> tuple[Edge, ...]:
    pairs: dict[tuple[int, int], list[ForeignKey]] = {}
    for key in keys:
        if not key.is_self:
            pair = (min(key.table, key.ref_table), max(key.table, key.ref_table))
            pairs.setdefault(pair, []).append(key)
    strength = list(Origin)
    return tuple(
        Edge(first, second, tuple(found), min((key.origin for key in found), key=strength.index))
        for (first, second), found in pairs.items()
    )
