"""Parameters given data: the nested Laplace fit, corrected by importance weights (MODEL.md section 4).

The marginal Laplace fit says where the population parameters phi are. Here phi is integrated and not
summarised by one Gaussian: points phi_s from a heavy-tailed proposal q around that mode carry the weights

    w_s  =  p(phi_s) prod_d p(D_d | phi_s) / q(phi_s),

smoothed by their Pareto tail (Vehtari et al. 2024); its shape k says whether to believe them. The integral
over a database's effects is not left to its Gaussian either: with e*_d and K_d near the inner mode and its
precision at phi_s (one Newton step from where the mode's slope in phi puts it),

    p(D_d | phi_s)  ~=  1/m sum_j  exp(l_d(e_dj, phi_s)) N(e_dj; 0, I) / t(e_dj; e*_d, K_d^-1),

over m quasi-random points e_dj, which also give draws of e_d in proportion to their terms. With m and the
number of points growing this is exact; both are checked by their effective sample sizes. When the weights
are too uneven, the proposal is moved to the weighted mean and covariance and the step is repeated.
"""

import time
import warnings
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float
from scipy.special import logsumexp, ndtri
from scipy.stats import chi2, multivariate_t, qmc

from bayeslink.inference.laplace import InnerModes, LaplaceFit, Settings, inner_modes, laplace, one_inner_step
from bayeslink.inference.packing import log_partition
from bayeslink.inference.population import log_population_density
from bayeslink.model.autologistic import Support
from bayeslink.model.batch import Batch, log_likelihood_by_database
from bayeslink.model.hierarchy import EFFECTS, Design
from bayeslink.model.priors import Priors

__all__ = ["FEW_LISTED", "PARETO_LIMIT", "NestedFit", "mode_slopes", "nested", "smoothed", "systematic"]

FEW_LISTED = 5
"""Schemas of up to so many tables are better listed than eliminated where values are what is needed."""
OUTER_FREEDOM = 6.0
"""Degrees of freedom of the proposal for phi: heavier tails than the posterior's."""
INNER_FREEDOM = 8.0
PARETO_LIMIT = 0.7
"""Largest Pareto k at which importance weights can be trusted."""
EVEN_SHARE = 0.4
"""Share of effective points below which the proposal is moved."""
MAX_ROUNDS = 4
INNER_DRAWS = 4
"""Draws of the effects kept for each point."""


class NestedFit(NamedTuple):
    """Draws from the posterior with what says whether to believe them.

    Attributes:
        design: The variant with its terms.
        phi: Draws of the population parameters, packed; axes draws, coordinates.
        effects: Draws of the effects; axes draws, databases, 3; 0 where the design has none.
        points: The points phi_s.
        log_weights: Smoothed log weights of the points, their sum being 1.
        log_marginal: log p(D) by importance sampling, nats.
        pareto_k: Shape of the weights' tail; above 0.7 they cannot be trusted.
        effective_points: Effective number of points.
        inner_effective_share: Share of effective inner points of the worst database, weighted mean over the points.
        rounds: Proposals tried.
        laplace: The fit that the first proposal came from.
        seconds: Wall time without the Laplace fit.
    """

    design: Design
    phi: Float[np.ndarray, "draws coordinates"]
    effects: Float[np.ndarray, "draws databases 3"]
    points: Float[np.ndarray, "points coordinates"]
    log_weights: Float[np.ndarray, " points"]
    log_marginal: float
    pareto_k: float
    effective_points: float
    inner_effective_share: float
    rounds: int
    laplace: LaplaceFit
    seconds: float


