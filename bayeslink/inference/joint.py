"""The joint mode over population parameters and database effects: kept for comparison only.

    log p(phi, u, v | D) = sum_d [ l_d(alpha_d, gamma, beta_d) - (u_d^2 + v_d^2) / 2 ]
                           + log prior(phi) + log Jacobian + constant

with phi = (alpha, gamma, beta, log sigma): the unconstrained density of `model.hierarchy`.

**Its sigma is biased; use `laplace`.** Holding the alpha_d, -sum_d u_d^2 / 2 shrinks as sigma grows, so
the mode tends to sigma^2 = (1 + sqrt(1 + 4 S)) / 2 with S = sum_d (alpha_d - alpha)^2: at least 1, and
growing with the number of databases whatever the true sigma (MODEL.md section 4). In the centred form
it would collapse to 0 instead. The same holds for the Gaussian put around that mode.
"""

import time
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float
from scipy.optimize import minimize

from bayeslink.inference.expansion import coordinates, expand
from bayeslink.inference.laplace import Settings, check_fit, owners, question_contexts
from bayeslink.inference.population import log_population_density, pack_population
from bayeslink.model.autologistic import Support
from bayeslink.model.batch import Batch, LocalParameters
from bayeslink.model.hierarchy import EFFECTS, Design
from bayeslink.model.priors import Priors

__all__ = ["JointFit", "draw_joint", "laplace_joint"]

MAX_STEPS = 200
GRADIENT_TOLERANCE = 1e-5


class JointFit(NamedTuple):
    """A joint mode and the Gaussian around it; its sigmas are biased (see the module).

    Attributes:
        design: The variant with its terms.
        mode: phi at the joint mode.
        effects: (u_d, v_d, w_d) at the joint mode; 0 where the design has none.
        covariance: Inverse of minus the Hessian in (phi, effects of the first database, of the second, ...).
        log_density: Unconstrained log joint density of data and coordinates at the mode, nats.
        gradient_norm: Largest absolute gradient entry at the mode.
        steps: Trust region steps taken.
        seconds: Wall time.
    """

    design: Design
    mode: Float[np.ndarray, " coordinates"]
    effects: Float[np.ndarray, "databases 3"]
    covariance: Float[np.ndarray, "all_coordinates all_coordinates"]
    log_density: float
    gradient_norm: float
    steps: int
    seconds: float


def laplace_joint(batch: Batch, design: Design, priors: Priors, support: Support = Support.ALL) -> JointFit:
    """Joint mode of a variant over (phi, u, v), for comparison with `laplace` only: its sigma is biased.

    Args:
        batch: Standardised evidence with gold, from `packing.pack`.
        design: Any variant but `fixed`, with its terms.
        priors: Prior scales.
        support: All subsets, or the non-empty ones.

    Raises:
        ValueError: If the variant is `fixed`, or the support is non-empty and a gold selection is empty.
        FloatingPointError: If no mode is found or the Hessian there is not negative definite.
    """
    check_fit(batch, design.variant, support)
    began = time.perf_counter()
    settings = Settings(design, priors, support)
    population = {site: jnp.full(size, 0.5 if site.startswith("sigma") else 0.0) for site, size in design.sites.items()}
    start = np.concatenate([pack_population(population, design), np.zeros(len(design.effects) * batch.num_databases)])
    terms: dict[bytes, tuple[float, np.ndarray, np.ndarray]] = {}

    def at(point: np.ndarray) -> tuple[float, np.ndarray, np.ndarray]:
        key = point.tobytes()
        if key not in terms:
            terms.clear()
            value, gradient, hessian = _log_density(batch, jnp.asarray(point), settings)
            terms[key] = -float(value), -np.asarray(gradient), -np.asarray(hessian)
        return terms[key]

    found = minimize(
        lambda point: at(point)[0],
        start,
        jac=lambda point: at(point)[1],
        hess=lambda point: at(point)[2],
        method="trust-exact",
        options={"gtol": GRADIENT_TOLERANCE / 10, "maxiter": MAX_STEPS},
    )
    value, gradient, precision = at(found.x)
    norm = float(np.abs(gradient).max())
    if not norm < GRADIENT_TOLERANCE:
        raise FloatingPointError(
            f"variant={design.variant.value}: no joint mode in {found.nit} steps, largest gradient {norm:.2g}; "
            "use `laplace`, or give tighter priors"
        )
    smallest = float(np.linalg.eigvalsh(precision).min())
    if not smallest > 0:
        raise FloatingPointError(
            f"variant={design.variant.value}: the Hessian at the joint mode is not negative definite (smallest "
            f"curvature {smallest:.2g}); use `laplace`, or give tighter priors"
        )
    covariance = np.linalg.inv(precision)
    return JointFit(
        design,
        found.x[: design.size],
        np.asarray(_effects(jnp.asarray(found.x), design, batch.num_databases)),
        (covariance + covariance.T) / 2,
        -value,
        norm,
        int(found.nit),
        time.perf_counter() - began,
    )


def draw_joint(
    fit: JointFit, num_draws: int, rng: np.random.Generator
) -> tuple[Float[np.ndarray, "draws coordinates"], Float[np.ndarray, "draws databases 3"]]:
    """Draws of phi and of the effects from the Gaussian at the joint mode.

    Args:
        fit: The fit.
        num_draws: Number of draws.
        rng: Source of the draws.
    """
    chosen = list(fit.design.effects)
    centre = np.concatenate([fit.mode, fit.effects[:, chosen].reshape(-1)])
    points = rng.multivariate_normal(centre, fit.covariance, size=num_draws, method="cholesky")
    effects = np.zeros((num_draws, *fit.effects.shape))
    effects[:, :, chosen] = points[:, len(fit.mode) :].reshape(num_draws, len(fit.effects), len(chosen))
    return points[:, : len(fit.mode)], effects


def _effects(point: Array, design: Design, num_databases: int) -> Array:
    columns = jnp.array(design.effects, dtype=int)
    drawn = point[design.size :].reshape(num_databases, len(columns))
    return jnp.zeros((num_databases, len(EFFECTS))).at[:, columns].set(drawn)


@partial(jax.jit, static_argnames="settings")
def _log_density(batch: Batch, point: Array, settings: Settings) -> tuple[Array, Array, Array]:
    """The unconstrained log joint density, its gradient and its Hessian, from one expansion of each l_q."""
    design = settings.design

    def parameters(moved: Array) -> LocalParameters:
        return settings.local(batch, moved[: design.size], _effects(moved, design, batch.num_databases))

    centre = parameters(point)
    nowhere = jnp.zeros((0, design.num_coordinates))
    found = expand(batch, centre, nowhere, design.estimates_coupling, settings.support, 2)
    owner, contexts = owners(batch), question_contexts(batch)
    start = coordinates(centre, design.estimates_coupling)

    def density(moved: Array) -> Array:
        local = parameters(moved)
        shift = (coordinates(local, design.estimates_coupling) - start)[owner]
        shift = shift.at[:, 0].add(contexts @ (local.context - centre.context))
        square = jnp.einsum("qpr,qp,qr->q", found.second, shift, shift)
        likelihood = (found.value + (found.first * shift).sum(axis=1) + 0.5 * square).sum()
        normal = jax.scipy.stats.norm.logpdf(moved[design.size :]).sum()
        return likelihood + normal + log_population_density(moved[: design.size], design, settings.priors)

    return density(point), jax.grad(density)(point), jax.hessian(density)(point)
