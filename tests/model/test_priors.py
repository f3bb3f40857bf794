"""Prior scales and the densities they give."""

import math

import jax.numpy as jnp
import numpyro.distributions as dist
import oracles
import pytest

from bayeslink.model.priors import Priors


@pytest.mark.parametrize("site", [site for site in oracles.SCALES if site != "own"])
@pytest.mark.parametrize("factor", [1.0, 0.5, 4.0])
def test_densities_are_those_of_the_text(site: str, factor: float):
    log_density = oracles.log_half_normal if site.startswith("sigma") else oracles.log_normal
    found = Priors().scaled(factor).distribution(site).log_prob(0.7)
    assert found == pytest.approx(log_density(0.7, factor * oracles.SCALES[site]), rel=1e-10)


def test_scaled_multiplies_every_scale():
    """The concentration of the correlation is no scale and stays."""
    assert Priors().scaled(2.0) == Priors(4.0, 2.0, 2.0, 2.0, 2.0, 10.0, 2.0, 1.0, 1.0, 2.0)
    assert Priors().scaled(1.0) == Priors()


@pytest.mark.parametrize("scale", [0.0, -1.0, float("nan")])
def test_a_scale_must_be_positive(scale: float):
    with pytest.raises(ValueError, match=r"coupling_scale=.*must be positive"):
        Priors(coupling_scale=scale)


@pytest.mark.parametrize("rho", [-0.95, -0.3, 0.0, 0.7])
def test_the_correlation_is_lkj(rho: float):
    found = Priors().distribution("rho").log_prob(rho)
    assert found == pytest.approx(oracles.log_correlation(rho), rel=1e-10)
    # LKJ(1) is uniform on (-1, 1).
    flat = Priors(correlation_concentration=1.0).distribution("rho").log_prob(rho)
    assert flat == pytest.approx(math.log(0.5), rel=1e-10)


def test_the_correlation_is_that_of_numpyros_lkj_matrix():
    """NumPyro's density of the Cholesky factor, whose second row is (rho, sqrt(1 - rho^2)); rho is its coordinate."""
    for concentration in (1.5, 2.0, 4.0):
        whole = dist.LKJCholesky(2, concentration)
        for rho in (-0.8, 0.1, 0.6):
            factor = jnp.array([[1.0, 0.0], [rho, math.sqrt(1 - rho**2)]])
            found = Priors(correlation_concentration=concentration).distribution("rho").log_prob(rho)
            assert found == pytest.approx(float(whole.log_prob(factor)), rel=1e-10)


def test_an_unknown_site_has_no_prior():
    with pytest.raises(KeyError):
        Priors().distribution("epsilon")
