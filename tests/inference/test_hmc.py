"""NUTS: its diagnostics on chains of known quality, its starts, and a tiny run against the nested fit."""

import inspect
from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import quadratures
from numpyro.distributions import biject_to
from worlds import PATH, STAR, simulate

from bayeslink.inference import hmc as module
from bayeslink.inference.hmc import HmcFit, diagnostics, nuts
from bayeslink.inference.laplace import LaplaceFit, laplace
from bayeslink.inference.nested import nested
from bayeslink.inference.packing import pack
from bayeslink.model.autologistic import Support
from bayeslink.model.hierarchy import Design, Terms, Variant
from bayeslink.model.priors import Priors

POOLED = Design(Variant.POOLED, Terms(), 2)
CORRELATED = Design(Variant.HIERARCHICAL, Terms(correlated=True), 2)
SHORT = {"num_chains": 1, "num_draws": 300, "num_warmup": 200}


@pytest.fixture(scope="module")
def worlds():
    """Two worlds of two databases with the same shapes."""
    return [simulate(seed, 2, 6, shapes=(PATH, STAR)) for seed in (1, 2)]


@pytest.fixture(scope="module")
def runs(worlds) -> tuple[list[HmcFit], list[int]]:
    """A run on each world by one sampler, and how often the model was traced in each."""
    traced, traces = [], []
    kept = module.hierarchical_model
    module._sampler.cache_clear()

    def counted(*arguments) -> None:
        traced.append(arguments)
        kept(*arguments)

    module.hierarchical_model = counted
    try:
        found = []
        for world in worlds:
            before = len(traced)
            found.append(nuts(pack(world, max_listed=0), POOLED, Priors(), **SHORT))
            traces.append(len(traced) - before)
    finally:
        module.hierarchical_model = kept
    return found, traces


@pytest.mark.parametrize("place", [0, 1])
def test_a_tiny_run_agrees_with_the_nested_fit(worlds, runs, place: int):
    """Means within 4 Monte Carlo errors of both; spreads within 4 of theirs, twice a Gaussian's."""
    found = runs[0][place]
    expected = nested(pack(worlds[place]), POOLED, Priors())
    mean, deviation = quadratures.moments(expected.points, expected.log_weights)
    number = 1 / (1 / found.figures["ess_bulk"] + 1 / expected.effective_points)
    assert found.phi.shape == (300, 4)
    assert (found.effects == 0).all()
    assert (np.abs(found.phi.mean(axis=0) - mean) < 4 * deviation / np.sqrt(number)).all()
    assert (np.abs(found.phi.std(axis=0) / deviation - 1) < 4 * np.sqrt(2 / number)).all()


def test_the_two_worlds_differ(runs):
    (first, second), _ = runs
    assert np.abs(first.phi.mean(axis=0) - second.phi.mean(axis=0)).max() > 0.1


def test_another_batch_of_the_same_shapes_reuses_the_sampler(runs):
    """A compiled sampler is not traced again but for the model's own sites."""
    _, (first, second) = runs
    assert module._sampler.cache_info().misses == 1
    assert 0 < second < first


def test_checks_follow_the_figures_and_can_fail(worlds, runs, monkeypatch):
    batch = pack(worlds[0], max_listed=0)
    short = runs[0][0]
    assert not short.checks["ess_bulk"]  # 300 draws cannot be worth 400.
    assert 0.99 < short.figures["r_hat"] < 1.1
    start = laplace(pack(worlds[0]), POOLED, Priors())
    monkeypatch.setattr(module, "LEAST_EFFECTIVE", 20.0)
    monkeypatch.setattr(module, "WORST_R_HAT", 1.2)  # The halves of one short chain.
    again = nuts(batch, POOLED, Priors(), start=start, **SHORT)
    assert all(again.checks.values())
    monkeypatch.setattr(module, "LEAST_ENERGY", 10.0)
    monkeypatch.setattr(module, "WORST_R_HAT", 0.9)
    bad = nuts(batch, POOLED, Priors(), start=start, **SHORT)
    np.testing.assert_array_equal(bad.phi, again.phi)
    assert not bad.checks["e_bfmi"]
    assert not bad.checks["r_hat"]
    assert bad.checks["no_divergences"]


def test_a_correlated_design_runs(worlds):
    batch = pack(worlds[0], max_listed=0)
    found = nuts(batch, CORRELATED, Priors(), num_chains=2, num_draws=20, num_warmup=20, seed=3)
    assert found.phi.shape == (40, CORRELATED.size)
    assert found.effects.shape == (40, 2, 3)
    assert found.num_chains == 2
    assert np.isfinite(found.phi).all()
    assert (found.effects[:, :, :2] != 0).all()
    assert (found.effects[:, :, 2] == 0).all()
    assert not np.array_equal(found.phi[:20], found.phi[20:])
    assert not all(found.checks.values())


