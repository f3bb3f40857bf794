"""Names of stored sets, and questions from the stored arrays and from a corpus."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from bayeslink.evaluation.questions import corpus_questions, stored_questions, stored_set
from bayeslink.evidence.attention import AttentionChannel, AttentionHead
from bayeslink.evidence.attention_databases import save_adapter_databases
from bayeslink.evidence.boosted import BoostedChannel, fit_first
from bayeslink.evidence.lexical import BM25, TokenOverlap
from bayeslink.evidence.store import SETS
from bayeslink.evidence.trees import TreeSettings
from bayeslink.schema.corpus import Corpus, Question, read_corpus, write_corpus
from bayeslink.schema.graph import Column, RawKey, Table, build_graph
from bayeslink.schema.split import hashed_fingerprint


@pytest.mark.parametrize(
    ("data", "split", "with_evidence", "name"),
    [
        ("spider", None, False, "spider-dev"),
        ("spider", "dev", False, "spider-dev"),
        ("spider", "train", False, "spider-train"),
        ("bird", None, False, "bird-dev"),
        ("bird", "dev", True, "bird-dev-evidence"),
        ("bird-train", None, False, "bird-train"),
        ("bird-train", "train", True, "bird-train-evidence"),
        ("bird-dev", "dev", False, "bird-dev"),
        ("bird-dev-evidence", None, False, "bird-dev-evidence"),
        ("bird-dev-evidence", "dev", True, "bird-dev-evidence"),
        ("spider-train", None, False, "spider-train"),
    ],
)
def test_stored_set_names(data, split, with_evidence, name):
    assert stored_set(data, split, with_evidence) == name


def test_every_stored_set_answers_to_its_own_name():
    assert [stored_set(name, None, False) for name in SETS] == list(SETS)


@pytest.mark.parametrize(
    ("data", "split", "with_evidence"),
    [
        ("imdb", None, False),
        ("spider", "test", False),
        ("spider", None, True),
        ("bird", "train", False),
        ("bird-train", "dev", False),
        ("bird-dev", "train", False),
        ("bird-dev-evidence", "evidence", False),
        ("", None, False),
    ],
)
def test_other_sets_are_refused_with_the_names_that_exist(data, split, with_evidence):
    with pytest.raises(ValueError, match="no such stored set; there are spider-train"):
        stored_set(data, split, with_evidence)


def test_stored_questions_join_sets_and_count_what_is_unresolved():
    found = stored_questions(["bird-dev", "bird-train"], ("bm25",))
    assert found.name == "bird-dev+bird-train"
    assert found.num_unresolved == 142
    assert sum(item.num_questions for item in found.evidences) == 1534 + 9286
    assert {item.channels for item in found.evidences} == {("bm25",)}
    assert {item.key for item in found.evidences} <= found.fingerprints.keys()
    assert ("spider", "formula_1") in found.twins["bird", "formula_1"]
    assert [path.name for path in found.files] == ["bird-dev.npz", "bird-train.npz"]
    less = found.without([("bird", "formula_1")])
    assert len(less.evidences) == len(found.evidences) - 1


def test_two_sets_with_the_same_databases_are_refused():
    with pytest.raises(ValueError, match="share a database"):
        stored_questions(["bird-dev", "bird-dev-evidence"], ("bm25",))


def harbour(name: str):
    tables = [Table("ships", tuple(map(Column, [f"c{i}" for i in range(12)]))), Table("ports", (Column("id"),))]
    return build_graph(name, tables, [RawKey("ships", ("c0",), "ports", ("id",))])


@pytest.fixture
def corpus(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Corpus:
    monkeypatch.setenv("BAYESLINK_CACHE", str(tmp_path / "cache"))
    asked = [
        Question("1", "a", "Which ships?", "ports are named", "SELECT c1 FROM ships"),
        Question("2", "a", "How many ships?", None, "SELECT c1  FROM  SHIPS"),
        Question("3", "a", "Ports?", None, "SELECT id FROM ports"),
        Question("4", "a", "Lakes?", None, "SELECT id FROM lakes"),
        Question("5", "b", "Broken?", None, "SELECT FROM WHERE"),
        Question("6", "b", "Without gold?"),
    ]
    write_corpus(Corpus("bay", {"a": harbour("a"), "b": harbour("b")}, tuple(asked)), tmp_path / "bay")
    return read_corpus(tmp_path / "bay")


def test_corpus_questions_count_unresolved_and_know_twins(corpus, tmp_path):
    found = corpus_questions(corpus, [TokenOverlap(), BM25()], with_evidence=False, files=[tmp_path / "x"])
    assert [item.key for item in found.evidences] == [("bay", "a")]
    assert (found.num_unresolved, found.num_without_query) == (2, 1)
    assert found.evidences[0].group.tolist() == [0, 0, 1]
    assert found.twins["bay", "a"] == (("bay", "b"),)
    np.testing.assert_array_equal(found.fingerprints["bay", "b"], hashed_fingerprint(harbour("b")))
    assert found.files == (tmp_path / "x",)


def test_the_evidence_sentence_is_read_only_on_demand(corpus):
    plain, helped = (corpus_questions(corpus, [TokenOverlap()], flag).evidences[0].values for flag in (False, True))
    assert (plain[0] != helped[0]).any()
    np.testing.assert_array_equal(plain[1:], helped[1:])


def test_trees_that_know_a_database_are_reported(corpus, tmp_path, caplog):
    labelled = corpus_questions(corpus, [TokenOverlap(), BM25()], with_evidence=False).evidences
    fit_first(labelled, TreeSettings(rounds=2, least=1)).save(tmp_path / "own.json.gz")
    channel = BoostedChannel("own", (TokenOverlap(), BM25()), tmp_path / "own.json.gz")
    assert "trained on" not in caplog.text
    corpus_questions(corpus, [channel], with_evidence=False)
    assert "channel own: it was trained on 1 of these 1 databases (a, ...)" in caplog.text
    caplog.clear()
    corpus_questions(replace(corpus, name="other bay"), [channel], with_evidence=False)
    assert "trained on" not in caplog.text


def test_trees_that_know_a_twin_are_reported(tmp_path, caplog, monkeypatch):
    asked = (Question("1", "copy", "Ports?", None, "SELECT id FROM ports"),)
    corpora = {}
    for name, db_id in (("bay", "a"), ("gulf", "copy")):
        questions = tuple(replace(question, db_id=db_id) for question in asked)
        write_corpus(Corpus(name, {db_id: harbour(db_id)}, questions), tmp_path / name)
        corpora[name] = read_corpus(tmp_path / name)
    labelled = corpus_questions(corpora["bay"], [TokenOverlap(), BM25()], with_evidence=False).evidences
    fit_first(labelled, TreeSettings(rounds=2, least=1)).save(tmp_path / "own.json.gz")
    channel = BoostedChannel("own", (TokenOverlap(), BM25()), tmp_path / "own.json.gz")
    corpus_questions(corpora["gulf"], [channel], with_evidence=False)
    assert "trained on" not in caplog.text
    prints = {("bay", "a"): hashed_fingerprint(harbour("a"))}
    monkeypatch.setattr("bayeslink.evaluation.questions.load_fingerprints", lambda: prints)
    corpus_questions(corpora["gulf"], [channel], with_evidence=False)
    assert "channel own: it was trained on 1 of these 1 databases (copy, ...) or on twins" in caplog.text


def test_an_adapter_that_knows_a_database_or_does_not_say_is_reported(corpus, tmp_path, caplog, monkeypatch):
    monkeypatch.setattr(AttentionChannel, "identity", "a tiny one")
    monkeypatch.setattr(AttentionChannel, "score", lambda _, texts, graph: np.zeros((len(texts), graph.num_tables)))
    channel = AttentionChannel(AttentionHead("tiny", adapter=str(tmp_path)))
    found = corpus_questions(corpus, [channel], with_evidence=False)
    assert (found.seen, caplog.text.count("does not say which databases")) == ((), 1)
    for known, seen in ((("bay", "a"), (("bay", "a"),)), (("sea", "z"), ())):
        caplog.clear()
        print_of = harbour("a") if known == ("bay", "a") else build_graph("z", (Table("z", (Column("z"),)),), ())
        save_adapter_databases(tmp_path, {known: hashed_fingerprint(print_of)})
        assert corpus_questions(corpus, [channel], with_evidence=False).seen == seen
        assert ("channel attention: it was trained on 1 of these 1" in caplog.text) == bool(seen)
    twin = replace(corpus, name="other bay")
    save_adapter_databases(tmp_path, {("bay", "a"): hashed_fingerprint(harbour("a"))})
    assert corpus_questions(twin, [channel], with_evidence=False).seen == (("other bay", "a"),)
    caplog.clear()
    corpus_questions(corpus, [replace(channel, head=AttentionHead("tiny"))], with_evidence=False)
    assert caplog.text == ""
