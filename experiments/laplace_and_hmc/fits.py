"""The four fits of one set, timed after compilation where they compile."""

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from bayeslink.evidence.channel import Evidence, Standardisation
from bayeslink.inference.fit import named_draws
from bayeslink.inference.hmc import HmcFit, nuts
from bayeslink.inference.joint import draw_joint, laplace_joint
from bayeslink.inference.laplace import draw_effects, laplace
from bayeslink.inference.nested import FEW_LISTED, NestedFit, nested
from bayeslink.inference.packing import pack
from bayeslink.inference.posterior import Posterior
from bayeslink.model.autologistic import Support
from bayeslink.model.hierarchy import Design, Variant
from bayeslink.model.priors import Priors

FITS = ("joint_mode", "laplace", "nested", "nuts")


def _timed(seconds: dict[str, float], name: str, function: Callable[[], Any]) -> Any:
    """Result of a second call; seconds of the first, with compilation, and of the second, without."""
    for call in (f"{name}_with_compilation", name):
        began = time.perf_counter()
        result = function()
        seconds[call] = time.perf_counter() - began
    return result


def fitted_posteriors(
    evidences: Sequence[Evidence], config: Mapping
) -> tuple[dict[str, Posterior], dict[str, float], HmcFit]:
    """A posterior and its seconds for each of `FITS`, and the NUTS run itself.

    Programs come from no cache. NUTS is timed with its compilation, the others with theirs and without.
    """
    standardisation = Standardisation.fit(evidences)
    ready = [standardisation.apply(item) for item in evidences]
    batch, few, none = pack(ready), pack(ready, FEW_LISTED), pack(ready, 0)
    variant, priors, support = Variant(config["variant"]), Priors(), Support.ALL
    design, size, seed = Design.of(batch, variant), config["draws"], config["seed"]
    keys = tuple(item.key for item in evidences)
    seconds: dict[str, float] = {}
    drawn: dict[str, tuple[np.ndarray, np.ndarray]] = {}

    joint = _timed(seconds, "joint_mode", lambda: laplace_joint(batch, design, priors, support))
    drawn["joint_mode"] = draw_joint(joint, size, np.random.default_rng(seed))
    mode = _timed(seconds, "laplace", lambda: laplace(batch, design, priors, support))

    def marginal() -> tuple[np.ndarray, np.ndarray]:
        rng = np.random.default_rng(seed)
        phi = rng.multivariate_normal(mode.mode, mode.covariance, size=size, method="cholesky")
        return phi, draw_effects(batch, mode, phi, priors, support, rng)

    drawn["laplace"] = marginal()
    points = config["points"]
    weighted = _timed(
        seconds,
        "nested",
        lambda: nested(few, design, priors, support, num_draws=size, seed=seed, num_points=points, start=mode),
    )
    for call in ("", "_with_compilation"):
        seconds[f"nested{call}"] += seconds[f"laplace{call}"]
    drawn["nested"] = weighted.phi, weighted.effects
    began = time.perf_counter()
    chains = nuts(
        none,
        design,
        priors,
        support,
        num_draws=config["chain_draws"],
        num_warmup=config["chain_warmup"],
        num_chains=config["chains"],
        target_accept=config["target_accept"],
        seed=seed,
        progress=True,
        start=mode,
    )
    seconds["nuts"] = time.perf_counter() - began
    kept = np.linspace(0, len(chains.phi) - 1, min(size, len(chains.phi))).astype(int)
    drawn["nuts"] = chains.phi[kept], chains.effects[kept]
    posteriors = {
        fit: Posterior(
            variant,
            fit,
            support,
            standardisation,
            named_draws(batch, design, priors, *drawn[fit]),
            keys,
            info=_checks(weighted) if fit == "nested" else {},
        )
        for fit in FITS
    }
    return posteriors, seconds, chains


def _checks(fit: NestedFit) -> dict[str, float]:
    """What says whether the weights can be trusted."""
    return {
        "pareto_k": fit.pareto_k,
        "effective_points": fit.effective_points,
        "inner_effective_share": fit.inner_effective_share,
    }
