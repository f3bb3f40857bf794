"""Parameters given data: NUTS on the NumPyro model, the check of the other fits (MODEL.md section 4).

The likelihood is elimination's, so NUTS shares no derivative code with the Laplace fits, which read theirs
off lists of subsets. A run is to be believed when every named check passes (Vehtari et al. 2021;
Betancourt 2016): R-hat below 1.01, bulk and tail effective sample sizes above 400, no divergent
transition, energy fraction of missing information above 0.3.
"""

import time
from collections.abc import Mapping
from functools import lru_cache, partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.tree_util import PyTreeDef
from jaxtyping import Array, Float
from numpyro.infer import MCMC, NUTS

from bayeslink.inference import elimination
from bayeslink.inference.enumeration import StatePlan
from bayeslink.inference.laplace import LaplaceFit, Settings, check_fit, draw_effects, inner_modes, laplace
from bayeslink.inference.nested import mode_slopes
from bayeslink.inference.population import pack_population, positions, unpack_population
from bayeslink.model.autologistic import Support
from bayeslink.model.batch import Batch
from bayeslink.model.hierarchy import EFFECTS, Design, hierarchical_model
from bayeslink.model.priors import Priors

__all__ = ["LEAST_EFFECTIVE", "LEAST_ENERGY", "WORST_R_HAT", "HmcFit", "diagnostics", "nuts"]

WORST_R_HAT = 1.01
LEAST_EFFECTIVE = 400.0
LEAST_ENERGY = 0.3


class HmcFit(NamedTuple):
    """Draws by NUTS with their checks.

    Attributes:
        design: The variant with its terms.
        phi: Draws of the population parameters, packed, chain after chain; axes draws, coordinates.
        effects: Draws of the effects; axes draws, databases, 3; 0 where the design has none.
        num_chains: Number of chains.
        figures: Worst R-hat, least bulk and tail effective sample sizes, divergences, least E-BFMI.
        checks: The same as named pass/fail checks.
        seconds: Wall time, compilation included.
    """

    design: Design
    phi: Float[np.ndarray, "draws coordinates"]
    effects: Float[np.ndarray, "draws databases 3"]
    num_chains: int
    figures: dict[str, float]
    checks: dict[str, bool]
    seconds: float


