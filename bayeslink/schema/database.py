"""The schema graph of a live database, by SQLAlchemy reflection; nothing is ever written to it.

Views are nodes without keys. What the catalogue holds but cannot be read (a view on a dropped table, a type
that SQLAlchemy does not know) is named in `SchemaGraph.warnings`, a key that dangles in `dropped`. So are the
tables in which SQLite keeps the contents of a virtual table: they are left out.
"""

import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple, TypeVar

import sqlalchemy
from sqlalchemy.engine import Connection, Engine, Inspector
from sqlalchemy.engine.reflection import ObjectKind
from sqlalchemy.exc import CompileError, DBAPIError, SAWarning, SQLAlchemyError
from sqlalchemy.types import NullType, TypeEngine
from sqlglot.dialects.dialect import Dialect

from bayeslink.schema.engine import open_engine, parse_target
from bayeslink.schema.graph import Column, RawKey, SchemaGraph, Table, build_graph

__all__ = ["read_database", "sqlglot_dialect"]

_DIALECTS = {"postgresql": "postgres", "cockroachdb": "postgres", "mssql": "tsql", "mariadb": "mysql"}

Found = TypeVar("Found")


class _Catalogue(NamedTuple):
    tables: list[Table]
    keys: list[RawKey]
    notes: list[str]


def read_database(url: str, name: str | None = None, schemas: Sequence[str] | None = None) -> SchemaGraph:
    """Tables, views and foreign keys of a database.

    Args:
        url: SQLAlchemy URL, or the path of an SQLite file.
        name: The graph's name; by default that of the database, for SQLite the file name's stem.
        schemas: Read these schemas and qualify the tables by them; by default the connection's
            default schema, with unqualified tables.

    Raises:
        ValueError: If the database cannot be reached, is not there or is not a database, its
            dialect is unknown or its driver not installed, a schema does not exist, or it has no
            tables. No message shows a password.
    """
    if isinstance(schemas, str) or (schemas is not None and not schemas):
        raise ValueError(f"schemas={schemas!r}: give a list of schema names, or None for the default schema")
    target = parse_target(url)
    engine = open_engine(target)
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", SAWarning)
            # The PRAGMA gives SQLite's keys; text that SQLAlchemy cannot match to it costs only a name.
            warnings.filterwarnings("ignore", "WARNING: SQL-parsed foreign key constraint", SAWarning)
            found = _read(engine, schemas)
    except (SQLAlchemyError, OSError) as error:
        # From None: the driver's own error may quote the connection string.
        raise ValueError(f"{target}: the database cannot be read ({target.reason(error)})") from None
    finally:
        engine.dispose()
    if not found.tables:
        where = "" if schemas is None else f" in schemas {list(schemas)}"
        unread = f" that can be read ({'; '.join(found.notes)})" if found.notes else ""
        raise ValueError(f"{target}: there are no tables{where}{unread}; check the name and the rights")
    notes = found.notes + [" ".join(str(warning.message).split()) for warning in caught]
    dialect = sqlglot_dialect(engine.dialect.name)
    return build_graph(name or target.name, found.tables, found.keys, dialect, notes)


def sqlglot_dialect(backend: str) -> str:
    """Name in sqlglot of a SQLAlchemy dialect; empty, the generic dialect, where it has none."""
    dialect = _DIALECTS.get(backend, backend)
    return dialect if Dialect.get(dialect) is not None else ""


def _read(engine: Engine, schemas: Sequence[str] | None) -> _Catalogue:
    found = _Catalogue([], [], [])
    # One connection for all: NullPool would open a new one for every question to the catalogue.
    with engine.connect() as connection:
        inspector = sqlalchemy.inspect(connection)
        if engine.dialect.name == "sqlite":
            _check_sqlite_schemas(inspector, schemas or ())
        for schema in [None] if schemas is None else schemas:
            before = len(found.tables)
            _read_schema(inspector, schema, found, _shadow_tables(connection, schema))
            if schema is not None and len(found.tables) == before:
                found.notes.append(f"schema {schema!r} has no tables")
    return found


