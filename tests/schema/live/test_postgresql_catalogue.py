"""PostgreSQL's catalogue, on a real server."""

import json

import pytest
import sqlalchemy
from sqlalchemy.exc import InternalError
from typer.testing import CliRunner

from bayeslink.cli import app
from bayeslink.grounding.access import visible
from bayeslink.grounding.policy import database_policy
from bayeslink.schema.database import read_database
from bayeslink.schema.engine import open_engine, parse_target
from bayeslink.schema.graph import Origin, SchemaGraph, Table
from bayeslink.schema.privileges import read_grants

SCRIPT = """
CREATE SCHEMA sales;
CREATE SCHEMA "Archiv";
CREATE TYPE mood AS ENUM ('sad', 'ok');
CREATE TABLE customer (id int PRIMARY KEY, name varchar(40), feeling mood);
COMMENT ON TABLE customer IS '客户，购买商品的人';
COMMENT ON COLUMN customer.name IS 'name as invoiced';
CREATE TABLE sales.customer (region int, id int, public_id int REFERENCES public.customer, PRIMARY KEY (region, id));
CREATE TABLE sales.orders (
  no int, "Placed On" date NOT NULL, region int, customer int, PRIMARY KEY (no, "Placed On"),
  FOREIGN KEY (region, customer) REFERENCES sales.customer
) PARTITION BY RANGE ("Placed On");
CREATE TABLE sales.orders_2023 PARTITION OF sales.orders FOR VALUES FROM ('2023-01-01') TO ('2024-01-01');
CREATE TABLE sales.orders_2024 PARTITION OF sales.orders FOR VALUES FROM ('2024-01-01') TO ('2025-01-01');
CREATE TABLE "Archiv"."Bestellung Alt" (
  "Nr" int, "Am" date, "Kunde" int REFERENCES public.customer, FOREIGN KEY ("Nr", "Am") REFERENCES sales.orders
);
CREATE TABLE "Group" (id int PRIMARY KEY);
CREATE VIEW public.names AS SELECT name FROM customer;
CREATE VIEW sales.big AS SELECT o.no, c.name FROM sales.orders o JOIN sales.customer s ON s.id = o.customer
  JOIN public.customer c ON c.id = s.public_id;
CREATE MATERIALIZED VIEW sales.monthly AS
  SELECT date_trunc('month', "Placed On") m, count(*) FROM sales.orders GROUP BY 1;
COMMENT ON MATERIALIZED VIEW sales.monthly IS 'orders by month';
CREATE EXTENSION file_fdw;
CREATE SERVER files FOREIGN DATA WRAPPER file_fdw;
CREATE FOREIGN TABLE public.ledger (id int, amount numeric(9, 2)) SERVER files OPTIONS (filename '/dev/null');
INSERT INTO customer SELECT g, 'c' || g FROM generate_series(1, 500) g;
ANALYZE customer;
"""


@pytest.fixture(scope="module")
def url(postgresql_server) -> str:
    return postgresql_server.create("shop", SCRIPT)


@pytest.fixture(scope="module")
def graph(url: str) -> SchemaGraph:
    return read_database(url, schemas="*")


def named(graph: SchemaGraph, name: str) -> Table:
    return next(table for table in graph.tables if table.full_name == name)


def keys(graph: SchemaGraph, origin: Origin) -> set[tuple[str, tuple[str, ...], str, tuple[str, ...]]]:
    names, found = graph.table_names, [key for key in graph.foreign_keys if key.origin is origin]
    return {(names[key.table], key.columns, names[key.ref_table], key.ref_columns) for key in found}


def test_every_kind_of_table_of_every_schema_is_a_node(graph: SchemaGraph):
    assert set(graph.table_names) == {
        "public.customer",
        "public.Group",
        "public.ledger",
        "public.names",
        "sales.customer",
        "sales.orders",
        "sales.big",
        "sales.monthly",
        "Archiv.Bestellung Alt",
    }
    assert {table.name for table in graph.tables if table.is_view} == {"names", "big", "monthly"}
    assert graph.dialect == "postgres"
    assert graph.dropped == ()


def test_columns_types_and_primary_keys(graph: SchemaGraph):
    columns = [(column.name, column.type) for column in named(graph, "public.customer").columns]
    assert columns == [("id", "INTEGER"), ("name", "VARCHAR(40)"), ("feeling", "public.mood")]
    assert named(graph, "sales.customer").primary_key == ("region", "id")
    assert [column.type for column in named(graph, "public.ledger").columns] == ["INTEGER", "NUMERIC(9, 2)"]


def test_keys_within_and_across_schemas(graph: SchemaGraph):
    assert keys(graph, Origin.DECLARED) == {
        ("sales.customer", ("public_id",), "public.customer", ("id",)),
        ("sales.orders", ("region", "customer"), "sales.customer", ("region", "id")),
        ("Archiv.Bestellung Alt", ("Kunde",), "public.customer", ("id",)),
        ("Archiv.Bestellung Alt", ("Nr", "Am"), "sales.orders", ("no", "Placed On")),
    }


def test_views_are_joined_to_what_their_sql_reads(graph: SchemaGraph):
    assert keys(graph, Origin.VIEW) == {
        ("public.names", (), "public.customer", ()),
        ("sales.big", (), "public.customer", ()),
        ("sales.big", (), "sales.customer", ()),
        ("sales.big", (), "sales.orders", ()),
        ("sales.monthly", (), "sales.orders", ()),
    }
    assert "SELECT" in (named(graph, "sales.monthly").definition or "")


