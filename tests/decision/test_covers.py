"""Covers by size, by weight and within a budget, against searches over all sets in plain Python."""

import numpy as np
import pytest

from bayeslink.decision.covers import (
    best_within_budget,
    certified_cover,
    cover_family,
    lightest_cover,
    required_level,
)
from bayeslink.decision.sets import shortest_prefix, smallest_cover
from bayeslink.inference.factored import FactoredDistribution
from bayeslink.inference.posterior import DatabaseDraws

A, B, C = frozenset({0}), frozenset({1}), frozenset({2})
WEIGHTS = np.array([3.0, 1.0, 4.0, 1.0, 5.0])


def test_the_family_holds_the_best_set_of_every_size(case, plain, chosen_sets):
    rows, distribution = case
    family = cover_family(distribution)
    for question, row in enumerate(rows):
        sets = chosen_sets(family.chosen[question])
        assert [len(cover) for cover in sets] == list(range(distribution.num_tables + 1))
        for size, cover in enumerate(sets):
            best = max(
                plain.covered(row, other) for other in plain.subsets(distribution.num_tables) if len(other) == size
            )
            assert plain.covered(row, cover) == pytest.approx(best, abs=1e-12)
            assert family.probability[question, size] == pytest.approx(best, abs=1e-12)


def test_the_smallest_cover_is_the_first_of_the_family_that_reaches_its_level(case):
    _, distribution = case
    family = cover_family(distribution)
    for level in (0.2, 0.5, 0.9, 0.99):
        first = (family.probability >= level - 1e-12).argmax(axis=1)
        sets = family.chosen[np.arange(len(first)), first]
        np.testing.assert_array_equal(smallest_cover(distribution, level).chosen, sets)


def test_above_the_required_level_gold_is_inside_and_just_below_it_is_not(case):
    rows, distribution = case
    rng = np.random.default_rng(len(rows))
    gold = rng.random(distribution.marginals.shape) < 0.5
    required = required_level(distribution, gold)

    def holds(level: float) -> np.ndarray:
        return ~(gold & ~smallest_cover(distribution, level).chosen).any(axis=1)

    for question, needed in enumerate(required):
        for level in (*np.linspace(0.001, 1.0, 41), min(1.0, needed + 3e-12)):
            assert holds(float(level))[question] or level <= needed + 1e-12
        if needed > 1e-9:
            assert not holds(float(needed))[question]
    with pytest.raises((ValueError, TypeError)):
        required_level(distribution, gold[:, :0])


def test_nothing_is_required_where_nothing_is_needed(build):
    distribution = build([{A: 0.5, B: 0.5}], 3)
    assert required_level(distribution, np.zeros((1, 3), dtype=bool))[0] == 0.0


@pytest.mark.parametrize("budget", [0.0, 1.0, 2.5, 5.0, 14.0])
def test_the_best_set_within_a_budget_equals_a_search(case, plain, chosen_sets, budget):
    rows, distribution = case
    weights = WEIGHTS[: distribution.num_tables]
    found = best_within_budget(distribution, weights, budget)
    weigh = lambda cover: sum(weights[table] for table in cover)  # noqa: E731
    for row, chosen, probability in zip(rows, chosen_sets(found.chosen), found.cover_probability, strict=True):
        allowed = [cover for cover in plain.subsets(distribution.num_tables) if weigh(cover) <= budget]
        best = max(plain.covered(row, cover) for cover in allowed)
        assert weigh(chosen) <= budget
        assert probability == pytest.approx(best, abs=1e-11)
        assert weigh(chosen) == min(weigh(cover) for cover in allowed if plain.covered(row, cover) >= best - 1e-12)


@pytest.mark.parametrize("level", [0.05, 0.5, 0.9, 1.0])
def test_the_lightest_cover_equals_a_search(case, plain, chosen_sets, level):
    rows, distribution = case
    weights = WEIGHTS[: distribution.num_tables]
    found = lightest_cover(distribution, level, weights)
    for row, chosen in zip(rows, chosen_sets(found.chosen), strict=True):
        enough = [c for c in plain.subsets(distribution.num_tables) if plain.covered(row, c) >= level - 1e-12]
        least = min(sum(weights[table] for table in cover) for cover in enough)
        assert chosen in enough
        assert sum(weights[table] for table in chosen) == least
        best = max(plain.covered(row, c) for c in enough if sum(weights[t] for t in c) == least)
        assert plain.covered(row, chosen) == pytest.approx(best, abs=1e-12)


def test_budget_and_level_are_duals(case):
    _, distribution = case
    weights = WEIGHTS[: distribution.num_tables]
    found = lightest_cover(distribution, 0.8, weights)
    for question, cover in enumerate(found.chosen):
        within = best_within_budget(distribution, weights, float(weights[cover].sum()))
        assert within.cover_probability[question] >= 0.8 - 1e-11


@pytest.mark.parametrize("level", [0.5, 0.8, 0.95])
def test_a_finished_search_finds_the_smallest_cover(same, level):
    listed, factored = same
    smallest = smallest_cover(listed, level).chosen.sum(axis=1)
    found = certified_cover(factored, level, 10**6)
    np.testing.assert_array_equal(found.selection.chosen.sum(axis=1), smallest)
    np.testing.assert_array_equal(found.fewest, smallest)
    assert (found.gap == 0).all()
    assert (found.selection.cover_probability >= level - 1e-12).all()
    np.testing.assert_array_equal(certified_cover(listed, level).fewest, smallest)


