"""The NumPyro density of every variant against the hand-written one."""

import jax.numpy as jnp
import numpy as np
import oracles
import pytest
from numpyro.infer.util import log_density, potential_energy
from worlds import ISOLATED, PATH, STAR, simulate

from bayeslink.inference.elimination import log_partition
from bayeslink.inference.packing import pack
from bayeslink.model.autologistic import Support
from bayeslink.model.hierarchy import Variant, database_parameters, hierarchical_model, log_prior, population_sites
from bayeslink.model.priors import Priors

FITTED = [variant for variant in Variant if variant is not Variant.FIXED]
SITES = {"alpha": -0.4, "gamma": [0.8, -0.2], "beta": 0.7, "sigma_alpha": 0.9, "sigma_beta": 0.35}
U, V = [0.3, -1.2, 2.0], [-0.5, 0.1, 1.4]
EFFECTS = np.array([U, V]).T


@pytest.fixture(scope="module")
def world():
    return simulate(5, 3, 4, shapes=(PATH, STAR, ISOLATED), non_empty=True)


def arrays(names) -> dict:
    return {name: jnp.array(SITES[name]) for name in names}


def scales(factor: float) -> dict[str, float]:
    return {name: factor * scale for name, scale in oracles.SCALES.items()}


@pytest.mark.parametrize("support", list(Support))
@pytest.mark.parametrize("variant", FITTED)
def test_density_equals_the_hand_written_one(world, variant: Variant, support: Support):
    factor = 2.0 if support is Support.ALL else 1.0
    values = arrays(population_sites(variant)) | {"u": jnp.array(U), "v": jnp.array(V)}
    arguments = (pack(world), variant, Priors().scaled(factor), log_partition, support)
    found, trace = log_density(hierarchical_model, arguments, {}, values)
    non_empty = support is Support.NON_EMPTY
    expected = oracles.log_density(variant.value, world, SITES, U, V, scales(factor), non_empty)
    assert found == pytest.approx(expected, rel=1e-10)
    for d in range(3):
        pair = oracles.database_parameters(variant.value, SITES, U[d], V[d], scales(factor))
        recorded = trace["alpha_d"]["value"][d], trace["beta_d"]["value"][d]
        np.testing.assert_allclose(recorded, pair, rtol=1e-10)


def test_unconstrained_density_adds_the_jacobian_of_log_sigma(world):
    names = population_sites(Variant.HIERARCHICAL)
    values = arrays(names) | {"u": jnp.array(U), "v": jnp.array(V)}
    free = values | {name: jnp.log(values[name]) for name in ("sigma_alpha", "sigma_beta")}
    arguments = (pack(world), Variant.HIERARCHICAL, Priors(), log_partition)
    expected = oracles.log_density("hierarchical", world, SITES, U, V) + np.log(0.9) + np.log(0.35)
    assert -potential_energy(hierarchical_model, arguments, {}, free) == pytest.approx(expected, rel=1e-10)


def test_sites_of_each_variant():
    assert {variant.value: population_sites(variant) for variant in Variant} == {
        "independent": ("alpha", "gamma"),
        "independent_hierarchical": ("alpha", "gamma", "sigma_alpha"),
        "fixed": ("alpha", "gamma"),
        "pooled": ("alpha", "gamma", "beta"),
        "pooled_coupling": ("alpha", "gamma", "beta", "sigma_alpha"),
        "hierarchical": ("alpha", "gamma", "beta", "sigma_alpha", "sigma_beta"),
        "unpooled": ("gamma",),
    }


@pytest.mark.parametrize("variant", FITTED)
def test_prior_and_parameters_equal_the_hand_written_ones(variant: Variant):
    population = arrays(population_sites(variant))
    assert log_prior(population, Priors()) == pytest.approx(oracles.log_prior(variant.value, SITES), rel=1e-10)
    found = database_parameters(variant, population, jnp.array(EFFECTS), Priors())
    expected = [oracles.database_parameters(variant.value, SITES, u, v) for u, v in EFFECTS.tolist()]
    np.testing.assert_allclose(np.stack(found, axis=1), expected, rtol=1e-10)


def test_hierarchical_with_no_spread_is_pooled():
    population = arrays(population_sites(Variant.HIERARCHICAL)) | {
        "sigma_alpha": jnp.array(0.0),
        "sigma_beta": jnp.array(0.0),
    }
    found = database_parameters(Variant.HIERARCHICAL, population, jnp.array(EFFECTS), Priors())
    np.testing.assert_array_equal(np.stack(found), [[-0.4] * 3, [0.7] * 3])


def test_fixed_has_no_density_of_its_own(world):
    with pytest.raises(ValueError, match=r"variant=fixed has no parameters of its own: fit `independent`"):
        hierarchical_model(pack(world), Variant.FIXED, Priors(), log_partition)
