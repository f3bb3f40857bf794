"""What SQLite itself says that a query reads: its authorizer is asked about every column while a statement is prepared.

An oracle for `grounding.access` that shares no code with it. The database is empty and nothing is run.
"""

import sqlite3

from bayeslink.schema.graph import SchemaGraph

__all__ = ["empty_database", "sqlite_reads"]


def empty_database(graph: SchemaGraph) -> sqlite3.Connection:
    """A database in memory with the tables and views of a graph and no rows.

    Args:
        graph: Its tables become tables, those with a definition the views of it.
    """
    database = sqlite3.connect(":memory:", cached_statements=0)
    for table in graph.tables:
        if table.definition is not None:
            database.execute(f"CREATE VIEW {_quoted(table.name)} AS {table.definition}")
            continue
        if table.name.casefold().startswith("sqlite_"):
            continue  # SQLite keeps such tables itself.
        # With types: only an INTEGER PRIMARY KEY is what `rowid` means.
        key = table.primary_key if len(table.primary_key) == 1 else ()
        columns = (
            f"{_quoted(column.name)} {'INTEGER PRIMARY KEY' if column.name in key else ''}" for column in table.columns
        )
        database.execute(f"CREATE TABLE {_quoted(table.name)} ({', '.join(columns)})")
    return database


def sqlite_reads(database: sqlite3.Connection, sql: str) -> frozenset[tuple[str, str]] | None:
    """(table, column) of each read, case-folded, the column empty where rows are counted; None if it is no SQL.

    Views are in it with their own columns and with what they read.

    Args:
        database: Made by `empty_database`.
        sql: One query.
    """
    reads: set[tuple[str, str]] = set()

    def note(action: int, first: str | None, second: str | None, _database: str | None, _view: str | None) -> int:
        if action == sqlite3.SQLITE_READ:
            reads.add(((first or "").casefold(), (second or "").casefold()))
        return sqlite3.SQLITE_OK

    database.set_authorizer(note)
    try:
        database.execute(f"EXPLAIN {sql}")
    except (sqlite3.Error, sqlite3.Warning):
        return None
    finally:
        database.set_authorizer(None)
    return frozenset(reads)


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
