"""Sequential use: brute-force weights, a refit with the database, table effects, files and prediction."""

import copy
import math
from dataclasses import replace

import numpy as np
import oracles
import pytest
from scipy.special import logsumexp
from worlds import CYCLE, ISOLATED, PATH, STAR, draw_selections, edge_array, make_evidence, simulate

from bayeslink.evidence.channel import Evidence, Standardisation
from bayeslink.inference import update as module
from bayeslink.inference.enumeration import MAX_TABLES
from bayeslink.inference.factored import FactoredDistribution
from bayeslink.inference.fit import fit_packed
from bayeslink.inference.packing import pack
from bayeslink.inference.posterior import Posterior, load_posteriors, save_posteriors
from bayeslink.inference.predictive import SubgraphDistribution, predict
from bayeslink.inference.tables import TableScale
from bayeslink.inference.update import table_scale, update, with_table_effects
from bayeslink.model.autologistic import Support
from bayeslink.model.hierarchy import Terms, Variant
from bayeslink.model.priors import Priors

SCALE = TableScale(0.8, 0.2, -0.1, 1.25, 0.0, 0.0)
PLAIN = Standardisation(("c0", "c1"), np.array([0.1, -0.2]), np.array([1.1, 0.9]))
"""A standardisation that does not depend on the data, so that fits on different databases compare."""


def fitted(world, variant: Variant, num_draws: int = 400, terms: Terms = Terms()) -> Posterior:
    batch, keys = pack([PLAIN.apply(item) for item in world]), tuple(item.key for item in world)
    return fit_packed(batch, keys, PLAIN, variant, Priors(), num_draws=num_draws, terms=terms)[0]


@pytest.fixture(scope="module")
def training() -> list[Evidence]:
    return simulate(3, 4, 12, shapes=(PATH, STAR, ISOLATED, CYCLE), non_empty=True)


@pytest.fixture(scope="module")
def hierarchical(training) -> Posterior:
    return fitted(training, Variant.HIERARCHICAL, 1000)


@pytest.fixture(scope="module")
def new() -> Evidence:
    """A new database whose first table is needed far more often than its evidence says."""
    rng = np.random.default_rng(8)
    edges, values = edge_array(STAR), rng.normal(size=(12, 4, 2))
    unary = -1.0 + values @ [1.0, -0.5] + [2.5, 0.0, 0.0, 0.0]
    return make_evidence(values, edges, draw_selections(rng, unary, edges, 0.6, non_empty=True), "new")


@pytest.fixture(scope="module")
def with_tables(hierarchical) -> Posterior:
    return with_table_effects(hierarchical, SCALE)


@pytest.fixture(scope="module")
def updated(with_tables, new) -> Posterior:
    return update(with_tables, new)


@pytest.mark.parametrize("variant", [Variant.POOLED, Variant.INDEPENDENT])
def test_without_effects_the_draws_follow_the_exact_weights(training, new, variant: Variant):
    """Each draw's weight is the likelihood of the labelled questions; systematic draws are evenly spread."""
    before = fitted(training, variant)
    after = update(before, new)
    ready = PLAIN.apply(new)
    logs = []
    for place in range(before.num_draws):
        sites = {site: value[place].tolist() for site, value in before.draws.items()}
        logs.append(oracles.log_likelihood_of_database(ready, variant.value, sites, (0.0, 0.0, 0.0)))
    weights = np.exp(np.array(logs) - oracles.log_sum_exp(logs))
    effective = 1 / (weights**2).sum()
    # Smoothing replaces the tail's weights by their expected order, about a tenth of the effective number.
    assert after.info["update_effective_draws"] == pytest.approx(effective, rel=0.15)
    for site, value in before.draws.items():
        mean = weights @ value
        deviation = np.sqrt(weights @ (value - mean) ** 2)
        assert (np.abs(after.draws[site].mean(axis=0) - mean) < 4 * deviation / np.sqrt(effective)).all()
    assert np.isin(after.draws["alpha"], before.draws["alpha"]).all()
    moved = np.abs(after.draws["alpha"].mean() - before.draws["alpha"].mean())
    assert moved > 1e-3
    assert set(after.draws) == set(before.draws)


@pytest.mark.slow
def test_effects_are_those_of_a_refit_with_the_database(training, hierarchical, new):
    """The refit moves the population by its own Gaussian, the update by weights: they differ by a few tenths
    of a standard deviation with five training databases, besides Monte Carlo error.
    """
    refit = fitted([*training, new], Variant.HIERARCHICAL, 1000)
    after = update(hierarchical, new)
    assert after.databases == (new.key,)
    assert after.earlier == hierarchical.databases
    assert after.trained == (*hierarchical.databases, new.key)
    assert after.fingerprints == hierarchical.fingerprints
    found, expected = after.seen(new.key), refit.seen(new.key)
    fresh = hierarchical.unseen()
    for name in ("intercept", "coupling"):
        one, other, before = (getattr(draws, name) for draws in (found, expected, fresh))
        assert abs(one.mean() - other.mean()) < 0.35 * other.std()
        assert one.std() == pytest.approx(other.std(), rel=0.25)
        assert one.std() < before.std()


