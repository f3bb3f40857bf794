"""Parameters given data: the marginal Laplace fit (MODEL.md section 4).

The random effects e_d = (u_d, v_d, w_d) are integrated out by an inner Laplace approximation for each
database, independent of the others given phi = (alpha, gamma, beta, log sigma, ...):

    log p(D | phi)  ~=  sum_d  l_d(e*_d, phi) - e*_d . e*_d / 2 - (1/2) log det K_d(e*_d, phi)
    K_d = I - d2 l_d / de2,   e*_d = the inner mode

The outer mode and its inverse Hessian in phi, with the prior and the Jacobian of log sigma, give the
draws of phi. Outer derivatives are exact: see `expansion`; two Newton steps from the inner mode, taken
on the expansions, carry the derivatives of e*_d to second order. The steps towards the mode need exact
gradients only, so they leave fourth derivatives out of the Hessian; the covariance has them. Given each
outer draw, e_d is drawn from its own Gaussian. `laplace_joint` keeps the joint mode over (phi, u, v) for
comparison only: its sigma is biased (MODEL.md section 4).
"""

import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from bayeslink.inference import make_room
from bayeslink.inference.enumeration import StatePlan
from bayeslink.inference.expansion import Expansion, coordinates, directional, expand
from bayeslink.inference.newton import damped_newton
from bayeslink.inference.packing import log_partition
from bayeslink.inference.population import (
    log_population_density,
    pack_population,
    unpack_population,
)
from bayeslink.model.autologistic import Support
from bayeslink.model.batch import Batch, LocalParameters, log_likelihood_by_database
from bayeslink.model.hierarchy import EFFECTS, Design, Variant, database_parameters
from bayeslink.model.priors import Priors

__all__ = [
    "InnerModes",
    "LaplaceFit",
    "Settings",
    "check_fit",
    "draw_effects",
    "inner_modes",
    "laplace",
    "one_inner_step",
    "owners",
    "question_contexts",
]

COSTLY_BLOCKS = 60
"""With so many eliminated blocks a fit first finds the mode of the listed ones; the result is the same."""
MAX_STEPS = 60
GRADIENT_TOLERANCE = 1e-5
INNER_STEPS = 40
INNER_TOLERANCE = 1e-4


class Settings(NamedTuple):
    """What a traced function treats as fixed."""

    design: Design
    priors: Priors
    support: Support

    def local(self, batch: Batch, phi: Array, effects: Array) -> LocalParameters:
        """Each database's own parameters."""
        population = unpack_population(phi, self.design)
        return database_parameters(self.design, population, effects, batch.covariates, self.priors)

    def directions(self, phi: Array) -> Float[Array, "effects coordinates"]:
        """D theta_d / d e_d, the same for every database since theta is linear in the effects."""
        population = unpack_population(phi, self.design)

        def theta(effects: Array) -> Array:
            nowhere = jnp.zeros((1, self.design.num_covariates))
            local = database_parameters(self.design, population, effects[None], nowhere, self.priors)
            return coordinates(local, self.design.estimates_coupling)[0]

        return jax.jacfwd(theta)(jnp.zeros(len(EFFECTS))).T[jnp.array(self.design.effects, dtype=int)]


class LaplaceFit(NamedTuple):
    """A marginal Laplace fit.

    Attributes:
        design: The variant with its terms; `population` tells how `mode` is laid out.
        mode: phi at the outer mode.
        covariance: Inverse of minus the Hessian of the log marginal posterior at the mode.
        effects: e*_d at the mode; axes databases, 3; 0 where the design has none.
        log_marginal: log p(D), Laplace approximation, nats.
        gradient_norm: Largest absolute gradient entry at the mode.
        inner_gradient: The same for the inner modes.
        steps: Outer Newton steps taken.
        seconds: Wall time.
    """

    design: Design
    mode: Float[np.ndarray, " coordinates"]
    covariance: Float[np.ndarray, "coordinates coordinates"]
    effects: Float[np.ndarray, "databases 3"]
    log_marginal: float
    gradient_norm: float
    inner_gradient: float
    steps: int
    seconds: float


