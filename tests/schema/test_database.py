import sqlite3
from pathlib import Path

import pytest
import sqlalchemy
import sqlalchemy.dialects.postgresql
from sqlalchemy.engine import Inspector

from bayeslink.schema.database import read_database, sqlglot_dialect
from bayeslink.schema.graph import Origin, SchemaGraph

SCRIPT = """
CREATE TABLE "order" (id INTEGER PRIMARY KEY, "naïve col" TEXT, parent INT REFERENCES "order"(id));
CREATE TABLE "Straßen Liste" (y INT, x VARCHAR(7), z, PRIMARY KEY (x, y));
CREATE TABLE child (a INT, b INT, c INT, o INT,
  FOREIGN KEY (a, b) REFERENCES "straßen liste", FOREIGN KEY (c, b) REFERENCES "Straßen Liste"(x, y));
CREATE TABLE short (o INT REFERENCES "ORDER", p INT REFERENCES "order");
CREATE TABLE dangling
 (g INT REFERENCES gone(q), h INT REFERENCES nowhere, i INT REFERENCES "order"(no_column));
CREATE VIEW latest AS SELECT id, parent FROM "order";
"""


def create(path: Path, script: str = SCRIPT) -> Path:
    connection = sqlite3.connect(path)
    connection.executescript(script)
    connection.close()
    return path


@pytest.fixture
def graph(tmp_path: Path) -> SchemaGraph:
    return read_database(f"sqlite:///{create(tmp_path / 'shop.db')}")


def keys(graph: SchemaGraph) -> set[tuple[str, tuple[str, ...], str, tuple[str, ...]]]:
    names = graph.table_names
    return {(names[key.table], key.columns, names[key.ref_table], key.ref_columns) for key in graph.foreign_keys}


def test_tables_views_columns_and_primary_keys(graph: SchemaGraph):
    assert (graph.name, graph.dialect, graph.warnings) == ("shop", "sqlite", ())
    assert set(graph.table_names) == {"order", "Straßen Liste", "child", "short", "dangling", "latest"}
    views = {table.name for table in graph.tables if table.is_view}
    assert views == {"latest"}
    streets = graph.tables[graph.find("straßen liste")]
    assert [(column.name, column.type, column.primary_key) for column in streets.columns] == [
        ("y", "INTEGER", True),
        ("x", "VARCHAR(7)", True),
        ("z", "", False),
    ]
    assert streets.primary_key == ("x", "y")
    assert [column.name for column in graph.tables[graph.find("latest")].columns] == ["id", "parent"]


def test_keys_composite_implicit_and_self(graph: SchemaGraph):
    assert keys(graph) == {
        ("order", ("parent",), "order", ("id",)),
        ("child", ("a", "b"), "Straßen Liste", ("x", "y")),
        ("child", ("c", "b"), "Straßen Liste", ("x", "y")),
        ("short", ("o",), "order", ("id",)),
        ("short", ("p",), "order", ("id",)),
        ("latest", (), "order", ()),
    }
    assert len(graph.edges) == 3


def test_views_are_joined_to_what_their_sql_reads(tmp_path: Path):
    script = """CREATE TABLE a (x); CREATE TABLE b (x); CREATE TABLE c (x);
    CREATE VIEW v (y) AS WITH c AS (SELECT x FROM a) SELECT c.x FROM c JOIN main.b ON b.x = c.x;
    CREATE VIEW w AS SELECT y FROM v;"""
    for schemas in (None, ["main"]):
        graph = read_database(str(create(tmp_path / f"{schemas}.db", script)), schemas=schemas)
        found = {(graph.tables[key.table].name, graph.tables[key.ref_table].name) for key in graph.foreign_keys}
        assert found == {("v", "a"), ("v", "b"), ("w", "v")}
        assert {(key.origin, key.columns) for key in graph.foreign_keys} == {(Origin.VIEW, ())}
        assert graph.warnings == ()


def test_view_that_sqlglot_cannot_read_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    path = create(tmp_path / "d.db", "CREATE TABLE t (a); CREATE VIEW v AS SELECT a FROM t;")
    monkeypatch.setattr(Inspector, "get_view_definition", lambda self, name, schema: "SELECT FROM WHERE (")
    graph = read_database(str(path))
    assert set(graph.table_names) == {"t", "v"}
    [warning] = graph.warnings
    assert warning.startswith("view 'v' has no edges: its SQL cannot be resolved (does not parse as sqlite: ")


