"""Derivatives of each database's log likelihood against cumulants by brute force and differences."""

import differences
import jax
import jax.numpy as jnp
import numpy as np
import oracles
import pytest

from bayeslink.inference.elimination import log_partition
from bayeslink.inference.expansion import expand, random_derivatives
from bayeslink.model.batch import log_likelihood_by_database

INTERCEPT = np.array([-0.5, 0.2, -1.0])
SLOPES = np.array([0.9, -0.3])
COUPLING = np.array([0.6, -0.4, 1.2])
BOTH = (0, -1)


@pytest.fixture(scope="module")
def likelihood(batch):
    return lambda intercept, slopes, coupling: log_likelihood_by_database(
        batch, intercept, slopes, coupling, log_partition
    )


def jitted(function, likelihood, *held):
    return jax.jit(lambda intercept, slopes, coupling: function(likelihood, intercept, slopes, coupling, *held))


@pytest.fixture(scope="module")
def expansion(likelihood):
    return jitted(expand, likelihood, BOTH, True)(jnp.array(INTERCEPT), jnp.array(SLOPES), jnp.array(COUPLING))


def exact_rows(world, shift=(0.0, 0.0, 0.0, 0.0)) -> np.ndarray:
    """l, dl/dalpha, dl/dbeta, d2l/dalpha2, d2l/dalpha dbeta, d2l/dbeta2 of each database, by cumulants."""
    rows = []
    for item, alpha, beta in zip(world, INTERCEPT + shift[0], COUPLING + shift[3], strict=True):
        total = np.zeros(6)
        for values, gold in zip(item.values.tolist(), item.gold.tolist(), strict=True):
            unary = oracles.unary_log_odds(values, float(alpha), [SLOPES[0] + shift[1], SLOPES[1] + shift[2]])
            exact = oracles.distribution(unary, item.edges, float(beta))
            chosen = tuple(map(int, gold))
            size, pairs = oracles.expected_size(exact), oracles.expected_pairs(exact, item.edges)
            joined = oracles.expectation(
                exact, lambda x, e=item.edges, mean=pairs: (oracles.num_joined_pairs(x, e) - mean) ** 2
            )
            total += [
                np.log(exact[chosen]),
                sum(chosen) - size,
                oracles.num_joined_pairs(chosen, item.edges) - pairs,
                -oracles.variance_size(exact),
                -oracles.covariance_size_pairs(exact, item.edges),
                -joined,
            ]
        rows.append(total)
    return np.array(rows)


def test_random_derivatives_are_cumulants(world, likelihood):
    found = jitted(random_derivatives, likelihood, BOTH)(jnp.array(INTERCEPT), jnp.array(SLOPES), jnp.array(COUPLING))
    np.testing.assert_allclose(found, exact_rows(world), rtol=1e-9, atol=1e-10)


@pytest.mark.parametrize(("random", "rows"), [((), [0]), ((0,), [0, 1, 3]), ((-1,), [0, 2, 5])])
def test_fewer_random_coordinates_give_fewer_rows(world, likelihood, random, rows):
    found = jitted(random_derivatives, likelihood, random)(jnp.array(INTERCEPT), jnp.array(SLOPES), jnp.array(COUPLING))
    np.testing.assert_allclose(found, exact_rows(world)[:, rows], rtol=1e-9, atol=1e-10)


def test_slopes_equal_finite_differences(world, expansion):
    np.testing.assert_allclose(expansion.value, exact_rows(world), rtol=1e-9, atol=1e-10)
    expected = differences.gradient(lambda shift: exact_rows(world, shift), np.zeros(4))
    # Fourth-order differences with step 1e-3 round at about 1e-11.
    np.testing.assert_allclose(expansion.slope, np.moveaxis(expected, 0, 2), atol=1e-8)


def test_curvatures_equal_finite_differences(likelihood, expansion):
    expanded = jitted(expand, likelihood, (), True)

    def slopes(shift: np.ndarray) -> np.ndarray:
        point = jnp.array(INTERCEPT + shift[0]), jnp.array(SLOPES + shift[1:3]), jnp.array(COUPLING + shift[3])
        return np.asarray(expanded(*point).slope)

    expected = differences.gradient(slopes, np.zeros(4))
    found = np.asarray(expansion.curvature)[:, :1]
    np.testing.assert_allclose(found, np.moveaxis(expected, 0, 3), atol=1e-8)
    np.testing.assert_allclose(found[:, 0, 0, 0], np.asarray(expansion.value)[:, 3], rtol=1e-10)
    # The second derivatives of the first-order rows are third derivatives of l: slopes of the second-order rows.
    both = np.asarray(expansion.curvature)
    np.testing.assert_allclose(both[:, 1, 0], np.asarray(expansion.slope)[:, 3], rtol=1e-9, atol=1e-10)
    np.testing.assert_allclose(both[:, 2, 3], np.asarray(expansion.slope)[:, 5], rtol=1e-9, atol=1e-10)


def test_fourth_derivatives_shrink_the_error_as_a_cube(world, expansion):
    direction = np.array([0.3, -0.2, 0.4, 0.2])
    errors = []
    for factor in (0.1, 0.05):
        shift = factor * direction
        found = expansion.at(jnp.broadcast_to(jnp.array(shift), (3, 4)))
        errors.append(np.abs(np.asarray(found) - exact_rows(world, shift)).max(axis=0))
    # The remainder is cubic: half the step, an eighth of it, up to the next order.
    np.testing.assert_allclose(errors[0] / errors[1], 8.0, rtol=0.15)


def test_a_held_coupling_has_no_derivatives(likelihood):
    found = jitted(expand, likelihood, (0,), False)(jnp.array(INTERCEPT), jnp.array(SLOPES), jnp.zeros(3))
    assert (found.slope[..., -1] == 0).all()
    assert (found.curvature[..., -1, :] == 0).all()
    assert (found.slope[..., 0] != 0).any()
