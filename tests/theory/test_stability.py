"""Proposition 1 against single flips of the energy, for any sign of the coupling, and the paper's examples."""

import math

import numpy as np
from brute_force import World, checked, edge_array, quarters, worlds
from hypothesis import given

from bayeslink.theory.stability import is_single_flip_stable, stability_window

JUNCTION_EDGES = [(0, 1), (1, 2), (2, 3)]
"""Figure 1: two salient tables 0 and 2, the weak junction 1 between them, a distractor 3 joined to table 2."""


def stable_by_flips(world: World) -> bool:
    energy = world.energy(world.relevant)
    return all(world.energy(world.relevant ^ 1 << t) < energy for t in range(len(world.unary)))


@checked
@given(world=worlds(lowest=-3), coupling=quarters(-4, 4))
def test_window_holds_exactly_the_stable_couplings(world: World, coupling: float) -> None:
    world = world._replace(coupling=[coupling] * len(world.edges))
    window = stability_window(*world.arrays)
    assert window.contains(coupling) == stable_by_flips(world)
    assert is_single_flip_stable(*world.arrays, coupling) == stable_by_flips(world)
    assert bool(window.is_empty) == bool(window.failures())
    assert window.positive().contains(coupling) == (coupling > 0 and stable_by_flips(world))


@checked
@given(world=worlds(lowest=-3))
def test_definition_with_one_coupling_per_edge(world: World) -> None:
    assert is_single_flip_stable(*world.arrays, np.array(world.coupling)) == stable_by_flips(world)


@checked
@given(world=worlds())
def test_positive_window_is_the_papers(world: World) -> None:
    unary, edges, relevant = world.arrays
    neighbours = [[s + t - i for s, t in world.edges if i in (s, t)] for i in range(len(unary))]
    joined = [sum(bool(relevant[o]) for o in others) for others in neighbours]
    weak = [t for t in range(len(unary)) if relevant[t] and unary[t] < 0]
    distractors = [r for r in range(len(unary)) if not relevant[r]]
    window = stability_window(unary, edges, relevant).positive()
    lower = max([-unary[b] / joined[b] for b in weak if joined[b]], default=0.0)
    upper = min([-unary[r] / joined[r] for r in distractors if joined[r]], default=math.inf)
    assert (window.lower, window.upper) == (lower, upper)
    if any(joined[b] == 0 for b in weak) or any(unary[r] >= 0 for r in distractors):
        assert window.is_empty


def test_several_questions_at_once_match_one_by_one() -> None:
    rng = np.random.default_rng(3)
    unary, relevant = rng.normal(size=(5, 4)), rng.random((5, 4)) < 0.5
    edges = edge_array([(0, 1), (1, 2), (0, 2)])
    window, stable = stability_window(unary, edges, relevant), is_single_flip_stable(unary, edges, relevant, 0.7)
    for q in range(5):
        one = stability_window(unary[q], edges, relevant[q])
        assert (window.lower[q], window.upper[q]) == (one.lower, one.upper)
        assert window.failures((q,)) == one.failures()
        assert stable[q] == window.contains(0.7)[q] == is_single_flip_stable(unary[q], edges, relevant[q], 0.7)


def test_worked_example_has_window_from_058_to_1() -> None:
    deficit = -math.log(0.24 / 0.76)
    unary = np.array([2.0, -deficit, 2.0, -1.0])
    window = stability_window(unary, edge_array(JUNCTION_EDGES), np.array([True, True, True, False]))
    assert round(deficit, 2) == 1.15
    assert window.lower == deficit / 2
    assert round(float(window.lower), 2) == 0.58
    assert window.upper == 1.0
    assert window.failures() == []


def test_boundary_is_not_stable() -> None:
    unary, relevant = np.array([2.0, -1.0, 2.0, -1.0]), np.array([True, True, True, False])
    edges = edge_array(JUNCTION_EDGES)
    assert [bool(is_single_flip_stable(unary, edges, relevant, b)) for b in (0.5, 0.75, 1.0)] == [False, True, False]
    assert stability_window(unary, edges, relevant).contains(np.array([0.5, 0.75, 1.0])).tolist() == [
        False,
        True,
        False,
    ]


def test_empty_window_names_the_third_condition() -> None:
    unary, relevant = np.array([2.0, -3.0, 2.0, -1.0]), np.array([True, True, True, False])
    window = stability_window(unary, edge_array(JUNCTION_EDGES), relevant)
    assert window.is_empty
    assert window.failures() == ["(iii) the coupling would have to exceed 1.5 and stay below 1"]


def test_weak_table_without_relevant_neighbour_is_never_recovered() -> None:
    unary, relevant = np.array([2.0, -0.5, -1.0]), np.array([True, True, False])
    window = stability_window(unary, edge_array([(1, 2)]), relevant)
    assert window.unsupported.tolist() == [False, True, False]
    assert window.failures() == ["(i) relevant tables [1] have log-odds <= 0 and no relevant neighbour"]
    assert not any(is_single_flip_stable(unary, edge_array([(1, 2)]), relevant, b) for b in (-5.0, 0.0, 5.0, 1e6))


def test_accepted_distractor_is_not_corrected_by_any_positive_coupling() -> None:
    unary, edges = np.array([2.0, 0.5]), edge_array([(0, 1)])
    alone = stability_window(unary, edge_array([]), np.array([True, False]))
    assert alone.failures() == ["(ii) irrelevant tables [1] have log-odds >= 0 and no relevant neighbour"]
    joined = stability_window(unary, edges, np.array([True, False]))
    assert joined.positive().is_empty
    assert joined.failures() == []
    assert is_single_flip_stable(unary, edges, np.array([True, False]), -1.0)


def test_stable_set_that_greedy_growth_cannot_reach() -> None:
    """Tables 1 and 2 are weak and hold each other up; neither can enter first."""
    unary, edges = np.array([2.0, -1.0, -1.0]), edge_array([(1, 2)])
    window = stability_window(unary, edges, np.array([True, True, True]))
    assert window.contains(1.5)
    assert is_single_flip_stable(unary, edges, np.array([True, False, False]), 1.5)


def test_no_distractor_and_no_weak_table_leave_the_positive_side_open() -> None:
    window = stability_window(np.array([1.0, 2.0]), edge_array([]), np.array([True, True]))
    assert (window.lower, window.upper) == (-math.inf, math.inf)
