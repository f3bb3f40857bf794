"""What users of other tools reported of catalogues, keys and links, each with a small input of our own."""

import json
import sqlite3
from pathlib import Path

import pytest

from bayeslink.linker import Link, SchemaLinker
from bayeslink.schema.composite import composite_keys
from bayeslink.schema.database import read_database
from bayeslink.schema.graph import Column, Origin, RawKey, SchemaGraph, Table, build_graph
from bayeslink.schema.lines import Record
from bayeslink.schema.schema_lines import read_schema, schema_line
from bayeslink.schema.spider import read_bird


def table(name: str, columns: str = "id", schema: str | None = None, key: str = "id", **other: object) -> Table:
    listed = tuple(Column(column, primary_key=column in key.split()) for column in columns.split())
    return Table(name, listed, schema, **other)


def database(tmp_path: Path, script: str) -> SchemaGraph:
    path = tmp_path / "report.db"
    connection = sqlite3.connect(path)
    connection.executescript(script)
    connection.close()
    return read_database(str(path))


def linked(graph: SchemaGraph, question: str) -> Link:
    return SchemaLinker.from_graph(graph, channels="lexical").link(question)


def test_two_schemas_with_the_same_table_name():
    """Report: `a.customer` and `b.customer` were merged into one table."""
    keys = [RawKey("orders", ("customer_id",), "customer", schema="b")]
    tables = [table("customer", schema="a"), table("customer", schema="b"), table("orders", "id customer_id", "b")]
    graph = build_graph("d", tables, keys)
    assert graph.table_names == ("a.customer", "b.customer", "b.orders")
    assert [(edge.first, edge.second) for edge in graph.edges] == [(1, 2)]
    assert graph.find("customer") is None
    assert graph.find("b.customer") == 1


def test_same_key_name_in_two_schemas():
    """Report: keys that are alike but for their schema were joined crosswise."""
    tables = [table(name, "id parent_id", schema) for schema in "ab" for name in ("parent", "child")]
    keys = [RawKey("child", ("parent_id",), "parent", ("id",), schema) for schema in "ab"]
    graph = build_graph("d", tables, keys)
    assert [(key.table, key.ref_table) for key in graph.foreign_keys] == [(1, 0), (3, 2)]


def test_composite_key_across_schemas():
    """Report: a key of two columns into another schema was lost."""
    parent, child = table("parent", "x y", "a", "x y"), table("child", "p q", "b")
    graph = build_graph("d", [parent, child], [RawKey("child", ("p", "q"), "parent", ("x", "y"), "b", "a")])
    [key] = graph.foreign_keys
    assert (key.columns, key.ref_columns) == (("p", "q"), ("x", "y"))
    assert len(graph.edges) == 1


def test_key_of_n_columns_is_n_ordered_pairs(tmp_path: Path):
    """Report: a key of three columns gave nine pairs."""
    graph = database(
        tmp_path,
        "CREATE TABLE p (x, y, z, PRIMARY KEY (x, y, z));"
        "CREATE TABLE c (u, v, w, FOREIGN KEY (w, u, v) REFERENCES p (z, x, y));",
    )
    [key] = graph.foreign_keys
    assert list(zip(key.columns, key.ref_columns, strict=True)) == [("w", "z"), ("u", "x"), ("v", "y")]


def test_reference_without_columns_means_the_primary_key(tmp_path: Path):
    """Report: `REFERENCES parent` without a column was dropped."""
    graph = database(tmp_path, "CREATE TABLE p (y, x PRIMARY KEY); CREATE TABLE c (a REFERENCES p);")
    assert [(key.columns, key.ref_columns) for key in graph.foreign_keys] == [(("a",), ("x",))]


def test_key_that_names_a_column_twice():
    """Report: such a key stopped the whole import."""
    tables = [table("p", "x y", key="x y"), table("c", "a")]
    graph = build_graph("d", tables, [RawKey("c", ("a", "a"), "p", ("x", "y"))])
    assert graph.foreign_keys == ()
    assert graph.dropped == ("foreign key c(a, a) -> p(x, y): it names a column twice",)


def test_key_to_its_own_table(tmp_path: Path):
    """Report: a self key made a loop that broke the search for paths."""
    graph = database(tmp_path, "CREATE TABLE person (id PRIMARY KEY, manager REFERENCES person (id));")
    assert [key.is_self for key in graph.foreign_keys] == [True]
    assert graph.edges == ()


