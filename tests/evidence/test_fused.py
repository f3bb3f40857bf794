"""Reciprocal-rank fusion against numbers worked out by hand, and the four rankings that the channel fuses."""

import numpy as np
import pytest
from conftest import QUESTIONS, harbour

from bayeslink.evidence.channel import Channel
from bayeslink.evidence.fused import RANK_OFFSET, RANKINGS, FusedRanks, reciprocal_rank_fusion
from bayeslink.evidence.lexical import BM25
from bayeslink.schema.graph import Column, SchemaGraph, Table, build_graph


def fusion_oracle(rankings, offset=60):
    """The equation in plain Python, for one question."""
    fused = [0.0] * len(rankings[0])
    for scores in rankings:
        if len(set(scores)) == 1:
            continue
        for table, score in enumerate(scores):
            if score > 0:
                better = sum(other > score for other in scores)
                equal = sum(other == score for other in scores)
                fused[table] += 1 / (offset + better + (equal + 1) / 2)
    return fused


def test_fusion_by_hand():
    lexical = np.array([[3.0, 1.0, 2.0]])
    vector = np.array([[0.1, 0.9, 0.5]])
    by_hand = [1 / 61 + 1 / 63, 1 / 63 + 1 / 61, 1 / 62 + 1 / 62]
    np.testing.assert_allclose(reciprocal_rank_fusion([lexical, vector])[0], by_hand, rtol=1e-14)
    assert by_hand[0] > by_hand[2]


def test_ties_share_their_mean_rank_and_a_zero_is_no_rank():
    scores = np.array([[2.0, 2.0, 1.0, 0.0, 0.0]])
    np.testing.assert_allclose(reciprocal_rank_fusion([scores])[0], [1 / 61.5, 1 / 61.5, 1 / 63, 0, 0], rtol=1e-14)


def test_three_middling_ranks_beat_two_firsts_and_an_absence():
    """What makes the column slot necessary: fusion rewards breadth."""
    rankings = [np.array([[9.0, 5.0]]), np.array([[9.0, 5.0]]), np.array([[0.0, 5.0]])]
    fused = reciprocal_rank_fusion(rankings)[0]
    assert fused[1] > fused[0]


@pytest.mark.parametrize("constant", [0.0, 0.7])
def test_a_ranking_that_cannot_discriminate_abstains(constant):
    telling = np.array([[0.0, 2.0, 1.0], [1.0, 0.0, 0.0]])
    silent = np.full((2, 3), constant)
    np.testing.assert_array_equal(reciprocal_rank_fusion([telling, silent]), reciprocal_rank_fusion([telling]))
    assert not reciprocal_rank_fusion([silent, silent]).any()
    # It abstains question by question, not for the whole set.
    silent[1] = [0.1, 0.2, 0.3]
    found = reciprocal_rank_fusion([telling, silent])
    np.testing.assert_array_equal(found[0], reciprocal_rank_fusion([telling])[0])
    assert (found[1] > reciprocal_rank_fusion([telling])[1]).all()


@pytest.mark.parametrize("seed", range(4))
def test_fusion_is_the_equation(seed):
    rng = np.random.default_rng(seed)
    rankings = [rng.integers(0, 5, (6, 7)).astype(float) for _ in range(3)]
    rankings[1][2] = 4.0
    expected = [fusion_oracle([scores[q].tolist() for scores in rankings], 7) for q in range(6)]
    np.testing.assert_allclose(reciprocal_rank_fusion(rankings, 7), expected, rtol=1e-12)
    order = rng.permutation(7)
    moved = reciprocal_rank_fusion([scores[:, order] for scores in rankings], 7)
    np.testing.assert_array_equal(moved, reciprocal_rank_fusion(rankings, 7)[:, order])


def test_fusion_refuses():
    with pytest.raises(ValueError, match="give at least one"):
        reciprocal_rank_fusion([])
    with pytest.raises(ValueError, match="all of the same questions and tables"):
        reciprocal_rank_fusion([np.zeros((2, 3)), np.zeros((3, 2))])
    with pytest.raises(ValueError, match="offset=-1"):
        reciprocal_rank_fusion([np.zeros((2, 3))], -1)
    assert reciprocal_rank_fusion([np.zeros((0, 3))]).shape == (0, 3)


def test_the_channel_fuses_its_rankings(graph: SchemaGraph):
    channel = FusedRanks()
    assert isinstance(channel, Channel)
    assert channel.name == "fused"
    rankings = channel.rankings(QUESTIONS, graph)
    assert len(rankings) == len(RANKINGS)
    expected = [fusion_oracle([scores[q].tolist() for scores in rankings], RANK_OFFSET) for q in range(len(QUESTIONS))]
    found = channel.score(QUESTIONS, graph)
    np.testing.assert_allclose(found, expected, rtol=1e-12)
    assert found.dtype == np.float64
    assert set(np.argsort(found[0])[-3:]) == {0, 1, 2}
    assert found[1].argmax() == 3
    assert found[2].argmax() == 4
    assert not found[4].any()
    assert (found <= 4 / 61).all()
    assert channel.score([], graph).shape == (0, 5)


def test_each_ranking_reads_its_own_text():
    tables = (
        Table("alpha", (Column("beta", description="gamma"),), description="delta"),
        Table("other", (Column("thing"),)),
        Table("more", (Column("stuff"),)),
    )
    graph = build_graph("fields", tables, ())
    lexical, _, name, prose = FusedRanks().rankings(["alpha", "beta", "gamma", "delta"], graph)
    assert (lexical[:, 0] > 0).tolist() == [True, True, False, False]
    assert (name[:, 0] > 0).tolist() == [True, False, False, False]
    assert (prose[:, 0] > 0).tolist() == [False, False, True, True]
    assert not lexical[:, 1:].any()
    np.testing.assert_array_equal(lexical, BM25().score(["alpha", "beta", "gamma", "delta"], graph))
    without = FusedRanks(descriptions=False)
    assert not without.rankings(["gamma"], graph)[3].any()
    assert not without.score(["gamma"], graph).any()
    assert without.identity != FusedRanks().identity


def test_the_channel_moves_with_tables(graph: SchemaGraph):
    order = (3, 1, 4, 0, 2)
    moved = FusedRanks().score(QUESTIONS, harbour(order))
    np.testing.assert_allclose(moved, FusedRanks().score(QUESTIONS, graph)[:, order], rtol=1e-12)


def test_one_question_scores_as_among_others(graph: SchemaGraph):
    alone = np.concatenate([FusedRanks().score([question], graph) for question in QUESTIONS])
    np.testing.assert_allclose(alone, FusedRanks().score(QUESTIONS, graph), rtol=1e-12)


def test_a_schema_without_words_or_with_one_table_scores_zero():
    blank = build_graph("blank", (Table("_", ()), Table("__", (Column("-"),))), ())
    assert not FusedRanks().score(QUESTIONS, blank).any()
    one = build_graph("one", (Table("ships", (Column("name"),)),), ())
    assert not FusedRanks().score(["ships"], one).any()
