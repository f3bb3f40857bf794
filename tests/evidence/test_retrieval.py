"""Retrievers: sizes, order, the two slots and the foreign-key expansion."""

import numpy as np
import pytest
from conftest import QUESTIONS, harbour

from bayeslink.evidence.embedding import HashedCosine
from bayeslink.evidence.fused import FusedRanks
from bayeslink.evidence.lexical import BM25
from bayeslink.evidence.retrieval import (
    FusedRetriever,
    RankedRetriever,
    Retriever,
    _give_slot,
    _informative_words,
    _with_slots,
    referenced,
)
from bayeslink.schema.graph import Column, RawKey, SchemaGraph, Table, build_graph

RETRIEVERS = (RankedRetriever(BM25()), RankedRetriever(HashedCosine()), FusedRetriever())


def names(chosen: np.ndarray, graph: SchemaGraph) -> list[set[str]]:
    return [{graph.table_names[t] for t in np.flatnonzero(row)} for row in chosen]


@pytest.mark.parametrize("retriever", RETRIEVERS)
def test_the_protocol_and_the_sizes(retriever, graph: SchemaGraph):
    assert isinstance(retriever, Retriever)
    assert retriever.name
    for k in (1, 2, 5, 9):
        found = retriever.retrieve(QUESTIONS, graph, k)
        assert found.shape == (5, 5)
        assert (found.sum(axis=1) >= min(k, 5)).all()
    counts = np.array([1, 2, 3, 4, 5])
    rows = [retriever.retrieve([question], graph, int(k))[0] for question, k in zip(QUESTIONS, counts, strict=True)]
    np.testing.assert_array_equal(retriever.retrieve(QUESTIONS, graph, counts), rows)
    assert retriever.retrieve([], graph, 2).shape == (0, 5)
    with pytest.raises(ValueError, match="k=0: at least one table is needed"):
        retriever.retrieve(QUESTIONS, graph, 0)


@pytest.mark.parametrize("retriever", RETRIEVERS)
@pytest.mark.parametrize("k", [1, 2, 3])
def test_what_is_returned_moves_with_tables(retriever, k, graph: SchemaGraph):
    """Also where scores are equal: the last two questions give no evidence at all."""
    order = (3, 1, 4, 0, 2)
    moved = retriever.retrieve(QUESTIONS, harbour(order), k)
    np.testing.assert_array_equal(moved, retriever.retrieve(QUESTIONS, graph, k)[:, order])


def test_plain_retrievers_take_the_best(graph: SchemaGraph):
    scores = BM25().score(QUESTIONS, graph)
    found = RankedRetriever(BM25()).retrieve(QUESTIONS, graph, 2)
    assert (found.sum(axis=1) == 2).all()
    for row, chosen in zip(scores, found, strict=True):
        assert row[chosen].min() >= row[~chosen].max()
    assert RankedRetriever(BM25()).name == "bm25"


def test_expansion_follows_references_outward_one_step(graph: SchemaGraph):
    tables = list(graph.table_names)
    start = np.zeros((3, 5), dtype=bool)
    start[0, tables.index("visits")] = True
    start[1, tables.index("crew_members")] = True
    start[2, tables.index("ports")] = True
    assert names(referenced(start, graph), graph) == [
        {"visits", "ships", "ports"},
        {"crew_members", "ships"},  # not the ports that ships reference
        {"ports"},  # not the tables that reference it
    ]
    assert start.sum() == 3


def test_fused_picks_are_the_best_of_the_channel_plus_what_they_reference(graph: SchemaGraph):
    bare = FusedRetriever(slots=False, expand=False).retrieve(QUESTIONS[:3], graph, 2)
    for row, chosen in zip(FusedRanks().score(QUESTIONS[:3], graph), bare, strict=True):
        assert chosen.sum() == 2
        assert row[chosen].min() >= row[~chosen].max()
    whole = FusedRetriever(slots=False).retrieve(QUESTIONS[:3], graph, 2)
    np.testing.assert_array_equal(whole, referenced(bare, graph))
    assert (whole & ~bare).any()


