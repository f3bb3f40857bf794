"""The table of two halves against the average of listed distributions: any graph, any size of the parameters."""

import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import few, graphs
from worlds import edge_array

from bayeslink.inference import enumeration, halves
from bayeslink.inference.posterior import DatabaseDraws
from bayeslink.model.autologistic import Support


def listed(values, edges, draws, gold, support):
    """The same three results from every draw's list of subsets."""
    plan = enumeration.plan(edges, values.shape[1])
    tables, empties, scores = [], [], []
    for place in range(len(draws.intercept)):
        unary = draws.intercept[place] + values @ draws.slopes[place]
        found = np.array(enumeration.log_probabilities(jnp.asarray(unary), plan, jnp.asarray(draws.coupling[place])))
        empties.append(np.exp(found[:, 0]))
        if support is Support.NON_EMPTY:
            found[:, 0] = -np.inf
            found -= np.logaddexp.reduce(found, axis=1, keepdims=True)
        tables.append(np.exp(found))
        scores.append(found[np.arange(len(gold)), gold])
    return np.mean(tables, axis=0), np.mean(empties, axis=0), np.logaddexp.reduce(scores, axis=0) - np.log(len(scores))


@few
@given(graphs(), st.integers(0, 2**16), st.sampled_from([0.1, 3.0, 300.0]), st.booleans(), st.sampled_from(list(Support)))
def test_the_table_of_any_graph(graph, seed, scale, by_edge, support):
    size, edges = graph
    rng = np.random.default_rng(seed)
    values = rng.normal(size=(3, size, 2))
    coupling = scale * rng.normal(size=(5, len(edges)) if by_edge else 5)
    draws = DatabaseDraws(scale * rng.normal(size=5), scale * rng.normal(size=(5, 2)), coupling)
    gold = rng.integers(1, 2**size, 3)
    plan, boundary = halves.plan(edges, size)
    found = halves.average(values, plan, draws, gold, boundary, support)
    for ours, exact in zip(found, listed(values, edges, draws, gold, support), strict=True):
        # Sums of hundreds of nats keep ten digits, not sixteen.
        np.testing.assert_allclose(np.asarray(ours), exact, rtol=1e-9, atol=1e-12)


def test_the_empty_set_has_no_log_score_where_it_is_excluded():
    edges = edge_array([(0, 1)])
    draws = DatabaseDraws(np.zeros(2), np.zeros((2, 1)), np.zeros(2))
    plan, boundary = halves.plan(edges, 2)
    for support, score in ((Support.ALL, np.log(0.25)), (Support.NON_EMPTY, -np.inf)):
        found = halves.average(np.zeros((1, 2, 1)), plan, draws, np.array([0]), boundary, support)
        assert np.asarray(found[2]) == pytest.approx(score)


def test_no_edge_joins_the_inside_with_the_rest_and_a_tree_is_cut_at_one_table():
    path = edge_array([(first, first + 1) for first in range(12)])
    plan, boundary = halves.plan(path, 13)
    assert boundary == 1
    assert len(plan.left_states) + len(plan.right_states) == 2**7 + 2**7
    assert sorted([*plan.left_chosen, *plan.right_chosen]) == list(range(12))
    for ends, tables, chosen in (
        (plan.left_edges, plan.left, plan.left_chosen),
        (plan.right_edges, plan.right, plan.right_chosen),
    ):
        np.testing.assert_array_equal(tables[ends], path[chosen])
    complete = edge_array([(first, second) for second in range(6) for first in range(second)])
    plan, boundary = halves.plan(complete, 6)
    assert len(plan.left_chosen) + len(plan.right_chosen) == 15


def test_too_many_tables_are_refused():
    with pytest.raises(ValueError, match="num_tables=16"):
        halves.plan(edge_array([]), 16)
