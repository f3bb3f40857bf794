"""Rows of the table: leave-one-database-out and transfer under each setting."""

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import jax

from bayeslink.evaluation.questions import Questions, stored_questions
from bayeslink.evaluation.report import evaluate, fit_posteriors
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


def _rows(document: Mapping, setting: str, scheme: str, data: str) -> Iterator[dict]:
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
        yield row


def _kept(asked: object, make: Callable[[], Any]) -> Any:
    """The evaluation documents of these settings, kept in the cache so that a stopped run goes on."""
    name = hashlib.sha256(json.dumps(asked, sort_keys=True).encode()).hexdigest()[:24]
    path = cache_home() / "unseen_databases" / f"{name}.json"
    if not path.is_file():
        document = make()
        path.parent.mkdir(parents=True, exist_ok=True)
        path.with_suffix(".tmp").write_text(json.dumps(document))
        path.with_suffix(".tmp").rename(path)
        # Hundreds of compiled programs in one process run out of memory maps.
        jax.clear_caches()
    return json.loads(path.read_text())


def unseen_rows(config: Mapping, source: str) -> Iterator[dict]:
    """Leave-one-database-out on the sets of each setting."""
    for setting, asked_for in config["settings"].items():
        settings, variants = settings_of(config, asked_for)
        for data in asked_for["sets"]:
            asked = [asked_for, [variant.value for variant in variants], data, source]
            asked += [config["num_draws"], config["seed"], config["databases"]]

            def scored(data=data, settings=settings, variants=variants) -> dict:
                questions = _questions(config, [data])
                return evaluate(questions, LODO, variants=variants, settings=settings, progress=True)

            yield from _rows(_kept(asked, scored), setting, "lodo", data)


def transfer_rows(config: Mapping) -> Iterator[dict]:
    """The shipped posteriors on databases that they have never seen."""
    posteriors = load_posteriors(shipped_path("embedding"))
    for data in config["transfer"]:
        wanted = [Variant(variant) for variant in config["variants"]]
        document = evaluate(_questions(config, [data]), "transfer", posteriors, wanted, progress=True)
        yield from _rows(document, "main", "transfer", data)


def refit_rows(config: Mapping, source: str) -> Iterator[dict]:
    """Other fits on the training sets, scored as the shipped posteriors are."""
    held = ("spider-dev", "bird-dev")
    for setting, asked_for in config["refits"].items():
        settings, variants = settings_of(config, asked_for)
        twins = bool(asked_for.get("keep_twins", False))

        def scored(asked_for=asked_for, settings=settings, variants=variants, twins=twins) -> list[dict]:
            questions = _questions(config, asked_for["train"])
            found = fit_posteriors(
                questions, variants, () if twins else held, settings, False, asked_for["max_tables"], progress=True
            )
            posteriors = {item.variant: item for item in found}
            return [
                evaluate(_questions(config, [data]), "transfer", posteriors, variants, keep_twins=twins, progress=True)
                for data in config["transfer"]
            ]

        asked = ["refit", asked_for, [variant.value for variant in variants], config["transfer"], source]
        asked += [config["num_draws"], config["seed"], config["databases"]]
        for data, document in zip(config["transfer"], _kept(asked, scored), strict=True):
            yield from _rows(document, setting, "transfer", data)
