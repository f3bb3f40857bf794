"""Pointwise likelihoods against brute force and `predict`; leave-one-out; checks that a shifted fit must fail."""

import math
from dataclasses import replace

import numpy as np
import oracles
import pytest
from worlds import PATH, edge_array, make_evidence, simulate

from bayeslink.evaluation import criticism, replicates
from bayeslink.evaluation.comparison import paired_difference
from bayeslink.evaluation.criticism import (
    leave_one_database_out_table,
    leave_one_out,
    pointwise_log_likelihood,
    predictive_check,
    to_inference_data,
)
from bayeslink.evaluation.scores import Predicted
from bayeslink.evidence.channel import Standardisation
from bayeslink.inference.fit import fit
from bayeslink.inference.posterior import Posterior
from bayeslink.inference.predictive import predict
from bayeslink.model.autologistic import Support
from bayeslink.model.hierarchy import Variant

VARIANTS = (Variant.INDEPENDENT, Variant.HIERARCHICAL)


@pytest.fixture(scope="module")
def world():
    return simulate(1, 4, 60, beta=1.2, sigma_alpha=0.8)


@pytest.fixture(scope="module")
def fits(world):
    return {variant: fit(world, variant, num_draws=300) for variant in VARIANTS}


def made(evidences, support=Support.ALL, num_draws=6, **sites) -> Posterior:
    """A hierarchical posterior around sensible values for these databases; nothing is fitted."""
    rng = np.random.default_rng(9)
    size = (num_draws, len(evidences))
    draws = {
        "gamma": rng.normal(0.8, 0.2, (num_draws, 2)),
        "alpha_d": rng.normal(-0.7, 0.3, size),
        "beta_d": rng.normal(0.5, 0.4, size),
    }
    standardisation = Standardisation(("c0", "c1"), np.array([0.1, -0.2]), np.array([1.5, 0.7]))
    keys = tuple(item.key for item in evidences)
    return Posterior(Variant.HIERARCHICAL, "made", support, standardisation, draws | sites, keys)


def large(num_questions: int = 3, num_tables: int = 17):
    """A path of more tables than are listed."""
    rng = np.random.default_rng(2)
    edges = edge_array([(t, t + 1) for t in range(num_tables - 1)])
    gold = rng.random((num_questions, num_tables)) < 0.2
    gold[:, 0] = True
    return make_evidence(rng.standard_normal((num_questions, num_tables, 2)), edges, gold, "large")


@pytest.mark.parametrize("support", Support)
def test_log_likelihood_equals_the_brute_force(support):
    world = simulate(3, 2, 4, non_empty=True)
    posterior = made(world, support)
    found = pointwise_log_likelihood(posterior, world)
    assert found.shape == (6, 8)
    for d, item in enumerate(world):
        values = posterior.standardisation.apply(item).values
        for draw in range(6):
            for q in range(4):
                slopes = posterior.draws["gamma"][draw]
                unary = [posterior.draws["alpha_d"][draw, d] + float(z @ slopes) for z in values[q]]
                given = unary, item.edges.tolist(), float(posterior.draws["beta_d"][draw, d])
                log_z = oracles.log_partition(*given, non_empty=support is Support.NON_EMPTY)
                expected = oracles.energy(tuple(item.gold[q].astype(int)), *given) - log_z
                assert found[draw, 4 * d + q] == pytest.approx(expected, rel=1e-10)


@pytest.mark.parametrize("support", Support)
def test_its_mean_over_draws_is_the_predictive_log_score(support):
    # The second database is listed by no solver; the first has an empty gold selection, improbable or impossible.
    world = [simulate(4, 1, 20)[0], large()]
    assert not world[0].gold.any(axis=1).all()
    posterior = made(world, support)
    ready = [posterior.standardisation.apply(item) for item in world]
    scores = [predict(item, posterior.seen(item.key), support)[1] for item in ready]
    found = pointwise_log_likelihood(posterior, world)
    averaged = np.logaddexp.reduce(found, axis=0) - math.log(posterior.num_draws)
    np.testing.assert_allclose(averaged, np.concatenate(scores), rtol=1e-10)


def test_chunks_change_nothing(monkeypatch):
    world = [simulate(4, 1, 20)[0], large()]
    posterior = made(world)
    whole = pointwise_log_likelihood(posterior, world)
    monkeypatch.setattr(criticism, "CELLS_AT_ONCE", 1)
    np.testing.assert_allclose(pointwise_log_likelihood(posterior, world), whole, rtol=1e-12)


