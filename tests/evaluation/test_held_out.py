"""Held-out parameters: what each fit has seen, what is kept, and that predictions are the fit's own."""

from dataclasses import replace

import numpy as np
import pytest
from worlds import CYCLE, ISOLATED, PATH, STAR, simulate

from bayeslink.evaluation import held_out as module
from bayeslink.evaluation.held_out import UNSEEN_DRAWS, FitSettings, fit_folds, fresh_draws, held_out, question_folds
from bayeslink.evidence.channel import Evidence
from bayeslink.inference.fit import fit
from bayeslink.inference.predictive import predict
from bayeslink.model.hierarchy import Variant

SETTINGS = FitSettings(num_draws=20)


@pytest.fixture(scope="module")
def world() -> list[Evidence]:
    """Four databases, of different numbers of questions, whose questions share gold SQL in pairs."""
    found = simulate(5, 4, 12, shapes=(PATH, STAR, ISOLATED, CYCLE), non_empty=True)
    found[-1] = found[-1].select_questions(range(10))
    return [replace(item, group=np.arange(item.num_questions) // 2) for item in found]


@pytest.fixture(scope="module")
def known(world) -> list[module.HeldOut]:
    return list(fit_folds(world, Variant.HIERARCHICAL, "known", SETTINGS, num_folds=3))


def test_folds_keep_groups_whole_and_share_them_evenly(world):
    folds = question_folds(world[0], 3, np.random.default_rng(0))
    assert all(len(set(folds[world[0].group == group].tolist())) == 1 for group in set(world[0].group.tolist()))
    assert sorted(np.bincount(folds).tolist()) == [4, 4, 4]
    alone = question_folds(replace(world[0], group=None), 5, np.random.default_rng(0))
    assert sorted(np.bincount(alone).tolist()) == [2, 2, 2, 3, 3]
    assert (folds != question_folds(world[0], 3, np.random.default_rng(1))).any()
    with pytest.raises(ValueError, match="num_folds=1: at least 2"):
        question_folds(world[0], 1, np.random.default_rng(0))


def test_every_question_is_held_out_once(world, known):
    for item in world:
        asked = np.concatenate([held.questions for held in known if held.evidence.key == item.key])
        assert sorted(asked.tolist()) == list(range(item.num_questions))


def test_known_databases_meet_a_fit_on_the_other_folds(world, known):
    """The same as a fit on the remaining questions alone: the held-out ones have no say."""
    held = known[0]
    barred = {place: [] for place in range(len(world))}
    for found in known[: len(world)]:
        barred[[item.key for item in world].index(found.evidence.key)] = found.questions
    training = [
        item.select_questions(np.setdiff1d(np.arange(item.num_questions), barred[place]))
        for place, item in enumerate(world)
    ]
    direct = fit(training, Variant.HIERARCHICAL, num_draws=20)
    place = [item.key for item in world].index(held.evidence.key)
    ready = direct.standardisation.apply(world[place].select_questions(held.questions))
    np.testing.assert_allclose(held.evidence.values, ready.values, rtol=1e-12)
    np.testing.assert_array_equal(held.evidence.gold, world[place].gold[held.questions])
    for found, expected in zip(held.draws, direct.seen(held.evidence.key, ready), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)


def test_unseen_databases_meet_a_fit_without_them_and_their_twins(world):
    twins = {world[0].key: [world[1].key]}
    items = list(fit_folds(world, Variant.HIERARCHICAL, "unseen", SETTINGS, twins=twins))
    assert [item.evidence.key for item in items] == [item.key for item in world]
    for place, training in ((0, world[2:]), (1, [world[0], *world[2:]])):
        direct = fit(training, Variant.HIERARCHICAL, num_draws=20, effects=False)
        ready = direct.standardisation.apply(world[place])
        np.testing.assert_allclose(items[place].evidence.values, ready.values, rtol=1e-12)
        # Two fits from different starts stop within the tolerance of the solver.
        for found, expected in zip(items[place].draws, fresh_draws(direct, ready, 0), strict=True):
            np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)


def test_each_unseen_database_has_fresh_effects_of_its_own(posterior, evidence):
    """Effects that the databases shared would leave a Monte Carlo error common to all."""
    item, first, second = posterior(), evidence("a"), evidence("b")
    one, other = fresh_draws(item, first, 0), fresh_draws(item, second, 0)
    assert len(one.intercept) == UNSEEN_DRAWS > item.num_draws
    effects = [
        (found.intercept - np.resize(item.draws["alpha"], UNSEEN_DRAWS))
        / np.resize(item.draws["sigma_alpha"], UNSEEN_DRAWS)
        for found in (one, other)
    ]
    for drawn in effects:
        assert abs(drawn.mean()) < 4 / np.sqrt(UNSEEN_DRAWS)
        assert abs(drawn.std() - 1) < 4 / np.sqrt(2 * UNSEEN_DRAWS)
    assert abs(np.corrcoef(effects)[0, 1]) < 4 / np.sqrt(UNSEEN_DRAWS)
    for found, again in zip(one, fresh_draws(item, first, 0), strict=True):
        np.testing.assert_array_equal(found, again)
    assert (one.intercept != fresh_draws(item, first, 1).intercept).any()
    pooled = posterior(Variant.POOLED)
    np.testing.assert_array_equal(fresh_draws(pooled, first, 0).coupling, pooled.draws["beta"])


def test_predictions_are_those_of_the_draws(known):
    held = known[1]
    distribution, log_score = held.predict()
    expected, scores = predict(held.evidence, held.draws, held.support)
    np.testing.assert_array_equal(distribution.marginals, expected.marginals)
    np.testing.assert_array_equal(log_score, scores)
    fixed, _ = held.predict(coupling=0.0)
    logits = held.draws.intercept[:, None, None] + np.einsum("qtk,dk->dqt", held.evidence.values, held.draws.slopes)
    np.testing.assert_allclose(fixed.marginals, (1 / (1 + np.exp(-logits))).mean(axis=0), rtol=1e-10)
    with pytest.raises(ValueError, match="has no gold selections"):
        held._replace(evidence=replace(held.evidence, gold=None)).predict()


def test_draws_are_kept_and_read_again(world, tmp_path, monkeypatch):
    variants = [Variant.INDEPENDENT, Variant.POOLED]
    first = held_out(world, variants, "known", SETTINGS, num_folds=2, folder=tmp_path)
    assert len(list(tmp_path.glob("*.npz"))) == 2
    kept = module.fit_packed

    def barred(*arguments, **named):
        raise AssertionError("a fit was made although its draws are kept")

    monkeypatch.setattr(module, "fit_packed", barred)
    again = held_out(world, variants, "known", SETTINGS, num_folds=2, folder=tmp_path)
    for variant in variants:
        for one, other in zip(first[variant], again[variant], strict=True):
            np.testing.assert_array_equal(one.evidence.values, other.evidence.values)
            np.testing.assert_array_equal(one.questions, other.questions)
            for part, same in zip(one.draws, other.draws, strict=True):
                np.testing.assert_array_equal(part, same)
    monkeypatch.setattr(module, "fit_packed", kept)
    changed = [replace(world[0], values=world[0].values + 1.0), *world[1:]]
    held_out(changed, variants[:1], "known", SETTINGS, num_folds=2, folder=tmp_path)
    held_out(world, variants[:1], "known", SETTINGS._replace(num_draws=21), num_folds=2, folder=tmp_path)
    assert len(list(tmp_path.glob("*.npz"))) == 4


def test_corrupt_draws_are_fitted_again(world, tmp_path, caplog):
    (first,) = held_out(world, [Variant.INDEPENDENT], "known", SETTINGS, num_folds=2, folder=tmp_path).values()
    (path,) = tmp_path.glob("*.npz")
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    (again,) = held_out(world, [Variant.INDEPENDENT], "known", SETTINGS, num_folds=2, folder=tmp_path).values()
    assert "are corrupt and fitted again" in caplog.text
    np.testing.assert_array_equal(first[0].draws.intercept, again[0].draws.intercept)
    assert path.read_bytes() == whole


def test_refusals(world):
    with pytest.raises(ValueError, match="scheme='in-sample': use known or unseen"):
        next(fit_folds(world, Variant.POOLED, "in-sample", SETTINGS))
    everyone = {item.key: [other.key for other in world] for item in world}
    with pytest.raises(ValueError, match="no training database is left"):
        next(fit_folds(world, Variant.POOLED, "unseen", SETTINGS, twins=everyone))