def test_partitions_are_left_out_beside_their_table(graph: SchemaGraph):
    note = "partitions, which are read through their table, are left out: orders_2023, orders_2024"
    assert graph.warnings == (note,)


def test_comments_are_descriptions(graph: SchemaGraph):
    assert named(graph, "public.customer").description == "客户，购买商品的人"
    assert named(graph, "public.customer").columns[1].description == "name as invoiced"
    assert named(graph, "sales.monthly").description == "orders by month"


def test_default_schema_alone_is_unqualified(url: str):
    graph = read_database(url)
    assert set(graph.table_names) == {"customer", "Group", "ledger", "names"}
    assert keys(graph, Origin.VIEW) == {("names", (), "customer", ())}
    assert (graph.dropped, graph.warnings) == ((), ())


def test_default_schema_follows_the_search_path_of_the_role(postgresql_server, url: str):
    postgresql_server.run("DROP ROLE IF EXISTS wanderer", "CREATE ROLE wanderer LOGIN SUPERUSER")
    postgresql_server.run("ALTER ROLE wanderer SET search_path TO sales, public")
    graph = read_database(url.replace("postgres@", "wanderer@"), schemas=["sales", "public"])
    assert ("sales.customer", ("public_id",), "public.customer", ("id",)) in keys(graph, Origin.DECLARED)
    unqualified = read_database(url.replace("postgres@", "wanderer@"))
    assert "orders" in unqualified.table_names


def test_a_view_on_a_schema_that_is_not_read_is_named(url: str):
    graph = read_database(url, schemas=["sales"])
    [warning] = [sentence for sentence in graph.warnings if "view" in sentence]
    assert warning == "view 'sales.big' has no edges: its SQL cannot be resolved (unknown table public.customer)"
    assert ("sales.monthly", (), "sales.orders", ()) in keys(graph, Origin.VIEW)


def test_names_that_differ_in_case_alone_are_told(postgresql_server):
    script = 'CREATE TABLE "Orders" (a int PRIMARY KEY);\nCREATE TABLE orders (b int REFERENCES "Orders");'
    graph = read_database(postgresql_server.create("twins", script))
    assert len(graph.tables) == 1
    assert graph.foreign_keys == ()
    assert sorted(graph.warnings) == ["'orders' is left out: 'Orders' differs from it in case alone"]


def test_row_counts_are_the_catalogues(url: str):
    counts = {table.name: table.num_rows for table in read_database(url, row_counts=True).tables}
    assert counts == {"customer": 500, "Group": None, "ledger": None, "names": None}
    assert {table.num_rows for table in read_database(url).tables} == {None}


def test_connection_only_reads(url: str):
    engine = open_engine(parse_target(url))
    for _ in range(2):
        with engine.connect() as connection, pytest.raises(InternalError, match="read-only transaction"):
            connection.execute(sqlalchemy.text("INSERT INTO customer VALUES (0, 'nobody')"))


def test_grants_of_tables_columns_and_inherited_roles(postgresql_server, url: str):
    postgresql_server.run("DROP ROLE IF EXISTS clerk", "DROP ROLE IF EXISTS staff")
    postgresql_server.run("CREATE ROLE staff", "CREATE ROLE clerk LOGIN IN ROLE staff")
    postgresql_server.run(
        "GRANT USAGE ON SCHEMA sales TO staff",
        "GRANT SELECT ON sales.customer TO staff",
        "GRANT SELECT (no, region), INSERT ON sales.orders TO clerk",
        'GRANT SELECT ON "Archiv"."Bestellung Alt" TO clerk',  # without USAGE of the schema
        "GRANT SELECT ON public.names TO PUBLIC",
        "GRANT UPDATE ON public.ledger TO clerk",
        database="shop",
    )
    every = read_grants(url, "clerk", "*")
    assert every.principal == "clerk"
    assert every.columns == {
        ("sales", "customer"): {"region", "id", "public_id"},
        ("sales", "orders"): {"no", "region"},
        ("public", "names"): {"name"},
    }
    assert read_grants(url, "clerk", ["sales"]).columns.keys() == {("sales", "customer"), ("sales", "orders")}
    assert read_grants(url, "clerk").columns == {("", "names"): {"name"}}
    with pytest.raises(TypeError):
        every.columns["public", "customer"] = frozenset({"id"})
    seen = visible(read_database(url, schemas="*"), database_policy(url, "clerk", "*")).graph
    assert {table.full_name for table in seen.tables} == {"sales.customer", "sales.orders", "public.names"}
    assert {column.name for column in seen.tables[seen.table_names.index("sales.orders")].columns} == {"no", "region"}
    found = CliRunner().invoke(app, ["schema", url, "--schema", "*", "--principal", "clerk", "--json"])
    document = json.loads(found.stdout)
    assert (document["tables"], document["views"]) == (2, 1)
    with pytest.raises(ValueError, match='role "nobody such" does not exist'):
        read_grants(url, "nobody such")


def test_server_that_is_not_there_and_wrong_password(postgresql_server, url: str):
    gone = url.replace("postgres@", "ann:hunter2@").rpartition(":")[0] + ":1/shop"
    with pytest.raises(ValueError, match="the database cannot be read") as caught:
        read_database(gone)
    assert "hunter2" not in str(caught.value)
    assert "\n" not in str(caught.value)
    with pytest.raises(ValueError, match='database "nowhere" does not exist'):
        read_database(url.replace("/shop", "/nowhere"))
    with pytest.raises(ValueError, match='role "ann" does not exist') as caught:
        read_database(url.replace("postgres@", "ann:hunter2@"))
    assert "hunter2" not in str(caught.value)
