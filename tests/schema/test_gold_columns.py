import pytest

from bayeslink.schema.corpus import read_corpus
from bayeslink.schema.gold import UnresolvedQueryError, gold_tables, resolve
from bayeslink.schema.gold_columns import gold_columns
from bayeslink.schema.graph import Column, SchemaGraph, Table

GRAPH = SchemaGraph(
    "shop",
    (
        Table("Customer", (Column("id"), Column("Name"), Column("city"))),
        Table("orders", (Column("id"), Column("customer_id"), Column("total"), Column("city"))),
        Table("notes", (Column("order_id"), Column("body text"))),
    ),
)


def names(query: str) -> set[str]:
    found = gold_columns(query, GRAPH)
    assert found.unknown == ()
    return {f"{GRAPH.tables[t].name}.{GRAPH.tables[t].columns[c].name}" for t, c in found.columns}


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("SELECT name FROM customer", {"Customer.Name"}),
        ("SELECT COUNT(*) FROM customer", set()),
        ("SELECT * FROM notes", {"notes.order_id", "notes.body text"}),
        ("SELECT c.NAME FROM Customer AS c", {"Customer.Name"}),
        (
            "SELECT c.name, SUM(o.total) FROM customer c JOIN orders o ON c.id = o.customer_id GROUP BY c.name",
            {"Customer.Name", "orders.total", "Customer.id", "orders.customer_id"},
        ),
        ("SELECT name FROM customer ORDER BY city LIMIT 1", {"Customer.Name", "Customer.city"}),
        (
            "SELECT name FROM customer WHERE id IN (SELECT customer_id FROM orders WHERE total > 5)",
            {"Customer.Name", "Customer.id", "orders.customer_id", "orders.total"},
        ),
        (
            "SELECT name FROM customer c WHERE EXISTS (SELECT 1 FROM orders WHERE customer_id = c.id)",
            {"Customer.Name", "Customer.id", "orders.customer_id"},
        ),
        (
            "WITH big AS (SELECT customer_id AS who FROM orders WHERE total > 5) SELECT who FROM big",
            {"orders.customer_id", "orders.total"},
        ),
        ("WITH customer AS (SELECT city FROM orders) SELECT city FROM customer", {"orders.city"}),
        ("SELECT total * 2 AS twice FROM orders ORDER BY twice", {"orders.total"}),
        ("SELECT name FROM customer UNION SELECT `body text` FROM notes", {"Customer.Name", "notes.body text"}),
        ("SELECT name FROM customer JOIN orders USING (id)", {"Customer.Name", "Customer.id", "orders.id"}),
        ('SELECT name FROM customer WHERE city = "Paris"', {"Customer.Name", "Customer.city"}),
        ("SELECT x.total FROM (SELECT total, city FROM orders) AS x", {"orders.total", "orders.city"}),
    ],
)
def test_columns_that_a_query_reads(query, expected):
    assert names(query) == expected


def test_a_column_that_two_tables_could_have_is_not_told():
    found = gold_columns("SELECT city FROM customer JOIN orders ON customer.id = orders.customer_id", GRAPH)
    assert found.unknown == ("city",)
    assert (0, 2) not in found.columns


def test_a_column_that_no_table_has_is_not_told():
    assert gold_columns("SELECT colour FROM customer", GRAPH).unknown == ("colour",)
    with pytest.raises(UnresolvedQueryError, match="Unknown column: colour"):
        gold_columns("SELECT c.colour FROM customer c", GRAPH)


TWO = SchemaGraph(
    "two",
    (
        Table("t", (Column("x"), Column("id")), schema="a"),
        Table("t", (Column("y"), Column("id")), schema="b"),
        Table("events_*", (Column("kind"),), schema="log"),
    ),
    dialect="postgres",
)


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("SELECT x FROM a.t", {(0, 0)}),
        ("SELECT * FROM a.t", {(0, 0), (0, 1)}),
        ("SELECT u.x, v.y FROM a.t u JOIN b.t v ON u.id = v.id", {(0, 0), (1, 0), (0, 1), (1, 1)}),
        ("SELECT a.t.x FROM a.t", {(0, 0)}),
        ("SELECT kind FROM log.events_2020", {(2, 0)}),
    ],
)
def test_tables_of_several_schemas_and_families_are_told_apart(query, expected):
    found = gold_columns(query, TWO)
    assert (found.columns, found.unknown) == (expected, ())


def test_a_table_that_two_schemas_have_is_refused():
    with pytest.raises(UnresolvedQueryError, match="ambiguous table t"):
        gold_columns("SELECT id FROM t", TWO)


@pytest.mark.parametrize("name", ["`colour`", "[colour]", "colour"])
def test_only_double_quotes_make_a_string(name):
    assert gold_columns(f"SELECT {name} FROM customer", GRAPH).unknown != ()
    assert gold_columns('SELECT "colour" FROM customer', GRAPH) == (frozenset(), ())


@pytest.mark.parametrize("query", ["SELECT FROM WHERE", "DROP TABLE orders", "SELECT 1; SELECT 2", ""])
def test_what_is_no_query_is_refused(query):
    with pytest.raises(UnresolvedQueryError):
        gold_columns(query, GRAPH)


@pytest.mark.parametrize(("folder", "split"), [("spider", "dev"), ("bird", None)])
def test_every_benchmark_query_resolves_and_reads_columns_of_its_gold_tables(benchmark, folder, split):
    corpus = read_corpus(benchmark / folder, split=split)
    gold = resolve(corpus).gold
    for question in corpus.questions[::9]:
        graph = corpus.schemas[question.db_id]
        found = gold_columns(question.query, graph)
        assert found.unknown == (), question.query
        assert {table for table, _ in found.columns} <= gold[question.id] == gold_tables(question.query, graph)
