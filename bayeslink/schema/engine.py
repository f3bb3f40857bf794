"""Connections for reading a catalogue: read-only, and no message shows a secret.

SQLite and DuckDB files are opened read-only, so that a missing file is an error and is never created. PostgreSQL,
MySQL and MariaDB are told when the connection is made that its transactions only read; a statement may revoke that,
so the rights of the account remain the wall. Of every other dialect nothing is asked: give an account that may only
read. A URL that names no driver gets the one of this package's extra.
"""

import os.path
import sqlite3
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote, unquote

import sqlalchemy
from sqlalchemy import event
from sqlalchemy.engine import URL, Connection, Engine, make_url
from sqlalchemy.exc import ArgumentError, DBAPIError, NoSuchModuleError, SQLAlchemyError
from sqlalchemy.pool import NullPool

__all__ = ["Target", "open_engine", "parse_target"]

_SECRETS = ("password", "passwd", "pwd", "token", "secret", "key", "odbc_connect")
_DRIVERS = {"postgresql": "psycopg", "mysql": "pymysql", "mariadb": "pymysql"}
_EXTRAS = {"postgresql": "postgresql", "mysql": "mysql", "mariadb": "mysql", "duckdb": "duckdb"}
_READ_ONLY = {
    "postgresql": "SET SESSION CHARACTERISTICS AS TRANSACTION READ ONLY",
    "mysql": "SET SESSION TRANSACTION READ ONLY",
    "mariadb": "SET SESSION TRANSACTION READ ONLY",
}
_NO_URL = "no SQLAlchemy URL; write dialect+driver://user:password@host/name"


class Target(NamedTuple):
    """Address of a database; printed, it hides the password and every secret field."""

    url: URL

    def __str__(self) -> str:
        hidden = dict.fromkeys(self._secret_fields, "hidden")
        return self.url.update_query_dict(hidden).render_as_string(hide_password=True)

    @property
    def file(self) -> Path | None:
        """Path of the file of an SQLite or DuckDB database; None for every other and for one in memory."""
        database = self.url.database
        if self.url.get_backend_name() not in ("sqlite", "duckdb") or not database or database == ":memory:":
            return None
        if self.url.get_backend_name() == "duckdb":
            return Path(database)
        return Path(unquote(database.removeprefix("file:")) if database.startswith("file:") else database)

    @property
    def name(self) -> str:
        """Name of the database: a file's stem, else what the URL says."""
        return self.file.stem if self.file is not None else self.url.database or str(self)

    def reason(self, error: Exception) -> str:
        """What an error says, in one line and without the secrets of this address."""
        cause = error.orig if isinstance(error, DBAPIError) and error.orig is not None else error
        text = " ".join(str(cause).split()) or type(cause).__name__
        secrets = [self.url.password, *(self.url.query[name] for name in self._secret_fields)]
        for secret in map(str, filter(None, secrets)):
            text = text.replace(secret, "***").replace(quote(secret, safe=""), "***")
        return text

    @property
    def _secret_fields(self) -> list[str]:
        return [name for name in self.url.query if any(word in name.lower() for word in _SECRETS)]


def parse_target(url: str) -> Target:
    """The address that a SQLAlchemy URL, or the path of an SQLite file, names.

    Raises:
        ValueError: If the text is not a URL and no file lies at that path. The text is not shown where
            it may hold a password.
    """
    if "://" not in url:
        if os.path.exists(url):
            return Target(URL.create("sqlite", database=url))
        if _may_hold_a_password(url):
            raise ValueError(f"url is no file, and {_NO_URL}")
        raise ValueError(f"{url}: no such file; give an SQLite file or a URL such as dialect://host/name")
    try:
        target = Target(make_url(url))
    except (ArgumentError, ValueError):
        # From None and without the text, which may hold a password.
        raise ValueError(f"url is {_NO_URL}") from None
    # A password out of its place (a slash too many, an @ in it) is read as part of the host or the name.
    is_file = target.file is not None and target.file.exists()
    if "@" in (target.url.host or "") or (not is_file and _may_hold_a_password(target.url.database or "")):
        raise ValueError(f"url is {_NO_URL}, with %40 for an @ in the password")
    return target


def open_engine(target: Target) -> Engine:
    """A read-only engine for the address; only a file is looked at, nothing is connected yet.

    Raises:
        ValueError: If a file is missing, the dialect is unknown or its driver not installed.
    """
    backend = target.url.get_backend_name()
    if backend in ("sqlite", "duckdb"):
        file = _checked_file(target)
        if backend == "sqlite":
            return _sqlite_engine(file)
    url = target.url
    if "+" not in url.drivername and backend in _DRIVERS:
        url = url.set(drivername=f"{backend}+{_DRIVERS[backend]}")
    arguments = {"read_only": True} if backend == "duckdb" else {}
    try:
        engine = sqlalchemy.create_engine(url, poolclass=NullPool, connect_args=arguments)
    except (NoSuchModuleError, ModuleNotFoundError) as error:
        raise ValueError(f"{target}: {_missing(error, url)}") from None
    except (SQLAlchemyError, TypeError) as error:
        raise ValueError(f"{target}: the URL does not fit its dialect ({target.reason(error)})") from None
    if engine.dialect.name in _READ_ONLY:
        statement = _READ_ONLY[engine.dialect.name]

        @event.listens_for(engine, "engine_connect")
        def only_read(connection: Connection) -> None:
            connection.exec_driver_sql(statement)
            connection.commit()  # else the first transaction would still write

    return engine


def _missing(error: NoSuchModuleError | ModuleNotFoundError, url: URL) -> str:
    backend = url.get_backend_name()
    extra = f"pip install 'bayeslink[{_EXTRAS[backend]}]'" if backend in _EXTRAS else ""
    own = "+" not in url.drivername or url.drivername.endswith(f"+{_DRIVERS.get(backend)}")
    if isinstance(error, ModuleNotFoundError):
        return f"the driver {error.name!r} is not installed; {extra if extra and own else 'pip install it'}"
    return f"there is no SQLAlchemy dialect {url.drivername!r}; {extra if extra and own else 'install its plug-in'}"


def _may_hold_a_password(text: str) -> bool:
    return ":" in text and "@" in text


def _checked_file(target: Target) -> Path:
    kind = {"sqlite": "an SQLite", "duckdb": "a DuckDB"}[target.url.get_backend_name()]
    if target.file is None:
        raise ValueError(f"{target}: {kind} database in memory is empty; give the path of a file")
    if not target.file.is_file():
        raise ValueError(f"{target}: {target.file} is not a file; check the path, nothing was created")
    return target.file


def _sqlite_engine(file: Path) -> Engine:
    readonly = f"file:{quote(str(file.resolve()))}?mode=ro"
    return sqlalchemy.create_engine(
        "sqlite://", creator=lambda: sqlite3.connect(readonly, uri=True), poolclass=NullPool
    )
