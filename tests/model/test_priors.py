"""Prior scales and the densities they give."""

import oracles
import pytest

from bayeslink.model.priors import Priors


@pytest.mark.parametrize("site", ["alpha", "gamma", "beta", "sigma_alpha", "sigma_beta"])
@pytest.mark.parametrize("factor", [1.0, 0.5, 4.0])
def test_densities_are_those_of_the_text(site: str, factor: float):
    log_density = oracles.log_half_normal if site.startswith("sigma") else oracles.log_normal
    found = Priors().scaled(factor).distribution(site).log_prob(0.7)
    assert found == pytest.approx(log_density(0.7, factor * oracles.SCALES[site]), rel=1e-10)


def test_scaled_multiplies_every_scale():
    assert Priors().scaled(2.0) == Priors(4.0, 2.0, 2.0, 2.0, 2.0, 10.0)
    assert Priors().scaled(1.0) == Priors()


@pytest.mark.parametrize("scale", [0.0, -1.0, float("nan")])
def test_a_scale_must_be_positive(scale: float):
    with pytest.raises(ValueError, match=r"coupling_scale=.*must be positive"):
        Priors(coupling_scale=scale)


def test_an_unknown_site_has_no_prior():
    with pytest.raises(KeyError):
        Priors().distribution("delta")