class InnerModes(NamedTuple):
    """Modes of the effects at one phi.

    Attributes:
        effects: e*_d; axes databases, 3.
        log_joint: log p(D_d, e*_d) less the constant of the normal density, nats.
        precision: K_d over the design's effects.
        gradient: Largest absolute gradient entry.
    """

    effects: Array
    log_joint: Array
    precision: Array
    gradient: Array


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
    design: Design,
    priors: Priors,
    support: Support = Support.ALL,
    start: "LaplaceFit | None" = None,
) -> LaplaceFit:
    """Fit of a variant by marginal Laplace.

    Args:
        batch: Standardised evidence with gold, from `packing.pack`.
        design: Any variant but `fixed`, with its terms.
        priors: Prior scales.
        support: All subsets, or the non-empty ones.
        start: A fit of the same design to begin from (another fold's, say).

    Raises:
        ValueError: If the variant is `fixed`, or the support is non-empty and a gold selection is empty.
        FloatingPointError: If the fit does not converge or its Hessian is not negative definite.
    """
    check_fit(batch, design.variant, support)
    make_room()
    began = time.perf_counter()
    settings = Settings(design, priors, support)
    name = design.variant.value
    phi = jnp.asarray(start.mode) if start is not None else _start(design, batch)
    small = _listed(batch)
    if start is None and small is not None:
        phi = jnp.asarray(laplace(small, design, priors, support).mode)
    effects, value, _ = _inner(batch, phi, jnp.zeros((batch.num_databases, len(EFFECTS))), settings)
    damping, steps = 0.0, 0
    while True:
        _, gradient, hessian = _outer(batch, phi, effects, settings, 3)
        if float(jnp.abs(gradient).max()) < GRADIENT_TOLERANCE:
            break
        if steps == MAX_STEPS:
            raise FloatingPointError(
                f"variant={name}: no convergence in {MAX_STEPS} steps, largest gradient "
                f"{float(jnp.abs(gradient).max()):.2g}; give tighter priors or more questions"
            )
        phi, effects, value, damping = _newton_step(batch, phi, effects, value, gradient, hessian, damping, settings)
        steps += 1
    inner_gradient = float(_inner(batch, phi, effects, settings)[2])
    if not inner_gradient < INNER_TOLERANCE:
        raise FloatingPointError(
            f"variant={name}: the effects of a database do not converge in {INNER_STEPS} steps, largest "
            f"gradient {inner_gradient:.2g}; give tighter priors"
        )
    if design.effects:
        _, gradient, hessian = _outer(batch, phi, effects, settings, 4)
    curvature = np.linalg.eigvalsh(-np.asarray(hessian))
    if not curvature.min() > 0:
        raise FloatingPointError(
            f"variant={name}: the Hessian at the mode is not negative definite (smallest curvature "
            f"{curvature.min():.2g}); give tighter priors or more questions"
        )
    covariance = np.linalg.inv(-np.asarray(hessian))
    log_marginal = float(value) + 0.5 * len(phi) * np.log(2 * np.pi) + 0.5 * np.linalg.slogdet(covariance)[1]
    norm = float(jnp.abs(gradient).max())
    return LaplaceFit(
        design,
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
    priors: Priors,
    support: Support,
    rng: np.random.Generator,
) -> Float[np.ndarray, "draws databases 3"]:
    """Draws of the effects given each outer draw: Gaussian at the inner mode for that draw.

    Args:
        batch: The evidence of the fit.
        fit: The fit; its design must have effects.
        phi: Outer draws.
        priors: The fit's prior scales.
        support: The fit's support.
        rng: Source of the standard normal numbers.

    Raises:
        FloatingPointError: If the effects do not converge for a draw.
    """
    settings = Settings(fit.design, priors, support)
    noise = rng.standard_normal((len(phi), batch.num_databases, len(fit.design.effects)))
    drawn, gradient = _drawn_effects(batch, jnp.asarray(phi), jnp.asarray(noise), jnp.asarray(fit.effects), settings)
    if not float(gradient.max()) < INNER_TOLERANCE:
        raise FloatingPointError(
            f"variant={fit.design.variant.value}: the effects of a database do not converge in {INNER_STEPS} steps "
            f"for a draw, largest gradient {float(gradient.max()):.2g}; give tighter priors"
        )
    return np.asarray(drawn)


