"""The two integrals of the posterior of columns, against sums over a grid: its predictions, and its evidence of sigma.

The grids are wide and fine enough that their own error is far below the tolerances.
"""

import numpy as np
import pytest
from scipy.special import expit, logsumexp

from bayeslink.inference.columns import (
    INTERCEPT_SCALE,
    SLOPE_SCALE,
    ColumnPosterior,
    ColumnRows,
    _mode,
    fit_columns,
)

NORMAL = np.linspace(-8, 8, 801)
DENSITY = np.exp(-0.5 * NORMAL**2) / np.exp(-0.5 * NORMAL**2).sum()


def of_one(mean, covariance, sigma: float) -> ColumnPosterior:
    """A posterior of an intercept and one slope, on a predictor that is (x - 3) / 2."""
    return ColumnPosterior(
        ("x",), np.array([3.0]), np.array([2.0]), np.array(mean), np.array(covariance), float(sigma), {}
    )


CASES = {
    "intercept": ([2.0, 0.5], [[4.0, 0.0], [0.0, 1e-12]], 1e-6),
    "slope": ([2.0, 0.5], [[1e-12, 0.0], [0.0, 1.5]], 1e-6),
    "together": ([2.0, 0.5], [[2.0, -1.1], [-1.1, 1.0]], 1e-6),
    "database": ([2.0, 0.5], [[1e-12, 0.0], [0.0, 1e-12]], 2.5),
    "all": ([-1.5, 1.0], [[1.0, 0.6], [0.6, 0.8]], 1.5),
}


@pytest.mark.parametrize("case", CASES)
def test_a_prediction_is_the_integral_over_parameters_and_new_databases(case):
    """The log-odds a + u + w z is normal with variance of (a, w) . (1, z) plus sigma^2."""
    mean, covariance, sigma = CASES[case]
    count = 20_000
    values = np.array([[[-3.0], [3.0], [6.0]], [[1.0], [5.0], [9.0]]])
    found = of_one(mean, covariance, sigma).given_table(("x",), values, num_draws=count)
    gaps = []
    for question, column in np.ndindex(2, 3):
        at = np.array([1.0, (values[question, column, 0] - 3.0) / 2.0])
        sd = np.sqrt(at @ covariance @ at + sigma**2)
        each = expit(at @ mean + sd * NORMAL)
        exact = DENSITY @ each
        error = np.sqrt(DENSITY @ (each - exact) ** 2 / count)
        assert abs(found[question, column] - exact) < 4 * error + 1e-9
        gaps.append(abs(expit(at @ mean) - exact) / error if error > 1e-6 else 0.0)
    # The mean of the parameters put in would be far off: the check can fail.
    assert max(gaps) > 20


def test_all_columns_share_a_draw():
    """Columns are averaged over the same draws, so that a certain order of theirs is kept by every one of them."""
    values = np.linspace(-5, 11, 9)[None, :, None]
    found = of_one([0.0, 1.0], [[9.0, 0.0], [0.0, 1e-12]], 2.0).given_table(("x",), values, num_draws=3)[0]
    assert (np.diff(found) > 0).all()


def test_predictions_are_those_of_their_seed():
    posterior, values = of_one([0.0, 1.0], [[1.0, 0.0], [0.0, 1.0]], 1.0), np.ones((1, 2, 1))
    first = posterior.given_table(("x",), values, seed=3)
    np.testing.assert_array_equal(first, posterior.given_table(("x",), values, seed=3))
    assert (first != posterior.given_table(("x",), values, seed=4)).all()


