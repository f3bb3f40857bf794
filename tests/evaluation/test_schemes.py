"""Who is fitted on what: nothing of a held-out database or its twins reaches its fit."""

from dataclasses import replace

import numpy as np
import pytest

from bayeslink.evaluation import held_out, schemes
from bayeslink.evaluation.held_out import fresh_draws
from bayeslink.evaluation.schemes import FitSettings, in_sample, leave_one_database_out, transfer
from bayeslink.evidence.channel import Standardisation
from bayeslink.inference.fit import fit
from bayeslink.inference.predictive import predict
from bayeslink.model.hierarchy import Variant

SETTINGS = FitSettings(num_draws=20, seed=3)


@pytest.fixture
def four(evidence):
    return [evidence(name, seed=seed) for seed, name in enumerate("abcd")]


@pytest.fixture
def spy(monkeypatch):
    """Calls of the fitter: keys, standardisation, and the questions of each database that carry weight."""
    calls = []
    genuine = held_out.fit_packed

    def record(batch, keys, standardisation, variant, **arguments):
        weights = np.zeros(batch.num_databases)
        for bucket in batch.buckets:
            np.add.at(weights, np.asarray(bucket.database), np.asarray(bucket.weight).sum(axis=-1))
        calls.append((keys, standardisation, weights.tolist()))
        return genuine(batch, keys, standardisation, variant, **arguments)

    monkeypatch.setattr(held_out, "fit_packed", record)
    monkeypatch.setattr(schemes, "fit_packed", record)
    return calls


def test_the_held_database_and_its_twins_are_left_out_of_the_fit(four, spy):
    twins = {("toy", "a"): [("toy", "b")], ("toy", "b"): [("toy", "a")]}
    held = [key for _, key, _ in leave_one_database_out(four, [Variant.INDEPENDENT], twins, SETTINGS)]
    assert held == [item.key for item in four]
    for key, (trained, standardisation, weights) in zip(held, spy, strict=True):
        barred = {key, *twins.get(key, ())}
        expected = [item for item in four if item.key not in barred]
        assert trained == tuple(item.key for item in expected)
        assert weights == [0 if item.key in barred else item.num_questions for item in four]
        clean = Standardisation.fit(expected)
        np.testing.assert_array_equal(standardisation.mean, clean.mean)
        np.testing.assert_array_equal(standardisation.scale, clean.scale)


def test_forms_are_those_of_the_training_databases(four, spy):
    asked = SETTINGS._replace(forms=("value", "rank"))
    for _, key, _ in leave_one_database_out(four, [Variant.INDEPENDENT], {}, asked):
        clean = Standardisation.fit([item for item in four if item.key != key], forms=("value", "rank"))
        np.testing.assert_array_equal(spy[-1][1].form_mean, clean.form_mean)
        np.testing.assert_array_equal(spy[-1][1].form_scale, clean.form_scale)
    list(in_sample(four, [Variant.INDEPENDENT], asked))
    assert [call[1].forms for call in spy] == [("value", "rank")] * 5
    np.testing.assert_array_equal(spy[-1][1].form_mean, Standardisation.fit(four, forms=("value", "rank")).form_mean)


def test_twins_outside_the_set_are_no_matter(four):
    twins = {("toy", "a"): [("elsewhere", "z")]}
    assert len(list(leave_one_database_out(four, [Variant.INDEPENDENT], twins, SETTINGS))) == 4


@pytest.mark.parametrize("variant", [Variant.FIXED, Variant.POOLED])
def test_predictions_equal_a_fit_on_the_others_by_hand(four, variant):
    twins = {("toy", "c"): [("toy", "a")]}
    found = {key: item for _, key, item in leave_one_database_out(four, [variant], twins, SETTINGS)}
    held, training = four[2], [four[1], four[3]]
    posterior = fit(training, variant, coupling=SETTINGS.coupling, num_draws=20, seed=3, effects=False)
    ready = posterior.standardisation.apply(held)
    distribution, log_score = predict(ready, fresh_draws(posterior, ready, 3))
    # Two fits from different starts stop within the tolerance of the solver.
    np.testing.assert_allclose(found[held.key].marginals, distribution.marginals, rtol=1e-6)
    np.testing.assert_allclose(found[held.key].log_score, log_score, rtol=1e-6)
    if variant is Variant.FIXED:
        leaked = fit([four[0], *training], variant, coupling=SETTINGS.coupling, num_draws=20, seed=3, effects=False)
        other, _ = predict(leaked.standardisation.apply(held), leaked.unseen(3))
        assert not np.allclose(found[held.key].marginals, other.marginals, rtol=1e-3)


def test_a_set_of_twins_alone_is_refused(four):
    twins = {("toy", "a"): [("toy", "b")]}
    with pytest.raises(ValueError, match="no training database is left"):
        list(leave_one_database_out(four[:2], [Variant.INDEPENDENT], twins, SETTINGS))


def test_in_sample_uses_each_databases_own_effects(four):
    ((variant, items),) = in_sample(four, [Variant.INDEPENDENT_HIERARCHICAL], SETTINGS)
    posterior = fit(four, Variant.INDEPENDENT_HIERARCHICAL, num_draws=20, seed=3)
    assert variant is Variant.INDEPENDENT_HIERARCHICAL
    for item, evidence in zip(items, four, strict=True):
        seen, _ = predict(posterior.standardisation.apply(evidence), posterior.seen(evidence.key))
        np.testing.assert_allclose(item.marginals, seen.marginals, rtol=1e-6)
        np.testing.assert_array_equal(item.group, evidence.group)
    unseen, _ = predict(posterior.standardisation.apply(four[3]), posterior.unseen(3))
    assert not np.allclose(items[3].marginals, unseen.marginals, rtol=1e-3)


def test_transfer_fits_nothing(four, posterior, monkeypatch):
    def refuse(*arguments, **settings):
        raise AssertionError("transfer called the fitter")

    monkeypatch.setattr(schemes, "fit_packed", refuse)
    monkeypatch.setattr(Standardisation, "fit", refuse)
    given = {Variant.HIERARCHICAL: posterior()}
    ((variant, items),) = transfer(four, given, seed=7)
    assert variant is Variant.HIERARCHICAL
    for item, evidence in zip(items, four, strict=True):
        distribution, log_score = predict(evidence, fresh_draws(given[variant], evidence, 7))
        np.testing.assert_array_equal(item.marginals, distribution.marginals)
        np.testing.assert_array_equal(item.log_score, log_score)


def test_evidence_without_gold_cannot_be_scored(evidence, posterior):
    blind = replace(evidence("a"), gold=None)
    with pytest.raises(ValueError, match="no gold"):
        list(transfer([blind], {Variant.HIERARCHICAL: posterior()}))


def test_other_channels_are_refused(evidence, posterior):
    narrow = evidence("a").select_channels(("one",))
    with pytest.raises(ValueError, match="select the same channels"):
        list(transfer([narrow], {Variant.HIERARCHICAL: posterior()}))
