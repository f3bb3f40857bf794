"""The traced fit against the package's own fit, its draws against that fit's, its predictions against lists."""

import math

import jax
import jax.numpy as jnp
import numpy as np
import oracles
import pytest
from worlds import PATH, STAR, edge_array, make_evidence, simulate

from bayeslink.inference.laplace import draw_effects, laplace
from bayeslink.inference.packing import pack
from bayeslink.model.autologistic import Support
from bayeslink.model.batch import LocalParameters
from bayeslink.model.hierarchy import Variant
from bayeslink.model.priors import Priors
from bayeslink.simulation import replicate_fits as module
from bayeslink.simulation.replicate_fits import (
    batch_of,
    draw_parameters,
    fit_replicate,
    predict,
    separated,
    settings_of,
    start_of,
)

NUM_DATABASES, NUM_QUESTIONS, NUM_TABLES = 4, 12, 4


def worlds(num_worlds: int):
    """Evidence of several worlds, and the same as stacked arrays."""
    every = [
        simulate(seed, NUM_DATABASES, NUM_QUESTIONS, gamma=(1.2,), shapes=(PATH, STAR)) for seed in range(num_worlds)
    ]
    values = np.array([[item.values[..., 0] for item in world] for world in every])
    gold = np.array([[item.gold for item in world] for world in every], dtype=float)
    edges = np.array([[item.edges for item in world] for world in every])
    return every, tuple(jnp.asarray(part) for part in (values, gold, edges, np.ones(edges.shape[:3])))


@pytest.fixture(scope="module")
def hierarchical():
    """Two worlds, fitted together by one program and one by one by the package's fit."""
    every, arrays = worlds(2)
    settings = settings_of(Variant.HIERARCHICAL, Priors())

    def fitted(*world):
        batch = batch_of(*world)
        fit = fit_replicate(batch, settings, start_of(settings, alpha=jnp.asarray(-0.5)))
        noise = jax.random.normal(jax.random.key(0), (6, settings.design.size))
        effect_noise = jax.random.normal(jax.random.key(1), (6, NUM_DATABASES, 2))
        return fit, noise, draw_parameters(batch, settings, fit, noise, effect_noise)

    together = jax.jit(jax.vmap(fitted))(*arrays)
    alone = [laplace(pack(world), settings.design._replace(num_covariates=4), Priors()) for world in every]
    return every, settings, together, alone


def test_many_fits_at_once_are_the_packages_fit_of_each(hierarchical):
    _, _, (fits, _, _), alone = hierarchical
    assert np.asarray(fits.converged).all()
    assert (np.asarray(fits.steps) < module.MAX_STEPS).all()
    for place, fit in enumerate(alone):
        # Both stop at a gradient of at most 1e-4, which the curvature divides.
        np.testing.assert_allclose(fits.mode[place], fit.mode, atol=1e-3)
        np.testing.assert_allclose(fits.effects[place], fit.effects, atol=1e-3)
        factor = np.asarray(fits.factor[place])
        np.testing.assert_allclose(factor @ factor.T, fit.covariance, rtol=1e-2, atol=1e-4)


def test_draws_have_the_packages_mean_and_spread_given_phi(hierarchical):
    """Effects given each drawn phi: the centre is within a tenth of its standard deviation of the converged mode."""
    every, settings, (fits, noise, local), alone = hierarchical
    for place, world in enumerate(every):
        phi = np.asarray(fits.mode[place]) + np.asarray(noise[place]) @ np.asarray(fits.factor[place]).T
        many = np.repeat(phi, 300, axis=0)
        design = settings.design._replace(num_covariates=4)
        effects = draw_effects(
            pack(world), alone[place], many, Priors(), Support.ALL, np.random.default_rng(0)
        ).reshape(len(phi), 300, NUM_DATABASES, 3)
        for column, (mean, scale) in {0: (0, 3), 1: (2, 4)}.items():
            drawn = (local.intercept if column == 0 else local.coupling[..., 0])[place]
            exact = phi[:, None, None, mean] + np.exp(phi[:, None, None, scale]) * effects[..., column]
            noise_of = (np.asarray(drawn) - exact.mean(axis=1)) / exact.std(axis=1)
            # What is left is the standard normal jitter of the draw itself.
            assert np.abs(noise_of).max() < 4.5
            assert 0.5 < noise_of.std() < 1.5
        assert design.effects == (0, 1)


def test_draws_without_effects_are_those_of_the_gaussian():
    _, arrays = worlds(1)
    values, gold = arrays[0][0], arrays[1][0]
    settings = settings_of(Variant.INDEPENDENT, Priors())
    batch = separated(values, gold)
    fit = fit_replicate(batch, settings, start_of(settings))
    noise = jnp.asarray(np.random.default_rng(0).standard_normal((5, 2)))
    local = draw_parameters(batch, settings, fit, noise, jnp.zeros((5, NUM_DATABASES, 0)))
    expected = np.asarray(fit.mode) + np.asarray(noise) @ np.asarray(fit.factor).T
    np.testing.assert_allclose(local.intercept, np.repeat(expected[:, :1], NUM_DATABASES, axis=1), rtol=1e-10)
    np.testing.assert_allclose(local.slopes[:, 0, 0], expected[:, 1], rtol=1e-10)
    assert not np.asarray(local.coupling).any()


