"""Probabilities that each model gives to questions that its fit has not seen."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from bayeslink.baselines.calibrators import Platt, Temperature, fit_platt, fit_temperature, fold_numbers
from bayeslink.evaluation.held_out import FitSettings, HeldOut, held_out
from bayeslink.evidence.cache import cache_home
from bayeslink.evidence.channel import Evidence, Standardisation
from bayeslink.evidence.store import load_twins
from bayeslink.inference import make_room
from bayeslink.inference.posterior import DatabaseDraws
from bayeslink.inference.predictive import predict
from bayeslink.model.hierarchy import Variant


class Forecast(NamedTuple):
    """What one model says.

    Attributes:
        model: Name of the model; "fixed" for every coupling of the curve.
        coupling: The given coupling of the fixed ones, nats.
        marginals: Probability of each table, an array [questions tables] for each part.
    """

    model: str
    coupling: float | None
    marginals: list[np.ndarray]


class Calibrators(NamedTuple):
    """One calibrator of each kind for each part, fitted without the part's fold."""

    temperature: list[Temperature]
    platt: list[Platt]


def parts_of(evidences: Sequence[Evidence], scheme: str, config: Mapping) -> dict[Variant, list[HeldOut]]:
    """Held-out questions of `independent`, on which the fixed couplings stand, and of the other variants."""
    return held_out(
        evidences,
        [Variant.INDEPENDENT, *map(Variant, config["variants"])],
        scheme,
        FitSettings(num_draws=config["num_draws"], seed=config["seed"]),
        num_folds=config["num_folds"],
        twins=load_twins() if scheme == "unseen" else None,
        folder=cache_home() / "held_out",
        progress=True,
    )


def forecasts(
    parts: Mapping[Variant, Sequence[HeldOut]], evidences: Sequence[Evidence], scheme: str, config: Mapping
) -> list[Forecast]:
    """Every model's probabilities; the whole curve of couplings for the scheme "known" alone."""
    base, usual, strong = parts[Variant.INDEPENDENT], config["coupling"], config["coupling_strong"]
    couplings = sorted({0.0, usual, strong, *(config["couplings"] if scheme == "known" else ())})
    fixed = {coupling: _marginals(base, coupling) for coupling in couplings}
    found = [Forecast("independent", None, fixed[0.0])]
    for name, coupling in (("fixed", usual), ("fixed_2", strong)):
        calibrators = _calibrators(base, evidences, scheme, coupling, config["thinning"])
        found.append(Forecast(name, coupling, fixed[coupling]))
        for kind, each in zip(calibrators._fields, calibrators, strict=True):
            applied = [one.apply(marginals) for one, marginals in zip(each, fixed[coupling], strict=True)]
            found.append(Forecast(f"{name}_{kind}", coupling, applied))
    found += [Forecast(variant.value, None, _marginals(parts[variant])) for variant in map(Variant, config["variants"])]
    if scheme == "known":
        found += [Forecast("curve", coupling, fixed[coupling]) for coupling in config["couplings"]]
    return found


def _marginals(parts: Sequence[HeldOut], coupling: float | None = None) -> list[np.ndarray]:
    found = []
    for item in parts:
        found.append(item.predict(coupling)[0].marginals)
        make_room()
    return found


def _calibrators(
    parts: Sequence[HeldOut], evidences: Sequence[Evidence], scheme: str, coupling: float, thinning: int
) -> Calibrators:
    """Fitted on what each fit says of the questions that it was trained on, so that no label of its fold is used.

    Held-out predictions of the other folds would not do: their fits have seen this fold's labels. The base has four
    parameters, so its probabilities in sample are hardly better than out of sample.
    """
    keys = [item.evidence.key for item in parts]
    folds = list(range(len(parts))) if scheme == "unseen" else fold_numbers(keys, [item.key for item in evidences])
    twins = load_twins() if scheme == "unseen" else {}
    fitted: dict[int, tuple[Temperature, Platt]] = {}
    for fold in sorted(set(folds)):
        held = [item for item, own in zip(parts, folds, strict=True) if own == fold]
        barred = {item.evidence.key: item.questions for item in held}
        out = {twin for key in barred for twin in twins.get(key, ())}
        kept = [np.setdiff1d(np.arange(item.num_questions), barred.get(item.key, [])) for item in evidences]
        training = [
            (item, chosen) for item, chosen in zip(evidences, kept, strict=True) if len(chosen) and item.key not in out
        ]
        standardisation = Standardisation.fit([item.select_questions(chosen) for item, chosen in training])
        # The base pools its parameters: every database of a fold has the same draws.
        draws = _thinned(held[0].draws, coupling, thinning)
        probability, outcome = [], []
        for item, chosen in training:
            # All questions, so that every fold meets the same compiled program.
            distribution, _ = predict(standardisation.apply(item), draws, held[0].support)
            probability.append(distribution.marginals[chosen].ravel())
            outcome.append(np.asarray(item.gold)[chosen].ravel())
            make_room()
        pairs = np.concatenate(probability), np.concatenate(outcome)
        fitted[fold] = fit_temperature(*pairs), fit_platt(*pairs)
    return Calibrators([fitted[fold][0] for fold in folds], [fitted[fold][1] for fold in folds])


def _thinned(draws: DatabaseDraws, coupling: float, thinning: int) -> DatabaseDraws:
    slopes = draws.slopes[::thinning]
    return DatabaseDraws(draws.intercept[::thinning], slopes, np.full(len(slopes), coupling))
