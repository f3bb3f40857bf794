"""Table effects: each table of a database may be needed more or less often than its evidence says.

    a_t = alpha_d + kappa . w_q + s_d gamma . z_t + tau_dt,     tau_dt ~ N(0, sigma_table^2)

They are worth having where a database has labelled questions or a query log, and are integrated out where
it has none. Given the population parameters phi, the effects (e_d, tau_d / sigma_table) of one database are
independent of other databases', and their log joint density is strictly concave: its mode and curvature
give a Gaussian, and the Laplace approximation of log p(D_d | phi). `fit_table_effects` chooses sigma_table by
that approximation's maximum on the training databases, together with a shift of the intercept and of the
coupling and a factor on the slopes: integrating over tables flattens a logistic curve, which the factor undoes.
"""

from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float
from scipy.optimize import minimize

from bayeslink.inference.enumeration import StatePlan
from bayeslink.inference.laplace import Settings
from bayeslink.inference.newton import damped_newton
from bayeslink.inference.packing import log_partition
from bayeslink.inference.population import pack_population, unpack_population
from bayeslink.model.autologistic import Support, num_joined_pairs
from bayeslink.model.batch import (
    Batch,
    Bucket,
    LocalParameters,
    edge_couplings,
    log_likelihood_of_block,
    question_intercepts,
)
from bayeslink.model.hierarchy import EFFECTS, Design
from bayeslink.model.priors import Priors

__all__ = ["DatabaseModes", "TableScale", "adjusted", "database_modes", "fit_table_effects", "num_tables_of"]

NEWTON_STEPS = 30
TOLERANCE = 1e-6
GRADIENT_LIMIT = 1e-3
"""Largest gradient entry at which a database's mode counts as found."""
MOST_EVALUATIONS = 200
WIDTH_TOLERANCE = 0.02
"""Size of the simplex, log-odds or logarithms, at which the search for the spread ends, together with ..."""
VALUE_TOLERANCE = 0.1
"""... the range of its values, nats."""


class TableScale(NamedTuple):
    """How table effects enter, given a fit without them.

    Attributes:
        sigma_table: Spread of table effects, log-odds.
        intercept_shift: Added to alpha.
        coupling_shift: Added to beta.
        slope_factor: Multiplies gamma and kappa.
        log_marginal: Laplace approximation of sum_d log p(D_d | phi) with table effects, nats.
        log_marginal_without: The same at sigma_table = 0 and no shift.
    """

    sigma_table: float
    intercept_shift: float
    coupling_shift: float
    slope_factor: float
    log_marginal: float
    log_marginal_without: float


class DatabaseModes(NamedTuple):
    """Modes of every database's effects at one phi, table effects included.

    Attributes:
        effects: (u, v, w); axes databases, 3.
        tables: tau, log-odds; axes databases, tables.
        precision: Curvature in (the design's effects, tau / sigma_table).
        log_marginal: Laplace approximation of log p(D_d | phi), nats; axes databases.
        gradient: Largest absolute gradient entry.
    """

    effects: Array
    tables: Array
    precision: Array
    log_marginal: Array
    gradient: Array


def num_tables_of(batch: Batch) -> int:
    """Largest number of tables, padding included, of a batch's buckets."""
    return max(bucket.values.shape[2] for bucket in batch.buckets)


def adjusted(phi: Array, scale: Array, settings: Settings) -> Array:
    """Phi with (intercept shift, coupling shift, log slope factor) applied."""
    population = unpack_population(phi, settings.design)
    changes = {
        "alpha": lambda value: value + scale[0],
        "beta": lambda value: value + scale[1],
        "gamma": lambda value: value * jnp.exp(scale[2]),
        "kappa": lambda value: value * jnp.exp(scale[2]),
    }
    moved = {site: changes[site](value) if site in changes else value for site, value in population.items()}
    return pack_population(moved, settings.design)


