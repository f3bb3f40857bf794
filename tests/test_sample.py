"""The sample databases and questions: they build, every query runs, and they hold what the README says."""

import importlib.util
import json
import re
import sqlite3
import subprocess
import sys
from collections import Counter
from contextlib import closing
from pathlib import Path

import pytest

from bayeslink.schema.corpus import read_corpus
from bayeslink.schema.gold import resolve

SAMPLE = Path(__file__).resolve().parents[1] / "data" / "sample"
_spec = importlib.util.spec_from_file_location("sample_build", SAMPLE / "build.py")
sample = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(sample)

DATABASES = sample.database_ids()
QUESTIONS = sample.questions()
FIELDS = ["id", "db_id", "question", "evidence", "query", "split", "difficulty"]


@pytest.fixture(scope="module")
def connections():
    opened = {db_id: sample.open_database(db_id) for db_id in DATABASES}
    yield opened
    for connection in opened.values():
        connection.close()


def names(connection, kind="table"):
    query = "SELECT name FROM sqlite_master WHERE type = ? ORDER BY name"
    return [name for (name,) in connection.execute(query, (kind,))]


def keys(connection):
    """Declared foreign keys as (table, parent, columns)."""
    found = []
    for table in names(connection):
        by_id = {}
        for row in connection.execute(f'PRAGMA foreign_key_list("{table}")'):
            by_id.setdefault((row[0], row[2]), []).append(row[3])
        found += [(table, parent, tuple(columns)) for (_, parent), columns in by_id.items()]
    return found


def columns(connection, table):
    return [row[1] for row in connection.execute(f'PRAGMA table_info("{table}")')]


@pytest.mark.parametrize("db_id", DATABASES)
def test_database_builds_with_clean_keys(db_id, connections):
    connection = connections[db_id]
    assert connection.execute("PRAGMA foreign_keys").fetchone() == (1,)
    assert connection.execute("PRAGMA foreign_key_check").fetchall() == []
    for table in names(connection):
        (rows,) = connection.execute(f'SELECT COUNT(*) FROM "{table}"').fetchone()
        assert 3 <= rows <= 10, table
    for view in names(connection, "view"):
        assert connection.execute(f'SELECT * FROM "{view}"').fetchall(), view


@pytest.mark.parametrize("row", QUESTIONS, ids=[row["id"] for row in QUESTIONS])
def test_gold_query_runs_and_reads_tables_of_its_database(row, connections):
    connection = connections[row["db_id"]]
    assert connection.execute(row["query"]).fetchall(), "no row comes back"
    gold = sample.gold_tables(row["query"])
    assert gold
    assert gold <= set(names(connection))


def test_questions_are_well_formed_and_distinct():
    assert len(QUESTIONS) >= 160
    for row in QUESTIONS:
        assert list(row) == FIELDS
        assert row["split"] == "sample"
        assert row["difficulty"] is None
        assert row["evidence"] is None or row["evidence"].strip()
    for field in ("id", "question", "query"):
        assert len({row[field].lower() for row in QUESTIONS}) == len(QUESTIONS), field


def test_every_database_has_its_share_of_questions(connections):
    per_database = Counter(row["db_id"] for row in QUESTIONS)
    assert set(per_database) == set(DATABASES)
    for db_id, count in per_database.items():
        assert count >= (20 if len(names(connections[db_id])) >= 30 else 12), db_id


def test_every_table_is_gold_somewhere(connections):
    asked = {(row["db_id"], table) for row in QUESTIONS for table in sample.gold_tables(row["query"])}
    assert asked == {(db_id, table) for db_id in DATABASES for table in names(connections[db_id])}


def test_at_least_half_of_the_questions_join():
    num_tables = [len(sample.gold_tables(row["query"])) for row in QUESTIONS]
    assert 2 * sum(count >= 2 for count in num_tables) >= len(QUESTIONS)
    assert {3, 4, 5} <= set(num_tables)


@pytest.mark.parametrize("piece", ["WITH ", "RECURSIVE", "EXISTS (", "INTERSECT", "EXCEPT", "UNION", "COUNT(*)"])
def test_queries_use(piece):
    assert any(piece in row["query"] for row in QUESTIONS)


def test_sizes_of_the_databases(connections):
    sizes = [len(names(connection)) for connection in connections.values()]
    assert sum(4 <= size <= 14 for size in sizes) >= 8
    assert sum(size >= 30 for size in sizes) == 1


def test_shop_has_the_tables_of_the_readme_example(connections):
    assert {"customers", "products", "transactions"} <= set(names(connections["shop"]))
    assert {"customer_id", "product_id"} <= set(columns(connections["shop"], "transactions"))


def test_peculiar_keys(connections):
    declared = {db_id: keys(connection) for db_id, connection in connections.items()}
    every = [(db_id, *key) for db_id, found in declared.items() for key in found]
    assert ("office", "employee", "employee", ("manager_id",)) in every
    assert ("university", "Enrollment", "CourseSection", ("CourseNo", "Term")) in every
    assert ("league", "matches", "teams", ("home_team",)) in every
    assert ("league", "matches", "teams", ("away_team",)) in every
    assert [db_id for db_id, found in declared.items() if not found] == ["freight"]


