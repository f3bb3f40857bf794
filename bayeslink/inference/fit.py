"""From evidence to a `Posterior`: standardise, pack, fit, draw.

Draws of the population parameters come from the Gaussian at the outer mode; given each, the effects of
every database come from the Gaussian at the inner mode (see `laplace`). `laplace_joint` draws from the
Gaussian at the joint mode instead, whose sigma is biased: for comparison only (see `joint`).
"""

from collections.abc import Sequence

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from bayeslink.evidence.channel import Evidence, Standardisation
from bayeslink.inference.hmc import nuts
from bayeslink.inference.joint import JointFit, draw_joint, laplace_joint
from bayeslink.inference.laplace import (
    GRADIENT_TOLERANCE,
    INNER_TOLERANCE,
    LaplaceFit,
    draw_effects,
    laplace,
)
from bayeslink.inference.nested import FEW_LISTED, PARETO_LIMIT, nested
from bayeslink.inference.packing import pack
from bayeslink.inference.population import unpack_population
from bayeslink.inference.posterior import Posterior
from bayeslink.model.autologistic import Support
from bayeslink.model.batch import Batch
from bayeslink.model.hierarchy import Design, Terms, Variant, database_parameters
from bayeslink.model.priors import Priors

__all__ = ["FIXED_COUPLING", "METHODS", "fit", "fit_packed", "named_draws", "pack_for"]

METHODS = ("laplace", "nested", "nuts", "laplace_joint")
"""Ways to fit: marginal Laplace, its importance-weighted form, NUTS; the joint mode for comparison only."""

NUTS_CHAINS = 4
NUTS_DRAWS = 500
"""Least draws of each NUTS chain; fewer cannot pass the checks."""

FIXED_COUPLING = 0.6
"""Coupling of the `fixed` variant where none is given, nats."""


def fit(
    evidences: Sequence[Evidence],
    variant: Variant = Variant.HIERARCHICAL,
    priors: Priors | None = None,
    *,
    support: Support = Support.ALL,
    coupling: float = FIXED_COUPLING,
    num_draws: int = 200,
    seed: int = 0,
    effects: bool = True,
    start: LaplaceFit | None = None,
    method: str = "laplace",
    context: Sequence[str] = (),
    terms: Terms = Terms(),
    forms: Sequence[str] = (),
) -> Posterior:
    """Posterior of a variant on raw evidence, by marginal Laplace unless told otherwise.

    Args:
        evidences: Raw evidence with gold, one per training database.
        variant: The variant.
        priors: Prior scales; the defaults of MODEL.md section 3 where None.
        support: All subsets, or the non-empty ones.
        coupling: The given coupling of `fixed`.
        num_draws: Number of draws.
        seed: Seed of the draws.
        effects: Draw the databases' own parameters too; False where only unseen databases matter.
        start: A fit of the same variant to begin from, for the method "laplace".
        method: One of `METHODS`; "laplace_joint" is biased and for comparison only.
        context: Covariates of the intercept, some of `evidence.context.CONTEXTS`.
        terms: Terms of the hierarchy beyond the paper's.
        forms: Forms of each channel, some of `evidence.forms.FORMS`; the values alone by default.

    Raises:
        ValueError: If the evidence cannot be packed or an argument is out of range.
        FloatingPointError: If the fit does not converge.
    """
    if method == "laplace_joint" and start is not None:
        raise ValueError("start is for method='laplace'; leave it out with method='laplace_joint'")
    standardisation = Standardisation.fit(evidences, context, forms)
    ready = [standardisation.apply(item) for item in evidences]
    batch = pack(ready)
    keys = tuple(item.key for item in evidences)
    return fit_packed(
        batch,
        keys,
        standardisation,
        variant,
        priors or Priors(),
        support=support,
        coupling=coupling,
        num_draws=num_draws,
        seed=seed,
        effects=effects,
        start=start,
        method=method,
        terms=terms,
        value_batch=pack_for(method, ready),
    )[0]


def pack_for(method: str, ready: Sequence[Evidence]) -> Batch | None:
    """The evidence packed as a method's many values of the likelihood want it, or None where it has no wish."""
    listed = {"nested": FEW_LISTED, "nuts": 0}
    return pack(ready, listed[method]) if method in listed else None