def _check_sqlite_schemas(inspector: Inspector, schemas: Sequence[str]) -> None:
    held = inspector.get_schema_names()
    for schema in schemas:
        # SQLAlchemy does not list `temp`, which every connection has.
        if schema.casefold() not in {"temp", *map(str.casefold, held)}:
            raise ValueError(f"schemas={list(schemas)}: there is no schema {schema!r}; there is {', '.join(held)}")


def _shadow_tables(connection: Connection, schema: str | None) -> set[str]:
    """Tables in which SQLite keeps the contents of a virtual table, such as those of a full-text index."""
    if connection.dialect.name != "sqlite":
        return set()
    rows = connection.execute(sqlalchemy.text("PRAGMA table_list")).mappings()
    place = (schema or "main").casefold()
    return {row["name"] for row in rows if row["type"] == "shadow" and row["schema"].casefold() == place}


def _read_schema(inspector: Inspector, schema: str | None, found: _Catalogue, shadows: set[str]) -> None:
    names, views = inspector.get_table_names(schema=schema), _view_names(inspector, schema)
    tables = [name for name in names if name not in shadows]
    notes = found.notes
    if left_out := [name for name in names if name in shadows]:
        notes.append(f"shadow tables of virtual tables are left out: {', '.join(left_out)}")
    columns = _each(inspector.get_multi_columns, inspector.get_columns, [*tables, *views], schema, notes)
    readable = [name for name in tables if name in columns]
    primary = _each(inspector.get_multi_pk_constraint, inspector.get_pk_constraint, readable, schema, notes)
    foreign = _each(inspector.get_multi_foreign_keys, inspector.get_foreign_keys, readable, schema, notes)
    comments = {}
    if inspector.dialect.supports_comments:
        comments = inspector.get_multi_table_comment(schema=schema, kind=ObjectKind.ANY)
    for name in [*readable, *(view for view in views if view in columns)]:
        key = tuple(primary[name]["constrained_columns"]) if primary.get(name) else ()
        comment = (comments.get((schema, name)) or {}).get("text")
        found.tables.append(
            Table(
                name,
                tuple(
                    Column(
                        column["name"],
                        _type_name(column["type"], inspector),
                        description=column.get("comment"),
                        primary_key=column["name"] in key,
                    )
                    for column in columns[name]
                ),
                schema,
                description=comment,
                is_view=name in views,
                key_columns=key,
            )
        )
        for stated in foreign.get(name) or []:
            found.keys.append(
                RawKey(
                    name,
                    tuple(stated["constrained_columns"]),
                    stated["referred_table"],
                    tuple(stated["referred_columns"]),
                    schema,
                    _referred_schema(stated["referred_schema"], schema, inspector),
                )
            )


def _referred_schema(stated: str | None, schema: str | None, inspector: Inspector) -> str | None:
    # Unqualified tables have schema None, and dialects name the default schema or not.
    default = inspector.default_schema_name
    if schema is None:
        return None if stated in (None, default) else stated
    return stated or default


def _view_names(inspector: Inspector, schema: str | None) -> list[str]:
    names = list(inspector.get_view_names(schema=schema))
    try:
        materialized = inspector.get_materialized_view_names(schema=schema)
    except NotImplementedError:  # the dialect has none
        materialized = []
    return names + [name for name in materialized if name not in names]


def _each(
    read_all: Callable[..., Mapping[tuple[str | None, str], Found]],
    read_one: Callable[..., Found],
    names: Sequence[str],
    schema: str | None,
    notes: list[str],
) -> dict[str, Found]:
    """What the catalogue says of each name; one query for all, or one per name where that fails.

    One broken view makes the joint query fail, so that then each is tried and the broken one noted.
    """
    try:
        joint = read_all(schema=schema, kind=ObjectKind.ANY)
        return {name: joint[schema, name] for name in names if (schema, name) in joint}
    except SQLAlchemyError:
        found = {}
        for name in names:
            try:
                found[name] = read_one(name, schema=schema)
            except SQLAlchemyError as error:
                cause = error.orig if isinstance(error, DBAPIError) else error
                notes.append(f"{name!r} cannot be read ({cause})")
        return found


def _type_name(kind: TypeEngine, inspector: Inspector) -> str:
    if isinstance(kind, NullType):
        return ""
    try:
        return kind.compile(dialect=inspector.dialect)
    except CompileError:
        return type(kind).__name__
