"""The marginal Laplace fit and its predictions as one traced function, so that many replicates are fitted at once.

The same approximation as `inference.laplace`, whose objective, gradient and Hessian are used here; what differs is
that the damped Newton steps towards the outer mode run inside the compiled program, at most `MAX_STEPS`, and that
convergence is told and not raised. Written for one replicate: `jax.vmap` makes it many.
"""

from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from bayeslink.inference import enumeration
from bayeslink.inference.laplace import Settings, _outer, inner_modes, one_inner_step
from bayeslink.inference.population import pack_population, unpack_population
from bayeslink.model.autologistic import Support, unary_log_odds
from bayeslink.model.batch import Batch, Bucket, DatabaseRows, LocalParameters
from bayeslink.model.hierarchy import EFFECTS, Design, Terms, Variant
from bayeslink.model.priors import Priors

__all__ = [
    "Prediction",
    "ReplicateFit",
    "batch_of",
    "draw_parameters",
    "fit_replicate",
    "predict",
    "settings_of",
    "separated",
]

MAX_STEPS = 60
"""Most outer steps; a fit that needs more has not converged."""
TOLERANCE = 1e-4
"""Largest gradient entry, nats per unit of phi, at which a fit has converged."""
INNER_TOLERANCE = 1e-7
LONGEST_STEP = 1.0
"""Longest outer step along each axis of the Hessian; where it is nearly flat a full step goes anywhere."""


class ReplicateFit(NamedTuple):
    """A fit of one replicate.

    Attributes:
        mode: phi at the outer mode.
        factor: Lower Cholesky factor of the covariance of phi.
        effects: Modes of the effects at the outer mode.
        converged: Whether the outer and inner gradients are small and the covariance is positive definite.
        steps: Outer steps taken, those that were not accepted among them.
    """

    mode: Float[Array, " coordinates"]
    factor: Float[Array, "coordinates coordinates"]
    effects: Float[Array, "databases 3"]
    converged: Bool[Array, ""]
    steps: Int[Array, ""]


class Prediction(NamedTuple):
    """What is predicted for the questions of every database.

    Attributes:
        marginals: Probability of each table.
        log_score: Log probability of the gold selection, nats.
    """

    marginals: Float[Array, "databases questions tables"]
    log_score: Float[Array, "databases questions"]


def settings_of(variant: Variant, priors: Priors) -> Settings:
    """What a fit of a variant to the replicates' single channel treats as fixed."""
    return Settings(Design(variant, Terms(), num_channels=1), priors, Support.ALL)


def batch_of(
    values: Float[Array, "databases questions tables"],
    gold: Float[Array, "databases questions tables"],
    edges: Int[Array, "databases edges 2"],
    is_edge: Float[Array, "databases edges"],
) -> Batch:
    """The questions of one replicate as a batch: one block for each database, nothing padded but edges."""
    databases, questions, tables = values.shape
    subsets = jnp.asarray(enumeration.states(tables))
    bucket = Bucket(
        values[..., None],
        jnp.zeros((databases, questions, 0)),
        gold,
        jnp.ones((databases, questions)),
        jnp.tile(jnp.arange(questions), (databases, 1)),
        jnp.arange(databases),
        edges,
        is_edge,
        jnp.zeros(is_edge.shape, dtype=int),
        jnp.ones((databases, tables)),
        enumeration.StatePlan(jnp.broadcast_to(subsets, (databases, *subsets.shape)), edges),
    )
    return Batch((bucket,), DatabaseRows(jnp.zeros((databases, 0))), databases, 1)


def separated(
    values: Float[Array, "databases questions tables"], gold: Float[Array, "databases questions tables"]
) -> Batch:
    """The same where no coupling is fitted: every table a question of its own, 2 subsets in place of 2^n."""
    databases = len(values)
    nothing = jnp.zeros((databases, 0, 2), dtype=int), jnp.zeros((databases, 0))
    return batch_of(values.reshape(databases, -1, 1), gold.reshape(databases, -1, 1), *nothing)


def start_of(settings: Settings, **known: Float[Array, ""]) -> Float[Array, " coordinates"]:
    """Where a fit begins: the parameters that are known from a simpler fit, sigma = 0.3, no coupling."""
    begin = {"sigma_alpha": 0.3, "sigma_beta": 0.3} | known
    sites = settings.design.sites
    return pack_population(
        {site: jnp.full(size, begin.get(site, 0.0)) for site, size in sites.items()}, settings.design
    )


