"""Prefixes of rankings: needed lengths and covering probabilities by brute force, and costs that are never exceeded."""

from itertools import product
from types import SimpleNamespace

import numpy as np
import pytest

from bayeslink.evaluation.prefixes import Prefixes, constant_lengths, level_lengths, prefixes_of, ranked_prefixes

GOLD = np.array([[True, False, True, False], [False, False, False, True], [False, False, False, False]])
SCORES = np.array([[0.9, 0.5, 0.7, 0.1], [0.4, 0.4, 0.3, 0.2], [0.1, 0.2, 0.3, 0.4]])
WEIGHTS = np.array([5.0, 1.0, 2.0, 7.0])


def test_the_needed_length_is_the_place_of_the_last_gold_table():
    found = ranked_prefixes(SCORES, GOLD, WEIGHTS, 4)
    assert found.needed.tolist() == [2, 4, 0]
    np.testing.assert_array_equal(found.cost[0], [0, 5, 7, 8, 15])
    np.testing.assert_array_equal(found.cost[1], [0, 5, 6, 8, 15])


def test_no_prefix_is_longer_than_asked_and_gold_beyond_it_is_not_found():
    found = ranked_prefixes(SCORES, GOLD, WEIGHTS, 3)
    assert found.cost.shape == (3, 4)
    assert found.needed[1] == 4


def test_covering_probabilities_are_sums_over_all_subsets():
    rng = np.random.default_rng(0)
    states = np.array(list(product([0, 1], repeat=4)), dtype=bool)
    mass = rng.dirichlet(np.ones(16), size=3)
    distribution = SimpleNamespace(
        marginals=mass @ states,
        cover_probability=lambda chosen: np.array(
            [row[~(states & ~own).any(axis=1)].sum() for row, own in zip(mass, chosen, strict=True)]
        ),
    )
    found = prefixes_of.__wrapped__(distribution, GOLD, np.ones(4), 4)  # a stand-in, past the checks of types
    order = np.argsort(-(mass @ states), axis=1)
    for question in range(3):
        for length in range(5):
            kept = np.isin(np.arange(4), order[question, :length])
            want = sum(p for p, s in zip(mass[question], states, strict=True) if not (s & ~kept).any())
            assert found.coverage[question, length] == pytest.approx(want, rel=1e-10)


def prefixes(coverage, needed, cost=None) -> Prefixes:
    coverage = np.array(coverage, dtype=float)
    cost = np.tile(np.arange(coverage.shape[1], dtype=float), (len(coverage), 1)) if cost is None else np.array(cost)
    return Prefixes(cost, coverage, np.array(needed))


def test_the_level_is_the_largest_that_can_be_paid_for():
    found = [prefixes([[0.0, 0.6, 0.9, 1.0], [0.0, 0.3, 0.95, 1.0]], [1, 2])]
    level, lengths = level_lengths(found, 1.5)
    assert lengths[0].tolist() == [1, 2]
    assert level == pytest.approx(0.6, abs=1e-9)
    assert level_lengths(found, 3.0)[1][0].tolist() == [3, 3]
    assert level_lengths(found, 0.0)[1][0].tolist() == [0, 0]


def test_costs_are_paid_over_all_databases_together():
    rng = np.random.default_rng(1)
    found = []
    for size in (3, 9, 20):
        rise = np.sort(rng.uniform(size=(7, size)), axis=1)
        coverage = np.concatenate([np.zeros((7, 1)), rise], axis=1)
        cost = np.concatenate([np.zeros((7, 1)), rng.uniform(1, 9, size=(7, size)).cumsum(axis=1)], axis=1)
        found.append(prefixes(coverage, np.zeros(7, dtype=int), cost))
    for budget in (0.0, 3.0, 11.0, 40.0, 1e6):
        for choose in (level_lengths, constant_lengths):
            _, lengths = choose(found, budget)
            paid = [item.cost[np.arange(7), own] for item, own in zip(found, lengths, strict=True)]
            assert np.concatenate(paid).mean() <= budget
    assert [own.tolist() for own in constant_lengths(found, 1e6)[1]] == [[3] * 7, [9] * 7, [20] * 7]


def test_a_cost_that_is_met_exactly_can_be_paid():
    best, lengths = constant_lengths([prefixes([[0.0, 0.6, 0.9, 1.0]], [1])], 2.0)
    assert (best, lengths[0].tolist()) == (2, [2])


def test_labels_do_not_move_what_is_chosen():
    coverage = [[0.0, 0.6, 0.9, 1.0], [0.0, 0.3, 0.95, 1.0]]
    first, second = ([prefixes(coverage, needed)] for needed in ([1, 2], [3, 0]))
    assert [own.tolist() for own in level_lengths(first, 1.7)[1]] == [
        own.tolist() for own in level_lengths(second, 1.7)[1]
    ]


def test_a_cost_below_nothing_is_refused():
    with pytest.raises(ValueError, match=r"mean_cost=-1\.0"):
        level_lengths([prefixes([[0.0, 1.0]], [1])], -1.0)
