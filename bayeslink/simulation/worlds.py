"""Worlds from the prior: population parameters, databases' effects, evidence, and gold drawn exactly.

    parameters ~ priors,   u_d, v_d, w_d ~ N(0, 1),   z ~ N(0, 1),   y ~ p(. | z, G, theta_d)

(MODEL.md sections 2 and 3; the equations are those of `model`.) The evidence is not standardised again, since
the true parameters refer to it as it is. Graphs and sizes are the setting's, so all its worlds have arrays of
the same shapes and one compiled fit serves them all. A selection is drawn by listing the subsets: the largest of
log p(x) + Gumbel noise is an exact draw (Gumbel 1954).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from bayeslink.evidence.channel import Evidence
from bayeslink.evidence.structure import COVARIATES, EDGE_TYPES
from bayeslink.inference import enumeration
from bayeslink.inference.fit import named_draws
from bayeslink.inference.packing import pack
from bayeslink.inference.population import pack_population, unpack_population
from bayeslink.model.autologistic import Support, unary_log_odds
from bayeslink.model.batch import Batch, LocalParameters
from bayeslink.model.hierarchy import EFFECTS, Design, Terms, Variant, database_parameters
from bayeslink.model.priors import Priors

__all__ = ["Setting", "World", "draw_world", "named_parameters"]

PAPER_TERMS = Terms()
"""No terms beyond the paper's."""


@dataclass(frozen=True)
class Setting:
    """What all worlds have in common.

    Attributes:
        num_databases: Number of databases; database d has graph d modulo the number of graphs.
        num_questions: Number of questions of each database.
        graphs: Edges of each graph, pairs of node positions.
        num_tables: Number of tables of every graph, at most `enumeration.MAX_TABLES`.
        num_channels: Number of channels of evidence.
        support: All subsets, or the non-empty ones.
        variant: Any variant but `fixed`, which has no parameters of its own.
        terms: Terms of the hierarchy beyond the paper's.
        num_contexts: Number of covariates of the intercept.

    Raises:
        ValueError: If a size is not positive, there is no graph, or the variant is `fixed`.
    """

    num_databases: int
    num_questions: int
    graphs: tuple[tuple[tuple[int, int], ...], ...]
    num_tables: int
    num_channels: int
    support: Support = Support.ALL
    variant: Variant = Variant.HIERARCHICAL
    terms: Terms = PAPER_TERMS
    num_contexts: int = 0

    def __post_init__(self) -> None:
        for name in ("num_databases", "num_questions", "num_tables", "num_channels"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name}={getattr(self, name)}: a world needs at least one")
        if not self.graphs:
            raise ValueError("graphs is empty: give the edges of at least one graph; () has none")
        if self.variant is Variant.FIXED:
            raise ValueError("variant=fixed has no parameters of its own: use another variant")

    @property
    def design(self) -> Design:
        """The design whose parameters are drawn; equal to `Design.of` of a world's batch."""
        kinds = len(EDGE_TYPES) if self.terms.edge_types else 1
        return Design(self.variant, self.terms, self.num_channels, self.num_contexts, len(COVARIATES), kinds)


@dataclass(frozen=True, eq=False)
class World:
    """Evidence with gold whose parameters are known.

    Attributes:
        evidences: One per database, ready for `packing.pack`.
        population: True population parameters by site, on their natural scale.
        effects: True effects (u_d, v_d, w_d); 0 where the design has none.
    """

    evidences: tuple[Evidence, ...]
    population: Mapping[str, Float[np.ndarray, "..."]]
    effects: Float[np.ndarray, "databases 3"]

    @cached_property
    def batch(self) -> Batch:
        """The evidence packed for a fit."""
        return pack(self.evidences)

    def truth(self, design: Design, priors: Priors) -> dict[str, np.ndarray]:
        """True parameters by the names of `named_parameters`, without its axis draws."""
        phi = pack_population({site: jnp.asarray(value) for site, value in self.population.items()}, design)
        named = named_parameters(self.batch, design, priors, np.asarray(phi)[None], self.effects[None])
        return {name: np.asarray(value[0]) for name, value in named.items()}


