"""The marginal Laplace fit against differences, quadrature, scipy, scikit-learn and grids."""

import math
from dataclasses import replace

import differences
import jax.numpy as jnp
import numpy as np
import oracles
import pytest
from scipy.optimize import minimize
from sklearn.linear_model import LogisticRegression
from worlds import CYCLE, simulate

from bayeslink.inference import laplace as module
from bayeslink.inference.laplace import LaplaceFit, draw_effects, laplace, pack_population, unpack_population
from bayeslink.inference.packing import pack
from bayeslink.model.autologistic import Support
from bayeslink.model.hierarchy import Variant, population_sites
from bayeslink.model.priors import Priors

POINT = {"alpha": -0.3, "gamma": [0.7, -0.4], "beta": 0.5, "sigma_alpha": 0.6, "sigma_beta": 0.4}


def settings_of(variant: Variant, support: Support = Support.ALL):
    return module._Settings(variant, Priors(), support, population_sites(variant), 2)


def point_of(variant: Variant) -> np.ndarray:
    sites = population_sites(variant)
    return np.array(pack_population({site: jnp.array(POINT[site]) for site in sites}, sites))


def log_marginal(batch, phi: np.ndarray, variant: Variant):
    """Inner modes and log marginal posterior density at phi."""
    return module._inner(batch, jnp.array(phi), jnp.zeros((batch.num_databases, 2)), settings_of(variant))[:2]


def log_posterior(variant: Variant, world, phi: np.ndarray) -> float:
    """The oracle's log density where there are no effects, up to the density of u = v = 0."""
    named = unpack_population(jnp.array(phi), population_sites(variant), 2)
    sites = {site: np.asarray(value).tolist() for site, value in named.items()}
    zeros = [0.0] * len(world)
    return oracles.log_density(variant.value, world, sites, zeros, zeros) - 2 * len(world) * oracles.log_normal(0, 1)


def test_packing_of_the_population_round_trips():
    sites = population_sites(Variant.HIERARCHICAL)
    phi = point_of(Variant.HIERARCHICAL)
    np.testing.assert_allclose(phi, [-0.3, 0.7, -0.4, 0.5, math.log(0.6), math.log(0.4)], rtol=1e-12)
    named = unpack_population(jnp.array(phi), sites, 2)
    for site, value in POINT.items():
        np.testing.assert_allclose(named[site], value, rtol=1e-12)


@pytest.mark.parametrize("variant", [Variant.HIERARCHICAL, Variant.INDEPENDENT_HIERARCHICAL, Variant.UNPOOLED])
def test_gradient_and_hessian_equal_finite_differences(batch, variant: Variant):
    """Away from the mode, through the moving inner modes."""
    phi = point_of(variant)

    def value(point: np.ndarray) -> float:
        return float(log_marginal(batch, point, variant)[1])

    def slope(point: np.ndarray) -> np.ndarray:
        effects, _ = log_marginal(batch, point, variant)
        return np.asarray(module._outer(batch, jnp.array(point), effects, settings_of(variant))[1])

    effects, expected = log_marginal(batch, phi, variant)
    found, gradient, hessian = module._outer(batch, jnp.array(phi), effects, settings_of(variant))
    assert found == pytest.approx(float(expected), rel=1e-10)
    # Fourth-order differences with step 1e-3 are good to about 1e-9.
    np.testing.assert_allclose(gradient, differences.gradient(value, phi), rtol=1e-6, atol=1e-7)
    np.testing.assert_allclose(hessian, differences.gradient(slope, phi), rtol=1e-6, atol=1e-7)


