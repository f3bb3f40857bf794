"""Evaluation tables: one row per variant under a scheme, with counts, by the names of the result contract.

Nothing is left out in silence: unresolved questions, those without gold SQL and databases left out as twins
are counted.
Intervals resample databases, then gold queries (`comparison`).
"""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
from tqdm import tqdm

from bayeslink.evaluation.comparison import Interval, clustered_bootstrap, paired_difference
from bayeslink.evaluation.questions import Questions
from bayeslink.evaluation.schemes import (
    TABLE_VARIANTS,
    FitSettings,
    fit_arguments,
    in_sample,
    leave_one_database_out,
    transfer,
)
from bayeslink.evaluation.scores import Predicted, score
from bayeslink.evidence.channel import Standardisation
from bayeslink.evidence.store import load_evidence, load_fingerprints, load_twins
from bayeslink.inference.fit import fit_packed, pack_for
from bayeslink.inference.packing import pack
from bayeslink.inference.posterior import Posterior
from bayeslink.model.hierarchy import Variant
from bayeslink.provenance import provenance
from bayeslink.schema.split import twins_of

__all__ = ["NUM_RESAMPLES", "SCHEMES", "evaluate", "fit_posteriors", "known_databases"]

SCHEMES = ("in-sample", "leave-one-database-out", "transfer")

NUM_RESAMPLES = 2000
"""Bootstrap resamples behind an interval of the table."""

COMPARATORS = (Variant.INDEPENDENT_HIERARCHICAL, Variant.POOLED, Variant.POOLED_COUPLING)
"""What `hierarchical` is compared with: no coupling, nothing varying, and one coupling for all databases."""

Key = tuple[str, str]

_log = logging.getLogger(__name__)


def evaluate(
    questions: Questions,
    scheme: str,
    posteriors: Mapping[Variant, Posterior] | None = None,
    variants: Sequence[Variant] | None = None,
    settings: FitSettings = FitSettings(),
    keep_twins: bool = False,
    progress: bool = False,
    per_question: bool = False,
) -> dict:
    """The evaluation document of the result contract.

    `n_twins_left_out` counts databases, each once. Under leave-one-database-out: those of the set that were
    left out of the training of at least one other database because they are its twins. Under transfer: those
    not scored because they, or a twin, were in the posterior's training. `n_twins_left_out_of_fit` is, under
    transfer, the count of databases that the posterior's own fit had left out as twins; elsewhere it is 0.

    Args:
        questions: What is scored (and, but for transfer, fitted).
        scheme: One of `SCHEMES`.
        posteriors: For transfer: the posteriors, by variant.
        variants: The rows; by default those of the table, for transfer as far as there is a posterior.
        settings: Settings of the fits; for transfer only the seed is used.
        keep_twins: Leave twins in, for comparison.
        progress: Show a progress bar on stderr.
        per_question: Add `questions`, each one's database and number of gold SQL, and in each row `log_scores`,
            the joint log score of each, nats; for paired comparisons between documents.

    Raises:
        ValueError: If the scheme or a variant cannot be had, the posteriors differ in support, channels or
            their forms, or nothing is left to score.
    """
    if scheme not in SCHEMES:
        raise ValueError(f"scheme={scheme!r}: use one of {', '.join(SCHEMES)}")
    if not questions.evidences:
        raise ValueError(f"{questions.name}: no question has resolved gold SQL, so there is nothing to score")
    given = dict(posteriors or {})
    if scheme == "transfer" and not given:
        raise ValueError("scheme='transfer': give posteriors; nothing is fitted under transfer")
    if scheme == "transfer":
        _check_alike(given)
    rows_wanted = _rows_wanted(scheme, given, variants)
    kept = questions
    left_out = left_out_of_fit = 0
    if scheme == "transfer":
        known = [] if keep_twins else known_databases(kept, given)
        left_out = len(known)
        left_out_of_fit = max(int(item.info.get("num_twins_left_out", 0)) for item in given.values())
        kept = kept.without(known)
    if not kept.evidences:
        raise ValueError(
            f"{questions.name}: no database is left to score, all are training databases or their twins; "
            "give other databases or --keep-twins"
        )
    rows: dict[Variant, list[Predicted]] = {}
    if scheme == "in-sample":
        work = in_sample(kept.evidences, rows_wanted, settings)
        for variant, items in tqdm(work, total=len(rows_wanted), unit="variant", disable=not progress):
            rows[variant] = items
    elif scheme == "leave-one-database-out":
        keys = {item.key for item in kept.evidences}
        twins = {key: [t for t in kept.twins.get(key, ()) if t in keys] for key in keys}
        twins = {key: [] for key in keys} if keep_twins else twins
        left_out = len({twin for found in twins.values() for twin in found})
        fits = leave_one_database_out(kept.evidences, rows_wanted, twins, settings)
        total = len(rows_wanted) * len(kept.evidences)
        for variant, _, item in tqdm(fits, total=total, unit="fit", disable=not progress):
            rows.setdefault(variant, []).append(item)
    else:
        work = transfer(kept.evidences, {variant: given[variant] for variant in rows_wanted}, settings.seed)
        for variant, items in tqdm(work, total=len(rows_wanted), unit="variant", disable=not progress):
            rows[variant] = items
    first = given[rows_wanted[0]] if scheme == "transfer" else None
    support, forms = (settings.support, settings.forms) if first is None else (first.support, first.forms)
    document = {
        "data": questions.name,
        "scheme": scheme,
        "n_questions": sum(item.num_questions for item in kept.evidences),
        "n_unresolved": questions.num_unresolved,
        "n_without_query": questions.num_without_query,
        "n_databases": len(kept.evidences),
        "n_twins_left_out": left_out,
        "n_twins_left_out_of_fit": left_out_of_fit,
        "channels": list(kept.evidences[0].channels),
        "forms": list(forms) or ["value"],
        "support": support.value,
        "variants": {variant.value: _row(variant, rows, settings.seed) for variant in rows},
    }
    if per_question:
        items = rows[rows_wanted[0]]
        document["questions"] = [["/".join(item.key), int(group)] for item in items for group in item.group]
        for variant, found in rows.items():
            document["variants"][variant.value]["log_scores"] = np.concatenate([i.log_score for i in found]).tolist()
    return document