def fit_replicate(batch: Batch, settings: Settings, start: Float[Array, " coordinates"]) -> ReplicateFit:
    """The outer mode, the covariance there and the inner modes.

    Args:
        batch: Questions of one replicate.
        settings: Variant, priors and support.
        start: Where to begin, packed.
    """
    inner = partial(inner_modes, batch, settings=settings, tolerance=INNER_TOLERANCE)
    size = len(start)

    def unfinished(state: _State) -> Array:
        return (state.steps == 0) | ((jnp.abs(state.gradient).max() > TOLERANCE) & (state.steps < MAX_STEPS))

    def advance(state: _State) -> _State:
        proposal = state.phi + state.shrink * _ascent(state.gradient, state.hessian)
        modes = inner(proposal, state.effects)
        value, gradient, hessian = _outer(batch, proposal, modes.effects, settings, 4)
        better = value >= state.value - 1e-12 * (1 + jnp.abs(value))
        shrink = jnp.where(better, jnp.minimum(1.0, 2 * state.shrink), state.shrink / 2)
        steps = state.steps + 1
        found = _State(proposal, modes.effects, value, gradient, hessian, modes.gradient, shrink, steps)
        return jax.tree.map(partial(jnp.where, better), found, state._replace(shrink=shrink, steps=steps))

    # The first step stands still: it is the evaluation at the start, compiled once with the others.
    nowhere = jnp.zeros((batch.num_databases, len(EFFECTS)))
    begin = (start, nowhere, jnp.asarray(-jnp.inf), jnp.zeros(size), -jnp.eye(size), jnp.zeros(()), jnp.ones(()))
    end = jax.lax.while_loop(unfinished, advance, _State(*begin, jnp.zeros((), dtype=int)))
    covariance = jnp.linalg.inv(-end.hessian)
    factor = jnp.linalg.cholesky((covariance + covariance.T) / 2)
    small = (jnp.abs(end.gradient).max() <= TOLERANCE) & (end.inner_gradient <= TOLERANCE)
    sound = jnp.isfinite(end.value) & jnp.isfinite(factor).all()
    return ReplicateFit(end.phi, factor, end.effects, small & sound, end.steps)


class _State(NamedTuple):
    """Where the search for the outer mode is."""

    phi: Array
    effects: Array
    value: Array
    gradient: Array
    hessian: Array
    inner_gradient: Array
    shrink: Array
    steps: Array


def _ascent(gradient: Array, hessian: Array) -> Array:
    """Newton's step where the function is concave; a step up of bounded length where it is not, far from the mode."""
    curvature, vectors = jnp.linalg.eigh(-hessian)
    slope = vectors.T @ gradient
    return vectors @ jnp.clip(slope / jnp.maximum(jnp.abs(curvature), 1e-8), -LONGEST_STEP, LONGEST_STEP)


def draw_parameters(
    batch: Batch,
    settings: Settings,
    fit: ReplicateFit,
    noise: Float[Array, "draws coordinates"],
    effect_noise: Float[Array, "draws databases effects"],
) -> LocalParameters:
    """Draws of each database's own parameters, with an axis draws in front.

    phi is drawn from its Gaussian and the effects from theirs given phi. Their mode is two Newton steps away from
    where the database's parameters stay as they were: sigma, and with it the scale of the effects, has changed.

    Args:
        batch: Questions of the fit.
        settings: As in the fit.
        fit: The fit.
        noise: Standard normal numbers.
        effect_noise: Standard normal numbers, for each effect that the variant has.
    """
    columns = jnp.array(settings.design.effects, dtype=int)

    def draw(inputs: tuple[Array, Array]) -> LocalParameters:
        phi = fit.mode + fit.factor @ inputs[0]
        if not settings.design.effects:
            return settings.local(batch, phi, fit.effects)
        begin = fit.effects.at[:, columns].multiply(_scales(settings, fit.mode) / _scales(settings, phi))
        near = one_inner_step(batch, phi, begin, settings)
        found = one_inner_step(batch, phi, near.effects, settings)
        upper = jnp.linalg.cholesky(found.precision).mT
        jitter = jax.scipy.linalg.solve_triangular(upper, inputs[1][..., None])[..., 0]
        return settings.local(batch, phi, found.effects.at[:, columns].add(jitter))

    return jax.lax.map(draw, (noise, effect_noise))


def _scales(settings: Settings, phi: Array) -> Float[Array, " effects"]:
    """Standard deviation of each effect that the variant has."""
    population = unpack_population(phi, settings.design)
    return jnp.stack([population[site] for site in ("sigma_alpha", "sigma_beta") if site in population])


def predict(batch: Batch, local: LocalParameters, coupling: Float[Array, " databases"] | None = None) -> Prediction:
    """The exact distribution over subsets averaged over draws, for the questions of a batch.

    Args:
        batch: Questions to predict, with gold.
        local: Draws of each database's parameters.
        coupling: Coupling of each database in place of the drawn ones.
    """
    bucket = batch.buckets[0]
    subsets = jnp.asarray(enumeration.states(bucket.gold.shape[-1]))
    place = (bucket.gold @ 2.0 ** jnp.arange(subsets.shape[1])).astype(int)

    def add(total: Array, one: LocalParameters) -> tuple[Array, Array]:
        pair = one.coupling[:, 0] if coupling is None else coupling

        def database(block: Bucket, intercept: Array, slopes: Array, strength: Array) -> Array:
            unary = unary_log_odds(block.values, intercept, slopes)
            plan = enumeration.StatePlan(subsets, block.edges)
            return enumeration.log_probabilities(unary, plan, strength * block.is_edge)

        log_prob = jax.vmap(database)(bucket, one.intercept, one.slopes, pair)
        return total + jnp.exp(log_prob), jnp.take_along_axis(log_prob, place[..., None], axis=-1)[..., 0]

    total, of_gold = jax.lax.scan(add, jnp.zeros((*bucket.weight.shape, len(subsets))), local)
    num_draws = len(of_gold)
    return Prediction(total @ subsets / num_draws, jax.nn.logsumexp(of_gold, axis=0) - jnp.log(num_draws))