def test_update_says_how_even_its_weights_are(updated, new):
    assert updated.checks["update_weights_even"] is True
    assert updated.checks["converged"]
    assert updated.info["update_questions"] == 12
    assert 50 < updated.info["update_effective_draws"] <= 1000
    assert updated.info["update_pareto_k"] < 0.7
    # One population draw far better than the others makes the weights uneven, and the check says so.
    draws = {site: value.copy() for site, value in updated.draws.items() if site not in ("tau", "alpha_d", "beta_d")}
    draws["gamma"] = np.random.default_rng(0).standard_t(2, draws["gamma"].shape) * 8
    uneven = update(replace(updated, draws=draws, databases=()), new)
    assert uneven.checks["update_weights_even"] is False


def test_the_original_is_unchanged_and_seeds_repeat(with_tables, new, updated):
    before = copy.deepcopy(with_tables)
    again, other = (update(with_tables, new, seed=seed) for seed in (0, 1))
    assert (with_tables.databases, with_tables.info) == (before.databases, before.info)
    assert with_tables.checks == before.checks
    for site, value in before.draws.items():
        np.testing.assert_array_equal(with_tables.draws[site], value)
    for site, value in updated.draws.items():
        np.testing.assert_array_equal(again.draws[site], value)
    assert (other.draws["tau"] != again.draws["tau"]).any()
    method = with_tables.update(new)
    np.testing.assert_array_equal(method.draws["tau"], updated.draws["tau"])


def test_table_effects_enter_the_population_as_stated(hierarchical, with_tables):
    for site, change in {
        "alpha": lambda draws: draws + 0.2,
        "beta": lambda draws: draws - 0.1,
        "gamma": lambda draws: 1.25 * draws,
        "sigma_alpha": lambda draws: draws,
    }.items():
        np.testing.assert_allclose(with_tables.draws[site], change(hierarchical.draws[site]))
    np.testing.assert_array_equal(with_tables.draws["sigma_table"], np.full(1000, 0.8))
    assert {"alpha_d", "beta_d"} <= set(hierarchical.draws)
    assert not {"alpha_d", "beta_d"} & set(with_tables.draws)


def test_seen_after_an_update_holds_the_table_effects(updated, new):
    tau = updated.draws["tau"]
    assert tau.shape == (1000, 4)
    np.testing.assert_allclose(updated.seen(new.key).intercept, updated.draws["alpha_d"] + tau)
    # The first table is needed more often than its evidence says: 12 questions show it.
    assert tau[:, 0].mean() > tau[:, 1:].mean(axis=0).max() + 0.3
    assert (tau.std(axis=0) < 0.8).all()


def test_a_seen_database_without_its_table_effects_is_refused(training):
    item = with_table_effects(fitted(training, Variant.POOLED), SCALE)
    with pytest.raises(ValueError, match=r"this posterior holds no table effects of it; use `update`"):
        item.seen(training[0].key)


def test_table_effects_agree_with_a_grid(tiny_pair):
    """All draws of phi alike, two tables, no other effects: tau by a grid. 60 questions are nearly Gaussian."""
    item, posterior, sites = tiny_pair
    after = update(posterior, item)
    assert after.info["update_pareto_k"] == 0
    assert after.checks["update_weights_even"]
    assert after.info["update_effective_draws"] == pytest.approx(2000)
    axis = np.linspace(-4, 4, 81)
    first, second = (part.reshape(-1) for part in np.meshgrid(axis, axis, indexing="ij"))
    logs = -(first**2 + second**2) / 2
    for values, gold in zip(PLAIN.apply(item).values, item.gold, strict=True):
        unary = sites["alpha"] + values @ sites["gamma"]
        a, b = unary[0] + first, unary[1] + second
        energies = np.stack([0 * a, a, b, a + b + sites["beta"]])
        logs += energies[gold[0] + 2 * gold[1]] - logsumexp(energies, axis=0)
    weights = np.exp(logs - logsumexp(logs))
    grid = np.column_stack([first, second])
    mean = weights @ grid
    deviation = np.sqrt(weights @ (grid - mean) ** 2)
    # 4 standard errors of 2000 draws are 0.09 sd; the Laplace error adds a few hundredths.
    np.testing.assert_allclose((after.draws["tau"].mean(axis=0) - mean) / deviation, 0, atol=0.15)
    np.testing.assert_allclose(after.draws["tau"].std(axis=0) / deviation, 1, atol=0.1)
    assert np.abs(mean / deviation).max() > 1


