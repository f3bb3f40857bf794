"""What a principal may see: policies from files, and graphs that hold no trace of what is withheld."""

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bayeslink.grounding.access import NOTICE, Policy, Views, read_policy, visible
from bayeslink.grounding.ddl import prune_schema
from bayeslink.schema.graph import Column, Origin, RawKey, SchemaGraph, Table, build_graph
from bayeslink.schema.schema_lines import schema_line
from bayeslink.simulation.sql_worlds import random_world

FILE = {
    "principals": {
        "reader": {"tables": {"Customers": "*", "sales.orders": ["id", "Total"]}},
        "analyst": {"tables": {"customers": ["id"], "products": "*"}, "roles": ["reader"]},
        "seller": {"tables": {"sales.orders": ["owner"]}, "roles": ["reader"], "views": "owner"},
        "admin": {"tables": {"*": "*"}},
    }
}


def written(tmp_path, content, name="policy.json"):
    path = tmp_path / name
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    return path


def office() -> SchemaGraph:
    tables = [
        Table(
            "people",
            (
                Column("id", "INTEGER", primary_key=True),
                Column("name", "TEXT", description="as in payroll"),
                Column("wage", "REAL"),
                Column("team_id", "INTEGER", description="where the wage is paid"),
            ),
            description="everybody; the Pay Roll has more",
        ),
        Table("payroll", (Column("person_id", "INTEGER"), Column("amount", "REAL"))),
        Table("teams", (Column("id", "INTEGER", primary_key=True), Column("lead", "ENUM('amount', 'none')"))),
        Table("seats", (Column("team_id"), Column("room"), Column("desk")), key_columns=("room", "desk")),
        Table("names", (Column("name"),), is_view=True, definition="SELECT name FROM people"),
        Table("rich", (Column("name"),), is_view=True, definition="SELECT name FROM people WHERE wage > 9"),
        Table("unknown", (Column("name"),), is_view=True),
    ]
    keys = [
        RawKey("payroll", ("person_id",), "people", ("id",)),
        RawKey("people", ("team_id",), "teams", ("id",)),
        RawKey("seats", ("team_id",), "teams", ("id",)),
        RawKey("payroll", ("nothing",), "people", ("id",)),
        RawKey("names", (), "people", origin=Origin.VIEW),
        RawKey("rich", (), "people", origin=Origin.VIEW),
    ]
    return build_graph("office", tables, keys, warnings=["payroll cannot be read"])


def everything_but_wages(**more) -> Policy:
    whole = dict.fromkeys([("", "teams"), ("", "names"), ("", "rich"), ("", "unknown")])
    people = {("", "people"): frozenset({"id", "name", "team_id"})}
    return Policy("clerk", {**whole, **people, ("", "seats"): frozenset({"team_id", "room"})}, **more)


def test_roles_are_inherited_and_grants_add_up(tmp_path):
    path = written(tmp_path, FILE)
    analyst = read_policy(path, "analyst")
    assert analyst.tables == {
        ("", "customers"): None,
        ("", "products"): None,
        ("sales", "orders"): frozenset({"id", "Total"}),
    }
    assert analyst.views is Views.STRICT
    seller = read_policy(path, "seller")
    assert seller.tables["sales", "orders"] == {"id", "Total", "owner"}
    assert seller.views is Views.OWNER
    assert read_policy(path, "admin").every_table
    assert not seller.every_table


