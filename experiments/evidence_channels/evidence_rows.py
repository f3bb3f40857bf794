"""Rows of the table: rankings by one channel or by trees alone, fitted models, and trees without a channel."""

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
from tqdm import tqdm

from bayeslink.evaluation.comparison import clustered_bootstrap, paired_difference, question_clusters
from bayeslink.evaluation.questions import stored_questions
from bayeslink.evaluation.ranking import all_gold_at_k, average_precision
from bayeslink.evaluation.report import evaluate, fit_posteriors
from bayeslink.evaluation.schemes import FitSettings
from bayeslink.evidence.boosted import fit_first
from bayeslink.evidence.channel import Evidence
from bayeslink.evidence.kinds import TREES, default_channels
from bayeslink.evidence.store import load_evidence, load_twins
from bayeslink.evidence.trees import TreeSettings
from bayeslink.inference.posterior import load_posteriors, shipped_path
from bayeslink.model.hierarchy import Terms, Variant

RICH = tuple(channel.name for channel in default_channels("rich_embedding"))
TEXT = ("encoder_columns", "encoder_descriptions")
"""The learned text channel."""
SCORES = ("map", "all_gold_at_3", "all_gold_at_5", "joint_log_score", "ece", "exact_match")


def alone(config: Mapping) -> Iterator[dict]:
    """Every channel's own ranking, and that of the trees."""
    for data in config["sets"]:
        for item in ("rich", "trees"):
            channels = (*RICH, *TEXT) if item == "rich" else TREES
            evidences = load_evidence(data, channels)
            for place, channel in enumerate(channels):
                ranked = [evidence.values[:, :, place] for evidence in evidences]
                part = "channel" if item == "rich" else "trees"
                yield {"part": part, "name": channel, "data": data} | ranking(evidences, ranked, config)


def fitted(config: Mapping) -> Iterator[dict]:
    """Each variant fitted on each list of channels, or shipped so, and scored on databases that it has never seen."""
    settings = FitSettings(num_draws=config["draws"], seed=config["seed"], context=tuple(config["context"]))
    settings = settings._replace(terms=Terms(correlated=True))
    variants = [Variant(name) for name in config["variants"]]
    for name, listed in tqdm(config["fitted"].items(), unit="list"):
        if listed == "shipped":
            shipped = load_posteriors(shipped_path(name))
            given = {variant: shipped[variant] for variant in variants}
            channels = given[variants[0]].channels
        else:
            channels = tuple(listed)
            training = stored_questions(config["train"], channels)
            posteriors = fit_posteriors(
                training, variants, ("spider-dev", "bird-dev"), settings, effects=False, max_tables=config["max_tables"]
            )
            given = dict(zip(variants, posteriors, strict=True))
        for data in config["sets"]:
            document = evaluate(stored_questions([data], channels), "transfer", given, per_question=True)
            for variant, row in document["variants"].items():
                yield {
                    "part": "fitted",
                    "name": name,
                    "data": data,
                    "variant": variant,
                    "questions": document["n_questions"],
                    "unresolved": document["n_unresolved"],
                    **{score: row[score] for score in SCORES if score in row},
                }


def without(config: Mapping) -> Iterator[dict]:
    """Trees of the first stage trained with every channel, and without each in turn, and what that changes."""
    training = training_evidence(config)
    settings = TreeSettings(rounds=config["rounds"])
    tests = {data: load_evidence(data, RICH) for data in config["sets"]}
    left_out = RICH if config["without"] == "every" else config["without"]
    base: dict[str, np.ndarray] = {}
    for name in tqdm(("nothing", *left_out), unit="trees"):
        channels = [channel for channel in RICH if channel != name]
        trees = fit_first([item.select_channels(channels) for item in training], settings)
        for data, evidences in tests.items():
            scores = [trees.score(item) for item in evidences]
            row = {"part": "without", "name": name, "data": data} | ranking(evidences, scores, config)
            values = precisions(evidences, scores)
            base.setdefault(data, values)
            rng = np.random.default_rng(config["seed"])
            found = paired_difference(values, base[data], *question_clusters(evidences), config["resamples"], rng)
            yield row | {"change": found.estimate, "change_lower": found.lower, "change_upper": found.upper}


def training_evidence(config: Mapping) -> list[Evidence]:
    """Every training database but the twins of those of the dev sets."""
    held = {item.key for data in ("spider-dev", "bird-dev") for item in load_evidence(data)}
    twins = load_twins()
    barred = held | {twin for key in held for twin in twins[key]}
    training = []
    for data in config["tree_sets"]:
        kept = [item for item in load_evidence(data, RICH) if item.key not in barred]
        training += kept[: config["databases"]]
    return training


def ranking(evidences: Sequence[Evidence], scores: Sequence[np.ndarray], config: Mapping) -> dict[str, float | int]:
    """Mean average precision with its interval, and the share of questions with all gold among the first."""
    rng = np.random.default_rng(config["seed"])
    found = clustered_bootstrap(precisions(evidences, scores), *question_clusters(evidences), config["resamples"], rng)
    first = {
        f"all_gold_at_{k}": float(
            np.concatenate([all_gold_at_k(s, e.gold, k) for e, s in zip(evidences, scores, strict=True)]).mean()
        )
        for k in (3, 5)
    }
    counted = sum(evidence.num_questions for evidence in evidences)
    return {"map": found.estimate, "map_lower": found.lower, "map_upper": found.upper, "questions": counted, **first}


def precisions(evidences: Sequence[Evidence], scores: Sequence[np.ndarray]) -> np.ndarray:
    """Average precision of each question."""
    return np.concatenate([average_precision(s, e.gold) for e, s in zip(evidences, scores, strict=True)])
