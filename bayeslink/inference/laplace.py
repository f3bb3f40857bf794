"""Parameters given data: the marginal Laplace fit (MODEL.md section 4).

The random effects e_d = (u_d, v_d) are integrated out by an inner Laplace approximation for each
database, independent of the others given phi = (alpha, gamma, beta, log sigma):

    log p(D | phi)  ~=  sum_d  l_d(e*_d, phi) - e*_d . e*_d / 2 - (1/2) log det K_d(e*_d, phi)
    K_d = I - d2 l_d / de2,   e*_d = the inner mode

The outer mode and its inverse Hessian in phi, with the prior and the Jacobian of log sigma, give the
draws of phi. Outer derivatives are exact: see `expansion`; two Newton steps from the inner mode, taken
on the expansions, carry the derivatives of e*_d to second order. Given each outer draw, e_d is drawn
from its own Gaussian. `laplace_joint` keeps the joint mode over (phi, u, v) for comparison only: its
sigma is biased (MODEL.md section 4).
"""

import time
from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from bayeslink.inference.elimination import log_partition
from bayeslink.inference.expansion import Expansion, expand, random_derivatives
from bayeslink.model.autologistic import Support
from bayeslink.model.batch import Batch, Bucket, log_likelihood_by_database
from bayeslink.model.hierarchy import Variant, database_parameters, log_prior, population_sites
from bayeslink.model.priors import Priors

__all__ = [
    "LaplaceFit",
    "check_fit",
    "draw_effects",
    "laplace",
    "log_population_density",
    "pack_population",
    "unpack_population",
]

MAX_STEPS = 60
GRADIENT_TOLERANCE = 1e-5
INNER_STEPS = 40
INNER_TOLERANCE = 1e-4


class LaplaceFit(NamedTuple):
    """A marginal Laplace fit.

    Attributes:
        sites: Names of the population parameters, in the order of `mode`; sigmas are on the log scale.
        mode: phi at the outer mode.
        covariance: Inverse of minus the Hessian of the log marginal posterior at the mode.
        effects: e*_d at the mode; axes databases, 2.
        log_marginal: log p(D), Laplace approximation, nats.
        gradient_norm: Largest absolute gradient entry at the mode.
        inner_gradient: The same for the inner modes.
        steps: Outer Newton steps taken.
        seconds: Wall time.
    """

    sites: tuple[str, ...]
    mode: Float[np.ndarray, " coordinates"]
    covariance: Float[np.ndarray, "coordinates coordinates"]
    effects: Float[np.ndarray, "databases 2"]
    log_marginal: float
    gradient_norm: float
    inner_gradient: float
    steps: int
    seconds: float


def pack_population(population: dict[str, Array], sites: tuple[str, ...]) -> Float[Array, " coordinates"]:
    """Population parameters as one unconstrained vector phi, sigmas on the log scale."""
    parts = [jnp.log(population[s]) if s.startswith("sigma") else population[s] for s in sites]
    return jnp.concatenate([jnp.atleast_1d(jnp.asarray(part, dtype=jnp.float64)) for part in parts])


def unpack_population(phi: Float[Array, " coordinates"], sites: tuple[str, ...], num_channels: int) -> dict[str, Array]:
    """Population parameters on their natural scale from phi."""
    population: dict[str, Array] = {}
    position = 0
    for site in sites:
        if site == "gamma":
            population[site] = phi[position : position + num_channels]
            position += num_channels
        else:
            population[site] = jnp.exp(phi[position]) if site.startswith("sigma") else phi[position]
            position += 1
    return population


def log_population_density(
    phi: Float[Array, " coordinates"], sites: tuple[str, ...], num_channels: int, priors: Priors
) -> Float[Array, ""]:
    """Log prior density of phi, nats: `log_prior` and the Jacobian of log sigma."""
    population = unpack_population(phi, sites, num_channels)
    jacobian = sum((jnp.log(population[s]) for s in sites if s.startswith("sigma")), jnp.zeros(()))
    return log_prior(population, priors) + jacobian


