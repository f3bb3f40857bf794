"""One query on a database that it cannot change, within a time and a number of rows.

The database itself keeps the promise, whatever the query says: SQLite by `mode=ro`, `PRAGMA query_only` and an
authoriser that lets through reading tables and nothing else, so that neither the catalogue nor another file can be
read; PostgreSQL and MySQL or MariaDB by a read-only transaction; DuckDB by opening the file read-only without access to
other files. For any other kind of database nothing is run. A transaction that only reads can still call what a server
offers as functions: use a role with no more rights than the answers need.
"""

import re
import sqlite3
import threading
from collections.abc import Callable, Generator, Sequence
from contextlib import closing, contextmanager
from typing import NamedTuple

import sqlalchemy
from sqlalchemy.engine import Connection, Engine
from sqlalchemy.exc import DBAPIError, SQLAlchemyError
from sqlalchemy.pool import NullPool

from bayeslink.schema.engine import Target, open_engine, parse_target

__all__ = ["QueryError", "QueryTimeoutError", "Rows", "run_read_only", "told"]

_READS = {sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ, sqlite3.SQLITE_FUNCTION, sqlite3.SQLITE_RECURSIVE}
_CATALOGUE = ("sqlite_", "pragma_")
_QUOTED = re.compile(r"\"[^\"]*\"|'[^']*'|`[^`]*`|\[[^\]]*\]|\([^()]*\)")
_NAMED = re.compile(r"(?<=\btable )\S+|(?<=\bview )\S+|(?<=\bcolumn )\S+|(?<=\brelation )\S+|(?<=\bschema )\S+")
_COMPOUND = re.compile(r"\w*(?:\w[._]\w|[a-z][A-Z]|[A-Za-z]\d)[\w.]*")
_WORD = re.compile(r"\w+")


class QueryError(ValueError):
    """The database refused a query; the message is what it says, in one line."""


class QueryTimeoutError(QueryError):
    """A query took longer than it may."""


class Rows(NamedTuple):
    """The result of a query.

    Attributes:
        columns: Names of its columns.
        rows: The first rows, no more than were asked for.
        more: Whether there are more rows.
    """

    columns: tuple[str, ...]
    rows: tuple[tuple[object, ...], ...]
    more: bool


def run_read_only(url: str, sql: str, max_rows: int = 1000, timeout: float | int = 30) -> Rows:
    """Run one query and read its first rows.

    Args:
        url: SQLAlchemy URL, or the path of an SQLite file.
        sql: The query, in the database's dialect; whether it may be run is to be checked before.
        max_rows: Most rows that are read; a count.
        timeout: Seconds that the query may take.

    Raises:
        ValueError: If a number is out of range, the address names no database, or it is of a kind that cannot be kept
            read-only here.
        QueryError: If the database raises an error.
        QueryTimeoutError: If the query takes too long.
    """
    if max_rows < 1 or not timeout > 0:
        raise ValueError(f"max_rows={max_rows}, timeout={timeout:g}: use at least 1 row and more than 0 seconds")
    target = parse_target(url)
    engine = _engine(target)
    late = threading.Event()
    try:
        with engine.connect() as connection, _guarded(connection, max_rows, float(timeout), late):
            # Without parameters, so that a colon or a percent sign is what it is in the dialect.
            reading = connection.execution_options(no_parameters=True, stream_results=True)
            found = reading.exec_driver_sql(sql)
            if not found.returns_rows:
                raise QueryError("it gives no rows")
            with closing(found):
                read = [tuple(row) for row in found.fetchmany(max_rows + 1)]
                return Rows(tuple(found.keys()), tuple(read[:max_rows]), len(read) > max_rows)
    except (SQLAlchemyError, sqlite3.Error, RuntimeError, OSError) as error:
        if late.is_set() or _says_late(error):
            raise QueryTimeoutError(f"it took longer than {timeout:g} seconds") from None
        # From None: the driver's own error may quote the connection string.
        raise QueryError(target.reason(_first_line(error))) from None
    finally:
        engine.dispose()


def told(reason: str, known: Sequence[str]) -> str:
    """What a database said of a query, without names and values that the query's author has not seen.

    Servers name near matches, tables behind a view and cell values in their errors. Quoted parts, parts in parentheses,
    words that follow `table`, `column` and the like, and words that look like identifiers stay only where all their
    words stand in a text that is known; else an ellipsis stands for them.

    Args:
        reason: The error.
        known: Texts that its reader has seen, such as the query and the schema that was shown.
    """
    seen = {word.casefold() for text in known for word in _WORD.findall(text)}

    def kept(found: re.Match[str]) -> str:
        words = _WORD.findall(found.group())
        return found.group() if all(word.casefold() in seen for word in words) else "..."

    for pattern in (_QUOTED, _NAMED, _COMPOUND):
        reason = pattern.sub(kept, reason)
    return reason


