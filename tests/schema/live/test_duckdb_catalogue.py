"""DuckDB's catalogue, from a file that DuckDB itself has written."""

import os
from pathlib import Path

import pytest
import sqlalchemy
from sqlalchemy.exc import DBAPIError

from bayeslink.schema.database import read_database
from bayeslink.schema.engine import open_engine, parse_target
from bayeslink.schema.graph import Origin, SchemaGraph, Table

SCRIPT = """
CREATE SCHEMA sales;
CREATE TABLE customer (id INT PRIMARY KEY, name TEXT, patron INT REFERENCES customer(id));
CREATE TABLE sales.customer (id INT, region INT, tags DECIMAL(4, 2)[], PRIMARY KEY (region, id));
CREATE TABLE sales.orders (r INT, i INT, FOREIGN KEY (r, i) REFERENCES sales.customer);
CREATE VIEW names AS SELECT name FROM customer;
CREATE VIEW sales.big AS SELECT c.id FROM customer c JOIN main.customer m ON m.id = c.id;
COMMENT ON TABLE customer IS '客户，购买商品的人';
COMMENT ON COLUMN customer.name IS 'name as invoiced';
COMMENT ON VIEW names IS 'all names';
INSERT INTO customer VALUES (1, 'a', NULL), (2, 'b', NULL);
"""


@pytest.fixture
def url(tmp_path: Path) -> str:
    if os.environ.get("CI") != "true":
        pytest.importorskip("duckdb_engine")
    import duckdb

    with duckdb.connect(str(tmp_path / "shop.duckdb")) as connection:
        connection.execute(SCRIPT)
    return f"duckdb:///{tmp_path / 'shop.duckdb'}"


def named(graph: SchemaGraph, name: str) -> Table:
    return next(table for table in graph.tables if table.full_name == name)


def keys(graph: SchemaGraph) -> set[tuple[str, tuple[str, ...], str, tuple[str, ...], Origin]]:
    names = graph.table_names
    return {
        (names[key.table], key.columns, names[key.ref_table], key.ref_columns, key.origin) for key in graph.foreign_keys
    }


def test_tables_views_keys_and_comments_of_all_schemas(url: str):
    graph = read_database(url, schemas="*", row_counts=True)
    assert (graph.name, graph.dialect, graph.warnings, graph.dropped) == ("shop", "duckdb", (), ())
    counts = {table.full_name: table.num_rows for table in graph.tables}
    assert counts == {
        "main.customer": 2,
        "sales.customer": 0,
        "sales.orders": 0,
        "main.names": None,
        "sales.big": None,
    }
    assert {table.full_name for table in graph.tables if table.is_view} == {"main.names", "sales.big"}
    assert keys(graph) == {
        ("main.customer", ("patron",), "main.customer", ("id",), Origin.DECLARED),
        ("sales.orders", ("r", "i"), "sales.customer", ("region", "id"), Origin.DECLARED),
        ("main.names", (), "main.customer", (), Origin.VIEW),
        ("sales.big", (), "sales.customer", (), Origin.VIEW),  # the view's own schema comes first
        ("sales.big", (), "main.customer", (), Origin.VIEW),
    }
    assert named(graph, "sales.customer").primary_key == ("region", "id")
    assert [column.type for column in named(graph, "sales.customer").columns] == [
        "INTEGER",
        "INTEGER",
        "DECIMAL(4,2)[]",
    ]
    assert named(graph, "main.customer").description == "客户，购买商品的人"
    assert named(graph, "main.customer").columns[1].description == "name as invoiced"
    assert named(graph, "main.names").description == "all names"


def test_default_schema_alone_is_unqualified_and_an_unknown_one_is_refused(url: str):
    graph = read_database(url)
    assert graph.table_names == ("customer", "names")
    assert ("names", (), "customer", (), Origin.VIEW) in keys(graph)
    with pytest.raises(ValueError, match=r"there is no schema 'nope'; there is main, sales$"):
        read_database(url, schemas=["main", "nope"])


def test_connection_only_reads(url: str):
    engine = open_engine(parse_target(url))
    with engine.connect() as connection, pytest.raises(DBAPIError, match="read-only"):
        connection.execute(sqlalchemy.text("INSERT INTO customer VALUES (9, 'z', NULL)"))


def test_missing_file_is_refused_and_not_created(tmp_path: Path):
    with pytest.raises(ValueError, match=r"no\.duckdb is not a file; check the path, nothing was created"):
        read_database(f"duckdb:///{tmp_path / 'no.duckdb'}")
    with pytest.raises(ValueError, match="a DuckDB database in memory is empty"):
        read_database("duckdb:///:memory:")
    assert not list(tmp_path.iterdir())
