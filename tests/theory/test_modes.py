"""Proposition 2 and the mass bound against the list of all subsets."""

import math

import numpy as np
import pytest
from brute_force import World, as_subset, checked, edge_array, quarters, worlds
from hypothesis import example, given

from bayeslink.theory.modes import Verdict, is_unique_mode, mass_bound, sufficient_bound
from bayeslink.theory.stability import is_single_flip_stable, stability_window

CLUMP = World([2.0, 2.0, -1.0, -1.0], [(0, 2), (1, 3), (2, 3)], [1.0] * 3, 0b0011)
"""The paper's example: distractors 2 and 3, each joined to one relevant table and to each other."""


def verdict_by_listing(world: World) -> Verdict:
    energies = world.energies()
    best = max(energies)
    if energies[world.relevant] < best:
        return Verdict.NO
    return Verdict.YES if energies.count(best) == 1 else Verdict.TIE


@checked
@given(world=worlds())
@example(world=World([0.0], [], [], 0))
@example(world=World([-1.0, -1.0], [(0, 1)], [2.0], 0b11))
@example(world=World([-1.0, -1.0, 1.0], [(0, 1), (1, 2)], [1.0, 1.0], 0b100))
def test_unique_mode_if_and_only_if(world: World) -> None:
    check = is_unique_mode(*world.arrays, np.array(world.coupling))
    assert check.verdict is verdict_by_listing(world)
    assert bool(check) == (check.verdict is Verdict.YES)
    # Without a tolerance only the largest minimiser tells a tie: the smallest is empty.
    assert is_unique_mode(*world.arrays, np.array(world.coupling), tolerance=0.0).verdict is check.verdict


@checked
@given(world=worlds())
def test_violating_sets_beat_or_tie_with_the_relevant_set(world: World) -> None:
    check = is_unique_mode(*world.arrays, np.array(world.coupling))
    entering, leaving, energies = as_subset(check.entering), as_subset(check.leaving), world.energies()
    others = range(len(energies))
    assert not entering & world.relevant
    assert leaving & world.relevant == leaving
    outside = [energies[world.relevant] - energies[s] for s in others if s & world.relevant == world.relevant]
    inside = [energies[world.relevant] - energies[s] for s in others if s | world.relevant == world.relevant]
    assert (check.entering_margin, check.leaving_margin) == (min(outside), min(inside))
    assert energies[world.relevant] - energies[world.relevant | entering] == check.entering_margin
    assert energies[world.relevant] - energies[world.relevant ^ leaving] == check.leaving_margin
    assert (check.verdict is Verdict.YES) == (not entering and not leaving)


@checked
@given(world=worlds(per_edge=False), coupling=quarters(0, 3))
def test_sufficient_bound_implies_condition_6(world: World, coupling: float) -> None:
    world = world._replace(coupling=[coupling] * len(world.edges))
    bound = sufficient_bound(*world.arrays)
    check = is_unique_mode(*world.arrays, coupling)
    if bound.holds(coupling):
        assert not check.entering.any()
    if bound.upper > 0:
        assert bound.upper <= stability_window(*world.arrays).upper


@checked
@given(world=worlds())
def test_unique_mode_is_single_flip_stable(world: World) -> None:
    if is_unique_mode(*world.arrays, np.array(world.coupling)):
        assert is_single_flip_stable(*world.arrays, np.array(world.coupling))


@checked
@given(world=worlds())
def test_mass_bound_holds_and_eps_is_the_largest(world: World) -> None:
    bound = mass_bound(*world.arrays, np.array(world.coupling))
    energies, n = world.energies(), len(world.unary)
    gaps = [(energies[world.relevant] - e, (s ^ world.relevant).bit_count()) for s, e in enumerate(energies)]
    np.testing.assert_allclose(bound.eps, min(gap / moved for gap, moved in gaps if moved), rtol=1e-10, atol=1e-12)
    gap, moved = gaps[as_subset(bound.nearest)]
    np.testing.assert_allclose(gap / moved, bound.eps, rtol=1e-10, atol=1e-12)
    other = math.fsum(math.exp(-gap) for gap, moved in gaps if moved)
    assert other / (1 + other) <= bound.other_prob * (1 + 1e-10) <= bound.looser * (1 + 1e-9)
    np.testing.assert_allclose(bound.other_prob, 1 - (1 + math.exp(-bound.eps)) ** -n, rtol=1e-10, atol=1e-14)
    assert (bound.eps > 0) == (verdict_by_listing(world) is Verdict.YES)


def test_mass_bound_is_exact_for_equal_evidence_without_coupling() -> None:
    unary, relevant = np.array([1.5, 1.5, -1.5]), np.array([True, True, False])
    bound = mass_bound(unary, edge_array([(0, 1)]), relevant, 0.0)
    np.testing.assert_allclose(bound.other_prob, 1 - (1 / (1 + math.exp(-1.5))) ** 3, rtol=1e-12)


def test_clump_of_distractors_enters_the_mode_above_two_thirds() -> None:
    unary, edges, relevant = CLUMP.arrays
    assert stability_window(unary, edges, relevant).upper == 1.0
    assert sufficient_bound(unary, edges, relevant).upper == 2 / 3
    below, at, above = (is_unique_mode(unary, edges, relevant, beta) for beta in (0.66, 2 / 3, 0.67))
    assert (below.verdict, at.verdict, above.verdict) == (Verdict.YES, Verdict.TIE, Verdict.NO)
    assert above.entering.tolist() == at.entering.tolist() == [False, False, True, True]
    assert is_single_flip_stable(unary, edges, relevant, 0.99)
    assert mass_bound(unary, edges, relevant, 0.67).nearest.tolist() == [True] * 4


def test_sufficient_bound_needs_isolated_distractors_below_threshold() -> None:
    unary, relevant = np.array([1.0, 0.25, -1.0]), np.array([True, False, False])
    bound = sufficient_bound(unary, edge_array([(0, 2)]), relevant)
    assert bound.uncorrectable.tolist() == [False, True, False]
    assert bound.upper == 1.0
    assert not bound.holds(0.1)


def test_accepted_distractor_is_in_the_mode_at_every_coupling() -> None:
    unary, edges = np.array([2.0, 0.5]), edge_array([(0, 1)])
    for coupling in (0.0, 0.5, 5.0):
        check = is_unique_mode(unary, edges, np.array([True, False]), coupling)
        assert check.verdict is Verdict.NO
        assert check.entering.tolist() == [False, True]


def test_invalid_parameters_are_refused() -> None:
    edges, relevant = edge_array([(0, 1)]), np.array([True, False])
    with pytest.raises(ValueError, match="use elimination"):
        is_unique_mode(np.zeros(2), edges, relevant, -0.1)
    with pytest.raises(ValueError, match="use elimination"):
        mass_bound(np.zeros(2), edges, relevant, -0.1)
    with pytest.raises(ValueError, match="finite log-odds"):
        mass_bound(np.array([0.0, np.inf]), edges, relevant, 0.1)
