"""From tables to an answer, against a stub endpoint and the sample's databases: every way it can end."""

import importlib.util
import json
from pathlib import Path

import pytest
from chat_server import Raw, chat_server

from bayeslink.grounding.answer import Answer, Refusal, answer_question, check_tables, prompt, sql_of_reply
from bayeslink.grounding.ddl import estimated_tokens, prune_schema
from bayeslink.grounding.endpoint import Endpoint
from bayeslink.schema.database import read_database
from bayeslink.schema.graph import Column, SchemaGraph, Table, build_graph

SAMPLE = Path(__file__).resolve().parents[2] / "data" / "sample"
_spec = importlib.util.spec_from_file_location("sample_for_answers", SAMPLE / "build.py")
sample = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(sample)

QUESTION = "How much do we ask for the stovetop kettle?"
GOOD = "SELECT price FROM products WHERE name = 'Stovetop Kettle'"
WRONG_COLUMN = "SELECT cost FROM products WHERE name = 'Stovetop Kettle'"
ENDLESS = "WITH RECURSIVE r(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM r) SELECT COUNT(*) FROM r, products"


def fenced(sql: str) -> str:
    return f"Here it is.\n```sql\n{sql};\n```\nAsk me anything."


@pytest.fixture(autouse=True)
def no_proxy(monkeypatch):
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")


@pytest.fixture(scope="module")
def url(tmp_path_factory) -> str:
    folder = tmp_path_factory.mktemp("databases")
    sample.build(folder, ["shop"])
    return str(folder / "shop.sqlite")


def visible(url: str) -> SchemaGraph:
    """The shop as one may see it who must not read customers."""
    whole = read_database(url)
    return build_graph("shop", [table for table in whole.tables if table.name != "customers"])


def answered(url: str, *replies: str | Raw, **settings) -> tuple[Answer, list[dict]]:
    """The answer when the model replies so, and the bodies that it was sent."""
    graph = visible(url)
    shown = prune_schema(graph, [graph.table_names.index("products")])
    with chat_server(replies) as server:
        model = Endpoint(server.url, "small", "key", timeout=settings.pop("patience", 5), max_retries=0)
        found = answer_question(QUESTION, shown, model, url, **settings)
        model.close()
    return found, server.bodies


def test_good_sql_gives_the_rows(url):
    found, bodies = answered(url, fenced(GOOD))
    assert (found.refusal, found.reason, found.repaired, found.num_calls) == (None, "", False, 1)
    assert (found.tables, found.sql) == (("products",), GOOD)
    assert found.columns == ("price",)
    assert len(found.rows) == 1
    assert found.rows[0][0] > 0
    assert found.prompt_tokens == sum(estimated_tokens(message["content"]) for message in bodies[0]["messages"])
    assert json.loads(json.dumps(found.to_dict()))["rows"] == [list(found.rows[0])]


def test_a_database_error_is_shown_once_and_the_repaired_query_runs(url):
    found, bodies = answered(url, fenced(WRONG_COLUMN), fenced(GOOD))
    assert (found.refusal, found.repaired, found.num_calls, found.sql) == (None, True, 2, GOOD)
    assert len(found.rows) == 1
    first, second = (body["messages"] for body in bodies)
    assert second[:2] == first
    assert second[2] == {"role": "assistant", "content": fenced(WRONG_COLUMN)}
    assert "no such column: cost" in second[3]["content"]
    assert found.prompt_tokens == sum(estimated_tokens(m["content"]) for body in bodies for m in body["messages"])


