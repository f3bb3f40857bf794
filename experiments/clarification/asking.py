"""Exact matches of the joint mode before and after questions that gold answers."""

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
from tqdm import tqdm

from bayeslink.decision.clarify import clarifying_question
from bayeslink.evaluation.comparison import Interval, clustered_bootstrap, paired_difference, question_clusters
from bayeslink.evaluation.recovery import exact_match
from bayeslink.evaluation.schemes import fresh_draws
from bayeslink.evidence.channel import Evidence
from bayeslink.evidence.store import load_evidence
from bayeslink.inference import make_room
from bayeslink.inference.posterior import Posterior, load_posteriors, shipped_path
from bayeslink.inference.predictive import predict
from bayeslink.model.hierarchy import Variant

RULES = ("rivals", "entropy")
"""The question that makes the mode most often right; the one about the marginal nearest 1/2."""


def rows_of(config: Mapping) -> Iterator[dict]:
    """A row for each list, set, variant, rule and number of questions asked."""
    cases = [(name, data) for name in config["lists"] for data in config["sets"]]
    for name, data in tqdm(cases, unit="set"):
        shipped = load_posteriors(shipped_path(name))
        posteriors = {variant: shipped[Variant(variant)] for variant in config["variants"]}
        channels = next(iter(posteriors.values())).channels
        evidences = load_evidence(data, channels)[: config["databases"]]
        for variant, posterior in posteriors.items():
            found = {rule: exact_by_round(evidences, posterior, rule, config) for rule in RULES}
            expected = found["rivals"][1]
            for rule in RULES:
                for asked, exact in enumerate(found[rule][0]):
                    row = {"list": name, "data": data, "variant": variant, "rule": rule, "asked": asked}
                    row |= {"questions": len(exact)} | interval("exact", share(exact, evidences, config))
                    row |= interval("gain", differ(exact, found[rule][0][0], evidences, config))
                    row |= interval("over_entropy", differ(exact, found["entropy"][0][asked], evidences, config))
                    yield row | {"expected": float(expected.mean()) if rule == "rivals" and asked == 1 else None}


def exact_by_round(
    evidences: Sequence[Evidence], posterior: Posterior, rule: str, config: Mapping
) -> tuple[list[np.ndarray], np.ndarray]:
    """Whether the mode is gold after 0, 1, ... questions, and what the first was expected to bring."""
    rounds: list[list[np.ndarray]] = [[] for _ in range(config["rounds"] + 1)]
    expected = []
    for item in evidences:
        ready = posterior.standardisation.apply(item)
        distribution, _ = predict(ready, fresh_draws(posterior, ready, config["seed"]), posterior.support)
        gold = np.asarray(item.gold)
        rows = np.arange(len(gold))
        for asked in range(config["rounds"] + 1):
            rounds[asked].append(exact_match(distribution.mode, gold))
            if asked == config["rounds"]:
                break
            question = clarifying_question(distribution, rule)
            if asked == 0:
                expected.append(question.after)
            distribution = distribution.condition(question.table, gold[rows, question.table])
        make_room()
    return [np.concatenate(parts) for parts in rounds], np.concatenate(expected)


def share(values: np.ndarray, evidences: Sequence[Evidence], config: Mapping) -> Interval:
    """Mean with its clustered interval."""
    rng = np.random.default_rng(config["seed"])
    return clustered_bootstrap(values, *question_clusters(evidences), config["resamples"], rng)


def differ(first: np.ndarray, second: np.ndarray, evidences: Sequence[Evidence], config: Mapping) -> Interval:
    """Mean difference with its clustered interval."""
    rng = np.random.default_rng(config["seed"])
    return paired_difference(first, second, *question_clusters(evidences), config["resamples"], rng)


def interval(name: str, found: Interval) -> dict[str, float]:
    """Columns of an estimate and its bounds."""
    return {name: found.estimate, f"{name}_lower": found.lower, f"{name}_upper": found.upper}