@pytest.mark.parametrize("limit", [0, 5, 30])
def test_a_search_cut_short_still_bounds_the_smallest_cover(same, limit):
    listed, factored = same
    smallest = smallest_cover(listed, 0.8).chosen.sum(axis=1)
    prefix = shortest_prefix(factored, 0.8).chosen.sum(axis=1)
    found = certified_cover(factored, 0.8, limit)
    sizes = found.selection.chosen.sum(axis=1)
    assert (found.fewest <= smallest).all()
    assert (smallest <= sizes).all()
    assert (sizes <= prefix).all()
    assert (found.fewest > 0).any()
    assert (found.selection.cover_probability >= 0.8 - 1e-12).all()


def test_large_schemas_answer_by_weight_too(same):
    listed, factored = same
    weights = np.arange(1.0, listed.num_tables + 1)
    exact, greedy = (lightest_cover(item, 0.8, weights) for item in same)
    assert (greedy.cover_probability >= 0.8 - 1e-12).all()
    assert (greedy.chosen @ weights >= exact.chosen @ weights - 1e-12).all()
    assert greedy.rule == "lightest cover 0.8, greedy"
    exact, greedy = (best_within_budget(item, weights, 9.0) for item in same)
    assert (greedy.chosen @ weights <= 9.0).all()
    assert (greedy.cover_probability <= exact.cover_probability + 1e-12).all()
    np.testing.assert_allclose(cover_family(factored).probability[:, -1], 1.0)


def test_a_table_that_costs_nothing_is_free(build, chosen_sets):
    distribution = build([{A: 0.6, A | B: 0.3, C: 0.1}], 3)
    assert chosen_sets(best_within_budget(distribution, np.array([0.0, 2.0, 1.0]), 0.0).chosen) == [A]
    assert chosen_sets(lightest_cover(distribution, 0.9, np.array([0.0, 0.5, 1.0])).chosen) == [A | B]


def test_bad_arguments_are_refused(build, same):
    for distribution in (build([{A: 0.5, B: 0.5}], 3), same[1]):
        weights = np.ones(distribution.num_tables)
        with pytest.raises(ValueError, match=r"weights have shape \(2,\): give one for each of"):
            lightest_cover(distribution, 0.9, np.ones(2))
        with pytest.raises(ValueError, match="weights hold -1 to -1: finite ones"):
            best_within_budget(distribution, -weights, 3.0)
        with pytest.raises(ValueError, match=r"budget=-1\.0: a finite total of at least 0"):
            best_within_budget(distribution, weights, -1.0)
        for budget in (float("nan"), float("inf")):
            with pytest.raises(ValueError, match=f"budget={budget}"):
                best_within_budget(distribution, weights, budget)
        with pytest.raises(ValueError, match=r"level=0\.0: a probability above 0"):
            lightest_cover(distribution, 0.0, weights)
        with pytest.raises(ValueError, match="max_evaluations=-1"):
            certified_cover(distribution, 0.9, -1)


def test_a_search_on_a_schema_of_real_size_beats_the_prefix_or_bounds_it():
    """Forty tables, of which pairs that are needed together make the marginal order a poor guide."""
    rng = np.random.default_rng(4)
    num_tables, questions = 40, 2
    edges = np.array([[2 * t, 2 * t + 1] for t in range(num_tables // 2)], dtype=np.int64)
    values = rng.normal(-2.5, 1.2, (questions, num_tables, 1))
    draws = DatabaseDraws(np.zeros(8), np.ones((8, 1)) + rng.normal(0, 0.05, (8, 1)), np.full(8, 3.0))
    distribution = FactoredDistribution(values, edges, draws)
    prefix = shortest_prefix(distribution, 0.8)
    found = certified_cover(distribution, 0.8)
    sizes = found.selection.chosen.sum(axis=1)
    assert (sizes <= prefix.chosen.sum(axis=1)).all()
    assert (found.selection.cover_probability >= 0.8 - 1e-12).all()
    assert (found.fewest <= sizes).all()
    more = certified_cover(distribution, 0.8, 2000)
    assert (more.fewest >= found.fewest).all()
    assert (found.fewest <= more.selection.chosen.sum(axis=1)).all()
    assert (more.selection.chosen.sum(axis=1) <= sizes).all()


def test_above_the_size_that_is_searched_the_prefix_stands_with_a_bound_that_holds(same, monkeypatch):
    _, factored = same
    monkeypatch.setattr("bayeslink.decision.covers.LARGEST_SEARCHED", 0)
    for level in (0.5, 0.9, 0.99):
        found = certified_cover(factored, level)
        np.testing.assert_array_equal(found.selection.chosen, shortest_prefix(factored, level).chosen)
        smallest = smallest_cover(same[0], level).chosen.sum(axis=1)
        assert (found.fewest <= smallest).all()
        required = (factored.marginals > 1 - level).sum(axis=1)
        np.testing.assert_array_equal(found.fewest, np.minimum(required, found.selection.chosen.sum(axis=1)))
