"""The score of a whole database in a pool: a line in what its tables say together, fitted by maximum likelihood.

The weight of database d in `pooled` is exp(r_d) (Z_d - 1). With v_qtk the value of channel k of evidence for table t
of database d, not standardised within the database (that would take away what tells databases apart),

    r_qd = omega . f_qd,   f_qd = (max_t v_qtk and log sum_t exp v_qtk of each channel k; log of the number of tables)

and omega is the mode of the posterior given the right database d_q of each training question and the table model:

    (1/S) sum_s sum_q log P_s(d_q | q, omega) - sum_j (omega_j scale_j / prior_scale)^2 / 2,

with scale_j the standard deviation of feature j over (question, database) pairs: a ridge prior on weights per
standard deviation. The mean over draws s of the table model stands outside the logarithm, so the sum is concave
(a multinomial logit with offsets log(Z_d - 1); McFadden 1974) and its mode unique.
"""

from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from bayeslink.inference.newton import damped_newton

__all__ = ["DatabaseScore", "database_features", "fit_database_score"]

MAX_STEPS = 200
"""Most Newton steps of a fit."""

GRADIENT_LIMIT = 1e-7
"""Largest gradient entry at the mode, nats a question per standardised weight."""


@dataclass(frozen=True)
class DatabaseScore:
    """r_d as a function of a database's features.

    Attributes:
        weights: omega, nats per unit of each feature.
        standard_errors: Their posterior standard deviations, from the curvature at the mode.
        log_likelihood: Mean log probability of the right database over draws and training questions, nats.
    """

    weights: Float[np.ndarray, " features"]
    standard_errors: Float[np.ndarray, " features"]
    log_likelihood: float

    def score(self, features: Float[np.ndarray, "*questions features"]) -> Float[np.ndarray, "*questions"]:
        """r_d, nats; it counts relative to the other databases of a question alone."""
        return features @ self.weights


def database_features(
    values: Float[np.ndarray, "questions tables channels"],
) -> Float[np.ndarray, "questions features"]:
    """F above of one database: each channel's maximum, each channel's log-sum-exp, log of the number of tables.

    Args:
        values: Evidence of the database's tables in a unit that is the same in every database.

    Raises:
        ValueError: If there is no table or no channel.
    """
    if not values.shape[1] or not values.shape[2]:
        raise ValueError(f"values have shape {values.shape}; a database needs at least one table and one channel")
    size = np.full((len(values), 1), np.log(values.shape[1]))
    return np.concatenate([values.max(axis=1), np.logaddexp.reduce(values, axis=1), size], axis=1)


def fit_database_score(
    features: Float[np.ndarray, "questions databases features"],
    log_normalisers: Float[np.ndarray, "draws questions databases"],
    right: Int[np.ndarray, " questions"],
    prior_scale: float = 1.0,
) -> DatabaseScore:
    """The posterior mode of omega above.

    Args:
        features: `database_features` of every training database for every training question.
        log_normalisers: log(Z_d - 1) of the table model, `PoolMember.log_normalisers`, nats.
        right: Place of each question's database.
        prior_scale: Standard deviation of the prior of each weight, nats per standard deviation of its feature.

    Raises:
        ValueError: If there is no question, a place is not that of a database, a number is not finite, or
            `prior_scale` is not positive.
        FloatingPointError: If the fit does not converge.
    """
    num_questions, num_databases, _ = features.shape
    if not num_questions:
        raise ValueError("features hold no question; a fit needs training questions")
    if right.min() < 0 or right.max() >= num_databases:
        raise ValueError(f"right names a database outside 0..{num_databases - 1}; give places of the databases")
    if not np.isfinite(features).all() or not np.isfinite(log_normalisers).all():
        raise ValueError("features or log_normalisers hold NaN or infinity; leave such databases out of the fit")
    if not 0 < prior_scale < np.inf:
        raise ValueError(f"prior_scale={prior_scale}: a positive number is needed")
    deviation = features.reshape(-1, features.shape[2]).std(axis=0)
    scale = np.where(deviation > 0, deviation, 1.0)
    point, mean_log, gradient, precision = (
        np.asarray(part) for part in _mode(features / scale, log_normalisers, right, np.asarray(prior_scale))
    )
    if not np.abs(gradient).max() < GRADIENT_LIMIT:
        raise FloatingPointError(
            f"fit of the database score: gradient {np.abs(gradient).max():.2g} after {MAX_STEPS} steps; "
            "lower prior_scale or check the features"
        )
    errors = np.sqrt(np.diagonal(np.linalg.inv(num_questions * precision)))
    return DatabaseScore(point / scale, errors / scale, float(mean_log))


@jax.jit
def _mode(features: Array, offsets: Array, right: Array, prior_scale: Array) -> tuple[Array, Array, Array, Array]:
    """Mode of the standardised weights, mean log-likelihood, and per question the gradient and precision there."""

    def mean_log(point: Array) -> Array:
        log_probs = jax.nn.log_softmax(offsets + features @ point, axis=-1)
        return jnp.take_along_axis(log_probs, right[None, :, None], axis=-1).mean()

    def objective(point: Array) -> Array:
        return mean_log(point) - (point**2).sum() / (2 * prior_scale**2 * len(features))

    def terms(points: Array) -> tuple[Array, Array, Array]:
        point = points[0]
        return objective(point)[None], jax.grad(objective)(point)[None], -jax.hessian(objective)(point)[None]

    start = jnp.zeros((1, features.shape[2]))
    points, _, gradient, precision = damped_newton(terms, start, GRADIENT_LIMIT / 2, MAX_STEPS)
    return points[0], mean_log(points[0]), gradient[0], precision[0]
