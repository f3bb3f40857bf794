"""Queries that change nothing: what the database lets through, how long and how much, and what its errors tell."""

import sqlite3
import time
from contextlib import closing

import pytest

from bayeslink.grounding.read_only import QueryError, QueryTimeoutError, run_read_only, told

ENDLESS = "WITH RECURSIVE r(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM r)"


@pytest.fixture
def file(tmp_path) -> str:
    path = tmp_path / "shop.sqlite"
    with closing(sqlite3.connect(path)) as database:
        database.executescript(
            "CREATE TABLE goods (id INTEGER, name TEXT); INSERT INTO goods VALUES (1, 'tea'), (2, NULL), (3, 'salt');"
            "CREATE VIEW names AS SELECT name FROM goods;"
        )
    return str(path)


def test_rows_and_names_come_back_as_they_are(file):
    found = run_read_only(file, "SELECT id, name AS what FROM goods ORDER BY id")
    assert found.columns == ("id", "what")
    assert found.rows == ((1, "tea"), (2, None), (3, "salt"))
    assert not found.more
    assert run_read_only(file, "SELECT name FROM names WHERE name LIKE 't%' -- :a ? %s").rows == (("tea",),)
    assert run_read_only(file, "SELECT value FROM json_each('[1, 2]')").rows == ((1,), (2,))


def test_no_more_rows_than_asked_for_are_read_even_of_an_endless_result(file):
    found = run_read_only(file, f"{ENDLESS} SELECT i FROM r", max_rows=3)
    assert (found.rows, found.more) == (((1,), (2,), (3,)), True)
    exact = run_read_only(file, "SELECT id FROM goods", max_rows=3)
    assert (len(exact.rows), exact.more) == (3, False)


def test_a_query_is_stopped_when_its_time_is_over(file):
    start = time.monotonic()
    with pytest.raises(QueryTimeoutError, match=r"^it took longer than 0\.2 seconds$"):
        run_read_only(file, f"{ENDLESS} SELECT COUNT(*) FROM r", timeout=0.2)
    assert time.monotonic() - start < 5


@pytest.mark.parametrize(
    "sql",
    [
        "DELETE FROM goods",
        "INSERT INTO goods VALUES (4, 'x') RETURNING id",
        "UPDATE goods SET name = 'x'",
        "UPDATE sqlite_master SET name = 'x'",
        "DROP TABLE goods",
        "CREATE TEMP TABLE t (a)",
        "ATTACH '{other}' AS other",
        "PRAGMA query_only = OFF",
        "PRAGMA table_info(goods)",
        "SELECT * FROM pragma_table_info('goods')",
        "SELECT name FROM sqlite_master",
        "SELECT sql FROM sqlite_schema",
        "SELECT COUNT(*) FROM sqlite_master",
        "SELECT load_extension('x')",
        "SELECT 1; DELETE FROM goods",
        "VACUUM INTO '{other}'",
        "BEGIN",
        "",
    ],
)
def test_nothing_but_reading_tables_is_let_through(file, tmp_path, sql):
    other = tmp_path / "other.sqlite"
    before = (tmp_path / "shop.sqlite").read_bytes()
    with pytest.raises(QueryError):
        run_read_only(file, sql.format(other=other))
    assert (tmp_path / "shop.sqlite").read_bytes() == before
    assert not other.exists()


def test_an_error_is_one_line(file):
    with pytest.raises(QueryError, match=r"^no such column: nme$"):
        run_read_only(file, "SELECT nme FROM goods")


def test_what_cannot_be_run_is_refused(file, tmp_path):
    with pytest.raises(ValueError, match="max_rows=0, timeout=30: use at least 1 row"):
        run_read_only(file, "SELECT 1", max_rows=0)
    with pytest.raises(ValueError, match="timeout=0: use"):
        run_read_only(file, "SELECT 1", timeout=0)
    with pytest.raises(ValueError, match="is not a file"):
        run_read_only(f"sqlite:///{tmp_path / 'none.sqlite'}", "SELECT 1")
    with pytest.raises(ValueError, match=r"oracle://me:\*\*\*@h/x: queries are run only where") as found:
        run_read_only("oracle://me:hush@h/x", "SELECT 1")
    assert "hush" not in str(found.value)


def test_duckdb_reads_its_file_and_no_other(tmp_path):
    duckdb = pytest.importorskip("duckdb")
    pytest.importorskip("duckdb_engine")
    with closing(duckdb.connect(str(tmp_path / "a.duckdb"))) as database:
        database.execute("CREATE TABLE goods AS SELECT 1 AS id, '5 %' AS name")
    (tmp_path / "x.csv").write_text("a,b\n1,2\n")
    url = f"duckdb:///{tmp_path / 'a.duckdb'}"
    assert run_read_only(url, "SELECT id, name, '%s' FROM goods").rows == ((1, "5 %", "%s"),)
    for sql in (
        "INSERT INTO goods VALUES (2, 'x')",
        f"SELECT * FROM read_csv('{tmp_path / 'x.csv'}')",
        f"COPY goods TO '{tmp_path / 'y.csv'}'",
        "SET enable_external_access = true",
    ):
        with pytest.raises(QueryError):
            run_read_only(url, sql)
    assert not (tmp_path / "y.csv").exists()
    with pytest.raises(QueryTimeoutError):
        run_read_only(url, "SELECT COUNT(*) FROM range(100000000000) a, range(1000) b", timeout=0.3)


@pytest.mark.parametrize(
    ("reason", "kept"),
    [
        ("no such column: nme", "no such column: nme"),
        ('column "nme" does not exist', 'column "nme" does not exist'),
        ('invalid input syntax for type integer: "Smith"', "invalid input syntax for type integer: ..."),
        ("permission denied for table wages", "permission denied for table ..."),
        ("permission denied for relation public.wages", "permission denied for relation ..."),
        ("no such table: main.wages_2024", "no such table: ..."),
        ("Duplicate entry 'anna@x.org' for key 'wages.PRIMARY'", "Duplicate entry ... for key ..."),
        ("Key (name)=(Smith) exists", "Key (name)=... exists"),
    ],
)
def test_errors_tell_no_name_or_value_that_was_not_seen(reason, kept):
    assert told(reason, ["SELECT nme FROM goods", "CREATE TABLE goods (name TEXT)"]) == kept
