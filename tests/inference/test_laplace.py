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
from worlds import CYCLE, PATH, rich_world, simulate

from bayeslink.inference import laplace as module
from bayeslink.inference.laplace import LaplaceFit, Settings, draw_effects, laplace
from bayeslink.inference.packing import pack
from bayeslink.inference.population import pack_population, unpack_population
from bayeslink.model.autologistic import Support
from bayeslink.model.hierarchy import Design, Terms, Variant
from bayeslink.model.priors import Priors

POINT = {"alpha": -0.3, "gamma": [0.7, -0.4], "beta": 0.5, "sigma_alpha": 0.6, "sigma_beta": 0.4}
RICH_POINT = POINT | {
    "kappa": [0.3, -0.5, 0.2],
    "lambda": [0.2, -0.3, 0.1],
    "delta": [0.4, -0.3],
    "sigma_scale": 0.3,
    "rho": -0.4,
}
ALL_TERMS = Terms(True, True, True, True)


def paper(variant: Variant) -> Design:
    """The paper's variant for two channels."""
    return Design(variant, Terms(), 2)


def settings_of(design: Design, support: Support = Support.ALL) -> Settings:
    return Settings(design, Priors(), support)


def point_of(design: Design) -> np.ndarray:
    return np.array(pack_population({site: jnp.array(RICH_POINT[site]) for site in design.sites}, design))


def log_marginal(batch, phi: np.ndarray, design: Design, support: Support = Support.ALL):
    """Inner modes and log marginal posterior density at phi."""
    start = jnp.zeros((batch.num_databases, 3))
    return module._inner(batch, jnp.array(phi), start, settings_of(design, support))[:2]


def log_posterior(variant: Variant, world, phi: np.ndarray) -> float:
    """The oracle's log density where there are no effects."""
    named = unpack_population(jnp.array(phi), paper(variant))
    sites = {site: np.asarray(value).tolist() for site, value in named.items()}
    zeros = [0.0] * len(world)
    return oracles.log_density(variant.value, world, sites, zeros, zeros)


@pytest.fixture(scope="module")
def rich():
    """Four databases with contexts and kinds of edges."""
    return rich_world()


@pytest.fixture(scope="module")
def rich_batch(rich):
    return pack(rich)


@pytest.fixture(scope="module")
def rich_design(rich_batch) -> Design:
    return Design.of(rich_batch, Variant.HIERARCHICAL, ALL_TERMS)


def assert_derivatives_equal_differences(batch, design: Design, support: Support = Support.ALL) -> None:
    """Away from the mode, through the moving inner modes; below order 4 only the Hessian is another."""
    phi, settings = point_of(design), settings_of(design, support)

    def value(point: np.ndarray) -> float:
        return float(log_marginal(batch, point, design, support)[1])

    def slope(point: np.ndarray) -> np.ndarray:
        effects, _ = log_marginal(batch, point, design, support)
        return np.asarray(module._outer(batch, jnp.array(point), effects, settings, 4)[1])

    effects, expected = log_marginal(batch, phi, design, support)
    assert np.abs(effects).max() > 0.1
    found, gradient, hessian = module._outer(batch, jnp.array(phi), effects, settings, 4)
    assert found == pytest.approx(float(expected), rel=1e-10)
    # Fourth-order differences with step 1e-3 are good to about 1e-9.
    np.testing.assert_allclose(gradient, differences.gradient(value, phi), rtol=1e-6, atol=1e-7)
    np.testing.assert_allclose(hessian, differences.gradient(slope, phi), rtol=1e-6, atol=1e-7)
    lower, same, rough = module._outer(batch, jnp.array(phi), effects, settings, 3)
    assert lower == pytest.approx(float(found), rel=1e-12)
    np.testing.assert_allclose(same, gradient, rtol=1e-9, atol=1e-9)
    assert np.abs(np.asarray(rough - hessian)).max() > 1e-4


@pytest.mark.parametrize("variant", [Variant.HIERARCHICAL, Variant.INDEPENDENT_HIERARCHICAL, Variant.UNPOOLED])
def test_gradient_and_hessian_equal_finite_differences(batch, variant: Variant):
    assert_derivatives_equal_differences(batch, paper(variant))


