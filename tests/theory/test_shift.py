"""Proposition 3 against moments summed in plain Python, and derivatives against finite differences."""

import jax.numpy as jnp
import numpy as np
import pytest
from brute_force import World, edge_array, slowly_checked, worlds
from hypothesis import example, given

from bayeslink.inference import elimination, enumeration
from bayeslink.theory.shift import compensating_intercept, compensating_slope, mean_shift_slope, size_moments

EDGES = [(0, 1), (1, 2), (2, 3), (0, 3)]


def evidence(seed: int = 0, num_questions: int = 3) -> np.ndarray:
    """Log-odds of five tables, the last one isolated."""
    return np.random.default_rng(seed).normal(-0.5, 1.5, size=(num_questions, 5))


@slowly_checked
@given(world=worlds(lowest=-3, max_tables=6))
@example(world=World([0.0, 0.0, 0.0], [(0, 1)], [0.0], 0))
def test_moments_equal_the_sums_over_subsets(world: World) -> None:
    unary, edges, _ = world.arrays
    coupling = np.array(world.coupling)
    mean, variance, covariance, _ = world.moments()
    for solver in (enumeration, elimination):
        plan = solver.plan(edges, len(unary))
        found = size_moments(jnp.array(unary), plan, coupling, solver.log_partition)
        np.testing.assert_allclose(found, (mean, variance, covariance), rtol=1e-10, atol=1e-12)


@slowly_checked
@given(world=worlds(max_tables=6))
def test_size_grows_with_a_positive_coupling_if_there_is_an_edge(world: World) -> None:
    unary, edges, _ = world.arrays
    plan = enumeration.plan(edges, len(unary))
    slope = float(mean_shift_slope(jnp.array(unary), plan, np.array(world.coupling), enumeration.log_partition))
    assert slope > 0 if len(edges) else slope == 0


def test_covariance_can_be_negative_for_a_negative_coupling() -> None:
    """The sign needs coupling >= 0: a hub that keeps out five leaves."""
    world = World([9.0] + [2.0] * 5, [(0, leaf) for leaf in range(1, 6)], [-3.0] * 5, 0)
    plan = elimination.plan(edge_array(world.edges), 6)
    slope = mean_shift_slope(jnp.array(world.unary), plan, -3.0)
    np.testing.assert_allclose(slope, world.moments()[2], rtol=1e-10)
    assert slope < 0


def test_slope_of_the_mean_is_its_derivative_in_the_coupling() -> None:
    unary, plan, h = jnp.array(evidence()), elimination.plan(edge_array(EDGES), 5), 1e-5
    above, below = (elimination.marginals(unary, plan, 0.6 + s).sum(axis=-1) for s in (h, -h))
    np.testing.assert_allclose(mean_shift_slope(unary, plan, 0.6), (above - below) / (2 * h), rtol=1e-6)


def test_intercept_path_keeps_the_expected_number_of_tables() -> None:
    scores, couplings = evidence(), np.array([-1.0, 0.0, 0.5, 1.0, 3.0, 8.0])
    path = compensating_intercept(jnp.array(scores), elimination.plan(edge_array(EDGES), 5), couplings, 7.0)
    for alpha, beta in zip(path.intercept, couplings, strict=True):
        rows = [World((row + alpha).tolist(), EDGES, [float(beta)] * 4, 0) for row in scores]
        np.testing.assert_allclose(sum(row.moments()[0] for row in rows), 7.0, rtol=1e-8)
    assert (np.diff(path.intercept[1:]) < 0).all()
    assert (path.slope[1:] < 0).all()


def test_compensating_slope_is_the_derivative_of_the_path() -> None:
    scores, plan, h = jnp.array(evidence(1)), elimination.plan(edge_array(EDGES), 5), 1e-4
    path = compensating_intercept(scores, plan, np.array([0.7 - h, 0.7, 0.7 + h]), 6.0)
    difference = (path.intercept[2] - path.intercept[0]) / (2 * h)
    slope = compensating_slope(scores + path.intercept[1], plan, 0.7)
    np.testing.assert_allclose(path.slope[1], slope, rtol=1e-10)
    np.testing.assert_allclose(difference, slope, rtol=1e-6)


def test_without_edges_nothing_shifts() -> None:
    scores, plan = jnp.array(evidence()), enumeration.plan(edge_array([]), 5)
    path = compensating_intercept(scores, plan, np.array([0.0, 2.0]), 6.0, enumeration.log_partition)
    assert path.intercept[0] == path.intercept[1]
    assert (path.slope == 0).all()


@pytest.mark.parametrize("num_relevant", [1e-4, 14.9999])
def test_nearly_empty_and_nearly_full_targets_are_solved(num_relevant: float) -> None:
    scores, plan = jnp.array(evidence()), elimination.plan(edge_array(EDGES), 5)
    path = compensating_intercept(scores, plan, np.array([0.0, 20.0]), num_relevant)
    moments = size_moments(scores + path.intercept[1], plan, 20.0)
    np.testing.assert_allclose(moments.mean.sum(), num_relevant, rtol=1e-4 if num_relevant < 1 else 1e-8)


@pytest.mark.parametrize("num_relevant", [0.0, 15.0])
def test_target_without_a_finite_intercept_is_refused(num_relevant: float) -> None:
    with pytest.raises(ValueError, match="the intercept is infinite"):
        compensating_intercept(
            jnp.array(evidence()), elimination.plan(edge_array(EDGES), 5), np.array([0.5]), num_relevant
        )