def named_parameters(
    batch: Batch,
    design: Design,
    priors: Priors,
    phi: Float[np.ndarray, "draws coordinates"],
    effects: Float[np.ndarray, "draws databases 3"],
) -> dict[str, np.ndarray]:
    """Draws by name, one name for what is exchangeable.

    Population parameters are named one by one ("alpha", "gamma_0", "log_sigma_alpha", ...); effects ("u", "v", "w")
    and the databases' own parameters ("alpha_d", "beta_d", "scale_d") have an axis databases.

    Args:
        batch: The evidence, for its covariates.
        design: The design.
        priors: Prior scales.
        phi: Draws of the population parameters, packed.
        effects: Draws of the effects.
    """
    named: dict[str, np.ndarray] = {}
    for site, value in named_draws(batch, design, priors, phi, effects).items():
        if site.endswith("_d"):
            named[site] = value
        elif value.ndim > 1:
            named |= {f"{site}_{place}": value[:, place] for place in range(value.shape[1])}
        else:
            named |= {f"log_{site}": np.log(value)} if site.startswith("sigma") else {site: value}
    return named | {EFFECTS[place]: effects[:, :, place] for place in design.effects}


def draw_world(rng: np.random.Generator, priors: Priors, setting: Setting) -> World:
    """One world: parameters from the prior, standard normal evidence and covariates, exact gold selections.

    Args:
        rng: Source of everything random.
        priors: Prior scales.
        setting: Sizes, graphs, variant and support.
    """
    design = setting.design
    population = _draw_population(rng, priors, design)
    effects = np.zeros((setting.num_databases, len(EFFECTS)))
    columns = list(design.effects)
    effects[:, columns] = rng.standard_normal((setting.num_databases, len(columns)))
    covariates = rng.standard_normal((setting.num_databases, len(COVARIATES)))
    local = database_parameters(design, population, jnp.asarray(effects), jnp.asarray(covariates), priors)
    evidences = tuple(
        _draw_evidence(rng, setting, place, local, covariates[place]) for place in range(setting.num_databases)
    )
    return World(evidences, {site: np.asarray(value) for site, value in population.items()}, effects)


def _draw_population(rng: np.random.Generator, priors: Priors, design: Design) -> dict[str, Array]:
    keys = jax.random.split(jax.random.key(int(rng.integers(2**32))), len(design.sites))
    drawn = {
        site: jnp.asarray(priors.distribution(site).sample(key, (size,)))
        for key, (site, size) in zip(keys, design.sites.items(), strict=True)
    }
    # There and back, so that scalars and vectors are what `database_parameters` takes them for.
    return unpack_population(pack_population(drawn, design), design)


def _draw_evidence(
    rng: np.random.Generator,
    setting: Setting,
    place: int,
    local: LocalParameters,
    covariates: Float[np.ndarray, " covariates"],
) -> Evidence:
    edges = np.array(setting.graphs[place % len(setting.graphs)], dtype=np.int64).reshape(-1, 2)
    kinds = rng.integers(len(EDGE_TYPES), size=len(edges)) if setting.terms.edge_types else np.zeros(len(edges), int)
    shape = setting.num_questions, setting.num_tables
    values = rng.standard_normal((*shape, setting.num_channels))
    contexts = rng.standard_normal((setting.num_questions, setting.num_contexts))
    intercepts = local.intercept[place] + jnp.asarray(contexts) @ local.context
    unary = unary_log_odds(jnp.asarray(values), 0.0, local.slopes[place]) + intercepts[:, None]
    # A single column of couplings serves every kind of edge.
    coupling = local.coupling[place][jnp.minimum(kinds, local.coupling.shape[1] - 1)]
    return Evidence(
        "simulated",
        f"database_{place}",
        (*(f"channel_{k}" for k in range(setting.num_channels)), *(f"context_{k}" for k in range(contexts.shape[1]))),
        np.concatenate([values, np.broadcast_to(contexts[:, None], (*shape, contexts.shape[1]))], axis=2),
        edges,
        kinds,
        covariates,
        _draw_selections(rng, unary, enumeration.plan(edges, setting.num_tables), coupling, setting.support),
        num_contexts=setting.num_contexts,
    )


def _draw_selections(
    rng: np.random.Generator,
    unary: Float[Array, "questions tables"],
    plan: enumeration.StatePlan,
    coupling: Float[Array, " edges"],
    support: Support,
) -> Bool[np.ndarray, "questions tables"]:
    # Copied: NumPy's view of a JAX array cannot be written to.
    log_prob = np.array(enumeration.log_probabilities(unary, plan, coupling))
    if support is Support.NON_EMPTY:
        log_prob[:, 0] = -np.inf
    best = (log_prob + rng.gumbel(size=log_prob.shape)).argmax(axis=1)
    return np.asarray(plan.states)[best].astype(bool)