def fit_posteriors(
    questions: Questions,
    variants: Sequence[Variant],
    without_twins_of: Sequence[str] = (),
    settings: FitSettings = FitSettings(),
    effects: bool = True,
    max_tables: int | None = None,
    progress: bool = False,
    method: str = "laplace",
) -> list[Posterior]:
    """Posteriors of several variants on one set of questions, ready to be saved.

    `info` counts the databases left out, num_twins_left_out and num_too_large, and the questions left out,
    num_unresolved and num_without_query. Twins of held-out databases are known by key and by fingerprint.

    Args:
        questions: Training questions.
        variants: What to fit.
        without_twins_of: Stored sets whose databases' twins (and themselves) are left out.
        settings: Settings of the fits.
        effects: Draw the databases' own parameters too.
        max_tables: Leave out larger databases; None keeps all.
        progress: Show a progress bar on stderr.
        method: One of `inference.fit.METHODS`.

    Raises:
        ValueError: If no database is left.
    """
    held = {item.key for name in without_twins_of for item in load_evidence(name)}
    barred = {twin for key in held for twin in load_twins().get(key, ())} | held
    if held:
        stored = load_fingerprints()
        barred |= set(_twins_or_copies(questions, {key: stored[key] for key in held}))
    training = questions.without(barred)
    left_out = len(questions.evidences) - len(training.evidences)
    too_large = [item.key for item in training.evidences if max_tables is not None and item.num_tables > max_tables]
    training = training.without(too_large)
    if not training.evidences:
        raise ValueError(f"{questions.name}: no database is left to fit on; give other data")
    standardisation = Standardisation.fit(training.evidences, settings.context, settings.forms)
    ready = [standardisation.apply(item) for item in training.evidences]
    batch = pack(ready)
    value_batch = pack_for(method, ready)
    keys = tuple(item.key for item in training.evidences)
    record = provenance(questions.files) | {
        "data": questions.name,
        "without twins of": " ".join(without_twins_of),
    }
    posteriors = []
    for variant in tqdm(variants, unit="fit", disable=not progress):
        found, _ = fit_packed(
            batch,
            keys,
            standardisation,
            variant,
            effects=effects,
            method=method,
            value_batch=value_batch,
            progress=progress,
            **fit_arguments(settings),
        )
        posteriors.append(
            replace(
                found,
                info={
                    **found.info,
                    "num_twins_left_out": left_out,
                    "num_too_large": len(too_large),
                    "num_unresolved": questions.num_unresolved,
                    "num_without_query": questions.num_without_query,
                },
                provenance=record,
                fingerprints=tuple(questions.fingerprints[key] for key in keys),
            )
        )
    return posteriors