def test_tables_apart_give_the_independent_fit_of_the_whole():
    every, arrays = worlds(1)
    settings = settings_of(Variant.INDEPENDENT, Priors())
    fit = fit_replicate(separated(arrays[0][0], arrays[1][0]), settings, start_of(settings))
    whole = laplace(pack(every[0]), settings.design._replace(num_covariates=4), Priors())
    np.testing.assert_allclose(fit.mode, whole.mode, atol=1e-5)
    np.testing.assert_allclose(fit.factor @ fit.factor.T, whole.covariance, rtol=1e-4)
    assert bool(fit.converged)


def test_a_search_that_is_cut_off_says_so(monkeypatch):
    _, arrays = worlds(1)
    batch = separated(arrays[0][0], arrays[1][0])
    settings = settings_of(Variant.INDEPENDENT, Priors())
    monkeypatch.setattr(module, "MAX_STEPS", 2)
    assert not bool(fit_replicate(batch, settings, start_of(settings, alpha=jnp.asarray(4.0))).converged)


def test_evidence_that_is_not_a_number_is_no_fit():
    batch = separated(jnp.full((2, 3, 3), jnp.nan), jnp.zeros((2, 3, 3)))
    settings = settings_of(Variant.INDEPENDENT, Priors())
    fit = fit_replicate(batch, settings, start_of(settings))
    assert not bool(fit.converged)
    assert int(fit.steps) < module.MAX_STEPS


def test_ascent_goes_up_and_is_newtons_where_it_can_be():
    concave = -jnp.diag(jnp.array([2.0, 5.0]))
    gradient = jnp.array([0.4, -1.0])
    np.testing.assert_allclose(module._ascent(gradient, concave), [0.2, -0.2], rtol=1e-10)
    saddle = jnp.diag(jnp.array([2.0, -1e-12]))
    step = module._ascent(gradient, saddle)
    np.testing.assert_allclose(step, [0.2, -module.LONGEST_STEP], rtol=1e-10)
    assert float(gradient @ step) > 0


def test_prediction_is_the_listed_mixture():
    rng = np.random.default_rng(4)
    values, gold = rng.standard_normal((2, 3, 4)), rng.integers(2, size=(2, 3, 4)).astype(float)
    edges = np.stack([edge_array(PATH), edge_array(STAR)])
    is_edge = np.array([[1.0, 1.0, 1.0], [1.0, 1.0, 0.0]])
    batch = batch_of(*(jnp.asarray(part) for part in (values, gold, edges, is_edge)))
    intercept, slopes = rng.standard_normal((3, 2)), rng.standard_normal((3, 2, 1))
    coupling = rng.standard_normal((3, 2, 1))
    local = LocalParameters(*(jnp.asarray(part) for part in (intercept, np.zeros((3, 0)), slopes, coupling)))
    for imposed in (None, np.array([0.4, -0.6])):
        found = predict(batch, local, None if imposed is None else jnp.asarray(imposed))
        for d in range(2):
            pairs = [pair for pair, real in zip(edges[d].tolist(), is_edge[d], strict=True) if real]
            for q in range(3):
                exact = oracles.mixture(
                    [
                        oracles.distribution(
                            [float(intercept[s, d] + slopes[s, d, 0] * z) for z in values[d, q]],
                            pairs,
                            float(coupling[s, d, 0] if imposed is None else imposed[d]),
                        )
                        for s in range(3)
                    ]
                )
                np.testing.assert_allclose(found.marginals[d, q], oracles.marginals(exact), rtol=1e-10)
                chosen = tuple(int(bit) for bit in gold[d, q])
                assert float(found.log_score[d, q]) == pytest.approx(math.log(exact[chosen]), rel=1e-10)


def test_the_batch_is_what_the_package_packs():
    """The same numbers as `pack` makes of the same evidence, padding apart."""
    values = np.random.default_rng(0).standard_normal((1, 3, 4))
    gold = np.zeros((1, 3, 4))
    item = make_evidence(values[0, ..., None], edge_array(PATH), gold[0].astype(bool))
    ours = batch_of(*(jnp.asarray(part) for part in (values, gold, edge_array(PATH)[None], np.ones((1, 3)))))
    packed = pack([item]).buckets[0]
    bucket = ours.buckets[0]
    for name in ("values", "gold", "weight"):
        np.testing.assert_array_equal(getattr(bucket, name), getattr(packed, name)[:, :3])
    for name in ("edges", "is_edge", "is_table", "database"):
        np.testing.assert_array_equal(getattr(bucket, name), getattr(packed, name))
