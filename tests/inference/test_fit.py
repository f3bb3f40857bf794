"""From raw evidence to draws: what each variant and method puts into its posterior."""

from dataclasses import replace

import numpy as np
import oracles
import pytest
from worlds import PATH, STAR, simulate

from bayeslink.evaluation.agreement import summaries
from bayeslink.evidence.channel import Standardisation
from bayeslink.evidence.forms import FORMS
from bayeslink.inference.fit import FIXED_COUPLING, fit, fit_packed, named_draws
from bayeslink.inference.packing import pack
from bayeslink.inference.predictive import predict
from bayeslink.model.autologistic import Support
from bayeslink.model.hierarchy import Design, Terms, Variant
from bayeslink.model.priors import Priors

TRIANGLE = ((0, 1), (1, 2), (0, 2))


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
    assert list(posterior.draws) == list(found.design.sites) == ["alpha", "gamma", "beta", "sigma_alpha", "sigma_beta"]
    assert (posterior.draws["sigma_alpha"] > 0).all()
    logs = [np.log(value) if site.startswith("sigma") else value for site, value in posterior.draws.items()]
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


def test_a_fit_with_forms_has_a_slope_for_each(world):
    posterior = fit(world, Variant.POOLED, num_draws=5, forms=FORMS)
    assert posterior.draws["gamma"].shape == (5, 4 * len(world[0].channels))
    expected = Standardisation.fit(world, forms=FORMS)
    np.testing.assert_array_equal(posterior.standardisation.form_scale, expected.form_scale)
    for item in world:
        ready = posterior.standardisation.apply(item)
        assert np.isfinite(predict(ready, posterior.seen(item.key, ready))[1]).all()
    updated = posterior.update(world[0])
    assert updated.forms == FORMS
    assert summaries(updated).names[1:3] == ("gamma[c0]", "gamma[c1]")
    assert "gamma[rank_c1]" in summaries(updated).names


def test_support_is_kept(packed):
    posterior, _ = fit_packed(*packed, Variant.INDEPENDENT, Priors(), support=Support.NON_EMPTY, num_draws=2)
    assert posterior.support is Support.NON_EMPTY


ALL_TERMS = Terms(True, True, True, True)
RICH = {"context": ("log_num_tables", "evidence_mean"), "terms": ALL_TERMS}


@pytest.fixture(scope="module")
def unlike():
    """Raw evidence of databases of unlike sizes and kinds of edges, so that no covariate is constant."""
    parts = [simulate(4, 2, 6, shapes=(PATH, STAR)), simulate(6, 2, 6, shapes=(TRIANGLE,), num_tables=3)]
    found = [replace(item, db_id=f"db{d}") for d, item in enumerate(parts[0] + parts[1])]
    return [replace(item, edge_types=np.arange(len(item.edges)) % 3) for item in found]


@pytest.fixture(scope="module")
def rich(unlike):
    return fit(unlike, Variant.HIERARCHICAL, num_draws=20, **RICH)


def test_a_fit_with_all_terms_and_contexts(rich, unlike):
    shapes = {site: value.shape for site, value in rich.draws.items()}
    single = ("alpha", "beta", "sigma_alpha", "sigma_beta", "sigma_scale", "rho")
    vectors = {"kappa": (20, 3), "gamma": (20, 2), "lambda": (20, 3), "delta": (20, 2)}
    own = dict.fromkeys(("alpha_d", "beta_d", "scale_d"), (20, 4))
    assert shapes == dict.fromkeys(single, (20,)) | vectors | own
    assert (np.abs(rich.draws["rho"]) < 1).all()
    assert rich.standardisation.context_names == ("log_num_tables", "mean_c0", "mean_c1")
    assert rich.checks == {"converged": True, "inner_converged": True, "hessian_negative_definite": True}
    for item in unlike:
        ready = rich.standardisation.apply(item)
        for draws in (rich.seen(item.key, ready), rich.unseen(1, ready)):
            assert draws.slopes.shape == (20, 5)
            assert draws.coupling.shape == (20, len(item.edges))
            assert np.isfinite(predict(ready, draws)[1]).all()


@pytest.mark.parametrize("variant", [Variant.INDEPENDENT_HIERARCHICAL, Variant.POOLED_COUPLING, Variant.FIXED])
def test_other_variants_take_the_terms_they_have_room_for(unlike, variant: Variant):
    posterior = fit(unlike, variant, num_draws=5, **RICH)
    assert ("rho" in posterior.draws, "sigma_beta" in posterior.draws, "beta_d" in posterior.draws) == (False,) * 3
    assert ("scale_d" in posterior.draws) == (variant is not Variant.FIXED)
    assert ("lambda" in posterior.draws) == ("delta" in posterior.draws) == (variant is Variant.POOLED_COUPLING)
    for item in unlike:
        ready = posterior.standardisation.apply(item)
        assert np.isfinite(predict(ready, posterior.seen(item.key, ready))[1]).all()


def test_named_draws_are_the_database_parameters_by_hand(unlike):
    standardisation = Standardisation.fit(unlike)
    ready = [standardisation.apply(item) for item in unlike]
    batch = pack(ready)
    design = Design.of(batch, Variant.HIERARCHICAL, ALL_TERMS)
    rng = np.random.default_rng(0)
    phi, effects = 0.3 * rng.normal(size=(3, design.size)), rng.normal(size=(3, 4, 3))
    found = named_draws(batch, design, Priors(), phi, effects)
    sites = [site for site in found if not site.endswith("_d")]
    assert sites == list(design.sites)
    for s in range(3):
        point = {site: np.asarray(found[site][s]).tolist() for site in sites}
        for d, item in enumerate(ready):
            alpha, slopes, kinds = oracles.local_parameters(
                "hierarchical", point, effects[s, d].tolist(), item.covariates.tolist()
            )
            np.testing.assert_allclose(found["alpha_d"][s, d], alpha, rtol=1e-10)
            np.testing.assert_allclose(found["beta_d"][s, d], kinds[0], rtol=1e-10)
            np.testing.assert_allclose(found["scale_d"][s, d] * found["gamma"][s], slopes, rtol=1e-10)


def test_refusals(world, packed, hierarchical):
    with pytest.raises(ValueError, match=r"num_draws=0: at least one draw is needed"):
        fit_packed(*packed, Variant.INDEPENDENT, Priors(), num_draws=0)
    with pytest.raises(ValueError, match=r"num_draws=0: at least one draw is needed"):
        fit(world, Variant.INDEPENDENT, num_draws=0, method="laplace_joint")
    with pytest.raises(ValueError, match=r"method='vi' is not one of \('laplace', 'nested', 'nuts', 'laplace_joint'\)"):
        fit(world, method="vi")
    with pytest.raises(ValueError, match=r"start is for method='laplace'; leave it out"):
        fit(world, method="laplace_joint", start=hierarchical[1])
    with pytest.raises(ValueError, match=r"evidences hold no question"):
        fit([])
    with pytest.raises(ValueError, match=r"context=\['size'\]: use some of log_num_tables"):
        fit(world, context=("size",))
