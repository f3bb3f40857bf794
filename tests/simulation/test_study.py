"""Chunks of the study: what their scores are, that chunking does not matter, and the pattern in one strong cell."""

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from bayeslink.evaluation import calibration
from bayeslink.model.hierarchy import Variant
from bayeslink.simulation import study as module
from bayeslink.simulation.cells import Cell, Sizes, draw_replicates
from bayeslink.simulation.families import Family
from bayeslink.simulation.study import Chunk, matched_selection, run_chunk

CELL = Cell(Family.STAR, 3, 2.0, 0.0, 1.0)
SIZES = Sizes(2, 40, 4)
POOLED = (Variant.POOLED,)
PAIR_SCORES = {"mean_shift": calibration.mean_shift, "ece": calibration.calibration_error}
VARIANTS = ("truth", "independent", "fixed", "fixed_platt", "pooled")


@pytest.fixture(scope="module")
def scores():
    return run_chunk(Chunk(CELL, SIZES, POOLED, 0, 0, 6), PAIR_SCORES)


def test_every_variant_has_every_score_of_every_replicate(scores):
    for variant in VARIANTS:
        for score in (*PAIR_SCORES, "joint_log_score", "recovered", "precision", "size"):
            assert scores[f"{variant}/{score}"].shape == (6,)
            assert np.isfinite(scores[f"{variant}/{score}"]).all()
        # `truth` is not fitted, and `fixed` is the independent fit.
        assert (variant in ("truth", "fixed")) == (f"{variant}/converged" not in scores)
    assert scores["pooled/beta"].shape == (6,)
    assert all(scores[f"{variant}/converged"].all() for variant in ("independent", "fixed_platt", "pooled"))


def test_scores_do_not_depend_on_the_chunk(scores):
    for first in (0, 3):
        part = run_chunk(Chunk(CELL, SIZES, POOLED, 0, first, 3), PAIR_SCORES)
        assert part.keys() == scores.keys()
        for name, value in part.items():
            np.testing.assert_allclose(value, scores[name][first : first + 3], rtol=1e-6, atol=1e-9)


def test_the_pattern_holds_in_a_strong_cell(scores):
    """Coupling 2 on a star: imposed it inflates the mean in every replicate, fitted it does not on average."""
    assert (scores["fixed/mean_shift"] > 0.05).all()
    for variant in ("truth", "fixed_platt", "pooled"):
        shift = scores[f"{variant}/mean_shift"]
        assert abs(shift.mean()) < 4 * shift.std(ddof=1) / math.sqrt(6)
    assert scores["truth/joint_log_score"].mean() > scores["pooled/joint_log_score"].mean()
    for worse in ("independent", "fixed", "fixed_platt"):
        assert scores["pooled/joint_log_score"].mean() > scores[f"{worse}/joint_log_score"].mean()
    assert scores["pooled/alpha"].mean() < scores["independent/alpha"].mean()


def outcome(cell: Cell):
    data = draw_replicates(cell, SIZES, 0, 0, 2)
    keys = jax.vmap(jax.random.key)(np.arange(2))
    return data, module._study(data, keys, np.asarray(cell.coupling), np.asarray(cell.strength), (), 4)


def test_without_a_coupling_the_fixed_fit_is_the_independent_one():
    _, found = outcome(Cell(Family.STAR, 3, 0.0, 0.5, 1.0))
    fixed, independent = found.predictions["fixed"], found.predictions["independent"]
    np.testing.assert_allclose(fixed.marginals, independent.marginals, rtol=1e-12)
    np.testing.assert_allclose(fixed.log_score, independent.log_score, rtol=1e-12)


def test_platt_scaling_is_scikit_learns():
    """Fitted again from the training marginals of `fixed` at the same parameters, without a prior."""
    data, found = outcome(CELL)
    platt = found.parameters["fixed_platt"]
    marginals = np.asarray(found.predictions["fixed"].marginals)
    scaled = np.asarray(found.predictions["fixed_platt"].marginals)
    for place in range(2):
        slope, intercept = float(platt["gamma"][place, 0]), float(platt["alpha"][place])
        logit = np.log(marginals[place]) - np.log1p(-marginals[place])
        np.testing.assert_allclose(scaled[place], 1 / (1 + np.exp(-intercept - slope * logit)), rtol=1e-9)
        gold = np.asarray(data.test_gold)[place]
        log_score = np.where(gold > 0, np.log(scaled[place]), np.log1p(-scaled[place])).sum(axis=-1)
        np.testing.assert_allclose(found.predictions["fixed_platt"].log_score[place], log_score, rtol=1e-9)
    values = np.random.default_rng(0).standard_normal((2, 40, 3))
    chosen = np.random.default_rng(1).random((2, 40, 3)) < 1 / (1 + np.exp(0.5 - 0.8 * values))
    settings = module.settings_of(Variant.INDEPENDENT, module.FLAT)
    start = module.start_of(settings)
    fit = module.fit_replicate(module.separated(jnp.asarray(values), jnp.asarray(chosen, dtype=float)), settings, start)
    reference = LogisticRegression(C=np.inf, tol=1e-10).fit(values.reshape(-1, 1), chosen.ravel())
    np.testing.assert_allclose(fit.mode, [reference.intercept_[0], reference.coef_[0, 0]], rtol=1e-4)


def test_matched_selection_takes_the_largest():
    marginals = np.array([[0.2, 0.9], [0.5, 0.5]])
    assert matched_selection(marginals, 2).tolist() == [[False, True], [True, False]]
    assert matched_selection(marginals, 0).sum() == 0
    assert matched_selection(marginals, 4).all()


def test_recovery_is_counted_at_the_size_that_the_independent_fit_expects():
    independent = np.array([[0.6, 0.3, 0.2], [0.4, 0.3, 0.2]])
    marginals = np.array([[0.9, 0.1, 0.8], [0.2, 0.3, 0.1]])
    gold = np.array([[True, False, True], [False, True, False]])
    found = module._scores(marginals, independent, gold, PAIR_SCORES)
    # Two are selected: (0, 0), which is not weak, and (0, 2), one of two weak ones.
    assert found["recovered"] == 0.5
    assert found["precision"] == 1.0
    assert found["size"] == pytest.approx(1.2)
    assert found["mean_shift"] == pytest.approx(2.4 / 6 - 0.5)


def test_a_fit_without_marginals_has_no_scores():
    nothing = np.full((2, 3), np.nan)
    gold = np.zeros((2, 3), dtype=bool)
    found = module._scores(nothing, nothing, gold, PAIR_SCORES)
    assert all(math.isnan(value) for value in found.values())


def test_the_key_of_a_chunk_holds_all_that_its_scores_depend_on():
    chunk = Chunk(CELL, SIZES, POOLED, 0, 0, 6)
    others = [
        Chunk(CELL, SIZES, POOLED, 1, 0, 6),
        Chunk(CELL, SIZES, POOLED, 0, 1, 6),
        Chunk(CELL, SIZES, POOLED, 0, 0, 5),
        Chunk(CELL, SIZES, (), 0, 0, 6),
        Chunk(CELL, Sizes(2, 40, 5), POOLED, 0, 0, 6),
        Chunk(Cell(Family.STAR, 3, 2.0, 0.0, 1.1), SIZES, POOLED, 0, 0, 6),
    ]
    keys = {chunk.key("a"), chunk.key("b"), *(other.key("a") for other in others)}
    assert len(keys) == len(others) + 2
    assert chunk.key("a") == Chunk(CELL, SIZES, POOLED, 0, 0, 6).key("a")