def test_inference_data_names_questions_databases_and_observations(world, fits):
    data = to_inference_data(fits[Variant.HIERARCHICAL], world)
    assert set(data.groups()) == {"posterior", "log_likelihood", "observed_data"}
    assert data["posterior"]["alpha_d"].dims == ("chain", "draw", "databases")
    assert data["posterior"]["gamma"].coords["channels"].values.tolist() == ["c0", "c1"]
    gold = data["log_likelihood"]["gold"]
    assert gold.dims == ("chain", "draw", "question")
    assert gold.coords["question"].values[[0, 59, 60]].tolist() == ["test/db0/0", "test/db0/59", "test/db1/0"]
    assert gold.coords["database"].values[[0, 60]].tolist() == ["test/db0", "test/db1"]
    scores = pointwise_log_likelihood(fits[Variant.HIERARCHICAL], world)
    np.testing.assert_array_equal(gold.sel(question="test/db1/3").values[0], scores[:, 63])
    observed = data["observed_data"].sel(question="test/db0/7")
    chosen = tuple(world[0].gold[7].astype(int))
    assert float(observed["num_selected"]) == sum(chosen)
    assert float(observed["num_joined_pairs"]) == oracles.num_joined_pairs(chosen, PATH)


def test_leave_one_out_prefers_the_variant_that_made_the_data(world, fits):
    best, other = leave_one_out(fits, world)
    assert (best.variant, other.variant) == (Variant.HIERARCHICAL, Variant.INDEPENDENT)
    assert (best.questions, best.databases, best.rank, best.elpd_diff) == (240, 4, 0, 0.0)
    assert other.elpd_diff == pytest.approx(best.elpd_loo - other.elpd_loo)
    assert other.elpd_diff > 2 * other.dse > 0
    for row in (best, other):
        # The whole data's density under importance weights that are not smoothed: smoothing changes only
        # the largest weights, which matter little while k is small.
        scores = pointwise_log_likelihood(fits[row.variant], world)
        plain = (math.log(len(scores)) - np.logaddexp.reduce(-scores, axis=0)).sum()
        assert row.elpd_loo == pytest.approx(plain, abs=0.05 * row.p_loo)
        in_sample = (np.logaddexp.reduce(scores, axis=0) - math.log(len(scores))).sum()
        assert row.p_loo == pytest.approx(in_sample - row.elpd_loo)
        assert row.worst_k < criticism.PARETO_LIMIT
        assert row.share_k_above == 0.0
    # Three parameters without effects.
    assert 1 < other.p_loo < 6


def test_a_question_that_rules_the_fit_is_told_of(world):
    # Draws so wide that single questions decide between them.
    wide = made(world, num_draws=200, alpha_d=np.random.default_rng(0).normal(-0.7, 3.0, (200, 4)))
    (row,) = leave_one_out({Variant.HIERARCHICAL: wide}, world)
    assert row.worst_k > criticism.PARETO_LIMIT
    assert 0 < row.share_k_above <= 1


def test_leave_one_out_refusals(world, fits):
    with pytest.raises(ValueError, match="posteriors is empty"):
        leave_one_out({}, world)
    with pytest.raises(ValueError, match="was fitted on 240"):
        leave_one_out(fits, world[:2])
    with pytest.raises(ValueError, match="empty gold selection has probability 0"):
        leave_one_out({Variant.HIERARCHICAL: made(world, Support.NON_EMPTY)}, world)
    with pytest.raises(ValueError, match="evidences is empty"):
        pointwise_log_likelihood(fits[Variant.HIERARCHICAL], [])
    with pytest.raises(ValueError, match="was not in the fit"):
        pointwise_log_likelihood(fits[Variant.HIERARCHICAL], [replace(world[0], db_id="other")])
    with pytest.raises(ValueError, match="no gold selections"):
        pointwise_log_likelihood(fits[Variant.HIERARCHICAL], [replace(world[0], gold=None)])


def predictions(gain: float, num_questions: int = 30) -> list[Predicted]:
    """Two databases whose log scores differ from the base ones by a gain with a little noise."""
    found = []
    for name in "ab":
        rng, gold = np.random.default_rng(ord(name)), np.zeros((num_questions, 2), dtype=bool)
        score = rng.normal(-2, 1, num_questions)
        noise = 0.01 * np.random.default_rng(1).normal(size=num_questions) if gain else 0.0
        marginals, group = np.zeros((num_questions, 2)), np.arange(num_questions) // 2
        found.append(Predicted(("toy", name), gold, marginals, gold, gold, score + gain + noise, (), group))
    return found


