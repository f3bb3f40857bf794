"""MariaDB's catalogue, on a real server; MySQL is asked the same questions."""

import pytest
import sqlalchemy
from sqlalchemy.exc import DBAPIError

from bayeslink.grounding.access import visible
from bayeslink.grounding.policy import database_policy
from bayeslink.schema.database import read_database
from bayeslink.schema.engine import open_engine, parse_target
from bayeslink.schema.graph import Origin, SchemaGraph, Table
from bayeslink.schema.privileges import read_grants

SCRIPT = """
CREATE DATABASE archive;
CREATE TABLE customer (id int PRIMARY KEY, name varchar(40) COMMENT 'name as invoiced', UNIQUE (id, name))
  COMMENT '客户，购买商品的人' CHARACTER SET utf8mb4;
CREATE TABLE `order` (no int, `placed on` date, customer int, name varchar(40), PRIMARY KEY (no, `placed on`),
  FOREIGN KEY (customer, name) REFERENCES customer (id, name)) CHARACTER SET utf8mb4;
CREATE TABLE archive.customer (id int PRIMARY KEY);
CREATE TABLE archive.old (no int, placed date, customer int REFERENCES archive.customer (id),
  FOREIGN KEY (no, placed) REFERENCES shop.`order` (no, `placed on`));
CREATE VIEW latest AS SELECT o.no, c.name FROM `order` o JOIN archive.customer a ON a.id = o.no
  JOIN customer c ON c.id = o.customer;
CREATE VIEW broken AS SELECT id FROM gone_soon
"""


@pytest.fixture(scope="module")
def url(mariadb_server) -> str:
    mariadb_server.run("DROP DATABASE IF EXISTS archive", "DROP DATABASE IF EXISTS shop")
    first = "CREATE TABLE gone_soon (id int);\n"
    made = mariadb_server.create("shop", first + SCRIPT + ";\nDROP TABLE gone_soon")
    mariadb_server.run(
        "INSERT INTO customer SELECT seq, seq FROM seq_1_to_300", "ANALYZE TABLE customer", database="shop"
    )
    return made


@pytest.fixture(scope="module")
def graph(url: str) -> SchemaGraph:
    return read_database(url, schemas=["shop", "archive"])


def named(graph: SchemaGraph, name: str) -> Table:
    return next(table for table in graph.tables if table.full_name == name)


def keys(graph: SchemaGraph, origin: Origin) -> set[tuple[str, tuple[str, ...], str, tuple[str, ...]]]:
    names, found = graph.table_names, [key for key in graph.foreign_keys if key.origin is origin]
    return {(names[key.table], key.columns, names[key.ref_table], key.ref_columns) for key in found}


def test_tables_and_views_of_both_schemas_are_nodes(graph: SchemaGraph):
    expected = {"shop.customer", "shop.order", "shop.latest", "archive.customer", "archive.old"}
    assert set(graph.table_names) == expected
    assert {table.name for table in graph.tables if table.is_view} == {"latest"}
    assert (graph.dialect, graph.dropped) == ("mysql", ())
    assert named(graph, "shop.order").primary_key == ("no", "placed on")


def test_all_schemas_are_those_that_are_not_the_systems(url: str, graph: SchemaGraph):
    assert set(read_database(url, schemas="*").table_names) == set(graph.table_names)


def test_keys_within_and_across_schemas(graph: SchemaGraph):
    assert keys(graph, Origin.DECLARED) == {
        ("shop.order", ("customer", "name"), "shop.customer", ("id", "name")),
        ("archive.old", ("customer",), "archive.customer", ("id",)),
        ("archive.old", ("no", "placed"), "shop.order", ("no", "placed on")),
    }


def test_views_are_joined_to_what_their_sql_reads(graph: SchemaGraph):
    assert keys(graph, Origin.VIEW) == {
        ("shop.latest", (), "shop.order", ()),
        ("shop.latest", (), "shop.customer", ()),
        ("shop.latest", (), "archive.customer", ()),
    }


def test_a_broken_view_is_named(graph: SchemaGraph):
    [warning] = graph.warnings
    assert warning.startswith("'broken' cannot be read (")
    assert "\n" not in warning