def check_fit(batch: Batch, variant: Variant, support: Support) -> None:
    """Refuse what cannot be fitted.

    Raises:
        ValueError: If `variant` is `fixed`, or the support is non-empty and a gold selection is empty.
    """
    if variant is Variant.FIXED:
        raise ValueError("variant=fixed is not fitted: fit `independent` and hold the coupling")
    if support is Support.NON_EMPTY and any(
        bool(((bucket.gold.sum(axis=2) == 0) & (bucket.weight > 0)).any()) for bucket in batch.buckets
    ):
        raise ValueError("support=non-empty: a question has no gold table; use support=all or leave it out")


def laplace(
    batch: Batch,
    variant: Variant,
    priors: Priors,
    support: Support = Support.ALL,
    start: "LaplaceFit | None" = None,
) -> LaplaceFit:
    """Fit of a variant by marginal Laplace.

    Args:
        batch: Standardised evidence with gold, from `packing.pack`.
        variant: Any variant but `fixed`.
        priors: Prior scales.
        support: All subsets, or the non-empty ones.
        start: A fit of the same variant and channels to begin from (another fold's, say).

    Raises:
        ValueError: If `variant` is `fixed`, or the support is non-empty and a gold selection is empty.
        FloatingPointError: If the fit does not converge or its Hessian is not negative definite.
    """
    check_fit(batch, variant, support)
    began = time.perf_counter()
    sites = population_sites(variant)
    settings = _Settings(variant, priors, support, sites, batch.num_channels)
    phi = jnp.asarray(start.mode) if start is not None else _start(sites, batch)
    effects = jnp.zeros((batch.num_databases, 2))
    effects, value, _ = _inner(batch, phi, effects, settings)
    damping, steps = 0.0, 0
    while True:
        _, gradient, hessian = _outer(batch, phi, effects, settings)
        if float(jnp.abs(gradient).max()) < GRADIENT_TOLERANCE:
            break
        if steps == MAX_STEPS:
            raise FloatingPointError(
                f"variant={variant.value}: no convergence in {MAX_STEPS} steps, largest gradient "
                f"{float(jnp.abs(gradient).max()):.2g}; give tighter priors or more questions"
            )
        phi, effects, value, damping = _newton_step(batch, phi, effects, value, gradient, hessian, damping, settings)
        steps += 1
    inner_gradient = float(_inner(batch, phi, effects, settings)[2])
    if not inner_gradient < INNER_TOLERANCE:
        raise FloatingPointError(
            f"variant={variant.value}: the effects of a database do not converge in {INNER_STEPS} steps, largest "
            f"gradient {inner_gradient:.2g}; give tighter priors"
        )
    curvature = np.linalg.eigvalsh(-np.asarray(hessian))
    if not curvature.min() > 0:
        raise FloatingPointError(
            f"variant={variant.value}: the Hessian at the mode is not negative definite (smallest curvature "
            f"{curvature.min():.2g}); give tighter priors or more questions"
        )
    covariance = np.linalg.inv(-np.asarray(hessian))
    log_marginal = float(value) + 0.5 * len(phi) * np.log(2 * np.pi) + 0.5 * np.linalg.slogdet(covariance)[1]
    norm = float(jnp.abs(gradient).max())
    return LaplaceFit(
        sites,
        np.asarray(phi),
        (covariance + covariance.T) / 2,
        np.asarray(effects),
        log_marginal,
        norm,
        inner_gradient,
        steps,
        time.perf_counter() - began,
    )


