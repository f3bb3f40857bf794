"""Tables, views and keys of a catalogue by SQLAlchemy's inspector, for every dialect that has one.

Left out, and noted: the tables in which SQLite keeps the contents of a virtual table, and the partitions of a
PostgreSQL table, which are read through it. PostgreSQL's foreign tables are tables.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple, TypeVar

import sqlalchemy
from sqlalchemy.dialects.postgresql.base import PGInspector
from sqlalchemy.engine import Connection, Inspector
from sqlalchemy.engine.reflection import ObjectKind
from sqlalchemy.exc import CompileError, DBAPIError, SQLAlchemyError
from sqlalchemy.types import NullType, TypeEngine

from bayeslink.schema.catalogue import Catalogue, is_system_schema, named_tables
from bayeslink.schema.graph import Column, RawKey, Table

__all__ = ["reflect"]

_PARTITIONS = """
    SELECT c.relname FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
    WHERE c.relispartition AND c.relkind IN ('r', 'p', 'f')
    AND CASE WHEN CAST(:schema AS text) IS NULL THEN pg_catalog.pg_table_is_visible(c.oid)
             ELSE n.nspname = :schema END
    ORDER BY c.relname
"""

Found = TypeVar("Found")


class _Parts(NamedTuple):
    """Tables of a schema that are parts of others, and what they are."""

    names: list[str]
    kind: str


def reflect(connection: Connection, schemas: Sequence[str] | str | None) -> Catalogue:
    """What the catalogue holds of some schemas.

    Args:
        connection: An open connection; one for all questions, as a new one each would take long.
        schemas: Schemas whose tables are read and qualified; "*" for all but the system's; None for the default one,
            unqualified.

    Raises:
        ValueError: If SQLite has no schema of a name.
        SQLAlchemyError: If the catalogue cannot be read.
    """
    inspector = sqlalchemy.inspect(connection)
    dialect = connection.dialect.name
    wanted: Sequence[str | None] = [None]
    if isinstance(schemas, str):
        wanted = [name for name in inspector.get_schema_names() if not is_system_schema(name)]
    elif schemas is not None:
        wanted = schemas
        if dialect == "sqlite":
            _check_sqlite_schemas(inspector, schemas)
    if schemas is not None and dialect == "postgresql":
        # So that keys and views name the schema of every table.
        connection.execute(sqlalchemy.text("SET search_path TO pg_catalog"))
        connection.commit()
    found, parts = Catalogue([], [], []), set()
    for schema in wanted:
        before = len(found.tables)
        left_out = _parts(connection, schema)
        parts |= {(schema, name) for name in left_out.names}
        _read_schema(inspector, schema, found, left_out)
        if schema is not None and not isinstance(schemas, str) and len(found.tables) == before:
            found.notes.append(f"schema {schema!r} has no tables")
    # A key to a partitioned table is stated once more for each of its partitions.
    found.keys[:] = [
        key
        for key in found.keys
        if (key.schema if key.ref_schema is None else key.ref_schema, key.ref_table) not in parts
    ]
    return found


def _check_sqlite_schemas(inspector: Inspector, schemas: Sequence[str]) -> None:
    held = inspector.get_schema_names()
    for schema in schemas:
        # SQLAlchemy does not list `temp`, which every connection has.
        if schema.casefold() not in {"temp", *map(str.casefold, held)}:
            raise ValueError(f"schemas={list(schemas)}: there is no schema {schema!r}; there is {', '.join(held)}")


def _parts(connection: Connection, schema: str | None) -> _Parts:
    if connection.dialect.name == "sqlite":
        rows = connection.execute(sqlalchemy.text("PRAGMA table_list")).mappings().all()
        place = (schema or "main").casefold()
        shadows = [row["name"] for row in rows if row["type"] == "shadow" and row["schema"].casefold() == place]
        return _Parts(shadows, "shadow tables of virtual tables")
    if connection.dialect.name == "postgresql":
        names = connection.execute(sqlalchemy.text(_PARTITIONS), {"schema": schema}).scalars()
        return _Parts([str(name) for name in names], "partitions, which are read through their table,")
    return _Parts([], "")


def _read_schema(inspector: Inspector, schema: str | None, found: Catalogue, parts: _Parts) -> None:
    names, views = _table_names(inspector, schema), _view_names(inspector, schema)
    tables = [name for name in names if name not in parts.names]
    notes = found.notes
    if left_out := [name for name in names if name in parts.names]:
        notes.append(f"{parts.kind} are left out: {named_tables(left_out)}")
    columns = _each(inspector.get_multi_columns, inspector.get_columns, [*tables, *views], schema, notes, inspector)
    readable = [name for name in tables if name in columns]
    primary = _each(inspector.get_multi_pk_constraint, inspector.get_pk_constraint, readable, schema, notes, inspector)
    foreign = _each(inspector.get_multi_foreign_keys, inspector.get_foreign_keys, readable, schema, notes, inspector)
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
                definition=_definition(inspector, name, schema, notes) if name in views else None,
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


def _table_names(inspector: Inspector, schema: str | None) -> list[str]:
    foreign = inspector.get_foreign_table_names(schema=schema) if isinstance(inspector, PGInspector) else []
    return [*inspector.get_table_names(schema=schema), *foreign]


def _view_names(inspector: Inspector, schema: str | None) -> list[str]:
    names = list(inspector.get_view_names(schema=schema))
    try:
        materialized = inspector.get_materialized_view_names(schema=schema)
    except NotImplementedError:  # the dialect has none
        materialized = []
    return names + [name for name in materialized if name not in names]


def _definition(inspector: Inspector, view: str, schema: str | None, notes: list[str]) -> str | None:
    try:
        return inspector.get_view_definition(view, schema=schema)
    except NotImplementedError:
        return None
    except SQLAlchemyError as error:
        notes.append(f"view {view!r} has no edges: its SQL cannot be read ({_cause(error, inspector)})")
        return None


def _each(
    read_all: Callable[..., Mapping[tuple[str | None, str], Found]],
    read_one: Callable[..., Found],
    names: Sequence[str],
    schema: str | None,
    notes: list[str],
    inspector: Inspector,
) -> dict[str, Found]:
    """What the catalogue says of each name: of all at once, then one by one of those that were not answered.

    A broken view makes the joint question fail, or is passed over by it; alone, it says what is wrong.
    """
    try:
        joint = read_all(schema=schema, kind=ObjectKind.ANY)
        found = {name: joint[schema, name] for name in names if (schema, name) in joint}
    except SQLAlchemyError as error:
        _cause(error, inspector)
        found = {}
    for name in names:
        if name in found:
            continue
        try:
            found[name] = read_one(name, schema=schema)
        except SQLAlchemyError as error:
            notes.append(f"{name!r} cannot be read ({_cause(error, inspector)})")
    return found


def _cause(error: SQLAlchemyError, inspector: Inspector) -> str:
    """What the driver says, the failed transaction ended so that others can follow."""
    if isinstance(inspector.bind, Connection):
        inspector.bind.rollback()
    return " ".join(str(error.orig if isinstance(error, DBAPIError) else error).split())


def _type_name(kind: TypeEngine, inspector: Inspector) -> str:
    if isinstance(kind, NullType):
        return ""
    try:
        return kind.compile(dialect=inspector.dialect)
    except CompileError:
        return type(kind).__name__
