"""Expected F1 and expected utility against searches over all sets."""

import numpy as np
import pytest

from bayeslink.decision.expected import max_expected_f1, max_expected_utility

A, B = frozenset({0}), frozenset({1})


def f1(chosen: frozenset, needed: frozenset) -> float:
    return 1.0 if not chosen and not needed else 2 * len(chosen & needed) / (len(chosen) + len(needed))


def test_expected_f1_equals_a_search_over_all_sets(case, plain, chosen_sets):
    rows, distribution = case
    found, value = max_expected_f1(distribution)
    for row, chosen, best in zip(rows, chosen_sets(found.chosen), value, strict=True):
        expected = {
            cover: sum(p * f1(cover, subset) for subset, p in row.items())
            for cover in plain.subsets(distribution.num_tables)
        }
        assert best == pytest.approx(max(expected.values()), abs=1e-12)
        assert expected[chosen] == pytest.approx(best, abs=1e-12)


def test_expected_f1_is_not_the_threshold_at_one_half(build, chosen_sets):
    """Three tables of probability 0.4 that never come alone: all are returned, though none passes 1/2."""
    alone = {frozenset({table}): 0.1 for table in range(3, 9)}
    distribution = build([{frozenset({0, 1, 2}): 0.4} | alone], 9)
    assert (distribution.marginals < 0.5).all()
    assert chosen_sets(max_expected_f1(distribution)[0].chosen) == [frozenset({0, 1, 2})]


def test_nothing_is_returned_where_nothing_is_needed(build):
    selection, value = max_expected_f1(build([{frozenset(): 0.9, A: 0.1}], 2))
    assert not selection.chosen.any()
    assert value[0] == pytest.approx(0.9)


def test_expected_utility_equals_a_search_over_all_sets(case, plain, chosen_sets):
    rows, distribution = case
    costs = np.array([0.02, 0.3, 0.0, 0.1, 0.05])[: distribution.num_tables]
    found, value = max_expected_utility(distribution, costs)
    for row, chosen, best in zip(rows, chosen_sets(found.chosen), value, strict=True):
        utility = {
            cover: plain.covered(row, cover) - sum(costs[table] for table in cover)
            for cover in plain.subsets(distribution.num_tables)
        }
        assert best == pytest.approx(max(utility.values()), abs=1e-12)
        assert utility[chosen] == pytest.approx(best, abs=1e-12)


def test_large_schemas(same):
    listed, factored = same
    exact, best = max_expected_f1(listed)
    sampled, value = max_expected_f1(factored)
    np.testing.assert_allclose(value, best, atol=0.1)
    assert (sampled.chosen == exact.chosen).mean() > 0.7
    assert sampled.rule == "expected F1 of samples"
    costs = np.full(listed.num_tables, 0.05)
    (_, most), (found, reached) = (max_expected_utility(item, costs) for item in same)
    assert (reached <= most + 1e-12).all()
    np.testing.assert_allclose(reached, most, atol=0.02)
    np.testing.assert_allclose(reached, found.cover_probability - found.chosen @ costs, atol=1e-12)


def test_bad_costs_are_refused(build):
    distribution = build([{A: 0.5, B: 0.5}], 3)
    with pytest.raises(ValueError, match=r"costs have shape \(2,\)"):
        max_expected_utility(distribution, np.ones(2))
    with pytest.raises(ValueError, match="costs hold -1"):
        max_expected_utility(distribution, -np.ones(3))
