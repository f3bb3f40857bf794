"""One chunk of the simulation study: replicates of a cell drawn, fitted in every way and scored on test questions.

    truth          the parameters that the databases have: nothing can do better
    independent    alpha and gamma fitted, no coupling
    fixed          the same, with the cell's mean coupling imposed: the intercept stays where it was
    fixed_platt    a + b logit p of the marginals of `fixed`, fitted on the training questions; tables independent
    pooled, pooled_coupling, hierarchical    the coupling fitted with the rest (MODEL.md section 3)

All fits of all replicates of a chunk are one compiled program. Every random number belongs to its replicate, so
neither the size of the chunks nor who computes them changes what is drawn.
"""

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from bayeslink.inference import keep_compiled
from bayeslink.inference.laplace import Settings
from bayeslink.inference.population import unpack_population
from bayeslink.model.batch import LocalParameters
from bayeslink.model.hierarchy import Variant
from bayeslink.model.priors import Priors
from bayeslink.simulation.cells import Cell, Replicate, Sizes, draw_replicates
from bayeslink.simulation.replicate_fits import (
    Prediction,
    batch_of,
    draw_parameters,
    fit_replicate,
    predict,
    separated,
    settings_of,
    start_of,
)

__all__ = ["Chunk", "PairScore", "matched_selection", "run_chunk", "study_replicate"]

PairScore = Callable[[np.ndarray, np.ndarray], float]
"""A score of probabilities and outcomes over (question, table) pairs."""

PRIORS = Priors()
FLAT = Priors(intercept_scale=1e3, slope_scale=1e3)
"""Platt scaling has no priors."""
EDGE = 1e-15
"""Nearest to 0 or 1 that a marginal is taken to be before its logit."""


@dataclass(frozen=True)
class Chunk:
    """Replicates that are computed together.

    Attributes:
        cell: Their cell.
        sizes: Sizes of each.
        joint: Variants fitted with the coupling: `pooled`, `pooled_coupling`, `hierarchical`.
        seed: Seed of the study.
        first: Number of the first replicate.
        count: How many.
    """

    cell: Cell
    sizes: Sizes
    joint: tuple[Variant, ...]
    seed: int
    first: int
    count: int

    def key(self, source: str) -> str:
        """Hash of all that the scores depend on, hexadecimal; `source` is the hash of the source."""
        return hashlib.sha256(json.dumps([asdict(self), source], sort_keys=True).encode()).hexdigest()


class Outcome(NamedTuple):
    """One replicate, fitted in every way.

    Attributes:
        predictions: Of the test questions, by variant.
        parameters: Population parameters at the mode on their natural scale, by variant and site.
        converged: Whether each fit converged, by variant.
    """

    predictions: dict[str, Prediction]
    parameters: dict[str, dict[str, Array]]
    converged: dict[str, Bool[Array, ""]]


def run_chunk(chunk: Chunk, pair_scores: Mapping[str, PairScore]) -> dict[str, np.ndarray]:
    """Scores of every replicate of a chunk, by "variant/score"; parameters and convergence by the same scheme.

    `recovered` is the share of weakly-signalled tables (gold, with an independent probability below 1/2) that are
    selected at the matched size, `precision` the share of gold tables in that selection.

    Args:
        chunk: The replicates.
        pair_scores: Scores of the marginals by name; `evaluation.calibration` has them.
    """
    keep_compiled()
    data = draw_replicates(chunk.cell, chunk.sizes, chunk.seed, chunk.first, chunk.count)
    numbers = range(chunk.first, chunk.first + chunk.count)
    seeds = [int(chunk.cell.rng(chunk.seed, 2, number).integers(2**32)) for number in numbers]
    keys = jax.vmap(jax.random.key)(jnp.array(seeds))
    truth = jnp.asarray(chunk.cell.coupling), jnp.asarray(chunk.cell.strength)
    found = _study(data, keys, *truth, chunk.joint, chunk.sizes.draws)
    scores = {f"{name}/converged": np.asarray(value) for name, value in found.converged.items()}
    for name, sites in found.parameters.items():
        scores |= {f"{name}/{site}": np.asarray(value).reshape(chunk.count) for site, value in sites.items()}
    gold = np.asarray(data.test_gold) > 0
    independent = np.asarray(found.predictions["independent"].marginals)
    for name, prediction in found.predictions.items():
        marginals = np.asarray(prediction.marginals)
        rows = [_scores(*row, pair_scores) for row in zip(marginals, independent, gold, strict=True)]
        scores |= {f"{name}/{score}": np.array([row[score] for row in rows]) for score in rows[0]}
        scores[f"{name}/joint_log_score"] = np.asarray(prediction.log_score).mean(axis=(1, 2))
    return scores


def matched_selection(marginals: Float[np.ndarray, "*pairs"], size: int) -> Bool[np.ndarray, "*pairs"]:
    """The so many pairs with the largest marginals: every variant's threshold moved until it selects as many."""
    chosen = np.zeros(marginals.size, dtype=bool)
    chosen[np.argsort(-marginals.ravel(), kind="stable")[:size]] = True
    return chosen.reshape(marginals.shape)


