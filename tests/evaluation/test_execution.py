"""Execution accuracy against a stub endpoint on the sample: gold SQL scores 1, wrong SQL less, every failure counts."""

import importlib.util
import json
import math
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path

import pytest
from chat_server import Raw, chat_server

from bayeslink.evaluation.execution import ExecutionAccuracy, database_files, execution_accuracy, same_rows
from bayeslink.grounding.answer import Answer, Refusal
from bayeslink.grounding.endpoint import Endpoint
from bayeslink.linker import SchemaLinker
from bayeslink.pipeline import Shown, answer, answer_linked, execute
from bayeslink.schema.corpus import Corpus, Question, read_corpus
from bayeslink.schema.graph import build_graph

SAMPLE = Path(__file__).resolve().parents[2] / "data" / "sample"
_spec = importlib.util.spec_from_file_location("sample_for_execution", SAMPLE / "build.py")
sample = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(sample)

GOLD = {row["question"]: row["query"] for row in sample.questions()}
DB_IDS = ("shop", "office")


@pytest.fixture(autouse=True)
def no_proxy(monkeypatch):
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")


@pytest.fixture(scope="module")
def corpus() -> Corpus:
    return read_corpus(SAMPLE).select(db_ids=DB_IDS)


@pytest.fixture(scope="module")
def databases(tmp_path_factory, corpus) -> dict[str, str]:
    folder = tmp_path_factory.mktemp("databases")
    sample.build(folder, list(DB_IDS))
    return database_files(corpus, folder)


def question_of(body: dict) -> str:
    return body["messages"][1]["content"].rsplit("Question: ", 1)[1].split("\n")[0]


def measured(corpus: Corpus, databases: dict[str, str], reply: Callable[[dict], str | Raw], **settings):
    """Accuracy when the endpoint replies so, and the questions that it was asked."""
    with chat_server(reply) as server:
        model = Endpoint(server.url, "small", timeout=settings.pop("patience", 5), max_retries=0)
        found = execute(
            corpus, databases, model, model_name="small", **({"shown": Shown.WHOLE, "channels": "lexical"} | settings)
        )
        model.close()
    return found, [question_of(body) for body in server.bodies]


def gold(body: dict) -> str:
    return f"```sql\n{GOLD[question_of(body)]}\n```"


def test_an_endpoint_that_answers_with_gold_is_always_right(corpus, databases):
    found, asked = measured(corpus, databases, gold)
    assert len(found.executed) == len(asked) == len(corpus.questions) > 25
    assert found.outcomes == {"right": len(asked)}
    assert (found.accuracy, found.multiset_accuracy, found.accuracy_where_gold_runs) == (1.0, 1.0, 1.0)


def test_one_that_answers_with_something_else_is_not(corpus, databases):
    first = corpus.schemas["shop"].table_names[0]
    found, _ = measured(corpus.select(db_ids=["shop"]), databases, lambda body: f"SELECT 'x', 'y', 'z' FROM {first}")
    assert found.outcomes == {"wrong": len(found.executed)}
    assert found.accuracy == 0.0


def test_every_failure_is_counted_by_its_kind_and_stays_in_the_denominator(corpus, databases):
    shop = corpus.select(db_ids=["shop"])
    texts = [question.text for question in shop.questions]
    special = dict(
        zip(
            texts,
            [
                "SELECT name FROM secrets",
                "I do not know.",
                "INSUFFICIENT",
                Raw("{}", 500),
                Raw("{}", 401),
                Raw("{}", delay_s=1),
                Raw("garbage"),
                "SELECT nothing FROM products",
                "WITH RECURSIVE r(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM r) SELECT COUNT(*) FROM r, products",
                "SELECT a.id FROM products AS a, products AS b, products AS c",
                "SELECT 'x' FROM products",
            ],
            strict=False,
        )
    )
    found, _ = measured(
        shop,
        databases,
        lambda body: special.get(question_of(body)) or gold(body),
        patience=0.3,
        timeout=0.5,
        max_rows=100,
    )
    num = len(texts)
    assert found.outcomes == {
        "right": num - 11,
        "wrong": 1,
        "too_many_rows": 1,
        "database_timeout": 1,
        "database_error": 1,
        "model_malformed": 1,
        "model_timeout": 1,
        "model_refused_key": 1,
        "model_error": 1,
        "insufficient": 1,
        "no_sql": 1,
        "not_allowed": 1,
    }
    assert found.accuracy == pytest.approx((num - 11) / num, rel=1e-12)
    document = found.to_dict()
    assert document["n_questions"] == num
    assert document["outcomes"]["not_allowed"] == 1
    assert document["n_repaired"] == 1
    assert all(item.reason for item in found.executed if item.outcome not in ("right", "wrong"))