def test_left_out_table_sums_by_database_and_pairs_with_hierarchical():
    given = {Variant.HIERARCHICAL: predictions(0.0), Variant.POOLED_COUPLING: predictions(-0.3)}
    rows = leave_one_database_out_table(given, np.random.default_rng(0), 200)
    assert [(row.variant.value, row.database) for row in rows] == [
        (variant, name) for variant in ("hierarchical", "pooled_coupling") for name in ("all", "toy/a", "toy/b")
    ]
    assert [(row.questions, row.databases) for row in rows] == 2 * [(60, 2), (30, 1), (30, 1)]
    for row in rows:
        items = [item for item in given[row.variant] if row.database in ("all", "/".join(item.key))]
        assert row.elpd == pytest.approx(sum(item.log_score.sum() for item in items))
    assert {(row.difference, row.lower, row.upper) for row in rows[:3]} == {(0.0, 0.0, 0.0)}
    first, second = (np.concatenate([item.log_score for item in items]) for items in given.values())
    keys, groups = ["a"] * 30 + ["b"] * 30, np.tile(np.arange(30) // 2, 2)
    expected = paired_difference(first, second, keys, groups, 4000, np.random.default_rng(1))
    assert rows[3].difference == pytest.approx(expected.estimate)
    # Quantiles of 200 and of 4,000 resamples of a mean with standard deviation 0.002.
    assert (rows[3].lower, rows[3].upper) == pytest.approx((expected.lower, expected.upper), abs=2e-3)
    assert all(0.29 < row.lower <= row.difference <= row.upper < 0.31 for row in rows[3:])


def test_left_out_table_refusals():
    with pytest.raises(ValueError, match="`hierarchical` is what others are set against"):
        leave_one_database_out_table({Variant.POOLED: predictions(0.0)}, np.random.default_rng(0))
    for others in (predictions(0.0)[:1], predictions(0.0, 20), predictions(0.0)[::-1]):
        with pytest.raises(ValueError, match="differ in databases or questions"):
            leave_one_database_out_table(
                {Variant.HIERARCHICAL: predictions(0.0), Variant.POOLED: others}, np.random.default_rng(0)
            )


def test_an_honest_fit_passes_and_a_shifted_one_fails(world, fits):
    honest = fits[Variant.HIERARCHICAL]
    shifted = replace(honest, draws={**honest.draws, "alpha_d": honest.draws["alpha_d"] + 1.5})
    passed = predictive_check(honest, world, np.random.default_rng(0), 400)
    failed = predictive_check(shifted, world, np.random.default_rng(0), 400)
    assert [(row.database, row.statistic) for row in passed] == [
        (f"test/db{d}", statistic) for d in range(4) for statistic in replicates.STATISTICS
    ]
    assert all(row.inside and row.p_value > 0.05 and row.lower < row.predicted < row.upper for row in passed)
    assert not any(row.inside for row in failed)
    assert all(row.p_value < 0.02 and row.observed < row.lower for row in failed)
    for row, item in zip(passed[::2], world, strict=True):
        assert (row.observed, row.questions) == (pytest.approx(item.gold.sum() / 60), 60)


def test_without_a_coupling_the_joined_pairs_give_it_away(world, fits):
    rows = predictive_check(fits[Variant.INDEPENDENT], world, np.random.default_rng(0), 400)
    assert min(row.p_value for row in rows if row.statistic == "num_joined_pairs") < 0.02


@pytest.mark.parametrize("support", Support)
def test_replicates_have_the_exact_means(support):
    world = simulate(3, 2, 5, non_empty=True)
    posterior = made(world, support)
    rows = predictive_check(posterior, world, np.random.default_rng(1), 6000)
    for d, item in enumerate(world):
        found, _ = predict(posterior.standardisation.apply(item), posterior.seen(item.key), support)
        exact = (found.expected_size.mean(), found.pair_marginals.sum(axis=1).mean())
        for row, mean in zip(rows[2 * d : 2 * d + 2], exact, strict=True):
            # At most four tables and edges: a question's standard deviation is at most 2, a replicate has five.
            assert abs(row.predicted - mean) < 4 * 2 / math.sqrt(5 * 6000)


def test_replicates_of_a_large_schema_have_the_exact_means_in_chunks_too(monkeypatch):
    world = [large()]
    posterior = made(world)
    found, _ = predict(posterior.standardisation.apply(world[0]), posterior.seen(world[0].key))
    exact = (found.expected_size.mean(), found.pair_marginals.sum(axis=1).mean())
    for cells in (replicates.CELLS_AT_ONCE, 1):
        monkeypatch.setattr(replicates, "CELLS_AT_ONCE", cells)
        for row, mean in zip(predictive_check(posterior, world, np.random.default_rng(1), 3000), exact, strict=True):
            # Half the interval is about two standard deviations of a replicate.
            assert abs(row.predicted - mean) < 4 * (row.upper - row.lower) / 4 / math.sqrt(3000) + 1e-12


def test_replicates_are_those_of_their_generator(world, fits):
    first, again, other = (
        predictive_check(fits[Variant.HIERARCHICAL], world[:1], np.random.default_rng(seed), 50) for seed in (0, 0, 1)
    )
    assert first == again != other


def test_predictive_check_refusals(world, fits):
    rng = np.random.default_rng(0)
    with pytest.raises(ValueError, match="num_replicates=0"):
        predictive_check(fits[Variant.HIERARCHICAL], world, rng, 0)
    with pytest.raises(ValueError, match="non-empty selections are replicated up to 15"):
        predictive_check(made([large()], Support.NON_EMPTY), [large()], rng, 5)
    with pytest.raises(ValueError, match="no gold selections"):
        predictive_check(fits[Variant.HIERARCHICAL], [world[0].select_questions([])], rng, 5)
