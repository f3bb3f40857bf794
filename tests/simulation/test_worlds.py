"""Worlds from the prior: sizes, supports, the distributions of parameters and of selections, and one shape for all."""

import itertools
import math

import jax
import numpy as np
import pytest
from scipy import stats
from worlds import CYCLE, ISOLATED, SHAPES

from bayeslink.evidence.structure import EDGE_TYPES
from bayeslink.model.autologistic import Support
from bayeslink.model.hierarchy import Design, Terms, Variant
from bayeslink.model.priors import Priors
from bayeslink.simulation.worlds import Setting, draw_world, named_parameters

SETTING = Setting(5, 6, SHAPES, 4, 2)
ALL_TERMS = Terms(correlated=True, slope_scale=True, edge_types=True, coupling_covariates=True)
RICH = Setting(5, 6, SHAPES, 4, 2, terms=ALL_TERMS, num_contexts=2)


def draw(setting: Setting, seed: int = 0, priors: Priors = Priors()):
    return draw_world(np.random.default_rng(seed), priors, setting)


def log_probs(unary, edges, coupling, non_empty: bool) -> dict[tuple[int, ...], float]:
    """Log p(x) of every selection in plain loops; one coupling for each edge."""

    def energy(x) -> float:
        pairs = sum(c * x[s] * x[t] for c, (s, t) in zip(coupling, edges, strict=True))
        return sum(a * on for a, on in zip(unary, x, strict=True)) + pairs

    every = [x for x in itertools.product((0, 1), repeat=len(unary)) if any(x) or not non_empty]
    energies = {x: energy(x) for x in every}
    log_z = math.log(sum(math.exp(value) for value in energies.values()))
    return {x: value - log_z for x, value in energies.items()}


@pytest.mark.parametrize("setting", [SETTING, RICH])
@pytest.mark.parametrize("variant", [variant for variant in Variant if variant is not Variant.FIXED])
def test_a_world_has_the_settings_sizes_and_the_designs_parameters(setting, variant):
    setting = Setting(**{**vars(setting), "variant": variant})
    world = draw(setting)
    assert setting.design == Design.of(world.batch, variant, setting.terms)
    assert {site: np.size(value) for site, value in world.population.items()} == setting.design.sites
    assert world.batch.num_questions == 30
    assert [item.values.shape for item in world.evidences] == [(6, 4, 2 + setting.num_contexts)] * 5
    present = world.effects.any(axis=0)
    assert tuple(np.flatnonzero(present)) == setting.design.effects


def test_the_same_seed_gives_the_same_world_and_another_a_different_one():
    first, second, other = draw(RICH), draw(RICH), draw(RICH, seed=1)
    assert (first.evidences[0].values == second.evidences[0].values).all()
    assert first.population["alpha"] == second.population["alpha"] != other.population["alpha"]
    shapes = [[leaf.shape for leaf in jax.tree.leaves(world.batch)] for world in (first, other)]
    assert shapes[0] == shapes[1]
    assert jax.tree.structure(first.batch) == jax.tree.structure(other.batch)


def test_parameters_are_drawn_from_the_priors():
    priors = Priors(intercept_scale=1.5, coupling_sd_scale=0.7)
    setting = Setting(1, 1, ((),), 2, 1)
    worlds = [draw(setting, seed, priors) for seed in range(200)]
    exact = {
        "alpha": stats.norm(0, 1.5),
        "gamma": stats.norm(0, 1),
        "beta": stats.norm(0, 1),
        "sigma_alpha": stats.halfnorm(0, 1),
        "sigma_beta": stats.halfnorm(0, 0.7),
    }
    for site, law in exact.items():
        # Seeded; one in a thousand fails where the draws are right.
        assert stats.kstest([float(np.ravel(w.population[site])[0]) for w in worlds], law.cdf).pvalue > 1e-3
    effects = np.concatenate([world.effects[:, :2].ravel() for world in worlds])
    assert stats.kstest(effects, stats.norm.cdf).pvalue > 1e-3


@pytest.mark.parametrize("support", Support)
def test_selections_follow_the_model(support):
    """Mean of the log-probability of the drawn selections against its exact expectation, for each database."""
    setting = Setting(2, 500, (CYCLE, ISOLATED), 4, 1, support=support)
    world = draw(setting, seed=4)
    truth = world.truth(setting.design, Priors())
    non_empty = support is Support.NON_EMPTY
    for d, item in enumerate(world.evidences):
        unaries = float(truth["alpha_d"][d]) + float(truth["gamma_0"]) * item.values[:, :, 0]
        coupling = [float(truth["beta_d"][d])] * len(item.edges)
        listed = [log_probs(a.tolist(), item.edges.tolist(), coupling, non_empty) for a in unaries]
        every, table = list(listed[0]), np.array([list(one.values()) for one in listed])
        drawn = np.array([every.index(tuple(x)) for x in item.gold.astype(int).tolist()])
        found, expected = table[np.arange(len(table)), drawn], (np.exp(table) * table).sum(axis=1)
        variance = (np.exp(table) * table**2).sum(axis=1) - expected**2
        assert abs((found - expected).sum()) < 4 * math.sqrt(variance.sum())
        sizes = np.array([sum(x) for x in every])
        mean = np.exp(table) @ sizes
        spread = np.exp(table) @ sizes**2 - mean**2
        assert abs((sizes[drawn] - mean).sum()) < 4 * math.sqrt(spread.sum())
        assert not (non_empty and (item.gold.sum(axis=1) == 0).any())


