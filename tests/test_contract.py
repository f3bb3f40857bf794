"""Every `--json` document by the names and types of CONTRACT.md, which scripts outside the package read."""

import gzip
import importlib.util
import json
import math
import sqlite3
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from bayeslink import cli
from bayeslink.schema.corpus import Corpus, Question, read_corpus, write_corpus
from bayeslink.schema.database import read_database

SAMPLE = Path(__file__).resolve().parents[1] / "data" / "sample"
_spec = importlib.util.spec_from_file_location("sample_for_contract", SAMPLE / "build.py")
sample = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(sample)

Check = Callable[[object], bool]


def text(value: object) -> bool:
    return isinstance(value, str) and value != ""


def texts(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(item, str) for item in value)


def flag(value: object) -> bool:
    return isinstance(value, bool)


def number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)


def lists(value: object) -> bool:
    return isinstance(value, dict) and all(map(text, value)) and all(map(texts, value.values()))


def count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def probability(value: object) -> bool:
    return number(value) and 0 <= value <= 1


def nothing_or(check: Check) -> Check:
    return lambda value: value is None or check(value)


def nothing(value: object) -> bool:
    return value is None


def said(value: object) -> bool:
    return isinstance(value, dict) and all(map(text, value)) and all(map(flag, value.values()))


def pair(value: object) -> bool:
    return isinstance(value, list) and len(value) == 2 and all(map(number, value)) and value[0] <= value[1]


TABLE = {
    "table": text,
    "probability": probability,
    "independent_probability": nothing_or(probability),
    "in_cover": flag,
    "in_mode": flag,
}
LINK = {
    "question": text,
    "database": text,
    "posterior": text,
    "channels": texts,
    "exact": flag,
    "tables": [TABLE],
    "cover": {"level": probability, "tables": texts, "probability": probability},
    "mode": {"tables": texts, "probability": probability},
    "entropy_nats": number,
    "expected_size": number,
    "abstain": flag,
    "reason": nothing_or(text),
}
SCHEMA = {
    "tables": count,
    "views": count,
    "foreign_keys": count,
    "edges": count,
    "dropped_keys": count,
    "frontier_width": count,
    "warnings": texts,
}
LEVEL = {"coverage": probability, "mean_size": number}
SCORES = {
    "map": probability,
    "precision": probability,
    "recall": probability,
    "f1": probability,
    "strict_recall": probability,
    "exact_match": probability,
    "mean_size": number,
    "all_gold_at_3": probability,
    "all_gold_at_5": probability,
    "ece": probability,
    "brier": probability,
    "mean_shift": number,
    "marginal_log_score": number,
    "joint_log_score": number,
    "cover": {"0.80": LEVEL, "0.90": LEVEL, "0.95": LEVEL, "0.98": LEVEL},
}
VARIANTS = ("independent", "independent_hierarchical", "fixed", "pooled", "pooled_coupling", "hierarchical")
EVALUATE = {
    "n_questions": count,
    "n_unresolved": count,
    "n_databases": count,
    "n_twins_left_out": count,
    "channels": texts,
    "support": text,
    "variants": dict.fromkeys(VARIANTS, SCORES),
}

# Fields beyond the contract: known here, so that one that vanishes or appears is a deliberate step.
COLUMN = {"table": text, "column": text, "probability": probability, "probability_given_table": probability}
MORE_OF_LINK = {
    "columns": nothing,
    "column_evidence": nothing,
    "warnings": texts,
    "prob_empty": probability,
    "prob_connected": probability,
    "prob_connected_standard_error": number,
    "entropy_standard_error": number,
    "mode_certain": flag,
    "unexplored_mass": probability,
    "cover": LINK["cover"] | {"rule": text, "fewest": count, "promise": nothing},
    "clarify": {
        "table": text,
        "probability": probability,
        "gain_nats": number,
        "exact_before": probability,
        "exact_after": probability,
        "rivals": [texts],
        "rival_probabilities": [probability],
    },
    "answers": said,
}
MORE_OF_TABLE = {"why": text}
GUESS = {"table": text, "columns": texts, "ref_table": text, "ref_columns": texts, "score": probability}
MORE_OF_SCHEMA = {"database": text, "self_keys": count, "inferred_keys": count, "families": lists}
MORE_OF_EVALUATE = {
    "data": text,
    "scheme": text,
    "forms": texts,
    "posterior": text,
    "n_without_query": count,
    "n_twins_left_out_of_fit": count,
}
MORE_OF_SCORES = {"mean_shift_interval": pair}
GAIN = {"estimate": number, "lower": number, "upper": number}


