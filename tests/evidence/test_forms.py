"""Forms of a channel within its question, and their standardisation."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from worlds import edge_array, make_evidence

from bayeslink.evidence.channel import Evidence, Standardisation
from bayeslink.evidence.forms import FORMS, form_names, form_values


def forms_oracle(values: list[float]) -> list[list[float]]:
    """The forms of one channel of one question, table by table, in the order of `FORMS`."""
    n, rows = len(values), []
    for t, value in enumerate(values):
        above = sum(other > value for other in values)
        level = sum(other == value for s, other in enumerate(values) if s != t)
        rank = math.log((n + 1) / 2) - math.log(1 + above + level / 2)
        rows.append([value, value - max(values), value - sum(values) / n, rank])
    return rows


def test_by_hand():
    values = np.array([[[1.0, 2.0], [0.0, 2.0], [3.0, 2.0], [0.0, 2.0]]])
    found = form_values(values, FORMS)[0]
    expected = np.array(forms_oracle([1.0, 0.0, 3.0, 0.0]))
    np.testing.assert_allclose(found[:, 0::2], expected, rtol=1e-12)
    np.testing.assert_allclose(
        found[:, 6], np.log(2.5) - np.log([2, 3.5, 1, 3.5]), rtol=1e-12, err_msg="ties share their average rank"
    )
    # A channel that ties all tables says nothing.
    np.testing.assert_array_equal(found[:, 1::2], [[2, 0, 0, 0]] * 4)


@given(st.lists(st.integers(-3, 3).map(lambda k: k / 3), min_size=1, max_size=8))
def test_forms_are_the_equations(values: list[float]):
    found = form_values(np.array(values)[None, :, None], FORMS)[0]
    np.testing.assert_allclose(found, forms_oracle(values), rtol=1e-10, atol=1e-12)


@given(st.integers(0, 2**32 - 1))
def test_forms_move_with_their_tables(seed: int):
    rng = np.random.default_rng(seed)
    values = rng.integers(-2, 3, size=(3, int(rng.integers(1, 7)), 2)) / 3
    order = rng.permutation(values.shape[1])
    moved = form_values(values[:, order], FORMS)
    np.testing.assert_allclose(moved, form_values(values, FORMS)[:, order], rtol=1e-12, atol=1e-14)


def test_the_step_from_first_to_second_does_not_depend_on_the_schema():
    for num_tables in (2, 5, 60):
        ranks = form_values(np.arange(num_tables, dtype=float)[None, ::-1, None], ("rank",))[0, :, 0]
        assert ranks[0] - ranks[1] == pytest.approx(math.log(2))
        assert (np.diff(ranks) < 0).all()


def test_rounding_of_a_mean_is_no_difference():
    values = np.full((1, 7, 1), 0.1)
    assert values.mean(axis=1)[0, 0] != 0.1
    assert not form_values(values, ("above_mean", "below_best", "rank")).any()


def test_shapes_and_names():
    values = np.zeros((2, 3, 2))
    for asked in ((), ("rank",), FORMS, ("rank", "value")):
        assert form_values(values, asked).shape == (2, 3, len(form_names(asked, ("a", "b"))))
    assert form_names((), ("a", "b")) == ("a", "b")
    assert form_names(("rank", "value"), ("a", "b")) == ("rank_a", "rank_b", "a", "b")
    assert form_values(np.zeros((0, 3, 2)), FORMS).shape == (0, 3, 8)
    assert form_values(np.zeros((2, 3, 0)), FORMS).shape == (2, 3, 0)


def test_refusals(training):
    with pytest.raises(ValueError, match=r"forms=\['best'\]: use some of value, below_best, above_mean, rank"):
        form_names(("best",), ())
    with pytest.raises(ValueError, match=r"forms=\('rank', 'rank'\) repeats a form; give each once"):
        Standardisation.fit(training, forms=("rank", "rank"))


@pytest.fixture
def training() -> list[Evidence]:
    """Two databases of two and of three tables with two channels, the second one silent in the first database."""
    rng = np.random.default_rng(5)
    values = [rng.normal(size=(3, 2, 2)), rng.normal(size=(2, 3, 2))]
    values[0][:, :, 1] = 0.3
    return [
        make_evidence(values[0], edge_array([(0, 1)]), None, "two"),
        make_evidence(values[1], edge_array([]), None, "three"),
    ]


def test_forms_are_standardised_and_precede_the_contexts(training):
    standardisation = Standardisation.fit(training, ("log_num_tables", "evidence_max"), FORMS)
    plain = Standardisation.fit(training, ("log_num_tables", "evidence_max"))
    names = form_names(FORMS, ("c0", "c1"))
    assert standardisation.predictors == names
    ready = [standardisation.apply(item) for item in training]
    for item, raw in zip(ready, training, strict=True):
        assert item.channels == (*names, "log_num_tables", "max_c0", "max_c1")
        assert item.num_contexts == 3
        bare = plain.apply(raw)
        # The values and the covariates of the intercept are what they are without forms.
        np.testing.assert_array_equal(item.values[:, :, :2], bare.values[:, :, :2])
        np.testing.assert_array_equal(item.values[:, :, 8:], bare.values[:, :, 2:])
    pairs = np.concatenate([item.values[:, :, :8].reshape(-1, 8) for item in ready])
    np.testing.assert_allclose(pairs.mean(axis=0), 0, atol=1e-12)
    np.testing.assert_allclose(pairs.std(axis=0), 1, rtol=1e-12)
    z = (training[1].values - plain.mean) / plain.scale
    expected = (form_values(z, ("rank",)) - standardisation.form_mean[6:]) / standardisation.form_scale[6:]
    np.testing.assert_allclose(ready[1].values[:, :, 6:8], expected, rtol=1e-12)


def test_values_alone_are_no_forms(training):
    plain, asked = Standardisation.fit(training), Standardisation.fit(training, forms=("value",))
    assert plain.predictors == asked.predictors == ("c0", "c1")
    for item in training:
        np.testing.assert_array_equal(asked.apply(item).values, plain.apply(item).values)


def test_a_form_that_never_varies_is_finite(training):
    """Of one table there is nothing to rank."""
    rng = np.random.default_rng(0)
    one = make_evidence(rng.normal(size=(4, 1, 2)), edge_array([]), None, "one")
    standardisation = Standardisation.fit([one], forms=FORMS)
    assert standardisation.form_scale[2:].tolist() == [1.0] * 6
    assert not standardisation.apply(one).values[:, :, 2:].any()
    assert np.isfinite(standardisation.apply(training[1]).values).all()


def test_one_question_gets_the_values_it_has_among_others(training):
    standardisation = Standardisation.fit(training, forms=FORMS)
    whole = standardisation.apply(training[1])
    for question in range(training[1].num_questions):
        one = standardisation.apply(training[1].select_questions([question]))
        np.testing.assert_array_equal(one.values[0], whole.values[question])
    assert standardisation.apply(training[1].select_questions([])).values.shape == (0, 3, 8)


def test_what_a_channel_adds_is_the_sum_over_its_forms(training):
    standardisation = Standardisation.fit(training, forms=("value", "rank"))
    parts = np.array([[1.0, 10.0, 100.0, 1000.0]])
    assert standardisation.by_channel(parts).tolist() == [[101.0, 1010.0]]
    assert Standardisation.fit(training).by_channel(parts[:, :2]).tolist() == [[1.0, 10.0]]
