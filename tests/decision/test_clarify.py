"""The table to ask about, and the posterior after the answer, against sums over all subsets."""

from math import log

import numpy as np
import pytest

from bayeslink.decision.clarify import clarifying_question, expected_after

A, B, C = frozenset({0}), frozenset({1}), frozenset({2})
EMPTY = frozenset()


def after(row: dict, table: int) -> float:
    """Chance that the mode is right once it is known whether the table is needed."""
    return max(p for x, p in row.items() if table in x) + max(p for x, p in row.items() if table not in x)


def test_the_rule_rivals_asks_what_makes_the_mode_most_often_right(case):
    rows, distribution = case
    found = clarifying_question(distribution, "rivals")
    for question, row in enumerate(rows):
        values = [after(row, table) for table in range(distribution.num_tables)]
        table = int(found.table[question])
        assert found.after[question] == pytest.approx(max(values), abs=1e-12)
        assert values[table] == pytest.approx(max(values), abs=1e-12)
        assert found.before[question] == pytest.approx(max(row.values()), abs=1e-12)
        assert found.after[question] >= found.before[question]
        first, second = (frozenset(np.flatnonzero(x).tolist()) for x in found.rivals[question])
        assert (table in first) != (table in second)
        assert row[first] == pytest.approx(found.rival_probability[question, 0], abs=1e-12)
        assert row[second] == pytest.approx(found.rival_probability[question, 1], abs=1e-12)


def test_the_gain_is_the_expected_fall_of_the_joint_entropy(case, plain):
    rows, distribution = case
    for rule in ("rivals", "entropy"):
        found = clarifying_question(distribution, rule)
        for question, row in enumerate(rows):
            table = int(found.table[question])
            left = 0.0
            for needed in (True, False):
                part = {x: p for x, p in row.items() if (table in x) == needed}
                mass = sum(part.values())
                left += -sum(p * log(p / mass) for p in part.values() if p > 0)
            total = -sum(p * log(p) for p in row.values() if p > 0)
            assert found.gain[question] == pytest.approx(total - left, abs=1e-10)
            assert found.probability[question] == pytest.approx(plain.marginal(row, table), abs=1e-12)


def test_the_most_informative_question_need_not_help_most(build):
    """The mode and its rival differ in B; C is nearest 1/2, but what it is in is spread over many subsets."""
    spread = {frozenset({0, 2, *more}): 0.115 for more in ((), (3,), (4,), (3, 4))}
    row = {A: 0.34, A | B: 0.2} | spread
    distribution = build([row], 5)
    assert clarifying_question(distribution, "entropy").table.tolist() == [2]
    found = clarifying_question(distribution, "rivals")
    assert found.table[0] == 1
    assert found.after[0] == pytest.approx(0.54)
    assert after(row, 2) == pytest.approx(0.455)


def test_conditioning_removes_what_disagrees(case):
    rows, distribution = case
    table = np.arange(len(rows)) % distribution.num_tables
    for needed in (True, False):
        found = distribution.condition(table, np.full(len(rows), needed))
        for question, row in enumerate(rows):
            part = {x: p for x, p in row.items() if (table[question] in x) == needed}
            mass = sum(part.values())
            for subset, p in row.items():
                code = sum(2**t for t in subset)
                expected = p / mass if subset in part else 0.0
                assert found.probabilities[question, code] == pytest.approx(expected, abs=1e-12)
            assert found.marginals[question, table[question]] == pytest.approx(float(needed), abs=1e-12)
            none = 0.0 if needed else row[EMPTY] / mass
            assert found.prob_empty[question] == pytest.approx(none, abs=1e-12)


@pytest.mark.parametrize("needed", [True, False])
def test_conditioning_by_elimination_equals_conditioning_the_list(same, needed):
    listed = same[0]
    table, answer = np.array([0, 2, 4]), np.array([needed, not needed, needed])
    one, other = (item.condition(table, answer) for item in same)
    again = np.array([3, 3, 1]), np.array([True, False, True])
    for first, second in ((one, other), (one.condition(*again), other.condition(*again))):
        np.testing.assert_allclose(second.marginals, first.marginals, atol=1e-9)
        np.testing.assert_allclose(second.pair_marginals, first.pair_marginals, atol=1e-9)
        np.testing.assert_allclose(second.size_distribution, first.size_distribution, atol=1e-9)
        gold = first.mode
        np.testing.assert_allclose(second.probability_of(gold), first.probability_of(gold), rtol=1e-8)
        np.testing.assert_allclose(second.cover_probability(gold), first.cover_probability(gold), rtol=1e-8)
        np.testing.assert_allclose(second.mode_probability, first.mode_probability, rtol=1e-8)
        error = 5 * second.entropy_standard_error + 1e-9
        assert (np.abs(second.entropy - first.entropy) <= error).all()
    if listed.support.value == "all":
        np.testing.assert_allclose(other.prob_empty, one.prob_empty, atol=1e-9)
    for item in (one, other):
        with pytest.raises(ValueError, match=r"table=0: (this answer has prob|it was answered otherwise before)"):
            item.condition(table, ~answer)


def test_large_schemas_ask_the_same(same):
    listed, factored = same
    for rule in ("rivals", "entropy"):
        one, other = (clarifying_question(item, rule) for item in same)
        np.testing.assert_array_equal(other.table, one.table)
        np.testing.assert_allclose(other.after, one.after, atol=1e-9)
        np.testing.assert_allclose(other.gain, one.gain, atol=1e-9)
    np.testing.assert_allclose(expected_after(factored)[0], expected_after(listed)[0], atol=0.05)


def test_an_impossible_answer_and_an_unknown_rule_are_refused(build):
    distribution = build([{A: 0.5, A | B: 0.5}], 2)
    with pytest.raises(ValueError, match="table=0: this answer has probability 0; leave it out"):
        distribution.condition(np.array([0]), np.array([False]))
    with pytest.raises((ValueError, TypeError)):
        clarifying_question(distribution, "oracle")