@partial(jax.jit, static_argnames="settings")
def _drawn_effects(batch: Batch, phi: Array, noise: Array, effects: Array, settings: Settings) -> tuple[Array, Array]:
    columns = jnp.array(settings.design.effects)

    def draw(inputs: tuple[Array, Array]) -> tuple[Array, Array]:
        point, normal = inputs
        found = inner_modes(batch, point, effects, settings, tolerance=1e-5)
        factor = jnp.linalg.cholesky(found.precision)
        # precision = L L', so solving L' e = normal gives covariance inv(precision).
        jitter = jax.scipy.linalg.solve_triangular(factor, normal[..., None], lower=True, trans=1)[..., 0]
        return found.effects.at[:, columns].add(jitter), found.gradient

    return jax.lax.map(draw, (phi, noise))


def _start(design: Design, batch: Batch) -> Array:
    """Begin at the logit of the share of relevant tables, no slopes, no coupling, sigma = 1/2."""
    relevant = sum(float((bucket.gold.sum(axis=2) * bucket.weight).sum()) for bucket in batch.buckets)
    pairs = sum(float((bucket.weight.sum(axis=1) * bucket.is_table.sum(axis=1)).sum()) for bucket in batch.buckets)
    share = min(max(relevant / max(pairs, 1.0), 0.01), 0.99)
    begin = {"alpha": np.log(share / (1 - share)), "sigma_alpha": 0.5, "sigma_beta": 0.5, "sigma_scale": 0.2}
    return pack_population({site: jnp.full(size, begin.get(site, 0.0)) for site, size in design.sites.items()}, design)


def _listed(batch: Batch) -> Batch | None:
    """The questions that cost little, to begin from their mode, where the others cost much; else None."""
    cheap = tuple(bucket for bucket in batch.buckets if isinstance(bucket.plan, StatePlan))
    costly = sum(len(bucket.database) for bucket in batch.buckets) - sum(len(bucket.database) for bucket in cheap)
    return replace(batch, buckets=cheap) if cheap and costly >= COSTLY_BLOCKS else None


def _log_marginal_terms(joint: Array, precision: Array) -> Array:
    return (joint - 0.5 * jnp.linalg.slogdet(precision)[1]).sum()


@partial(jax.jit, static_argnames="settings")
def _inner(batch: Batch, phi: Array, effects: Array, settings: Settings) -> tuple[Array, Array, Array]:
    """Inner modes e*_d from a starting point, the log marginal posterior at phi, and the largest inner gradient."""
    found = inner_modes(batch, phi, effects, settings)
    value = _log_marginal_terms(found.log_joint, found.precision)
    return found.effects, value + log_population_density(phi, settings.design, settings.priors), found.gradient


def inner_modes(batch: Batch, phi: Array, effects: Array, settings: Settings, tolerance: float = 1e-9) -> InnerModes:
    """Modes of every database's effects at phi; the log joint is strictly concave in them.

    Args:
        batch: The questions.
        phi: Population parameters, packed.
        effects: Where to begin.
        settings: The design, its priors and its support.
        tolerance: Largest gradient entry at which to stop.
    """
    places = settings.design.effects
    if not places:
        joint = log_likelihood_by_database(batch, settings.local(batch, phi, effects), log_partition, settings.support)
        return InnerModes(effects, joint, jnp.zeros((batch.num_databases, 0, 0)), jnp.zeros(()))
    columns = jnp.array(places)
    terms = _inner_terms(batch, phi, settings)
    chosen, joint, gradient, precision = damped_newton(
        lambda point: terms(effects.at[:, columns].set(point)), effects[:, columns], tolerance, INNER_STEPS
    )
    return InnerModes(effects.at[:, columns].set(chosen), joint, precision, jnp.abs(gradient).max())


def one_inner_step(batch: Batch, phi: Array, effects: Array, settings: Settings) -> InnerModes:
    """One full Newton step from effects close to the modes, with the precision there: no more than a centre.

    `log_joint` and `gradient` are those before the step.
    """
    columns = jnp.array(settings.design.effects)
    joint, gradient, precision = _inner_terms(batch, phi, settings)(effects)
    step = jnp.linalg.solve(precision, gradient[..., None])[..., 0]
    return InnerModes(effects.at[:, columns].add(step), joint, precision, jnp.abs(gradient).max())


def _inner_terms(batch: Batch, phi: Array, settings: Settings) -> Callable[[Array], tuple[Array, Array, Array]]:
    """Effects -> log joint of (D_d, e_d) up to a constant, its gradient and its precision, of every database."""
    columns = jnp.array(settings.design.effects)
    directions = settings.directions(phi)
    owner = owners(batch)

    def terms(current: Array) -> tuple[Array, Array, Array]:
        rows = directional(batch, settings.local(batch, phi, current), directions, settings.support)
        value, gradient, hessian = (_by_database(part, owner, batch) for part in rows[:3])
        chosen = current[:, columns]
        return value - 0.5 * (chosen**2).sum(axis=1), gradient - chosen, jnp.eye(len(columns)) - hessian

    return terms