@pytest.fixture(scope="module")
def tiny_pair() -> tuple[Evidence, Posterior, dict]:
    """Sixty questions of two joined tables, and a posterior whose draws are all alike."""
    rng = np.random.default_rng(2)
    sites = {"alpha": -0.3, "gamma": [0.7, -0.4], "beta": 0.5}
    values, edges = rng.normal(size=(60, 2, 2)), edge_array([(0, 1)])
    gold = draw_selections(rng, -0.3 + values @ [0.7, -0.4] + [1.0, -0.6], edges, 0.5)
    draws = {
        site: np.tile(value, (2000, 1)) if site == "gamma" else np.full(2000, value) for site, value in sites.items()
    }
    posterior = Posterior(Variant.POOLED, "made", Support.ALL, PLAIN, draws | {"sigma_table": np.ones(2000)}, ())
    return make_evidence(values, edges, gold, "tiny"), posterior, sites


def test_unseen_databases_get_fresh_table_effects(with_tables, new):
    """Unaries vary by sigma_alpha^2 over databases and sigma_table^2 over tables."""
    ready = PLAIN.apply(new)
    intercept = with_tables.unseen(3, ready).intercept
    assert intercept.shape == (1000, 4)
    own = (intercept - intercept.mean(axis=1, keepdims=True)) / 0.8
    # 3000 degrees of freedom: the standard error of the variance is sqrt(2 / 3000).
    assert (own**2).sum() / 3000 == pytest.approx(1, abs=4 * math.sqrt(2 / 3000))
    total = (intercept - with_tables.draws["alpha"][:, None]) / np.sqrt(
        with_tables.draws["sigma_alpha"][:, None] ** 2 + 0.64
    )
    assert (np.abs(total.var(axis=0) - 1) < 4 * math.sqrt(2 / 1000)).all()
    with pytest.raises(ValueError, match=r"evidence=None: this posterior has table effects"):
        with_tables.unseen()


def test_an_update_leaves_unseen_databases_to_the_population(updated, new):
    ready = PLAIN.apply(new)
    assert updated.unseen(0, ready).intercept.shape == (1000, 4)
    with pytest.raises(ValueError, match=r"was not in the fit of this posterior"):
        updated.seen(("test", "db0"))


def test_an_update_replaces_what_an_earlier_one_knew(updated, new):
    other = simulate(9, 1, 3, num_tables=5, shapes=(PATH,))[0]
    again = update(updated, replace(other, db_id="other"))
    assert again.databases == (("test", "other"),)
    assert again.trained == (*updated.trained, ("test", "other"))
    assert again.draws["tau"].shape == (1000, 5)
    assert again.draws["alpha_d"].shape == (1000, 1)


@pytest.mark.slow
def test_all_terms_and_the_non_empty_support(training, new):
    """The design is read off the posterior's sites."""
    terms = Terms(True, True, False, True)
    batch, keys = pack([PLAIN.apply(item) for item in training]), tuple(item.key for item in training)
    before, _ = fit_packed(
        batch, keys, PLAIN, Variant.HIERARCHICAL, Priors(), support=Support.NON_EMPTY, num_draws=64, terms=terms
    )
    after = update(with_table_effects(before, SCALE), new)
    assert set(after.draws) - set(before.draws) == {"sigma_table", "tau"}
    assert set(before.draws) <= set(after.draws)
    assert after.support is Support.NON_EMPTY
    assert after.draws["scale_d"].shape == (64, 1)
    distribution, scores = predict(PLAIN.apply(new), after.seen(new.key, PLAIN.apply(new)), after.support)
    assert (distribution.probabilities[:, 0] == 0).all()
    assert np.isfinite(scores).all()


def test_refusals(training, hierarchical, new):
    for variant in (Variant.FIXED, Variant.UNPOOLED):
        with pytest.raises(ValueError, match=rf"^variant={variant.value} has no population .* use `hierarchical`$"):
            update(replace(hierarchical, variant=variant), new)
    for missing in (replace(new, gold=None), new.select_questions([])):
        with pytest.raises(ValueError, match=r"^evidence of \('test', 'new'\) has no labelled question; an update"):
            update(hierarchical, missing)
    with pytest.raises(ValueError, match=r"channels"):
        update(hierarchical, replace(new, channels=("c0", "other")))


def test_an_update_that_does_not_converge_is_an_error(with_tables, new, monkeypatch):
    """One Newton step is not enough for table effects; the default is, and says how near it came."""
    monkeypatch.setattr(module, "MOST_STEPS", 1)
    with pytest.raises(FloatingPointError, match=r"an update does not converge in 1 steps, largest gradient"):
        update(with_tables, new)
    monkeypatch.undo()
    assert update(with_tables, new).info["update_largest_gradient"] < 1e-5