def test_two_tables_that_reference_each_other(tmp_path: Path):
    """Report: a cycle of two keys never ended."""
    graph = database(
        tmp_path, "CREATE TABLE a (id PRIMARY KEY, b REFERENCES b); CREATE TABLE b (id PRIMARY KEY, a REFERENCES a);"
    )
    assert len(graph.foreign_keys) == 2
    assert len(graph.edges) == 1
    assert linked(graph, "how many a of b").probabilities.shape == (2,)


def test_key_to_a_missing_table(tmp_path: Path):
    """Report: one dangling key made the catalogue unreadable."""
    graph = database(tmp_path, "CREATE TABLE c (a REFERENCES gone (x), b);")
    assert graph.table_names == ("c",)
    assert graph.dropped == ("foreign key c(a) -> gone(x): table 'gone' does not exist",)


def test_key_clause_in_another_case(tmp_path: Path):
    """Report: `references PARENT (ID)` found no table `parent`."""
    graph = database(tmp_path, "create table parent (id primary key); create table c (a references PARENT (ID));")
    assert [(key.columns, key.ref_columns) for key in graph.foreign_keys] == [(("a",), ("id",))]


def test_two_keys_between_one_pair(tmp_path: Path):
    """Report: of billing and shipping address only one key was kept."""
    graph = database(
        tmp_path,
        "CREATE TABLE address (id PRIMARY KEY);"
        "CREATE TABLE orders (billing REFERENCES address, shipping REFERENCES address);",
    )
    [edge] = graph.edges
    assert {key.columns for key in edge.keys} == {("billing",), ("shipping",)}


