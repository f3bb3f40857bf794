"""Calibration measures against loops in plain Python."""

import math
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bayeslink.evaluation import calibration

MISMATCH = (ValueError, TypeError)
"""TypeError comes first where the annotated shapes are checked at run time."""


def error_by_hand(pairs, num_bins):
    bins = {}
    for p, y in pairs:
        bins.setdefault(min(int(p * num_bins), num_bins - 1), []).append((p, y))
    gaps = [abs(sum(p for p, _ in b) / len(b) - sum(y for _, y in b) / len(b)) * len(b) for b in bins.values()]
    return sum(gaps) / len(pairs)


pairs_of = st.lists(st.tuples(st.floats(0, 1), st.sampled_from([0.0, 1.0])), min_size=1, max_size=60)


@given(pairs_of, st.sampled_from([1, 2, 15]))
def test_measures_equal_plain_python(pairs, num_bins):
    p, y = (np.array(column) for column in zip(*pairs, strict=True))
    assert calibration.calibration_error(p, y, num_bins) == pytest.approx(error_by_hand(pairs, num_bins), abs=1e-12)
    assert calibration.brier(p, y) == pytest.approx(sum((a - b) ** 2 for a, b in pairs) / len(pairs), abs=1e-12)
    assert calibration.mean_shift(p, y) == pytest.approx(sum(a - b for a, b in pairs) / len(pairs), abs=1e-12)
    inside = [(min(max(a, sys.float_info.min), math.nextafter(1, 0)), b) for a, b in pairs]
    expected = sum(math.log(a if b else 1 - a) for a, b in inside) / len(pairs)
    assert calibration.marginal_log_score(p, y) == pytest.approx(expected, rel=1e-12)


def test_log_score_of_a_marginal_that_rounds_to_the_impossible_is_finite():
    impossible = calibration.marginal_log_score(np.array([0.0, 1.0]), np.array([1.0, 0.0]))
    assert impossible == pytest.approx((math.log(sys.float_info.min) + math.log(2**-53)) / 2, rel=1e-12)
    certain = calibration.marginal_log_score(np.array([0.0, 1.0]), np.array([0.0, 1.0]))
    assert certain == pytest.approx(0, abs=1e-15)


def test_there_are_fifteen_bins_and_one_lies_in_the_last():
    found = calibration.reliability(np.array([0.0, 0.02, 1.0, 0.5]), np.array([0.0, 1.0, 1.0, 0.0]))
    assert found.count.tolist() == [2] + [0] * 6 + [1] + [0] * 6 + [1]
    assert found.mean_probability[0] == pytest.approx(0.01)
    assert found.frequency[[0, 7, 14]].tolist() == [0.5, 0.0, 1.0]
    assert np.isnan(found.frequency[1])


def test_calibrated_probabilities_pass_and_biased_ones_fail():
    rng = np.random.default_rng(0)
    p = rng.random(20_000)
    y = (rng.random(20_000) < p).astype(float)
    # The error of a calibrated forecast is about sum over bins of share * sd of the bin's mean, times sqrt(2/pi).
    noise = sum(math.sqrt(0.25 / (20_000 / 15)) for _ in range(15)) / 15
    assert calibration.calibration_error(p, y) < noise
    assert calibration.calibration_error(np.minimum(p + 0.1, 1.0), y) > 0.08


@pytest.mark.parametrize("bad", [-0.1, 1.1, float("nan")])
def test_values_that_are_no_probability_are_refused(bad):
    with pytest.raises(ValueError, match="outside"):
        calibration.calibration_error(np.array([0.5, bad]), np.array([0.0, 1.0]))


def test_lengths_must_agree():
    with pytest.raises(MISMATCH):
        calibration.reliability(np.array([0.5]), np.array([0.0, 1.0]))
