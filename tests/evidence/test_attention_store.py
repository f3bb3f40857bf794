"""Stored attention: read against the data home, joined to stored evidence, refused where they disagree."""

import json
import shutil

import numpy as np
import pytest
from conftest import harbour

from bayeslink.evidence.attention import EPSILON
from bayeslink.evidence.attention_store import (
    ATTENTION_SETS,
    RESERVED_SET,
    attention_files,
    attention_home,
    joined_evidence,
    stored_attention,
)
from bayeslink.evidence.store import load_evidence, load_twins, save_arrays
from bayeslink.schema.corpus import read_corpus
from bayeslink.schema.gold_columns import told_columns


def test_stored_attention_is_that_of_the_data_homes_questions(benchmark):
    items = list(stored_attention("spider-dev"))
    stored = {item.key: item for item in load_evidence("spider-dev", ("bm25",))}
    assert [item.key for item in items] == sorted(stored)
    assert sum(len(item.texts) for item in items) == 1034
    for item in items:
        assert np.array_equal(item.tables, np.asarray(stored[item.key].gold))
        trained = item.scores["trained"]
        assert trained.shape == item.gold.shape == (len(item.texts), len(item.owner))
        assert trained.dtype == np.float64
        assert (trained > 0).all()
        assert (trained.sum(axis=1) < 1).all()
        # A column is gold only where its table is, and a question whose columns cannot be told has none.
        assert (item.tables[:, item.owner] | ~item.gold).all()
        assert not item.gold[~item.told].any()
        assert item.candidates("trained").column.max() == max(len(table.columns) for table in item.graph.tables) - 1
    assert np.concatenate([item.gold.any(axis=1) for item in items]).mean() > 0.9
    # COUNT(*) reads no column, which can be told.
    assert any((item.told & ~item.gold.any(axis=1)).any() for item in items)


def test_gold_columns_are_those_of_the_query_and_every_second_question_is_there(benchmark):
    item = next(item for item in stored_attention("bird-dev") if item.key[1] == "debit_card_specializing")
    corpus = read_corpus(benchmark / "bird")
    asked = [question for question in corpus.questions if question.db_id == item.key[1]][::2]
    assert item.places.tolist() == list(range(0, 64, 2))
    assert item.texts == [question.text for question in asked]
    columns = [(t, c) for t, table in enumerate(item.graph.tables) for c in range(len(table.columns))]
    for row, question in enumerate(asked):
        read = told_columns(question.query, item.graph)
        assert item.told[row] == (read is not None)
        assert {columns[place] for place in np.flatnonzero(item.gold[row])} == set(read or ())


def test_every_second_question_is_joined_to_its_own_evidence(benchmark):
    item = next(stored_attention("bird-dev"))
    stored = next(one for one in load_evidence("bird-dev", ("bm25",)) if one.key == item.key)
    (joined,) = joined_evidence("bird-dev", [item], ("bm25",))
    assert joined.values.shape[:2] == (len(item.places), item.graph.num_tables)
    for row, place in enumerate(item.places):
        np.testing.assert_array_equal(joined.values[row, :, 0], stored.values[place, :, 0])


def test_questions_with_evidence_are_read_with_it(benchmark, tmp_path, monkeypatch):
    """Under the scores of the plain set: which questions and texts they belong to is what is asked here."""
    plain, home = next(stored_attention("bird-dev")), attention_home()
    manifest = json.loads((home / "manifest.json").read_text())
    manifest["every_nth"]["bird-dev-evidence"] = manifest["every_nth"]["bird-dev"]
    (tmp_path / "manifest.json").write_text(json.dumps(manifest))
    save_arrays(tmp_path / "trained-bird-dev-evidence.npz", {plain.key[1]: plain.scores["trained"]})
    monkeypatch.setenv("BAYESLINK_ATTENTION", str(tmp_path))
    (item,) = stored_attention("bird-dev-evidence")
    asked = [question for question in read_corpus(benchmark / "bird").questions if question.db_id == plain.key[1]]
    hints = {question.text: question.evidence for question in asked}
    assert item.texts == [f"{text} {hints[text]}" if hints[text] else text for text in plain.texts]
    assert item.texts != plain.texts
    assert item.places.tolist() == plain.places.tolist()


def test_a_query_whose_columns_cannot_be_told_has_none():
    graph = harbour()
    assert told_columns("SELECT nobody FROM ships JOIN ports", graph) is None
    assert told_columns("SELECT FROM", graph) is None
    assert told_columns(None, graph) is None
    assert told_columns("SELECT COUNT(*) FROM ships", graph) == frozenset()


def test_the_channel_is_the_logarithm_of_the_tables_share(benchmark):
    items = list(stored_attention("spider-dev"))[:2]
    for item, evidence in zip(items, joined_evidence("spider-dev", items, ("bm25",)), strict=True):
        assert evidence.channels == ("bm25", "attention")
        shares = np.exp(evidence.values[..., 1]) - EPSILON
        assert np.allclose(shares.sum(axis=1), 1)
        s = item.scores["trained"][0] + EPSILON
        by_hand = [s[item.owner == table].sum() / s.sum() for table in range(item.graph.num_tables)]
        np.testing.assert_allclose(evidence.values[0, :, 1], np.log(np.array(by_hand) + EPSILON), rtol=1e-13)


def test_reserved_databases_are_none_of_the_dev_sets_nor_their_twins(benchmark):
    reserved = {item.key for item in stored_attention(RESERVED_SET)}
    dev = {item.key for name in ("spider-dev", "bird-dev") for item in load_evidence(name)}
    twins = load_twins()
    assert len(reserved) > 20
    assert not reserved & (dev | {twin for key in dev for twin in twins[key]})
    listed = json.loads((attention_home() / "manifest.json").read_text())["reserved"]
    assert {"/".join(key) for key in reserved} == set(listed)


def test_what_does_not_fit_is_refused(benchmark, tmp_path, monkeypatch):
    with pytest.raises(ValueError, match="name='spider': use one of spider-dev"):
        attention_files(["spider"])
    items = list(stored_attention("spider-dev"))
    with pytest.raises(ValueError, match="hold other questions; score them again"):
        joined_evidence("spider-dev", [items[0]._replace(tables=~items[0].tables)], ("bm25",))
    home = attention_home()
    monkeypatch.setenv("BAYESLINK_ATTENTION", str(tmp_path))
    with pytest.raises(ValueError, match=r"trained-bird-dev.npz is not there; make it with scripts"):
        attention_files(["bird-dev"])
    shutil.copy(home / "manifest.json", tmp_path)
    save_arrays(tmp_path / "trained-spider-dev.npz", {items[0].key[1]: items[0].scores["trained"][:, 1:]})
    with pytest.raises(ValueError, match=f"stored attention of {items[0].key[1]} .trained. has the shape"):
        list(stored_attention("spider-dev"))
    monkeypatch.setenv("BAYESLINK_ATTENTION", str(tmp_path / "nowhere"))
    with pytest.raises(ValueError, match="set BAYESLINK_ATTENTION to one"):
        attention_files(list(ATTENTION_SETS))
