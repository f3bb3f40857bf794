"""Population parameters as one unconstrained vector phi: sigmas on the log scale, rho as its arctanh."""

import jax.numpy as jnp
from jaxtyping import Array, Float

from bayeslink.model.hierarchy import Design, log_prior
from bayeslink.model.priors import Priors

__all__ = ["log_population_density", "pack_population", "positions", "unpack_population"]

_SCALARS = ("alpha", "beta", "rho")


def positions(design: Design) -> dict[str, slice]:
    """Where each site of the design stands in phi."""
    found, start = {}, 0
    for site, size in design.sites.items():
        found[site] = slice(start, start + size)
        start += size
    return found


def pack_population(population: dict[str, Array], design: Design) -> Float[Array, " coordinates"]:
    """Phi of population parameters on their natural scale."""
    parts = []
    for site in design.sites:
        value = jnp.atleast_1d(jnp.asarray(population[site], dtype=jnp.float64))
        parts.append(jnp.log(value) if site.startswith("sigma") else jnp.arctanh(value) if site == "rho" else value)
    return jnp.concatenate(parts)


def unpack_population(phi: Float[Array, " coordinates"], design: Design) -> dict[str, Array]:
    """Population parameters on their natural scale: scalars, or vectors with an entry per channel or covariate."""
    population: dict[str, Array] = {}
    for site, place in positions(design).items():
        value = phi[place]
        if site.startswith("sigma"):
            population[site] = jnp.exp(value[0])
        elif site in _SCALARS:
            population[site] = jnp.tanh(value[0]) if site == "rho" else value[0]
        else:
            population[site] = value
    return population


def log_population_density(phi: Float[Array, " coordinates"], design: Design, priors: Priors) -> Float[Array, ""]:
    """Log prior density of phi, nats: `log_prior` and the Jacobians of log sigma and arctanh rho."""
    population = unpack_population(phi, design)
    jacobian = sum((jnp.log(population[site]) for site in population if site.startswith("sigma")), jnp.zeros(()))
    if "rho" in population:
        jacobian = jacobian + jnp.log1p(-(population["rho"] ** 2))
    return log_prior(population, priors) + jacobian