def test_empty_selections_occur_under_all_subsets_only():
    low = Priors(intercept_scale=0.1, slope_scale=0.1, coupling_scale=0.1)
    empty = {
        support: sum(
            int((item.gold.sum(axis=1) == 0).sum())
            for item in draw(Setting(4, 50, SHAPES, 4, 1, support=support), 0, low).evidences
        )
        for support in Support
    }
    assert empty[Support.ALL] > 0
    assert empty[Support.NON_EMPTY] == 0


def test_every_term_reaches_the_selections():
    """With terms far from 0, the true log-odds explain the selections better than those without a term."""
    priors = Priors(coupling_slope_scale=2.0, scale_sd_scale=2.0, context_scale=2.0)
    setting = Setting(6, 40, (CYCLE,), 4, 1, terms=ALL_TERMS, num_contexts=1)
    world = draw(setting, seed=5, priors=priors)
    truth = world.truth(setting.design, priors)
    full, without = 0.0, dict.fromkeys(("kappa", "delta", "scale"), 0.0)
    for d, item in enumerate(world.evidences):
        slope, plain = truth["gamma_0"], np.full(len(item.edges), truth["beta_d"][d])
        coupling = plain + np.array([0.0, truth["delta_0"], truth["delta_1"]])[item.edge_types]
        for x, gold in zip(item.values, item.gold.astype(int).tolist(), strict=True):
            evidence, context = slope * x[:, 0], truth["kappa_0"] * x[:, 1]
            base = truth["alpha_d"][d] + truth["scale_d"][d] * evidence

            def score(unary, pairs, edges=item.edges.tolist(), gold=tuple(gold)) -> float:
                return log_probs(unary.tolist(), edges, pairs.tolist(), False)[gold]

            full += score(base + context, coupling)
            without["kappa"] += score(base, coupling)
            without["scale"] += score(truth["alpha_d"][d] + evidence + context, coupling)
            without["delta"] += score(base + context, plain)
    assert all(full > other for other in without.values())
    assert {int(kind) for item in world.evidences for kind in item.edge_types} == set(range(len(EDGE_TYPES)))


def test_names_tell_population_parameters_apart_and_pool_what_is_exchangeable():
    world, design, priors = draw(RICH), RICH.design, Priors()
    truth = world.truth(design, priors)
    assert {name for name, value in truth.items() if value.shape == (5,)} == {
        *("u", "v", "w", "alpha_d", "beta_d", "scale_d")
    }
    assert {name for name, value in truth.items() if value.shape == ()} == {
        *("alpha", "kappa_0", "kappa_1", "gamma_0", "gamma_1", "beta", "lambda_0", "lambda_1", "lambda_2"),
        *("delta_0", "delta_1", "log_sigma_alpha", "log_sigma_beta", "log_sigma_scale", "rho"),
    }
    population = world.population
    expected = population["alpha"] + population["sigma_alpha"] * world.effects[:, 0]
    np.testing.assert_allclose(truth["alpha_d"], expected, rtol=1e-10)
    np.testing.assert_allclose(truth["log_sigma_beta"], np.log(population["sigma_beta"]), rtol=1e-10)
    rng = np.random.default_rng(0)
    phi, effects = rng.standard_normal((7, design.size)), rng.standard_normal((7, 5, 3))
    named = named_parameters(world.batch, design, priors, phi, effects)
    assert named.keys() == truth.keys()
    assert all(len(value) == 7 for value in named.values())


@pytest.mark.parametrize("setting", [SETTING, RICH])
def test_what_is_compiled_for_one_world_serves_all_worlds_of_a_setting(setting):
    compiled = jax.jit(lambda batch: sum(leaf.sum() for leaf in jax.tree.leaves(batch)))
    for seed in range(3):
        compiled(draw(setting, seed).batch)
    assert compiled._cache_size() == 1


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"num_databases": 0}, "num_databases=0: a world needs at least one"),
        ({"num_channels": 0}, "num_channels=0"),
        ({"graphs": ()}, "graphs is empty"),
        ({"variant": Variant.FIXED}, "variant=fixed has no parameters"),
    ],
)
def test_settings_that_cannot_be_are_refused(change, message):
    with pytest.raises(ValueError, match=message):
        Setting(**{**vars(SETTING), **change})


def test_graphs_too_large_to_list_are_refused():
    with pytest.raises(ValueError, match="num_tables=16 > 15"):
        draw(Setting(1, 1, (ISOLATED,), 16, 1))
