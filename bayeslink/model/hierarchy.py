"""The hierarchical model and its variants (MODEL.md section 3).

    alpha_d = alpha + sigma_alpha u_d,   beta_d = beta + sigma_beta v_d,   u_d, v_d ~ N(0, 1)

Every variant is this model with some terms held: a variant says where the intercept and the coupling
of a database come from. `log_likelihood_by_database` supplies the data's part.
"""

from enum import StrEnum
from typing import NamedTuple

import jax.numpy as jnp
import numpyro
import numpyro.distributions as dist
from jaxtyping import Array, Float

from bayeslink.model.autologistic import Support
from bayeslink.model.batch import Batch, LogPartition, log_likelihood_by_database
from bayeslink.model.priors import Priors

__all__ = [
    "Structure",
    "Variant",
    "database_parameters",
    "hierarchical_model",
    "log_prior",
    "population_sites",
]


class Variant(StrEnum):
    """The variants by their names in MODEL.md section 3."""

    INDEPENDENT = "independent"
    INDEPENDENT_HIERARCHICAL = "independent_hierarchical"
    FIXED = "fixed"
    POOLED = "pooled"
    POOLED_COUPLING = "pooled_coupling"
    HIERARCHICAL = "hierarchical"
    UNPOOLED = "unpooled"

    @property
    def structure(self) -> "Structure":
        """Where the intercept and the coupling of a database come from."""
        return _STRUCTURES[self]


class Structure(NamedTuple):
    """Sources of a database's two parameters.

    Attributes:
        intercept: "pooled" (alpha), "partial" (alpha + sigma_alpha u_d) or "own" (wide prior each).
        coupling: "zero", "given" (held at a stated value), "pooled", "partial" or "own".
    """

    intercept: str
    coupling: str


_STRUCTURES = {
    Variant.INDEPENDENT: Structure("pooled", "zero"),
    Variant.INDEPENDENT_HIERARCHICAL: Structure("partial", "zero"),
    Variant.FIXED: Structure("pooled", "given"),
    Variant.POOLED: Structure("pooled", "pooled"),
    Variant.POOLED_COUPLING: Structure("partial", "pooled"),
    Variant.HIERARCHICAL: Structure("partial", "partial"),
    Variant.UNPOOLED: Structure("own", "own"),
}


def population_sites(variant: Variant) -> tuple[str, ...]:
    """Names of the population parameters that a variant estimates, in order.

    `fixed` estimates none of its own: alpha and gamma are held at the independent fit.
    """
    structure = variant.structure
    sites = ["alpha"] if structure.intercept != "own" else []
    sites.append("gamma")
    if structure.coupling in ("pooled", "partial"):
        sites.append("beta")
    if structure.intercept == "partial":
        sites.append("sigma_alpha")
    if structure.coupling == "partial":
        sites.append("sigma_beta")
    return tuple(sites)


def database_parameters(
    variant: Variant,
    population: dict[str, Array],
    effects: Float[Array, "databases 2"],
    priors: Priors,
) -> tuple[Float[Array, " databases"], Float[Array, " databases"]]:
    """(alpha_d, beta_d) of each database from the population parameters and the effects (u_d, v_d).

    Args:
        variant: Which terms are held.
        population: alpha, beta, sigma_alpha, sigma_beta, as far as the variant has them.
        effects: Standard normal effects u and v; ignored where the variant has none.
        priors: For the wide prior of `unpooled`.
    """
    structure = variant.structure
    zero = jnp.zeros(effects.shape[0])
    intercept_sd = population.get("sigma_alpha", priors.own_scale if structure.intercept == "own" else 0.0)
    coupling_sd = population.get("sigma_beta", priors.own_scale if structure.coupling == "own" else 0.0)
    intercept = zero + population.get("alpha", 0.0) + intercept_sd * effects[:, 0]
    coupling = zero + population.get("beta", 0.0) + coupling_sd * effects[:, 1]
    return intercept, coupling


def log_prior(population: dict[str, Array], priors: Priors) -> Float[Array, ""]:
    """Log prior density of the population parameters on their natural scale (sigma > 0), nats."""
    return sum(
        (jnp.sum(priors.distribution(site).log_prob(value)) for site, value in population.items()), jnp.zeros(())
    )


def hierarchical_model(
    batch: Batch,
    variant: Variant,
    priors: Priors,
    log_partition: LogPartition,
    support: Support = Support.ALL,
) -> None:
    """NumPyro model of a variant, non-centred.

    Args:
        batch: Evidence and gold selections.
        variant: Any variant but `fixed`, which has no parameters of its own.
        priors: Prior scales.
        log_partition: Exact solver passed in by `inference`.
        support: All subsets, or the non-empty ones.

    Raises:
        ValueError: If `variant` is `fixed`.
    """
    if variant is Variant.FIXED:
        raise ValueError("variant=fixed has no parameters of its own: fit `independent` and hold the coupling")
    population: dict[str, Array] = {}
    for site in population_sites(variant):
        prior = priors.distribution(site)
        if site == "gamma":
            prior = prior.expand((batch.num_channels,)).to_event(1)
        population[site] = jnp.asarray(numpyro.sample(site, prior))
    with numpyro.plate("databases", batch.num_databases):
        u = numpyro.sample("u", dist.Normal(0.0, 1.0))
        v = numpyro.sample("v", dist.Normal(0.0, 1.0))
    intercept, coupling = database_parameters(variant, population, jnp.stack([u, v], axis=-1), priors)
    numpyro.deterministic("alpha_d", intercept)
    numpyro.deterministic("beta_d", coupling)
    scores = log_likelihood_by_database(batch, intercept, population["gamma"], coupling, log_partition, support)
    numpyro.factor("log_likelihood", scores.sum())