@pytest.mark.parametrize("support", list(Support))
def test_gradient_and_hessian_with_all_terms_equal_finite_differences(rich_batch, rich_design, support: Support):
    assert set(rich_design.sites) == set(RICH_POINT)
    assert_derivatives_equal_differences(rich_batch, rich_design, support)


def test_gradient_and_hessian_of_eliminated_schemas_equal_finite_differences(world):
    assert_derivatives_equal_differences(pack(world, max_listed=0), paper(Variant.HIERARCHICAL))


def test_listed_and_eliminated_derivatives_agree_with_all_terms(rich, rich_batch, rich_design):
    """Elimination reaches the same outer derivatives by another way; compiled once, not differenced."""
    phi, settings = point_of(rich_design), settings_of(rich_design)
    effects, value = log_marginal(rich_batch, phi, rich_design)
    other = pack(rich, max_listed=4)
    same, again = log_marginal(other, phi, rich_design)
    np.testing.assert_allclose(same, effects, atol=1e-8)
    assert float(again) == pytest.approx(float(value), rel=1e-10)
    listed = module._outer(rich_batch, jnp.array(phi), effects, settings, 4)
    mixed = module._outer(other, jnp.array(phi), effects, settings, 4)
    for part, found in zip(listed, mixed, strict=True):
        np.testing.assert_allclose(found, part, rtol=1e-9, atol=1e-9)


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
    phi = point_of(paper(Variant.HIERARCHICAL))
    phi[-2:] = math.log(sigma)
    found = float(log_marginal(batch, phi, paper(Variant.HIERARCHICAL))[1])
    assert found == pytest.approx(quadrature(world, sigma), abs=tolerance)


@pytest.mark.parametrize("variant", [Variant.INDEPENDENT, Variant.POOLED])
def test_without_effects_the_fit_is_the_posterior_mode(batch, world, variant: Variant):
    fit = laplace(batch, paper(variant), Priors())
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
    fit = laplace(batch, paper(Variant.INDEPENDENT), Priors())
    values = np.concatenate([item.values.reshape(-1, 2) for item in world])
    gold = np.concatenate([item.gold.reshape(-1) for item in world])
    columns = np.column_stack([np.full(len(values), 2.0), values])
    ridge = LogisticRegression(C=1.0, fit_intercept=False, solver="newton-cholesky", tol=1e-10).fit(columns, gold)
    np.testing.assert_allclose(fit.mode, ridge.coef_[0] * [2, 1, 1], rtol=1e-6)


def test_mode_is_a_maximum_of_the_marginal(batch):
    fit = laplace(batch, paper(Variant.HIERARCHICAL), Priors())
    assert fit.gradient_norm < 1e-5
    best = float(log_marginal(batch, fit.mode, paper(Variant.HIERARCHICAL))[1])
    for direction in 0.05 * np.eye(len(fit.mode)):
        for sign in (-1, 1):
            assert float(log_marginal(batch, fit.mode + sign * direction, paper(Variant.HIERARCHICAL))[1]) < best
    effects, _ = log_marginal(batch, fit.mode, paper(Variant.HIERARCHICAL))
    np.testing.assert_allclose(fit.effects, effects, atol=1e-6)


def test_inner_modes_are_those_of_the_oracle(batch, world):
    """The oracle's log joint is flat in (u_d, v_d) at the inner modes."""
    design = paper(Variant.HIERARCHICAL)
    effects = np.asarray(log_marginal(batch, point_of(design), design)[0])

    def joint(flat: np.ndarray) -> float:
        u, v = flat.reshape(-1, 2).T
        return oracles.log_density("hierarchical", world, POINT, u, v)

    assert np.abs(effects).max() > 0.1
    assert (effects[:, 2] == 0).all()
    np.testing.assert_allclose(differences.gradient(joint, effects[:, :2].reshape(-1)), 0, atol=1e-7)


