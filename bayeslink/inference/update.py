"""A saved population posterior meets the labelled questions of one database (sequential use).

The draws phi_s of the population parameters are the prior of the new data: each carries the weight
p(D_d | phi_s), by the Laplace approximation over the database's effects (table effects included, where the
posterior has them), and the effects are drawn from the Gaussian at their mode for that draw:

    p(phi, e_d | D, D_d)  ~  sum_s  p(D_d | phi_s)  delta(phi - phi_s)  N(e_d; e*_s, K_s^-1)

One database moves the population little, so the weights are even; their Pareto k says so or not. No
population fit is repeated: an update takes seconds.
"""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from bayeslink.evidence.channel import Evidence
from bayeslink.inference.fit import named_draws
from bayeslink.inference.laplace import Settings
from bayeslink.inference.nested import PARETO_LIMIT, smoothed, systematic
from bayeslink.inference.packing import pack
from bayeslink.inference.population import pack_population
from bayeslink.inference.posterior import Posterior
from bayeslink.inference.tables import (
    GRADIENT_LIMIT,
    MOST_EVALUATIONS,
    NEWTON_STEPS,
    TableScale,
    database_modes,
    fit_table_effects,
    num_tables_of,
)
from bayeslink.model.batch import Batch
from bayeslink.model.hierarchy import EFFECTS, Design, Terms, Variant
from bayeslink.model.priors import Priors

__all__ = ["table_scale", "update", "with_table_effects"]

OWN_SITES = ("alpha_d", "beta_d", "scale_d", "tau")
MOST_STEPS = NEWTON_STEPS
"""Most Newton steps for each draw, from the mode at the mean of the draws."""


def with_table_effects(posterior: Posterior, scale: TableScale) -> Posterior:
    """The population posterior with table effects of this spread; see `tables.fit_table_effects`.

    Args:
        posterior: A posterior without table effects; what it holds of single databases is dropped.
        scale: Spread and the changes to the population parameters that go with it.
    """
    changed = {
        "alpha": lambda draws: draws + scale.intercept_shift,
        "beta": lambda draws: draws + scale.coupling_shift,
        "gamma": lambda draws: draws * scale.slope_factor,
        "kappa": lambda draws: draws * scale.slope_factor,
    }
    draws = {
        site: changed[site](value) if site in changed else value
        for site, value in posterior.draws.items()
        if site not in OWN_SITES
    }
    draws["sigma_table"] = np.full(posterior.num_draws, scale.sigma_table)
    return replace(posterior, draws=draws)


def table_scale(posterior: Posterior, evidences: Sequence[Evidence], max_steps: int = MOST_EVALUATIONS) -> TableScale:
    """The spread of table effects for a posterior, from evidence that it was fitted on.

    Args:
        posterior: A population posterior without table effects.
        evidences: Raw evidence with gold of training databases of at most `MAX_LISTED` tables.
        max_steps: Most evaluations of the search.
    """
    batch = pack([posterior.standardisation.apply(item) for item in evidences])
    design = _design(batch, posterior)
    draws = {site: jnp.asarray(posterior.draws[site]) for site in design.sites}
    phi = jax.vmap(lambda point: pack_population(point, design))(draws).mean(axis=0)
    priors = Priors(own_scale=posterior.own_scale)
    return fit_table_effects(batch, design, np.asarray(phi), priors, posterior.support, max_steps)