def check(value: object, wanted: object, where: str = "document") -> None:
    """Asserts that the value has exactly the wanted names and that each part passes its check."""
    if isinstance(wanted, dict):
        assert isinstance(value, dict), f"{where} is {value!r}"
        assert value.keys() == wanted.keys(), f"{where}: {sorted(value.keys() ^ wanted.keys())}"
        for name, part in wanted.items():
            check(value[name], part, f"{where}.{name}")
    elif isinstance(wanted, list):
        assert isinstance(value, list), f"{where} is {value!r}"
        assert value, f"{where} is empty"
        for index, item in enumerate(value):
            check(item, wanted[0], f"{where}[{index}]")
    else:
        assert wanted(value), f"{where} is {value!r}"


def document(capsys, monkeypatch, *arguments: str) -> dict:
    """What a command prints: one JSON document on stdout and nothing else, and status 0."""
    monkeypatch.setattr(sys, "argv", ["bayeslink", *arguments])
    with pytest.raises(SystemExit) as stop:
        cli.main()
    printed = capsys.readouterr()
    assert stop.value.code == 0, printed.err
    assert printed.out.count("\n") == 1

    def refuse(constant: str) -> None:
        raise AssertionError(f"{constant} is not JSON")

    return json.loads(printed.out, parse_constant=refuse)