def fit_table_effects(
    batch: Batch,
    design: Design,
    phi: Float[np.ndarray, " coordinates"],
    priors: Priors,
    support: Support = Support.ALL,
    max_steps: int = MOST_EVALUATIONS,
) -> TableScale:
    """The spread of table effects that makes the training data most probable, phi otherwise as given.

    A variant without a coupling has no shift of it.

    Args:
        batch: Training evidence; large schemas cost much here and may be left out.
        design: The design of the fit without table effects.
        phi: Its population parameters, packed; the mode or the mean of the draws.
        priors: The fit's prior scales.
        support: The fit's support.
        max_steps: Most evaluations of the simplex search.

    Raises:
        FloatingPointError: If the effects of a database, or the search, do not converge.
    """
    settings = Settings(design, priors, support)
    centre = jnp.asarray(phi)
    nowhere = jnp.zeros((batch.num_databases, num_tables_of(batch)))
    # Each evaluation begins from the modes of the one before: fewer steps to the same modes.
    last = [jnp.zeros((batch.num_databases, len(EFFECTS))), nowhere]

    # Coordinates of (log sigma_table, intercept shift, coupling shift, log slope factor) that the fit has.
    free = np.array([0, 1, 2, 3] if design.variant.structure.coupling in ("pooled", "partial") else [0, 1, 3])

    def whole(point: np.ndarray) -> np.ndarray:
        full = np.zeros(4)
        full[free] = point
        return full

    def value(given: np.ndarray) -> float:
        point = whole(given)
        moved = adjusted(centre, jnp.asarray(point[1:]), settings)
        found = database_modes(batch, moved, jnp.exp(point[0]), *last, settings)
        if not float(found.gradient) < GRADIENT_LIMIT:
            raise FloatingPointError(
                f"table effects: a database does not converge in {NEWTON_STEPS} steps, largest gradient "
                f"{float(found.gradient):.2g}; give tighter priors"
            )
        last[:] = [found.effects, found.tables]
        # HalfNormal(1) on sigma_table with the Jacobian of its logarithm.
        return -float(found.log_marginal.sum()) + 0.5 * float(np.exp(2 * point[0])) - float(point[0])

    without = database_modes(batch, centre, jnp.asarray(1e-4), last[0], nowhere, settings)
    begin = np.array([-0.7, 0.0, 0.0, 0.1])
    simplex = np.vstack([begin, begin + np.diag([0.5, -0.2, 0.1, 0.1])[free]])[:, free]
    found = minimize(
        value,
        simplex[0],
        method="Nelder-Mead",
        options={"initial_simplex": simplex, "maxfev": max_steps, "xatol": WIDTH_TOLERANCE, "fatol": VALUE_TOLERANCE},
    )
    if not found.success:
        raise FloatingPointError(f"table effects: no maximum in {max_steps} evaluations; give max_steps a larger value")
    log_sigma, intercept, coupling, log_factor = point = whole(found.x)
    with_effects = database_modes(
        batch, adjusted(centre, jnp.asarray(point[1:]), settings), jnp.exp(log_sigma), *last, settings
    )
    return TableScale(
        float(np.exp(log_sigma)),
        float(intercept),
        float(coupling),
        float(np.exp(log_factor)),
        float(with_effects.log_marginal.sum()),
        float(without.log_marginal.sum()),
    )


@partial(jax.jit, static_argnames=("settings", "max_steps"))
def database_modes(
    batch: Batch,
    phi: Float[Array, " coordinates"],
    sigma_table: Float[Array, ""],
    effects: Float[Array, "databases 3"],
    tables: Float[Array, "databases tables"],
    settings: Settings,
    max_steps: int = NEWTON_STEPS,
) -> DatabaseModes:
    """Modes of (e_d, tau_d) for every database by damped Newton steps.

    Args:
        batch: The questions.
        phi: Population parameters, packed.
        sigma_table: Spread of table effects, log-odds.
        effects: Where to begin.
        tables: Where to begin, log-odds.
        settings: The design, its priors and its support.
        max_steps: Most Newton steps.
    """
    places = jnp.array(settings.design.effects, dtype=int)
    directions = settings.directions(phi)
    count, size = len(places), tables.shape[1]

    def terms(point: Array) -> tuple[Array, Array, Array]:
        current = jnp.zeros((batch.num_databases, len(EFFECTS))).at[:, places].set(point[:, :count])
        local = settings.local(batch, phi, current)
        value, gradient, hessian = _derivatives(
            batch, local, sigma_table * point[:, count:], directions, sigma_table, settings.support
        )
        return (
            value - 0.5 * (point**2).sum(axis=1),
            gradient - point,
            jnp.eye(count + size) - hessian,
        )

    begin = jnp.concatenate([effects[:, places], tables / sigma_table], axis=1)
    point, joint, gradient, precision = damped_newton(terms, begin, TOLERANCE, max_steps)
    full = jnp.zeros((batch.num_databases, len(EFFECTS))).at[:, places].set(point[:, :count])
    log_marginal = joint - 0.5 * jnp.linalg.slogdet(precision)[1]
    return DatabaseModes(
        full, sigma_table * point[:, count:], precision, log_marginal, jnp.abs(gradient).max(initial=0.0)
    )


def _derivatives(
    batch: Batch, local: LocalParameters, tables: Array, directions: Array, sigma_table: Array, support: Support
) -> tuple[Array, Array, Array]:
    """l_d, its gradient and its Hessian in (effects, tau / sigma_table) of every database."""
    size = tables.shape[1]  # 0 where there are no table effects.
    count = len(directions)
    width = count + size
    value = jnp.zeros(batch.num_databases)
    gradient = jnp.zeros((batch.num_databases, width))
    hessian = jnp.zeros((batch.num_databases, width, width))
    for bucket in batch.buckets:
        here = min(bucket.values.shape[2], size)
        own = tables if size else jnp.zeros((batch.num_databases, bucket.values.shape[2]))
        one = _from_list if isinstance(bucket.plan, StatePlan) else _from_elimination

        def block(row: tuple, one=one) -> tuple[Array, Array, Array]:
            return one(*row, directions, sigma_table, support)

        parts = jax.lax.map(
            block,
            (
                bucket,
                question_intercepts(bucket, local),
                local.slopes[bucket.database],
                local.coupling[bucket.database],
                own[bucket.database][:, : bucket.values.shape[2]],
            ),
        )
        kept = np.concatenate([np.arange(count), count + np.arange(here)])
        end = count + here
        value = value.at[bucket.database].add(parts[0])
        gradient = gradient.at[bucket.database[:, None], kept].add(parts[1][:, :end])
        hessian = hessian.at[bucket.database[:, None, None], kept[:, None], kept].add(parts[2][:, :end, :end])
    return value, gradient, hessian


