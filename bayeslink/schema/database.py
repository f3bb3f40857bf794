"""The schema graph of a live database, read from its catalogue; nothing is ever written to it.

Views are nodes, joined to the tables that their SQL reads. What the catalogue holds but cannot be read (a view on a
dropped table, a type that SQLAlchemy does not know) is named in `SchemaGraph.warnings`, a key that dangles in
`dropped`. Tested against SQLite, PostgreSQL, MariaDB and DuckDB; other dialects of SQLAlchemy (Oracle, SQL Server,
Snowflake, BigQuery) are read by the same questions to its inspector, untested.
"""

import warnings
from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

from sqlalchemy.engine import Connection
from sqlalchemy.exc import SAWarning, SQLAlchemyError
from sqlglot.dialects.dialect import Dialect

from bayeslink.schema.catalogue import Catalogue, without_namesakes
from bayeslink.schema.duckdb_catalogue import DEFAULT_SCHEMA, read_duckdb
from bayeslink.schema.engine import open_engine, parse_target
from bayeslink.schema.graph import SchemaGraph, build_graph
from bayeslink.schema.reflection import reflect
from bayeslink.schema.row_counts import estimated_rows
from bayeslink.schema.views import view_keys

__all__ = ["read_database", "sqlglot_dialect"]

_DIALECTS = {"postgresql": "postgres", "cockroachdb": "postgres", "mssql": "tsql", "mariadb": "mysql"}


def read_database(
    url: str,
    name: str | None = None,
    schemas: Sequence[str] | Literal["*", "all"] | None = None,
    row_counts: bool = False,
) -> SchemaGraph:
    """Tables, views and foreign keys of a database.

    Args:
        url: SQLAlchemy URL, or the path of an SQLite file.
        name: The graph's name; by default that of the database, for a file its name's stem.
        schemas: Read these schemas into one graph and qualify the tables by them; "*" or "all" (or a list of "*"
            alone) for every schema but the system's; by default the connection's default schema, with unqualified
            tables.
        row_counts: Fill `Table.num_rows` with the catalogue's estimates; no table is counted.

    Raises:
        ValueError: If the database cannot be reached, is not there or is not a database, its
            dialect is unknown or its driver not installed, a schema does not exist, or it has no
            tables. No message shows a password.
    """
    if schemas in ("*", "all", ["*"], ("*",)):
        schemas = "*"
    elif isinstance(schemas, str) or (schemas is not None and not schemas):
        raise ValueError(f"schemas={schemas!r}: give a list of schema names, '*' for all, or None for the default one")
    target = parse_target(url)
    engine = open_engine(target)
    dialect = sqlglot_dialect(engine.dialect.name)
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", SAWarning)
            # The PRAGMA gives SQLite's keys; text that SQLAlchemy cannot match to it costs only a name.
            warnings.filterwarnings("ignore", "WARNING: SQL-parsed foreign key constraint", SAWarning)
            with engine.connect() as connection:
                is_duckdb = engine.dialect.name == "duckdb"
                found = without_namesakes((read_duckdb if is_duckdb else reflect)(connection, schemas))
                default = DEFAULT_SCHEMA if is_duckdb else engine.dialect.default_schema_name
                if row_counts:
                    found = _with_row_counts(found, connection)
    except (SQLAlchemyError, OSError) as error:
        # From None: the driver's own error may quote the connection string.
        raise ValueError(f"{target}: the database cannot be read ({target.reason(error)})") from None
    finally:
        engine.dispose()
    if not found.tables:
        where = "" if schemas is None or schemas == "*" else f" in schemas {list(schemas)}"
        unread = f" that can be read ({'; '.join(found.notes)})" if found.notes else ""
        raise ValueError(f"{target}: there are no tables{where}{unread}; check the name and the rights")
    notes = found.notes + [" ".join(str(warning.message).split()) for warning in caught]
    read_by_views, unresolved = view_keys(found.tables, dialect, default)
    return build_graph(name or target.name, found.tables, found.keys + read_by_views, dialect, notes + unresolved)


def sqlglot_dialect(backend: str) -> str:
    """Name in sqlglot of a SQLAlchemy dialect; empty, the generic dialect, where it has none."""
    dialect = _DIALECTS.get(backend, backend)
    return dialect if Dialect.get(dialect) is not None else ""


def _with_row_counts(found: Catalogue, connection: Connection) -> Catalogue:
    schemas = dict.fromkeys(table.schema for table in found.tables)
    counts = {schema: estimated_rows(connection, schema) for schema in schemas}
    notes = list(found.notes)
    if any(known is None for known in counts.values()):
        notes.append(f"row counts are not known: no estimates are read from {connection.dialect.name}")
    tables = [replace(table, num_rows=(counts[table.schema] or {}).get(table.name)) for table in found.tables]
    return Catalogue(tables, found.keys, notes)
