"""The nested fit against quadrature and grids, where the plain Laplace fit is right and where it is not."""

import math

import jax.numpy as jnp
import numpy as np
import oracles
import pytest
import quadratures
from scipy import stats
from scipy.special import logsumexp
from worlds import ISOLATED, PATH, rich_world, simulate

from bayeslink.inference import nested as module
from bayeslink.inference.laplace import Settings, draw_effects, laplace
from bayeslink.inference.nested import NestedFit, nested, smoothed, systematic
from bayeslink.inference.packing import pack
from bayeslink.inference.population import pack_population
from bayeslink.model.autologistic import Support
from bayeslink.model.batch import Batch
from bayeslink.model.hierarchy import Design, Terms, Variant
from bayeslink.model.priors import Priors

SITES = {"alpha": -0.3, "gamma": [0.7, -0.4], "beta": 0.5, "sigma_alpha": 0.8, "sigma_beta": 0.7}
SLOPE = np.linspace(-1.5, 4.0, 23)
SHIFT = np.linspace(-6.0, 6.0, 31)
LOG_SIGMA = np.linspace(-8.0, 1.6, 33)


def design_of(variant: Variant, num_channels: int = 2) -> Design:
    return Design(variant, Terms(), num_channels)


def integrated(
    batch: Batch, design: Design, phi: np.ndarray, num_inner: int, num_points: int = 1, support: Support = Support.ALL
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """`_integrate` at copies of one phi, its inner proposals begun at the modes of a fit elsewhere."""
    rng = np.random.default_rng(0)
    settings = Settings(design, Priors(), support)
    effects = jnp.zeros((batch.num_databases, 3))
    slopes = jnp.zeros((len(phi), batch.num_databases, 3))
    if design.effects:
        centre = module.inner_modes(batch, jnp.asarray(phi), effects, settings).effects
        slopes = module.mode_slopes(batch, jnp.asarray(phi), centre, settings)
        # Begun from modes at a shifted phi: the slopes must bring them near those wanted.
        elsewhere = phi - 0.1
        effects = module.inner_modes(batch, jnp.asarray(elsewhere), centre, settings).effects
    else:
        elsewhere = phi
    inner, log_density = module._inner_points(len(design.effects), num_inner, batch.num_databases, num_points, rng)
    uniforms = rng.random((num_points, batch.num_databases, module.INNER_DRAWS))
    given = (np.tile(phi, (num_points, 1)), elsewhere, effects, slopes, inner, log_density, uniforms)
    found = module._integrate(batch, *(jnp.asarray(part) for part in given), settings)
    return tuple(np.asarray(part) for part in found)


def packed(design: Design, sites: dict) -> np.ndarray:
    return np.asarray(pack_population({site: jnp.asarray(sites[site]) for site in design.sites}, design))


def log_jacobian(sites: dict) -> float:
    return sum(math.log(sites[site]) for site in sites if site.startswith("sigma"))


@pytest.mark.parametrize(
    ("variant", "support"),
    [(Variant.INDEPENDENT_HIERARCHICAL, Support.NON_EMPTY), (Variant.HIERARCHICAL, Support.ALL)],
)
def test_posterior_density_equals_quadrature(batch, world, variant: Variant, support: Support):
    """512 quasi-random inner points are good to a few thousandths of a nat for each of three databases."""
    design = design_of(variant)
    sites = {site: SITES[site] for site in design.sites}
    found, _, share = integrated(batch, design, packed(design, sites), 512, support=support)
    non_empty = support is Support.NON_EMPTY
    expected = oracles.log_prior(variant.value, sites) + log_jacobian(sites)
    expected += sum(
        quadratures.log_marginal(item, variant.value, sites, design.effects, non_empty=non_empty) for item in world
    )
    assert found[0] == pytest.approx(expected, abs=0.02)
    assert 0.5 < share[0] <= 1


def test_inner_points_differ_between_databases_and_points():
    """One set of points for all databases would make the errors of their product add up."""
    points, density = module._inner_points(2, 8, 3, 4, np.random.default_rng(0))
    assert points.shape == (4, 8, 3, 2)
    assert density.shape == (4, 8, 3)
    assert len(np.unique(points.reshape(4, 8, 3, 2)[..., 0])) == 4 * 8 * 3
    expected = stats.multivariate_t(np.zeros(2), np.eye(2), df=module.INNER_FREEDOM).logpdf(points[1, 2, 2])
    assert density[1, 2, 2] == pytest.approx(float(expected), rel=1e-12)


def test_posterior_density_without_effects_is_the_oracle(batch, world):
    design = design_of(Variant.POOLED)
    sites = {site: SITES[site] for site in design.sites}
    found, drawn, share = integrated(batch, design, packed(design, sites), 16)
    assert found[0] == pytest.approx(oracles.log_density("pooled", world, sites, [0.0] * 3, [0.0] * 3), rel=1e-10)
    assert (drawn == 0).all()
    assert share[0] == 1


def test_few_inner_points_are_close_to_many(batch):
    """16 points, the default, are within a tenth of a nat over three databases."""
    design = design_of(Variant.HIERARCHICAL)
    phi = packed(design, SITES)
    few, many = (integrated(batch, design, phi, number)[0][0] for number in (16, 512))
    assert few == pytest.approx(many, abs=0.1)


def test_mode_slopes_are_derivatives_of_the_modes(batch):
    design = design_of(Variant.HIERARCHICAL)
    settings, phi = Settings(design, Priors(), Support.ALL), jnp.asarray(packed(design, SITES))
    start = jnp.zeros((3, 3))
    slopes = module.mode_slopes(batch, phi, start, settings)
    direction = jnp.asarray(np.random.default_rng(0).normal(size=len(phi)))
    above, below = (
        module.inner_modes(batch, phi + step * direction, start, settings).effects for step in (1e-4, -1e-4)
    )
    found = jnp.tensordot(direction, slopes, axes=1)
    np.testing.assert_allclose(found, (above - below) / 2e-4, atol=1e-4)
    assert np.abs(found).max() > 0.1


@pytest.fixture(scope="module")
def small():
    """Three databases with four questions and one channel; the graph does not matter without a coupling."""
    return simulate(5, 3, 4, gamma=(1.0,), beta=0.0, sigma_alpha=1.0, shapes=(ISOLATED,))


@pytest.fixture(scope="module")
def small_fit(small) -> NestedFit:
    return nested(pack(small), design_of(Variant.INDEPENDENT_HIERARCHICAL, 1), Priors(), num_draws=2000)


@pytest.fixture(scope="module")
def small_grid(small) -> tuple[np.ndarray, np.ndarray]:
    """(alpha, gamma, log sigma_alpha) on a grid and their log joint density with the data, by 24 nodes of u."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(24)
    log_nodes = np.log(weights / np.sqrt(2 * np.pi))
    rows, logs = [], []
    for gamma in SLOPE.tolist():
        for log_sigma in LOG_SIGMA.tolist():
            # Axes alpha, node: the log-likelihood is that of a logistic regression.
            intercept = SHIFT[:, None] + np.exp(log_sigma) * nodes
            total = np.zeros(len(SHIFT))
            for item in small:
                unary = intercept[..., None] + gamma * item.values.reshape(-1)
                score = (unary * item.gold.reshape(-1) - np.logaddexp(0, unary)).sum(axis=-1)
                total += logsumexp(score + log_nodes, axis=1)
            for alpha, value in zip(SHIFT.tolist(), total.tolist(), strict=True):
                sites = {"alpha": alpha, "gamma": [gamma], "sigma_alpha": math.exp(log_sigma)}
                rows.append((alpha, gamma, log_sigma))
                logs.append(value + oracles.log_prior("independent_hierarchical", sites) + log_sigma)
    return np.array(rows), np.array(logs)


def assert_moments_agree(found: NestedFit, mean: np.ndarray, deviation: np.ndarray) -> None:
    """Means within 4 Monte Carlo errors of the effective points, spreads within 4 of theirs.

    An estimated sd of a Gaussian has the relative error 1 / sqrt(2 n); log sigma has heavier tails, so twice that.
    """
    own_mean, own_deviation = quadratures.moments(found.points, found.log_weights)
    assert (np.abs(own_mean - mean) < 4 * deviation / np.sqrt(found.effective_points)).all()
    assert (np.abs(own_deviation / deviation - 1) < 4 * np.sqrt(2 / found.effective_points)).all()


def test_population_posterior_agrees_with_a_grid(small_fit, small_grid):
    mean, deviation = quadratures.moments(*small_grid)
    assert_moments_agree(small_fit, mean, deviation)
    # Draws repeat the weighted points, evenly spread: the same moments but for the order.
    np.testing.assert_allclose(small_fit.phi.mean(axis=0), mean, atol=0.1)
    assert small_fit.pareto_k < module.PARETO_LIMIT
    assert small_fit.effective_points > module.EVEN_SHARE * len(small_fit.points)
    assert 0.5 < small_fit.inner_effective_share <= 1


def test_the_check_of_moments_can_fail(small_fit, small_grid):
    mean, deviation = quadratures.moments(*small_grid)
    with pytest.raises(AssertionError):
        assert_moments_agree(small_fit, mean + 0.3 * deviation, deviation)
    with pytest.raises(AssertionError):
        assert_moments_agree(small_fit, mean, 1.5 * deviation)


def test_log_marginal_agrees_with_a_grid(small_fit, small_grid):
    _, logs = small_grid
    cell = (SHIFT[1] - SHIFT[0]) * (SLOPE[1] - SLOPE[0]) * (LOG_SIGMA[1] - LOG_SIGMA[0])
    expected = logsumexp(logs) + math.log(cell)
    # Relative error of a mean of n weights: sqrt((n / effective - 1) / n).
    number = len(small_fit.points)
    error = math.sqrt((number / small_fit.effective_points - 1) / number)
    assert small_fit.log_marginal == pytest.approx(expected, abs=4 * error)
    assert small_fit.log_marginal != pytest.approx(small_fit.laplace.log_marginal, abs=1e-3)


@pytest.mark.parametrize("variant", [Variant.INDEPENDENT, Variant.POOLED])
def test_variants_without_effects(batch, world, variant: Variant):
    """24 questions make the posterior nearly Gaussian: the Laplace fit is the known answer to a few hundredths."""
    found = nested(batch, design_of(variant), Priors(), num_points=256)
    assert (found.effects == 0).all()
    assert found.inner_effective_share == 1
    assert found.effects.shape == (1000, 3, 3)
    assert found.rounds == 1
    assert found.pareto_k < module.PARETO_LIMIT
    assert found.log_marginal == pytest.approx(found.laplace.log_marginal, abs=0.1)
    deviation = np.sqrt(np.diag(found.laplace.covariance))
    mean, own = quadratures.moments(found.points, found.log_weights)
    np.testing.assert_allclose((mean - found.laplace.mode) / deviation, 0, atol=0.3)
    np.testing.assert_allclose(own / deviation, 1, atol=0.2)


@pytest.fixture(scope="module")
def lone():
    """One database with three questions and a single channel; no table is needed by most of them."""
    return simulate(4, 1, 3, alpha=-2.0, gamma=(0.5,), shapes=(PATH,), non_empty=True)


@pytest.fixture(scope="module")
def lone_grid(lone) -> tuple[np.ndarray, np.ndarray]:
    """(gamma, u, v) of the lone database under `unpooled`, and the log joint density, by listing subsets."""
    item = lone[0]
    subsets = (np.arange(16)[:, None] >> np.arange(4)) & 1
    size, joined = subsets.sum(axis=1), (subsets[:, item.edges[:, 0]] * subsets[:, item.edges[:, 1]]).sum(axis=1)
    axes = np.meshgrid(np.linspace(-4, 4, 25), np.linspace(-4, 3, 57), np.linspace(-5, 5, 57), indexing="ij")
    gamma, u, v = (axis.reshape(-1) for axis in axes)
    logs = -(gamma**2 + u**2 + v**2) / 2
    for values, gold in zip(item.values[..., 0], item.gold, strict=True):
        energies = np.outer(gamma, subsets @ values) + np.outer(5 * u, size) + np.outer(5 * v, joined)
        place = int((gold * 2 ** np.arange(4)).sum())
        logs += energies[:, place] - logsumexp(energies, axis=1)
    return np.column_stack([gamma, u, v]), logs


def assert_effects_agree(effects: np.ndarray, mean: np.ndarray, deviation: np.ndarray, number: float) -> None:
    """Means within 4 standard errors of so many draws; spreads within 4 of theirs, twice a Gaussian's."""
    assert (np.abs(effects.mean(axis=0) - mean) < 4 * deviation / np.sqrt(number)).all()
    assert (np.abs(effects.std(axis=0) / deviation - 1) < 4 * np.sqrt(2 / number)).all()


def test_skewed_effects_agree_with_a_grid_where_a_gaussian_does_not(lone, lone_grid):
    """With few questions and a wide prior the effects are skewed; nested Laplace has no Gaussian left in it.

    The inner points of each phi have their own shift, so that few of them do.
    """
    batch, design = pack(lone), design_of(Variant.UNPOOLED, 1)
    found = nested(batch, design, Priors(), num_draws=4000)
    rows, logs = lone_grid
    (_, *mean), (_, *deviation) = quadratures.moments(rows, logs)
    assert_effects_agree(found.effects[:, 0, :2], np.array(mean), np.array(deviation), found.effective_points)
    rng = np.random.default_rng(0)
    plain = found.laplace
    phi = rng.multivariate_normal(plain.mode, plain.covariance, size=1000)
    gaussian = draw_effects(batch, plain, phi, Priors(), Support.ALL, rng)
    with pytest.raises(AssertionError):
        assert_effects_agree(gaussian[:, 0, :2], np.array(mean), np.array(deviation), found.effective_points)


def test_a_narrow_proposal_is_noticed_and_repaired(small, small_fit, small_grid, monkeypatch):
    design = design_of(Variant.INDEPENDENT_HIERARCHICAL, 1)
    plain = small_fit.laplace
    narrow = plain._replace(covariance=plain.covariance / 100)
    found = nested(pack(small), design, Priors(), start=narrow)
    assert found.rounds > 1
    assert found.pareto_k < module.PARETO_LIMIT
    assert_moments_agree(found, *quadratures.moments(*small_grid))
    monkeypatch.setattr(module, "MAX_ROUNDS", 1)
    bad = nested(pack(small), design, Priors(), start=narrow)
    assert bad.pareto_k > module.PARETO_LIMIT or bad.effective_points < module.EVEN_SHARE * len(bad.points)
    assert bad.rounds == 1
    assert bad.effective_points < 0.5 * found.effective_points


def test_no_finite_weight_raises_in_a_sentence(small, small_fit, monkeypatch):
    def nothing(*arguments):
        log_target, effects, share = integrate(*arguments)
        return jnp.full_like(log_target, jnp.nan), effects, share

    integrate = module._integrate
    monkeypatch.setattr(module, "_integrate", nothing)
    design = design_of(Variant.INDEPENDENT_HIERARCHICAL, 1)
    with pytest.raises(FloatingPointError, match=r"variant=independent_hierarchical: no point .* tighter priors"):
        nested(pack(small), design, Priors(), start=small_fit.laplace)


def test_weights_are_normalised_and_seeds_repeat(small, small_fit):
    design = design_of(Variant.INDEPENDENT_HIERARCHICAL, 1)
    assert logsumexp(small_fit.log_weights) == pytest.approx(0, abs=1e-10)
    arguments = (pack(small), design, Priors())
    again, other = (nested(*arguments, num_draws=2000, seed=seed, start=small_fit.laplace) for seed in (0, 1))
    for name in ("phi", "effects", "points", "log_weights", "log_marginal", "pareto_k"):
        np.testing.assert_array_equal(getattr(again, name), getattr(small_fit, name), err_msg=name)
    assert (other.points != again.points).any()
    assert (again.effects[:, :, 1:] == 0).all()
    assert (again.effects[:, :, 0] != 0).all()


@pytest.mark.slow
def test_all_terms_run():
    batch = pack(rich_world())
    design = Design.of(batch, Variant.HIERARCHICAL, Terms(True, True, True, True))
    found = nested(batch, design, Priors(), num_draws=50, num_points=64, num_inner=8)
    assert found.phi.shape == (50, design.size)
    assert found.effects.shape == (50, 4, 3)
    assert np.isfinite(found.phi).all()
    assert (found.effects != 0).all()
    assert 0 < found.inner_effective_share <= 1
    assert np.isfinite(found.log_marginal)


@pytest.mark.parametrize("name", ["num_points", "num_inner"])
@pytest.mark.parametrize("number", [4, 12, 0, 100])
def test_numbers_that_are_no_power_of_two_are_refused(batch, name: str, number: int):
    with pytest.raises(ValueError, match=rf"{name}={number}: a power of two of at least 8 is needed"):
        nested(batch, design_of(Variant.POOLED), Priors(), **{name: number})


def test_no_draw_and_fixed_are_refused(batch):
    with pytest.raises(ValueError, match=r"num_draws=0: at least one draw"):
        nested(batch, design_of(Variant.POOLED), Priors(), num_draws=0)
    with pytest.raises(ValueError, match=r"variant=fixed is not fitted"):
        nested(batch, design_of(Variant.FIXED), Priors())


def test_even_weights_have_a_light_tail():
    rng = np.random.default_rng(0)
    raw = 0.1 * rng.normal(size=500)
    found, shape = smoothed(raw)
    assert shape < 0.3
    assert logsumexp(found) == pytest.approx(0, abs=1e-12)
    np.testing.assert_allclose(found, raw - logsumexp(raw), atol=0.05)
    np.testing.assert_allclose(found, smoothed(raw + 700)[0], atol=1e-9)


def test_equal_weights_stay_equal_and_have_no_tail():
    found, shape = smoothed(np.full(40, -3.0))
    np.testing.assert_allclose(found, -math.log(40))
    assert shape == 0


def test_heavy_tails_are_told_and_cut():
    """Weights (1 - U)^-k are Pareto with shape k; smoothing keeps the largest from ruling."""
    uniform = np.random.default_rng(1).random(4000)
    for shape in (0.4, 1.2):
        found, told = smoothed(-shape * np.log1p(-uniform))
        assert told == pytest.approx(shape, abs=0.2)  # About 190 weights are in the tail: 0.05 to 0.15 of error.
        assert found.max() <= (-shape * np.log1p(-uniform) - logsumexp(-shape * np.log1p(-uniform))).max() + 0.1


def test_systematic_draws_follow_the_weights():
    weights = np.array([0.5, 0.0, 2.0, 1.5])
    chosen = systematic(weights, 1000, np.random.default_rng(0))
    counts = np.bincount(chosen, minlength=4)
    # Evenly spread places: a count is off by less than one.
    assert (np.abs(counts - 1000 * weights / weights.sum()) <= 1).all()
    assert counts[1] == 0
    assert (np.diff(chosen) < 0).any()
    assert (systematic(np.ones(3), 1, np.random.default_rng(0)) < 3).all()


def test_laplace_is_the_start(small, small_fit):
    expected = laplace(pack(small), design_of(Variant.INDEPENDENT_HIERARCHICAL, 1), Priors())
    np.testing.assert_allclose(small_fit.laplace.mode, expected.mode)
