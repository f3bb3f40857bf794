"""What a database's catalogue says, before it is checked and made a graph; and which of its schemas are a system's."""

from collections.abc import Sequence
from typing import NamedTuple

from bayeslink.schema.graph import RawKey, Table

__all__ = ["Catalogue", "is_system_schema", "named_tables", "without_namesakes"]

_SYSTEM_SCHEMAS = {"information_schema", "pg_catalog", "crdb_internal", "pg_extension", "mysql", "performance_schema"}
_SYSTEM_SCHEMAS |= {"sys", "system", "guest", "ndbinfo"}
_MOST_NAMED = 8


class Catalogue(NamedTuple):
    """Tables and foreign keys by name, and one sentence for each thing that could not be read or was left out."""

    tables: list[Table]
    keys: list[RawKey]
    notes: list[str]


def is_system_schema(name: str) -> bool:
    """Whether a schema holds the database system's own tables, by its name."""
    return name.casefold() in _SYSTEM_SCHEMAS or name.casefold().startswith(("pg_toast", "pg_temp", "db_"))


def named_tables(names: Sequence[str]) -> str:
    """The names by comma, the first few where there are many."""
    more = f" and {len(names) - _MOST_NAMED} more" if len(names) > _MOST_NAMED else ""
    return ", ".join(names[:_MOST_NAMED]) + more


def without_namesakes(found: Catalogue) -> Catalogue:
    """The catalogue less each table whose name differs from an earlier one's in case alone, which is noted.

    Names compare without case in a graph, as in most SQL; PostgreSQL and MySQL can tell "Orders" from orders.
    """
    kept: dict[tuple[str, str], Table] = {}
    left_out: set[tuple[str | None, str]] = set()
    notes = list(found.notes)
    for table in found.tables:
        first = kept.setdefault(table.key, table)
        if first is not table:
            left_out.add((table.schema, table.name))
            notes.append(f"{table.full_name!r} is left out: {first.full_name!r} differs from it in case alone")
    keys = [key for key in found.keys if not left_out & {_child(key), _parent(key)}]
    return Catalogue(list(kept.values()), keys, notes)


def _child(key: RawKey) -> tuple[str | None, str]:
    return key.schema, key.table


def _parent(key: RawKey) -> tuple[str | None, str]:
    return key.schema if key.ref_schema is None else key.ref_schema, key.ref_table