def _engine(target: Target) -> Engine:
    backend = target.url.get_backend_name()
    if backend in ("sqlite", "postgresql", "mysql", "mariadb"):
        return open_engine(target)
    if backend == "duckdb":
        open_engine(target).dispose()  # checks the dialect and its driver
        closed = {"read_only": True, "config": {"enable_external_access": "false"}}
        return sqlalchemy.create_engine(target.url, poolclass=NullPool, connect_args=closed)
    raise ValueError(
        f"{target}: queries are run only where they can be kept from changing anything, on SQLite, PostgreSQL, MySQL, "
        "MariaDB and DuckDB; take the SQL and run it yourself"
    )


@contextmanager
def _guarded(connection: Connection, max_rows: int, timeout: float, late: threading.Event) -> Generator[None]:
    """A connection that only reads, and only for so long; nothing of its transaction stays."""
    kind, milliseconds = connection.dialect.name, max(1, round(timeout * 1000))
    driver: object = connection.connection.driver_connection
    timer: threading.Timer | None = None
    if kind in ("sqlite", "duckdb"):
        if isinstance(driver, sqlite3.Connection):
            driver.execute("PRAGMA query_only = ON")
            driver.set_authorizer(_authorise)
        interrupt: Callable[[], None] = getattr(driver, "interrupt")  # noqa: B009

        def stop() -> None:
            late.set()
            interrupt()

        timer = threading.Timer(timeout, stop)
        timer.daemon = True
        timer.start()
    elif kind == "postgresql":
        connection.exec_driver_sql("SET TRANSACTION READ ONLY")
        connection.exec_driver_sql(f"SET LOCAL statement_timeout = {milliseconds}")
    else:
        is_mariadb = getattr(connection.dialect, "is_mariadb", False)
        limit = f"max_statement_time = {timeout:g}" if is_mariadb else f"max_execution_time = {milliseconds}"
        # What is left of a result is read before its connection is closed, so that it must be bounded.
        connection.exec_driver_sql(f"SET SESSION {limit}, sql_select_limit = {max_rows + 1}")
        # Of the session: in MariaDB a statement that commits, such as DROP TABLE, ends one read-only transaction.
        connection.exec_driver_sql("SET SESSION TRANSACTION READ ONLY")
        connection.exec_driver_sql("START TRANSACTION READ ONLY")
    try:
        yield
    finally:
        if timer is not None:
            timer.cancel()
            timer.join()  # an interrupt must not meet a connection that is closed
        if isinstance(driver, sqlite3.Connection):
            driver.set_authorizer(None)
        connection.rollback()


def _authorise(action: int, first: str | None, second: str | None, database: str | None, source: str | None) -> int:
    """Whether SQLite may do what it is about to; what tells of other tables, `sqlite_schema` above all, is not read."""
    name = (first or "").casefold()
    if action == sqlite3.SQLITE_READ:
        allowed = not name.startswith(_CATALOGUE) or _declares(action, name, second)
    else:
        allowed = action in _READS or (action == sqlite3.SQLITE_PRAGMA and name == "data_version")
        allowed = allowed or _declares(action, name, second)
    return sqlite3.SQLITE_OK if allowed else sqlite3.SQLITE_DENY


def _declares(action: int, name: str, column: str | None) -> bool:
    """Whether this is how SQLite declares a virtual table, such as json_each, in memory; the file takes no write."""
    if action == sqlite3.SQLITE_READ:
        return name == "sqlite_master" and column == "ROWID"
    return action == sqlite3.SQLITE_UPDATE and name == "sqlite_master"


def _first_line(error: Exception) -> Exception:
    """The error with the first line alone: those that follow quote the query and hint at names beside it."""
    cause = error.orig if isinstance(error, DBAPIError) and error.orig is not None else error
    if len(cause.args) > 1 and isinstance(cause.args[0], int):  # MySQL: number, text
        return ValueError(str(cause.args[1]).strip().partition("\n")[0])
    return ValueError(str(cause).strip().partition("\n")[0] or type(cause).__name__)


def _says_late(error: Exception) -> bool:
    cause = getattr(error, "orig", None)
    number = cause.args[0] if cause is not None and cause.args else None
    # PostgreSQL's query_canceled; MySQL's and MariaDB's numbers for a statement over its time.
    return getattr(cause, "sqlstate", None) == "57014" or number in (3024, 1969)