def test_row_counts_are_those_of_analyze(tmp_path: Path):
    rows = "CREATE TABLE t (a); INSERT INTO t VALUES (1), (2), (3); CREATE INDEX i ON t (a);"
    path = create(tmp_path / "d.db", rows)
    assert [table.num_rows for table in read_database(str(path), row_counts=True).tables] == [None]
    create(path, "ANALYZE;")
    assert [table.num_rows for table in read_database(str(path), row_counts=True).tables] == [3]


def test_dangling_keys_are_named(graph: SchemaGraph):
    assert sorted(graph.dropped) == [
        "foreign key dangling(g) -> gone(q): table 'gone' does not exist",
        "foreign key dangling(h) -> nowhere(): table 'nowhere' does not exist",
        "foreign key dangling(i) -> order(no_column): column 'no_column' does not exist in 'order'",
    ]


def test_a_path_is_as_good_as_a_url_and_the_name_can_be_given(tmp_path: Path, graph: SchemaGraph):
    assert read_database(str(tmp_path / "shop.db")) == graph
    assert read_database(str(tmp_path / "shop.db"), name="other").name == "other"


def test_named_schema_qualifies_its_tables(tmp_path: Path, graph: SchemaGraph):
    found = read_database(str(tmp_path / "shop.db"), schemas=["main"])
    assert set(found.table_names) == {f"main.{name}" for name in graph.table_names}
    assert len(found.edges) == len(graph.edges)
    assert len(found.dropped) == len(graph.dropped)


@pytest.mark.parametrize(
    ("schemas", "referred", "num_edges"),
    [
        (None, None, 1),
        (None, "main", 1),  # some dialects name the default schema
        (None, "other", 0),
        (["main"], None, 1),  # some leave it out
        (["main"], "main", 1),
        (["main"], "other", 0),
    ],
)
def test_default_schema_may_be_named_or_not(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    schemas: list[str] | None,
    referred: str | None,
    num_edges: int,
):
    path = create(tmp_path / "d.db", "CREATE TABLE t (a INT); CREATE TABLE u (b INT);")
    stated = {
        "constrained_columns": ["a"],
        "referred_schema": referred,
        "referred_table": "u",
        "referred_columns": ["b"],
    }
    monkeypatch.setattr(Inspector, "get_multi_foreign_keys", lambda self, schema, kind: {(schema, "t"): [stated]})
    assert len(read_database(str(path), schemas=schemas).edges) == num_edges


def test_key_that_names_no_schema_leads_to_the_default_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    path = create(tmp_path / "d.db", "CREATE TABLE t (a INT);")
    columns = [{"name": "a", "type": sqlalchemy.types.Integer()}]
    stated = {
        "constrained_columns": ["a"],
        "referred_schema": None,
        "referred_table": "t",
        "referred_columns": ["a"],
    }
    monkeypatch.setattr(Inspector, "get_table_names", lambda self, schema: ["t"])
    monkeypatch.setattr(Inspector, "get_multi_columns", lambda self, schema, kind: {(schema, "t"): columns})
    keys_of = {"main": [], "temp": [stated]}
    monkeypatch.setattr(
        Inspector, "get_multi_foreign_keys", lambda self, schema, kind: {(schema, "t"): keys_of[schema]}
    )
    graph = read_database(str(path), schemas=["main", "temp"])
    assert keys(graph) == {("temp.t", ("a",), "main.t", ("a",))}


def test_broken_view_is_reported_and_the_rest_is_read(tmp_path: Path):
    broken = "CREATE TABLE t (a PRIMARY KEY); CREATE TABLE u (a REFERENCES t); CREATE VIEW v AS SELECT * FROM w;"
    graph = read_database(str(create(tmp_path / "d.db", broken)))
    assert graph.table_names == ("t", "u")
    assert keys(graph) == {("u", ("a",), "t", ("a",))}
    [warning] = graph.warnings
    assert warning.startswith("'v' cannot be read (no such table")


def test_warnings_of_the_reflection_are_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    path = create(tmp_path / "d.db", "CREATE TABLE t (a INT);")
    read_names = Inspector.get_table_names

    def warned(self: Inspector, schema: str | None = None) -> list[str]:
        sqlalchemy.util.warn("Did not recognize  type 'GEO'")
        return read_names(self, schema=schema)

    monkeypatch.setattr(Inspector, "get_table_names", warned)
    assert read_database(str(path)).warnings == ("Did not recognize type 'GEO'",)


