"""Parameters for questions that no fit has seen, kept on disk so that several analyses share one set of fits.

known     questions are cut into folds inside every database, gold-SQL groups whole; each fold meets the
          database's own parameters from a fit on the other folds
unseen    each database meets a fit on the others, without its twins, and fresh effects

A variant's draws are few numbers, its predictive distributions many: the draws are kept, predictions are made
where they are needed.
"""

import hashlib
import json
import logging
import zipfile
import zlib
from collections.abc import Iterator, Mapping, Sequence
from itertools import count
from pathlib import Path
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int
from tqdm import tqdm

from bayeslink.evidence.cache import replace_file
from bayeslink.evidence.channel import Evidence, Standardisation
from bayeslink.inference.factored import FactoredDistribution
from bayeslink.inference.fit import FIXED_COUPLING, fit_packed
from bayeslink.inference.laplace import LaplaceFit
from bayeslink.inference.packing import pack
from bayeslink.inference.posterior import DatabaseDraws, Posterior
from bayeslink.inference.predictive import SubgraphDistribution, predict
from bayeslink.model.autologistic import Support
from bayeslink.model.hierarchy import Terms, Variant
from bayeslink.model.priors import Priors
from bayeslink.provenance import source_hash

__all__ = [
    "NUM_FOLDS",
    "SCHEMES",
    "UNSEEN_DRAWS",
    "FitSettings",
    "HeldOut",
    "fit_arguments",
    "fit_folds",
    "fresh_draws",
    "held_out",
    "question_folds",
]

SCHEMES = ("known", "unseen")
NUM_FOLDS = 5
"""Folds of a database's questions."""
UNSEEN_DRAWS = 1000
"""Least number of draws with fresh effects for a database that no fit has seen: they vary more than a fit's own."""

Key = tuple[str, str]

_log = logging.getLogger(__name__)


class FitSettings(NamedTuple):
    """Settings shared by every fit of an evaluation."""

    priors: Priors = Priors()
    support: Support = Support.ALL
    coupling: float = FIXED_COUPLING
    num_draws: int = 200
    seed: int = 0
    context: tuple[str, ...] = ()
    terms: Terms = Terms()
    forms: tuple[str, ...] = ()


def fit_arguments(settings: FitSettings) -> dict:
    """The settings that `fit_packed` takes; the context and the forms belong to the standardisation."""
    return {name: value for name, value in settings._asdict().items() if name not in ("context", "forms")}


def fresh_draws(posterior: Posterior, evidence: Evidence, seed: int) -> DatabaseDraws:
    """Parameters of a database outside the fit, with fresh effects of its own.

    The seed of the effects is the database's: effects that all databases of a set shared would leave a Monte
    Carlo error that no average over databases removes and no interval shows.

    Args:
        posterior: Any but `unpooled`.
        evidence: The database's standardised evidence.
        seed: Seed of the evaluation.
    """
    own_seed = zlib.crc32(json.dumps([seed, *evidence.key]).encode())
    spreads = [site for site in posterior.draws if site.startswith("sigma")]
    return posterior.unseen(own_seed, evidence, max(UNSEEN_DRAWS, posterior.num_draws) if spreads else None)


class HeldOut(NamedTuple):
    """Questions of one database and the parameters of a fit that has not seen them.

    Attributes:
        evidence: Standardised evidence of the held-out questions, with gold, as that fit standardises.
        questions: Their positions in the database.
        draws: Draws of the database's parameters.
        support: The support of the fit.
    """

    evidence: Evidence
    questions: Int[np.ndarray, " questions"]
    draws: DatabaseDraws
    support: Support

    def predict(
        self, coupling: float | None = None
    ) -> tuple[SubgraphDistribution | FactoredDistribution, Float[np.ndarray, " questions"]]:
        """The predictive distribution of the questions, and the log probability of gold, nats.

        Args:
            coupling: A coupling in place of the fit's own, the rest held: the variant `fixed`.

        Raises:
            ValueError: If the evidence has no gold.
        """
        draws = self.draws
        if coupling is not None:
            draws = draws._replace(coupling=np.full(len(draws.slopes), float(coupling)))
        distribution, log_score = predict(self.evidence, draws, self.support)
        if log_score is None:
            raise ValueError(f"evidence of {self.evidence.key} has no gold selections: nothing to score")
        return distribution, np.asarray(log_score)