@pytest.mark.parametrize("site", ["alpha", "gamma", "beta", "sigma_alpha", "sigma_beta", "sigma_scale", "rho"])
def test_starts_are_where_numpyro_moves(site: str):
    values = jnp.array([0.3, 0.05, 0.9] if site.startswith("sigma") else [-0.6, 0.0, 0.8])
    expected = biject_to(Priors().distribution(site).support).inv(values)
    np.testing.assert_allclose(module._unconstrained(site, values), expected, rtol=1e-12, atol=1e-12)


def test_starts_are_draws_of_the_laplace_fit(worlds):
    """With hardly any spread, every chain starts at the mode: 2 arctanh rho is twice the packed coordinate."""
    batch = pack(worlds[0])
    fit = laplace(batch, CORRELATED, Priors())
    tight: LaplaceFit = fit._replace(covariance=1e-16 * np.eye(len(fit.mode)))
    rng = np.random.default_rng(0)
    starts = module._starts(batch, tight, Priors(), Support.ALL, 3, rng)
    assert set(starts) == {*CORRELATED.sites, "u", "v"}
    assert starts["gamma"].shape == (3, 2)
    assert starts["u"].shape == (3, 2)
    assert starts["rho"].shape == (3,)
    alpha, *gamma, beta, log_sigma_alpha, log_sigma_beta, rho = fit.mode
    for site, value in {
        "alpha": alpha,
        "gamma": gamma,
        "beta": beta,
        "sigma_alpha": log_sigma_alpha,
        "sigma_beta": log_sigma_beta,
        "rho": 2 * rho,
    }.items():
        np.testing.assert_allclose(starts[site], np.broadcast_to(value, starts[site].shape), atol=1e-6)
    wide = module._starts(batch, fit, Priors(), Support.ALL, 3, rng)
    assert (np.std(wide["alpha"], axis=0) > 1e-3).all()


def test_listed_batches_and_fixed_are_refused(worlds):
    with pytest.raises(ValueError, match=r"batch lists subsets: NUTS uses elimination; pack .* max_listed=0"):
        nuts(pack(worlds[0]), POOLED, Priors())
    with pytest.raises(ValueError, match=r"variant=fixed is not fitted"):
        nuts(pack(worlds[0], max_listed=0), Design(Variant.FIXED, Terms(), 2), Priors())


def test_non_empty_support_refuses_empty_gold(worlds):
    gold = worlds[0][0].gold.copy()
    gold[0] = False
    batch = pack([replace(worlds[0][0], gold=gold), worlds[0][1]], max_listed=0)
    with pytest.raises(ValueError, match=r"support=non-empty: a question has no gold table"):
        nuts(batch, POOLED, Priors(), Support.NON_EMPTY)


@pytest.fixture(scope="module")
def chains() -> dict[str, np.ndarray]:
    """Four chains of 500 independent draws of a scalar and of a vector."""
    rng = np.random.default_rng(0)
    return {"alpha": rng.normal(size=(4, 500)), "gamma": rng.normal(size=(4, 500, 3))}


def test_independent_draws_pass(chains):
    found = diagnostics(chains)
    assert found["r_hat"] < module.WORST_R_HAT
    # 2000 independent draws; ArviZ's own estimate of their number is good to a tenth or two.
    assert 1500 < found["ess_bulk"] < 2500
    assert 1000 < found["ess_tail"] < 2500


def test_one_shifted_entry_of_one_chain_fails(chains):
    gamma = chains["gamma"].copy()
    gamma[2, :, 1] += 1.0
    found = diagnostics(chains | {"gamma": gamma})
    assert found["r_hat"] > 1.05
    assert found["ess_bulk"] < module.LEAST_EFFECTIVE
    assert diagnostics({"alpha": chains["alpha"]})["r_hat"] < module.WORST_R_HAT


def test_sluggish_chains_have_few_effective_draws(chains):
    """An autoregression with coefficient 0.9 is worth (1 - 0.9) / (1 + 0.9) of its draws, about a nineteenth."""
    slow = np.zeros((4, 500))
    for step in range(1, 500):
        slow[:, step] = 0.9 * slow[:, step - 1] + chains["alpha"][:, step]
    found = diagnostics({"alpha": slow, "gamma": chains["gamma"]})
    assert 40 < found["ess_bulk"] < 250


def test_the_halves_of_one_chain_have_an_r_hat(chains):
    found = diagnostics({site: value[:1] for site, value in chains.items()})
    assert 0.99 < found["r_hat"] < 1.05
    assert 300 < found["ess_bulk"] < 700


def test_energy_fraction():
    """Independent energies have E-BFMI 2, a random walk nearly 0; each chain by itself."""
    rng = np.random.default_rng(0)
    noise = rng.normal(size=2000)
    found = module._energy_fraction(np.stack([noise, noise.cumsum()]))
    assert found.shape == (2,)
    assert found[0] == pytest.approx(2, abs=0.2)
    assert found[1] < module.LEAST_ENERGY


def test_the_default_number_of_chains_can_meet_the_checks():
    given = inspect.signature(nuts).parameters
    assert given["num_draws"].default * given["num_chains"].default > 4 * module.LEAST_EFFECTIVE
    assert jax.local_device_count() >= 1