def counted(num_databases: int, rows: int, sigma: float, seed: int = 0) -> list[ColumnRows]:
    """Databases with a predictor that is -1 or 1, as often one as the other."""
    rng = np.random.default_rng(seed)
    found = []
    for shift in sigma * rng.standard_normal(num_databases):
        values = np.tile([-1.0, 1.0], rows // 2)
        found.append(ColumnRows(values[:, None], rng.random(rows) < expit(-0.5 + shift + 0.8 * values)))
    return found


INTERCEPTS, SLOPES = np.linspace(-4, 3, 71), np.linspace(0.1, 1.5, 43)
"""Grids of a and w: the posteriors below lie well inside, and are wider than a cell."""


def log_joint(databases: list[ColumnRows], sigma: float) -> np.ndarray:
    """Log P(data, a, w | sigma) at each point of the grids, each u summed over its own grid."""
    total = -0.5 * (INTERCEPTS[:, None] / INTERCEPT_SCALE) ** 2 - 0.5 * (SLOPES[None] / SLOPE_SCALE) ** 2
    total = total - np.log(2 * np.pi * INTERCEPT_SCALE * SLOPE_SCALE)
    standard = np.linspace(-6, 6, 121)
    log_density = -0.5 * standard**2 - logsumexp(-0.5 * standard**2)
    for rows in databases:
        inner = np.zeros((len(INTERCEPTS), len(SLOPES), len(standard)))
        for value in (-1.0, 1.0):
            own = rows.chosen[rows.values[:, 0] == value]
            logit = INTERCEPTS[:, None, None] + SLOPES[None, :, None] * value + sigma * standard
            # log(1 - p) is log p - logit.
            inner += len(own) * -np.logaddexp(0.0, -logit) - (~own).sum() * logit
        total = total + logsumexp(inner + log_density, axis=2)
    return total


def exact_log_evidence(databases: list[ColumnRows], sigma: float) -> float:
    cell = (INTERCEPTS[1] - INTERCEPTS[0]) * (SLOPES[1] - SLOPES[0])
    return float(logsumexp(log_joint(databases, sigma)) + np.log(cell))


def laplace(databases: list[ColumnRows], sigma: float):
    values = np.concatenate([rows.values for rows in databases])
    design = np.concatenate([np.ones_like(values), values], axis=1)
    owner = np.repeat(np.arange(len(databases)), [len(rows.chosen) for rows in databases])
    chosen = np.concatenate([rows.chosen for rows in databases])
    return _mode(design, owner, chosen, float(sigma), np.zeros(2 + len(databases)))


@pytest.mark.parametrize("sigma", [0.1, 0.6, 2.0])
def test_the_evidence_of_sigma_is_the_integral(sigma):
    """Laplace's method with 200 rows a database is off by some hundredths at most; log det H is about 15."""
    databases = counted(3, 200, 0.8)
    assert laplace(databases, sigma).evidence == pytest.approx(exact_log_evidence(databases, sigma), abs=0.05)


@pytest.mark.parametrize("sigma", [0.0, 1.0])
def test_sigma_is_where_the_integral_is_largest(sigma):
    databases = counted(5, 100, sigma, seed=2)
    found = fit_columns(databases, ("x",)).sigma
    grid = np.exp(np.arange(np.log(0.05), np.log(3.0), 0.3))
    best = grid[np.argmax([exact_log_evidence(databases, float(value)) for value in grid])]
    # Where the evidence falls with sigma, all small values are alike.
    assert abs(np.log(found / best)) < 0.25 if sigma else max(found, best) < 0.2


def test_the_fit_is_the_one_at_its_own_sigma():
    databases = counted(5, 100, 1.0, seed=2)
    found = fit_columns(databases, ("x",))
    mode = laplace(databases, found.sigma)
    np.testing.assert_allclose(found.mean, mode.parameters[:2], rtol=1e-6)
    np.testing.assert_allclose(found.covariance, mode.covariance, rtol=1e-6)


def test_the_fit_is_the_mode_of_the_plain_density():
    """Mean of (a, w) against the integral: within a tenth of a standard deviation where rows are many."""
    databases = counted(4, 300, 0.7, seed=4)
    found = laplace(databases, 0.7)
    weight = np.exp(log_joint(databases, 0.7) - exact_log_evidence(databases, 0.7))
    weight /= weight.sum()
    mean = np.array([weight.sum(axis=1) @ INTERCEPTS, weight.sum(axis=0) @ SLOPES])
    variance = np.array([weight.sum(axis=1) @ INTERCEPTS**2, weight.sum(axis=0) @ SLOPES**2]) - mean**2
    both = INTERCEPTS @ weight @ SLOPES - mean.prod()
    sd = np.sqrt(variance)
    assert (np.abs(found.parameters[:2] - mean) < 0.1 * sd).all()
    np.testing.assert_allclose(np.diag(found.covariance), variance, rtol=0.1)
    assert abs(found.covariance[0, 1] - both) < 0.03 * sd.prod()