def fit_packed(
    batch: Batch,
    keys: tuple[tuple[str, str], ...],
    standardisation: Standardisation,
    variant: Variant,
    priors: Priors,
    *,
    support: Support = Support.ALL,
    coupling: float = FIXED_COUPLING,
    num_draws: int = 200,
    seed: int = 0,
    effects: bool = True,
    start: LaplaceFit | None = None,
    method: str = "laplace",
    terms: Terms = Terms(),
    value_batch: Batch | None = None,
    num_points: int = 512,
    progress: bool = False,
) -> tuple[Posterior, LaplaceFit | JointFit]:
    """As `fit`, on evidence packed once for several variants; also returns the mode behind the draws.

    `value_batch` is the same evidence packed as "nested" (few listed) or "nuts" (none listed) want it.
    """
    if method not in METHODS:
        raise ValueError(f"method={method!r} is not one of {METHODS}")
    if num_draws < 1:
        raise ValueError(f"num_draws={num_draws}: at least one draw is needed")
    if not np.isfinite(coupling):
        raise ValueError(f"coupling={coupling}: a finite number of nats is needed")
    design = Design.of(batch, Variant.INDEPENDENT if variant is Variant.FIXED else variant, terms)
    rng = np.random.default_rng(seed)
    drawn: np.ndarray | None = None
    checks: dict[str, bool] = {}
    info: dict[str, float | int] = {"num_questions": batch.num_questions, "num_databases": len(keys)}
    if method == "laplace_joint":
        found: LaplaceFit | JointFit = laplace_joint(batch, design, priors, support)
        phi, drawn = draw_joint(found, num_draws, rng)
        info["log_density"] = found.log_density
    else:
        found = laplace(batch, design, priors, support, start)
        info |= {"log_marginal": float(found.log_marginal), "inner_gradient": found.inner_gradient}
        checks["inner_converged"] = found.inner_gradient < INNER_TOLERANCE
        values = batch if value_batch is None else value_batch
        if method == "nested":
            weighted = nested(
                values, design, priors, support, num_draws=num_draws, seed=seed, num_points=num_points, start=found
            )
            phi, drawn = weighted.phi, weighted.effects
            checks["pareto_k"] = weighted.pareto_k < PARETO_LIMIT
            info |= {
                "log_marginal": weighted.log_marginal,
                "pareto_k": weighted.pareto_k,
                "effective_points": weighted.effective_points,
                "inner_effective_share": weighted.inner_effective_share,
                "nested_seconds": round(weighted.seconds, 3),
            }
        elif method == "nuts":
            each = -(-num_draws // NUTS_CHAINS)
            run = nuts(
                values, design, priors, support, num_draws=max(each, NUTS_DRAWS), num_chains=NUTS_CHAINS, seed=seed,
                progress=progress, start=found,
            )  # fmt: skip
            kept = np.linspace(0, len(run.phi) - 1, num_draws).astype(int)
            phi, drawn = run.phi[kept], run.effects[kept]
            checks |= run.checks
            info |= run.figures | {"nuts_seconds": round(run.seconds, 3)}
        else:
            phi = rng.multivariate_normal(found.mode, found.covariance, size=num_draws, method="cholesky")
            if effects and design.effects:
                drawn = draw_effects(batch, found, phi, priors, support, rng)
    posterior = Posterior(
        variant,
        method,
        support,
        standardisation,
        named_draws(batch, design, priors, phi, drawn if effects else None),
        keys,
        coupling=float(coupling) if variant is Variant.FIXED else None,
        own_scale=priors.own_scale,
        checks={
            "converged": found.gradient_norm < GRADIENT_TOLERANCE,
            "hessian_negative_definite": bool(np.linalg.eigvalsh(found.covariance).min() > 0),
            **checks,
        },
        info={
            **info,
            "gradient_norm": found.gradient_norm,
            "steps": found.steps,
            "seconds": round(found.seconds, 3),
        },
    )
    return posterior, found


def named_draws(
    batch: Batch,
    design: Design,
    priors: Priors,
    phi: Float[np.ndarray, "draws coordinates"],
    effects: Float[np.ndarray, "draws databases 3"] | None = None,
) -> dict[str, np.ndarray]:
    """Draws by site: the population parameters, and alpha_d, beta_d and scale_d where effects were drawn.

    Args:
        batch: The evidence of the fit, for its covariates.
        design: The design of the fit.
        priors: The fit's prior scales.
        phi: Draws of the population parameters, packed.
        effects: Draws of the databases' effects.
    """
    points = jnp.asarray(phi)
    population = jax.vmap(lambda point: unpack_population(point, design))(points)
    draws = {site: np.asarray(population[site]) for site in design.sites}
    if effects is None or not design.effects:
        return draws

    def own(point: Array, drawn: Array) -> tuple[Array, Array, Array]:
        named = unpack_population(point, design)
        local = database_parameters(design, named, drawn, batch.covariates, priors)
        return local.intercept, local.coupling[:, 0], 1 + named.get("sigma_scale", 0.0) * drawn[:, 2]

    found = jax.vmap(own)(points, jnp.asarray(effects))
    sites = dict(zip(("alpha_d", "beta_d", "scale_d"), found, strict=True))
    return draws | {site: np.asarray(sites[site]) for site in (tuple(sites)[place] for place in design.effects)}