def _check_alike(posteriors: Mapping[Variant, Posterior]) -> None:
    """One document states one support, one list of channels and their forms, so the posteriors must share them."""
    for name, found in (
        ("support", {variant: item.support.value for variant, item in posteriors.items()}),
        ("channels", {variant: "+".join(item.channels) for variant, item in posteriors.items()}),
        ("forms", {variant: "+".join(item.forms) or "value" for variant, item in posteriors.items()}),
    ):
        if len(set(found.values())) > 1:
            stated = ", ".join(f"{variant.value} {value}" for variant, value in found.items())
            raise ValueError(f"posterior: its variants differ in {name} ({stated}); fit them in one go")


def _rows_wanted(
    scheme: str, posteriors: Mapping[Variant, Posterior], variants: Sequence[Variant] | None
) -> tuple[Variant, ...]:
    """The variants to score; one that cannot be had is an error before anything is fitted."""
    if scheme == "transfer":
        wanted = tuple(variants or (variant for variant in TABLE_VARIANTS if variant in posteriors))
        if missing := [variant.value for variant in wanted if variant not in posteriors]:
            held = ", ".join(variant.value for variant in posteriors)
            raise ValueError(f"variant={', '.join(missing)}: the posterior holds {held} only")
    else:
        wanted = tuple(variants or TABLE_VARIANTS)
    if not wanted or (Variant.UNPOOLED in wanted and scheme != "in-sample"):
        raise ValueError(f"variant=unpooled says nothing of an unseen database, which scheme={scheme} is about")
    return wanted


def _row(variant: Variant, rows: Mapping[Variant, Sequence[Predicted]], seed: int) -> dict:
    """Scores of a variant, with clustered intervals of its shift and of its gain over the comparators."""
    items = rows[variant]
    databases = [item.key for item in items for _ in item.group]
    groups = np.concatenate([item.group for item in items])
    excess = np.concatenate([(item.marginals - item.gold).sum(axis=1) for item in items])
    pairs = np.concatenate([np.full(len(item.gold), item.gold.shape[1], dtype=np.float64) for item in items])
    shift = clustered_bootstrap(
        np.stack([excess, pairs], axis=1),
        databases,
        groups,
        NUM_RESAMPLES,
        np.random.default_rng(seed),
        lambda drawn: drawn[:, 0].sum() / drawn[:, 1].sum(),
    )
    row: dict = score(items) | {"mean_shift_interval": [shift.lower, shift.upper]}
    if variant is Variant.HIERARCHICAL:
        row["joint_log_score_difference"] = {
            other.value: _gain(items, rows[other], databases, groups, seed)._asdict()
            for other in COMPARATORS
            if other in rows
        }
    return row


def _gain(
    items: Sequence[Predicted],
    others: Sequence[Predicted],
    databases: Sequence[Key],
    groups: np.ndarray,
    seed: int,
) -> Interval:
    first, second = (np.concatenate([item.log_score for item in found]) for found in (items, others))
    return paired_difference(first, second, databases, groups, NUM_RESAMPLES, np.random.default_rng(seed))


def known_databases(questions: Questions, posteriors: Mapping[Variant, Posterior]) -> list[Key]:
    """Databases that a posterior was fitted on, or twins of such ones."""
    trained = {key for item in posteriors.values() for key in item.trained}
    prints: dict[Key, np.ndarray] = {}
    for item in posteriors.values():
        prints.update(zip(item.trained, item.fingerprints, strict=False))
    if without := trained - prints.keys():
        _log.warning(
            "posterior: %d of its %d training databases have no fingerprint, so twins of them cannot be recognised; "
            "only databases of the same name are left out",
            len(without),
            len(trained),
        )
    again = {*trained, *_twins_or_copies(questions, prints)}
    return [item.key for item in questions.evidences if item.key in again]


def _twins_or_copies(questions: Questions, prints: Mapping[Key, np.ndarray]) -> list[Key]:
    """Databases of the set whose fingerprint is that of a twin, or of a copy too small to be called a twin."""
    return [
        item.key
        for item in questions.evidences
        if twins_of(own := questions.fingerprints[item.key], prints)
        or any(np.array_equal(own, other) for other in prints.values())
    ]
