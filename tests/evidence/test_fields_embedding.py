"""Cosines of each field's embedding: with embeddings of our own by hand, and with the model where it is installed."""

import numpy as np
import pytest
from conftest import QUESTIONS
from fields_cases import bare, check_channel, described, foreign, identities

from bayeslink.evidence import embedding, fields_embedding
from bayeslink.evidence.embedding import EmbeddingCosine
from bayeslink.evidence.fields_embedding import Cosine, FieldCosine
from bayeslink.schema.graph import Column, Table, build_graph
from bayeslink.schema.words import split_words

CHANNELS = [FieldCosine(cosine) for cosine in Cosine]
WORDS = ("ship", "port", "name", "country", "day", "fee", "price", "rank")


def count_vectors(texts):
    """Unit vectors of word counts, a constant added so that none is zero."""
    counts = np.array([[split_words(text).count(word) for word in WORDS] + [0.5] for text in texts]).reshape(-1, 9)
    return counts / np.linalg.norm(counts, axis=1, keepdims=True)


@pytest.fixture
def passes(monkeypatch) -> list[str]:
    """The texts that pass a model of word counts, which takes the place of the sentence model."""
    seen: list[str] = []

    def embed(texts):
        seen.extend(texts)
        return count_vectors(texts)

    for module in (embedding, fields_embedding):
        monkeypatch.setattr(module, "embed", embed)
    embedding._embedded_batch.cache_clear()
    yield seen
    embedding._embedded_batch.cache_clear()


def small():
    columns = (
        Column("ship_name"),
        Column("pc", natural_name="port country"),
        Column("day", description="fee of a day"),
        Column("rank"),
    )
    return build_graph("small", (Table("ships", columns), Table("none", ()), Table("p", (Column("price"),))), ())


def test_names_are_stable():
    assert [channel.name for channel in CHANNELS] == [
        *("cosine_name", "cosine_text", "cosine_columns", "cosine_columns_top3", "cosine_descriptions")
    ]
    assert len(set(identities([*CHANNELS]))) == len(CHANNELS)


def test_cosines_by_hand(passes):
    question = "What is the fee of a day in a port of that name?"
    texts = {
        Cosine.NAME: (["ships"], ["none"], ["p"]),
        Cosine.TEXT: (["ships: ship name, port country, day, rank"], ["none: "], ["p: price"]),
        Cosine.COLUMNS: (["ship name", "port country", "day", "rank"], [], ["price"]),
        Cosine.DESCRIPTIONS: (["ship name", "port country", "day fee of a day", "rank"], [], ["price"]),
    }
    (asked,) = count_vectors([question])
    for cosine, tables in texts.items():
        expected = [max((float(asked @ vector) for vector in count_vectors(own)), default=0.0) for own in tables]
        np.testing.assert_allclose(FieldCosine(cosine).score([question], small())[0], expected, rtol=1e-12)
    best = sorted(float(asked @ vector) for vector in count_vectors(texts[Cosine.COLUMNS][0]))
    top = FieldCosine(Cosine.COLUMNS_TOP3).score([question], small())[0]
    np.testing.assert_allclose(top, [sum(best[1:]) / 3, 0, float(asked @ count_vectors(["price"])[0])], rtol=1e-12)


@pytest.mark.parametrize("channel", CHANNELS, ids=lambda channel: channel.name)
def test_every_channel(channel, passes):
    check_channel(channel)
    assert not channel.score(["", "   ", "?!"], described()).any()
    if channel.cosine not in (Cosine.NAME, Cosine.TEXT):
        assert not channel.score(["ships and ports"], bare()).any()
        assert not channel.score(["Größe"], foreign())[:, [1, 3]].any()


def test_each_text_passes_the_model_once(passes):
    graph, questions = described(), ["Which ship?", "Which port?"]
    for channel in CHANNELS:
        channel.score(questions, graph)
    for channel in CHANNELS:
        channel.score(questions, graph)
    columns = {column.name for table in graph.tables for column in table.columns}
    assert sum(map(len, (table.columns for table in graph.tables))) > len(columns)
    read_alone = [text for text in passes if text in columns and text not in ("rank", "wind speed")]
    # A column is read alone and, where any column has a description, once more as one that has or lacks it.
    assert all(read_alone.count(text) <= 2 for text in columns)
    assert [text for text in passes if text in questions] == questions
    EmbeddingCosine().score(questions, graph)
    assert [text for text in passes if text in questions] == questions


def test_without_descriptions_the_columns_are_not_read_again(passes):
    graph = build_graph("plain", (Table("ships", (Column("name"),)),), ())
    scores = [FieldCosine(cosine).score(["ship name"], graph) for cosine in (Cosine.COLUMNS, Cosine.DESCRIPTIONS)]
    np.testing.assert_array_equal(*scores)
    assert passes == ["name", "ship name"]


@pytest.mark.usefixtures("embeddings")
def test_the_model_knows_what_a_description_says():
    """No word of the question stands in a name."""
    tables = (
        Table("a", (Column("q1", description="money owed to a bank"), Column("q2"))),
        Table("b", (Column("q1", description="colour of the sky"), Column("q2"))),
    )
    graph = build_graph("described", tables, ())
    question = ["How large is the loan?"]
    scores = FieldCosine(Cosine.DESCRIPTIONS).score(question, graph)[0]
    assert scores[0] > scores[1] + 0.1
    assert np.ptp(FieldCosine(Cosine.COLUMNS).score(question, graph)) < 1e-6


@pytest.mark.usefixtures("embeddings")
@pytest.mark.parametrize("channel", CHANNELS, ids=lambda channel: channel.name)
def test_cosines_of_the_model(channel):
    # Single-precision sums change with the padding of a batch.
    check_channel(channel, atol=1e-6)
    scores = channel.score(QUESTIONS, described())
    assert (np.abs(scores) <= 1 + 1e-6).all()
    assert scores[2].argmax() == 4