def test_inner_modes_with_all_terms_are_those_of_the_oracle(rich, rich_batch, rich_design):
    effects = np.asarray(log_marginal(rich_batch, point_of(rich_design), rich_design)[0])

    def joint(flat: np.ndarray) -> float:
        u, v, w = flat.reshape(-1, 3).T
        return oracles.log_density("hierarchical", rich, RICH_POINT, u, v, w=w)

    assert (np.abs(effects).max(axis=0) > 0.02).all()
    np.testing.assert_allclose(differences.gradient(joint, effects.reshape(-1)), 0, atol=1e-7)


def test_fit_without_a_database_equals_the_fit_of_the_smaller_batch(batch, world):
    variant = Variant.INDEPENDENT_HIERARCHICAL
    found = laplace(batch.without([1]), paper(variant), Priors())
    expected = laplace(pack([world[0], world[2]]), paper(variant), Priors())
    np.testing.assert_allclose(found.mode, expected.mode, atol=1e-6)
    np.testing.assert_allclose(found.covariance, expected.covariance, atol=1e-6)
    np.testing.assert_allclose(found.effects[[0, 2]], expected.effects, atol=1e-6)
    np.testing.assert_allclose(found.effects[1], 0, atol=1e-9)
    assert found.log_marginal == pytest.approx(expected.log_marginal, rel=1e-8)
    assert np.abs(found.mode - laplace(batch, paper(variant), Priors()).mode).max() > 0.01


def test_start_changes_the_steps_and_not_the_mode(batch):
    first = laplace(batch, paper(Variant.HIERARCHICAL), Priors())
    again = laplace(batch, paper(Variant.HIERARCHICAL), Priors(), start=first)
    assert again.steps == 0 < first.steps
    np.testing.assert_allclose(again.mode, first.mode, atol=1e-9)


