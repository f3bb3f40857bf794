"""DDL of selected tables: it runs, quotes what must be quoted, keeps its budget, and shows no name it should not."""

import sqlite3
from itertools import pairwise

import numpy as np
import pytest
import sqlglot
from hypothesis import given, settings
from hypothesis import strategies as st
from sqlglot import exp

from bayeslink.grounding.ddl import ddl_tokens, estimated_tokens, prune_schema, quoted
from bayeslink.schema.graph import Column, Origin, RawKey, SchemaGraph, Table, build_graph

NAMES = st.text(st.characters(codec="utf-8", exclude_characters="\x00"), min_size=1, max_size=12)


def shop() -> SchemaGraph:
    tables = [
        Table(
            "customers",
            (
                Column("id", "INTEGER", primary_key=True),
                Column("full name", "TEXT", description="first\nand last"),
                Column("city", "TEXT"),
                Column("born", "DATE"),
            ),
            description="who buys\n); DROP TABLE customers; --",
        ),
        Table("order", (Column("id", "INTEGER", primary_key=True), Column("customer_id", "INTEGER"))),
        Table("Returns", (Column("order_id", "INTEGER"), Column("reason", "TEXT"))),
        Table("totals", (Column("city", "TEXT"), Column("sum", "REAL")), is_view=True),
    ]
    keys = [
        RawKey("order", ("customer_id",), "customers", ("id",)),
        RawKey("Returns", ("order_id",), "order", ("id",)),
    ]
    return build_graph("shop", tables, keys)