def test_gold_that_fails_or_is_missing(corpus, databases):
    kept = corpus.select(db_ids=["shop"]).questions[:2]
    broken = Question("broken", "shop", "Which name?", query="SELECT nme FROM products")
    long = Question("long", "shop", "Which numbers?", query="SELECT a.id FROM products a, products b, products c")
    without = Question("without", "shop", "What is this?")
    mixed = Corpus("mixed", {"shop": corpus.schemas["shop"]}, (*kept, broken, long, without))
    found, asked = measured(mixed, databases, gold, max_rows=50)
    assert found.outcomes == {"right": 2, "gold_failed": 2}
    assert (found.accuracy, found.accuracy_where_gold_runs, found.num_without_query) == (0.5, 1.0, 1)
    assert len(asked) == 2


def test_a_second_run_goes_on_where_the_first_stopped(corpus, databases, tmp_path):
    shop, out = corpus.select(db_ids=["shop"]), tmp_path / "runs" / "out.jsonl"
    texts = [question.text for question in shop.questions]

    def stops(body: dict) -> str | Raw:
        return Raw("{}", 500) if question_of(body) == texts[1] else gold(body)

    first, asked = measured(shop, databases, stops, out=out)
    assert asked == texts
    assert first.outcomes == {"right": len(texts) - 1, "model_error": 1}
    lines = out.read_text(encoding="utf-8").splitlines()
    assert len(lines) == 1 + len(texts)
    # As after a crash: the last line is cut in its middle, the one before is missing.
    out.write_text("\n".join(lines[:-2]) + "\n" + lines[-1][:30], encoding="utf-8")
    second, asked = measured(shop, databases, gold, out=out)
    assert asked == [texts[1], texts[-2], texts[-1]]
    assert second.outcomes == {"right": len(texts)}
    third, asked = measured(shop, databases, gold, out=out)
    assert (asked, third) == ([], second)
    assert "key" not in out.read_text(encoding="utf-8")


def test_a_file_of_another_run_is_refused(corpus, databases, tmp_path):
    shop, out = corpus.select(db_ids=["shop"]), tmp_path / "out.jsonl"
    measured(shop, databases, gold, out=out)
    with pytest.raises(ValueError, match="is of other questions or settings"):
        measured(shop, databases, gold, out=out, cover=0.9)
    with pytest.raises(ValueError, match="is of other questions or settings"):
        measured(corpus, databases, gold, out=out)
    lines = out.read_text(encoding="utf-8").splitlines()
    out.write_text("\n".join([lines[0], "{}", *lines[1:]]) + "\n", encoding="utf-8")
    with pytest.raises(ValueError, match="line 2: no result of a question"):
        measured(shop, databases, gold, out=out)
    other = lines[1].replace('"id": "', '"id": "not-')
    out.write_text("\n".join([lines[0], other]) + "\n", encoding="utf-8")
    with pytest.raises(ValueError, match=r"line 2: question 'not-shop-\d+' is not asked"):
        measured(shop, databases, gold, out=out)


def test_results_are_written_as_they_are_made(corpus, databases, tmp_path):
    shop, out = corpus.select(db_ids=["shop"]), tmp_path / "out.jsonl"
    seen = []

    def watching(question: Question) -> Answer:
        seen.append(len(out.read_text(encoding="utf-8").splitlines()))
        return Answer(question.text, (), refusal=Refusal.NO_SQL, reason="none")

    execution_accuracy(shop, databases, watching, out=out)
    assert seen == list(range(1, len(shop.questions) + 1))


