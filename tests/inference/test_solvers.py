"""Both exact solvers through one door: `plan`, `log_partition` and `marginals` against brute force."""

import math

import jax
import jax.numpy as jnp
import numpy as np
import oracles
import pytest
from hypothesis import given
from strategies import Model, few, models

from bayeslink.inference import elimination, enumeration

SOLVERS = pytest.mark.parametrize("solver", [enumeration, elimination], ids=["enumeration", "elimination"])
RTOL = 1e-10
ATOL = 1e-13
"""Room for marginals near 0, whose oracle rounds at 1e-16 times the number of terms."""


def value_and_slopes(solver, model: Model):
    """Log Z and its gradients in the log-odds and in each edge's coupling."""
    plan = solver.plan(model.edges, model.num_tables)
    function = jax.jit(jax.value_and_grad(lambda a, b: solver.log_partition(a, plan, b), argnums=(0, 1)))
    value, slopes = function(jnp.array(model.unary), jnp.array(model.coupling))
    return float(value), *map(np.asarray, slopes)


@SOLVERS
@few
@given(model=models(max_tables=7))
def test_log_partition_and_its_gradient_equal_brute_force(solver, model: Model):
    value, by_unary, by_coupling = value_and_slopes(solver, model)
    exact = oracles.distribution(model.unary, model.edges, model.coupling)
    np.testing.assert_allclose(value, oracles.log_partition(model.unary, model.edges, model.coupling), rtol=RTOL)
    np.testing.assert_allclose(by_unary, oracles.marginals(exact), rtol=RTOL, atol=ATOL)
    np.testing.assert_allclose(by_coupling, oracles.pair_marginals(exact, model.edges), rtol=RTOL, atol=ATOL)
    assert by_coupling.sum() == pytest.approx(oracles.expected_pairs(exact, model.edges), rel=RTOL, abs=ATOL)


GRAPH = np.array([[0, 1], [2, 1], [0, 2], [4, 3], [3, 2]])
"""Six tables: a triangle with a tail, and table 5 alone."""
UNARY = np.array([[0.3, -1.0, 0.7, -2.0, 1.1, -0.4], [-3.0, 2.0, 0.0, 0.5, -0.5, 4.0]])
COUPLING = np.array([0.8, -1.5, 0.3, 2.0, -0.2])


@SOLVERS
def test_marginals_of_several_questions(solver):
    plan = solver.plan(GRAPH, 6)
    found = solver.marginals(jnp.array(UNARY), plan, jnp.array(COUPLING))
    expected = [oracles.marginals(oracles.distribution(row, GRAPH, COUPLING)) for row in UNARY]
    np.testing.assert_allclose(found, expected, rtol=RTOL)


@SOLVERS
@pytest.mark.parametrize("beta", [-1.3, 0.0, 0.9])
def test_one_coupling_for_all_edges(solver, beta: float):
    """D log Z / d beta = E[M], with a scalar that broadcasts."""
    plan = solver.plan(GRAPH, 6)
    value, slope = jax.value_and_grad(lambda b: solver.log_partition(jnp.array(UNARY[0]), plan, b))(jnp.array(beta))
    exact = oracles.distribution(UNARY[0], GRAPH, beta)
    assert value == pytest.approx(oracles.log_partition(UNARY[0], GRAPH, beta), rel=RTOL)
    assert slope == pytest.approx(oracles.expected_pairs(exact, GRAPH), rel=RTOL)


@SOLVERS
def test_gradients_equal_finite_differences(solver):
    plan = solver.plan(GRAPH, 6)
    function = jax.jit(lambda a, b: solver.log_partition(a, plan, b))
    by_unary, by_coupling = jax.grad(function, argnums=(0, 1))(jnp.array(UNARY[0]), jnp.array(COUPLING))
    for t, step in enumerate(1e-5 * np.eye(6)):
        rise = function(jnp.array(UNARY[0] + step), jnp.array(COUPLING)) - function(
            jnp.array(UNARY[0] - step), jnp.array(COUPLING)
        )
        # A central difference with step 1e-5 is good to about 1e-10 / 1e-5 of rounding.
        assert rise / 2e-5 == pytest.approx(float(by_unary[t]), abs=1e-9)
    for e, step in enumerate(1e-5 * np.eye(5)):
        rise = function(jnp.array(UNARY[0]), jnp.array(COUPLING + step)) - function(
            jnp.array(UNARY[0]), jnp.array(COUPLING - step)
        )
        assert rise / 2e-5 == pytest.approx(float(by_coupling[e]), abs=1e-9)


@SOLVERS
@pytest.mark.parametrize("coupling", [50.0, -50.0])
@pytest.mark.parametrize("log_odds", [1e5, -1e5, 0.0])
def test_extreme_values_stay_finite(solver, coupling: float, log_odds: float):
    unary = log_odds * np.array([1.0, -1.0, 1.0, 1.0, -1.0, 0.5])
    value, by_unary, by_coupling = value_and_slopes(solver, Model(6, GRAPH, unary, np.full(5, coupling)))
    exact = oracles.distribution(unary, GRAPH, coupling)
    assert value == pytest.approx(oracles.log_partition(unary, GRAPH, coupling), rel=RTOL)
    # Energies of 1e5 round at 1e-11, so probabilities do too.
    np.testing.assert_allclose(by_unary, oracles.marginals(exact), rtol=1e-9, atol=1e-11)
    np.testing.assert_allclose(by_coupling, oracles.pair_marginals(exact, GRAPH), rtol=1e-9, atol=1e-11)


@SOLVERS
def test_graph_without_edges_is_a_product(solver):
    unary = UNARY[1]
    value, by_unary, by_coupling = value_and_slopes(solver, Model(6, np.zeros((0, 2), dtype=int), unary, np.zeros(0)))
    assert value == pytest.approx(math.fsum(math.log1p(math.exp(a)) for a in unary), rel=RTOL)
    np.testing.assert_allclose(by_unary, [1 / (1 + math.exp(-a)) for a in unary], rtol=RTOL)
    assert by_coupling.shape == (0,)
    assert solver.log_partition(jnp.array(unary), solver.plan(np.zeros((0, 2), dtype=int), 6), 0.7) == pytest.approx(
        value, rel=RTOL
    )


@SOLVERS
def test_one_table(solver):
    plan = solver.plan(np.zeros((0, 2), dtype=int), 1)
    assert solver.log_partition(jnp.array([0.4]), plan, 1.0) == pytest.approx(math.log1p(math.exp(0.4)), rel=RTOL)
    assert solver.marginals(jnp.array([[0.4]]), plan, 1.0)[0, 0] == pytest.approx(1 / (1 + math.exp(-0.4)), rel=RTOL)


@SOLVERS
def test_float32_is_refused(solver):
    plan = solver.plan(GRAPH, 6)
    with pytest.raises(ValueError, match=r"unary has dtype float32: inference is float64 only; enable"):
        solver.log_partition(jnp.array(UNARY, dtype=jnp.float32), plan, 0.5)
