"""The predictive distribution against the average over draws of brute-force distributions."""

import math
from dataclasses import replace

import numpy as np
import oracles
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import few
from worlds import edge_array, make_evidence

from bayeslink.inference import predictive as module
from bayeslink.inference.posterior import DatabaseDraws
from bayeslink.inference.predictive import predict
from bayeslink.model.autologistic import Support

NUM_TABLES = 5
EDGES = edge_array([(0, 1), (2, 1), (0, 2), (3, 1)])
"""A triangle with a tail; table 4 is alone."""


@pytest.fixture(scope="module")
def evidence():
    rng = np.random.default_rng(0)
    gold = rng.random((6, NUM_TABLES)) < 0.5
    gold[:, 2] = True
    return make_evidence(rng.normal(size=(6, NUM_TABLES, 2)), EDGES, gold)


@pytest.fixture(scope="module")
def draws() -> DatabaseDraws:
    rng = np.random.default_rng(1)
    return DatabaseDraws(rng.normal(-0.5, 0.7, 8), rng.normal(0.5, 0.5, (8, 2)), rng.normal(0.5, 0.8, 8))


def brute_force(evidence, draws: DatabaseDraws, non_empty: bool) -> list[dict]:
    """For each question, the average over draws of the distribution over selections."""
    questions = []
    for rows in evidence.values.tolist():
        parts = []
        for alpha, gamma, beta in zip(*(part.tolist() for part in draws), strict=True):
            unary = oracles.unary_log_odds(rows, alpha, gamma)
            parts.append(oracles.distribution(unary, EDGES.tolist(), beta, non_empty))
        questions.append(oracles.mixture(parts))
    return questions


@pytest.fixture(scope="module", params=list(Support))
def case(request, evidence, draws):
    """(support, predictive distribution, log scores, brute-force mixtures)."""
    found, scores = predict(evidence, draws, request.param)
    return request.param, found, scores, brute_force(evidence, draws, request.param is Support.NON_EMPTY)


def test_probability_of_every_subset(case):
    support, found, _, exact = case
    states = found.states.astype(int).tolist()
    expected = [[mixture[tuple(x)] for x in states] for mixture in exact]
    np.testing.assert_allclose(found.probabilities, expected, rtol=1e-10)
    np.testing.assert_allclose(found.probabilities.sum(axis=1), 1, rtol=1e-10)
    assert (found.support, found.exact, found.num_tables) == (support, True, NUM_TABLES)


@pytest.mark.parametrize("support", list(Support))
def test_a_coupling_for_each_edge(evidence, draws, support: Support):
    each = draws._replace(coupling=np.random.default_rng(2).normal(0.3, 1.0, (8, len(EDGES))))
    found, scores = predict(evidence, each, support)
    exact = brute_force(evidence, each, support is Support.NON_EMPTY)
    states = [tuple(x) for x in found.states.astype(int).tolist()]
    np.testing.assert_allclose(found.probabilities, [[m[x] for x in states] for m in exact], rtol=1e-10)
    expected = [math.log(m[tuple(map(int, row))]) for m, row in zip(exact, evidence.gold, strict=True)]
    np.testing.assert_allclose(scores, expected, rtol=1e-10)


def test_one_coupling_is_the_same_one_for_each_edge(evidence, draws):
    each = draws._replace(coupling=np.repeat(draws.coupling[:, None], len(EDGES), axis=1))
    np.testing.assert_allclose(
        predict(evidence, each)[0].probabilities, predict(evidence, draws)[0].probabilities, rtol=1e-12
    )


def test_what_is_read_off_it(case):
    _, found, _, exact = case
    edges = EDGES.tolist()
    for name, oracle in {
        "marginals": oracles.marginals,
        "expected_size": oracles.expected_size,
        "pair_marginals": lambda mixture: oracles.pair_marginals(mixture, edges),
        "entropy": oracles.entropy,
        "size_distribution": oracles.size_distribution,
        "connected_probability": lambda mixture: oracles.connected_probability(mixture, edges),
        "mode": lambda mixture: max(mixture, key=mixture.__getitem__),
        "mode_probability": lambda mixture: max(mixture.values()),
    }.items():
        expected = [oracle(mixture) for mixture in exact]
        np.testing.assert_allclose(getattr(found, name), expected, rtol=1e-10, atol=1e-15, err_msg=name)


