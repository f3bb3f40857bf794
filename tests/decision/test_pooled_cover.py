"""Covers from a pool against every set of its tables, listed in plain Python."""

import itertools
import math

import numpy as np
import pytest
from pools import brute_force, in_pool, random_pool

from bayeslink.decision.pooled_cover import _fewest, prefix_coverage, smallest_pooled_cover
from bayeslink.decision.rules import threshold, top_k
from bayeslink.decision.sets import shortest_prefix
from bayeslink.inference.pooled import PooledDistribution

LEVELS = (0.3, 0.5, 0.8, 0.95)


@pytest.fixture(scope="module", params=[0, 1, 2])
def pool(request):
    members = random_pool(request.param, per_edge=request.param == 1)
    covered = []
    for q in range(2):
        listed = [(in_pool(members, *place), p) for place, p in brute_force(members, q).items()]
        rows, probability = np.array([x for x, _ in listed]), np.array([p for _, p in listed])
        covered.append({s: probability[~rows[:, ~np.array(s)].any(axis=1)].sum() for s in all_sets(rows.shape[1])})
    return PooledDistribution(members), covered


def all_sets(num_tables: int) -> list[tuple[bool, ...]]:
    return list(itertools.product((False, True), repeat=num_tables))


@pytest.mark.parametrize("level", LEVELS)
def test_the_smallest_cover_of_all(pool, level):
    distribution, covered = pool
    found = smallest_pooled_cover(distribution, level, min_probability=0.0)
    assert not found.abstained.any()
    for q, probability in enumerate(covered):
        size = min(sum(s) for s, p in probability.items() if p >= level - 1e-12)
        best = max(p for s, p in probability.items() if sum(s) == size)
        assert found.size[q] == size
        assert found.cover_probability[q] == pytest.approx(best, rel=1e-10)
        assert probability[tuple(found.chosen[q].tolist())] == pytest.approx(best, rel=1e-10)


@pytest.mark.parametrize("level", LEVELS)
def test_the_prefix_rule(pool, level):
    distribution, covered = pool
    found = shortest_prefix(distribution, level)
    exact = smallest_pooled_cover(distribution, level, min_probability=0.0)
    for q, probability in enumerate(covered):
        order = distribution.ranking[q]
        sizes = [n for n in range(11) if probability[tuple(np.isin(np.arange(10), order[:n]).tolist())] >= level]
        assert found.size[q] == min(sizes)
        assert set(np.flatnonzero(found.chosen[q])) == set(order[: min(sizes)])
    assert (exact.size <= found.size).all()
    curve = prefix_coverage(distribution, 10)
    for q, probability in enumerate(covered):
        order = distribution.ranking[q].tolist()
        expected = [probability[tuple(t in order[:n] for t in range(10))] for n in range(11)]
        np.testing.assert_allclose(curve[q], expected, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(prefix_coverage(distribution, 4), curve[:, :5], rtol=1e-12, atol=1e-14)
    with pytest.raises(ValueError, match="longest=0"):
        prefix_coverage(distribution, 0)
    # Improbable databases left to the prefix: never a larger set than it, and one that covers.
    some = smallest_pooled_cover(distribution, level, min_probability=0.2)
    assert ((exact.size <= some.size) & (some.size <= found.size)).all()
    assert (some.cover_probability >= level - 1e-12).all()


def test_some_prefix_is_not_the_smallest():
    """Else the search would be for nothing: two halves of a likely pair rank below a single table."""
    sizes = []
    for seed in range(20):
        distribution = PooledDistribution(random_pool(seed, num_draws=1, num_questions=4, shift=-0.5))
        best = smallest_pooled_cover(distribution, 0.6, min_probability=0.0)
        sizes += (shortest_prefix(distribution, 0.6).size - best.size).tolist()
    assert max(sizes) > 0
    assert min(sizes) == 0


def test_a_database_too_large_to_list_gives_prefixes():
    shapes = ((17, tuple((t, t + 1) for t in range(16))), (2, ((0, 1),)))
    distribution = PooledDistribution(random_pool(3, shapes, num_draws=2, num_questions=2, shift=-3.0))
    for level in (0.4, 0.9):
        found = smallest_pooled_cover(distribution, level, min_probability=0.0)
        np.testing.assert_allclose(found.cover_probability, distribution.cover_probability(found.chosen), rtol=1e-12)
        assert (found.cover_probability >= level - 1e-12).all()
        assert (found.size <= shortest_prefix(distribution, level).size).all()
        for q, row in enumerate(found.chosen[:, :17]):
            order = np.argsort(-distribution.marginals[q, :17], kind="stable")
            assert set(np.flatnonzero(row)) == set(order[: row.sum()])


def test_the_knapsack_by_hand():
    curves = [np.array([0.0, 0.1, 0.5]), np.array([0.0, 0.3, 0.35]), np.array([0.0, 0.15])]
    assert _fewest(curves, 0.3, 5) == [0, 1, 0]
    assert _fewest(curves, 0.5, 5) == [2, 0, 0]
    assert _fewest(curves, 0.8, 5) == [2, 1, 0]
    assert _fewest(curves, 0.95, 5) == [2, 1, 1]
    assert _fewest(curves, 1.0, 5) == [2, 2, 1]
    assert _fewest(curves, 0.95, 3) is None
    assert _fewest([], 0.5, 3) is None


def test_rules_read_a_pool(pool):
    distribution, _ = pool
    for k in (1, 4):
        found = top_k(distribution, k)
        for q in range(2):
            assert set(np.flatnonzero(found.chosen[q])) == set(distribution.ranking[q, :k])
        np.testing.assert_allclose(found.cover_probability, distribution.cover_probability(found.chosen))
    np.testing.assert_array_equal(threshold(distribution, 0.2).chosen, distribution.marginals > 0.2)


def test_refusals(pool):
    distribution, _ = pool
    with pytest.raises(ValueError, match=r"level=0\.0: a probability above 0"):
        smallest_pooled_cover(distribution, 0.0)
    with pytest.raises(ValueError, match=r"min_probability=2\.0"):
        smallest_pooled_cover(distribution, 0.5, 2.0)
    whole = smallest_pooled_cover(distribution, 1.0)
    assert math.isclose(whole.cover_probability.min(), 1.0, rel_tol=1e-12)
