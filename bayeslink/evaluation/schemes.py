"""Who was fitted on what: in-sample, leave-one-database-out, transfer (MODEL.md section 9).

in-sample                  fitted on the very questions that are scored; descriptive only
leave-one-database-out     each database scored by a fit on the others, its twins left out too
transfer                   a posterior fitted on other data sets; no fitting here
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from bayeslink.evaluation.scores import Predicted, predicted
from bayeslink.evidence.channel import Evidence, Standardisation
from bayeslink.inference.fit import FIXED_COUPLING, fit_packed
from bayeslink.inference.laplace import LaplaceFit
from bayeslink.inference.packing import pack
from bayeslink.inference.posterior import Posterior
from bayeslink.inference.predictive import predict
from bayeslink.model.autologistic import Support
from bayeslink.model.hierarchy import Terms, Variant
from bayeslink.model.priors import Priors

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


class FitSettings(NamedTuple):
    """Settings shared by every fit of an evaluation."""

    priors: Priors = Priors()
    support: Support = Support.ALL
    coupling: float = FIXED_COUPLING
    num_draws: int = 200
    seed: int = 0
    context: tuple[str, ...] = ()
    terms: Terms = Terms()


def in_sample(
    evidences: Sequence[Evidence], variants: Sequence[Variant], settings: FitSettings = FitSettings()
) -> Iterator[tuple[Variant, list[Predicted]]]:
    """Each variant fitted on all databases and scored on the same questions.

    Yields:
        A variant and its predictions, one item per database.
    """
    standardisation = Standardisation.fit(evidences, settings.context)
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

    Each fold's standardisation is its own. A fold starts from the previous fold's mode, which changes
    the time of a fit and not its result.

    Yields:
        A variant, the database left out and its predictions; databases vary fastest.

    Raises:
        ValueError: If leaving out a database and its twins leaves no training database.
    """
    starts: dict[Variant, LaplaceFit] = {}
    for variant in variants:
        fitted = Variant.INDEPENDENT if variant is Variant.FIXED else variant
        for held in evidences:
            barred = {held.key, *twins.get(held.key, ())}
            training = [item for item in evidences if item.key not in barred]
            if not training:
                raise ValueError(f"database {held.key}: no training database is left without it and its twins")
            standardisation = Standardisation.fit(training, settings.context)
            whole = pack([standardisation.apply(item) for item in evidences])
            posterior, found = fit_packed(
                whole.without([i for i, item in enumerate(evidences) if item.key in barred]),
                tuple(item.key for item in training),
                standardisation,
                variant,
                effects=False,
                start=starts.get(fitted),
                **fit_arguments(settings),
            )
            if isinstance(found, LaplaceFit):
                starts[fitted] = found
            yield (
                variant,
                held.key,
                _predict_one(standardisation.apply(held), posterior, False, settings.seed),
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


def fit_arguments(settings: FitSettings) -> dict:
    """The settings that `fit_packed` takes; the context belongs to the standardisation."""
    return {name: value for name, value in settings._asdict().items() if name != "context"}


def _predict_one(evidence: Evidence, posterior: Posterior, seen: bool, seed: int) -> Predicted:
    draws = posterior.seen(evidence.key, evidence) if seen else posterior.unseen(seed, evidence)
    distribution, log_score = predict(evidence, draws, posterior.support)
    if evidence.gold is None or log_score is None:
        raise ValueError(f"evidence of {evidence.key} has no gold selections: nothing to score")
    return predicted(evidence.key, distribution, evidence.gold, log_score, evidence.group)