def quadrature(world, sigma: float) -> float:
    """Log marginal posterior by Gauss-Hermite quadrature over (u, v), 16 x 16 nodes for each database."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(16)
    log_weights = np.log(weights / np.sqrt(2 * np.pi))
    sites = POINT | {"sigma_alpha": sigma, "sigma_beta": sigma}
    total = oracles.log_prior("hierarchical", sites) + 2 * math.log(sigma)
    for item in world:
        terms = []
        for u, log_u in zip(nodes.tolist(), log_weights.tolist(), strict=True):
            for v, log_v in zip(nodes.tolist(), log_weights.tolist(), strict=True):
                alpha, beta = oracles.database_parameters("hierarchical", sites, u, v)
                data = item.values.tolist(), item.gold.tolist(), item.edges.tolist()
                terms.append(log_u + log_v + oracles.log_likelihood(*data, alpha, sites["gamma"], beta))
        total += oracles.log_sum_exp(terms)
    return total


@pytest.mark.parametrize(("sigma", "tolerance"), [(0.05, 1e-4), (0.6, 0.06)])
def test_marginal_density_equals_quadrature(batch, world, sigma: float, tolerance: float):
    """The inner Laplace error is of order 1 / questions, 0.01 nats a database at 0.6, and vanishes with sigma."""
    phi = point_of(Variant.HIERARCHICAL)
    phi[-2:] = math.log(sigma)
    found = float(log_marginal(batch, phi, Variant.HIERARCHICAL)[1])
    assert found == pytest.approx(quadrature(world, sigma), abs=tolerance)


@pytest.mark.parametrize("variant", [Variant.INDEPENDENT, Variant.POOLED])
def test_without_effects_the_fit_is_the_posterior_mode(batch, world, variant: Variant):
    fit = laplace(batch, variant, Priors())
    objective = lambda phi: -log_posterior(variant, world, phi)  # noqa: E731
    # scipy has no derivatives here: its optimum is good to about the square root of its gradient error.
    best = minimize(objective, np.zeros(len(fit.mode)), method="BFGS", options={"gtol": 1e-4})
    np.testing.assert_allclose(fit.mode, best.x, atol=1e-4)
    np.testing.assert_allclose(differences.gradient(objective, fit.mode), 0, atol=1e-5)
    precision = differences.hessian(objective, fit.mode)
    np.testing.assert_allclose(fit.covariance, np.linalg.inv(precision), rtol=1e-6, atol=1e-8)
    size = len(fit.mode)
    evidence = -objective(fit.mode) + 0.5 * size * math.log(2 * math.pi) - 0.5 * np.linalg.slogdet(precision)[1]
    assert fit.log_marginal == pytest.approx(evidence, rel=1e-6)


def test_independent_equals_ridge_logistic_regression(batch, world):
    """Alpha ~ N(0, 2^2) is a unit-penalty coefficient of a column of twos."""
    fit = laplace(batch, Variant.INDEPENDENT, Priors())
    values = np.concatenate([item.values.reshape(-1, 2) for item in world])
    gold = np.concatenate([item.gold.reshape(-1) for item in world])
    columns = np.column_stack([np.full(len(values), 2.0), values])
    ridge = LogisticRegression(C=1.0, fit_intercept=False, solver="newton-cholesky", tol=1e-10).fit(columns, gold)
    np.testing.assert_allclose(fit.mode, ridge.coef_[0] * [2, 1, 1], rtol=1e-6)


def test_mode_is_a_maximum_of_the_marginal(batch):
    fit = laplace(batch, Variant.HIERARCHICAL, Priors())
    assert fit.gradient_norm < 1e-5
    best = float(log_marginal(batch, fit.mode, Variant.HIERARCHICAL)[1])
    for direction in 0.05 * np.eye(len(fit.mode)):
        for sign in (-1, 1):
            assert float(log_marginal(batch, fit.mode + sign * direction, Variant.HIERARCHICAL)[1]) < best
    effects, _ = log_marginal(batch, fit.mode, Variant.HIERARCHICAL)
    np.testing.assert_allclose(fit.effects, effects, atol=1e-6)


def test_inner_modes_are_those_of_the_oracle(batch, world):
    """The oracle's log joint is flat in (u_d, v_d) at the inner modes."""
    effects = np.asarray(log_marginal(batch, point_of(Variant.HIERARCHICAL), Variant.HIERARCHICAL)[0])

    def joint(flat: np.ndarray) -> float:
        u, v = flat.reshape(-1, 2).T
        return oracles.log_density("hierarchical", world, POINT, u, v)

    assert np.abs(effects).max() > 0.1
    np.testing.assert_allclose(differences.gradient(joint, effects.reshape(-1)), 0, atol=1e-7)


def test_fit_without_a_database_equals_the_fit_of_the_smaller_batch(batch, world):
    variant = Variant.INDEPENDENT_HIERARCHICAL
    found = laplace(batch.without([1]), variant, Priors())
    expected = laplace(pack([world[0], world[2]]), variant, Priors())
    np.testing.assert_allclose(found.mode, expected.mode, atol=1e-6)
    np.testing.assert_allclose(found.covariance, expected.covariance, atol=1e-6)
    np.testing.assert_allclose(found.effects[[0, 2]], expected.effects, atol=1e-6)
    np.testing.assert_allclose(found.effects[1], 0, atol=1e-9)
    assert found.log_marginal == pytest.approx(expected.log_marginal, rel=1e-8)
    assert np.abs(found.mode - laplace(batch, variant, Priors()).mode).max() > 0.01


def test_start_changes_the_steps_and_not_the_mode(batch):
    first = laplace(batch, Variant.HIERARCHICAL, Priors())
    again = laplace(batch, Variant.HIERARCHICAL, Priors(), start=first)
    assert again.steps == 0 < first.steps
    np.testing.assert_allclose(again.mode, first.mode, atol=1e-9)


def test_non_empty_support_is_another_fit_and_refuses_empty_gold(batch, world):
    full = laplace(batch, Variant.INDEPENDENT, Priors())
    fit = laplace(batch, Variant.INDEPENDENT, Priors(), Support.NON_EMPTY)
    # Given that nothing is never gold, the same data need a lower intercept.
    assert fit.mode[0] < full.mode[0] - 0.01

    def objective(phi: np.ndarray) -> float:
        sites = {"alpha": float(phi[0]), "gamma": phi[1:].tolist()}
        return oracles.log_density("independent", world, sites, [0.0] * 3, [0.0] * 3, non_empty=True)

    np.testing.assert_allclose(differences.gradient(objective, fit.mode), 0, atol=1e-5)
    gold = world[0].gold.copy()
    gold[0] = False
    bad = pack([replace(world[0], gold=gold), *world[1:]])
    with pytest.raises(ValueError, match=r"support=non-empty: a question has no gold table; use support=all"):
        laplace(bad, Variant.INDEPENDENT, Priors(), Support.NON_EMPTY)
    laplace(bad.without([0]), Variant.INDEPENDENT, Priors(), Support.NON_EMPTY)