def test_a_second_database_error_is_the_end(url):
    found, bodies = answered(url, fenced(WRONG_COLUMN), fenced(WRONG_COLUMN), fenced(GOOD))
    assert (found.refusal, found.repaired, len(bodies)) == (Refusal.DATABASE_ERROR, True, 2)
    assert found.reason == "no such column: cost"
    assert (found.columns, found.rows) == ((), ())


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT name FROM customers",
        "SELECT p.name FROM products AS p, Customers AS c",
        "SELECT name FROM products WHERE id IN (SELECT id FROM customers)",
        "WITH p AS (SELECT * FROM customers) SELECT * FROM p",
        "DELETE FROM products",
        "SELECT 1; SELECT name FROM products",
        "SELECT name FROM sqlite_master",
    ],
)
def test_sql_that_reads_what_is_hidden_is_not_run(url, sql):
    found, bodies = answered(url, fenced(sql), fenced(GOOD))
    assert found.refusal is Refusal.NOT_ALLOWED
    assert found.reason.startswith("the query is not run (")
    assert (found.sql, found.rows, len(bodies)) == (sql, (), 1)


def test_a_repair_is_checked_like_the_first_query(url):
    found, _ = answered(url, fenced(WRONG_COLUMN), fenced("SELECT name FROM customers"))
    assert (found.refusal, found.repaired, found.rows) == (Refusal.NOT_ALLOWED, True, ())


def test_the_check_can_be_replaced_and_is_given_what_may_be_read(url):
    seen = []

    class Never:
        allowed, reason = False, "it is Sunday"

    def never(sql: str, graph: SchemaGraph) -> Never:
        seen.append((sql, graph.table_names))
        return Never()

    found, _ = answered(url, fenced(GOOD), check=never)
    assert (found.refusal, found.reason) == (Refusal.NOT_ALLOWED, "it is Sunday")
    assert seen == [(GOOD, visible(url).table_names)]


@pytest.mark.parametrize(
    ("reply", "refusal", "reason"),
    [
        ("I would look at the price list.", Refusal.NO_SQL, "the model's reply holds no SQL"),
        ("INSUFFICIENT: there are no kettles.", Refusal.INSUFFICIENT, "there are no kettles"),
        ("```\nINSUFFICIENT\n```", Refusal.INSUFFICIENT, "the model says that the tables do not suffice"),
        (Raw("{}", 500), Refusal.MODEL_ERROR, "answers 500"),
        (Raw("{}", 401), Refusal.MODEL_REFUSED_KEY, "refuses the key (401)"),
        (Raw("{garbage"), Refusal.MODEL_MALFORMED, "no chat completion"),
    ],
)
def test_a_reply_without_sql_is_a_refusal_of_its_kind(url, reply, refusal, reason):
    found, _ = answered(url, reply)
    assert found.refusal is refusal
    assert reason in found.reason
    assert (found.sql, found.rows, found.num_calls) == (None, (), 1)


def test_a_model_that_fails_at_the_repair_is_a_refusal_too(url):
    found, _ = answered(url, fenced(WRONG_COLUMN), Raw("{}", 500))
    assert (found.refusal, found.repaired, found.num_calls) == (Refusal.MODEL_ERROR, True, 2)


def test_a_slow_model_and_a_slow_query(url):
    assert answered(url, Raw("{}", delay_s=1), patience=0.1)[0].refusal is Refusal.MODEL_TIMEOUT
    found, bodies = answered(url, fenced(ENDLESS), fenced(GOOD), timeout=0.2)
    assert (found.refusal, len(bodies)) == (Refusal.DATABASE_TIMEOUT, 1)
    assert found.reason == "it took longer than 0.2 seconds"


def test_a_model_that_is_not_there(url):
    with chat_server([GOOD]) as server:
        pass
    graph = visible(url)
    model = Endpoint(server.url, "small", timeout=1, max_retries=0)
    found = answer_question(QUESTION, prune_schema(graph, [0]), model, url)
    assert found.refusal is Refusal.MODEL_UNREACHABLE


def test_no_more_rows_than_asked_for(url):
    found, _ = answered(url, fenced("SELECT name FROM products ORDER BY name"), max_rows=2)
    assert (len(found.rows), found.more) == (2, True)