def nested(
    batch: Batch,
    design: Design,
    priors: Priors,
    support: Support = Support.ALL,
    *,
    num_draws: int = 1000,
    seed: int = 0,
    num_points: int = 512,
    num_inner: int = 16,
    start: LaplaceFit | None = None,
) -> NestedFit:
    """Draws of phi and of the effects by nested Laplace with importance weights.

    Args:
        batch: Standardised evidence with gold, from `packing.pack`; lists of at most `FEW_LISTED` tables are
            the quickest here, since most of the work is values of the likelihood.
        design: Any variant but `fixed`, with its terms.
        priors: Prior scales.
        support: All subsets, or the non-empty ones.
        num_draws: Number of draws.
        seed: Seed of the quasi-random points and of the draws.
        num_points: Number of points phi_s, a power of two.
        num_inner: Number of inner points e_dj, a power of two.
        start: A marginal Laplace fit of the same batch and design, where there is one.

    Raises:
        ValueError: As `laplace`, or if a number of points is not a power of two of at least 8.
        FloatingPointError: If the Laplace fit fails, or no proposal gives usable weights.
    """
    for name, number in (("num_points", num_points), ("num_inner", num_inner)):
        if number < 8 or number & (number - 1):
            raise ValueError(f"{name}={number}: a power of two of at least 8 is needed")
    if num_draws < 1:
        raise ValueError(f"num_draws={num_draws}: at least one draw is needed")
    found = laplace(batch, design, priors, support) if start is None else start
    began = time.perf_counter()
    settings = Settings(design, priors, support)
    rng = np.random.default_rng(seed)
    slopes = jnp.zeros((len(found.mode), *found.effects.shape))
    if design.effects:
        slopes = mode_slopes(batch, jnp.asarray(found.mode), jnp.asarray(found.effects), settings)
    inner, log_density = _inner_points(len(design.effects), num_inner, batch.num_databases, num_points, rng)
    centre, covariance = found.mode, found.covariance
    rounds = 0
    while rounds < MAX_ROUNDS:
        rounds += 1
        points, log_q = _outer_points(centre, covariance, num_points, rng)
        uniforms = rng.random((num_points, batch.num_databases, INNER_DRAWS))
        raw = _integrate(
            batch,
            jnp.asarray(points),
            jnp.asarray(found.mode),
            jnp.asarray(found.effects),
            slopes,
            jnp.asarray(inner),
            jnp.asarray(log_density),
            jnp.asarray(uniforms),
            settings,
        )
        log_target, effects, inner_share = (np.asarray(part) for part in raw)
        raw_weights = np.where(np.isfinite(log_target), log_target - log_q, -np.inf)
        if not np.isfinite(raw_weights).any():
            raise FloatingPointError(
                f"variant={design.variant.value}: no point of the proposal has a finite posterior density; "
                "give tighter priors"
            )
        log_weights, pareto_k = smoothed(raw_weights)
        effective = float(np.exp(-logsumexp(2 * log_weights)))
        if effective >= EVEN_SHARE * num_points and pareto_k < PARETO_LIMIT:
            break
        weights = np.exp(log_weights)
        centre = weights @ points
        spread = points - centre
        # A little of the old width keeps a proposal from collapsing onto few points.
        covariance = 1.1 * (weights[:, None] * spread).T @ spread + 0.05 * found.covariance
    chosen = systematic(np.exp(log_weights), num_draws, rng)
    which = rng.integers(INNER_DRAWS, size=num_draws)
    return NestedFit(
        design,
        points[chosen],
        effects[chosen, :, which],
        points,
        log_weights,
        float(logsumexp(raw_weights) - np.log(num_points)),
        pareto_k,
        effective,
        float(np.exp(log_weights) @ inner_share) if design.effects else 1.0,
        rounds,
        found,
        time.perf_counter() - began,
    )


