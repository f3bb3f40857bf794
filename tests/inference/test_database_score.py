"""The score of a database: its features, its fit against a plain-Python objective, and its limits."""

import math

import numpy as np
import pytest
from scipy.optimize import minimize

from bayeslink.inference.database_score import DatabaseScore, database_features, fit_database_score


def world(seed: int, num_questions: int, num_databases: int, weights: np.ndarray, num_draws: int = 2):
    """Features, offsets and right databases drawn from the model with these weights."""
    rng = np.random.default_rng(seed)
    features = rng.normal(0, (1.0, 3.0, 0.5), (num_questions, num_databases, 3))
    offset = rng.normal(0, 1, (num_questions, num_databases))
    log_mass = offset + features @ weights
    share = np.exp(log_mass) / np.exp(log_mass).sum(axis=1, keepdims=True)
    right = np.array([rng.choice(num_databases, p=row) for row in share])
    return features, np.stack([offset] * num_draws) + rng.normal(0, 1e-3, (num_draws, 1, 1)), right


def objective(weights, features, offsets, right, prior_scale):
    """Minus the log posterior density, up to a constant, in plain Python."""
    total = 0.0
    for draw in offsets:
        for q, d in enumerate(right):
            logs = [float(draw[q, e] + features[q, e] @ weights) for e in range(len(draw[q]))]
            largest = max(logs)
            total -= logs[d] - largest - math.log(math.fsum(math.exp(v - largest) for v in logs))
    scale = features.reshape(-1, features.shape[2]).std(axis=0)
    return total / len(offsets) + float(((weights * scale / prior_scale) ** 2).sum()) / 2


def test_features_are_the_equation():
    values = np.random.default_rng(0).normal(size=(4, 3, 2))
    found = database_features(values)
    for q in range(4):
        columns = values[q].T.tolist()
        expected = [max(c) for c in columns] + [math.log(sum(map(math.exp, c))) for c in columns] + [math.log(3)]
        np.testing.assert_allclose(found[q], expected, rtol=1e-12)
    np.testing.assert_allclose(database_features(values[:, [2, 0, 1]]), found, rtol=1e-14)
    with pytest.raises(ValueError, match="at least one table and one channel"):
        database_features(values[:, :0])


@pytest.mark.parametrize("prior_scale", [0.3, 1.0, 10.0])
def test_the_fit_is_the_mode(prior_scale):
    features, offsets, right = world(1, 40, 5, np.array([1.0, -0.3, 0.0]))
    offsets = offsets + np.random.default_rng(2).normal(0, 0.5, offsets.shape)
    found = fit_database_score(features, offsets, right, prior_scale)
    expected = minimize(objective, np.zeros(3), (features, offsets, right, prior_scale), options={"gtol": 1e-8})
    # The comparison's own gradient is by finite differences.
    np.testing.assert_allclose(found.weights, expected.x, rtol=1e-4, atol=1e-6)
    assert objective(found.weights, features, offsets, right, prior_scale) <= expected.fun + 1e-9
    alone = objective(found.weights, features, offsets, right, 1e12)
    assert found.log_likelihood == pytest.approx(-alone / 40, rel=1e-9)


def test_the_fit_finds_the_weights():
    truth = np.array([0.8, -0.4, 1.5])
    found = fit_database_score(*world(3, 4000, 6, truth), prior_scale=100.0)
    assert (np.abs(found.weights - truth) < 4 * found.standard_errors).all()
    assert (found.standard_errors < 0.2).all()
    # A wrong truth is told apart, so the check above can fail.
    assert (np.abs(found.weights - np.array([0.0, 0.0, 0.0])) > 4 * found.standard_errors).all()


def test_the_order_of_databases_and_shifts_play_no_role():
    features, offsets, right = world(4, 60, 4, np.array([1.0, 0.2, -0.5]))
    found = fit_database_score(features, offsets, right)
    order = np.array([2, 0, 3, 1])
    moved = fit_database_score(features[:, order], offsets[:, :, order], np.argsort(order)[right])
    np.testing.assert_allclose(moved.weights, found.weights, rtol=1e-6)
    shifted = fit_database_score(features + np.array([5.0, -3.0, 2.0]), offsets + 7.0, right)
    np.testing.assert_allclose(shifted.weights, found.weights, rtol=1e-6)


def test_the_prior_keeps_a_separable_fit_finite_and_shrinks():
    features = np.zeros((10, 2, 1))
    features[:, 0] = 1.0
    offsets, right = np.zeros((1, 10, 2)), np.zeros(10, dtype=np.int64)
    sizes = [float(fit_database_score(features, offsets, right, scale).weights[0]) for scale in (0.1, 1.0, 10.0)]
    assert 0 < sizes[0] < sizes[1] < sizes[2] < 100


def test_limits():
    features, offsets, right = world(5, 20, 3, np.zeros(3))
    constant = fit_database_score(np.full_like(features, 4.0), offsets, right)
    np.testing.assert_allclose(constant.weights, 0.0, atol=1e-12)
    one = fit_database_score(features[:, :1], offsets[:, :, :1], np.zeros(20, dtype=np.int64))
    np.testing.assert_allclose(one.weights, 0.0, atol=1e-12)
    assert one.log_likelihood == 0.0
    score = DatabaseScore(np.array([2.0, 1.0]), np.zeros(2), 0.0)
    np.testing.assert_allclose(score.score(np.array([[1.0, 3.0], [0.0, 1.0]])), [5.0, 1.0])


def test_refusals():
    features, offsets, right = world(6, 5, 3, np.zeros(3))
    with pytest.raises(ValueError, match="features hold no question"):
        fit_database_score(features[:0], offsets[:, :0], right[:0])
    with pytest.raises(ValueError, match=r"outside 0\.\.2"):
        fit_database_score(features, offsets, right + 3)
    with pytest.raises(ValueError, match="hold NaN or infinity"):
        fit_database_score(features, offsets - np.inf, right)
    with pytest.raises(ValueError, match=r"prior_scale=0\.0"):
        fit_database_score(features, offsets, right, 0.0)
