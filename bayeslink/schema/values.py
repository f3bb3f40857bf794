"""Values that the text columns of a live database hold: a bounded sample, read and never written.

For each text column of a graph that was read from the database, one query

    SELECT DISTINCT column FROM (SELECT column FROM table LIMIT max_rows) LIMIT max_values

looks at no more than the first rows, so that its cost does not grow with the table. Nothing but SELECT is sent; an
SQLite file is opened read-only, and PostgreSQL is asked for a read-only transaction.
"""

from typing import NamedTuple

import sqlalchemy
from sqlalchemy.engine import Connection
from sqlalchemy.exc import SQLAlchemyError

from bayeslink.schema.engine import Target, open_engine, parse_target
from bayeslink.schema.graph import SchemaGraph, Table
from bayeslink.schema.types import TypeFamily, type_family

__all__ = ["SampledValues", "sample_values"]


class SampledValues(NamedTuple):
    """A sample of a database's values.

    Attributes:
        values: Distinct values by (full name of the table, name of the column), of text columns that hold any.
        warnings: One sentence for each column that could not be read.
    """

    values: dict[tuple[str, str], tuple[str, ...]]
    warnings: tuple[str, ...]


def sample_values(
    url: str, graph: SchemaGraph, max_values: int = 200, max_rows: int = 10_000, max_length: int = 80
) -> SampledValues:
    """Distinct values of each text column, for `evidence.phrases.ValueHint`.

    Args:
        url: SQLAlchemy URL, or the path of an SQLite file.
        graph: The database's schema, from `read_database`.
        max_values: Most values of a column.
        max_rows: Rows of a table that are looked at.
        max_length: Longer values are left out: prose, which no question repeats.

    Raises:
        ValueError: If a limit is below 1, the database cannot be reached, or no text column of the graph can be
            read. No message shows a password.
    """
    for name, limit in (("max_values", max_values), ("max_rows", max_rows), ("max_length", max_length)):
        if limit < 1:
            raise ValueError(f"{name}={limit}: at least 1 is needed")
    target = parse_target(url)
    engine = open_engine(target)
    values: dict[tuple[str, str], tuple[str, ...]] = {}
    warnings, num_read = [], 0
    try:
        if engine.dialect.name == "postgresql":
            engine = engine.execution_options(postgresql_readonly=True)
        with engine.connect() as connection:
            for table in graph.tables:
                for column in table.columns:
                    if type_family(column.type) is not TypeFamily.TEXT:
                        continue
                    found = _distinct(connection, table, column.name, max_values, max_rows, target)
                    if isinstance(found, str):
                        warnings.append(found)
                        continue
                    num_read += 1
                    if kept := tuple(value for value in found if value.strip() and len(value) <= max_length):
                        values[table.full_name, column.name] = kept
    except (SQLAlchemyError, OSError) as error:
        # From None: the driver's own error may quote the connection string.
        raise ValueError(f"{target}: the database cannot be read ({target.reason(error)})") from None
    finally:
        engine.dispose()
    if warnings and not num_read:
        raise ValueError(f"{target}: no text column can be read; the first: {warnings[0]}")
    return SampledValues(values, tuple(warnings))


def _distinct(
    connection: Connection, table: Table, column: str, max_values: int, max_rows: int, target: Target
) -> list[str] | str:
    """Distinct texts of a column in order, or why there are none to be had."""
    source = sqlalchemy.table(table.name, sqlalchemy.column(column), schema=table.schema)
    rows = sqlalchemy.select(source.c[column]).limit(max_rows).subquery()
    query = sqlalchemy.select(rows.c[column]).where(rows.c[column].is_not(None)).distinct().limit(max_values)
    try:
        found = connection.execute(query).scalars().all()
    except SQLAlchemyError as error:
        # A failed statement must not spoil the transaction of those that follow.
        connection.rollback()
        return f"{table.full_name}.{column} cannot be read ({target.reason(error)})"
    return sorted(value for value in found if isinstance(value, str))
