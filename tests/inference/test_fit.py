"""From raw evidence to draws: what each variant and method puts into its posterior."""

import numpy as np
import pytest

from bayeslink.evidence.channel import Standardisation
from bayeslink.inference.fit import FIXED_COUPLING, fit, fit_packed
from bayeslink.inference.packing import pack
from bayeslink.model.autologistic import Support
from bayeslink.model.hierarchy import Variant, population_sites
from bayeslink.model.priors import Priors


@pytest.fixture(scope="module")
def packed(world):
    """Raw evidence, packed as it is, with the standardisation that says so."""
    unit = Standardisation(world[0].channels, np.zeros(2), np.ones(2))
    return pack(world), tuple(item.key for item in world), unit


@pytest.fixture(scope="module")
def hierarchical(packed):
    return fit_packed(*packed, Variant.HIERARCHICAL, Priors(), num_draws=40, seed=7)


def test_draws_have_the_stated_mean_and_covariance(packed):
    posterior, found = fit_packed(*packed, Variant.HIERARCHICAL, Priors(), num_draws=4000, effects=False)
    assert set(posterior.draws) == set(population_sites(Variant.HIERARCHICAL))
    assert (posterior.draws["sigma_alpha"] > 0).all()
    logs = [
        np.log(posterior.draws[site]) if site.startswith("sigma") else posterior.draws[site] for site in found.sites
    ]
    phi = np.column_stack(logs)
    sizes = np.diag(found.covariance)
    assert (np.abs(phi.mean(axis=0) - found.mode) < 4 * np.sqrt(sizes / 4000)).all()
    errors = np.sqrt((np.outer(sizes, sizes) + found.covariance**2) / 4000)
    assert (np.abs(np.cov(phi.T) - found.covariance) < 4 * errors).all()


def test_hierarchical_draws_population_and_databases(hierarchical, world):
    posterior, found = hierarchical
    assert (posterior.variant, posterior.method, posterior.support) == (Variant.HIERARCHICAL, "laplace", Support.ALL)
    shapes = {site: value.shape for site, value in posterior.draws.items()}
    single = dict.fromkeys(("alpha", "beta", "sigma_alpha", "sigma_beta"), (40,))
    assert shapes == {**single, "gamma": (40, 2), "alpha_d": (40, 3), "beta_d": (40, 3)}
    assert posterior.databases == tuple(item.key for item in world)
    assert posterior.checks == {"converged": True, "inner_converged": True, "hessian_negative_definite": True}
    assert posterior.info["num_questions"] == 24
    assert posterior.info["log_marginal"] == pytest.approx(found.log_marginal)
    assert posterior.coupling is None


def test_one_seed_one_posterior(packed, hierarchical):
    again, _ = fit_packed(*packed, Variant.HIERARCHICAL, Priors(), num_draws=40, seed=7)
    other, _ = fit_packed(*packed, Variant.HIERARCHICAL, Priors(), num_draws=40, seed=8)
    for site, value in hierarchical[0].draws.items():
        np.testing.assert_array_equal(value, again.draws[site])
        assert (value != other.draws[site]).any()


def test_fixed_holds_the_independent_fit_and_the_given_coupling(packed):
    independent, _ = fit_packed(*packed, Variant.INDEPENDENT, Priors(), num_draws=40, seed=3)
    fixed, _ = fit_packed(*packed, Variant.FIXED, Priors(), num_draws=40, seed=3, coupling=0.9)
    assert set(fixed.draws) == {"alpha", "gamma"}
    for site in ("alpha", "gamma"):
        np.testing.assert_array_equal(fixed.draws[site], independent.draws[site])
    assert (fixed.variant, fixed.coupling, independent.coupling) == (Variant.FIXED, 0.9, None)
    for key in (fixed.databases[1], None):
        draws = fixed.unseen() if key is None else fixed.seen(key)
        np.testing.assert_array_equal(draws.coupling, np.full(40, 0.9))
        np.testing.assert_array_equal(draws.intercept, independent.draws["alpha"])
    assert (independent.unseen().coupling == 0).all()
    assert fit_packed(*packed, Variant.FIXED, Priors())[0].coupling == FIXED_COUPLING


def test_fit_standardises_the_training_evidence(world):
    posterior = fit(world, Variant.INDEPENDENT, num_draws=40, seed=1)
    expected = Standardisation.fit(world)
    np.testing.assert_array_equal(posterior.standardisation.mean, expected.mean)
    np.testing.assert_array_equal(posterior.standardisation.scale, expected.scale)
    batch = pack([expected.apply(item) for item in world])
    keys = tuple(item.key for item in world)
    same, _ = fit_packed(batch, keys, expected, Variant.INDEPENDENT, Priors(), num_draws=40, seed=1)
    np.testing.assert_array_equal(posterior.draws["alpha"], same.draws["alpha"])


def test_support_is_kept(packed):
    posterior, _ = fit_packed(*packed, Variant.INDEPENDENT, Priors(), support=Support.NON_EMPTY, num_draws=2)
    assert posterior.support is Support.NON_EMPTY


def test_refusals(world, packed, hierarchical):
    with pytest.raises(ValueError, match=r"num_draws=0: at least one draw is needed"):
        fit_packed(*packed, Variant.INDEPENDENT, Priors(), num_draws=0)
    with pytest.raises(ValueError, match=r"num_draws=0: at least one draw is needed"):
        fit(world, Variant.INDEPENDENT, num_draws=0, method="laplace_joint")
    with pytest.raises(ValueError, match=r"method='vi' is not one of \('laplace', 'laplace_joint'\)"):
        fit(world, method="vi")
    with pytest.raises(ValueError, match=r"start is for method='laplace'; leave it out"):
        fit(world, method="laplace_joint", start=hierarchical[1])
    with pytest.raises(ValueError, match=r"evidences hold no question"):
        fit([])
