"""A sample of a live database's values: bounded, read-only, and honest about what cannot be read."""

import sqlite3
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from bayeslink.evidence.phrases import ValueHint
from bayeslink.schema.database import read_database
from bayeslink.schema.graph import Column, Table
from bayeslink.schema.values import sample_values

SCRIPT = """
CREATE TABLE "order" (id INTEGER PRIMARY KEY, "ship to" TEXT, price REAL, note);
INSERT INTO "order" VALUES
  (1, 'Bergen', 2.5, 'x'), (2, 'Oslo', 3.5, 7), (3, 'Bergen', 4, NULL), (4, '  ', 1, X'00'), (5, NULL, 1, 'y');
CREATE TABLE empty (name TEXT);
CREATE TABLE long (name TEXT);
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "shop.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(SCRIPT)
        connection.executemany("INSERT INTO long VALUES (?)", [(f"name {i}",) for i in range(1000)])
        connection.execute("INSERT INTO long VALUES (?)", ("z" * 500,))
        connection.commit()
    return path


def test_distinct_texts_of_text_columns(path: Path):
    found = sample_values(str(path), read_database(str(path)))
    assert found.warnings == ()
    assert found.values["order", "ship to"] == ("Bergen", "Oslo")
    assert found.values["order", "note"] == ("x", "y")
    assert set(found.values) == {("order", "ship to"), ("order", "note"), ("long", "name")}


def test_limits(path: Path):
    graph = read_database(str(path))
    assert len(sample_values(str(path), graph).values["long", "name"]) == 200
    few = sample_values(str(path), graph, max_values=3)
    assert len(few.values["long", "name"]) == 3
    rows = sample_values(str(path), graph, max_rows=5, max_values=100)
    assert rows.values["long", "name"] == tuple(f"name {i}" for i in range(5))
    every = sample_values(str(path), graph, max_values=5000).values["long", "name"]
    assert len(every) == 1000
    assert max(map(len, sample_values(str(path), graph, max_values=5000, max_length=500).values["long", "name"])) == 500
    for name in ("max_values", "max_rows", "max_length"):
        with pytest.raises(ValueError, match=f"{name}=0: at least 1 is needed"):
            sample_values(str(path), graph, **{name: 0})


def test_the_file_stays_as_it_was(path: Path):
    before = path.read_bytes()
    path.chmod(0o444)
    sample_values(str(path), read_database(str(path)))
    assert path.read_bytes() == before
    assert [entry.name for entry in path.parent.iterdir()] == [path.name]


def test_a_column_that_cannot_be_read_is_named_and_the_others_are_read(path: Path):
    graph = read_database(str(path))
    gone = Table("gone", (Column("name", "TEXT"),))
    found = sample_values(str(path), replace(graph, tables=(gone, *graph.tables)))
    assert found.warnings == ("gone.name cannot be read (no such table: gone)",)
    assert found.values["order", "ship to"] == ("Bergen", "Oslo")


def test_refused_databases(path: Path, tmp_path: Path):
    graph = read_database(str(path))
    with pytest.raises(ValueError, match="no such file"):
        sample_values(str(tmp_path / "none.db"), graph)
    (tmp_path / "text.db").write_text("not a database, but long enough to be looked at " * 40)
    with pytest.raises(ValueError, match=r"no text column can be read; the first: .* \(file is not a database\)"):
        sample_values(str(tmp_path / "text.db"), graph)


def test_the_sample_is_what_the_value_hint_reads(path: Path):
    graph = read_database(str(path))
    scores = ValueHint(sample_values(str(path), graph).values).score(["What was sent to Oslo?"], graph)[0]
    assert scores.tolist() == [float(name == "order") for name in graph.table_names]