def nuts(
    batch: Batch,
    design: Design,
    priors: Priors,
    support: Support = Support.ALL,
    *,
    num_draws: int = 1000,
    num_warmup: int = 500,
    num_chains: int = 4,
    seed: int = 0,
    target_accept: float = 0.9,
    progress: bool = False,
    start: LaplaceFit | None = None,
) -> HmcFit:
    """Draws of phi and of the effects by NUTS; chains run side by side as far as JAX has devices.

    Chains start at draws of the marginal Laplace fit, apart from one another, and warm-up starts from its
    joint covariance as the metric, which it then adapts.

    Args:
        batch: Standardised evidence with gold, from `packing.pack(..., max_listed=0)`.
        design: Any variant but `fixed`, with its terms.
        priors: Prior scales.
        support: All subsets, or the non-empty ones.
        num_draws: Draws of each chain that are kept.
        num_warmup: Draws of each chain that tune the sampler and are thrown away.
        num_chains: Number of chains.
        seed: Seed of the starts and of the chains.
        target_accept: Mean acceptance probability aimed at; nearer to 1 means shorter steps.
        progress: Show a progress bar on stderr.
        start: A marginal Laplace fit of the same batch and design, where there is one.

    Raises:
        ValueError: As `laplace`, or if the batch is not packed for elimination.
    """
    check_fit(batch, design.variant, support)
    if any(isinstance(bucket.plan, StatePlan) for bucket in batch.buckets):
        raise ValueError("batch lists subsets: NUTS uses elimination; pack the evidence with max_listed=0")
    fit = laplace(batch, design, priors, support) if start is None else start
    rng = np.random.default_rng(seed)
    began = time.perf_counter()
    starts = _starts(batch, fit, priors, support, num_chains, rng)
    metric = {tuple(sorted(starts)): jnp.asarray(_metric(batch, fit, priors, support))}
    together = min(jax.local_device_count(), num_chains)
    parts, energies, divergences = [], [], 0
    for first in range(0, num_chains, together):
        number = min(together, num_chains - first)
        # A list of arrays has no hash: NumPyro would know a batch by the addresses of its arrays, which are
        # used again once freed, and go on from another run's last state.
        arrays, layout = jax.tree.flatten(batch)
        sampler = _sampler(design, priors, support, layout, num_draws, num_warmup, number, target_accept, progress)
        # The kernel is kept for its compiled program, so its starting metric is set and not passed anew.
        sampler.sampler._inverse_mass_matrix = metric
        key = jax.random.fold_in(jax.random.key(seed), first)
        chosen = {site: value[first : first + number] for site, value in starts.items()}
        chosen = {site: value if number > 1 else value[0] for site, value in chosen.items()}
        sampler.run(key, arrays, init_params=chosen, extra_fields=("diverging", "energy"))
        parts.append(jax.tree.map(np.asarray, sampler.get_samples(group_by_chain=True)))
        extra = sampler.get_extra_fields(group_by_chain=True)
        energies.append(np.asarray(extra["energy"]))
        divergences += int(np.asarray(extra["diverging"]).sum())
    samples = {site: np.concatenate([part[site] for part in parts]) for site in parts[0]}
    figures = diagnostics({site: samples[site] for site in samples if not site.endswith("_d")})
    energy = np.concatenate(energies)
    figures |= {"divergences": float(divergences), "e_bfmi": float(_energy_fraction(energy).min())}
    flat = {site: value.reshape(-1, *value.shape[2:]) for site, value in samples.items()}
    phi = jax.vmap(lambda point: pack_population(point, design))({site: flat[site] for site in design.sites})
    effects = np.zeros((num_chains * num_draws, batch.num_databases, len(EFFECTS)))
    for place in design.effects:
        effects[:, :, place] = flat[EFFECTS[place]]
    return HmcFit(
        design,
        np.asarray(phi),
        effects,
        num_chains,
        figures,
        {
            "r_hat": figures["r_hat"] < WORST_R_HAT,
            "ess_bulk": figures["ess_bulk"] > LEAST_EFFECTIVE,
            "ess_tail": figures["ess_tail"] > LEAST_EFFECTIVE,
            "no_divergences": divergences == 0,
            "e_bfmi": figures["e_bfmi"] > LEAST_ENERGY,
        },
        time.perf_counter() - began,
    )


def diagnostics(samples: Mapping[str, np.ndarray]) -> dict[str, float]:
    """Worst R-hat, least bulk and least tail effective sample size over every entry of every site.

    Args:
        samples: Draws by site; axes chains, draws, then the site's own.
    """
    import arviz as az

    chains = next(iter(samples.values())).shape[0]
    halves = {site: _halved(value) if chains == 1 else value for site, value in samples.items()}
    data, split = az.convert_to_dataset(dict(samples)), az.convert_to_dataset(halves)
    r_hat = np.concatenate([az.rhat(split)[site].values.reshape(-1) for site in samples])
    found = {"r_hat": float(r_hat.max())}
    for kind in ("bulk", "tail"):
        sizes = np.concatenate([az.ess(data, method=kind)[site].values.reshape(-1) for site in samples])
        found[f"ess_{kind}"] = float(sizes.min())
    # An undefined figure, of a chain that never moved for instance, must fail its check.
    return {name: value if np.isfinite(value) else np.inf if name == "r_hat" else 0.0 for name, value in found.items()}


def _halved(value: np.ndarray) -> np.ndarray:
    """One chain as two: its halves should agree."""
    half = value.shape[1] // 2
    return np.concatenate([value[:, :half], value[:, half : 2 * half]])


def _energy_fraction(energy: np.ndarray) -> np.ndarray:
    """E-BFMI of each chain."""
    return (np.diff(energy, axis=1) ** 2).mean(axis=1) / energy.var(axis=1)


