"""One unconstrained vector for the population: its layout, its way back and its Jacobian."""

import math

import differences
import jax.numpy as jnp
import numpy as np
import oracles
import pytest

from bayeslink.inference.population import log_population_density, pack_population, positions, unpack_population
from bayeslink.model.hierarchy import Design, Terms, Variant
from bayeslink.model.priors import Priors

FITTED = [variant for variant in Variant if variant is not Variant.FIXED]
SITES = {
    "alpha": -0.3,
    "kappa": [0.3, -0.5],
    "gamma": [0.7, -0.4],
    "beta": 0.5,
    "lambda": [0.2, -0.4, 0.1],
    "delta": [0.6, -0.3],
    "sigma_alpha": 0.6,
    "sigma_beta": 0.4,
    "sigma_scale": 0.2,
    "rho": -0.6,
}


@pytest.fixture(params=[Terms(), Terms(True, True, True, True)], ids=["paper", "all terms"])
def terms(request) -> Terms:
    return request.param


def design_of(variant: Variant, terms: Terms) -> Design:
    return Design(variant, terms, 2, 2, 3, 3)


def phi_of(design: Design) -> np.ndarray:
    return np.asarray(pack_population({site: jnp.array(SITES[site]) for site in design.sites}, design))


def test_layout_by_hand():
    phi = phi_of(Design(Variant.HIERARCHICAL, Terms(), 2))
    np.testing.assert_allclose(phi, [-0.3, 0.7, -0.4, 0.5, math.log(0.6), math.log(0.4)], rtol=1e-12)
    whole = phi_of(design_of(Variant.HIERARCHICAL, Terms(True, True, True, True)))
    vectors = [-0.3, 0.3, -0.5, 0.7, -0.4, 0.5, 0.2, -0.4, 0.1, 0.6, -0.3]
    np.testing.assert_allclose(whole, [*vectors, *map(math.log, (0.6, 0.4, 0.2)), math.atanh(-0.6)], rtol=1e-12)


@pytest.mark.parametrize("variant", FITTED)
def test_positions_cover_phi_once(variant: Variant, terms: Terms):
    design = design_of(variant, terms)
    found = positions(design)
    assert list(found) == list(design.sites)
    covered = [index for place in found.values() for index in range(place.start, place.stop)]
    assert covered == list(range(design.size))


@pytest.mark.parametrize("variant", FITTED)
def test_round_trip(variant: Variant, terms: Terms):
    design = design_of(variant, terms)
    phi = phi_of(design)
    assert phi.shape == (design.size,)
    named = unpack_population(jnp.array(phi), design)
    assert list(named) == list(design.sites)
    for site, value in named.items():
        assert value.shape == np.shape(SITES[site])
        np.testing.assert_allclose(value, SITES[site], rtol=1e-12)
    np.testing.assert_allclose(pack_population(named, design), phi, rtol=1e-12)


@pytest.mark.parametrize("variant", FITTED)
def test_density_is_the_prior_and_the_jacobian_by_differences(variant: Variant, terms: Terms):
    """The Jacobian is the determinant of d(natural scale) / d phi, by finite differences."""
    design = design_of(variant, terms)
    phi = phi_of(design)

    def natural(point: np.ndarray) -> np.ndarray:
        named = unpack_population(jnp.array(point), design)
        return np.concatenate([np.atleast_1d(named[site]) for site in design.sites])

    sign, jacobian = np.linalg.slogdet(differences.gradient(natural, phi))
    assert sign == 1
    sites = {site: SITES[site] for site in design.sites}
    expected = oracles.log_prior(variant.value, sites) + jacobian
    found = log_population_density(jnp.array(phi), design, Priors())
    # Fourth-order differences with step 1e-3 are good to about 1e-11.
    assert found == pytest.approx(expected, rel=1e-9)
