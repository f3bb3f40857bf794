"""Connectors against a search over all paths and all supersets, components, ties and refusals."""

import itertools

import networkx as nx
import numpy as np
import oracles
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import few, graphs
from worlds import edge_array

from bayeslink.baselines import connectors
from bayeslink.baselines.connectors import expand, expand_along, join_by_shortest_paths, join_by_steiner_tree, seeds

DIAMOND = np.array([[0, 2], [1, 3], [0, 1], [2, 3], [4, 5]])
"""A cycle of four tables, 0-1-3-2-0, and an edge apart."""

NO_EDGES = np.zeros((0, 2), dtype=np.int64)


def rows(*sets: set[int], num_tables: int) -> np.ndarray:
    return np.array([[table in chosen for table in range(num_tables)] for chosen in sets]).reshape(-1, num_tables)


def as_sets(chosen: np.ndarray) -> list[set[int]]:
    return [set(np.flatnonzero(row).tolist()) for row in chosen]


def all_paths(num_tables: int, edges: np.ndarray, first: int, last: int) -> list[tuple[int, ...]]:
    """Every path without repeats, by trying orders of tables."""
    joined = {frozenset(pair) for pair in edges.tolist()}
    others = [table for table in range(num_tables) if table not in (first, last)]
    tried = (
        (first, *middle, last) for size in range(len(others) + 1) for middle in itertools.permutations(others, size)
    )
    return [path for path in tried if all(frozenset(pair) in joined for pair in itertools.pairwise(path))]


def components(num_tables: int, edges: np.ndarray) -> list[set[int]]:
    found = [{table} for table in range(num_tables)]
    for first, second in edges.tolist():
        one = next(part for part in found if first in part)
        other = next(part for part in found if second in part)
        if one is not other:
            found.remove(other)
            one |= other
    return found


@few
@given(graphs(2, 6), st.sets(st.integers(0, 5), min_size=1))
def test_shortest_paths_are_the_first_of_the_shortest(graph, ends):
    num_tables, edges = graph
    ends = sorted(end for end in ends if end < num_tables) or [0]
    expected = set(ends)
    for first, last in itertools.combinations(ends, 2):
        found = all_paths(num_tables, edges, first, last)
        expected |= set(min(found, key=lambda path: (len(path), path))) if found else set()
    assert as_sets(join_by_shortest_paths(rows(set(ends), num_tables=num_tables), edges)) == [expected]


@few
@given(graphs(2, 7), st.sets(st.integers(0, 6), min_size=1))
def test_steiner_is_the_smallest_superset_that_connects(graph, ends):
    num_tables, edges = graph
    ends = {end for end in ends if end < num_tables} or {0}
    (found,) = as_sets(join_by_steiner_tree(rows(ends, num_tables=num_tables), edges))
    expected: set[int] = set()
    for part in components(num_tables, edges):
        if own := ends & part:
            supersets = [
                {table for table, bit in enumerate(selection) if bit}
                for selection in oracles.subsets(num_tables)
                if all(selection[end] for end in own)
                and all(table in part for table, bit in enumerate(selection) if bit)
                and oracles.is_connected(selection, edges.tolist())
            ]
            fewest = min(len(chosen) for chosen in supersets)
            expected |= set(min(sorted(chosen - own) for chosen in supersets if len(chosen) == fewest)) | own
    assert found == expected


def test_steiner_is_no_larger_than_the_known_approximation():
    rng = np.random.default_rng(0)
    smaller = 0
    for seed in range(30):
        graph = nx.gnm_random_graph(10, 14, seed=seed)
        part = sorted(max(nx.connected_components(graph), key=len))
        ends = set(rng.choice(part, 4, replace=False).tolist())
        other = nx.algorithms.approximation.steiner_tree(graph.subgraph(part), sorted(ends))
        edges = np.array(graph.edges)
        (exact,) = as_sets(join_by_steiner_tree(rows(ends, num_tables=10), edges))
        (paths,) = as_sets(join_by_shortest_paths(rows(ends, num_tables=10), edges))
        assert len(exact) <= min(len(other), len(paths))
        assert len(other) - 1 <= 2 * (len(exact) - 1)
        smaller += len(exact) < len(paths)
    assert smaller > 0


