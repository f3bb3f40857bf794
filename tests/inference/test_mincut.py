"""The minimum cut against the list of all subsets, and its certificate."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from networkx import DiGraph

from bayeslink.inference import mincut

checked = settings(derandomize=True, deadline=None, max_examples=200)


@st.composite
def problems(draw: st.DrawFn) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Whole-number log-odds, edges and couplings per edge of 1 to 9 tables, isolated ones among them."""
    num_tables = draw(st.integers(1, 9))
    pairs = [(s, t) for t in range(num_tables) for s in range(t)]
    edges = draw(st.lists(st.sampled_from(pairs), unique=True, max_size=14)) if pairs else []
    unary = draw(st.lists(st.integers(-6, 4), min_size=num_tables, max_size=num_tables))
    coupling = draw(st.lists(st.integers(0, 4), min_size=len(edges), max_size=len(edges)))
    return np.array(unary, dtype=float), np.array(edges, dtype=np.int64).reshape(-1, 2), np.array(coupling, dtype=float)


def scores_by_listing(unary: np.ndarray, edges: np.ndarray, coupling: np.ndarray) -> dict[frozenset[int], float]:
    """Energy of every selection."""
    scores = {}
    for subset in range(2 ** len(unary)):
        chosen = frozenset(t for t in range(len(unary)) if subset >> t & 1)
        pairs = zip(edges.tolist(), coupling.tolist(), strict=True)
        scores[chosen] = sum(unary[t] for t in chosen) + sum(b for (s, t), b in pairs if s in chosen and t in chosen)
    return scores


def check(found: mincut.MinimumCut, scores: dict[frozenset[int], float]) -> None:
    best = max(scores.values())
    modes = [chosen for chosen, score in scores.items() if score == best]
    assert found.score == best
    assert set(np.flatnonzero(found.minimal).tolist()) == frozenset.intersection(*modes)
    assert set(np.flatnonzero(found.maximal).tolist()) == frozenset.union(*modes)
    assert found.is_unique == (len(modes) == 1)
    assert found.flow_value == found.cut_value


@checked
@given(problem=problems())
def test_mode_and_both_ends_of_the_lattice_of_modes(
    problem: tuple[np.ndarray, np.ndarray, np.ndarray],
) -> None:
    check(mincut.mode(*problem), scores_by_listing(*problem))


@checked
@given(problem=problems(), coupling=st.integers(0, 4))
def test_one_coupling_for_all_edges(problem: tuple[np.ndarray, np.ndarray, np.ndarray], coupling: int) -> None:
    unary, edges, _ = problem
    check(mincut.mode(unary, edges, float(coupling)), scores_by_listing(unary, edges, np.full(len(edges), coupling)))


@checked
@given(problem=problems(), data=st.data())
def test_forced_tables(problem: tuple[np.ndarray, np.ndarray, np.ndarray], data: st.DataObject) -> None:
    unary, edges, coupling = problem
    states = data.draw(st.lists(st.sampled_from(["in", "out", "free"]), min_size=len(unary), max_size=len(unary)))
    inside = [t for t, state in enumerate(states) if state == "in"]
    outside = [t for t, state in enumerate(states) if state == "out"]
    allowed = {
        chosen: score
        for chosen, score in scores_by_listing(unary, edges, coupling).items()
        if chosen.issuperset(inside) and not chosen.intersection(outside)
    }
    check(mincut.minimise_cut(-unary, edges, coupling, inside, outside), allowed)
    endless = unary.copy()
    endless[inside], endless[outside] = np.inf, -np.inf
    found = mincut.mode(endless, edges, coupling)
    assert set(np.flatnonzero(found.minimal).tolist()) == frozenset.intersection(
        *[chosen for chosen, score in allowed.items() if score == max(allowed.values())]
    )
    np.testing.assert_allclose(found.score, max(allowed.values()) - unary[inside].sum())


