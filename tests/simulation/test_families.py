"""Families of graphs: shapes by their definition, random ones by the frequencies that they must have."""

import itertools
import math
from collections import Counter

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from worlds import make_evidence

from bayeslink.simulation.families import Family, draw_graph, max_edges, real_graphs

GIVEN = (((0, 1), (1, 2)), ((0, 2),))


def graph_of(edges: np.ndarray, num_tables: int) -> nx.Graph:
    graph = nx.Graph(edges.tolist())
    graph.add_nodes_from(range(num_tables))
    return graph


@pytest.mark.parametrize("family", Family)
@given(num_tables=st.integers(3, 9), seed=st.integers(0, 10_000))
def test_edges_are_distinct_pairs_of_tables_and_not_too_many(family, num_tables, seed):
    edges = draw_graph(np.random.default_rng(seed), family, num_tables, GIVEN)
    assert edges.dtype == np.int64
    assert len({frozenset(pair) for pair in edges.tolist()}) == len(edges) <= max_edges(num_tables)
    assert (edges[:, 0] != edges[:, 1]).all()
    assert edges.min() >= 0
    assert edges.max() < num_tables
    graph = graph_of(edges, num_tables)
    if family in (Family.TREE, Family.STAR, Family.SNOWFLAKE):
        assert nx.is_tree(graph)
    if family is Family.STAR:
        assert graph.degree[0] == num_tables - 1
    if family is Family.SNOWFLAKE:
        assert graph.degree[0] == num_tables // 2
        assert nx.eccentricity(graph, 0) == 2
    if family is Family.ERDOS_RENYI:
        assert len(edges) == num_tables
    if family is Family.SCALE_FREE:
        assert len(edges) == 2 * num_tables - 3
        assert min(degree for _, degree in graph.degree) >= 2 or num_tables == 3


def test_erdos_renyi_takes_every_set_of_pairs_equally_often():
    rng = np.random.default_rng(0)
    num_draws = 1500
    pairs = list(itertools.combinations(range(4), 2))
    counts = Counter(tuple(map(tuple, draw_graph(rng, Family.ERDOS_RENYI, 4).tolist())) for _ in range(num_draws))
    every = list(itertools.combinations(pairs, 4))
    assert set(counts) == set(every)
    share = 1 / len(every)
    for chosen in every:
        assert abs(counts[chosen] - num_draws * share) < 4.5 * math.sqrt(num_draws * share * (1 - share))


def test_scale_free_tables_join_in_proportion_to_edges():
    """The fifth table joins two of four with 3, 3, 2 and 2 of 10 edge ends: how many of the two big ones."""
    rng = np.random.default_rng(1)
    num_draws, big = 1000, 0
    for _ in range(num_draws):
        edges = draw_graph(rng, Family.SCALE_FREE, 5)
        four = graph_of(edges[(edges < 4).all(axis=1)], 4)
        assert sorted(degree for _, degree in four.degree) == [2, 2, 3, 3]
        big += sum(four.degree[int(near)] == 3 for near, table in edges.tolist() if table == 4)
    both = 2 * 0.3 * 3 / 7
    one = 2 * 0.3 * 4 / 7 + 2 * 0.2 * 6 / 8
    mean = 2 * both + one
    assert abs(big / num_draws - mean) < 4 * math.sqrt((4 * both + one - mean**2) / num_draws)


def test_real_graphs_are_distinct_and_of_the_size_asked_for():
    def database(edges, num_tables=4):
        return make_evidence(np.zeros((1, num_tables, 1)), np.array(edges, dtype=np.int64).reshape(-1, 2), None)

    full = list(itertools.combinations(range(5), 2))
    found = real_graphs(
        [
            database([(1, 0), (2, 3)]),
            database([(2, 3), (0, 1)]),
            database([(0, 2), (1, 3)]),
            database([(0, 3)]),
            database([]),
            database([(0, 1)], 3),
            database(full, 5),
        ],
        4,
    )
    assert found == (((0, 1), (2, 3)), ((0, 3),))
    assert real_graphs([database(full[:10], 5)], 5) == (tuple(full[:10]),)
    seven = list(itertools.combinations(range(7), 2))
    assert real_graphs([database(seven[:15], 7)], 7) == ()
    rng = np.random.default_rng(2)
    drawn = {tuple(map(tuple, draw_graph(rng, Family.REAL, 4, found).tolist())) for _ in range(50)}
    assert drawn == set(found)


def test_what_cannot_be_drawn_is_refused():
    with pytest.raises(ValueError, match="num_tables=2: the families differ from 3 tables on"):
        draw_graph(np.random.default_rng(0), Family.TREE, 2)
    with pytest.raises(ValueError, match="graphs is empty: family=real needs graphs of 5 tables"):
        draw_graph(np.random.default_rng(0), Family.REAL, 5)
