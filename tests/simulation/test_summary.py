"""The interval of a mean against a loop and a table of Student's t."""

import math

import numpy as np
import pytest

from bayeslink.simulation.summary import mean_interval


def test_interval_is_the_textbooks():
    values = [1.0, 2.0, 4.0, 5.0]
    mean = math.fsum(values) / 4
    sd = math.sqrt(math.fsum((value - mean) ** 2 for value in values) / 3)
    found = mean_interval(np.array(values))
    half = 3.182446305284263 * sd / 2  # t with 3 degrees of freedom, 0.975 quantile.
    np.testing.assert_allclose(found, [mean, mean - half, mean + half], rtol=1e-10)


def test_equal_values_have_no_width_and_one_value_no_bounds():
    assert mean_interval(np.full(5, 2.0)) == (2.0, 2.0, 2.0)
    assert mean_interval(np.array([2.0])) == (2.0, -math.inf, math.inf)


def test_interval_holds_the_mean_as_often_as_it_says():
    rng = np.random.default_rng(0)
    found = [mean_interval(rng.standard_normal(6)) for _ in range(2000)]
    share = np.mean([item.lower <= 0 <= item.upper for item in found])
    assert abs(share - 0.95) < 4 * math.sqrt(0.95 * 0.05 / 2000)


@pytest.mark.parametrize("values", [np.zeros(0), np.array([1.0, np.nan])])
def test_values_without_a_mean_are_refused(values):
    with pytest.raises(ValueError, match="give one or more, all finite"):
        mean_interval(values)