def test_comments_are_descriptions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    path = create(tmp_path / "d.db", "CREATE TABLE t (a INT);")
    # SQLite has no comments; other dialects answer in this form.
    monkeypatch.setattr("sqlalchemy.dialects.sqlite.base.SQLiteDialect.supports_comments", True)
    answer = {(None, "t"): {"text": "all the things"}}
    monkeypatch.setattr(Inspector, "get_multi_table_comment", lambda self, schema, kind: answer)
    columns = {(None, "t"): [{"name": "a", "type": sqlalchemy.types.Integer(), "comment": "a thing"}]}
    monkeypatch.setattr(Inspector, "get_multi_columns", lambda self, schema, kind: columns)
    [table] = read_database(str(path)).tables
    assert (table.description, table.columns[0].description) == ("all the things", "a thing")


def test_type_without_a_name_in_the_dialect_is_called_by_its_class(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    path = create(tmp_path / "d.db", "CREATE TABLE t (a INT);")
    columns = {(None, "t"): [{"name": "a", "type": sqlalchemy.dialects.postgresql.TSVECTOR()}]}
    monkeypatch.setattr(Inspector, "get_multi_columns", lambda self, schema, kind: columns)
    [table] = read_database(str(path)).tables
    assert table.columns[0].type == "TSVECTOR"


def test_schema_without_tables_is_reported_beside_one_with_tables(tmp_path: Path):
    path = create(tmp_path / "d.db", "CREATE TABLE t (a INT);")
    graph = read_database(str(path), schemas=["main", "temp"])
    assert graph.table_names == ("main.t",)
    assert graph.warnings == ("schema 'temp' has no tables",)


def test_empty_database_and_unknown_schema_are_refused(tmp_path: Path):
    empty = create(tmp_path / "empty.db", "")
    with pytest.raises(ValueError, match="there are no tables; check the name"):
        read_database(str(empty))
    full = create(tmp_path / "full.db")
    with pytest.raises(ValueError, match=r"schemas=\['Main', 'nope'\]: there is no schema 'nope'; there is main$"):
        read_database(str(full), schemas=["Main", "nope"])
    for schemas in ("main", []):
        with pytest.raises(ValueError, match="schemas="):
            read_database(str(full), schemas=schemas)


@pytest.mark.parametrize("schemas", [None, ["main"]])
def test_shadow_tables_of_a_full_text_index_are_left_out(tmp_path: Path, schemas: list[str] | None):
    script = "CREATE TABLE notes (body TEXT); CREATE VIRTUAL TABLE docs USING fts5(body);"
    graph = read_database(str(create(tmp_path / "d.db", script)), schemas=schemas)
    assert {table.name for table in graph.tables} == {"notes", "docs"}
    [warning] = graph.warnings
    assert warning.startswith("shadow tables of virtual tables are left out: docs_config, docs_content")


def test_file_that_is_no_database_is_refused(tmp_path: Path):
    path = tmp_path / "notes.txt"
    path.write_text("not a database, but long enough to have a header " * 40)
    with pytest.raises(ValueError, match=r"notes\.txt: the database cannot be read \(file is not a database\)"):
        read_database(str(path))


def test_unreachable_database_does_not_show_the_password(monkeypatch: pytest.MonkeyPatch):
    def refuse() -> sqlite3.Connection:
        raise sqlite3.OperationalError("no route to postgresql://ann:hunter2@host")

    engine = sqlalchemy.create_engine("sqlite://", creator=refuse)
    monkeypatch.setattr("bayeslink.schema.database.open_engine", lambda target: engine)
    with pytest.raises(ValueError, match="the database cannot be read") as caught:
        read_database("postgresql://ann:hunter2@host/db")
    assert "hunter2" not in str(caught.value)
    assert "no route" in str(caught.value)
    assert caught.value.__suppress_context__


def test_reading_leaves_the_file_alone(tmp_path: Path):
    path = create(tmp_path / "shop.db")
    before = path.read_bytes()
    read_database(str(path))
    assert path.read_bytes() == before
    assert [found.name for found in tmp_path.iterdir()] == ["shop.db"]


@pytest.mark.parametrize(
    ("backend", "dialect"),
    [
        ("sqlite", "sqlite"),
        ("postgresql", "postgres"),
        ("mssql", "tsql"),
        ("mariadb", "mysql"),
        ("strange", ""),
    ],
)
def test_dialects_of_sqlglot(backend: str, dialect: str):
    assert sqlglot_dialect(backend) == dialect