@checked
@given(problem=problems(), scale=st.sampled_from([1e-300, 0.1, 1 / 3, 1e5, 1e290]))
def test_real_values_of_any_size(problem: tuple[np.ndarray, np.ndarray, np.ndarray], scale: float) -> None:
    unary, edges, coupling = problem
    found = mincut.mode(unary * scale, edges, coupling * scale)
    scores = scores_by_listing(unary * scale, edges, coupling * scale)
    np.testing.assert_allclose(found.score, max(scores.values()), rtol=1e-12, atol=1e-12 * scale)
    chosen = frozenset(np.flatnonzero(found.minimal).tolist())
    np.testing.assert_allclose(scores[chosen], found.score, rtol=1e-12, atol=1e-12 * scale)


def test_very_different_sizes_keep_the_smallest() -> None:
    """In floats 1e200 would swallow the 1e-200 that decides."""
    edges = np.array([[0, 1]])
    assert mincut.mode(np.array([-1e200, -1e-200]), edges, 1e200).minimal.tolist() == [False, False]
    assert mincut.mode(np.array([-1e200, 1e-200]), edges, 1e200).maximal.tolist() == [True, True]
    assert mincut.mode(np.array([-1e200, 1e-200]), edges, 1e200).minimal.tolist() == [False, True]


def test_no_coupling_is_the_independent_threshold() -> None:
    found = mincut.mode(np.array([1.0, 0.0, -1.0]), np.array([[0, 1], [1, 2]]), 0.0)
    assert found.minimal.tolist() == [True, False, False]
    assert found.maximal.tolist() == [True, True, False]


def test_one_table_and_none() -> None:
    empty = np.zeros((0, 2), dtype=np.int64)
    assert mincut.mode(np.array([2.5]), empty, 1.0).score == 2.5
    assert mincut.mode(np.zeros(0), empty, 1.0).score == 0.0


def test_repeated_and_reversed_edges_add_up() -> None:
    found = mincut.mode(np.array([-1.0, -1.5]), np.array([[0, 1], [1, 0], [0, 1]]), 1.0)
    assert found.minimal.tolist() == [True, True]
    assert found.score == 0.5


def test_wrong_flow_breaks_the_certificate(monkeypatch: pytest.MonkeyPatch) -> None:
    exact = mincut.boykov_kolmogorov

    def truncated(network: DiGraph, source: int, sink: int) -> DiGraph:
        residual = exact(network, source, sink, cutoff=1)
        residual.graph["flow_value"] = 1
        return residual

    monkeypatch.setattr(mincut, "boykov_kolmogorov", truncated)
    with pytest.raises(ArithmeticError, match="not the minimum"):
        mincut.mode(np.array([2.0, -1.0, 2.0, -1.0]), np.array([[0, 1], [2, 3]]), 1.0)


@pytest.mark.parametrize(
    ("unary", "edges", "coupling", "message"),
    [
        ([0.0, 0.0], [[0, 1]], -0.5, "coupling=-0.5 < 0: the minimum cut needs coupling >= 0; use elimination"),
        ([0.0, 0.0], [[0, 1]], np.inf, "coupling=inf: finite values"),
        ([0.0, 0.0], [[0, 1]], np.nan, "coupling=nan: finite values"),
        ([0.0, 0.0], [[0, 1]], np.ones(2), "one for each of the 1 edges"),
        ([0.0, np.nan], [[0, 1]], 1.0, "weights hold nan"),
        ([0.0, 2e300], [[0, 1]], 1.0, "or inf to force"),
        ([0.0, 0.0], [[0, 2]], 1.0, "edges hold table 2"),
        ([0.0, 0.0], [[1, 1]], 1.0, "joins? a table to itself"),
    ],
)
def test_invalid_problem_is_refused(unary: list[float], edges: list[list[int]], coupling: float, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        mincut.mode(np.array(unary), np.array(edges), coupling)


def test_invalid_forced_tables_and_type_are_refused() -> None:
    edges = np.array([[0, 1]])
    with pytest.raises(ValueError, match="forced in and out"):
        mincut.minimise_cut(np.zeros(2), edges, 1.0, forced_in=[0], forced_out=[0])
    with pytest.raises(ValueError, match="forced tables"):
        mincut.minimise_cut(np.zeros(2), edges, 1.0, forced_in=[2])
    with pytest.raises(ValueError, match="float64 only"):
        mincut.mode(np.zeros(2, dtype=np.float32), edges, 1.0)