def _outer_points(
    centre: np.ndarray, covariance: np.ndarray, num_points: int, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Quasi-random points of a multivariate t and their log density."""
    size = len(centre)
    uniform = _sobol(size + 1, num_points, rng)
    radius = np.sqrt(OUTER_FREEDOM / chi2.ppf(uniform[:, -1], OUTER_FREEDOM))
    points = centre + (ndtri(uniform[:, :-1]) @ np.linalg.cholesky(covariance).T) * radius[:, None]
    return points, np.atleast_1d(multivariate_t(centre, covariance, df=OUTER_FREEDOM).logpdf(points))


def _inner_points(
    size: int, num_inner: int, num_databases: int, num_points: int, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Quasi-random points of the standard multivariate t for each phi_s and database, and their log density.

    Every phi_s and database has its own random shift of one set of points: errors are independent, so that they
    average out over the phi_s and the product over databases stays unbiased.

    Returns:
        Points, axes phi_s, points, databases, coordinates; log densities without the last axis.
    """
    if not size:
        return np.zeros((num_points, 1, num_databases, 0)), np.zeros((num_points, 1, num_databases))
    shift = rng.random((num_points, 1, num_databases, size + 1))
    uniform = (_sobol(size + 1, num_inner, rng)[:, None] + shift) % 1.0
    uniform = np.clip(uniform, 1e-12, 1 - 1e-12)
    radius = np.sqrt(INNER_FREEDOM / chi2.ppf(uniform[..., -1], INNER_FREEDOM))
    points = ndtri(uniform[..., :-1]) * radius[..., None]
    density = multivariate_t(np.zeros(size), np.eye(size), df=INNER_FREEDOM).logpdf(points)
    return points, np.asarray(density).reshape(num_points, num_inner, num_databases)


def _sobol(size: int, number: int, rng: np.random.Generator) -> np.ndarray:
    return np.clip(qmc.Sobol(size, scramble=True, rng=rng).random(number), 1e-12, 1 - 1e-12)


def smoothed(log_weights: np.ndarray) -> tuple[np.ndarray, float]:
    """Pareto-smoothed log weights, normalised, and the shape of their tail; 0 where all weights are equal."""
    import arviz as az

    if np.ptp(log_weights) == 0:
        return np.full(len(log_weights), -np.log(len(log_weights))), 0.0
    with warnings.catch_warnings():
        # A tail of few or equal weights has no shape to fit; ArviZ then returns infinity.
        warnings.simplefilter("ignore", RuntimeWarning)
        smoothed, shape = az.psislw(log_weights - log_weights.max())
    smoothed = np.asarray(smoothed)
    return smoothed - logsumexp(smoothed), float(shape)


def systematic(weights: np.ndarray, number: int, rng: np.random.Generator) -> np.ndarray:
    """Positions drawn in proportion to the weights, evenly spread, in random order."""
    places = (np.arange(number) + rng.random()) / number
    chosen = np.minimum(np.searchsorted(np.cumsum(weights / weights.sum()), places), len(weights) - 1)
    return rng.permutation(chosen)


@partial(jax.jit, static_argnames="settings")
def _integrate(
    batch: Batch,
    points: Array,
    mode: Array,
    effects: Array,
    mode_slopes: Array,
    inner: Array,
    log_density: Array,
    uniforms: Array,
    settings: Settings,
) -> tuple[Array, Array, Array]:
    """For each point: log posterior density, draws of the effects, share of effective inner points."""
    design = settings.design
    columns = jnp.array(design.effects, dtype=int)

    def one(given: tuple[Array, Array, Array, Array]) -> tuple[Array, Array, Array]:
        phi, uniform, normal, log_proposal = given
        prior = log_population_density(phi, design, settings.priors)
        if not design.effects:
            drawn = jnp.zeros((batch.num_databases, INNER_DRAWS, len(EFFECTS)))
            return inner_modes(batch, phi, effects, settings).log_joint.sum() + prior, drawn, jnp.ones(())
        predicted = effects + jnp.tensordot(phi - mode, mode_slopes, axes=1)
        found = one_inner_step(batch, phi, predicted, settings)
        proposed, log_jacobian = _around(found, normal, columns)
        log_terms = _log_likelihoods(batch, phi, proposed, settings)
        log_terms += jax.scipy.stats.norm.logpdf(proposed[:, :, columns]).sum(axis=-1)
        log_terms -= log_proposal - log_jacobian
        share = jax.nn.softmax(log_terms, axis=0)
        effective = 1 / (share**2).sum(axis=0) / len(normal)
        # Inverse distribution function of the terms: which inner point each uniform number picks.
        below = jnp.cumsum(share, axis=0)[:, :, None] < uniform[None]
        picked = jnp.minimum(below.sum(axis=0), len(normal) - 1)
        drawn = jnp.take_along_axis(proposed.swapaxes(0, 1), picked[..., None], axis=1)
        log_mean = jax.nn.logsumexp(log_terms, axis=0) - jnp.log(len(normal))
        return log_mean.sum() + prior, drawn, effective.min()

    return jax.lax.map(one, (points, uniforms, inner, log_density))


def _around(found: InnerModes, inner: Array, columns: Array) -> tuple[Array, Array]:
    """Inner points at each database's mode and scale, and log |d e / d xi|; axes points, databases, 3."""
    factor = jnp.linalg.cholesky(found.precision)
    stretched = jax.vmap(
        lambda normal: jax.scipy.linalg.solve_triangular(factor, normal[..., None], lower=True, trans=1)[..., 0]
    )(inner)
    log_jacobian = -jnp.log(jnp.diagonal(factor, axis1=1, axis2=2)).sum(axis=1)
    return found.effects[None].repeat(len(inner), axis=0).at[:, :, columns].add(stretched), log_jacobian


def _log_likelihoods(batch: Batch, phi: Array, proposed: Array, settings: Settings) -> Array:
    """Log likelihood of every database at every inner point; axes points, databases."""
    return jax.lax.map(
        lambda effects: log_likelihood_by_database(
            batch, settings.local(batch, phi, effects), log_partition, settings.support
        ),
        proposed,
    )


@partial(jax.jit, static_argnames="settings")
def mode_slopes(batch: Batch, phi: Array, effects: Array, settings: Settings) -> Array:
    """D e*_d / d phi at the outer mode, by central differences; axes coordinates, databases, 3."""
    width = 1e-3

    def difference(direction: Array) -> Array:
        above = inner_modes(batch, phi + width * direction, effects, settings).effects
        below = inner_modes(batch, phi - width * direction, effects, settings).effects
        return (above - below) / (2 * width)

    return jax.lax.map(difference, jnp.eye(len(phi)))
