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

from bayeslink.inference.elimination import log_partition
from bayeslink.inference.expansion import expand
from bayeslink.inference.laplace import check_fit, log_population_density, unpack_population
from bayeslink.model.autologistic import Support
from bayeslink.model.batch import Batch, log_likelihood_by_database
from bayeslink.model.hierarchy import Variant, database_parameters, population_sites
from bayeslink.model.priors import Priors

__all__ = ["JointFit", "draw_joint", "laplace_joint"]

MAX_STEPS = 200
GRADIENT_TOLERANCE = 1e-5


class JointFit(NamedTuple):
    """A joint mode and the Gaussian around it; its sigmas are biased (see the module).

    Attributes:
        sites: Names of the population parameters, in the order of `mode`; sigmas are on the log scale.
        mode: phi at the joint mode.
        effects: (u_d, v_d) at the joint mode; 0 where the variant has none.
        covariance: Inverse of minus the Hessian in (phi, u_0, v_0, u_1, v_1, ...).
        log_density: Unconstrained log joint density of data and coordinates at the mode, nats.
        gradient_norm: Largest absolute gradient entry at the mode.
        steps: Trust region steps taken.
        seconds: Wall time.
    """

    sites: tuple[str, ...]
    mode: Float[np.ndarray, " coordinates"]
    effects: Float[np.ndarray, "databases 2"]
    covariance: Float[np.ndarray, "all_coordinates all_coordinates"]
    log_density: float
    gradient_norm: float
    steps: int
    seconds: float


def laplace_joint(batch: Batch, variant: Variant, priors: Priors, support: Support = Support.ALL) -> JointFit:
    """Joint mode of a variant over (phi, u, v), for comparison with `laplace` only: its sigma is biased.

    Args:
        batch: Standardised evidence with gold, from `packing.pack`.
        variant: Any variant but `fixed`.
        priors: Prior scales.
        support: All subsets, or the non-empty ones.

    Raises:
        ValueError: If `variant` is `fixed`, or the support is non-empty and a gold selection is empty.
        FloatingPointError: If no mode is found or the Hessian there is not negative definite.
    """
    check_fit(batch, variant, support)
    began = time.perf_counter()
    settings = _Settings(variant, priors, support, population_sites(variant), batch.num_channels)
    starts = [_SIGMA_START if site.startswith("sigma") else 0.0 for site in settings.sites for _ in settings.axes(site)]
    start = np.concatenate([starts, np.zeros(2 * batch.num_databases)])
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
            f"variant={variant.value}: no joint mode in {found.nit} steps, largest gradient {norm:.2g}; "
            "use `laplace`, or give tighter priors"
        )
    smallest = float(np.linalg.eigvalsh(precision).min())
    if not smallest > 0:
        raise FloatingPointError(
            f"variant={variant.value}: the Hessian at the joint mode is not negative definite (smallest curvature "
            f"{smallest:.2g}); use `laplace`, or give tighter priors"
        )
    covariance = np.linalg.inv(precision)
    return JointFit(
        settings.sites,
        found.x[: len(starts)],
        found.x[len(starts) :].reshape(-1, 2),
        (covariance + covariance.T) / 2,
        -value,
        norm,
        int(found.nit),
        time.perf_counter() - began,
    )


def draw_joint(
    fit: JointFit, variant: Variant, priors: Priors, num_draws: int, rng: np.random.Generator
) -> tuple[
    Float[np.ndarray, "draws coordinates"], Float[np.ndarray, "draws databases"], Float[np.ndarray, "draws databases"]
]:
    """Draws of phi, alpha_d and beta_d from the Gaussian at the joint mode.

    Args:
        fit: The fit.
        variant: The fit's variant.
        priors: The fit's prior scales.
        num_draws: Number of draws.
        rng: Source of the draws.
    """
    size = len(fit.mode)
    centre = np.concatenate([fit.mode, fit.effects.reshape(-1)])
    points = rng.multivariate_normal(centre, fit.covariance, size=num_draws, method="cholesky")
    num_channels = size - len(fit.sites) + 1

    def parameters(point: Array) -> tuple[Array, Array]:
        population = unpack_population(point[:size], fit.sites, num_channels)
        return database_parameters(variant, population, point[size:].reshape(-1, 2), priors)

    intercepts, couplings = jax.vmap(parameters)(jnp.asarray(points))
    return points[:, :size], np.asarray(intercepts), np.asarray(couplings)


_SIGMA_START = float(np.log(0.5))


class _Settings(NamedTuple):
    """What a traced function treats as fixed."""

    variant: Variant
    priors: Priors
    support: Support
    sites: tuple[str, ...]
    num_channels: int

    def axes(self, site: str) -> range:
        """One entry for each coordinate of a site."""
        return range(self.num_channels if site == "gamma" else 1)


@partial(jax.jit, static_argnames="settings")
def _log_density(batch: Batch, point: Array, settings: _Settings) -> tuple[Array, Array, Array]:
    """The unconstrained log joint density, its gradient and its Hessian, from one expansion of each l_d."""
    size = point.shape[0] - 2 * batch.num_databases

    def parameters(moved: Array) -> tuple[Array, Array, Array]:
        population = unpack_population(moved[:size], settings.sites, settings.num_channels)
        effects = moved[size:].reshape(-1, 2)
        intercept, coupling = database_parameters(settings.variant, population, effects, settings.priors)
        return intercept, population["gamma"], coupling

    def likelihood(intercept: Array, slopes: Array, coupling: Array) -> Array:
        return log_likelihood_by_database(batch, intercept, slopes, coupling, log_partition, settings.support)

    centre = parameters(point)
    with_coupling = settings.variant.structure.coupling != "zero"
    expansion = expand(likelihood, *centre, (), with_coupling)

    def density(moved: Array) -> Array:
        intercept, slopes, coupling = parameters(moved)
        shared = jnp.broadcast_to(slopes - centre[1], (len(intercept), len(slopes)))
        shift = jnp.concatenate([(intercept - centre[0])[:, None], shared, (coupling - centre[2])[:, None]], axis=1)
        normal = jax.scipy.stats.norm.logpdf(moved[size:]).sum()
        outer = log_population_density(moved[:size], settings.sites, settings.num_channels, settings.priors)
        return expansion.at(shift)[:, 0].sum() + normal + outer

    return density(point), jax.grad(density)(point), jax.hessian(density)(point)