@lru_cache(maxsize=8)
def _sampler(
    design: Design,
    priors: Priors,
    support: Support,
    layout: PyTreeDef,
    num_draws: int,
    num_warmup: int,
    num_chains: int,
    target_accept: float,
    progress: bool,
) -> MCMC:
    """One sampler for each setting: the kernel and what NumPyro keeps compiled of it serve every batch alike."""

    def model(arrays: list[Array]) -> None:
        hierarchical_model(jax.tree.unflatten(layout, arrays), design, priors, elimination.log_partition, support)

    return MCMC(
        NUTS(model, dense_mass=True, target_accept_prob=target_accept),
        num_warmup=num_warmup,
        num_samples=num_draws,
        num_chains=num_chains,
        chain_method="parallel" if num_chains > 1 else "sequential",
        progress_bar=progress,
        jit_model_args=True,
    )


def _starts(
    batch: Batch, fit: LaplaceFit, priors: Priors, support: Support, num_chains: int, rng: np.random.Generator
) -> dict[str, np.ndarray]:
    """Unconstrained starting points by site, a draw of the Laplace fit for each chain."""
    phi = rng.multivariate_normal(fit.mode, fit.covariance, size=num_chains, method="cholesky")
    drawn = [unpack_population(jnp.asarray(point), fit.design) for point in phi]
    starts = {site: np.stack([_unconstrained(site, one[site]) for one in drawn]) for site in fit.design.sites}
    if fit.design.effects:
        effects = draw_effects(batch, fit, phi, priors, support, rng)
        starts |= {EFFECTS[place]: effects[:, :, place] for place in fit.design.effects}
    return starts


def _metric(
    batch: Batch, fit: LaplaceFit, priors: Priors, support: Support
) -> Float[np.ndarray, "coordinates coordinates"]:
    """Covariance of all unconstrained sites by the Laplace fit, sites in alphabetical order as NumPyro has them.

    With J = d e* / d phi:  Cov(phi) = Sigma,  Cov(phi, e) = Sigma J',  Cov(e) = J Sigma J' + K^-1.
    """
    design, places = fit.design, positions(fit.design)
    scale = np.ones(design.size)
    if "rho" in places:
        scale[places["rho"]] = 2.0  # NumPyro moves the logit of (rho + 1) / 2, twice arctanh rho.
    outer = fit.covariance * scale[:, None] * scale
    order = {site: np.arange(place.start, place.stop) for site, place in places.items()}
    covariance = outer
    if design.effects:
        settings, chosen = Settings(design, priors, support), list(design.effects)
        phi, effects = jnp.asarray(fit.mode), jnp.asarray(fit.effects)
        slopes = np.asarray(mode_slopes(batch, phi, effects, settings))[:, :, chosen]
        slopes = slopes.reshape(design.size, -1) / scale[:, None]
        precision = np.asarray(_precisions(batch, phi, effects, settings))
        within = np.zeros((slopes.shape[1], slopes.shape[1]))
        count = len(chosen)
        for d, inverse in enumerate(np.linalg.inv(precision)):
            within[d * count : (d + 1) * count, d * count : (d + 1) * count] = inverse
        mixed = outer @ slopes
        covariance = np.block([[outer, mixed], [mixed.T, slopes.T @ mixed + within]])
        for index, place in enumerate(chosen):
            order[EFFECTS[place]] = design.size + index + count * np.arange(batch.num_databases)
    rows = np.concatenate([order[site] for site in sorted(order)])
    return covariance[np.ix_(rows, rows)]


@partial(jax.jit, static_argnames="settings")
def _precisions(batch: Batch, phi: Array, effects: Array, settings: Settings) -> Array:
    return inner_modes(batch, phi, effects, settings).precision


def _unconstrained(site: str, value: Array) -> np.ndarray:
    """A parameter as NumPyro moves it: log sigma, and the logit of (rho + 1) / 2."""
    moved = jnp.log(value) if site.startswith("sigma") else 2 * jnp.arctanh(value) if site == "rho" else value
    return np.asarray(moved)