def test_no_table_is_no_call(url):
    def never(messages):
        raise AssertionError

    found = answer_question(QUESTION, prune_schema(visible(url), []), never, url)
    assert (found.refusal, found.num_calls) == (Refusal.NO_TABLES, 0)


def test_the_prompt_holds_the_tables_shown_and_nothing_else(url):
    graph = visible(url)
    shown = prune_schema(graph, [graph.table_names.index("products")])
    text = "\n".join(message["content"] for message in prompt("How\nmuch?", shown, "net of\ntax"))
    assert shown.text in text
    assert "Question: How much?\n\nHint: net of tax" in text
    assert "Dialect: sqlite" in text
    assert not any(name in text for name in ("customers", "transactions"))


@pytest.mark.parametrize(
    ("text", "sql"),
    [
        ("SELECT 1", "SELECT 1"),
        ("  select a\nfrom b ; ", "select a\nfrom b"),
        ("```sql\nSELECT 1;\n```", "SELECT 1"),
        ("```SQL SELECT 1```", "SELECT 1"),
        ("```\nSELECT 1\n```\nor better\n```sqlite\nSELECT 2\n```", "SELECT 2"),
        ("```sql\nSELECT 1\n```\n```\n\n```", "SELECT 1"),
        ("<think>SELECT 3; INSUFFICIENT?</think>\nSELECT 1", "SELECT 1"),
        ("Sure, with pleasure:\nSELECT a FROM b WHERE c = ';x';\nIt reads b.", "SELECT a FROM b WHERE c = ';x'"),
        ("The query is: SELECT a FROM b;", "SELECT a FROM b"),
        ("With this query you see all\n\nWITH t AS (SELECT 1 AS a) SELECT a FROM t\n\nDone.",
         "WITH t AS (SELECT 1 AS a) SELECT a FROM t"),
        ("SELECT FROM WHERE (", "SELECT FROM WHERE ("),
        ("I would select the price.", None),
        ("Select the price from the list, I would say.", "Select the price from the list, I would say."),
        ("", None),
        ("``````", None),
    ],
)  # fmt: skip
def test_where_the_sql_of_a_reply_is(text, sql):
    found = sql_of_reply(text, "sqlite")
    assert (found.sql, found.insufficient) == (sql, None)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("INSUFFICIENT: no kettle", "no kettle"),
        ("Insufficient.", "the model says that the tables do not suffice"),
        ("```sql\nINSUFFICIENT\n```", "the model says that the tables do not suffice"),
        ("<think>x</think> INSUFFICIENT - SELECT 1", "SELECT 1"),
    ],
)
def test_a_reply_that_says_the_tables_do_not_suffice(text, reason):
    assert sql_of_reply(text, "sqlite") == (None, reason)


@pytest.mark.parametrize(
    ("sql", "dialect", "reason"),
    [
        ("SELECT id FROM a", "postgres", ""),
        ("SELECT id FROM A AS x JOIN b USING (id)", "postgres", ""),
        ("SELECT id FROM other.a", "postgres", "unknown table other.a"),
        ("SELECT id FROM s.c", "postgres", ""),
        ("SELECT * FROM a, pg_ls_dir('/')", "postgres", "reads a function in place of a table"),
        ("SELECT * FROM read_csv('x.csv'), a", "duckdb", "reads a function in place of a table"),
        ("SET x = 1; SELECT id FROM a", "postgres", "holds more than one statement"),
        ("SELECT id INTO z FROM a", "postgres", "is not a query but INTO"),
        ("SELECT 1", "postgres", "reads no table"),
        ("SELECT (", "postgres", "does not parse as postgres"),
        ("", "postgres", "holds 0 statements"),
    ],
)
def test_the_built_in_check_is_strict(sql, dialect, reason):
    tables = [Table(name, (Column("id"),)) for name in ("a", "b")] + [Table("c", (Column("id"),), schema="s")]
    found = check_tables(sql, build_graph("x", tables, dialect=dialect))
    assert found.allowed is (reason == "")
    assert reason in found.reason
