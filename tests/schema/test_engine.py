import sqlite3
import sys
from pathlib import Path

import pytest
import sqlalchemy
from sqlalchemy.exc import OperationalError

from bayeslink.schema.engine import open_engine, parse_target


@pytest.fixture
def database(tmp_path: Path) -> Path:
    path = tmp_path / "a b?#%20.db"
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE t (a)")
    connection.close()
    return path


def test_sqlite_is_opened_for_reading_only(database: Path):
    with open_engine(parse_target(str(database))).connect() as connection:
        assert connection.execute(sqlalchemy.text("SELECT count(*) FROM t")).scalar() == 0
        with pytest.raises(OperationalError, match="readonly"):
            connection.execute(sqlalchemy.text("INSERT INTO t VALUES (1)"))


def test_sqlite_file_url_that_asks_for_writing_is_still_read_only(database: Path):
    # Versions of SQLAlchemy differ in how often they decode a percent sign, so there is none here.
    database = database.rename(database.with_name("a b?#.db"))
    escaped = str(database).replace("?", "%3F").replace("#", "%23")
    target = parse_target(f"sqlite:///file:{escaped}?mode=rwc&uri=true")
    assert target.file == database
    with open_engine(target).connect() as connection, pytest.raises(OperationalError, match="readonly"):
        connection.execute(sqlalchemy.text("DROP TABLE t"))


def test_missing_sqlite_file_is_refused_and_not_created(tmp_path: Path):
    missing = tmp_path / "missing.db"
    with pytest.raises(ValueError, match="no such file"):
        parse_target(str(missing))
    for url in (f"sqlite:///{missing}", f"sqlite:///{tmp_path}"):
        with pytest.raises(ValueError, match="is not a file; check the path"):
            open_engine(parse_target(url))
    with pytest.raises(ValueError, match="in memory is empty"):
        open_engine(parse_target("sqlite://"))
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("strange://ann:hunter2@host/db", "there is no SQLAlchemy dialect 'strange'"),
        ("mssql+pymssql://ann:hunter2@host/db?token=hunter2", r"the driver 'pymssql' is not installed"),
        ("postgresql://ann:hunter2@host:port/db", "url is no SQLAlchemy URL"),
        ("://hunter2", "url is no SQLAlchemy URL"),
        ("ann:hunter2@host/db", "url is no file, and no SQLAlchemy URL"),
        ("postgresql:/ann:hunter2@host/db", "url is no file, and no SQLAlchemy URL"),
        ("ann:hunter2@" + "x" * 300, "url is no file, and no SQLAlchemy URL"),
        ("postgresql:///ann:hunter2@host/db", "url is no SQLAlchemy URL.*%40"),
        ("sqlite:///ann:hunter2@host/db", "url is no SQLAlchemy URL.*%40"),
        ("postgresql://ann:x@hunter2@host/db", "url is no SQLAlchemy URL.*%40"),
    ],
)
def test_addresses_that_cannot_be_opened_are_refused_without_their_password(url: str, message: str):
    with pytest.raises(ValueError, match=message) as caught:
        open_engine(parse_target(url))
    assert "hunter2" not in str(caught.value)
    assert caught.value.__context__ is None or caught.value.__suppress_context__


def test_a_file_may_have_the_characters_of_a_password(tmp_path: Path):
    path = tmp_path / "a:b@c.db"
    sqlite3.connect(path).close()
    assert parse_target(str(path)).file == path
    assert parse_target(f"sqlite:///{path}").file == path
    with pytest.raises(ValueError, match=r"missing: no such file"):
        parse_target("missing")


def test_url_that_does_not_fit_its_dialect_is_refused(monkeypatch: pytest.MonkeyPatch):
    def refuse(*args: object, **options: object) -> None:
        raise TypeError("Invalid argument(s) 'hunter2'")

    monkeypatch.setattr(sqlalchemy, "create_engine", refuse)
    with pytest.raises(ValueError, match=r"the URL does not fit its dialect \(Invalid argument\(s\) '\*\*\*'"):
        open_engine(parse_target("postgresql://ann:hunter2@host/db"))


def test_secrets_are_hidden_wherever_they_are():
    target = parse_target("postgresql://ann:s%20cret@host/db?sslmode=require&sslpassword=other")
    assert str(target) == "postgresql://ann:***@host/db?sslmode=require&sslpassword=hidden"
    said = target.reason(RuntimeError("s cret and s%20cret\nand other, require"))
    assert said == "*** and *** and ***, require"
    assert target.reason(RuntimeError()) == "RuntimeError"
    assert target.name == "db"


@pytest.mark.parametrize(
    ("url", "module", "extra"),
    [
        ("postgresql://ann:hunter2@host/db", "psycopg", "postgresql"),
        ("mysql://ann:hunter2@host/db", "pymysql", "mysql"),
        ("mariadb+pymysql://ann:hunter2@host/db", "pymysql", "mysql"),
    ],
)
def test_missing_driver_is_named_with_its_extra(monkeypatch: pytest.MonkeyPatch, url: str, module: str, extra: str):
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(ValueError, match=rf"{module}.*not installed; pip install 'bayeslink\[{extra}\]'$") as caught:
        open_engine(parse_target(url))
    assert "hunter2" not in str(caught.value)


def test_a_driver_that_the_url_names_is_kept(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, "pg8000", None)
    with pytest.raises(ValueError, match="the driver 'pg8000' is not installed; pip install it"):
        open_engine(parse_target("postgresql+pg8000://ann@host/db"))
