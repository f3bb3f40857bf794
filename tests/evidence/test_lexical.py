"""Token overlap and BM25 against their equations written out in plain Python."""

import math
import time

import numpy as np
import pytest
from conftest import QUESTIONS, harbour

from bayeslink.evidence.lexical import BM25, TokenOverlap, inverse_frequency
from bayeslink.schema.graph import Column, SchemaGraph, Table, build_graph
from bayeslink.schema.words import content_words


def words_of_name(thing):
    words = content_words(thing.name)
    for word in content_words(thing.natural_name or ""):
        if word not in content_words(thing.name):
            words.append(word)
    return words


def words_of_table(table):
    words = words_of_name(table)
    for column in table.columns:
        words += words_of_name(column)
    return words


def idf(word, graph):
    num_with = sum(word in words_of_table(table) for table in graph.tables)
    return math.log(1 + (graph.num_tables - num_with + 0.5) / (num_with + 0.5))


def overlap_oracle(question, graph):
    asked = set(content_words(question))
    known = [w for w in asked if any(w in words_of_table(table) for table in graph.tables)]
    scores = []
    for table in graph.tables:
        name = set(words_of_name(table))
        share = len(asked & name) / len(name) if name else 0.0
        hit = sum(idf(w, graph) for w in known if w in words_of_table(table))
        scores.append(share + (hit / sum(idf(w, graph) for w in known) if known else 0.0))
    return scores


def bm25_oracle(question, graph, k1=1.5, b=0.75):
    lengths = [len(words_of_table(table)) for table in graph.tables]
    mean = sum(lengths) / len(lengths)
    scores = []
    for table, length in zip(graph.tables, lengths, strict=True):
        total = 0.0
        for word in set(content_words(question)):
            count = words_of_table(table).count(word)
            if count:
                total += idf(word, graph) * count / (count + k1 * (1 - b + b * length / mean))
        scores.append(total)
    return scores


def natural() -> SchemaGraph:
    """Three tables with natural names, an empty table and a repeated word."""
    tables = (
        Table("tbl_emp", (Column("eid", natural_name="employee id"), Column("dept")), natural_name="employees"),
        Table("dept", (Column("dept", natural_name="department"), Column("dept_head"))),
        Table("x", ()),
    )
    return build_graph("natural", tables, ())


@pytest.mark.parametrize("graph", [harbour(), natural()], ids=["harbour", "natural"])
def test_scores_are_the_equations(graph: SchemaGraph):
    questions = (*QUESTIONS, "Which employees head a department? dept dept", "x")
    overlap = [overlap_oracle(question, graph) for question in questions]
    bm25 = [bm25_oracle(question, graph) for question in questions]
    np.testing.assert_allclose(TokenOverlap().score(questions, graph), overlap, rtol=1e-10)
    np.testing.assert_allclose(BM25().score(questions, graph), bm25, rtol=1e-10)
    np.testing.assert_allclose(
        BM25(k1=0.9, b=0.4).score(questions, graph),
        [bm25_oracle(q, graph, 0.9, 0.4) for q in questions],
        rtol=1e-10,
    )


@pytest.mark.parametrize("channel", [TokenOverlap(), BM25()])
def test_tables_named_or_whose_columns_are_named_lead(channel, graph: SchemaGraph):
    scores = channel.score(QUESTIONS, graph)
    assert scores.dtype == np.float64
    assert set(np.argsort(scores[0])[-3:]) == {0, 1, 2}
    assert scores[1].argmax() == 3
    assert scores[2].argmax() == 4


@pytest.mark.parametrize("channel", [TokenOverlap(), BM25()])
def test_text_without_known_words_scores_zero(channel, graph: SchemaGraph):
    assert not channel.score(["", "   ", "?!", "How many are there?", "zebra"], graph).any()
    assert channel.score([], graph).shape == (0, 5)


@pytest.mark.parametrize("channel", [TokenOverlap(), BM25()])
def test_a_schema_without_words_scores_zero(channel):
    graph = build_graph("blank", (Table("_", ()), Table("__", (Column("-"),))), ())
    assert not channel.score(QUESTIONS, graph).any()


@pytest.mark.parametrize("channel", [TokenOverlap(), BM25()])
def test_one_table_has_a_positive_score(channel):
    graph = build_graph("one", (Table("ships", (Column("name"),)),), ())
    assert channel.score(["ships"], graph)[0, 0] > 0


@pytest.mark.parametrize("channel", [TokenOverlap(), BM25()])
def test_scores_move_with_their_tables(channel, graph: SchemaGraph):
    order = (3, 1, 4, 0, 2)
    moved = channel.score(QUESTIONS, harbour(order))
    np.testing.assert_allclose(moved, channel.score(QUESTIONS, graph)[:, order], rtol=1e-12)


@pytest.mark.parametrize("channel", [TokenOverlap(), BM25()])
def test_one_question_scores_as_among_others(channel, graph: SchemaGraph):
    alone = np.concatenate([channel.score([question], graph) for question in QUESTIONS])
    np.testing.assert_allclose(alone, channel.score(QUESTIONS, graph), rtol=1e-12)


def test_overlap_is_at_most_two():
    graph = build_graph("one", (Table("ship", (Column("tonnage"),)),), ())
    assert TokenOverlap().score(["ship tonnage"], graph)[0, 0] == pytest.approx(2.0)


@pytest.mark.parametrize("kind", [TokenOverlap, BM25])
def test_descriptions_count_only_when_asked(kind):
    table = Table("a", (Column("b", description="zebra"),))
    graph = build_graph("described", (table, Table("c", ())), ())
    assert kind().score(["zebra"], graph)[0, 0] == 0
    assert kind(descriptions=True).score(["zebra"], graph)[0, 0] > 0
    assert kind().identity != kind(descriptions=True).identity


def test_inverse_frequency_is_positive_and_falls():
    weights = inverse_frequency(np.arange(4), 3)
    assert (weights > 0).all()
    assert (np.diff(weights) < 0).all()


@pytest.mark.parametrize("channel", [TokenOverlap(), BM25()])
def test_one_live_question_is_fast(channel, graph: SchemaGraph):
    channel.score(QUESTIONS[:1], graph)
    times = []
    for _ in range(20):
        start = time.perf_counter()
        channel.score(QUESTIONS[:1], graph)
        times.append(time.perf_counter() - start)
    assert min(times) < 2e-3