def test_fixed_is_refused(batch):
    with pytest.raises(ValueError, match=r"variant=fixed is not fitted: fit `independent` and hold the coupling"):
        laplace(batch, Variant.FIXED, Priors())


def test_no_convergence_raises_in_a_sentence(batch, monkeypatch):
    monkeypatch.setattr(module, "MAX_STEPS", 1)
    with pytest.raises(FloatingPointError, match=r"variant=pooled: no convergence in 1 steps.*tighter priors"):
        laplace(batch, Variant.POOLED, Priors())


def test_a_singular_hessian_raises_in_a_sentence(batch, monkeypatch):
    outer = module._outer

    def flat(*arguments):
        value, gradient, hessian = outer(*arguments)
        return value, 0 * gradient, hessian.at[0].set(0.0).at[:, 0].set(0.0)

    monkeypatch.setattr(module, "_outer", flat)
    with pytest.raises(FloatingPointError, match=r"variant=pooled: the Hessian at the mode is not negative definite"):
        laplace(batch, Variant.POOLED, Priors())


@pytest.fixture(scope="module")
def lone():
    """One database with 40 questions, enough for its effects to be nearly Gaussian."""
    return simulate(8, 1, 40, shapes=(CYCLE,))


@pytest.fixture(scope="module")
def lone_draws(lone) -> np.ndarray:
    """400 draws of (alpha_d, beta_d) with the population held at POINT; axes draws, 2."""
    variant = Variant.HIERARCHICAL
    phi = point_of(variant)
    given = LaplaceFit(population_sites(variant), phi, np.eye(6), np.zeros((1, 2)), 0.0, 0.0, 0.0, 0, 0.0)
    rng = np.random.default_rng(0)
    drawn = draw_effects(pack(lone), given, np.tile(phi, (400, 1)), variant, Priors(), Support.ALL, rng)
    return np.stack([drawn[0][:, 0], drawn[1][:, 0]], axis=1)


def lone_log_joint(lone, u: float, v: float) -> float:
    alpha, beta = oracles.database_parameters("hierarchical", POINT, u, v)
    data = lone[0].values.tolist(), lone[0].gold.tolist(), lone[0].edges.tolist()
    return oracles.log_likelihood(*data, alpha, POINT["gamma"], beta) - (u * u + v * v) / 2


def within_four_errors(draws: np.ndarray, mean: np.ndarray, covariance: np.ndarray) -> None:
    """The draws' mean and covariance lie within 4 standard errors of the stated ones."""
    sizes = np.diag(covariance)
    assert (np.abs(draws.mean(axis=0) - mean) < 4 * np.sqrt(sizes / len(draws))).all()
    errors = np.sqrt((np.outer(sizes, sizes) + covariance**2) / len(draws))
    assert (np.abs(np.cov(draws.T) - covariance) < 4 * errors).all()


def test_database_draws_are_the_gaussian_at_the_inner_mode(lone, lone_draws):
    best = minimize(lambda e: -lone_log_joint(lone, *e.tolist()), np.zeros(2), method="BFGS", options={"gtol": 1e-4})
    precision = differences.hessian(lambda e: -lone_log_joint(lone, *e.tolist()), best.x)
    scale = np.array([POINT["sigma_alpha"], POINT["sigma_beta"]])
    covariance = np.linalg.inv(precision) * np.outer(scale, scale)
    within_four_errors(lone_draws, np.array([POINT["alpha"], POINT["beta"]]) + scale * best.x, covariance)


def test_database_draws_agree_with_a_grid(lone, lone_draws):
    """The exact posterior of (alpha_d, beta_d) on a 17 x 17 grid over +-4 prior standard deviations.

    With 40 questions the Laplace error is a few hundredths of a standard deviation, well below the 4
    standard errors (a fifth of a standard deviation) of 400 draws.
    """
    axis = np.linspace(-4, 4, 17)
    points, logs = [], []
    for u in axis.tolist():
        for v in axis.tolist():
            points.append(oracles.database_parameters("hierarchical", POINT, u, v))
            logs.append(lone_log_joint(lone, u, v))
    weights = np.exp(np.array(logs) - oracles.log_sum_exp(logs))
    mean = weights @ np.array(points)
    centred = np.array(points) - mean
    within_four_errors(lone_draws, mean, (weights[:, None] * centred).T @ centred)


def test_the_check_of_draws_can_fail(lone_draws):
    mean, covariance = lone_draws.mean(axis=0), np.cov(lone_draws.T)
    within_four_errors(lone_draws, mean, covariance)
    with pytest.raises(AssertionError):
        within_four_errors(lone_draws + 0.3 * lone_draws.std(axis=0), mean, covariance)
    with pytest.raises(AssertionError):
        within_four_errors(mean + 1.3 * (lone_draws - mean), mean, covariance)