def created(text: str) -> dict[str, list[str]]:
    """Columns by table that SQLite makes of a text."""
    database = sqlite3.connect(":memory:")
    database.executescript(text)
    names = [row[0] for row in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
    return {
        name: [row[0] for row in database.execute("SELECT name FROM pragma_table_info(?)", (name,))] for name in names
    }


def test_the_text_by_hand():
    assert prune_schema(shop(), [1, 0]).text == (
        "-- who buys ); DROP TABLE customers; --\n"
        "CREATE TABLE customers (\n"
        "  id INTEGER,\n"
        '  "full name" TEXT, -- first and last\n'
        "  city TEXT,\n"
        "  born DATE,\n"
        "  PRIMARY KEY (id)\n"
        ");\n"
        "\n"
        'CREATE TABLE "order" (\n'
        "  id INTEGER,\n"
        "  customer_id INTEGER,\n"
        "  PRIMARY KEY (id),\n"
        "  FOREIGN KEY (customer_id) REFERENCES customers (id)\n"
        ");"
    )


def test_sqlite_makes_the_tables_and_a_view_is_said_to_be_one():
    graph = shop()
    assert created(prune_schema(graph, range(4)).text) == {
        table.name: [column.name for column in table.columns] for table in graph.tables
    }
    assert "-- a view\nCREATE TABLE totals" in prune_schema(graph, [3]).text


def test_no_table_that_is_not_selected_is_named():
    pruned = prune_schema(shop(), [2])
    assert "REFERENCES" not in pruned.text
    assert '"order"' not in pruned.text
    assert pruned.to_dict()["tables"][0]["foreign_keys"] == []


@pytest.mark.parametrize(
    ("name", "dialect", "written"),
    [
        ("Name", "sqlite", "Name"),
        ("Name", "postgres", '"Name"'),
        ("name", "postgres", "name"),
        ("NAME", "snowflake", "NAME"),
        ("Name", "snowflake", '"Name"'),
        ("select", "sqlite", '"select"'),
        ("group", "mysql", "`group`"),
        ("order", "tsql", "[order]"),
        ("table", "bigquery", "`table`"),
        ("(2)", "sqlite", '"(2)"'),
        ('a"b', "postgres", '"a""b"'),
        ("2024", "duckdb", '"2024"'),
        ("größe", "mysql", "`größe`"),
    ],
)
def test_identifiers_are_quoted_where_the_dialect_reads_them_otherwise(name, dialect, written):
    assert quoted(name, dialect) == written


def test_every_keyword_of_sqlite_makes_a_table_and_a_column():
    words = """ABORT ACTION ADD AFTER ALL ALTER ALWAYS ANALYZE AND AS ASC ATTACH AUTOINCREMENT BEFORE BEGIN BETWEEN BY
    CASCADE CASE CAST CHECK COLLATE COLUMN COMMIT CONFLICT CONSTRAINT CREATE CROSS CURRENT CURRENT_DATE CURRENT_TIME
    CURRENT_TIMESTAMP DATABASE DEFAULT DEFERRABLE DEFERRED DELETE DESC DETACH DISTINCT DO DROP EACH ELSE END ESCAPE
    EXCEPT EXCLUDE EXCLUSIVE EXISTS EXPLAIN FAIL FILTER FIRST FOLLOWING FOR FOREIGN FROM FULL GENERATED GLOB GROUP
    GROUPS HAVING IF IGNORE IMMEDIATE IN INDEX INDEXED INITIALLY INNER INSERT INSTEAD INTERSECT INTO IS ISNULL JOIN KEY
    LAST LEFT LIKE LIMIT MATCH MATERIALIZED NATURAL NO NOT NOTHING NOTNULL NULL NULLS OF OFFSET ON OR ORDER OTHERS OUTER
    OVER PARTITION PLAN PRAGMA PRECEDING PRIMARY QUERY RAISE RANGE RECURSIVE REFERENCES REGEXP REINDEX RELEASE RENAME
    REPLACE RESTRICT RETURNING RIGHT ROLLBACK ROW ROWS SAVEPOINT SELECT SET TABLE TEMP TEMPORARY THEN TIES TO
    TRANSACTION TRIGGER UNBOUNDED UNION UNIQUE UPDATE USING VACUUM VALUES VIEW VIRTUAL WHEN WHERE WINDOW WITH WITHOUT"""
    for word in words.split():
        graph = build_graph("words", [Table(word, (Column(word, "TEXT", primary_key=True),))])
        assert created(prune_schema(graph, [0]).text) == {word: [word]}


@settings(max_examples=60, deadline=None, derandomize=True)
@given(st.lists(NAMES, min_size=1, max_size=4, unique_by=str.casefold), NAMES)
def test_any_name_makes_the_table_that_it_names(columns, table):
    # SQLite keeps names that begin so for itself.
    if table.casefold().startswith("sqlite_"):
        table = f"x{table}"
    graph = build_graph("any", [Table(table, tuple(Column(name, "TEXT") for name in columns))])
    try:
        made = created(prune_schema(graph, [0]).text)
    except UnicodeEncodeError:
        return  # a lone surrogate is no text
    assert made == {table: columns}


@pytest.mark.parametrize("dialect", ["postgres", "mysql", "duckdb", "snowflake", "bigquery", "tsql"])
def test_other_dialects_read_their_own_text(dialect):
    tables = [
        Table("Line Items", (Column("order", "int", primary_key=True), Column("Größe", "text")), schema="Sales.eu"),
        Table("group", (Column("id", "int", primary_key=True),), schema="Sales.eu"),
    ]
    keys = [RawKey("Line Items", ("order",), "group", ("id",), schema="Sales.eu", ref_schema="Sales.eu")]
    text = prune_schema(build_graph("x", tables, keys, dialect=dialect), [0, 1]).text
    trees = [tree for tree in sqlglot.parse(text, read=dialect) if tree is not None]
    assert [tree.find(exp.Table).name for tree in trees] == ["Line Items", "group"]
    assert [column.name for column in trees[0].find_all(exp.ColumnDef)] == ["order", "Größe"]
    assert trees[0].find(exp.Reference).find(exp.Table).db in ("eu", "Sales")


def refused(graph: SchemaGraph, budget: int, scores: np.ndarray) -> bool:
    try:
        prune_schema(graph, [0, 1], budget, scores)
    except ValueError:
        return True
    return False


def test_a_budget_is_kept_and_keys_are_the_last_to_go():
    graph = shop()
    scores = np.array([0.1, 0.2, 0.9, 0.3, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1])
    whole = prune_schema(graph, [0, 1])
    sizes = []
    keys = next(n for n in range(whole.tokens) if not refused(graph, n, scores))
    for budget in range(whole.tokens, keys - 1, -1):
        pruned = prune_schema(graph, [0, 1], budget, scores)
        assert pruned.tokens <= budget
        assert pruned.tokens == estimated_tokens(pruned.text)
        assert {"id"} <= set(created(pruned.text)["customers"])
        assert created(pruned.text)["order"] == ["id", "customer_id"]
        sizes.append(len(pruned.columns[0]))
    assert set(sizes) == {4, 3, 2, 1}
    assert all(before >= after for before, after in pairwise(sizes))
    fewer = next(
        prune_schema(graph, [0, 1], budget, scores)
        for budget in range(whole.tokens, 0, -1)
        if len(prune_schema(graph, [0, 1], budget, scores).columns[0]) == 2
    )
    assert fewer.left_out == {"customers": ("full name", "born")}
    assert "  -- ...\n);" in fewer.text
    assert fewer.to_dict()["tables"][0]["columns_left_out"] == 2


def test_the_budget_counts_with_the_tokeniser_that_is_given():
    words = prune_schema(shop(), [0], 22, count=lambda text: len(text.split()))
    assert words.tokens == len(words.text.split()) <= 22
    assert words.left_out


def test_what_cannot_be_shown_is_refused():
    graph = shop()
    with pytest.raises(ValueError, match="the schema has no table 4; use 0 to 3"):
        prune_schema(graph, [4])
    with pytest.raises(ValueError, match="column_scores: 2 for 10 columns; give one each"):
        prune_schema(graph, [0], column_scores=np.zeros(2))
    with pytest.raises(ValueError, match=r"max_tokens=3: 1 tables with their keys alone need \d+; raise it"):
        prune_schema(graph, [0], 3)


def test_no_table_is_no_text():
    assert prune_schema(shop(), []).text == ""
    assert prune_schema(shop(), []).tokens == 0


def test_tokens_of_tables_bound_those_of_their_text():
    graph = shop()
    weights = ddl_tokens(graph)
    for tables in ([0], [1, 2], [0, 1, 2, 3]):
        assert prune_schema(graph, tables).tokens <= weights[tables].sum()
    assert ddl_tokens(build_graph("none", [])).tolist() == []


def test_columns_that_another_table_refers_to_are_keys_too():
    tables = [
        Table("ports", (Column("name", "TEXT"), Column("code", "TEXT"), Column("id", "INTEGER", primary_key=True))),
        Table("visits", (Column("port_code", "TEXT"),)),
    ]
    graph = build_graph("bay", tables, [RawKey("visits", ("port_code",), "ports", ("code",))])
    whole = prune_schema(graph, [0])
    assert prune_schema(graph, [0], whole.tokens - 1).left_out == {"ports": ("name",)}


def test_an_inferred_key_is_said_to_be_one_and_what_a_view_reads_is_no_key():
    tables = [
        Table("a", (Column("id", "INTEGER", primary_key=True),)),
        Table("b", (Column("a_id", "INTEGER"),)),
        Table("v", (Column("id", "INTEGER"),), is_view=True),
    ]
    keys = [
        RawKey("b", ("a_id",), "a", ("id",), origin=Origin.INFERRED),
        RawKey("v", (), "a", origin=Origin.VIEW),
    ]
    shown = prune_schema(build_graph("d", tables, keys), range(3))
    assert "FOREIGN KEY (a_id) REFERENCES a (id) -- inferred, not declared" in shown.text
    assert shown.text.count("FOREIGN KEY") == 1
    created(shown.text)


def test_a_table_without_keys_keeps_the_column_that_is_needed_most():
    notes = Table("notes", tuple(Column(name, "TEXT") for name in ("first", "second", "third")))
    graph = build_graph("n", [notes], ())
    for scores, kept in ((None, "first"), (np.array([0.1, 0.7, 0.2]), "second")):
        least = prune_schema(graph, [0], column_scores=scores, max_tokens=prune_schema(graph, [0]).tokens - 1)
        while True:
            try:
                least = prune_schema(graph, [0], column_scores=scores, max_tokens=least.tokens - 1)
            except ValueError:
                break
        assert created(least.text) == {"notes": [kept]}
        assert repr(least) == f"PrunedSchema(notes; {least.tokens} tokens)"