@pytest.mark.parametrize(
    ("rows", "gold_rows", "as_set", "as_multiset"),
    [
        ([(1, "a"), (2, "b")], [(2, "b"), (1, "a")], True, True),
        ([(1,), (1,)], [(1,)], True, False),
        ([(1, 2)], [(2, 1)], False, False),
        ([(None,)], [(None,)], True, True),
        ([(None,)], [(0,)], False, False),
        ([(None,)], [("",)], False, False),
        ([(1,)], [(1.0,)], True, True),
        ([(Decimal("1.5"),)], [(1.5,)], True, True),
        ([(0.1 + 0.2,)], [(0.3,)], False, False),
        ([(math.nan,)], [(float("nan"),)], True, True),
        ([("1",)], [(1,)], False, False),
        ([("A",)], [("a",)], False, False),
        ([([1, 2],)], [([1, 2],)], True, True),
        ([], [], True, True),
        ([], [(None,)], False, False),
        ([(1,)], [(1,), (2,)], False, False),
        ([(1,), (2,)], [(1,)], False, False),
    ],
)
def test_rows_are_compared_as_the_docstring_says(rows, gold_rows, as_set, as_multiset):
    assert same_rows(rows, gold_rows) is as_set
    assert same_rows(rows, gold_rows, multiset=True) is as_multiset


def test_as_a_set_is_what_bird_computes(corpus, databases):
    """BIRD's evaluation: `set(predicted) == set(gold)` of the tuples that sqlite3 gives."""
    import sqlite3

    queries = [question.query for question in corpus.select(db_ids=["shop"]).questions]
    connection = sqlite3.connect(databases["shop"])
    results = [connection.execute(query).fetchall() for query in queries]
    connection.close()
    for one in results:
        for other in results:
            assert same_rows(one, other) is (set(one) == set(other))


def test_nothing_to_grade_is_not_a_score():
    empty = ExecutionAccuracy(())
    assert math.isnan(empty.accuracy)
    assert json.loads(json.dumps(empty.to_dict(), allow_nan=False))["execution_accuracy"] is None


def test_files_of_databases(tmp_path, corpus):
    shop = corpus.select(db_ids=["shop"])
    with pytest.raises(ValueError, match="database 'shop': there is no"):
        database_files(shop, tmp_path)
    (tmp_path / "shop").mkdir()
    (tmp_path / "shop" / "shop.sqlite").touch()
    assert database_files(shop, tmp_path) == {"shop": str(tmp_path / "shop" / "shop.sqlite")}
    (tmp_path / "shop.db").touch()
    with pytest.raises(ValueError, match="one file is needed"):
        database_files(shop, tmp_path)
    with pytest.raises(ValueError, match="databases: shop missing"):
        execution_accuracy(shop, {}, lambda question: Answer(question.text, ()))


def test_the_cover_is_shown_and_a_hidden_table_is_not(corpus, databases):
    text = "What is the price of the product called Stovetop Kettle?"
    with chat_server(["SELECT price FROM products WHERE name = 'Stovetop Kettle'"]) as server:
        model = Endpoint(server.url, "small", max_retries=0, timeout=5)
        found = answer(databases["shop"], text, model, channels="lexical")
        whole = corpus.schemas["shop"]
        seen = build_graph("shop", [table for table in whole.tables if table.name != "customers"])
        linker = SchemaLinker.from_graph(seen, channels="lexical")
        answer_linked(linker, databases["shop"], text, model, shown=Shown.WHOLE)
        sure = answer_linked(linker, databases["shop"], text, model, max_risk=0.0)
        model.close()
    assert found.refusal is None
    assert len(found.rows) == 1
    assert 0 < len(found.tables) < whole.num_tables
    assert "products" in found.tables
    assert "CREATE TABLE products" in server.said(0)
    assert not any(f"CREATE TABLE {name}" in server.said(0) for name in set(whole.table_names) - set(found.tables))
    assert "customers" not in server.said(1)
    assert "CREATE TABLE transactions" in server.said(1)
    assert (sure.refusal, sure.num_calls, len(server.bodies)) == (Refusal.ABSTAINED, 0, 2)
