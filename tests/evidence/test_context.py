"""Covariates of the intercept: their names, their values by hand, and that only training data standardise them."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from worlds import edge_array, make_evidence

import bayeslink
from bayeslink.evidence.channel import COVARIATES, Evidence, Standardisation
from bayeslink.evidence.context import (
    CONTEXTS,
    LARGEST_SIZE,
    RECOMMENDED_CONTEXT,
    context_names,
    context_values,
    within_sizes,
)
from bayeslink.evidence.structure import covariates
from bayeslink.inference.posterior import load_posteriors, shipped_path
from bayeslink.model.hierarchy import Variant

EVERYTHING = ("log_num_tables", "mean_degree", "isolated_share", "evidence_mean", "evidence_max")


@pytest.fixture
def training() -> list[Evidence]:
    """Two databases of two and of three tables with two channels; three and two questions."""
    rng = np.random.default_rng(3)
    return [
        make_evidence(rng.normal(size=(3, 2, 2)), edge_array([(0, 1)]), None, "two"),
        make_evidence(rng.normal(size=(2, 3, 2)), edge_array([]), None, "three"),
    ]


def test_names():
    assert CONTEXTS == EVERYTHING
    assert set(RECOMMENDED_CONTEXT) <= set(CONTEXTS)
    assert context_names((), ("a", "b")) == ()
    asked = ("evidence_max", "log_num_tables", "evidence_mean")
    assert context_names(asked, ("a", "b")) == ("max_a", "max_b", "log_num_tables", "mean_a", "mean_b")


def test_values_by_hand():
    values = np.array([[[1.0, -2.0], [3.0, 4.0]], [[0.0, 0.5], [-1.0, 0.25]]])
    found = context_values(values, np.array([0.7, 1.0, 0.5]), ("isolated_share", "evidence_mean", "evidence_max"))
    expected = [[0.5, 2.0, 1.0, 3.0, 4.0], [0.5, -0.5, 0.375, 0.0, 0.5]]
    np.testing.assert_allclose(found, expected, rtol=1e-12)
    assert context_values(values, np.zeros(3), ()).shape == (2, 0)


def test_contexts_follow_the_channels_and_are_those_of_standardised_evidence(training):
    standardisation = Standardisation.fit(training, ("mean_degree", "evidence_max"))
    assert standardisation.context_names == ("mean_degree", "max_c0", "max_c1")
    pairs = np.concatenate([item.values.reshape(-1, 2) for item in training])
    # Degree 1 for the three questions of the pair of tables, 0 for the two others.
    degrees = np.array([1.0, 1.0, 1.0, 0.0, 0.0])
    ready = [(item.values - pairs.mean(axis=0)) / pairs.std(axis=0) for item in training]
    raw = np.column_stack([degrees, np.concatenate([values.max(axis=1) for values in ready])])
    expected = (raw - raw.mean(axis=0)) / raw.std(axis=0)
    start = 0
    for item, values in zip(training, ready, strict=True):
        found = standardisation.apply(item)
        assert found.channels == ("c0", "c1", "mean_degree", "max_c0", "max_c1")
        assert found.num_contexts == 3
        np.testing.assert_allclose(found.values[:, :, :2], values, rtol=1e-12)
        mine = expected[start : start + item.num_questions]
        for table in range(item.num_tables):
            np.testing.assert_allclose(found.values[:, table, 2:], mine, rtol=1e-12, atol=1e-14)
        start += item.num_questions


def test_covariates_of_the_coupling_are_standardised_over_databases(training):
    standardisation = Standardisation.fit(training)
    found = np.stack([standardisation.apply(item).covariates for item in training])
    # Two different numbers become -1 and 1; here each differs.
    np.testing.assert_allclose(np.abs(found), 1, rtol=1e-12)
    np.testing.assert_allclose(found.sum(axis=0), 0, atol=1e-12)
    np.testing.assert_allclose(standardisation.covariate_mean[0], np.log(6) / 2, rtol=1e-12)


def test_without_contexts_evidence_has_its_channels_alone(training):
    found = Standardisation.fit(training).apply(training[0])
    assert (found.channels, found.num_contexts) == (training[0].channels, 0)


def test_only_training_databases_standardise(training):
    """Another database is measured on the training scale, and changes nothing of it."""
    standardisation = Standardisation.fit(training, EVERYTHING)
    far = make_evidence(100 + 10 * training[0].values, edge_array([(0, 1)]), None, "far")
    before = [standardisation.apply(item).values for item in training]
    found = standardisation.apply(far).values[:, 0, 5:7]
    raw = (far.values - standardisation.mean) / standardisation.scale
    expected = (raw.mean(axis=1) - standardisation.context_mean[3:5]) / standardisation.context_scale[3:5]
    np.testing.assert_allclose(found, expected, rtol=1e-12)
    assert (np.abs(found) > 10).all()
    for item, values in zip(training, before, strict=True):
        np.testing.assert_array_equal(standardisation.apply(item).values, values)
    assert (Standardisation.fit([*training, far], EVERYTHING).context_scale != standardisation.context_scale).any()


def test_one_question_gets_the_values_it_has_among_others(training):
    standardisation = Standardisation.fit(training, EVERYTHING)
    whole = standardisation.apply(training[1])
    for question in range(training[1].num_questions):
        one = standardisation.apply(training[1].select_questions([question]))
        np.testing.assert_array_equal(one.values[0], whole.values[question])
    assert standardisation.apply(training[1].select_questions([])).values.shape == (0, 3, 9)


def test_a_constant_covariate_is_zero_in_training_and_finite_elsewhere(training):
    standardisation = Standardisation.fit([training[0]], ("log_num_tables",))
    assert standardisation.context_scale.tolist() == [1.0]
    assert (standardisation.apply(training[0]).values[..., 2] == 0).all()
    np.testing.assert_allclose(standardisation.apply(training[1]).values[..., 2], np.log(3 / 2), rtol=1e-12)
    assert (standardisation.apply(training[0]).covariates == 0).all()
    assert standardisation.covariate_scale.tolist() == [1.0] * len(COVARIATES)


def test_refusals(training):
    with pytest.raises(ValueError, match=r"context=\['size'\]: use some of log_num_tables, mean_degree"):
        Standardisation.fit(training, ("size",))
    with pytest.raises(ValueError, match=r"context=\('mean_degree', 'mean_degree'\) repeats a name; give each once"):
        Standardisation.fit(training, ("mean_degree", "mean_degree"))
    with pytest.raises(ValueError, match=r"context=\['mean'\]: use some of"):
        context_names(("mean",), ("a",))


def test_a_context_is_the_same_for_every_table(training):
    ready = Standardisation.fit(training, ("evidence_mean",)).apply(training[0])
    values = ready.values.copy()
    values[0, 1, -1] += 1e-9
    with pytest.raises(ValueError, match=r"its last 2 channels vary over tables; they are no covariates"):
        replace(ready, values=values)
    with pytest.raises(ValueError, match=r"its last 3 channels vary over tables"):
        replace(ready, num_contexts=3)
    for wrong in (-1, 5):
        with pytest.raises(ValueError, match=rf"num_contexts={wrong} for channels"):
            replace(ready, num_contexts=wrong)


def test_channels_are_selected_before_standardising(training):
    ready = Standardisation.fit(training, ("evidence_mean",)).apply(training[0])
    with pytest.raises(ValueError, match=r"holds covariates of the intercept; select before standardising"):
        ready.select_channels(("c0",))


def test_only_the_number_of_tables_is_cut_and_only_above():
    context = np.array([[9.0, 9.0, -9.0], [1.0, 2.0, 3.0]])
    found = within_sizes(context, ("max_a", "log_num_tables", "mean_degree"))
    assert found.tolist() == [[9.0, LARGEST_SIZE, -9.0], [1.0, 2.0, 3.0]]
    assert within_sizes(np.zeros((2, 0)), ()).shape == (2, 0)


def test_no_database_that_posteriors_are_fitted_on_is_cut():
    most = np.log([30.0])
    for path in sorted(Path(bayeslink.__file__).parent.glob("posteriors/*.nc")):
        for posterior in load_posteriors(path).values():
            standardisation = posterior.standardisation
            if "log_num_tables" in standardisation.context_names:
                place = standardisation.context_names.index("log_num_tables")
                scaled = (most - standardisation.context_mean[place]) / standardisation.context_scale[place]
                assert scaled < LARGEST_SIZE


def test_a_large_schema_is_read_like_the_largest_that_was_fitted():
    """A line drawn on to 1,200 tables would deny each of them, whatever its evidence."""
    posterior = load_posteriors(shipped_path("lexical"))[Variant.HIERARCHICAL]
    place = posterior.standardisation.context_names.index("log_num_tables")
    read = []
    for size in (60, 250, 1200):
        evidence = Evidence(
            "d",
            "large",
            posterior.standardisation.channels,
            np.zeros((1, size, len(posterior.standardisation.channels))),
            np.zeros((0, 2), dtype=np.int64),
            np.zeros(0, dtype=np.int64),
            covariates(np.zeros((0, 2), dtype=np.int64), size),
        )
        ready = posterior.standardisation.apply(evidence)
        read.append(ready.values[0, 0, ready.values.shape[2] - ready.num_contexts + place])
    assert read == [LARGEST_SIZE] * 3