def question_folds(evidence: Evidence, num_folds: int, rng: np.random.Generator) -> Int[np.ndarray, " questions"]:
    """Fold of each question, from 0; questions with one gold SQL share a fold.

    Args:
        evidence: The database's questions.
        num_folds: Number of folds, at least 2.
        rng: Source of the random order of the groups.

    Raises:
        ValueError: If there are fewer than two folds.
    """
    if num_folds < 2:
        raise ValueError(f"num_folds={num_folds}: at least 2 are needed")
    groups = np.arange(evidence.num_questions) if evidence.group is None else np.asarray(evidence.group)
    names, number = np.unique(groups, return_inverse=True)
    return (rng.permutation(len(names)) % num_folds)[number]


class _Fold(NamedTuple):
    """One fit: what it leaves out, and which questions it is asked about."""

    barred: list[Bool[np.ndarray, "_"]]
    held: list[tuple[int, Int[np.ndarray, " questions"]]]


def _known_folds(evidences: Sequence[Evidence], num_folds: int, seed: int) -> list[_Fold]:
    own = [
        question_folds(item, num_folds, np.random.default_rng([seed, place])) for place, item in enumerate(evidences)
    ]
    folds = []
    for fold in range(num_folds):
        barred = [number == fold for number in own]
        folds.append(_Fold(barred, [(place, np.flatnonzero(mark)) for place, mark in enumerate(barred) if mark.any()]))
    return folds


def _unseen_folds(evidences: Sequence[Evidence], twins: Mapping[Key, Sequence[Key]]) -> list[_Fold]:
    folds = []
    for place, held in enumerate(evidences):
        left_out = {held.key, *twins.get(held.key, ())}
        if all(item.key in left_out for item in evidences):
            raise ValueError(f"database {held.key}: no training database is left without it and its twins")
        barred = [np.full(item.num_questions, item.key in left_out) for item in evidences]
        folds.append(_Fold(barred, [(place, np.arange(held.num_questions))]))
    return folds


def fit_folds(
    evidences: Sequence[Evidence],
    variant: Variant,
    scheme: str,
    settings: FitSettings = FitSettings(),
    *,
    num_folds: int = NUM_FOLDS,
    twins: Mapping[Key, Sequence[Key]] | None = None,
    draws: Sequence[DatabaseDraws] | None = None,
) -> Iterator[HeldOut]:
    """The held-out questions of each fit in turn; each fit's standardisation is its own.

    A fit starts from the previous one's mode, which changes its time and not its result.

    Args:
        evidences: Raw evidence with gold, one per database.
        variant: The variant.
        scheme: "known" or "unseen".
        settings: Settings of the fits.
        num_folds: Folds of the scheme "known".
        twins: Databases to leave out of each database's training, for "unseen".
        draws: The draws of an earlier call, in its order; nothing is fitted then.

    Raises:
        ValueError: If the scheme is another, or "unseen" has nothing to train on for a database.
    """
    if scheme not in SCHEMES:
        raise ValueError(f"scheme={scheme!r}: use {' or '.join(SCHEMES)}")
    known = scheme == "known"
    folds = _known_folds(evidences, num_folds, settings.seed) if known else _unseen_folds(evidences, twins or {})
    start, numbers = None, count()
    for barred, held in folds:
        training = [item.select_questions(~mark) for item, mark in zip(evidences, barred, strict=True)]
        training = [item for item in training if item.num_questions]
        standardisation = Standardisation.fit(training, settings.context, settings.forms)
        if draws is None:
            posterior, found = fit_packed(
                pack([standardisation.apply(item) for item in evidences]).without_questions(barred),
                tuple(item.key for item in (evidences if known else training)),
                standardisation,
                variant,
                effects=known,
                start=start,
                **fit_arguments(settings),
            )
            start = found if isinstance(found, LaplaceFit) else None
        for place, questions in held:
            ready = standardisation.apply(evidences[place].select_questions(questions))
            if draws is not None:
                own = draws[next(numbers)]
            elif known:
                own = posterior.seen(ready.key, ready)
            else:
                own = fresh_draws(posterior, ready, settings.seed)
            yield HeldOut(ready, questions, own, settings.support)