def test_toml_says_the_same(tmp_path):
    path = written(tmp_path, '[principals.reader.tables]\ncustomers = "*"\norders = ["id"]\n', "policy.toml")
    assert read_policy(path, "reader").tables == {("", "customers"): None, ("", "orders"): frozenset({"id"})}


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("{", "not JSON"),
        ("[]", "is list; make it an object"),
        ("{}", "field 'principals' is missing"),
        ({"principals": {"reader": []}}, "principal 'reader' is list; make it an object"),
        ({"principals": {"other": {}}}, "there is no principal 'reader'; use one of other"),
        ({"principals": {"reader": {"table": {}}}}, "field 'table' is unknown"),
        ({"principals": {"reader": {"tables": {"a": "id"}}}}, "is 'id'; make it '\\*' or a list of names"),
        ({"principals": {"reader": {"tables": {"a": [1]}}}}, "is \\[1\\]; make it '\\*' or a list of names"),
        ({"principals": {"reader": {"tables": {"a": "*", "A": "*"}}}}, "table 'A' appears twice"),
        ({"principals": {"reader": {"tables": {"*": ["id"]}}}}, "every table is granted whole"),
        ({"principals": {"reader": {"roles": "x"}}}, "field 'roles' is 'x'; make it a list of names"),
        ({"principals": {"reader": {"roles": ["x"]}}}, "there is no role 'x'"),
        ({"principals": {"reader": {"views": "all"}}}, "views='all'; use one of"),
        (
            {"principals": {"reader": {"roles": ["b"]}, "b": {"roles": ["reader"]}}},
            "in a circle: reader -> b -> reader",
        ),
        ('{"principals": {"reader": {}, "reader": {}}}', "field 'reader' appears twice"),
    ],
)
def test_a_defect_of_the_file_is_one_sentence(tmp_path, content, message):
    with pytest.raises(ValueError, match=message) as error:
        read_policy(written(tmp_path, content), "reader")
    assert "\n" not in str(error.value)


def test_files_that_cannot_be_read(tmp_path):
    with pytest.raises(ValueError, match="cannot be read"):
        read_policy(tmp_path / "none.json", "reader")
    with pytest.raises(ValueError, match="not TOML"):
        read_policy(written(tmp_path, "= 1", "broken.toml"), "reader")
    (tmp_path / "latin.json").write_bytes(b"\xff")
    with pytest.raises(ValueError, match="not UTF-8"):
        read_policy(tmp_path / "latin.json", "reader")


@pytest.mark.parametrize(
    ("tables", "message"),
    [
        ({("", "peple"): None}, "table 'peple' does not exist"),
        ({("hr", "people"): None}, "table 'hr.people' does not exist"),
        ({("", "people"): frozenset({"wages"})}, "column 'wages' of table 'people' does not exist"),
    ],
)
def test_a_name_that_the_database_lacks_is_an_error_unless_the_database_said_it(tables, message):
    with pytest.raises(ValueError, match=message):
        visible(office(), Policy("clerk", tables))
    assert visible(office(), Policy("clerk", tables, from_database=True)).graph.tables == ()


def test_a_name_that_could_be_two_is_an_error():
    both = [Table("t", (Column("a"),), schema=schema) for schema in ("x", "y")]
    graph = build_graph("d", [*both, Table("c", (Column("Wage"), Column("wage")))], dialect="postgres")
    with pytest.raises(ValueError, match="'t' could be two"):
        visible(graph, Policy("clerk", {("", "t"): None}))
    with pytest.raises(ValueError, match="'WAGE' of table 'c' could be two"):
        visible(graph, Policy("clerk", {("", "c"): frozenset({"WAGE"})}))
    seen = visible(graph, Policy("clerk", {("", "c"): frozenset({"wage"}), ("y", "t"): None})).graph
    assert [(table.full_name, [c.name for c in table.columns]) for table in seen.tables] == [
        ("y.t", ["a"]),
        ("c", ["wage"]),
    ]


def test_what_is_withheld_leaves_no_trace():
    seen = visible(office(), everything_but_wages())
    graph = seen.graph
    assert graph.table_names == ("people", "teams", "seats", "names")
    assert [column.name for column in graph.tables[0].columns] == ["id", "name", "team_id"]
    assert [table.partial for table in graph.tables] == [True, False, True, False]
    assert [(edge.first, edge.second) for edge in graph.edges] == [(0, 1), (1, 2), (0, 3)]
    assert graph.dropped == graph.warnings == ()
    assert graph.tables[0].description is None
    assert [column.description for column in graph.tables[0].columns] == [None, None, None]
    assert graph.tables[1].columns[1].type == ""
    assert graph.tables[2].primary_key == ()
    assert graph.tables[0].primary_key == ("id",)
    assert seen.notice == NOTICE
    assert graph.tables[3].definition == "SELECT name FROM people"


