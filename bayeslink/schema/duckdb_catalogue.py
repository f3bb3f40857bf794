"""Tables, views and keys of a DuckDB file, from DuckDB's own table functions.

duckdb-engine reflects through PostgreSQL's catalogue, of which DuckDB lacks parts that SQLAlchemy 2.1 asks for; so
duckdb_tables(), duckdb_columns(), duckdb_views() and duckdb_constraints() are read instead. Keys never leave a schema.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import sqlalchemy
from sqlalchemy.engine import Connection

from bayeslink.schema.catalogue import Catalogue, is_system_schema
from bayeslink.schema.graph import Column, RawKey, Table

__all__ = ["DEFAULT_SCHEMA", "read_duckdb"]

DEFAULT_SCHEMA = "main"
"""The schema of tables that name none."""

_OWN = "database_name = current_database() AND NOT internal"
_SCHEMAS = "SELECT schema_name FROM duckdb_schemas() WHERE database_name = current_database()"
_RELATIONS = f"""
    SELECT schema_name, table_name AS name, comment, NULL AS definition FROM duckdb_tables() WHERE {_OWN}
    UNION ALL
    SELECT schema_name, view_name AS name, comment, sql AS definition FROM duckdb_views() WHERE {_OWN}
    ORDER BY definition IS NOT NULL, schema_name, name
"""
_COLUMNS = f"""
    SELECT schema_name, table_name AS name, column_name, data_type, comment
    FROM duckdb_columns() WHERE {_OWN} ORDER BY column_index
"""
_KEYS = """
    SELECT schema_name, table_name AS name, constraint_type, constraint_column_names, referenced_table,
           referenced_column_names
    FROM duckdb_constraints()
    WHERE database_name = current_database() AND constraint_type IN ('PRIMARY KEY', 'FOREIGN KEY')
"""


class _Constraint(NamedTuple):
    kind: str
    columns: list[str]
    ref_table: str | None
    ref_columns: list[str]


def read_duckdb(connection: Connection, schemas: Sequence[str] | str | None) -> Catalogue:
    """The catalogue of the connected file.

    Args:
        connection: An open connection.
        schemas: Schemas whose tables are read and qualified; "*" for all; None for the default one, unqualified.

    Raises:
        ValueError: If a schema does not exist.
    """
    held = [str(name) for name in connection.execute(sqlalchemy.text(_SCHEMAS)).scalars()]
    held = [name for name in held if not is_system_schema(name)]
    wanted: Sequence[str] = [DEFAULT_SCHEMA]
    if schemas is not None:
        wanted = held if isinstance(schemas, str) else schemas
    if missing := [name for name in wanted if name not in held]:
        raise ValueError(f"schemas={list(wanted)}: there is no schema {missing[0]!r}; there is {', '.join(held)}")
    columns: dict[tuple[str, str], list[Column]] = {}
    for schema, table, name, kind, comment in connection.execute(sqlalchemy.text(_COLUMNS)):
        columns.setdefault((schema, table), []).append(Column(name, kind, description=comment))
    constraints: dict[tuple[str, str], list[_Constraint]] = {}
    for schema, table, *stated in connection.execute(sqlalchemy.text(_KEYS)):
        constraints.setdefault((schema, table), []).append(_Constraint(*stated))
    found = Catalogue([], [], [])
    for schema, name, comment, definition in connection.execute(sqlalchemy.text(_RELATIONS)):
        if schema not in wanted:
            continue
        stated, own_schema = constraints.get((schema, name), []), None if schemas is None else schema
        key = tuple(column for item in stated if item.kind == "PRIMARY KEY" for column in item.columns)
        own = tuple(replace(column, primary_key=column.name in key) for column in columns.get((schema, name), []))
        found.tables.append(
            Table(
                name,
                own,
                own_schema,
                description=comment,
                is_view=definition is not None,
                key_columns=key,
                definition=definition,
            )
        )
        found.keys.extend(
            RawKey(name, tuple(item.columns), item.ref_table, tuple(item.ref_columns), own_schema)
            for item in stated
            if item.ref_table is not None
        )
    return found
