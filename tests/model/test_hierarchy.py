"""The NumPyro density of every variant, with and without further terms, against the hand-written one."""

import jax.numpy as jnp
import numpy as np
import oracles
import pytest
from numpyro.infer.util import log_density, potential_energy
from worlds import ISOLATED, PATH, STAR, rich_world, simulate

from bayeslink.inference.packing import log_partition, pack
from bayeslink.model.autologistic import Support
from bayeslink.model.hierarchy import (
    EFFECTS,
    Design,
    Terms,
    Variant,
    database_parameters,
    hierarchical_model,
    log_prior,
)
from bayeslink.model.priors import Priors

FITTED = [variant for variant in Variant if variant is not Variant.FIXED]
ALL_TERMS = Terms(True, True, True, True)
SITES = {
    "alpha": -0.4,
    "kappa": [0.3, -0.5, 0.2],
    "gamma": [0.8, -0.2],
    "beta": 0.7,
    "lambda": [0.2, -0.4, 0.1],
    "delta": [0.6, -0.3],
    "sigma_alpha": 0.9,
    "sigma_beta": 0.35,
    "sigma_scale": 0.25,
    "rho": -0.6,
}
DRAWN = np.array([[0.3, -0.5, 0.8], [-1.2, 0.1, -1.5], [2.0, 1.4, 0.4], [-0.7, 0.9, 0.2]])
"""(u_d, v_d, w_d) of up to four databases."""


@pytest.fixture(scope="module")
def world():
    return simulate(5, 3, 4, shapes=(PATH, STAR, ISOLATED), non_empty=True)


@pytest.fixture(scope="module")
def rich():
    return rich_world()


def paper(variant: Variant) -> Design:
    """The paper's variant for two channels."""
    return Design(variant, Terms(), 2)


def arrays(design: Design) -> dict:
    return {site: jnp.array(SITES[site]) for site in design.sites}


def values_of(design: Design, num_databases: int) -> dict:
    """Every site of the NumPyro model."""
    named = dict(zip(EFFECTS, jnp.array(DRAWN[:num_databases].T), strict=True))
    return arrays(design) | {EFFECTS[place]: named[EFFECTS[place]] for place in design.effects}


def exact_density(design: Design, world, scales=oracles.SCALES, non_empty: bool = False) -> float:
    u, v, w = DRAWN[: len(world)].T.tolist()
    sites = {site: SITES[site] for site in design.sites}
    return oracles.log_density(design.variant.value, world, sites, u, v, scales, non_empty, w)


def scales(factor: float) -> dict[str, float]:
    return {name: factor * scale for name, scale in oracles.SCALES.items()}


@pytest.mark.parametrize("support", list(Support))
@pytest.mark.parametrize("variant", FITTED)
def test_density_equals_the_hand_written_one(world, variant: Variant, support: Support):
    factor = 2.0 if support is Support.ALL else 1.0
    design, batch = paper(variant), pack(world)
    assert Design.of(batch, variant) == design._replace(num_covariates=3)
    arguments = (batch, design, Priors().scaled(factor), log_partition, support)
    found, trace = log_density(hierarchical_model, arguments, {}, values_of(design, 3))
    expected = exact_density(design, world, scales(factor), support is Support.NON_EMPTY)
    assert found == pytest.approx(expected, rel=1e-10)
    for d in range(3):
        pair = oracles.database_parameters(variant.value, SITES, DRAWN[d, 0], DRAWN[d, 1], scales(factor))
        recorded = trace["alpha_d"]["value"][d], trace["beta_d"]["value"][d]
        np.testing.assert_allclose(recorded, pair, rtol=1e-10)
    sampled = {name for name, site in trace.items() if site["type"] == "sample" and name != "log_likelihood"}
    assert sampled == set(values_of(design, 3))


@pytest.mark.parametrize("max_listed", [0, 10])
@pytest.mark.parametrize("variant", FITTED)
def test_density_with_all_terms_equals_the_hand_written_one(rich, variant: Variant, max_listed: int):
    batch = pack(rich, max_listed)
    design = Design.of(batch, variant, ALL_TERMS)
    support = Support.NON_EMPTY if max_listed else Support.ALL
    arguments = (batch, design, Priors(), log_partition, support)
    found, trace = log_density(hierarchical_model, arguments, {}, values_of(design, 4))
    assert found == pytest.approx(exact_density(design, rich, non_empty=bool(max_listed)), rel=1e-10)
    assert ("scale_d" in trace) == (2 in design.effects)
    if "scale_d" in trace:
        np.testing.assert_allclose(trace["scale_d"]["value"], 1 + 0.25 * DRAWN[:, 2], rtol=1e-10)


def test_unconstrained_density_adds_the_jacobian_of_log_sigma(world):
    design = paper(Variant.HIERARCHICAL)
    values = values_of(design, 3)
    free = values | {name: jnp.log(values[name]) for name in ("sigma_alpha", "sigma_beta")}
    arguments = (pack(world), design, Priors(), log_partition)
    expected = exact_density(design, world) + np.log(0.9) + np.log(0.35)
    assert -potential_energy(hierarchical_model, arguments, {}, free) == pytest.approx(expected, rel=1e-10)


def test_sites_of_each_variant():
    assert {variant.value: tuple(paper(variant).sites) for variant in Variant} == {
        "independent": ("alpha", "gamma"),
        "independent_hierarchical": ("alpha", "gamma", "sigma_alpha"),
        "fixed": ("alpha", "gamma"),
        "pooled": ("alpha", "gamma", "beta"),
        "pooled_coupling": ("alpha", "gamma", "beta", "sigma_alpha"),
        "hierarchical": ("alpha", "gamma", "beta", "sigma_alpha", "sigma_beta"),
        "unpooled": ("gamma",),
    }