def draw_effects(
    batch: Batch,
    fit: LaplaceFit,
    phi: Float[np.ndarray, "draws coordinates"],
    variant: Variant,
    priors: Priors,
    support: Support,
    rng: np.random.Generator,
) -> tuple[Float[np.ndarray, "draws databases"], Float[np.ndarray, "draws databases"]]:
    """Draws of (alpha_d, beta_d) given each outer draw: Gaussian at the inner mode for that draw.

    Args:
        batch: The evidence of the fit.
        fit: The fit.
        phi: Outer draws.
        variant: The fit's variant; it must have database effects.
        priors: The fit's prior scales.
        support: The fit's support.
        rng: Source of the standard normal numbers.
    """
    settings = _Settings(variant, priors, support, fit.sites, batch.num_channels)
    noise = rng.standard_normal((len(phi), batch.num_databases, len(settings.random)))
    (intercepts, couplings), gradient = _drawn_effects(
        batch, jnp.asarray(phi), jnp.asarray(noise), jnp.asarray(fit.effects), settings
    )
    if not float(gradient.max()) < INNER_TOLERANCE:
        raise FloatingPointError(
            f"variant={variant.value}: the effects of a database do not converge in {INNER_STEPS} steps for a draw, "
            f"largest gradient {float(gradient.max()):.2g}; give tighter priors"
        )
    return np.asarray(intercepts), np.asarray(couplings)


@partial(jax.jit, static_argnames="settings")
def _drawn_effects(
    batch: Batch, phi: Array, noise: Array, effects: Array, settings: "_Settings"
) -> tuple[tuple[Array, Array], Array]:
    columns = settings.columns

    def draw(inputs: tuple[Array, Array]) -> tuple[tuple[Array, Array], Array]:
        point, normal = inputs
        modes, _, precision, gradient = _inner_modes(batch, point, effects, settings, tolerance=1e-5)
        factor = jnp.linalg.cholesky(precision)
        # precision = L L', so solving L' e = normal gives covariance inv(precision).
        jitter = jax.scipy.linalg.solve_triangular(factor, normal[..., None], lower=True, trans=1)[..., 0]
        population = unpack_population(point, settings.sites, settings.num_channels)
        drawn = database_parameters(settings.variant, population, modes.at[:, columns].add(jitter), settings.priors)
        return drawn, gradient

    return jax.lax.map(draw, (phi, noise))


class _Settings(NamedTuple):
    """What a traced function treats as fixed."""

    variant: Variant
    priors: Priors
    support: Support
    sites: tuple[str, ...]
    num_channels: int

    @property
    def random(self) -> tuple[int, ...]:
        """Coordinates of theta_d that vary over databases."""
        structure = self.variant.structure
        first = (0,) if structure.intercept in ("partial", "own") else ()
        return first + ((-1,) if structure.coupling in ("partial", "own") else ())

    @property
    def with_coupling(self) -> bool:
        """Whether beta_d is estimated in any way."""
        return self.variant.structure.coupling not in ("zero", "given")

    @property
    def columns(self) -> Array:
        """Columns of (u, v) that belong to the random coordinates."""
        return jnp.array([0 if coordinate == 0 else 1 for coordinate in self.random], dtype=int)

    def scales(self, population: dict[str, Array]) -> Array:
        """D theta_d / d e_d for each random coordinate."""
        own = self.priors.own_scale
        both = [population.get("sigma_alpha", own), population.get("sigma_beta", own)]
        return jnp.stack([jnp.asarray(both[coordinate]) for coordinate in self.random])


def _likelihood(batch: Batch, support: Support) -> Callable[[Array, Array, Array], Array]:
    return lambda intercept, slopes, coupling: log_likelihood_by_database(
        batch, intercept, slopes, coupling, log_partition, support
    )


