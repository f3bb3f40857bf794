"""The fits that are ranked: from a world and a seed to named draws."""

from collections.abc import Callable, Mapping
from functools import lru_cache

import numpy as np

from bayeslink.inference.hmc import nuts
from bayeslink.inference.joint import draw_joint, laplace_joint
from bayeslink.inference.laplace import draw_effects, laplace
from bayeslink.inference.nested import NestedFit, nested
from bayeslink.inference.packing import pack
from bayeslink.model.priors import Priors
from bayeslink.simulation.calibration import DIAGNOSTIC, overconfident, thinned
from bayeslink.simulation.worlds import Setting, World, named_parameters

Fitter = Callable[[World, int], Mapping[str, np.ndarray] | None]


def fitters_of(config: Mapping, setting: Setting, priors: Priors, nuts_worlds: set[World]) -> dict[str, Fitter]:
    """Fitters by name, all with `draws` draws; NUTS sits out all but `nuts_worlds`."""
    design, num_draws = setting.design, config["draws"]

    def named(world: World, phi: np.ndarray, effects: np.ndarray) -> dict[str, np.ndarray]:
        return named_parameters(world.batch, design, priors, phi, effects)

    # Three fits of a world begin from the same marginal mode, two share the nested draws.
    @lru_cache(maxsize=1)
    def marginal(world: World):
        return laplace(world.batch, design, priors, setting.support)

    @lru_cache(maxsize=1)
    def nested_fit(world: World, seed: int) -> NestedFit:
        start = marginal(world)
        return nested(world.batch, design, priors, setting.support, num_draws=num_draws, seed=seed, start=start)

    def nested_draws(world: World, seed: int) -> dict[str, np.ndarray]:
        fit = nested_fit(world, seed)
        return named(world, fit.phi, fit.effects) | {f"{DIAGNOSTIC}pareto_k": np.float64(fit.pareto_k)}

    def joint_mode(world: World, seed: int) -> dict[str, np.ndarray]:
        fit = laplace_joint(world.batch, design, priors, setting.support)
        return named(world, *draw_joint(fit, num_draws, np.random.default_rng(seed)))

    def marginal_laplace(world: World, seed: int) -> dict[str, np.ndarray]:
        fit, rng = marginal(world), np.random.default_rng(seed)
        phi = rng.multivariate_normal(fit.mode, fit.covariance, size=num_draws, method="cholesky")
        return named(world, phi, draw_effects(world.batch, fit, phi, priors, setting.support, rng))

    def by_nuts(world: World, seed: int) -> dict[str, np.ndarray] | None:
        if world not in nuts_worlds:
            return None
        sizes = {
            name: config[key]
            for name, key in (("num_draws", "chain_draws"), ("num_warmup", "chain_warmup"), ("num_chains", "chains"))
        }
        eliminated = pack(world.evidences, max_listed=0)
        start = marginal(world)
        fit = nuts(eliminated, design, priors, setting.support, seed=seed, start=start, **sizes)
        said = {f"{DIAGNOSTIC}{name}": np.float64(value) for name, value in fit.figures.items()}
        return named(world, thinned(fit.phi, num_draws), thinned(fit.effects, num_draws)) | said

    def broken(world: World, seed: int) -> dict[str, np.ndarray]:
        fit = nested_fit(world, seed)
        return overconfident(named(world, fit.phi, fit.effects), config["broken_factor"])

    return {
        "joint_mode": joint_mode,
        "laplace": marginal_laplace,
        "nested": nested_draws,
        "broken": broken,
        "nuts": by_nuts,
    }
