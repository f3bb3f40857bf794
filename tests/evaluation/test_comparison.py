"""McNemar against the sum over coin tosses; the bootstrap against enumeration and where it must fail."""

from dataclasses import replace
from itertools import product
from math import comb

import numpy as np
import pytest

from bayeslink.evaluation.comparison import clustered_bootstrap, mcnemar, paired_difference, question_clusters
from bayeslink.evidence.store import load_evidence

MISMATCH = (ValueError, TypeError)
"""TypeError comes first where the annotated shapes are checked at run time."""


@pytest.mark.parametrize(("only_first", "only_second"), [(0, 0), (1, 0), (5, 1), (3, 3), (0, 9), (12, 30)])
def test_mcnemar_equals_the_sum_over_coin_tosses(only_first, only_second):
    first = np.array([True] * only_first + [False] * only_second + [True] * 4 + [False] * 3)
    second = np.array([False] * only_first + [True] * only_second + [True] * 4 + [False] * 3)
    tosses = only_first + only_second
    tail = sum(comb(tosses, b) for b in range(min(only_first, only_second) + 1)) / 2**tosses
    found = mcnemar(first, second)
    assert (found.only_first, found.only_second) == (only_first, only_second)
    assert found.p_value == pytest.approx(min(1.0, 2 * tail), rel=1e-12)


def test_mcnemar_is_symmetric_and_refuses_different_questions():
    first, second = np.array([True, True, False]), np.array([False, False, False])
    assert mcnemar(first, second).p_value == mcnemar(second, first).p_value
    with pytest.raises(MISMATCH):
        mcnemar(first, second[:2])


def test_resamples_have_the_distribution_of_the_two_stages():
    # Two databases, two groups each, of unequal size: every outcome of the two stages can be listed.
    values = np.array([0.0, 1.0, 2.0, 5.0, 7.0, 11.0])
    databases, groups = ["a", "a", "a", "b", "b", "b"], np.array([0, 0, 1, 4, 7, 7])
    clusters = {"a": [[0, 1], [2]], "b": [[3], [4, 5]]}
    listed = []
    for drawn in product("ab", repeat=2):
        for picks in product(range(2), repeat=4):
            rows = [row for k, pick in enumerate(picks) for row in clusters[drawn[k // 2]][pick]]
            listed.append(values[rows].mean())
    seen = []
    clustered_bootstrap(
        values, databases, groups, 20_000, np.random.default_rng(1), lambda v: seen.append(v.mean()) or v.mean()
    )
    seen = np.array(seen[:-1])
    for value in sorted(set(np.round(listed, 9))):
        share = np.mean(np.isclose(listed, value))
        error = np.sqrt(share * (1 - share) / len(seen))
        assert abs(np.mean(np.isclose(seen, value)) - share) < 4 * error + 1e-12
    assert np.isin(np.round(seen, 9), np.round(listed, 9)).all()


def test_interval_is_the_middle_of_the_resamples():
    values, seen = np.arange(12.0), []
    found = clustered_bootstrap(
        values,
        ["a"] * 12,
        np.arange(12),
        500,
        np.random.default_rng(2),
        lambda drawn: float(seen.append(drawn.mean()) or drawn.mean()),
    )
    assert found.estimate == pytest.approx(5.5)
    assert (found.lower, found.upper) == pytest.approx(tuple(np.quantile(seen[:-1], [0.025, 0.975])))


def test_clusters_widen_the_interval():
    rng = np.random.default_rng(3)
    values = np.repeat(rng.normal(size=8), 50) + 0.1 * rng.normal(size=400)
    names, alone = np.repeat(np.arange(8), 50).tolist(), list(range(400))
    wide = clustered_bootstrap(values, names, np.arange(400), 500, np.random.default_rng(0))
    naive = clustered_bootstrap(values, alone, np.arange(400), 500, np.random.default_rng(0))
    grouped = clustered_bootstrap(values, ["one"] * 400, np.array(names), 500, np.random.default_rng(0))
    assert wide.upper - wide.lower > 2 * (naive.upper - naive.lower)
    assert grouped.upper - grouped.lower > 2 * (naive.upper - naive.lower)


def test_interval_covers_the_truth_about_as_often_as_it_says():
    rng, covered = np.random.default_rng(4), 0
    for _ in range(200):
        effects = rng.normal(size=25)
        values = np.repeat(effects, 4) + rng.normal(size=100)
        found = clustered_bootstrap(values, np.repeat(np.arange(25), 4).tolist(), np.arange(100), 200, rng)
        covered += found.lower <= 0 <= found.upper
    # Resampling groups inside as well widens it a little; 4 standard errors of 200 trials is 0.06.
    assert covered / 200 > 0.95 - 0.06


def test_paired_difference_is_the_mean_difference():
    rng = np.random.default_rng(5)
    second = rng.normal(size=60) * 10
    first = second + 1 + 0.01 * rng.normal(size=60)
    names, groups = ["a"] * 30 + ["b"] * 30, np.arange(60) // 3
    found = paired_difference(first, second, names, groups, 300, rng)
    assert found.estimate == pytest.approx(np.mean(first - second))
    assert 0.98 < found.lower < found.upper < 1.02
    assert paired_difference(second, first, names, groups, 300, rng).upper < 0


def test_the_same_generator_gives_the_same_interval():
    arguments = (np.arange(10.0), list("aabbccddee"), np.arange(10), 50)
    first = clustered_bootstrap(*arguments, np.random.default_rng(0))
    assert first == clustered_bootstrap(*arguments, np.random.default_rng(0))
    assert first != clustered_bootstrap(*arguments, np.random.default_rng(1))


def test_refusals():
    rng = np.random.default_rng(0)
    with pytest.raises(ValueError, match="at least one"):
        clustered_bootstrap(np.zeros(0), [], np.zeros(0, dtype=int), 10, rng)
    with pytest.raises(ValueError, match="num_resamples=0"):
        clustered_bootstrap(np.zeros(2), ["a", "b"], np.zeros(2, dtype=int), 0, rng)
    with pytest.raises(MISMATCH):
        clustered_bootstrap(np.zeros(2), ["a"], np.zeros(2, dtype=int), 10, rng)
    with pytest.raises(MISMATCH):
        paired_difference(np.zeros(2), np.zeros(3), ["a", "a"], np.zeros(2, dtype=int), 10, rng)


def test_clusters_are_the_database_and_the_gold_query_of_each_question():
    first, second = load_evidence("spider-dev")[:2]
    databases, groups = question_clusters([first, replace(second, group=None)])
    assert databases == [first.key] * first.num_questions + [second.key] * second.num_questions
    np.testing.assert_array_equal(groups, [*first.group, *range(second.num_questions)])
    with pytest.raises(ValueError, match="evidences are empty"):
        question_clusters([])
