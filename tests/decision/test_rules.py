"""Threshold, joint mode and top k against plain Python."""

import numpy as np
import pytest

from bayeslink.decision.rules import joint_mode, threshold, top_k

A, B, C = frozenset({0}), frozenset({1}), frozenset({2})


@pytest.mark.parametrize("cut", [0.0, 0.3, 0.5, 1.0])
def test_threshold_takes_the_tables_above_the_cut(case, plain, chosen_sets, cut):
    rows, distribution = case
    found = threshold(distribution, cut)
    for row, chosen in zip(rows, chosen_sets(found.chosen), strict=True):
        probabilities = [plain.marginal(row, table) for table in range(distribution.num_tables)]
        clear = {table for table, p in enumerate(probabilities) if abs(p - cut) > 1e-12}
        assert chosen & clear == {table for table in clear if probabilities[table] > cut}
    assert found.rule == f"threshold {cut:g}"
    assert not found.abstained.any()


def test_a_marginal_at_the_cut_is_not_above_it(build, chosen_sets):
    assert chosen_sets(threshold(build([{A: 0.5, frozenset(): 0.5}], 2)).chosen) == [frozenset()]


def test_threshold_minimises_the_expected_number_of_wrong_tables(case, plain, chosen_sets):
    rows, distribution = case

    def wrong(row, chosen):
        return sum(p * len(subset ^ chosen) for subset, p in row.items())

    for row, chosen in zip(rows, chosen_sets(threshold(distribution).chosen), strict=True):
        best = min(wrong(row, other) for other in plain.subsets(distribution.num_tables))
        assert wrong(row, chosen) == pytest.approx(best, rel=1e-10, abs=1e-14)


def test_joint_mode_is_the_most_probable_subset(case, chosen_sets):
    rows, distribution = case
    for row, chosen in zip(rows, chosen_sets(joint_mode(distribution).chosen), strict=True):
        assert row[chosen] == max(row.values())


def test_joint_mode_may_differ_from_the_threshold(build, chosen_sets):
    distribution = build([{A: 0.4, B | C: 0.3, A | B: 0.3}], 3)
    assert chosen_sets(joint_mode(distribution).chosen) == [A]
    assert chosen_sets(threshold(distribution).chosen) == [A | B]


@pytest.mark.parametrize("k", [1, 2, 4, 9])
def test_top_k_misses_fewest_tables_among_sets_of_k(case, plain, chosen_sets, k):
    rows, distribution = case
    size = min(k, distribution.num_tables)
    for row, chosen in zip(rows, chosen_sets(top_k(distribution, k).chosen), strict=True):
        assert len(chosen) == size
        kept = {s: sum(plain.marginal(row, t) for t in s) for s in plain.subsets(distribution.num_tables)}
        best = max(value for subset, value in kept.items() if len(subset) == size)
        assert kept[chosen] == pytest.approx(best, rel=1e-10)


def test_cover_probability_is_that_of_the_chosen_tables(case, plain, chosen_sets):
    rows, distribution = case
    for found in (threshold(distribution), joint_mode(distribution), top_k(distribution, 2)):
        expected = [plain.covered(*pair) for pair in zip(rows, chosen_sets(found.chosen), strict=True)]
        np.testing.assert_allclose(found.cover_probability, expected, rtol=1e-10, atol=1e-14)
        np.testing.assert_array_equal(found.size, [len(chosen) for chosen in chosen_sets(found.chosen)])


@pytest.mark.parametrize("cut", [-0.1, 1.1, float("nan")])
def test_threshold_refuses_a_cut_that_is_no_probability(build, cut):
    with pytest.raises(ValueError, match="cut="):
        threshold(build([{A: 1.0}], 2), cut)


@pytest.mark.parametrize("k", [0, -1])
def test_top_k_refuses_k_below_one(build, k):
    with pytest.raises(ValueError, match=f"k={k}"):
        top_k(build([{A: 1.0}], 2), k)