def _start(sites: tuple[str, ...], batch: Batch) -> Array:
    """Begin at the logit of the share of relevant tables, no slopes, no coupling, sigma = 1/2."""
    relevant = sum(float((bucket.gold.sum(axis=2) * bucket.weight).sum()) for bucket in batch.buckets)
    pairs = sum(float((bucket.weight.sum(axis=1) * _num_tables(bucket)).sum()) for bucket in batch.buckets)
    share = min(max(relevant / max(pairs, 1.0), 0.01), 0.99)
    population = {
        "alpha": jnp.asarray(np.log(share / (1 - share))),
        "gamma": jnp.zeros(batch.num_channels),
        "beta": jnp.asarray(0.0),
        "sigma_alpha": jnp.asarray(0.5),
        "sigma_beta": jnp.asarray(0.5),
    }
    return pack_population({site: population[site] for site in sites}, sites)


def _num_tables(bucket: Bucket) -> Array:
    return (bucket.plan.table < bucket.values.shape[2]).sum(axis=1)  # ty: ignore[missing-attribute]


def _log_outer_prior(phi: Array, settings: _Settings) -> Array:
    return log_population_density(phi, settings.sites, settings.num_channels, settings.priors)


def _split(rows: Array, num_random: int) -> tuple[Array, Array, Array]:
    """(l, gradient, Hessian) in the random coordinates from rows [databases rows]."""
    gradient = rows[:, 1 : 1 + num_random]
    hessian = jnp.zeros((rows.shape[0], num_random, num_random))
    position = 1 + num_random
    for i in range(num_random):
        for j in range(i, num_random):
            hessian = hessian.at[:, i, j].set(rows[:, position]).at[:, j, i].set(rows[:, position])
            position += 1
    return rows[:, 0], gradient, hessian


def _inner_terms(rows: Array, effects: Array, scales: Array) -> tuple[Array, Array, Array]:
    """Log joint of (D_d, e_d) up to a constant, its gradient and its precision K_d, in e_d."""
    value, gradient, hessian = _split(rows, len(scales))
    precision = jnp.eye(len(scales)) - hessian * scales[:, None] * scales[None, :]
    return value - 0.5 * (effects**2).sum(axis=1), gradient * scales - effects, precision


def _log_marginal_terms(joint: Array, precision: Array) -> Array:
    return (joint - 0.5 * jnp.linalg.slogdet(precision)[1]).sum()


@partial(jax.jit, static_argnames="settings")
def _inner(batch: Batch, phi: Array, effects: Array, settings: _Settings) -> tuple[Array, Array, Array]:
    """Inner modes e*_d from a starting point, the log marginal posterior at phi, and the largest inner gradient.

    Damped Newton; the inner log joint is strictly concave, so halving steps always reaches the mode.
    """
    modes, joint, precision, largest = _inner_modes(batch, phi, effects, settings)
    value = joint.sum() if not settings.random else _log_marginal_terms(joint, precision)
    return modes, value + _log_outer_prior(phi, settings), largest


def _inner_modes(
    batch: Batch, phi: Array, effects: Array, settings: _Settings, tolerance: float = 1e-9
) -> tuple[Array, Array, Array, Array]:
    population = unpack_population(phi, settings.sites, settings.num_channels)
    likelihood = _likelihood(batch, settings.support)
    columns = settings.columns

    def rows_at(current: Array) -> Array:
        intercept, coupling = database_parameters(settings.variant, population, current, settings.priors)
        return random_derivatives(likelihood, intercept, population["gamma"], coupling, settings.random)

    if not settings.random:
        rows = rows_at(effects)
        return effects, rows[:, 0], jnp.zeros((rows.shape[0], 0, 0)), jnp.zeros(())
    scales = settings.scales(population)

    def terms(current: Array) -> tuple[Array, Array, Array]:
        return _inner_terms(rows_at(current), current[:, columns], scales)

    def unfinished(state: tuple) -> Array:
        _, _, gradient, _, _, count = state
        return (jnp.abs(gradient).max() > tolerance) & (count < INNER_STEPS)

    def advance(state: tuple) -> tuple:
        current, joint, gradient, precision, shrink, count = state
        direction = jnp.linalg.solve(precision, gradient[..., None])[..., 0]
        proposal = current.at[:, columns].add(shrink[:, None] * direction)
        new_joint, new_gradient, new_precision = terms(proposal)
        better = new_joint >= joint - 1e-12 * (1 + jnp.abs(joint))
        return (
            jnp.where(better[:, None], proposal, current),
            jnp.where(better, new_joint, joint),
            jnp.where(better[:, None], new_gradient, gradient),
            jnp.where(better[:, None, None], new_precision, precision),
            jnp.where(better, jnp.minimum(1.0, 2 * shrink), shrink / 2),
            count + 1,
        )

    state = (effects, *terms(effects), jnp.ones(batch.num_databases), 0)
    modes, joint, gradient, precision, _, _ = jax.lax.while_loop(unfinished, advance, state)
    return modes, joint, precision, jnp.abs(gradient).max()