def held_out(
    evidences: Sequence[Evidence],
    variants: Sequence[Variant],
    scheme: str,
    settings: FitSettings = FitSettings(),
    *,
    num_folds: int = NUM_FOLDS,
    twins: Mapping[Key, Sequence[Key]] | None = None,
    folder: Path | None = None,
    progress: bool = False,
) -> dict[Variant, list[HeldOut]]:
    """Every question with the parameters of a fit that has not seen it, for each variant.

    Args:
        evidences: Raw evidence with gold, one per database.
        variants: The variants.
        scheme: "known" or "unseen".
        settings: Settings of the fits.
        num_folds: Folds of the scheme "known".
        twins: Databases to leave out of each database's training, for "unseen".
        folder: Where draws are kept under a key of data, settings and source; None keeps nothing.
        progress: Show a progress bar on stderr.

    Returns:
        For each variant the same questions in the same order: fold by fold ("known") or database by database.

    Raises:
        ValueError: As `fit_folds`.
    """
    found = {}
    for variant in tqdm(variants, unit="variant", disable=not progress):
        path = None
        if folder is not None:
            path = folder / f"{_key(evidences, variant, scheme, settings, num_folds, twins)}.npz"
        stored = _load(path)
        found[variant] = list(
            fit_folds(evidences, variant, scheme, settings, num_folds=num_folds, twins=twins, draws=stored)
        )
        if path is not None and stored is None:
            _keep(path, [item.draws for item in found[variant]])
    return found


def _key(
    evidences: Sequence[Evidence],
    variant: Variant,
    scheme: str,
    settings: FitSettings,
    num_folds: int,
    twins: Mapping[Key, Sequence[Key]] | None,
) -> str:
    """Hash of everything that the draws depend on."""
    digest = hashlib.sha256(source_hash(Path(__file__)).encode())
    asked = [
        variant.value,
        scheme,
        repr(settings),
        num_folds,
        sorted((*k, sorted(v)) for k, v in (twins or {}).items()),
    ]
    digest.update(json.dumps(asked).encode())
    for item in evidences:
        digest.update(json.dumps([item.key, item.channels]).encode())
        for array in (item.values, item.edges, item.edge_types, item.covariates, item.gold, item.group):
            digest.update(b"-" if array is None else repr(np.shape(array)).encode() + np.asarray(array).tobytes())
    return digest.hexdigest()[:24]


def _load(path: Path | None) -> list[DatabaseDraws] | None:
    """Kept draws; None where there are none, or where they cannot be read, which is logged."""
    if path is None or not path.is_file():
        return None
    try:
        with path.open("rb") as opened, np.load(opened, allow_pickle=False) as file:
            size = 1 + max(int(name.split(".")[0]) for name in file.files)
            return [
                DatabaseDraws(*(file[f"{place}.{part}"] for part in DatabaseDraws._fields)) for place in range(size)
            ]
    except (OSError, EOFError, KeyError, ValueError, zipfile.BadZipFile) as error:
        _log.warning("kept draws %s are corrupt and fitted again: %s", path, error)
        return None


def _keep(path: Path, draws: Sequence[DatabaseDraws]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    arrays = {
        f"{place}.{part}": np.asarray(value)
        for place, item in enumerate(draws)
        for part, value in zip(DatabaseDraws._fields, item, strict=True)
    }
    replace_file(path, lambda file: np.savez_compressed(file, **arrays))  # ty: ignore[invalid-argument-type]