def test_probability_empty_is_that_of_all_subsets_under_both_supports(case, evidence, draws):
    _, found, _, _ = case
    expected = [mixture[(0,) * NUM_TABLES] for mixture in brute_force(evidence, draws, False)]
    np.testing.assert_allclose(found.prob_empty, expected, rtol=1e-10)
    assert (found.probabilities[:, 0] == 0).all() == (found.support is Support.NON_EMPTY)


def test_log_score_is_that_of_the_mixture(case, evidence):
    _, found, scores, exact = case
    expected = [math.log(m[tuple(map(int, row))]) for m, row in zip(exact, evidence.gold, strict=True)]
    np.testing.assert_allclose(scores, expected, rtol=1e-10)
    np.testing.assert_allclose(found.probability_of(evidence.gold), np.exp(expected), rtol=1e-10)


def test_top_subsets(case):
    _, found, _, exact = case
    subsets, probabilities = found.top(4)
    for q, mixture in enumerate(exact):
        best = sorted(mixture, key=lambda x, m=mixture: -m[x])[:4]
        assert [tuple(row.astype(int)) for row in subsets[q]] == best
        np.testing.assert_allclose(probabilities[q], [mixture[x] for x in best], rtol=1e-10)
    assert found.top(10**6)[0].shape == (6, 2**NUM_TABLES, NUM_TABLES)


@few
@given(covers=st.lists(st.lists(st.booleans(), min_size=5, max_size=5), min_size=6, max_size=6))
def test_cover_probability_of_any_set(case, covers: list[list[bool]]):
    _, found, _, exact = case
    expected = [oracles.cover_probability(m, cover) for m, cover in zip(exact, covers, strict=True)]
    np.testing.assert_allclose(found.cover_probability(np.array(covers)), expected, rtol=1e-10, atol=1e-15)


def test_covers_grow_with_the_set(case):
    _, found, _, _ = case
    np.testing.assert_allclose(found.covered[:, -1], 1, rtol=1e-10)
    np.testing.assert_array_equal(found.covered[:, 0], found.probabilities[:, 0])


def test_a_question_alone_gives_the_same(evidence, draws):
    whole, scores = predict(evidence, draws)
    for place in range(evidence.num_questions):
        alone, score = predict(evidence.select_questions(np.array([place])), draws)
        np.testing.assert_allclose(alone.probabilities[0], whole.probabilities[place], rtol=1e-12)
        np.testing.assert_allclose(alone.prob_empty[0], whole.prob_empty[place], rtol=1e-12)
        np.testing.assert_allclose(score[0], scores[place], rtol=1e-12)


def test_without_gold_there_is_no_score(evidence, draws):
    found, scores = predict(replace(evidence, gold=None), draws)
    assert scores is None
    np.testing.assert_array_equal(found.probabilities, predict(evidence, draws)[0].probabilities)


def test_an_improbable_gold_keeps_a_finite_score(evidence, draws):
    """p(gold) underflows to 0 as a number; its logarithm does not."""
    far = draws._replace(intercept=np.full(8, -1000.0))
    found, scores = predict(evidence, far)
    assert (found.probability_of(evidence.gold) == 0).all()
    assert (np.isfinite(scores) & (scores < -700)).all()


def test_non_empty_support_keeps_its_digits_when_the_empty_set_is_almost_sure(evidence, draws):
    """P(not empty) is about 1e-14 here, yet the conditional distribution sums to 1."""
    far = draws._replace(intercept=draws.intercept - 32.0)
    found, scores = predict(evidence, far, Support.NON_EMPTY)
    expected = brute_force(evidence, far, True)
    np.testing.assert_allclose(found.probabilities.sum(axis=1), 1, rtol=1e-10)
    np.testing.assert_allclose(found.marginals, [oracles.marginals(m) for m in expected], rtol=1e-10, atol=1e-14)
    assert np.isfinite(scores).all()