NAMED = [{"contact", "note"}, {"contact", "list"}, {"contact", "tag"}, {"vendor"}, {"vendor", "log"}, {"fact"}]


def slots(k: int, words: list[str], lexical: tuple[int, ...] = (1, 1, 1, 1, 1, 1)) -> list[int]:
    """Picks of the fused order 0, 1, ..., 5 after the slots."""
    ranked = [0, 1, 2, 3, 4, 5]
    return _with_slots(ranked[:k], ranked, np.array(lexical, dtype=float), words, NAMED)


def test_the_coverage_slot_by_hand():
    assert slots(3, []) == [0, 1, 2]
    assert slots(3, ["vendor"]) == [0, 1, 3]  # the better of two tables that have the word
    assert slots(3, ["log", "vendor"]) == [0, 1, 4]  # one slot, for the rarest word
    assert slots(3, ["vendor", "tag"]) == [0, 2, 3]  # the last pick alone has a covered word and stays
    assert slots(3, ["vendor", "list", "tag"]) == [0, 1, 2]  # nothing may go
    assert slots(1, ["vendor"]) == [0]  # nor may the first pick
    assert slots(4, ["vendor"]) == [0, 1, 2, 3]


def test_the_column_slot_by_hand():
    only_columns = (1, 1, 1, 1, 1, 2)
    assert slots(3, [], only_columns) == [0, 1, 5]
    assert slots(3, ["tag"], only_columns) == [0, 2, 5]
    assert slots(3, ["vendor"], only_columns) == [0, 3, 5]  # both slots; the covering table stays
    assert slots(2, ["vendor"], only_columns) == [0, 3]
    assert slots(3, [], (1, 1, 1, 1, 2, 2)) == [0, 1, 4]  # the better of two best
    assert slots(3, [], (2, 1, 1, 1, 1, 1)) == [0, 1, 2]
    assert slots(3, [], (0, 0, 0, 0, 0, 0)) == [0, 1, 2]


def test_informative_words():
    assert _informative_words("the vendor's tags, logs and contacts", NAMED) == ["log", "tag", "vendor", "contact"]
    crowd = [{"contact"}, {"contact"}, {"contact"}, {"note"}]
    assert _informative_words("contact note zebra", crowd) == ["note"]


def test_column_evidence_reaches_the_picks():
    """A table that only its columns speak for is first of the lexical ranking and loses the fusion."""
    words = ("note", "list", "tag", "log", "group", "mail")
    crowd = [Table(f"contact_{word}", (Column("contact_key"),)) for word in words]
    fact = Table("engagement", (Column("opens"), Column("bounces"), Column("key")))
    graph = build_graph("contacts", (*crowd, fact), ())
    question = ["contact opens bounces"]
    assert BM25().score(question, graph)[0].argmax() == 6
    assert not FusedRetriever(slots=False).retrieve(question, graph, 3)[0, 6]
    found = FusedRetriever().retrieve(question, graph, 3)[0]
    assert found[6]
    assert found.sum() == 3


def test_a_slot_takes_the_last_pick_that_may_go():
    named = [{"a"}, {"b"}, {"c"}, {"d"}, {"c"}]
    assert _give_slot([0, 1, 2], 3, [], named) == [0, 1, 3]
    assert _give_slot([0, 1, 2], 3, ["c"], named) == [0, 2, 3]
    assert _give_slot([0, 1, 2], 3, ["b", "c"], named) == [0, 1, 2]
    assert _give_slot([0, 4, 2], 3, ["c"], named) == [0, 4, 3]
    assert _give_slot([0, 1, 2], 1, [], named) == [0, 1, 2]
    assert _give_slot([0], 3, [], named) == [0]


def test_a_self_reference_adds_nothing():
    tables = (Table("staff", (Column("id"), Column("boss"))), Table("rooms", (Column("id"),)))
    graph = build_graph("self", tables, [RawKey("staff", ("boss",), "staff", ("id",))])
    assert names(FusedRetriever().retrieve(["staff"], graph, 1), graph) == [{"staff"}]
