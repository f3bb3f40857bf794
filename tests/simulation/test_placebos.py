"""Placebo graphs against the list of every graph: which exist, how many, and how often each is drawn."""

from itertools import combinations, permutations

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from worlds import CYCLE, ISOLATED, PATH, STAR, edge_array, simulate

from bayeslink.evidence.channel import covariates
from bayeslink.simulation import placebos as module
from bayeslink.simulation.placebos import Placebo, has_placebo, num_distinct, placebo, placebo_sets, with_edges

Graph = frozenset[frozenset[int]]
KINDS = list(Placebo)
FAN = ((0, 1), (0, 2), (0, 3), (1, 2), (3, 4))


def graph_of(edges) -> Graph:
    return frozenset(frozenset(pair) for pair in np.asarray(edges).tolist())


def degrees_of(graph: Graph, num_tables: int) -> list[int]:
    return [sum(table in pair for pair in graph) for table in range(num_tables)]


def every_placebo(kind: Placebo, edges, num_tables: int) -> set[Graph]:
    """All graphs of a kind but the real one, from all subsets of pairs and all permutations."""
    real = graph_of(edge_array(edges))
    every = [frozenset(pair) for pair in combinations(range(num_tables), 2)]
    same_size = {frozenset(chosen) for chosen in combinations(every, len(real))}
    if kind is Placebo.REWIRED:
        wanted = degrees_of(real, num_tables)
        found = {graph for graph in same_size if degrees_of(graph, num_tables) == wanted}
    elif kind is Placebo.RANDOM:
        found = same_size
    else:
        found = {
            frozenset(frozenset(name[table] for table in pair) for pair in real)
            for name in permutations(range(num_tables))
        }
    return found - {real}


@pytest.mark.parametrize("kind", KINDS)
@given(
    num_tables=st.integers(1, 5), chosen=st.lists(st.integers(0, 9), max_size=7, unique=True), seed=st.integers(0, 99)
)
def test_a_placebo_is_one_of_the_list_and_the_list_is_counted(kind, num_tables, chosen, seed):
    every = list(combinations(range(num_tables), 2))
    edges = edge_array([every[place] for place in chosen if place < len(every)])
    listed = every_placebo(kind, edges, num_tables)
    assert num_distinct(kind, edges, num_tables) == (len(listed), True)
    assert has_placebo(kind, edges, num_tables) == bool(listed)
    if not listed:
        with pytest.raises(ValueError, match="leave the database out"):
            placebo(np.random.default_rng(seed), kind, edges, num_tables)
        return
    found = placebo(np.random.default_rng(seed), kind, edges, num_tables)
    assert graph_of(found) in listed
    assert found.shape == edges.shape
    assert found.tolist() == sorted(map(sorted, found.tolist()))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("edges", "num_tables"), [(PATH, 4), (FAN, 5), (((0, 1), (2, 3)), 4)])
def test_every_placebo_is_drawn_equally_often(kind, edges, num_tables):
    listed = sorted(map(sorted, ([sorted(pair) for pair in graph] for graph in every_placebo(kind, edges, num_tables))))
    rng, size = np.random.default_rng(1), 1000
    drawn = [placebo(rng, kind, edge_array(edges), num_tables).tolist() for _ in range(size)]
    share = 1 / len(listed)
    error = np.sqrt(share * (1 - share) / size)
    for graph in listed:
        assert abs(drawn.count(graph) / size - share) <= 4 * error


def test_stars_and_cliques_have_no_rewiring_and_a_star_of_three_two_relabellings():
    assert not has_placebo(Placebo.REWIRED, edge_array(STAR), 4)
    assert not has_placebo(Placebo.RANDOM, edge_array([(0, 1)]), 2)
    assert not has_placebo(Placebo.RELABELLED, edge_array([]), 3)
    assert num_distinct(Placebo.RELABELLED, edge_array([(0, 1), (0, 2)]), 3) == (2, True)
    # Labelled trees: 7! / 6! stars of 7 tables, 7! / 2 paths.
    assert num_distinct(Placebo.RELABELLED, edge_array([(3, k) for k in range(7) if k != 3]), 7) == (6, True)
    assert num_distinct(Placebo.RELABELLED, edge_array([(k, k + 1) for k in range(6)]), 7) == (2519, True)
    # 2-regular graphs on 6 tables: 60 six-cycles and 10 pairs of triangles.
    assert num_distinct(Placebo.REWIRED, edge_array([(k, (k + 1) % 6) for k in range(6)]), 6) == (69, True)


def test_rewirings_of_a_larger_graph_keep_every_degree():
    edges = edge_array(list(nx.gnm_random_graph(40, 55, seed=3).edges))
    found = placebo(np.random.default_rng(0), Placebo.REWIRED, edges, 40)
    assert degrees_of(graph_of(found), 40) == degrees_of(graph_of(edges), 40)
    # Well mixed: no more edges in common than some of what chance gives.
    assert len(graph_of(found) & graph_of(edges)) < 20


def test_beyond_the_limit_distinct_draws_are_counted(monkeypatch):
    monkeypatch.setattr(module, "MAX_COUNTED", 4)
    monkeypatch.setattr(module, "NUM_SAMPLES", 500)
    edges = edge_array([(0, 1), (1, 2), (2, 3), (3, 4)])
    for kind in (Placebo.REWIRED, Placebo.RELABELLED):
        assert num_distinct(kind, edges, 5) == (len(every_placebo(kind, edges, 5)), False)
    assert num_distinct(Placebo.REWIRED, edge_array([(0, 1), (0, 2), (0, 3), (0, 4)]), 5) == (0, True)


def test_evidence_on_another_graph_keeps_its_questions():
    world = simulate(0, 1, 5, shapes=(STAR,))[0]
    found = with_edges(world, edge_array(ISOLATED))
    assert found.values is world.values
    assert found.gold is world.gold
    np.testing.assert_array_equal(found.covariates, covariates(edge_array(ISOLATED), 4))
    assert found.edge_types.tolist() == [0]


@pytest.mark.parametrize("kind", KINDS)
def test_sets_are_distinct_and_all_of_them_come_where_few_exist(kind):
    world = simulate(0, 2, 3, shapes=(PATH, CYCLE))
    exist = np.prod([len(every_placebo(kind, item.edges, 4)) for item in world])
    for wanted in (2, 400):
        found = list(placebo_sets(np.random.default_rng(0), kind, world, wanted))
        assert len(found) == min(wanted, exist)
        assert len({tuple(graph_of(item.edges) for item in one) for one in found}) == len(found)
    again = list(placebo_sets(np.random.default_rng(0), kind, world, 2))
    for one, other in zip(again, found, strict=False):
        assert [item.edges.tolist() for item in one] == [item.edges.tolist() for item in other]
        assert all(graph_of(item.edges) != graph_of(real.edges) for item, real in zip(one, world, strict=True))


@pytest.mark.parametrize("call", [has_placebo, num_distinct])
def test_graphs_that_are_not_simple_are_refused(call):
    for edges, text in (
        ([(0, 1), (1, 0)], "give a simple graph"),
        ([(1, 1)], "give a simple graph"),
        ([(0, 3)], r"outside 0\.\.2"),
    ):
        with pytest.raises(ValueError, match=text):
            call(Placebo.RANDOM, edge_array(edges), 3)


def test_a_database_without_a_placebo_is_refused():
    with pytest.raises(ValueError, match=r"no placebo of .*db0.* exists"):
        list(placebo_sets(np.random.default_rng(0), Placebo.REWIRED, simulate(0, 1, 2, shapes=(STAR,)), 3))
