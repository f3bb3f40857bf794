"""Covers of unseen databases at their own levels, and at the mean size of what another system returns."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np
from tqdm import tqdm

from bayeslink.decision.sets import level_of_size, smallest_cover
from bayeslink.evaluation.comparison import clustered_bootstrap, mcnemar, paired_difference, question_clusters
from bayeslink.evaluation.questions import stored_questions
from bayeslink.evaluation.ranking import all_gold_at_k
from bayeslink.evaluation.report import fit_posteriors
from bayeslink.evaluation.schemes import FitSettings, fresh_draws
from bayeslink.evidence.channel import Evidence
from bayeslink.evidence.peers import load_returned
from bayeslink.evidence.store import load_evidence
from bayeslink.inference.posterior import Posterior, load_posteriors, shipped_path
from bayeslink.inference.predictive import predict
from bayeslink.model.hierarchy import Terms, Variant


def cover_rows(config: Mapping) -> Iterator[dict]:
    """Rows of every pair: each level, then each k of the peer."""
    fitted: dict[str, dict[str, Posterior]] = {}
    for pair in tqdm(config["pairs"], unit="pair"):
        if pair["list"] not in fitted:
            fitted[pair["list"]] = posteriors(pair["list"], config)
        evidences = load_evidence(pair["data"], [pair["list"]])
        yield from plain_rows(pair, config)
        yield from fused_rows(pair, config)
        for variant, posterior in fitted[pair["list"]].items():
            ready = [posterior.standardisation.apply(item) for item in evidences]
            found = [
                predict(item, fresh_draws(posterior, item, config["seed"]), posterior.support)[0] for item in ready
            ]
            same = {"list": pair["list"], "data": pair["data"], "peer": "", "k": 0, "variant": variant}
            for level in config["levels"]:
                chosen = [smallest_cover(item, level).chosen for item in found]
                yield same | {"level": level} | held(evidences, chosen, config) | NO_PEER
            for k in pair["k"]:
                returned = [item.chosen for item in load_returned(pair["peer"], k)]
                level = level_of_size(found, mean_size(returned))
                chosen = [smallest_cover(item, level).chosen for item in found]
                row = same | {"peer": pair["peer"], "k": k, "level": level}
                yield row | held(evidences, chosen, config) | beside(evidences, chosen, returned, config)


def plain_rows(pair: Mapping, config: Mapping) -> Iterator[dict]:
    """The best tables by one channel alone, as many of every question as give the peer's mean size.

    The size lies between those of the best k and k + 1 tables; the share is interpolated, as if a coin chose.
    """
    evidences = load_evidence(pair["data"], config["plain"])
    counts = np.concatenate([np.full(item.num_questions, item.num_tables) for item in evidences])
    for k in pair["k"]:
        size = mean_size([item.chosen for item in load_returned(pair["peer"], k)])
        sizes = np.array([np.minimum(best, counts).mean() for best in range(counts.max() + 1)])
        best = min(int(np.searchsorted(sizes, size, side="right")) - 1, len(sizes) - 2)
        weight = (size - sizes[best]) / (sizes[best + 1] - sizes[best])
        for place, name in enumerate(config["plain"]):
            shares = [
                np.concatenate([all_gold_at_k(item.values[:, :, place], item.gold, top) for item in evidences])
                for top in (best, best + 1)
            ]
            value = (1 - weight) * shares[0] + weight * shares[1]
            found = clustered_bootstrap(
                value, *question_clusters(evidences), config["resamples"], np.random.default_rng(config["seed"])
            )
            row = {"list": pair["list"], "data": pair["data"], "peer": pair["peer"], "k": k, "variant": name}
            row |= {"level": None, "questions": len(value), "coverage": found.estimate}
            yield row | {"coverage_lower": found.lower, "coverage_upper": found.upper, "mean_size": size} | NO_PEER


def fused_rows(pair: Mapping, config: Mapping) -> Iterator[dict]:
    """Our own build of the peer's retrieval at the same k: what it returns may differ in size."""
    evidences = load_evidence(pair["data"])
    for k in pair["k"]:
        fused, returned = (
            [item.chosen for item in load_returned(name, k)]
            for name in (pair["peer"].replace("schemagate", "fused"), pair["peer"])
        )
        row = {"list": pair["list"], "data": pair["data"], "peer": pair["peer"], "k": k, "variant": "fused_retrieval"}
        yield row | {"level": None} | held(evidences, fused, config) | beside(evidences, fused, returned, config)


def posteriors(channel: str, config: Mapping) -> dict[str, Posterior]:
    """Each variant of the package, or fitted on the training databases where it carries none, by name."""
    if channel in config["shipped"]:
        shipped = load_posteriors(shipped_path(channel))
        return {name: shipped[Variant(name)] for name in config["variants"]}
    training = stored_questions(config["train"], [channel])
    training = replace(training, evidences=training.evidences[: config["databases"]])
    variants = [Variant(name) for name in config["variants"]]
    settings = FitSettings(
        num_draws=config["draws"],
        seed=config["seed"],
        context=tuple(config["context"]),
        terms=Terms(correlated=True),
    )
    found = fit_posteriors(
        training, variants, ("spider-dev", "bird-dev"), settings, effects=False, max_tables=config["max_tables"]
    )
    return dict(zip(config["variants"], found, strict=True))


def held(evidences: Sequence[Evidence], chosen: Sequence[np.ndarray], config: Mapping) -> dict[str, float | int]:
    """Share of questions whose gold is inside the chosen sets, with its interval, and the sets' mean size."""
    rng = np.random.default_rng(config["seed"])
    values = inside(evidences, chosen).astype(float)
    share = clustered_bootstrap(values, *question_clusters(evidences), config["resamples"], rng)
    return {
        "questions": len(values),
        "coverage": share.estimate,
        "coverage_lower": share.lower,
        "coverage_upper": share.upper,
        "mean_size": mean_size(chosen),
    }


def beside(
    evidences: Sequence[Evidence], chosen: Sequence[np.ndarray], returned: Sequence[np.ndarray], config: Mapping
) -> dict[str, float | int]:
    """The peer's size and coverage on the same questions, and the paired difference."""
    rng = np.random.default_rng(config["seed"])
    ours, theirs = inside(evidences, chosen), inside(evidences, returned)
    clusters = question_clusters(evidences)
    gain = paired_difference(ours.astype(float), theirs.astype(float), *clusters, config["resamples"], rng)
    test = mcnemar(ours, theirs)
    return {
        "peer_size": mean_size(returned),
        "peer_coverage": float(theirs.mean()),
        "gain": gain.estimate,
        "gain_lower": gain.lower,
        "gain_upper": gain.upper,
        "only_ours": test.only_first,
        "only_peer": test.only_second,
        "p_value": test.p_value,
    }


NO_PEER = dict.fromkeys(
    ("peer_size", "peer_coverage", "gain", "gain_lower", "gain_upper", "only_ours", "only_peer", "p_value")
)


def inside(evidences: Sequence[Evidence], chosen: Sequence[np.ndarray]) -> np.ndarray:
    """Whether every gold table of each question is among the chosen."""
    return np.concatenate([~(item.gold & ~sets).any(axis=1) for item, sets in zip(evidences, chosen, strict=True)])


def mean_size(chosen: Sequence[np.ndarray]) -> float:
    """Mean number of chosen tables over all questions."""
    return float(np.concatenate([sets.sum(axis=1) for sets in chosen]).mean())
