"""The hierarchical model and its variants (MODEL.md section 3).

    alpha_d = alpha + sigma_alpha u_d,   beta_d = beta + sigma_beta v_d,   u_d, v_d ~ N(0, 1)

Every variant is this model with some terms held: a variant says where the intercept and the coupling
of a database come from. `Terms` adds what the paper does not have, each one argument away and alike for
every variant:

    a_t      = alpha_d + kappa . w_q + s_d gamma . z_t       w_q: covariates of the question and its database
    s_d      = 1 + sigma_scale w_d                           the evidence's weight varies over databases
    beta_de  = beta_d + lambda . c_d + delta_type(e)         covariates of the database; kinds of edges
    v_d     -> rho u_d + sqrt(1 - rho^2) v_d                 intercept and coupling may be correlated

`log_likelihood_by_database` supplies the data's part.
"""

from enum import StrEnum
from typing import NamedTuple

import jax.numpy as jnp
import numpyro
import numpyro.distributions as dist
from jaxtyping import Array, Float

from bayeslink.model.autologistic import Support
from bayeslink.model.batch import Batch, LocalParameters, LogPartition, log_likelihood_by_database
from bayeslink.model.priors import Priors

__all__ = [
    "EFFECTS",
    "Design",
    "Structure",
    "Terms",
    "Variant",
    "database_parameters",
    "hierarchical_model",
    "log_prior",
]

EFFECTS = ("u", "v", "w")
"""Standard normal effects of a database: on the intercept, the coupling and the evidence's weight."""


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


class Terms(NamedTuple):
    """What the hierarchy has beyond the paper's; a variant takes what its structure has room for.

    Covariates of the intercept are asked for at the standardisation (`Standardisation.fit(..., context=...)`),
    since prediction needs them too.

    Attributes:
        correlated: Intercept and coupling effects may be correlated (variants where both vary).
        slope_scale: The evidence's weight varies over databases (variants whose intercept varies).
        edge_types: Each kind of edge has its own coupling (variants that estimate a coupling).
        coupling_covariates: The coupling depends on the database's covariates (the same, without `unpooled`).
    """

    correlated: bool = False
    slope_scale: bool = False
    edge_types: bool = False
    coupling_covariates: bool = False


class Design(NamedTuple):
    """A variant with its terms and sizes: which parameters there are, and how they make a database's own.

    Attributes:
        variant: The variant.
        terms: Terms beyond the paper's.
        num_channels: Number of channels K.
        num_contexts: Number of covariates of the intercept.
        num_covariates: Number of covariates of the coupling.
        num_edge_types: Number of kinds of edges that are told apart.
    """

    variant: Variant
    terms: Terms
    num_channels: int
    num_contexts: int = 0
    num_covariates: int = 0
    num_edge_types: int = 1

    @classmethod
    def of(cls, batch: Batch, variant: Variant, terms: Terms = Terms()) -> "Design":
        """The design of a variant for a batch."""
        return cls(
            variant,
            terms,
            batch.num_channels,
            batch.num_contexts,
            batch.covariates.shape[1],
            batch.num_edge_types if terms.edge_types else 1,
        )

    @property
    def estimates_coupling(self) -> bool:
        """Whether a coupling is estimated in any way."""
        return self.variant.structure.coupling not in ("zero", "given")

    @property
    def effects(self) -> tuple[int, ...]:
        """Positions in `EFFECTS` of the effects that this design has."""
        structure = self.variant.structure
        found = [0] if structure.intercept in ("partial", "own") else []
        if structure.coupling in ("partial", "own"):
            found.append(1)
        if self.terms.slope_scale and structure.intercept == "partial":
            found.append(2)
        return tuple(found)

    @property
    def sites(self) -> dict[str, int]:
        """Population parameters that are estimated, in order, with their sizes; `fixed` has none of its own."""
        structure = self.variant.structure
        pooled = structure.coupling in ("pooled", "partial")
        sizes = {
            "alpha": int(structure.intercept != "own"),
            "kappa": self.num_contexts,
            "gamma": self.num_channels,
            "beta": int(pooled),
            "lambda": self.num_covariates if self.terms.coupling_covariates and pooled else 0,
            "delta": self.num_edge_types - 1 if self.terms.edge_types and self.estimates_coupling else 0,
            "sigma_alpha": int(structure.intercept == "partial"),
            "sigma_beta": int(structure.coupling == "partial"),
            "sigma_scale": int(2 in self.effects),
            "rho": int(self.terms.correlated and structure == Structure("partial", "partial")),
        }
        return {site: size for site, size in sizes.items() if size}

    @property
    def size(self) -> int:
        """Number of population parameters."""
        return sum(self.sites.values())

    @property
    def num_coordinates(self) -> int:
        """Number of a question's own parameters that the data inform: intercept, slopes, couplings."""
        return 1 + self.num_channels + (self.num_edge_types if self.estimates_coupling else 0)


