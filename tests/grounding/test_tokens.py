"""The estimate of what a table's DDL costs."""

from bayeslink.grounding.tokens import CHARACTERS_PER_TOKEN, ddl_tokens
from bayeslink.schema.graph import Column, RawKey, Table, build_graph


def test_tokens_are_those_of_the_ddl_with_its_keys():
    tables = [
        Table("ships", (Column("id", "INTEGER"), Column("port_id", "INTEGER"))),
        Table("ports", (Column("id", "INTEGER"),), schema="sea"),
        Table("t", ()),
    ]
    graph = build_graph("bay", tables, [RawKey("ships", ("port_id",), "ports", ("id",), ref_schema="sea")])
    texts = [
        "CREATE TABLE ships (id INTEGER, port_id INTEGER, FOREIGN KEY (port_id) REFERENCES sea.ports);",
        "CREATE TABLE sea.ports (id INTEGER);",
        "CREATE TABLE t ();",
    ]
    assert ddl_tokens(graph).tolist() == [-(-len(text) // CHARACTERS_PER_TOKEN) for text in texts]


def test_a_schema_without_tables_costs_nothing():
    assert ddl_tokens(build_graph("none", [])).tolist() == []