def test_comments_are_descriptions(graph: SchemaGraph):
    assert named(graph, "shop.customer").description == "客户，购买商品的人"
    assert named(graph, "shop.customer").columns[1].description == "name as invoiced"
    assert named(graph, "shop.latest").description is None
    assert named(graph, "shop.order").description is None


def test_default_schema_alone_is_unqualified(url: str):
    graph = read_database(url)
    assert set(graph.table_names) == {"customer", "order", "latest"}
    assert keys(graph, Origin.VIEW) == set()  # the view also reads archive, which is not in the graph
    assert any("unknown table archive.customer" in warning for warning in graph.warnings)


def test_row_counts_are_the_catalogues(url: str):
    counts = {table.name: table.num_rows for table in read_database(url, row_counts=True).tables}
    assert counts == {"customer": 300, "order": 0, "latest": None}


def test_connection_only_reads(url: str):
    engine = open_engine(parse_target(url))
    for statement in ("INSERT INTO customer VALUES (0, 'nobody')", "CREATE TABLE made (a int)"):
        with engine.connect() as connection, pytest.raises(DBAPIError, match="READ ONLY transaction"):
            connection.execute(sqlalchemy.text(statement))


def test_grants_of_everything_schemas_tables_and_columns(mariadb_server, url: str):
    mariadb_server.run(
        "DROP USER IF EXISTS clerk, auditor, twin@here, twin@there",
        "CREATE USER clerk, auditor, twin@here, twin@there",
        "GRANT SELECT (no, customer), INSERT ON shop.`order` TO clerk",
        "GRANT SELECT ON archive.old TO clerk",
        "GRANT INSERT ON shop.* TO clerk",
        "GRANT SELECT ON `arch%`.* TO twin@here",
        "GRANT SELECT ON *.* TO auditor",
    )
    assert read_grants(url, "clerk", "*").columns == {
        ("shop", "order"): {"no", "customer"},
        ("archive", "old"): {"no", "placed", "customer"},
    }
    seen = visible(read_database(url), database_policy(url, "clerk@%")).graph
    assert [(table.name, [column.name for column in table.columns]) for table in seen.tables] == [
        ("order", ["no", "customer"])
    ]
    assert read_grants(url, "clerk@%").columns == {("", "order"): {"no", "customer"}}
    assert read_grants(url, "twin@here", "*").columns.keys() == {("archive", "customer"), ("archive", "old")}
    assert {schema for schema, _ in read_grants(url, "auditor", "*").columns} == {"shop", "archive"}
    with pytest.raises(
        ValueError, match=r"2 accounts of that name are seen; name one of 'twin'@'here', 'twin'@'there'"
    ):
        read_grants(url, "twin")
    with pytest.raises(ValueError, match="principal='nobody': 0 accounts of that name are seen; check the name"):
        read_grants(url, "nobody")


def test_grants_of_roles_are_not_taken_for_the_accounts(mariadb_server, url: str):
    mariadb_server.run(
        "DROP USER IF EXISTS temp", "DROP ROLE IF EXISTS reader", "CREATE USER temp", "CREATE ROLE reader"
    )
    mariadb_server.run("GRANT SELECT ON archive.old TO reader", "GRANT reader TO temp")
    assert read_grants(url, "temp", "*").columns == {}
    assert read_grants(url, "reader", "*").columns.keys() == {("archive", "old")}


def test_server_that_is_not_there_and_wrong_password(mariadb_server, url: str):
    mariadb_server.run("DROP USER IF EXISTS ann", "CREATE USER ann IDENTIFIED BY 'right'")
    with pytest.raises(ValueError, match=r"the database cannot be read.*Access denied") as caught:
        read_database(url.replace("root@", "ann:hunter2@"))
    assert "hunter2" not in str(caught.value)
    gone = url.replace("root@", "ann:hunter2@").rpartition(":")[0] + ":1/shop"
    with pytest.raises(ValueError, match=r"the database cannot be read.*connect") as caught:
        read_database(gone)
    assert "hunter2" not in str(caught.value)