def test_the_forms_differ_where_they_should():
    # Three ends of a star, and a cycle round them: the star's centre serves all three, pairs go round as well.
    edges = np.array([[0, 3], [1, 4], [2, 5], [3, 1], [4, 2], [5, 0], [6, 0], [6, 1], [6, 2]])
    chosen = rows({0, 1, 2}, num_tables=7)
    assert as_sets(join_by_steiner_tree(chosen, edges)) == [{0, 1, 2, 6}]
    assert as_sets(join_by_shortest_paths(chosen, edges)) == [{0, 1, 2, 3, 4, 5}]
    assert as_sets(expand(chosen, edges)) == [set(range(7))]


@pytest.mark.parametrize("join", [join_by_shortest_paths, join_by_steiner_tree])
def test_ties_go_to_the_first_and_components_stay_apart(join):
    chosen = rows({0, 3}, {1, 2}, {0, 3, 4}, {4, 5}, {4}, set(), num_tables=6)
    expected = [{0, 1, 3}, {0, 1, 2}, {0, 1, 3, 4}, {4, 5}, {4}, set()]
    assert as_sets(join(chosen, DIAMOND)) == expected
    assert as_sets(join(chosen, DIAMOND[::-1, ::-1])) == expected
    assert as_sets(join(chosen[::-1], DIAMOND)) == expected[::-1]


@pytest.mark.parametrize("rule", [join_by_shortest_paths, join_by_steiner_tree, expand])
def test_without_edges_nothing_is_added(rule):
    chosen = rows({0, 2}, set(), num_tables=3)
    np.testing.assert_array_equal(rule(chosen, NO_EDGES), chosen)
    assert rule(np.zeros((0, 3), dtype=bool), NO_EDGES).shape == (0, 3)


def test_expansion_goes_one_hop():
    assert as_sets(expand(rows({0}, {4}, {1, 2}, num_tables=6), DIAMOND)) == [{0, 1, 2}, {4, 5}, {0, 1, 2, 3}]


@pytest.mark.parametrize("rule", [join_by_shortest_paths, join_by_steiner_tree, expand])
@pytest.mark.parametrize("bad", [3, -1])
def test_edges_of_another_graph_are_refused(rule, bad):
    with pytest.raises(ValueError, match=r"outside 0\.\.2"):
        rule(rows({0}, num_tables=3), np.array([[0, bad]]))


def test_steiner_refuses_what_it_cannot_search(monkeypatch):
    monkeypatch.setattr(connectors, "MAX_SETS", 5)
    edges = np.array([(t, t + 1) for t in range(9)])
    assert as_sets(join_by_steiner_tree(rows({0, 1}, num_tables=10), edges)) == [{0, 1}]
    with pytest.raises(ValueError, match="more than 5 sets; use join_by_shortest_paths"):
        join_by_steiner_tree(rows({0, 9}, num_tables=10), edges)


def test_seeds_are_the_picks_or_the_single_best_table():
    probability = np.array([[0.6, 0.5, 0.9], [0.5, 0.2, 0.1], [0.3, 0.4, 0.4]])
    assert as_sets(seeds(probability)) == [{0, 2}, {0}, {1}]
    assert as_sets(seeds(probability, 0.15)) == [{0, 1, 2}, {0, 1}, {0, 1, 2}]
    assert seeds(np.zeros((0, 2))).shape == (0, 2)
    with pytest.raises(ValueError, match=r"cut=1\.5"):
        seeds(probability, 1.5)


def test_expansion_along_keys_follows_their_direction():
    # 0 -> 1 -> 2 and 3 -> 1; 4 references itself.
    keys = edge_array([(0, 1), (1, 2), (3, 1), (4, 4)])
    chosen = np.array([[False, True, False, False, False], [True, False, False, False, True], [False] * 5])
    outward = expand_along(chosen, keys)
    inward = expand_along(chosen, keys, inward=True)
    assert [np.flatnonzero(row).tolist() for row in outward] == [[1, 2], [0, 1, 4], []]
    assert [np.flatnonzero(row).tolist() for row in inward] == [[0, 1, 3], [0, 4], []]
    np.testing.assert_array_equal(outward | inward, expand(chosen, keys))
    with pytest.raises(ValueError, match="outside"):
        expand_along(chosen, edge_array([(0, 5)]))