def update(posterior: Posterior, evidence: Evidence, seed: int = 0) -> Posterior:
    """The posterior after the labelled questions of one database.

    Give all labelled questions of a database at once, to the population posterior: an update of an update drops the
    earlier database's effects, and the weights that its questions gave the draws stay.

    Args:
        posterior: A population posterior.
        evidence: Raw evidence of the database's labelled questions, with gold.
        seed: Seed of the draws.

    Returns:
        A posterior with as many draws that knows this database alone: `seen(evidence.key)` is its own; the
        others that its population learnt from are named in `earlier`.

    Raises:
        ValueError: If there is no labelled question, the channels differ, or the variant is `fixed` or
            `unpooled`, which have no population to learn from.
        FloatingPointError: If the database's effects do not converge for some draw.
    """
    if posterior.variant in (Variant.FIXED, Variant.UNPOOLED):
        raise ValueError(
            f"variant={posterior.variant.value} has no population to start a database from; use `hierarchical`"
        )
    if evidence.gold is None or not evidence.num_questions:
        raise ValueError(f"evidence of {evidence.key} has no labelled question; an update needs at least one")
    ready = posterior.standardisation.apply(evidence)
    batch = pack([ready])
    population = {site: value for site, value in posterior.draws.items() if site not in OWN_SITES}
    design = _design(batch, posterior)
    settings = Settings(design, Priors(own_scale=posterior.own_scale), posterior.support)
    phi = jax.vmap(lambda point: pack_population(point, design))(
        {site: jnp.asarray(population[site]) for site in design.sites}
    )
    sigma = jnp.asarray(population.get("sigma_table", np.ones(posterior.num_draws)))
    size = num_tables_of(batch) if "sigma_table" in population else 0
    rng = np.random.default_rng(seed)
    noise = rng.standard_normal((len(phi), 1, len(design.effects) + size))
    effects, tables, log_weights, gradients = (
        np.asarray(part) for part in _drawn(batch, phi, sigma, jnp.asarray(noise), settings, size, MOST_STEPS)
    )
    if not np.isfinite(log_weights).all():
        raise FloatingPointError(f"evidence of {evidence.key}: an update has no finite likelihood; check the evidence")
    if not gradients.max() < GRADIENT_LIMIT:
        raise FloatingPointError(
            f"evidence of {evidence.key}: an update does not converge in {MOST_STEPS} steps, largest gradient "
            f"{gradients.max():.2g}; check the evidence"
        )
    weights, pareto_k = smoothed(log_weights)
    chosen = systematic(np.exp(weights), len(phi), rng)
    draws = named_draws(batch, design, settings.priors, np.asarray(phi)[chosen], effects[chosen])
    if size:
        draws |= {"sigma_table": np.asarray(sigma)[chosen], "tau": tables[chosen, 0, : evidence.num_tables]}
    return replace(
        posterior,
        draws=draws,
        databases=(evidence.key,),
        earlier=posterior.trained,
        checks={**posterior.checks, "update_weights_even": pareto_k < PARETO_LIMIT},
        info={
            **posterior.info,
            "update_questions": evidence.num_questions,
            "update_pareto_k": pareto_k,
            "update_largest_gradient": float(gradients.max()),
            "update_effective_draws": float(1 / (np.exp(weights) ** 2).sum()),
        },
    )


def _design(batch: Batch, posterior: Posterior) -> Design:
    sites = posterior.draws
    terms = Terms("rho" in sites, "sigma_scale" in sites, "delta" in sites, "lambda" in sites)
    return Design.of(batch, posterior.variant, terms)


@partial(jax.jit, static_argnames=("settings", "size", "max_steps"))
def _drawn(
    batch: Batch, phi: Array, sigma: Array, noise: Array, settings: Settings, size: int, max_steps: int
) -> tuple[Array, Array, Array, Array]:
    """Effects, table effects, log p(D_d | phi) and the largest gradient entry of each draw."""
    count = len(settings.design.effects)
    places = jnp.array(settings.design.effects, dtype=int)
    nowhere = jnp.zeros((1, len(EFFECTS))), jnp.zeros((1, size))
    centre = database_modes(batch, phi.mean(axis=0), sigma.mean(), *nowhere, settings, max_steps)

    def draw(given: tuple[Array, Array, Array]) -> tuple[Array, Array, Array, Array]:
        point, spread, normal = given
        found = database_modes(batch, point, spread, centre.effects, centre.tables, settings, max_steps)
        factor = jnp.linalg.cholesky(found.precision)
        jitter = jax.scipy.linalg.solve_triangular(factor, normal[..., None], lower=True, trans=1)[..., 0]
        effects = found.effects.at[:, places].add(jitter[:, :count])
        return effects, found.tables + spread * jitter[:, count:], found.log_marginal.sum(), found.gradient

    return jax.lax.map(draw, (phi, sigma, noise))
