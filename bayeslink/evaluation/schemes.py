"""Who was fitted on what: in-sample, leave-one-database-out, transfer (MODEL.md section 9).

in-sample                  fitted on the very questions that are scored; descriptive only
leave-one-database-out     each database scored by a fit on the others, its twins left out too
transfer                   a posterior fitted on other data sets; no fitting here
"""

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from bayeslink.evaluation.held_out import FitSettings, fit_arguments, fit_folds, fresh_draws
from bayeslink.evaluation.scores import Predicted, predicted
from bayeslink.evidence.channel import Evidence, Standardisation
from bayeslink.inference.fit import fit_packed
from bayeslink.inference.packing import pack
from bayeslink.inference.posterior import Posterior
from bayeslink.inference.predictive import predict
from bayeslink.model.hierarchy import Variant

__all__ = ["TABLE_VARIANTS", "FitSettings", "fit_arguments", "in_sample", "leave_one_database_out", "transfer"]

TABLE_VARIANTS = (
    Variant.INDEPENDENT,
    Variant.INDEPENDENT_HIERARCHICAL,
    Variant.FIXED,
    Variant.POOLED,
    Variant.POOLED_COUPLING,
    Variant.HIERARCHICAL,
)
"""The variants of an evaluation table; `unpooled` knows seen databases only."""

Key = tuple[str, str]


def in_sample(
    evidences: Sequence[Evidence], variants: Sequence[Variant], settings: FitSettings = FitSettings()
) -> Iterator[tuple[Variant, list[Predicted]]]:
    """Each variant fitted on all databases and scored on the same questions.

    Yields:
        A variant and its predictions, one item per database.
    """
    standardisation = Standardisation.fit(evidences, settings.context, settings.forms)
    ready = [standardisation.apply(item) for item in evidences]
    batch = pack(ready)
    keys = tuple(item.key for item in evidences)
    for variant in variants:
        posterior, _ = fit_packed(batch, keys, standardisation, variant, **fit_arguments(settings))
        yield variant, [_predict_one(item, posterior, seen=True, seed=settings.seed) for item in ready]


def leave_one_database_out(
    evidences: Sequence[Evidence],
    variants: Sequence[Variant],
    twins: Mapping[Key, Sequence[Key]],
    settings: FitSettings = FitSettings(),
) -> Iterator[tuple[Variant, Key, Predicted]]:
    """Each database scored by a fit on the others, without its twins.

    See `held_out.fit_folds`.

    Yields:
        A variant, the database left out and its predictions; databases vary fastest.

    Raises:
        ValueError: If leaving out a database and its twins leaves no training database.
    """
    for variant in variants:
        for item in fit_folds(evidences, variant, "unseen", settings, twins=twins):
            distribution, log_score = item.predict()
            gold = np.asarray(item.evidence.gold)
            yield (
                variant,
                item.evidence.key,
                predicted(item.evidence.key, distribution, gold, log_score, item.evidence.group),
            )


def transfer(
    evidences: Sequence[Evidence], posteriors: Mapping[Variant, Posterior], seed: int = 0
) -> Iterator[tuple[Variant, list[Predicted]]]:
    """Given posteriors on databases they have never seen; nothing is fitted.

    Yields:
        A variant and its predictions, one item per database.

    Raises:
        ValueError: If a variant is `unpooled`, or a posterior has other channels.
    """
    for variant, posterior in posteriors.items():
        ready = [posterior.standardisation.apply(item) for item in evidences]
        yield variant, [_predict_one(item, posterior, seen=False, seed=seed) for item in ready]


def _predict_one(evidence: Evidence, posterior: Posterior, seen: bool, seed: int) -> Predicted:
    draws = posterior.seen(evidence.key, evidence) if seen else fresh_draws(posterior, evidence, seed)
    distribution, log_score = predict(evidence, draws, posterior.support)
    if evidence.gold is None or log_score is None:
        raise ValueError(f"evidence of {evidence.key} has no gold selections: nothing to score")
    return predicted(evidence.key, distribution, evidence.gold, log_score, evidence.group)