@pytest.fixture(scope="module")
def shop(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("contract")
    sample.build(folder, ["shop", "library"])
    return folder / "shop.sqlite"


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("BAYESLINK_CACHE", str(tmp_path / "cache"))


@pytest.fixture(scope="module")
def corpus(shop, tmp_path_factory) -> Path:
    """A corpus folder in the line format, of two sample databases and a query that does not resolve."""
    graphs = {name: read_database(str(shop.with_name(f"{name}.sqlite"))) for name in ("shop", "library")}
    asked = [
        Question(row["id"], row["db_id"], row["question"], row["evidence"], row["query"], row["split"])
        for row in sample.questions()
        if row["db_id"] in graphs
    ]
    lost = Question("lost", "shop", "Where is it?", None, "SELECT x FROM nowhere", "sample")
    folder = tmp_path_factory.mktemp("corpora") / "sampled"
    unanswered = Question("unanswered", "shop", "Who knows?", None, None, "sample")
    write_corpus(Corpus("sampled", graphs, (*asked, lost, unanswered)), folder)
    return folder


def test_link(shop, capsys, monkeypatch):
    found = document(
        capsys,
        monkeypatch,
        "link",
        str(shop),
        "Which customers bought which products?",
        "--channels",
        "lexical",
        "--json",
    )
    check(found, LINK | MORE_OF_LINK | {"tables": [TABLE | MORE_OF_TABLE]})
    probabilities = [row["probability"] for row in found["tables"]]
    assert probabilities == sorted(probabilities, reverse=True)
    assert found["exact"] is True
    assert found["cover"]["level"] == 0.95
    assert found["cover"]["probability"] >= 0.95
    assert found["cover"]["tables"] == [row["table"] for row in found["tables"] if row["in_cover"]]
    assert found["mode"]["tables"] == [row["table"] for row in found["tables"] if row["in_mode"]]
    assert found["expected_size"] == pytest.approx(sum(probabilities))
    assert (found["abstain"], found["reason"]) == (False, None)
    assert found["database"] == "shop"
    assert len(found["tables"]) == 9


def test_link_options(shop, capsys, monkeypatch):
    asked = ["link", str(shop), "Which products?", "--channels", "lexical", "--evidence", "bought means transactions"]
    found = document(capsys, monkeypatch, *asked, "--cover", "0.8", "--max-risk", "0.01", "--json")
    check(found, LINK | MORE_OF_LINK | {"tables": [TABLE | MORE_OF_TABLE]})
    assert found["cover"]["level"] == 0.8
    assert found["abstain"] is True
    assert "wrong with probability" in found["reason"]


def test_link_columns(shop, capsys, monkeypatch):
    asked = ["link", str(shop), "Which products are cheapest?", "--channels", "lexical", "--columns", "--json"]
    found = document(capsys, monkeypatch, *asked)
    columns = {"columns": [COLUMN], "column_evidence": text}
    check(found, LINK | MORE_OF_LINK | {"tables": [TABLE | MORE_OF_TABLE]} | columns)
    probabilities = [row["probability"] for row in found["columns"]]
    assert probabilities == sorted(probabilities, reverse=True)


def test_schema(tmp_path, capsys, monkeypatch):
    path = tmp_path / "x.sqlite"
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(
            "CREATE TABLE a (id INTEGER PRIMARY KEY, up INTEGER REFERENCES a (id));"
            "CREATE TABLE b (a1 INTEGER REFERENCES a (id), a2 INTEGER REFERENCES a (id),"
            "                z INTEGER REFERENCES gone (id));"
            "CREATE VIEW v AS SELECT id FROM a;"
        )
    found = document(capsys, monkeypatch, "schema", str(path), "--json")
    assert found.pop("inferred") == []
    check(found, SCHEMA | MORE_OF_SCHEMA)
    counts = {name: value for name, value in found.items() if count(value)}
    # Two pairs of a key are one edge, a self key is none, a view has one to what it reads; a tree needs one table on
    # the frontier at least.
    assert counts.pop("frontier_width") in (1, 2)
    assert counts.pop("inferred_keys") == 0
    assert counts == {"tables": 2, "views": 1, "foreign_keys": 3, "self_keys": 1, "edges": 2, "dropped_keys": 1}
    assert found["families"] == {}
    assert len(found["warnings"]) == 1
    assert "gone" in found["warnings"][0]


def test_schema_with_families_and_guessed_keys(tmp_path, capsys, monkeypatch):
    path = tmp_path / "x.sqlite"
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(
            "CREATE TABLE customers (id INTEGER PRIMARY KEY, name TEXT);"
            + "".join(f"CREATE TABLE sales_{year} (customer_id INTEGER, total REAL);" for year in (2020, 2021, 2022))
        )
    found = document(capsys, monkeypatch, "schema", str(path), "--infer-keys", "--json")
    check(found, SCHEMA | MORE_OF_SCHEMA | {"inferred": [GUESS]})
    assert found["families"] == {"sales_*": ["sales_2020", "sales_2021", "sales_2022"]}
    assert (found["tables"], found["edges"], found["inferred_keys"]) == (4, 1, 1)
    assert [(guess["table"], guess["columns"]) for guess in found["inferred"]] == [("sales_*", ["customer_id"])]


def test_evaluate_of_a_corpus_under_transfer(corpus, capsys, monkeypatch):
    with gzip.open(corpus / "questions.jsonl.gz", "rt") as lines:
        num_lines = sum(1 for _ in lines)
    assert read_corpus(corpus).name == "sampled"
    found = document(
        capsys,
        monkeypatch,
        "evaluate",
        "--corpus",
        str(corpus),
        "--scheme",
        "transfer",
        "--channels",
        "lexical",
        "--json",
    )
    rows = found["variants"]
    gains = rows["hierarchical"].pop("joint_log_score_difference")
    check(gains, {"independent_hierarchical": GAIN, "pooled": GAIN, "pooled_coupling": GAIN})
    wanted = EVALUATE | MORE_OF_EVALUATE | {"variants": dict.fromkeys(VARIANTS, SCORES | MORE_OF_SCORES)}
    check(found, wanted)
    assert (found["n_questions"], found["n_unresolved"], found["n_without_query"]) == (num_lines - 2, 1, 1)
    assert (found["n_databases"], found["support"]) == (2, "all")
    for row in rows.values():
        assert row["mean_shift_interval"][0] <= row["mean_shift"] <= row["mean_shift_interval"][1]
        covers = list(row["cover"].values())
        assert [entry["mean_size"] for entry in covers] == sorted(entry["mean_size"] for entry in covers)
        assert [entry["coverage"] for entry in covers] == sorted(entry["coverage"] for entry in covers)


def test_data(capsys, monkeypatch):
    found = document(capsys, monkeypatch, "data", "--json")
    assert found.keys() == {"sets", "data_home"}
    for entry in found["sets"].values():
        assert all(count(entry[name]) for name in ("n_questions", "n_unresolved", "n_databases"))


@pytest.mark.parametrize(
    "broken",
    [
        {"table": "a"},
        {"table": "a", "probability": 1.2, "independent_probability": 0.1, "in_cover": True, "in_mode": True},
        {"table": "a", "probability": 0.2, "independent_probability": 0.1, "in_cover": 1, "in_mode": True},
        {"table": "a", "probability": True, "independent_probability": 0.1, "in_cover": True, "in_mode": True},
        {"table": "", "probability": 0.2, "independent_probability": None, "in_cover": True, "in_mode": True},
    ],
)
def test_the_check_can_fail(broken):
    with pytest.raises(AssertionError):
        check([broken], [TABLE])