_VECTORS = ("kappa", "gamma", "lambda", "delta")


def database_parameters(
    design: Design,
    population: dict[str, Array],
    effects: Float[Array, "databases 3"],
    covariates: Float[Array, "databases covariates"],
    priors: Priors,
) -> LocalParameters:
    """Each database's own parameters from the population parameters and the effects (u_d, v_d, w_d).

    Args:
        design: The variant and its terms.
        population: The design's population parameters by site.
        effects: Standard normal effects; ignored where the design has none.
        covariates: Standardised covariates of the coupling.
        priors: For the wide prior of `unpooled`.
    """
    structure = design.variant.structure
    own = priors.own_scale
    u, v, w = effects[:, 0], effects[:, 1], effects[:, 2]
    if "rho" in population:
        rho = population["rho"]
        v = rho * u + jnp.sqrt(1 - rho**2) * v
    zero = jnp.zeros(effects.shape[0])
    intercept_sd = population.get("sigma_alpha", own if structure.intercept == "own" else 0.0)
    coupling_sd = population.get("sigma_beta", own if structure.coupling == "own" else 0.0)
    intercept = zero + population.get("alpha", 0.0) + intercept_sd * u
    slopes = (1 + population.get("sigma_scale", 0.0) * w)[:, None] * population["gamma"]
    coupling = zero + population.get("beta", 0.0) + coupling_sd * v
    if "lambda" in population:
        coupling = coupling + covariates @ population["lambda"]
    offsets = jnp.concatenate([jnp.zeros(1), population["delta"]]) if "delta" in population else jnp.zeros(1)
    context = population.get("kappa", jnp.zeros(design.num_contexts))
    return LocalParameters(intercept, context, slopes, coupling[:, None] + offsets)


def log_prior(population: dict[str, Array], priors: Priors) -> Float[Array, ""]:
    """Log prior density of the population parameters on their natural scale (sigma > 0), nats."""
    return sum(
        (jnp.sum(priors.distribution(site).log_prob(value)) for site, value in population.items()), jnp.zeros(())
    )


def hierarchical_model(
    batch: Batch,
    design: Design,
    priors: Priors,
    log_partition: LogPartition,
    support: Support = Support.ALL,
) -> None:
    """NumPyro model of a variant, non-centred.

    Args:
        batch: Evidence and gold selections.
        design: Any variant but `fixed`, which has no parameters of its own, with its terms.
        priors: Prior scales.
        log_partition: Exact solver passed in by `inference`.
        support: All subsets, or the non-empty ones.

    Raises:
        ValueError: If the variant is `fixed`.
    """
    if design.variant is Variant.FIXED:
        raise ValueError("variant=fixed has no parameters of its own: fit `independent` and hold the coupling")
    population: dict[str, Array] = {}
    for site, size in design.sites.items():
        prior = priors.distribution(site)
        if site in _VECTORS:
            prior = prior.expand((size,)).to_event(1)
        population[site] = jnp.asarray(numpyro.sample(site, prior))
    effects = jnp.zeros((batch.num_databases, len(EFFECTS)))
    with numpyro.plate("databases", batch.num_databases):
        for place in design.effects:
            effects = effects.at[:, place].set(numpyro.sample(EFFECTS[place], dist.Normal(0.0, 1.0)))
    local = database_parameters(design, population, effects, batch.covariates, priors)
    numpyro.deterministic("alpha_d", local.intercept)
    numpyro.deterministic("beta_d", local.coupling[:, 0])
    if 2 in design.effects:
        numpyro.deterministic("scale_d", 1 + population["sigma_scale"] * effects[:, 2])
    numpyro.factor("log_likelihood", log_likelihood_by_database(batch, local, log_partition, support).sum())
