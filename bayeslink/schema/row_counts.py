"""Numbers of rows as a catalogue estimates them; no table is ever counted.

PostgreSQL: pg_class.reltuples, which ANALYZE and VACUUM keep. MySQL and MariaDB: information_schema.tables.table_rows.
DuckDB: duckdb_tables().estimated_size. SQLite: sqlite_stat1, where ANALYZE has been run.
"""

import sqlalchemy
from sqlalchemy.engine import Connection
from sqlalchemy.exc import OperationalError

__all__ = ["estimated_rows"]

_POSTGRESQL = """
    SELECT c.relname, c.reltuples FROM pg_catalog.pg_class c
    WHERE c.relkind IN ('r', 'p', 'm', 'f') AND c.reltuples >= 0
    AND CASE WHEN CAST(:schema AS text) IS NULL THEN pg_catalog.pg_table_is_visible(c.oid)
             ELSE c.relnamespace = (SELECT n.oid FROM pg_catalog.pg_namespace n WHERE n.nspname = :schema) END
"""
_MYSQL = """
    SELECT table_name, table_rows FROM information_schema.tables
    WHERE table_schema = COALESCE(:schema, DATABASE()) AND table_rows IS NOT NULL AND table_type = 'BASE TABLE'
"""
_DUCKDB = """
    SELECT table_name, estimated_size FROM duckdb_tables()
    WHERE database_name = current_database() AND schema_name = COALESCE(:schema, current_schema())
"""
_QUERIES = {"postgresql": _POSTGRESQL, "mysql": _MYSQL, "mariadb": _MYSQL, "duckdb": _DUCKDB}


def estimated_rows(connection: Connection, schema: str | None) -> dict[str, int] | None:
    """Estimated rows by name of the table, without those that have no estimate; None where a dialect is not known.

    Args:
        connection: An open connection.
        schema: The schema; None for the default one.
    """
    dialect = connection.dialect.name
    if dialect == "sqlite":
        return _sqlite(connection, schema or "main")
    if dialect not in _QUERIES:
        return None
    rows = connection.execute(sqlalchemy.text(_QUERIES[dialect]), {"schema": schema})
    return {name: int(count) for name, count in rows}


def _sqlite(connection: Connection, schema: str) -> dict[str, int]:
    source = sqlalchemy.table("sqlite_stat1", sqlalchemy.column("tbl"), sqlalchemy.column("stat"), schema=schema)
    try:
        rows = connection.execute(sqlalchemy.select(source.c.tbl, source.c.stat)).all()
    except OperationalError:  # ANALYZE has not been run: there is no such table
        return {}
    return {name: int(str(stat).split()[0]) for name, stat in rows if stat}