def test_listing_and_eliminating_give_one_fit(batch, world):
    found = laplace(pack(world, max_listed=0), paper(Variant.HIERARCHICAL), Priors())
    expected = laplace(batch, paper(Variant.HIERARCHICAL), Priors())
    np.testing.assert_allclose(found.mode, expected.mode, rtol=1e-6)
    np.testing.assert_allclose(found.covariance, expected.covariance, rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(found.effects, expected.effects, rtol=1e-6, atol=1e-9)
    assert found.log_marginal == pytest.approx(expected.log_marginal, rel=1e-9)


def test_a_start_from_the_listed_schemas_gives_the_same_mode(world, monkeypatch):
    """With costly schemas the fit begins from the mode of the cheap ones."""
    larger = simulate(9, 2, 8, shapes=(PATH,), num_tables=5, non_empty=True)
    mixed = pack([*world, *[replace(item, db_id=f"larger{d}") for d, item in enumerate(larger)]], max_listed=4)
    assert module._listed(mixed) is None
    expected = laplace(mixed, paper(Variant.HIERARCHICAL), Priors())
    monkeypatch.setattr(module, "COSTLY_BLOCKS", 1)
    cheap = module._listed(mixed)
    assert cheap is not None
    assert (cheap.num_questions, cheap.num_databases) == (24, 5)
    assert module._listed(cheap) is None
    begun = []
    monkeypatch.setattr(module, "laplace", lambda *arguments: begun.append(arguments[0]) or laplace(*arguments))
    found = laplace(mixed, paper(Variant.HIERARCHICAL), Priors())
    assert [first.num_questions for first in begun] == [24]
    np.testing.assert_allclose(found.mode, expected.mode, rtol=1e-6, atol=1e-7)
    np.testing.assert_allclose(found.covariance, expected.covariance, rtol=1e-6, atol=1e-7)
    assert found.log_marginal == pytest.approx(expected.log_marginal, rel=1e-9)


def test_a_fit_with_all_terms_is_a_maximum(rich_batch, rich_design):
    fit = laplace(rich_batch, rich_design, Priors())
    assert fit.design == rich_design
    assert fit.gradient_norm < 1e-5
    best = float(log_marginal(rich_batch, fit.mode, rich_design)[1])
    for direction in 0.05 * np.eye(len(fit.mode)):
        for sign in (-1, 1):
            assert float(log_marginal(rich_batch, fit.mode + sign * direction, rich_design)[1]) < best


def test_non_empty_support_is_another_fit_and_refuses_empty_gold(batch, world):
    full = laplace(batch, paper(Variant.INDEPENDENT), Priors())
    fit = laplace(batch, paper(Variant.INDEPENDENT), Priors(), Support.NON_EMPTY)
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
        laplace(bad, paper(Variant.INDEPENDENT), Priors(), Support.NON_EMPTY)
    laplace(bad.without([0]), paper(Variant.INDEPENDENT), Priors(), Support.NON_EMPTY)


def test_fixed_is_refused(batch):
    with pytest.raises(ValueError, match=r"variant=fixed is not fitted: fit `independent` and hold the coupling"):
        laplace(batch, paper(Variant.FIXED), Priors())


def test_no_convergence_raises_in_a_sentence(batch, monkeypatch):
    monkeypatch.setattr(module, "MAX_STEPS", 1)
    with pytest.raises(FloatingPointError, match=r"variant=pooled: no convergence in 1 steps.*tighter priors"):
        laplace(batch, paper(Variant.POOLED), Priors())


def test_a_singular_hessian_raises_in_a_sentence(batch, monkeypatch):
    outer = module._outer

    def flat(*arguments):
        value, gradient, hessian = outer(*arguments)
        return value, 0 * gradient, hessian.at[0].set(0.0).at[:, 0].set(0.0)

    monkeypatch.setattr(module, "_outer", flat)
    with pytest.raises(FloatingPointError, match=r"variant=pooled: the Hessian at the mode is not negative definite"):
        laplace(batch, paper(Variant.POOLED), Priors())


@pytest.fixture(scope="module")
def lone():
    """One database with 40 questions, enough for its effects to be nearly Gaussian."""
    return simulate(8, 1, 40, shapes=(CYCLE,))


@pytest.fixture(scope="module")
def lone_draws(lone) -> np.ndarray:
    """400 draws of (alpha_d, beta_d) with the population held at POINT; axes draws, 2."""
    design = paper(Variant.HIERARCHICAL)
    effects = draws_at(pack(lone), design, 400)[:, 0]
    spread = np.array([POINT["sigma_alpha"], POINT["sigma_beta"]])
    return np.array([POINT["alpha"], POINT["beta"]]) + spread * effects[:, :2]


def draws_at(batch, design: Design, num_draws: int) -> np.ndarray:
    """Draws of the effects with the population held at its point."""
    phi = point_of(design)
    zeros = np.zeros((batch.num_databases, 3))
    given = LaplaceFit(design, phi, np.eye(len(phi)), zeros, 0.0, 0.0, 0.0, 0, 0.0)
    rng = np.random.default_rng(0)
    return draw_effects(batch, given, np.tile(phi, (num_draws, 1)), Priors(), Support.ALL, rng)


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


def test_draws_with_all_terms_are_the_gaussian_at_the_inner_mode(rich, rich_batch, rich_design):
    """All three effects of one database; the oracle's log joint gives mode and curvature."""
    drawn = draws_at(rich_batch, rich_design, 400)[:, 2]
    mode = np.asarray(log_marginal(rich_batch, point_of(rich_design), rich_design)[0])[2]

    def joint(effects: np.ndarray) -> float:
        numbers = effects.tolist()
        data = oracles.log_likelihood_of_database(rich[2], "hierarchical", RICH_POINT, numbers)
        return data + oracles.log_effects("hierarchical", RICH_POINT, numbers)

    within_four_errors(drawn, mode, np.linalg.inv(-differences.hessian(joint, mode)))


def test_the_check_of_draws_can_fail(lone_draws):
    mean, covariance = lone_draws.mean(axis=0), np.cov(lone_draws.T)
    within_four_errors(lone_draws, mean, covariance)
    with pytest.raises(AssertionError):
        within_four_errors(lone_draws + 0.3 * lone_draws.std(axis=0), mean, covariance)
    with pytest.raises(AssertionError):
        within_four_errors(mean + 1.3 * (lone_draws - mean), mean, covariance)