def _scores(
    marginals: np.ndarray, independent: np.ndarray, gold: np.ndarray, pair_scores: Mapping[str, PairScore]
) -> dict[str, float]:
    """Scores of one replicate's marginals; all NaN where the fit has none."""
    # As many as the independent fit expects: near the number of gold tables, yet without looking at them.
    size = round(float(independent.sum())) if np.isfinite(independent).all() else 0
    chosen = matched_selection(marginals, size)
    weak = gold & (independent < 0.5)
    outcome = gold.ravel().astype(np.float64)
    sound = bool(np.isfinite(marginals).all())
    # Sums of probabilities may exceed 1 by rounding.
    inside = np.clip(marginals.ravel(), 0.0, 1.0)
    scores = {name: score(inside, outcome) if sound else np.nan for name, score in pair_scores.items()}
    scores["recovered"] = float((chosen & weak).sum() / max(weak.sum(), 1)) if sound else np.nan
    scores["precision"] = float((chosen & gold).sum() / max(size, 1)) if sound else np.nan
    scores["size"] = float(marginals.sum(axis=-1).mean())
    return scores


@partial(jax.jit, static_argnames=("joint", "num_draws"))
def _study(
    data: Replicate, keys: Array, coupling: Array, strength: Array, joint: Sequence[Variant], num_draws: int
) -> Outcome:
    one = partial(study_replicate, joint=joint, num_draws=num_draws)
    return jax.vmap(one, in_axes=(0, 0, None, None))(data, keys, coupling, strength)


def study_replicate(
    data: Replicate,
    key: Array,
    coupling: Float[Array, ""],
    strength: Float[Array, ""],
    joint: Sequence[Variant],
    num_draws: int,
) -> Outcome:
    """Fit one replicate in every way and predict its test questions.

    Args:
        data: The replicate.
        key: Random numbers of the draws.
        coupling: Mean coupling of the cell, which `fixed` imposes.
        strength: True slope, for `truth`.
        joint: Variants fitted with the coupling.
        num_draws: Number of posterior draws.
    """
    train = batch_of(data.train, data.train_gold, data.edges, data.is_edge)
    test = batch_of(data.test, data.test_gold, data.edges, data.is_edge)
    databases = len(data.intercept)

    def noise(settings: Settings, number: int) -> tuple[Array, Array]:
        outer, inner = jax.random.split(jax.random.fold_in(key, number))
        shape = num_draws, databases, len(settings.design.effects)
        return jax.random.normal(outer, (num_draws, settings.design.size)), jax.random.normal(inner, shape)

    settings = settings_of(Variant.INDEPENDENT, PRIORS)
    alone = separated(data.train, data.train_gold)
    fit = fit_replicate(alone, settings, start_of(settings, alpha=_logit(data.train_gold.mean())))
    local = draw_parameters(alone, settings, fit, *noise(settings, 0))
    parameters = {"independent": unpack_population(fit.mode, settings.design)}
    converged = {"independent": fit.converged}
    held = jnp.full(databases, coupling)
    fixed = predict(test, local, held)
    predictions = {
        "truth": predict(test, _known(data.intercept, jnp.full(databases, strength), data.coupling)),
        "independent": predict(test, local),
        "fixed": fixed,
    }

    settings = settings_of(Variant.INDEPENDENT, FLAT)
    scaled = separated(_logit(predict(train, local, held).marginals), data.train_gold)
    platt = fit_replicate(scaled, settings, start_of(settings, gamma=jnp.ones(())))
    parameters["fixed_platt"] = unpack_population(platt.mode, settings.design)
    converged["fixed_platt"] = platt.converged
    intercept, slope = (jnp.full(databases, value) for value in platt.mode)
    scaled = batch_of(_logit(fixed.marginals), data.test_gold, data.edges, data.is_edge)
    predictions["fixed_platt"] = predict(scaled, _known(intercept, slope, jnp.zeros(databases)))

    known = parameters["independent"]
    for number, variant in enumerate(joint):
        settings = settings_of(variant, PRIORS)
        start = start_of(settings, **{site: jnp.squeeze(value) for site, value in known.items()})
        fit = fit_replicate(train, settings, start)
        local = draw_parameters(train, settings, fit, *noise(settings, 1 + number))
        predictions[variant.value] = predict(test, local)
        parameters[variant.value] = known = unpack_population(fit.mode, settings.design)
        converged[variant.value] = fit.converged
    return Outcome(predictions, parameters, converged)


def _known(
    intercept: Float[Array, " databases"], slope: Float[Array, " databases"], coupling: Float[Array, " databases"]
) -> LocalParameters:
    """Parameters that are known, as a single draw."""
    return LocalParameters(intercept[None], jnp.zeros((1, 0)), slope[None, :, None], coupling[None, :, None])


def _logit(probability: Float[Array, "..."]) -> Float[Array, "..."]:
    inside = jnp.clip(probability, EDGE, 1 - EDGE)
    return jnp.log(inside) - jnp.log1p(-inside)
