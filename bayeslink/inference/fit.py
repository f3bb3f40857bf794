"""From evidence to a `Posterior`: standardise, pack, fit, draw.

Draws of the population parameters come from the Gaussian at the outer mode; given each, the effects of
every database come from the Gaussian at the inner mode (see `laplace`). `laplace_joint` draws from the
Gaussian at the joint mode instead, whose sigma is biased: for comparison only (see `joint`).
"""

from collections.abc import Sequence

import jax
import numpy as np

from bayeslink.evidence.channel import Evidence, Standardisation
from bayeslink.inference.joint import draw_joint, laplace_joint
from bayeslink.inference.laplace import (
    GRADIENT_TOLERANCE,
    INNER_TOLERANCE,
    LaplaceFit,
    draw_effects,
    laplace,
    unpack_population,
)
from bayeslink.inference.packing import pack
from bayeslink.inference.posterior import Posterior
from bayeslink.model.autologistic import Support
from bayeslink.model.batch import Batch
from bayeslink.model.hierarchy import Variant
from bayeslink.model.priors import Priors

__all__ = ["FIXED_COUPLING", "METHODS", "fit", "fit_packed"]

METHODS = ("laplace", "laplace_joint")
"""Ways to fit: the marginal Laplace fit, and the joint mode for comparison with the paper only."""

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

    Raises:
        ValueError: If the evidence cannot be packed or an argument is out of range.
        FloatingPointError: If the fit does not converge.
    """
    if method not in METHODS:
        raise ValueError(f"method={method!r} is not one of {METHODS}")
    if method == "laplace_joint" and start is not None:
        raise ValueError("start is for method='laplace'; leave it out with method='laplace_joint'")
    standardisation = Standardisation.fit(evidences)
    batch = pack([standardisation.apply(item) for item in evidences])
    keys = tuple(item.key for item in evidences)
    if method == "laplace_joint":
        return _fit_joint(
            batch, keys, standardisation, variant, priors or Priors(), support, coupling, num_draws, seed, effects
        )
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
    )[0]


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
) -> tuple[Posterior, LaplaceFit]:
    """As `fit`, on evidence packed once for several variants; also returns the Laplace fit."""
    _check_draws(num_draws)
    if not np.isfinite(coupling):
        raise ValueError(f"coupling={coupling}: a finite number of nats is needed")
    fitted = Variant.INDEPENDENT if variant is Variant.FIXED else variant
    found = laplace(batch, fitted, priors, support, start)
    rng = np.random.default_rng(seed)
    phi = rng.multivariate_normal(found.mode, found.covariance, size=num_draws, method="cholesky")
    draws = _population_draws(phi, found.sites, batch.num_channels)
    if effects and any(_varies(variant)):
        draws |= _effect_draws(variant, *draw_effects(batch, found, phi, fitted, priors, support, rng))
    posterior = Posterior(
        variant,
        "laplace",
        support,
        standardisation,
        draws,
        keys,
        coupling=float(coupling) if variant is Variant.FIXED else None,
        own_scale=priors.own_scale,
        checks={
            "converged": found.gradient_norm < GRADIENT_TOLERANCE,
            "inner_converged": found.inner_gradient < INNER_TOLERANCE,
            "hessian_negative_definite": bool(np.linalg.eigvalsh(found.covariance).min() > 0),
        },
        info={
            "num_questions": batch.num_questions,
            "num_databases": len(keys),
            "inner_gradient": found.inner_gradient,
            "log_marginal": float(found.log_marginal),
            "gradient_norm": found.gradient_norm,
            "steps": found.steps,
            "seconds": round(found.seconds, 3),
        },
    )
    return posterior, found


def _fit_joint(
    batch: Batch,
    keys: tuple[tuple[str, str], ...],
    standardisation: Standardisation,
    variant: Variant,
    priors: Priors,
    support: Support,
    coupling: float,
    num_draws: int,
    seed: int,
    effects: bool,
) -> Posterior:
    _check_draws(num_draws)
    if not np.isfinite(coupling):
        raise ValueError(f"coupling={coupling}: a finite number of nats is needed")
    fitted = Variant.INDEPENDENT if variant is Variant.FIXED else variant
    found = laplace_joint(batch, fitted, priors, support)
    phi, intercepts, couplings = draw_joint(found, fitted, priors, num_draws, np.random.default_rng(seed))
    draws = _population_draws(phi, found.sites, batch.num_channels)
    if effects:
        draws |= _effect_draws(variant, intercepts, couplings)
    return Posterior(
        variant,
        "laplace_joint",
        support,
        standardisation,
        draws,
        keys,
        coupling=float(coupling) if variant is Variant.FIXED else None,
        own_scale=priors.own_scale,
        checks={"converged": True, "hessian_negative_definite": True},
        info={
            "num_questions": batch.num_questions,
            "num_databases": len(keys),
            "log_density": found.log_density,
            "gradient_norm": found.gradient_norm,
            "steps": found.steps,
            "seconds": round(found.seconds, 3),
        },
    )


def _check_draws(num_draws: int) -> None:
    if num_draws < 1:
        raise ValueError(f"num_draws={num_draws}: at least one draw is needed")


def _varies(variant: Variant) -> tuple[bool, bool]:
    """Whether the intercept and the coupling have database effects."""
    structure = variant.structure
    return structure.intercept in ("partial", "own"), structure.coupling in ("partial", "own")


def _population_draws(phi: np.ndarray, sites: tuple[str, ...], num_channels: int) -> dict[str, np.ndarray]:
    unpacked = jax.vmap(lambda row: unpack_population(row, sites, num_channels))(phi)
    return {site: np.asarray(value) for site, value in unpacked.items()}


def _effect_draws(variant: Variant, intercepts: np.ndarray, couplings: np.ndarray) -> dict[str, np.ndarray]:
    drawn = {"alpha_d": intercepts, "beta_d": couplings}
    return {site: drawn[site] for site, varies in zip(drawn, _varies(variant), strict=True) if varies}
