"""How far one fit's posterior is from a reference fit's: means, spreads and predictions.

Means are compared in units of the reference's standard deviation, spreads as ratios, predictions in
sample: the largest difference of a table's probability and the difference of the joint log score.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from bayeslink.evidence.channel import Evidence
from bayeslink.inference.posterior import Posterior
from bayeslink.inference.predictive import predict

__all__ = ["Agreement", "Summary", "agreement", "predictions", "summaries"]


class Summary(NamedTuple):
    """Posterior mean and standard deviation of every scalar parameter.

    Attributes:
        names: Name of each, "gamma[bm25]" or "beta_d[bird/toxicology]" for instance.
        mean: Posterior means; sigmas on the log scale.
        deviation: Posterior standard deviations.
        is_effect: Whether the parameter belongs to one database.
    """

    names: tuple[str, ...]
    mean: Float[np.ndarray, " parameters"]
    deviation: Float[np.ndarray, " parameters"]
    is_effect: np.ndarray


class Agreement(NamedTuple):
    """Distances from a reference.

    Attributes:
        population_z_worst: Largest |mean difference| over alpha, gamma, beta, in reference sds.
        log_sigma_z_worst: The same over log sigmas; 0 where there are none.
        population_sd_ratio_worst: Over all population parameters, the sd / reference sd furthest from 1 on the log
            scale.
        sd_ratio_median: Median over database parameters of sd / reference sd.
        sd_ratio_worst: The ratio furthest from 1 on the log scale.
        marginal_difference_worst: Largest |difference| of a table's probability.
        joint_difference: Mean joint log score less the reference's, nats per question.
    """

    population_z_worst: float
    log_sigma_z_worst: float
    population_sd_ratio_worst: float
    sd_ratio_median: float
    sd_ratio_worst: float
    marginal_difference_worst: float
    joint_difference: float


def summaries(posterior: Posterior) -> Summary:
    """Means and spreads of a posterior's draws."""
    databases = ["/".join(key) for key in posterior.databases]
    labels: Mapping[str, Sequence[str]] = {
        "gamma": posterior.standardisation.predictors,
        "kappa": posterior.standardisation.context_names,
        "alpha_d": databases,
        "beta_d": databases,
        "scale_d": databases,
    }
    names, columns, effects = [], [], []
    for site, value in posterior.draws.items():
        draws = np.log(value) if site.startswith("sigma") else value
        columns.append(draws.reshape(len(draws), -1))
        lead = f"log {site}" if site.startswith("sigma") else site
        size = columns[-1].shape[1]
        entries = labels.get(site, [str(index) for index in range(size)])
        names += [lead] if value.ndim == 1 else [f"{lead}[{entry}]" for entry in entries]
        effects += [site.endswith("_d")] * size
    draws = np.concatenate(columns, axis=1)
    return Summary(tuple(names), draws.mean(axis=0), draws.std(axis=0, ddof=1), np.array(effects))


def predictions(posterior: Posterior, evidences: Sequence[Evidence]) -> tuple[list[np.ndarray], float]:
    """In-sample marginals of each database's questions and the mean joint log score, nats per question.

    Args:
        posterior: A posterior with the databases' own draws.
        evidences: Raw evidence of its training databases, with gold.
    """
    marginals, scores = [], []
    for item in evidences:
        ready = posterior.standardisation.apply(item)
        distribution, log_score = predict(ready, posterior.seen(item.key, ready), posterior.support)
        marginals.append(distribution.marginals)
        scores.append(log_score)
    return marginals, float(np.concatenate(scores).mean())


def agreement(
    found: tuple[Summary, tuple[list[np.ndarray], float]], reference: tuple[Summary, tuple[list[np.ndarray], float]]
) -> Agreement:
    """Distances of one fit from a reference fit of the same variant on the same data.

    Raises:
        ValueError: If the two have different parameters.
    """
    (mine, (marginals, score)), (theirs, (their_marginals, their_score)) = found, reference
    if mine.names != theirs.names:
        raise ValueError("the two fits have different parameters; compare fits of one variant on one set")
    distance = np.abs(mine.mean - theirs.mean) / theirs.deviation
    sigma = np.array([name.startswith("log ") for name in mine.names])
    ratios = mine.deviation / theirs.deviation
    ratio, population = ratios[mine.is_effect], ratios[~mine.is_effect]
    return Agreement(
        float(distance[~mine.is_effect & ~sigma].max()),
        float(distance[sigma].max(initial=0.0)),
        _furthest(population),
        float(np.median(ratio)) if len(ratio) else 1.0,
        _furthest(ratio) if len(ratio) else 1.0,
        max(float(np.abs(a - b).max()) for a, b in zip(marginals, their_marginals, strict=True)),
        score - their_score,
    )


def _furthest(ratios: np.ndarray) -> float:
    """The ratio furthest from 1 on the log scale."""
    return float(ratios[np.abs(np.log(ratios)).argmax()])