@pytest.mark.parametrize("name", ["(2)", "group", "SELECT", "a b", "x.y"])
def test_table_with_a_name_that_needs_quotes(tmp_path: Path, name: str):
    """Report: a table called "(2)", or a keyword, broke the reading or the DDL."""
    graph = database(tmp_path, f'CREATE TABLE "{name}" (id PRIMARY KEY, "{name}" INT); CREATE TABLE c (a);')
    link = linked(graph, f"rows of {name} and c")
    assert name in graph.table_names
    script = link.ddl([name]).text
    connection = sqlite3.connect(":memory:")
    connection.executescript(script)
    assert [row[0] for row in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")] == [name]
    connection.close()


def test_views_are_seen_and_joined(tmp_path: Path):
    """Report: views were invisible."""
    graph = database(tmp_path, "CREATE TABLE t (a); CREATE VIEW v AS SELECT a FROM t;")
    assert [item.is_view for item in graph.tables] == [False, True]
    assert [edge.origin for edge in graph.edges] == [Origin.VIEW]


def test_chinese_names_and_comments(tmp_path: Path):
    """Report: a question in Chinese found no table named in Chinese."""
    graph = database(tmp_path, 'CREATE TABLE "客户" ("编号" PRIMARY KEY, "姓名"); CREATE TABLE "仓库" ("编号");')
    link = linked(graph, "有多少客户？")
    assert link.probabilities[graph.find("客户")] > link.probabilities[graph.find("仓库")]
    described = [table("t1", description="客户，购买商品的人"), table("t2", description="仓库，存放商品的地方")]
    assert SchemaLinker.from_graph(build_graph("d", described), channels="lexical").link("有多少客户？") is not None


def test_keys_that_the_file_lacks_are_given_by_the_user():
    """Report: there was no way to add a key that the database does not declare."""
    graph = build_graph(
        "d", [table("p"), table("c", "p_id")], [RawKey("c", ("p_id",), "p", ("id",), origin=Origin.USER)]
    )
    assert [edge.origin for edge in graph.edges] == [Origin.USER]


def test_columns_of_a_composite_key_listed_one_by_one():
    """Report: two lines of one composite key became two keys."""
    tables = [table("p", "x y", key="x y"), table("c", "a b")]
    lines = [RawKey("c", ("a",), "p", ("x",)), RawKey("c", ("b",), "p", ("y",))]
    assert [key.columns for key in composite_keys(tables, lines)] == [("a", "b")]


def test_list_of_column_descriptions_of_the_wrong_length(tmp_path: Path):
    """Report: a list one short gave every column its neighbour's description."""
    entry = {
        "db_id": "d",
        "table_names_original": ["t"],
        "table_names": ["t"],
        "column_names_original": [[-1, "*"], [0, "a"], [0, "b"]],
        "column_names": [[-1, "*"], [0, "first"]],
        "column_types": ["text", "text", "text"],
        "primary_keys": [],
        "foreign_keys": [],
    }
    (tmp_path / "dev_tables.json").write_text(json.dumps([entry]))
    with pytest.raises(ValueError, match=r"not in the tables\.json layout"):
        read_bird(tmp_path)


def test_graph_with_views_survives_the_line_format(tmp_path: Path):
    """Report: what was read from a database was not what its file gave back."""
    graph = database(tmp_path, "CREATE TABLE t (a PRIMARY KEY); CREATE VIEW v AS SELECT a FROM t;")
    again = read_schema(Record("line", json.loads(json.dumps(schema_line("d", graph)))))
    assert again.foreign_keys == graph.foreign_keys
    assert again.edges == graph.edges


SHOP = """
CREATE TABLE students (student_id PRIMARY KEY, name);
CREATE TABLE courses (course_id PRIMARY KEY, title);
CREATE TABLE enrolment (student_id REFERENCES students, course_id REFERENCES courses);
CREATE TABLE buildings (building_id PRIMARY KEY, address);
CREATE TABLE invoices (invoice_id PRIMARY KEY, total);
CREATE TABLE parking_permits (permit_id PRIMARY KEY, plate);
"""


def test_junction_between_two_named_tables(tmp_path: Path):
    """Report: both named tables were found, the junction between them was not."""
    link = linked(database(tmp_path, SHOP), "Names of students and titles of their courses")
    assert {"students", "courses", "enrolment"} <= set(link.tables)


def test_exact_table_name_in_the_question(tmp_path: Path):
    """Report: a table named exactly was not among those returned."""
    link = linked(database(tmp_path, SHOP), "How many rows has parking_permits?")
    assert link.graph.table_names[int(link.probabilities.argmax())] == "parking_permits"
    assert "parking_permits" in link.tables


def test_singular_in_the_question_for_a_plural_table(tmp_path: Path):
    """Report: `invoice` did not find `invoices`."""
    link = linked(database(tmp_path, SHOP), "What is the largest invoice?")
    assert link.graph.table_names[int(link.probabilities.argmax())] == "invoices"


def test_two_rival_tables_are_reported(tmp_path: Path):
    """Report: of a table and a view of the same name and columns one was taken in silence."""
    script = """CREATE TABLE country_lookup (country_code PRIMARY KEY, country_name);
    CREATE VIEW country_view AS SELECT country_code, country_name FROM country_lookup;
    CREATE TABLE invoices (invoice_id PRIMARY KEY, total); CREATE TABLE buildings (building_id PRIMARY KEY);"""
    link = linked(database(tmp_path, script), "List the country name of each country code")
    asked = link.clarify()
    assert asked.table in ("country_lookup", "country_view")
    assert link.abstention.abstained[0] or asked.gain_nats > 0.05


def test_eight_to_twelve_tables_out_of_250():
    """Report: questions that need many tables lost some of them in a large schema."""
    parts = [
        "customer",
        "invoice",
        "product",
        "supplier",
        "warehouse",
        "shipment",
        "carrier",
        "region",
        "currency",
        "discount",
    ]
    tables = [table(name, f"{name}_id {name}_name", key=f"{name}_id") for name in parts]
    tables += [table(f"zq{number}", f"zq{number}_id k{number}") for number in range(240)]
    keys = [RawKey(name, (f"{name}_id",), parts[0], (f"{parts[0]}_id",)) for name in parts[1:]]
    link = linked(build_graph("d", tables, keys), f"Show the {', '.join(parts[:-1])} and {parts[-1]}")
    assert set(parts) <= set(link.tables)


def test_900_tables_with_few_keys():
    """Report: 900 tables with hardly a key took minutes, or found nothing."""
    tables = [table(f"area{number}_log", f"id entry{number}") for number in range(899)]
    tables.append(table("customers", "id name"))
    keys = [RawKey(f"area{number}_log", ("id",), "customers", ("id",)) for number in range(5)]
    link = linked(build_graph("d", tables, keys), "Names of customers")
    assert link.graph.table_names[int(link.probabilities.argmax())] == "customers"


def test_nothing_relevant_is_said(tmp_path: Path):
    """Report: a question about something else got tables all the same."""
    link = linked(database(tmp_path, SHOP), "Temperature of the ocean around volcanoes")
    assert link.abstention.abstained[0]
    assert link.abstention.reasons[0]