def test_sites_of_each_variant_with_all_terms_and_their_sizes():
    """A variant takes the terms that its structure has room for."""
    found = {variant.value: Design(variant, ALL_TERMS, 2, 3, 3, 3) for variant in Variant}
    partial = {"sigma_alpha": 1, "sigma_scale": 1}
    coupled = {"alpha": 1, "kappa": 3, "gamma": 2, "beta": 1, "lambda": 3, "delta": 2}
    assert {name: design.sites for name, design in found.items()} == {
        "independent": {"alpha": 1, "kappa": 3, "gamma": 2},
        "independent_hierarchical": {"alpha": 1, "kappa": 3, "gamma": 2} | partial,
        "fixed": {"alpha": 1, "kappa": 3, "gamma": 2},
        "pooled": coupled,
        "pooled_coupling": coupled | partial,
        "hierarchical": coupled | partial | {"sigma_beta": 1, "rho": 1},
        "unpooled": {"kappa": 3, "gamma": 2, "delta": 2},
    }
    assert list(found["hierarchical"].sites) == list(SITES)
    assert {name: design.effects for name, design in found.items()} == {
        "independent": (),
        "independent_hierarchical": (0, 2),
        "fixed": (),
        "pooled": (),
        "pooled_coupling": (0, 2),
        "hierarchical": (0, 1, 2),
        "unpooled": (0, 1),
    }
    assert (found["hierarchical"].size, found["hierarchical"].num_coordinates) == (16, 6)
    assert (found["independent"].num_coordinates, paper(Variant.HIERARCHICAL).num_coordinates) == (3, 4)


@pytest.mark.parametrize(
    ("terms", "site"),
    [
        (Terms(correlated=True), "rho"),
        (Terms(slope_scale=True), "sigma_scale"),
        (Terms(edge_types=True), "delta"),
        (Terms(coupling_covariates=True), "lambda"),
    ],
)
def test_each_term_adds_its_own_site(terms: Terms, site: str):
    plain = Design(Variant.HIERARCHICAL, Terms(), 2, 0, 3, 3)
    assert set(plain._replace(terms=terms).sites) - set(plain.sites) == {site}


@pytest.mark.parametrize("terms", [Terms(), ALL_TERMS], ids=["paper", "all terms"])
@pytest.mark.parametrize("variant", FITTED)
def test_prior_and_parameters_equal_the_hand_written_ones(rich, variant: Variant, terms: Terms):
    design = Design(variant, terms, 2, 3, 3, 3)
    population = arrays(design)
    sites = {site: SITES[site] for site in design.sites}
    assert log_prior(population, Priors()) == pytest.approx(oracles.log_prior(variant.value, sites), rel=1e-10)
    covariates = np.stack([item.covariates for item in rich])
    found = database_parameters(design, population, jnp.array(DRAWN), jnp.array(covariates), Priors())
    np.testing.assert_array_equal(found.context, SITES["kappa"])
    for d, effects in enumerate(DRAWN.tolist()):
        alpha, slopes, kinds = oracles.local_parameters(variant.value, sites, effects, covariates[d].tolist())
        np.testing.assert_allclose(found.intercept[d], alpha, rtol=1e-10)
        np.testing.assert_allclose(found.slopes[d], slopes, rtol=1e-10)
        np.testing.assert_allclose(found.coupling[d], kinds, rtol=1e-10)


def test_correlated_effects_have_the_correlation():
    """With v' = rho u + sqrt(1 - rho^2) v: Var v' = 1 and Cov(u, v') = rho, read off its coefficients."""
    design = Design(Variant.HIERARCHICAL, Terms(correlated=True), 2)
    population = arrays(design) | {"alpha": jnp.array(0.0), "beta": jnp.array(0.0)}
    unit = jnp.eye(3)
    found = database_parameters(design, population, unit, jnp.zeros((3, 0)), Priors())
    by_intercept, by_coupling = np.asarray(found.intercept) / 0.9, np.asarray(found.coupling[:, 0]) / 0.35
    assert by_coupling @ by_coupling == pytest.approx(1, rel=1e-10)
    assert by_intercept @ by_coupling == pytest.approx(-0.6, rel=1e-10)


def test_hierarchical_with_no_spread_is_pooled():
    design = paper(Variant.HIERARCHICAL)
    population = arrays(design) | {"sigma_alpha": jnp.array(0.0), "sigma_beta": jnp.array(0.0)}
    found = database_parameters(design, population, jnp.array(DRAWN[:3]), jnp.zeros((3, 0)), Priors())
    np.testing.assert_array_equal(found.intercept, [-0.4] * 3)
    np.testing.assert_array_equal(found.coupling, [[0.7]] * 3)


def test_terms_at_zero_are_the_paper(rich):
    full, plain = Design(Variant.HIERARCHICAL, ALL_TERMS, 2, 3, 3, 3), Design(Variant.HIERARCHICAL, Terms(), 2, 3, 3)
    off = {site: jnp.zeros_like(jnp.array(SITES[site])) for site in ("lambda", "delta", "sigma_scale", "rho")}
    covariates = jnp.array(np.stack([item.covariates for item in rich]))
    found = database_parameters(full, arrays(full) | off, jnp.array(DRAWN), covariates, Priors())
    expected = database_parameters(plain, arrays(plain), jnp.array(DRAWN), covariates, Priors())
    for part, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(part, np.broadcast_to(other, part.shape), rtol=1e-12)


def test_fixed_has_no_density_of_its_own(world):
    with pytest.raises(ValueError, match=r"variant=fixed has no parameters of its own: fit `independent`"):
        hierarchical_model(pack(world), paper(Variant.FIXED), Priors(), log_partition)