def test_a_key_that_lost_a_column_is_gone_without_a_word():
    policy = Policy("clerk", {("", "people"): frozenset({"id", "name"}), ("", "teams"): None})
    graph = visible(office(), policy).graph
    assert graph.foreign_keys == graph.edges == graph.dropped == ()
    assert graph.table_names == ("people", "teams")


def test_texts_that_name_nothing_withheld_stay():
    policy = everything_but_wages()
    tables = {**policy.tables, ("", "people"): None, ("", "payroll"): frozenset({"person_id"})}
    graph = visible(office(), Policy("clerk", tables)).graph
    assert graph.tables[0].description == "everybody; the Pay Roll has more"
    assert graph.tables[0].columns[3].description == "where the wage is paid"
    assert "rich" in graph.table_names
    assert graph.tables[2].columns[1].type == ""  # it still names payroll's amount


def test_views_of_owners_are_read_as_they_are():
    seen = visible(office(), everything_but_wages(views=Views.OWNER))
    assert seen.graph.table_names == ("people", "teams", "seats", "names", "rich", "unknown")
    assert seen.graph.tables[4].definition is None
    assert seen.check("SELECT name FROM rich").allowed
    assert not seen.check("SELECT wage FROM people").allowed
    assert not visible(office(), everything_but_wages()).check("SELECT name FROM rich").allowed


def test_a_view_whose_text_names_more_than_it_reads_gets_another_text():
    view = Table("v", (Column("wage"), Column("n")), is_view=True, definition='SELECT a AS wage, a AS n FROM "T 1"')
    graph = build_graph("d", [Table("T 1", (Column("a"),)), view])
    seen = visible(graph, Policy("clerk", {("", "t 1"): None, ("", "v"): frozenset({"n"})}))
    assert seen.graph.tables[1].definition == 'SELECT EXISTS (SELECT a FROM "T 1")'
    assert seen.check("SELECT n FROM v").allowed
    assert not seen.check("SELECT wage FROM v").allowed


def test_who_may_read_everything_sees_the_graph_itself():
    graph = office()
    seen = visible(graph, Policy("admin", every_table=True))
    assert seen.graph is graph
    assert seen.notice == ""
    assert seen.check("SELECT * FROM payroll").allowed


def test_chinese_names_are_found_without_spaces():
    tables = [Table("客户", (Column("编号", description="在工资表里"), Column("x"))), Table("工资", (Column("额"),))]
    seen = visible(build_graph("d", tables), Policy("clerk", {("", "客户"): None}))
    assert seen.graph.tables[0].columns[0].description is None


@settings(max_examples=150, deadline=None, derandomize=True)
@given(st.integers(0, 10**6))
def test_random_views_hold_what_is_granted_and_nothing_that_names_the_rest(seed):
    world = random_world(np.random.default_rng(seed))
    graph = visible(world.graph, world.policy).graph
    shown = {table.key: tuple(column.name for column in table.columns) for table in graph.tables}
    for table in world.graph.tables:
        assert shown.get(table.key, ()) == world.granted(table) or table.is_view
    hidden = {table.name for table in world.graph.tables} - {table.name for table in graph.tables}
    hidden |= {column.name for table in world.graph.tables for column in table.columns}
    hidden -= {column.name for table in graph.tables for column in table.columns} | {t.name for t in graph.tables}
    told = prune_schema(graph, range(graph.num_tables)).to_dict()["tables"]
    strings = set(walked([told, schema_line("", graph)["tables"], schema_line("", graph)["foreign_keys"]]))
    assert not hidden & strings
    comments = " ".join(table.description or "" for table in graph.tables)
    assert not any(f" {name} " in f" {comments} " for name in hidden)


def walked(value):
    """Every string in a JSON value."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for item in value.values():
            yield from walked(item)
    elif isinstance(value, list):
        for item in value:
            yield from walked(item)
