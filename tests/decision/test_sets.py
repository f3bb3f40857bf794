"""Covers, credible collections and abstention against brute force over all subsets."""

import itertools

import numpy as np
import pytest

from bayeslink.decision.sets import abstention, credible_collection, level_of_size, smallest_cover

A, B, C = frozenset({0}), frozenset({1}), frozenset({2})
LEVELS = (0.05, 0.5, 0.8, 0.95, 1.0)


@pytest.mark.parametrize("level", LEVELS)
def test_smallest_cover_equals_a_search_over_all_sets(case, plain, chosen_sets, level):
    rows, distribution = case
    found = smallest_cover(distribution, level)
    for row, chosen, probability in zip(rows, chosen_sets(found.chosen), found.cover_probability, strict=True):
        mass = {cover: plain.covered(row, cover) for cover in plain.subsets(distribution.num_tables)}
        enough = [cover for cover in mass if mass[cover] >= level - 1e-12]
        fewest = min(len(cover) for cover in enough)
        largest = max(mass[cover] for cover in enough if len(cover) == fewest)
        assert chosen in enough
        assert len(chosen) == fewest
        assert mass[chosen] == pytest.approx(largest, abs=1e-12)
        assert probability == pytest.approx(mass[chosen], abs=1e-12)


def test_of_two_smallest_covers_the_more_probable_one(build, chosen_sets):
    # {A}, {B} and {C} all reach 0.2; B covers most.
    distribution = build([{A: 0.3, B: 0.4, C: 0.3}], 3)
    assert chosen_sets(smallest_cover(distribution, 0.2).chosen) == [B]


def test_equally_good_covers_give_one_of_them(build, chosen_sets):
    distribution = build([{A: 0.5, B: 0.5}], 3)
    assert chosen_sets(smallest_cover(distribution, 0.5).chosen)[0] in (A, B)
    assert chosen_sets(smallest_cover(distribution, 0.51).chosen) == [A | B]


def test_level_one_leaves_out_only_tables_that_are_never_needed(build, chosen_sets):
    distribution = build([{A: 1 - 1e-6, A | B: 1e-6}, {frozenset(): 1.0}], 3)
    assert chosen_sets(smallest_cover(distribution, 1.0).chosen) == [A | B, frozenset()]


@pytest.mark.parametrize("level", LEVELS)
def test_collection_is_the_fewest_subsets_with_the_mass(case, level):
    rows, distribution = case
    counts, held = credible_collection(distribution, level)
    for question, row in enumerate(rows):
        members = np.flatnonzero(held[question])
        assert len(members) == counts[question]
        assert distribution.probabilities[question, members].sum() >= level - 1e-12
        fewer = sorted(row.values(), reverse=True)[: counts[question] - 1]
        assert sum(fewer) < level - 1e-12 or counts[question] == 1


def test_collection_beats_every_other_of_its_size(build, plain):
    row = {A: 0.35, B: 0.25, A | B: 0.2, frozenset(): 0.2}
    counts, held = credible_collection(build([row], 2), 0.55)
    assert counts.tolist() == [2]
    assert held[0].tolist() == [False, True, True, False]
    by_hand = [sum(pair) for pair in itertools.combinations(row.values(), 2)]
    assert max(by_hand) == pytest.approx(0.6)
    assert credible_collection(build([row], 2), 1.0)[0].tolist() == [4]


@pytest.mark.parametrize("level", [0.0, -0.1, 1.01, float("nan")])
@pytest.mark.parametrize("rule", [smallest_cover, credible_collection])
def test_levels_outside_the_unit_interval_are_refused(build, rule, level):
    with pytest.raises(ValueError, match="level="):
        rule(build([{A: 1.0}], 2), level)


def test_off_topic_is_told_by_the_all_subsets_form(build):
    # Under the non-empty form no subset is empty, and still the question is off topic.
    distribution = build([{A: 1.0}, {A: 1.0}], 2, prob_empty=[0.71, 0.7])
    found = abstention(distribution)
    assert found.abstained.tolist() == [True, False]
    assert found.reasons == ("no table seems to be concerned (probability 0.71)", "")


def test_max_risk_bounds_the_risk_of_the_joint_mode(build):
    distribution = build([{A: 0.7, B: 0.3}, {A: 0.4, B: 0.3, C: 0.3}], 3)
    assert abstention(distribution).abstained.tolist() == [False, False]
    found = abstention(distribution, max_risk=0.5)
    assert found.abstained.tolist() == [False, True]
    assert found.reasons[1] == "the most probable set is wrong with probability 0.60 > 0.5"
    assert abstention(distribution, max_risk=0.2).abstained.tolist() == [True, True]


@pytest.mark.parametrize("max_risk", [-0.1, 1.1, float("nan")])
def test_a_risk_that_is_no_probability_is_refused(build, max_risk):
    with pytest.raises(ValueError, match="max_risk="):
        abstention(build([{A: 1.0}], 2), max_risk)


def test_no_question_gives_no_verdict(build):
    found = abstention(build([], 2))
    assert found.abstained.shape == (0,)
    assert found.abstained.dtype == bool


@pytest.mark.parametrize("size", [0.4, 1.0, 1.7, 2.5, 3.0])
def test_the_level_of_a_size_is_the_largest_that_fits(build, size):
    rng = np.random.default_rng(3)
    subsets = [A, B, C, A | B, B | C, A | B | C, frozenset()]
    found = [
        build([dict(zip(subsets, row, strict=True)) for row in rng.dirichlet(np.full(7, 0.5), questions)], 3)
        for questions in (4, 7)
    ]

    def mean_size(level: float) -> float:
        return float(np.concatenate([smallest_cover(item, level).chosen.sum(axis=1) for item in found]).mean())

    level = level_of_size(found, size)
    assert mean_size(level) <= size
    if level < 1 - 2e-12:
        # Any level that is noticeably larger has covers that are too large.
        assert mean_size(1 - (1 - level) * (1 - 1e-6)) > size
    assert mean_size(1 - 1e-12) <= 3.0


def test_a_size_that_cannot_be_is_refused(build):
    with pytest.raises(ValueError, match=r"size=-0.5: a mean number of tables is at least 0"):
        level_of_size([build([{A: 0.1, B: 0.9}], 3)], -0.5)
    # Some table is surely needed here: only the empty cover of level 0 has fewer than one.
    assert level_of_size([build([{A: 0.1, B: 0.9}], 3)], 0.0) < 1e-9
    assert level_of_size([build([{A: 0.1, B: 0.9}], 3)], 0.5) < 1e-9
    assert level_of_size([build([{A: 0.1, B: 0.9}], 3)], 1.0) == pytest.approx(0.9)
    with pytest.raises(ValueError, match="distributions hold no question"):
        level_of_size([], 2.0)
