"""Distances between fits, worked out by hand on made-up posteriors."""

from dataclasses import replace

import numpy as np
import pytest

from bayeslink.evaluation.agreement import Summary, agreement, predictions, summaries
from bayeslink.model.hierarchy import Variant

KEYS = (("toy", "a"), ("toy", "b"))


def seen_posterior(posterior, variant: Variant = Variant.HIERARCHICAL):
    """A made-up posterior with draws of two databases' own parameters."""
    rng = np.random.default_rng(5)
    item = posterior(variant, databases=KEYS)
    own = {"alpha_d": rng.normal(-0.5, 0.3, (20, 2)), "beta_d": rng.normal(0.4, 0.2, (20, 2))}
    return replace(item, draws=dict(item.draws) | own)


def made(mean: list[float], deviation: list[float]) -> Summary:
    names = ("alpha", "gamma[one]", "log sigma_alpha", "alpha_d[toy/a]", "alpha_d[toy/b]")
    return Summary(names, np.array(mean), np.array(deviation), np.array([False, False, False, True, True]))


PREDICTED = [np.array([[0.2, 0.7]]), np.array([[0.5, 0.5, 0.1]])], -1.25
REFERENCE = made([0.0, 1.0, -1.0, 0.3, 0.4], [0.5, 0.1, 0.2, 0.4, 0.4])


def test_names_means_and_spreads(posterior):
    item = seen_posterior(posterior)
    found = summaries(item)
    assert found.names == (
        "alpha",
        "gamma[one]",
        "gamma[two]",
        "beta",
        "log sigma_alpha",
        "log sigma_beta",
        "alpha_d[toy/a]",
        "alpha_d[toy/b]",
        "beta_d[toy/a]",
        "beta_d[toy/b]",
    )
    by_name = dict(zip(found.names, zip(found.mean, found.deviation, strict=True), strict=True))
    for name, draws in {
        "gamma[two]": item.draws["gamma"][:, 1],
        "log sigma_beta": np.log(item.draws["sigma_beta"]),
        "beta_d[toy/b]": item.draws["beta_d"][:, 1],
    }.items():
        assert by_name[name] == pytest.approx((draws.mean(), draws.std(ddof=1)), rel=1e-12)
    np.testing.assert_array_equal(found.is_effect, [name[-1] == "]" and "_d[" in name for name in found.names])


def test_distances_by_hand():
    found = agreement(
        (made([0.25, 1.2, -0.9, 5.0, 0.4], [9.0, 9.0, 9.0, 0.2, 0.44]), PREDICTED),
        (REFERENCE, ([np.array([[0.25, 0.7]]), np.array([[0.5, 0.38, 0.1]])], -1.0)),
    )
    assert found.population_z_worst == pytest.approx(2.0)  # gamma by 0.2, its reference sd being 0.1
    assert found.log_sigma_z_worst == pytest.approx(0.5)
    # Ratios 0.5 and 1.1; a half is further from 1 on the log scale.
    assert found.population_sd_ratio_worst == pytest.approx(90)
    assert found.sd_ratio_median == pytest.approx(0.8)
    assert found.sd_ratio_worst == pytest.approx(0.5)
    assert found.marginal_difference_worst == pytest.approx(0.12)
    assert found.joint_difference == pytest.approx(-0.25)


def test_a_fit_agrees_with_itself(posterior, evidence):
    item = seen_posterior(posterior)
    both = summaries(item), predictions(item, [evidence("a"), evidence("b", seed=1)])
    assert agreement(both, both) == (0.0, 0.0, 1.0, 1.0, 1.0, 0.0, 0.0)


def test_a_biased_posterior_is_noticed(posterior, evidence):
    """Shifted and narrowed draws show in the distance they should, and in no other."""
    item, questions = seen_posterior(posterior), [evidence("a"), evidence("b", seed=1)]
    draws = dict(item.draws)
    draws["alpha"] = draws["alpha"] + 3 * draws["alpha"].std(ddof=1)
    centre = draws["beta_d"].mean(axis=0)
    draws["beta_d"] = centre + 0.6 * (draws["beta_d"] - centre)
    bad = replace(item, draws=draws)
    given = [(summaries(one), predictions(one, questions)) for one in (bad, item)]
    found = agreement(*given)
    assert found.population_z_worst == pytest.approx(3)
    assert found.log_sigma_z_worst == 0
    assert (found.sd_ratio_median, found.sd_ratio_worst) == pytest.approx((0.8, 0.6))
    assert 0 < found.marginal_difference_worst < 0.1


def test_without_effects_and_sigmas_their_distances_are_neutral(posterior, evidence):
    item = posterior(Variant.POOLED, databases=KEYS)
    given = summaries(item), predictions(item, [evidence("a")])
    assert agreement(given, given) == (0.0, 0.0, 1.0, 1.0, 1.0, 0.0, 0.0)


def test_predictions_use_each_database_s_own_draws(posterior, evidence):
    item = seen_posterior(posterior)
    marginals, score = predictions(item, [evidence("a"), evidence("b", num_tables=4)])
    assert [part.shape for part in marginals] == [(12, 3), (12, 4)]
    assert score < 0
    only, first = predictions(item, [evidence("a")])
    np.testing.assert_array_equal(only[0], marginals[0])
    # The mean is over questions: both databases have twelve.
    _, second = predictions(item, [evidence("b", num_tables=4)])
    assert score == pytest.approx((first + second) / 2)
    with pytest.raises(ValueError, match="was not in the fit"):
        predictions(item, [evidence("c")])


def test_other_parameters_are_refused():
    other = REFERENCE._replace(names=(*REFERENCE.names[:-1], "alpha_d[toy/c]"))
    with pytest.raises(ValueError, match=r"different parameters; compare fits of one variant on one set"):
        agreement((other, PREDICTED), (REFERENCE, PREDICTED))