def test_table_effects_of_a_variant_without_other_effects_are_used(training, new):
    item = update(with_table_effects(fitted(training, Variant.POOLED), SCALE), new)
    ready = PLAIN.apply(new)
    np.testing.assert_array_equal(item.draws_for(ready).intercept, item.seen(new.key, ready).intercept)


def test_files_keep_an_updated_posterior(updated, new, tmp_path):
    save_posteriors(tmp_path / "new.nc", [updated])
    found = load_posteriors(tmp_path / "new.nc")[Variant.HIERARCHICAL]
    assert set(found.draws) == set(updated.draws)
    assert {"tau", "sigma_table"} <= set(found.draws)
    for site, value in updated.draws.items():
        np.testing.assert_array_equal(found.draws[site], value)
    assert (found.databases, found.checks, found.info) == (updated.databases, updated.checks, updated.info)
    assert found.earlier == updated.earlier == tuple(("test", f"db{d}") for d in range(len(found.earlier)))
    assert found.earlier
    for one, other in zip(found.seen(new.key), updated.seen(new.key), strict=True):
        np.testing.assert_array_equal(one, other)
    again = update(found, new, seed=4)
    np.testing.assert_array_equal(again.draws["tau"], update(updated, new, seed=4).draws["tau"])


def enumerated(values: np.ndarray, edges: np.ndarray, draws, gold: np.ndarray) -> tuple[np.ndarray, float]:
    """Marginals and log score of one question by listing every subset for every draw."""
    subsets = ((np.arange(2 ** len(values))[:, None] >> np.arange(len(values))) & 1).astype(float)
    joined = (subsets[:, edges[:, 0]] * subsets[:, edges[:, 1]]).sum(axis=1)
    place = int(gold @ 2 ** np.arange(len(values)))
    marginals, scores = [], []
    for intercept, slopes, coupling in zip(*draws, strict=True):
        energies = subsets @ (intercept + values @ slopes) + coupling * joined
        logs = energies - logsumexp(energies)
        marginals.append(np.exp(logs) @ subsets)
        scores.append(logs[place])
    return np.mean(marginals, axis=0), float(logsumexp(scores) - math.log(len(scores)))


@pytest.mark.parametrize(("num_tables", "kind"), [(4, SubgraphDistribution), (MAX_TABLES + 1, FactoredDistribution)])
def test_prediction_with_table_effects_equals_enumeration(with_tables, num_tables: int, kind: type):
    """Listed and by elimination, from an update whose own derivatives are by the list or by elimination."""
    rng = np.random.default_rng(1)
    edges = edge_array([(t, t + 1) for t in range(num_tables - 1)])
    values = rng.normal(size=(3, num_tables, 2))
    gold = rng.random((3, num_tables)) < 0.3
    gold[:, 0] = True
    item = make_evidence(values, edges, gold, "wide")
    few = {site: value[:25] for site, value in with_tables.draws.items()}
    after = update(replace(with_tables, draws=few), item)
    draws, ready = after.seen(item.key), PLAIN.apply(item)
    assert draws.intercept.shape == (25, num_tables)
    assert (np.ptp(draws.intercept, axis=1) > 0.1).all()
    distribution, scores = predict(ready, draws, after.support)
    assert isinstance(distribution, kind)
    for question in range(3 if num_tables < 10 else 1):
        marginals, score = enumerated(ready.values[question], edges, draws, gold[question])
        np.testing.assert_allclose(distribution.marginals[question], marginals, rtol=1e-8, atol=1e-10)
        assert scores[question] == pytest.approx(score, rel=1e-8)


def test_table_scale_is_the_fit_at_the_mean_of_the_draws(training):
    """The same numbers as `fit_table_effects`, and a scale that `with_table_effects` takes."""
    posterior = fitted(training, Variant.POOLED)
    found = table_scale(posterior, training, max_steps=200)
    assert 0 < found.sigma_table < 1.5
    assert np.isfinite(found.log_marginal)
    item = with_table_effects(posterior, found)
    np.testing.assert_allclose(item.draws["sigma_table"], found.sigma_table)
    phi = np.array(
        [posterior.draws["alpha"].mean(), *posterior.draws["gamma"].mean(axis=0), posterior.draws["beta"].mean()]
    )
    sites = {"alpha": phi[0], "gamma": phi[1:3].tolist(), "beta": phi[3]}
    expected = sum(
        oracles.log_likelihood_of_database(PLAIN.apply(one), "pooled", sites, (0.0, 0.0, 0.0)) for one in training
    )
    # sigma_table = 1e-4 stands for none: the difference is its square times a count of questions.
    assert found.log_marginal_without == pytest.approx(expected, abs=1e-4)