def owners(batch: Batch) -> Array:
    """Database of each question, buckets and blocks after one another as in an `Expansion`."""
    return jnp.concatenate([jnp.repeat(bucket.database, bucket.weight.shape[1]) for bucket in batch.buckets])


def question_contexts(batch: Batch) -> Array:
    """Covariates of each question, in the same order."""
    return jnp.concatenate([bucket.context.reshape(bucket.weight.size, batch.num_contexts) for bucket in batch.buckets])


def _by_database(rows: Array, owner: Array, batch: Batch) -> Array:
    return jax.ops.segment_sum(rows, owner, batch.num_databases)


@partial(jax.jit, static_argnames=("settings", "order"))
def _outer(batch: Batch, phi: Array, effects: Array, settings: Settings, order: int) -> tuple[Array, Array, Array]:
    """Log marginal posterior at phi with its exact gradient and Hessian, given the inner modes there.

    At order 3 the Hessian lacks the fourth derivatives of the likelihood; the gradient is exact.
    """
    design = settings.design
    local = settings.local(batch, phi, effects)
    order = order if design.effects else 2
    found = expand(batch, local, settings.directions(phi), design.estimates_coupling, settings.support, order)
    owner, contexts = owners(batch), question_contexts(batch)
    if not batch.num_contexts:
        # Without covariates the questions of a database share one theta, so their sum is enough.
        found = jax.tree.map(lambda rows: _by_database(rows, owner, batch), found)
        owner = jnp.arange(batch.num_databases)
        contexts = jnp.zeros((batch.num_databases, 0))
    objective = partial(_expanded_objective, batch, found, owner, contexts, local, effects, settings)
    return objective(phi), jax.grad(objective)(phi), jax.jacfwd(jax.grad(objective))(phi)


def _expanded_objective(
    batch: Batch,
    found: Expansion,
    owner: Array,
    contexts: Array,
    centre: LocalParameters,
    effects: Array,
    settings: Settings,
    phi: Array,
) -> Array:
    """The log marginal posterior near the expansion point; exact there to second order in phi."""
    design = settings.design
    start = coordinates(centre, design.estimates_coupling)
    prior = log_population_density(phi, design, settings.priors)

    def shift_at(current: Array) -> Array:
        local = settings.local(batch, phi, current)
        shift = (coordinates(local, design.estimates_coupling) - start)[owner]
        return shift.at[:, 0].add(contexts @ (local.context - centre.context))

    def value_at(shift: Array) -> Array:
        square = jnp.einsum("qpr,qp,qr->q", found.second, shift, shift)
        return _by_database(found.value + (found.first * shift).sum(axis=1) + 0.5 * square, owner, batch)

    if found.third is None:
        return value_at(shift_at(effects)).sum() + prior
    directions = settings.directions(phi)
    columns = jnp.array(design.effects)

    def terms(current: Array) -> tuple[Array, Array, Array]:
        shift = shift_at(current)
        bent = jnp.einsum("qprs,qs->qpr", found.third, shift)
        first = found.first + jnp.einsum("qpr,qr->qp", found.second + 0.5 * bent, shift)
        gradient = _by_database(first, owner, batch) @ directions.T
        hessian = directions @ _by_database(found.second + bent, owner, batch) @ directions.T
        if found.fourth is not None:
            twice = jnp.einsum("qabpr,qp,qr->qab", found.fourth, shift, shift)
            hessian = hessian + 0.5 * _by_database(twice, owner, batch)
        chosen = current[:, columns]
        return value_at(shift) - 0.5 * (chosen**2).sum(axis=1), gradient - chosen, jnp.eye(len(columns)) - hessian

    current = effects
    for _ in range(2):
        _, gradient, precision = terms(current)
        current = current.at[:, columns].add(jnp.linalg.solve(precision, gradient[..., None])[..., 0])
    joint, _, precision = terms(current)
    return _log_marginal_terms(joint, precision) + prior


def _newton_step(
    batch: Batch,
    phi: Array,
    effects: Array,
    value: Array,
    gradient: Array,
    hessian: Array,
    damping: float,
    settings: Settings,
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