def test_database_without_keys_declares_no_primary_key_either(connections):
    connection = connections["freight"]
    for table in names(connection):
        assert not any(row[5] for row in connection.execute(f'PRAGMA table_info("{table}")')), table


def test_transit_references_tables_without_a_column():
    script = (SAMPLE / "databases" / "transit.sql").read_text(encoding="utf-8").split("INSERT")[0]
    assert re.search(r"REFERENCES \w+,", script)
    assert not re.search(r"REFERENCES \w+ ?\(", script)


def test_peculiar_names(connections):
    tables = {db_id: names(connection) for db_id, connection in connections.items()}
    every = [table for found in tables.values() for table in found]
    fields = [column for db_id in DATABASES for t in tables[db_id] for column in columns(connections[db_id], t)]
    for group in (every, fields):
        assert any(" " in name for name in group)
        assert any(not name.isascii() for name in group)
        assert any(re.search("[a-z][A-Z]", name) for name in group)
    assert {"order", "group", "user", "table"} <= set(tables["delivery"])
    assert {"CUSTMST", "ORDHDR", "ORDDTL"} <= set(tables["freight"])
    assert any(names(connection, "view") for connection in connections.values())


def test_junction_tables(connections):
    junctions = 0
    for connection in connections.values():
        for table in names(connection):
            primary = {row[1] for row in connection.execute(f'PRAGMA table_info("{table}")') if row[5]}
            parents = [set(cols) for child, _, cols in keys(connection) if child == table and set(cols) <= primary]
            junctions += len(parents) >= 2
    assert junctions >= 12


def test_counts_equal_the_readme():
    counts = sample.check()
    readme = (SAMPLE / "README.md").read_text(encoding="utf-8")
    stated = {name: float(value) for name, value in re.findall(r"^\| (\w+) \| ([\d.]+) \|$", readme, re.MULTILINE)}
    assert stated == {name: round(value, 3) for name, value in counts._asdict().items()}
    assert f"{counts.share:.1%}".replace("%", " %") in readme
    assert counts.questions == counts.queries_that_run == len(QUESTIONS)
    assert 1 / 3 <= counts.share <= 0.45


def test_database_list_equals_the_readme(connections):
    readme = (SAMPLE / "README.md").read_text(encoding="utf-8")
    listed = re.findall(r"^\| `(\w+)` \| (\d+) \| (\d+) \| (\d+) \|", readme, re.MULTILINE)
    per_database = Counter(row["db_id"] for row in QUESTIONS)
    measured = {
        (db_id, len(names(connection)), len(keys(connection)), per_database[db_id])
        for db_id, connection in connections.items()
    }
    assert {(db_id, int(a), int(b), int(c)) for db_id, a, b, c in listed} == measured


def test_words():
    assert sample.words("ORDER_Lines2") == {"order", "line"}
    assert sample.words("CourseSection") == {"course", "section"}
    assert sample.words("Which categories, classes, matches and courses?") == {
        *("which", "category", "class", "match", "and", "course")
    }
    assert sample.words("café_bills 顧客") == {"café", "bill", "顧客"}


def test_gold_tables_leaves_out_ctes():
    query = 'WITH top AS (SELECT x FROM a) SELECT * FROM top JOIN "b c" ON EXISTS (SELECT 1 FROM d)'
    assert sample.gold_tables(query) == {"a", "b c", "d"}


def test_broken_keys_are_reported(tmp_path, monkeypatch):
    (tmp_path / "databases").mkdir()
    script = "PRAGMA foreign_keys=OFF; CREATE TABLE a (i INTEGER PRIMARY KEY, b REFERENCES a); "
    script += "INSERT INTO a VALUES (1, 2);"
    (tmp_path / "databases" / "bad.sql").write_text(script, encoding="utf-8")
    monkeypatch.setattr(sample, "HERE", tmp_path)
    with pytest.raises(ValueError, match="bad: rows without a parent"):
        sample.open_database("bad")


def test_command_line_builds_files(tmp_path):
    command = [sys.executable, str(SAMPLE / "build.py"), str(tmp_path), "shop", "delivery"]
    for _ in range(2):
        subprocess.run(command, capture_output=True, check=True)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["delivery.sqlite", "shop.sqlite"]
    with closing(sqlite3.connect(tmp_path / "shop.sqlite")) as connection:
        assert connection.execute("SELECT COUNT(*) FROM customers").fetchone() == (5,)


def test_jsonl_is_plain_utf8():
    for line in (SAMPLE / "questions.jsonl").read_text(encoding="utf-8").splitlines():
        assert json.dumps(json.loads(line), ensure_ascii=False) == line


def test_the_stored_catalogues_are_those_of_the_databases(tmp_path):
    sample.write_schemas(tmp_path / "schemas.jsonl")
    assert (tmp_path / "schemas.jsonl").read_bytes() == (SAMPLE / "schemas.jsonl").read_bytes()
    corpus = read_corpus(SAMPLE)
    assert sorted(corpus.schemas) == DATABASES
    assert len(resolve(corpus).gold) == len(QUESTIONS)
