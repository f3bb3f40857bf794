"""The distribution by elimination gives the same answers as the one that lists every subset."""

import numpy as np
import pytest

from bayeslink.decision.sets import credible_collection, smallest_cover
from bayeslink.evidence.channel import Evidence
from bayeslink.inference import enumeration, queries
from bayeslink.inference.factored import FactoredDistribution
from bayeslink.inference.posterior import DatabaseDraws
from bayeslink.inference.predictive import SubgraphDistribution, predict
from bayeslink.model.autologistic import Support

DRAWS = 30
EDGES = np.array([[0, 1], [1, 2], [2, 3], [0, 3], [3, 4], [5, 6]])


def evidence(num_tables: int = 8, questions: int = 2) -> Evidence:
    rng = np.random.default_rng(5)
    values = rng.normal(size=(questions, num_tables, 2))
    gold = rng.random((questions, num_tables)) < 0.4
    gold[:, 0] = True
    return Evidence("toy", "a", ("x", "y"), values, EDGES, np.zeros(len(EDGES), dtype=int), np.zeros(3), gold)


def draws(each_edge: bool = False) -> DatabaseDraws:
    rng = np.random.default_rng(6)
    intercept, slopes = rng.normal(-1, 0.8, DRAWS), rng.normal(1, 0.2, (DRAWS, 2))
    return DatabaseDraws(intercept, slopes, rng.normal(0.4, 0.8, (DRAWS, len(EDGES)) if each_edge else DRAWS))


@pytest.fixture(
    scope="module",
    params=[(support, each_edge) for each_edge in (False, True) for support in Support],
    ids=lambda given: f"{given[0].value}-{'each edge' if given[1] else 'one coupling'}",
)
def pair(request):
    """The same predictive, listed and factored, with the log scores of gold."""
    support, each_edge = request.param
    listed, scores = predict(evidence(), draws(each_edge), support)
    assert isinstance(listed, SubgraphDistribution)
    factored = FactoredDistribution(evidence().values, EDGES, draws(each_edge), support)
    return listed, scores, factored


@pytest.mark.parametrize("answer", ["marginals", "pair_marginals", "expected_size", "prob_empty", "size_distribution"])
def test_averages_are_exact(pair, answer):
    listed, _, factored = pair
    np.testing.assert_allclose(getattr(factored, answer), getattr(listed, answer), rtol=1e-9, atol=1e-11)


def test_scores_and_covers_are_exact(pair):
    listed, scores, factored = pair
    gold = evidence().gold
    found = [float(s[0]) for s in factored.log_probability_of(list(gold[:, None]))]
    np.testing.assert_allclose(found, scores, rtol=1e-10)
    np.testing.assert_allclose(factored.probability_of(gold), listed.probability_of(gold), rtol=1e-10)
    for chosen in (gold, ~gold, np.ones_like(gold), np.zeros_like(gold)):
        np.testing.assert_allclose(
            factored.cover_probability(chosen), listed.cover_probability(chosen), rtol=1e-10, atol=1e-13
        )


def test_mode_and_best_subsets_come_from_the_pool(pair):
    listed, _, factored = pair
    np.testing.assert_array_equal(factored.mode, listed.mode)
    np.testing.assert_allclose(factored.mode_probability, listed.mode_probability, rtol=1e-10)
    chosen, probability = factored.top(3)
    np.testing.assert_allclose(probability, listed.top(3)[1], rtol=1e-10)
    np.testing.assert_allclose(np.exp(np.stack(factored.log_probability_of(list(chosen)))), probability, rtol=1e-10)
    assert (factored.unexplored_mass < 0.9).all()
    assert (factored.unexplored_mass > 0).all()


def test_entropy_and_connectedness_are_within_their_errors(pair):
    listed, _, factored = pair
    assert (np.abs(factored.entropy - listed.entropy) < 4 * factored.entropy_standard_error).all()
    share = listed.connected_probability
    error = np.sqrt(share * (1 - share) / DRAWS)
    assert (np.abs(factored.connected_probability - share) < 4 * error).all()