def _from_list(
    block: Bucket,
    intercept: Array,
    slopes: Array,
    coupling: Array,
    tables: Array,
    directions: Array,
    sigma_table: Array,
    support: Support,
) -> tuple[Array, Array, Array]:
    """Means and covariances of the statistics over the list of subsets, summed over the block's questions."""
    states = block.plan.states  # ty: ignore[missing-attribute]
    pair = edge_couplings(block, coupling)
    unary = block.values @ slopes + intercept[:, None] + tables
    joined = num_joined_pairs(states, block.edges)
    energies = unary @ states.T + joined @ pair
    possible = (states * (1 - block.is_table)).sum(axis=1) == 0
    if support is Support.NON_EMPTY:
        possible &= states.sum(axis=1) > 0
    energies = jnp.where(possible, energies, -jnp.inf)
    log_z = jax.nn.logsumexp(energies, axis=1)
    probability = jnp.exp(energies - log_z[:, None])
    own = (block.gold * unary).sum(axis=1) + num_joined_pairs(block.gold, block.edges) @ pair
    weight = block.weight
    # Statistic of a direction r: N r_0 + sum_t x_t z_t . r_slopes + M . r_couplings.
    kinds = jax.nn.one_hot(block.edge_type, coupling.shape[0]) if coupling.shape[0] > 1 else jnp.ones((len(pair), 1))
    split = 1 + slopes.shape[0]
    per_table = directions[:, 0, None, None] + jnp.einsum("qtk,rk->rqt", block.values, directions[:, 1:split])
    along = kinds @ directions[:, split:].T if directions.shape[1] > split else jnp.zeros((len(pair), len(directions)))
    per_edge = block.is_edge[:, None] * along
    moving = jnp.einsum("st,rqt->qsr", states, per_table) + (joined @ per_edge)[None]
    observed = jnp.einsum("qt,rqt->qr", block.gold, per_table) + num_joined_pairs(block.gold, block.edges) @ per_edge
    mean_moving = jnp.einsum("qs,qsr->qr", probability, moving)
    mean_tables = probability @ states
    first = jnp.concatenate(
        [
            weight @ (observed - mean_moving),
            sigma_table * (weight @ (block.gold - mean_tables)),
        ]
    )
    weighted = weight[:, None] * probability
    squares = jnp.einsum("qs,qsa,qsb->ab", weighted, moving, moving) - jnp.einsum(
        "q,qa,qb->ab", weight, mean_moving, mean_moving
    )
    crossed = jnp.einsum("qs,qsa,st->at", weighted, moving, states) - jnp.einsum(
        "q,qa,qt->at", weight, mean_moving, mean_tables
    )
    shared = (states * weighted.sum(axis=0)[:, None]).T @ states - (weight[:, None] * mean_tables).T @ mean_tables
    crossed, shared = sigma_table * crossed, sigma_table**2 * shared
    second = -jnp.concatenate(
        [jnp.concatenate([squares, crossed], axis=1), jnp.concatenate([crossed.T, shared], axis=1)]
    )
    return weight @ (own - log_z), first, second


def _from_elimination(
    block: Bucket,
    intercept: Array,
    slopes: Array,
    coupling: Array,
    tables: Array,
    directions: Array,
    sigma_table: Array,
    support: Support,
) -> tuple[Array, Array, Array]:
    """The same by differentiating the eliminated log Z."""
    count, split = len(directions), 1 + slopes.shape[0]

    def moved(point: Array) -> Array:
        theta = point[:count] @ directions
        # A table effect is one more channel whose value is 1 at its own table.
        extended = block._replace(
            values=jnp.concatenate(
                [block.values, jnp.broadcast_to(jnp.eye(len(tables)), (len(intercept), len(tables), len(tables)))],
                axis=2,
            )
        )
        pair = coupling + theta[split:] if directions.shape[1] > split else coupling
        along = jnp.concatenate([slopes + theta[1:split], tables + sigma_table * point[count:]])
        return log_likelihood_of_block(extended, intercept + theta[0], along, pair, log_partition, support).sum()

    origin = jnp.zeros(count + len(tables))
    value, gradient = jax.value_and_grad(moved)(origin)
    return value, gradient, jax.jacfwd(jax.grad(moved))(origin)
