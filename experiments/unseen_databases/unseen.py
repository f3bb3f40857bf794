"""Rows of the table: leave-one-database-out and transfer under each setting."""

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import jax
import numpy as np

from bayeslink.evaluation.comparison import Interval, paired_difference
from bayeslink.evaluation.questions import Questions, stored_questions
from bayeslink.evaluation.report import NUM_RESAMPLES, evaluate, fit_posteriors
from bayeslink.evaluation.schemes import FitSettings
from bayeslink.evidence.cache import cache_home
from bayeslink.inference.posterior import load_posteriors, shipped_path
from bayeslink.model.hierarchy import Terms, Variant

LODO = "leave-one-database-out"
OTHERS = ("independent_hierarchical", "pooled", "pooled_coupling")
SCORES = ("joint_log_score", "ece", "mean_shift", "map", "precision", "strict_recall", "exact_match", "mean_size")


def settings_of(config: Mapping, asked: Mapping) -> tuple[FitSettings, list[Variant]]:
    """The fit settings of a setting or a refit and the variants that it is asked for."""
    terms = Terms(**{term: bool(asked.get(term, False)) for term in Terms._fields})
    settings = FitSettings(
        num_draws=config["num_draws"], seed=config["seed"], context=tuple(asked["context"]), terms=terms
    )
    wanted = [variant for variant in asked.get("variants", config["variants"]) if variant in config["variants"]]
    return settings, [Variant(variant) for variant in wanted]


def _questions(config: Mapping, names: Sequence[str]) -> Questions:
    found = stored_questions(names, config["channels"])
    return replace(found, evidences=found.evidences[: config["databases"]])


def _rows(document: Mapping, usual: Mapping | None, setting: str, scheme: str, data: str) -> Iterator[dict]:
    for variant, scored in document["variants"].items():
        lower, upper = scored["mean_shift_interval"]
        row = {
            "setting": setting,
            "scheme": scheme,
            "data": data,
            "variant": variant,
            "questions": document["n_questions"],
            "unresolved": document["n_unresolved"],
            "databases": document["n_databases"],
            "twins_left_out": document["n_twins_left_out"] + document["n_twins_left_out_of_fit"],
        }
        row |= {name: scored[name] for name in SCORES} | {"shift_lower": lower, "shift_upper": upper}
        row |= {"coverage_95": scored["cover"]["0.95"]["coverage"], "size_95": scored["cover"]["0.95"]["mean_size"]}
        gains = scored.get("joint_log_score_difference", {})
        for other in OTHERS:
            found = gains.get(other, {})
            row |= {
                f"gain_over_{other}": found.get("estimate"),
                f"gain_over_{other}_lower": found.get("lower"),
                f"gain_over_{other}_upper": found.get("upper"),
            }
        over = _over_main(document, usual, variant)
        for part in Interval._fields:
            row[f"gain_over_main_{part}"] = None if over is None else getattr(over, part)
        yield row


def _kept(asked: object, force: bool, make: Callable[[], Any]) -> Any:
    """The evaluation documents of these settings, kept in the cache so that a stopped run goes on."""
    name = hashlib.sha256(json.dumps(asked, sort_keys=True).encode()).hexdigest()[:24]
    path = cache_home() / "unseen_databases" / f"{name}.json"
    if force or not path.is_file():
        document = make()
        path.parent.mkdir(parents=True, exist_ok=True)
        path.with_suffix(".tmp").write_text(json.dumps(document))
        path.with_suffix(".tmp").rename(path)
        # Hundreds of compiled programs in one process run out of memory maps.
        jax.clear_caches()
    return json.loads(path.read_text())


def documents(config: Mapping, depends_on: object, force: bool) -> Iterator[tuple[str, str, str, dict]]:
    """(setting, scheme, set, evaluation document) of every setting and refit.

    Args:
        config: The experiment's.
        depends_on: What else the documents follow from, the source's and the data's hashes.
        force: Make anew what the cache holds.
    """
    common = [depends_on, config["num_draws"], config["seed"], config["databases"], config["channels"]]
    for setting, asked_for in config["settings"].items():
        settings, variants = settings_of(config, asked_for)
        for data in asked_for["sets"]:
            asked = [*common, asked_for, [variant.value for variant in variants], data]

            def scored(data=data, settings=settings, variants=variants) -> dict:
                questions = _questions(config, [data])
                return evaluate(questions, LODO, variants=variants, settings=settings, progress=True, per_question=True)

            yield setting, "lodo", data, _kept(asked, force, scored)
    wanted = [Variant(variant) for variant in config["variants"]]
    for data in config["transfer"]:

        def shipped(data=data) -> dict:
            posteriors = load_posteriors(shipped_path("embedding"))
            questions = _questions(config, [data])
            return evaluate(questions, "transfer", posteriors, wanted, progress=True, per_question=True)

        yield "main", "transfer", data, _kept([*common, "shipped", config["variants"], data], force, shipped)
    for setting, asked_for in config["refits"].items():

        def refitted(asked_for=asked_for) -> list[dict]:
            return _refit(config, asked_for)

        asked = [*common, "refit", asked_for, config["variants"], config["transfer"]]
        for data, document in zip(config["transfer"], _kept(asked, force, refitted), strict=True):
            yield setting, "transfer", data, document


def _refit(config: Mapping, asked_for: Mapping) -> list[dict]:
    """Another fit on the training sets, scored on each set as the shipped posteriors are."""
    settings, variants = settings_of(config, asked_for)
    twins = bool(asked_for.get("keep_twins", False))
    without = () if twins else ("spider-dev", "bird-dev")
    questions = _questions(config, asked_for["train"])
    found = fit_posteriors(questions, variants, without, settings, False, asked_for["max_tables"], progress=True)
    posteriors = {item.variant: item for item in found}
    return [
        evaluate(
            _questions(config, [data]),
            "transfer",
            posteriors,
            variants,
            keep_twins=twins,
            progress=True,
            per_question=True,
        )
        for data in config["transfer"]
    ]


def rows_of(config: Mapping, depends_on: object, force: bool) -> list[dict]:
    """The table: a row for every setting, scheme, set and variant."""
    found = list(documents(config, depends_on, force))
    usual = {(scheme, data): document for setting, scheme, data, document in found if setting == "main"}
    return [
        row
        for setting, scheme, data, document in found
        for row in _rows(document, None if setting == "main" else usual.get((scheme, data)), setting, scheme, data)
    ]


def _over_main(document: Mapping, usual: Mapping | None, variant: str) -> Interval | None:
    """Joint log score of a variant less the same variant's in `main`, paired by question."""
    if usual is None or variant not in usual["variants"]:
        return None
    if document["questions"] != usual["questions"]:
        raise ValueError("two settings were scored on different questions; run again with --force")
    databases, groups = zip(*document["questions"], strict=True)
    first, second = (np.array(item["variants"][variant]["log_scores"]) for item in (document, usual))
    rng = np.random.default_rng(0)
    return paired_difference(first, second, databases, np.array(groups), NUM_RESAMPLES, rng)