def test_cover_is_the_shortest_sufficient_prefix(pair):
    listed, _, factored = pair
    for level in (0.5, 0.8, 0.95, 1.0):
        found = smallest_cover(factored, level)
        assert (found.cover_probability >= level - 1e-12).all()
        order = np.argsort(-listed.marginals, axis=1, kind="stable")
        for question, size in enumerate(found.size.astype(int)):
            shorter = np.zeros_like(found.chosen)
            shorter[question, order[question, : max(size - 1, 0)]] = True
            assert found.chosen[question, order[question, :size]].all()
            assert size == 0 or listed.cover_probability(shorter)[question] < level
        assert (found.size >= smallest_cover(listed, level).size).all()


def test_collections_have_the_mass_they_state(pair):
    listed, _, factored = pair
    for question, chosen in enumerate(factored.collection(0.6)):
        mass = np.exp(factored.log_probability_of([chosen] * 2)[question])
        assert mass.sum() >= 0.6
        assert mass.sum() - mass[-1] < 0.6
        assert (np.diff(mass) <= 1e-12).all()
        assert len(chosen) >= credible_collection(listed, 0.6)[0][question]
    with pytest.raises(ValueError, match=r"level=1\.0: the subsets explored hold 0"):
        factored.collection(1.0)


def test_a_collection_of_unlisted_subsets_is_refused(pair):
    with pytest.raises(ValueError, match="its subsets are not listed"):
        credible_collection(pair[2], 0.9)


def test_large_schemas_take_this_road():
    found, scores = predict(evidence(enumeration.MAX_TABLES + 1), draws())
    assert isinstance(found, FactoredDistribution)
    assert np.isfinite(scores).all()
    assert found.exact


@pytest.mark.parametrize("intercept", [-12.0, -30.0])
def test_almost_surely_empty_with_the_empty_set_excluded(intercept):
    """Only the conditional distribution counts, even where P(no table) is 1 to the last digits."""
    far = draws()._replace(intercept=np.full(DRAWS, intercept))
    listed, scores = predict(evidence(), far, Support.NON_EMPTY)
    factored = FactoredDistribution(evidence().values, EDGES, far, Support.NON_EMPTY)
    np.testing.assert_allclose(factored.marginals, listed.marginals, rtol=1e-9)
    found = [float(s[0]) for s in factored.log_probability_of(list(evidence().gold[:, None]))]
    np.testing.assert_allclose(found, scores, rtol=1e-9)
    np.testing.assert_array_equal(factored.mode, listed.mode)
    assert np.isfinite(factored.entropy).all()
    assert (np.abs(factored.entropy - listed.entropy) < 4 * factored.entropy_standard_error + 1e-12).all()
    error = np.maximum(factored.connected_standard_error, 1e-3)
    assert (np.abs(factored.connected_probability - listed.connected_probability) < 4 * error).all()


def test_a_coupling_for_each_edge_of_a_schema_without_edges_is_none():
    bare = np.zeros((0, 2), dtype=np.int64)
    alone = FactoredDistribution(evidence().values, bare, draws()._replace(coupling=np.zeros((DRAWS, 0))))
    plain = FactoredDistribution(evidence().values, bare, draws())
    np.testing.assert_allclose(alone.marginals, plain.marginals, rtol=1e-12)
    gold = evidence().gold
    np.testing.assert_allclose(alone.probability_of(gold), plain.probability_of(gold), rtol=1e-12)


@pytest.mark.parametrize("support", list(Support))
def test_sizes_are_the_same_where_only_those_of_some_probability_are_computed(support: Support):
    # A forest of 150 tables, most of them improbable, so that far fewer sizes than tables matter.
    rng = np.random.default_rng(8)
    edges = np.array([[table, table - table % 5] for table in range(150) if table % 5])
    values = rng.normal(size=(1, 150, 2))
    given = DatabaseDraws(rng.normal(-5, 0.5, 20), rng.normal(1, 0.2, (20, 2)), rng.normal(0.5, 0.2, 20))
    found = FactoredDistribution(values, edges, given, support)
    assert found._largest_size(found._unaries[0], 0) < 100
    whole = np.array(queries.size_distribution(found._unaries[0], found._plan[0], found._gain, 151))
    if support is Support.NON_EMPTY:
        whole[0] = 0
        whole /= whole.sum(axis=0)
    np.testing.assert_allclose(found.size_distribution[0], whole.mean(axis=1), atol=1e-12)
    np.testing.assert_allclose(found.size_distribution.sum(), 1, atol=1e-12)
    expected = found.size_distribution[0] @ np.arange(151)
    np.testing.assert_allclose(expected, found.expected_size[0], rtol=1e-9)