@partial(jax.jit, static_argnames="settings")
def _outer(batch: Batch, phi: Array, effects: Array, settings: _Settings) -> tuple[Array, Array, Array]:
    """Log marginal posterior at phi with its exact gradient and Hessian, given the inner modes there."""
    population = unpack_population(phi, settings.sites, settings.num_channels)
    centre = database_parameters(settings.variant, population, effects, settings.priors)
    expansion = expand(
        _likelihood(batch, settings.support),
        centre[0],
        population["gamma"],
        centre[1],
        settings.random,
        settings.with_coupling,
    )
    objective = partial(_expanded_objective, expansion, centre, population["gamma"], effects, settings)
    return objective(phi), jax.grad(objective)(phi), jax.hessian(objective)(phi)


def _expanded_objective(
    expansion: Expansion,
    centre: tuple[Array, Array],
    slopes: Array,
    effects: Array,
    settings: _Settings,
    phi: Array,
) -> Array:
    """The log marginal posterior near the expansion point; exact there to second order in phi."""
    population = unpack_population(phi, settings.sites, settings.num_channels)

    def rows_at(current: Array) -> Array:
        intercept, coupling = database_parameters(settings.variant, population, current, settings.priors)
        moved = jnp.broadcast_to(population["gamma"] - slopes, (len(intercept), len(slopes)))
        shift = [(intercept - centre[0])[:, None], moved, (coupling - centre[1])[:, None]]
        return expansion.at(jnp.concatenate(shift, axis=1))

    if not settings.random:
        return rows_at(effects)[:, 0].sum() + _log_outer_prior(phi, settings)
    scales = settings.scales(population)
    columns = settings.columns
    current = effects
    for _ in range(2):
        _, gradient, precision = _inner_terms(rows_at(current), current[:, columns], scales)
        current = current.at[:, columns].add(jnp.linalg.solve(precision, gradient[..., None])[..., 0])
    joint, _, precision = _inner_terms(rows_at(current), current[:, columns], scales)
    return _log_marginal_terms(joint, precision) + _log_outer_prior(phi, settings)


def _newton_step(
    batch: Batch,
    phi: Array,
    effects: Array,
    value: Array,
    gradient: Array,
    hessian: Array,
    damping: float,
    settings: _Settings,
) -> tuple[Array, Array, Array, float]:
    """One damped Newton step that does not lower the objective; returns the damping to use next."""
    curvature, vectors = np.linalg.eigh(-np.asarray(hessian))
    projected = vectors.T @ np.asarray(gradient)
    for _ in range(40):
        steps = projected / np.maximum(np.abs(curvature) + damping, 1e-8)
        proposal = phi + jnp.asarray(vectors @ np.clip(steps, -2.0, 2.0))
        new_effects, new_value, _ = _inner(batch, proposal, effects, settings)
        if bool(jnp.isfinite(new_value)) and float(new_value) >= float(value) - 1e-9 * (1 + abs(float(value))):
            return proposal, new_effects, new_value, damping / 10 if damping > 1e-6 else 0.0
        damping = max(4 * damping, 1e-3 * float(np.abs(curvature).max()))
    return phi, effects, value, damping
