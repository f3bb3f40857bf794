"""One database's schema as one line of the project's format, both ways.

    {db_id, dialect,
     tables: [{name, natural_name, description,
               columns: [{name, natural_name, type, description, primary_key}]}],
     foreign_keys: [{table, column, ref_table, ref_column}]}

Optional, written only where needed: `schema`, `is_view`, `key_columns` (primary key in constraint
order), `definition` (a view's SQL) and `members` (tables that a family stands for) of a table;
`schema`, `ref_schema`, `origin` and `key` of a foreign key. Lines of keys with equal `key` are one
composite key; without it `composite.composite_keys` decides. A key of origin `view` has no columns.
A table name with dots (BigQuery, Snowflake) stays one name. Other fields are ignored.
"""

from dataclasses import replace
from itertools import groupby

from bayeslink.schema.composite import composite_keys
from bayeslink.schema.graph import Column, ForeignKey, Origin, RawKey, SchemaGraph, Table, build_graph
from bayeslink.schema.lines import Record

__all__ = ["read_schema", "schema_line"]


def read_schema(record: Record) -> SchemaGraph:
    """The schema graph of one line.

    Raises:
        ValueError: If a field is missing or of the wrong kind, or there are no tables or one twice.
    """
    db_id = record.text("db_id")
    tables = [_table(table) for table in record.records("tables")]
    if not tables:
        raise record.error(f"database {db_id!r} has no tables; list at least one or remove the line")
    lines = [(line.maybe_number("key"), _raw_key(line)) for line in record.records("foreign_keys")]
    keys: list[RawKey] = []
    for (number, of_view), block in groupby(lines, key=lambda line: (line[0], line[1].origin is Origin.VIEW)):
        found = [key for _, key in block]
        keys += found if of_view else composite_keys(tables, found) if number is None else [_join(found)]
    try:
        return build_graph(db_id, tables, keys, record.text("dialect", may_be_empty=True))
    except ValueError as error:
        raise record.error(str(error)) from error


def schema_line(db_id: str, graph: SchemaGraph) -> dict[str, object]:
    """The line of one schema graph; read back, it gives the graph less what it dropped or warned of."""
    keys = [_stated(key, graph) for key in graph.foreign_keys]
    split = [(number, line) for number, key in enumerate(keys) for line in _by_column(key)]
    # Numbers only where the plain lines would be grouped differently when read back.
    plain = composite_keys(graph.tables, [line for _, line in split]) == keys
    return {
        "db_id": db_id,
        "dialect": graph.dialect,
        "tables": [_table_line(table) for table in graph.tables],
        "foreign_keys": [_key_line(line, None if plain else number) for number, line in split],
    }


def _table(record: Record) -> Table:
    columns = tuple(
        Column(
            column.text("name"),
            column.maybe_text("type") or "",
            column.maybe_text("natural_name"),
            column.maybe_text("description"),
            column.flag("primary_key"),
        )
        for column in record.records("columns")
    )
    return Table(
        record.text("name"),
        columns,
        record.maybe_text("schema"),
        record.maybe_text("natural_name"),
        record.maybe_text("description"),
        record.flag("is_view"),
        record.texts("key_columns"),
        record.maybe_text("definition"),
        record.texts("members"),
    )


def _raw_key(record: Record) -> RawKey:
    origin = record.maybe_text("origin") or Origin.DECLARED.value
    if origin not in set(Origin):
        raise record.error(f"origin {origin!r} is unknown; use one of {[str(kind) for kind in Origin]}")
    of_view = origin == Origin.VIEW
    return RawKey(
        record.text("table"),
        () if of_view else (record.text("column"),),
        record.text("ref_table"),
        () if of_view else (record.text("ref_column"),),
        record.maybe_text("schema"),
        record.maybe_text("ref_schema"),
        Origin(origin),
    )


def _join(lines: list[RawKey]) -> RawKey:
    columns = tuple(line.columns[0] for line in lines)
    return replace(lines[0], columns=columns, ref_columns=tuple(line.ref_columns[0] for line in lines))


def _by_column(key: RawKey) -> list[RawKey]:
    if key.origin is Origin.VIEW:
        return [key]
    pairs = zip(key.columns, key.ref_columns, strict=True)
    return [replace(key, columns=(column,), ref_columns=(ref_column,)) for column, ref_column in pairs]


def _stated(key: ForeignKey, graph: SchemaGraph) -> RawKey:
    child, parent = graph.tables[key.table], graph.tables[key.ref_table]
    ref_schema = None if parent.schema == child.schema else parent.schema or ""
    return RawKey(child.name, key.columns, parent.name, key.ref_columns, child.schema, ref_schema, key.origin)


def _table_line(table: Table) -> dict[str, object]:
    names = ("name", "natural_name", "type", "description", "primary_key")
    line: dict[str, object] = {
        "name": table.name,
        "natural_name": table.natural_name,
        "description": table.description,
        "columns": [{name: getattr(column, name) for name in names} for column in table.columns],
    }
    extra = {"schema": table.schema, "is_view": table.is_view, "key_columns": list(table.key_columns)}
    extra |= {"definition": table.definition, "members": list(table.members)}
    return line | {name: value for name, value in extra.items() if value}


def _key_line(key: RawKey, number: int | None) -> dict[str, object]:
    line: dict[str, object] = {
        "table": key.table,
        "column": key.columns[0] if key.columns else None,
        "ref_table": key.ref_table,
        "ref_column": key.ref_columns[0] if key.ref_columns else None,
    }
    extra = {
        "schema": key.schema,
        "ref_schema": key.ref_schema,
        "origin": None if key.origin is Origin.DECLARED else str(key.origin),
        "key": number,
    }
    return line | {name: value for name, value in extra.items() if value is not None}
