"""Prompt tokens of the whole schema, and of covers at their levels, with how often every gold table is inside."""

import json
from collections.abc import Iterator, Mapping, Sequence

import numpy as np
from tqdm import tqdm

from bayeslink.evaluation.comparison import clustered_bootstrap, question_clusters
from bayeslink.evaluation.prefixes import Prefixes, prefixes_of
from bayeslink.evidence.channel import Evidence
from bayeslink.evidence.store import evidence_home, load_evidence
from bayeslink.inference.posterior import load_posteriors, shipped_path
from bayeslink.inference.predictive import predict
from bayeslink.model.hierarchy import Variant


def saving_rows(config: Mapping) -> Iterator[dict]:
    """Rows of every set and level."""
    tokens = json.loads((evidence_home() / "warehouses" / "ddl_tokens.json").read_text())
    posterior = load_posteriors(shipped_path(config["list"]))[Variant(config["variant"])]
    for item in tqdm(config["sets"], unit="set"):
        evidences = load_evidence(item["data"], [config["list"]])
        weights = [np.array(tokens[item["tokens"]][evidence.db_id], dtype=float) for evidence in evidences]
        found = []
        for place, (evidence, cost) in enumerate(zip(evidences, weights, strict=True)):
            ready = posterior.standardisation.apply(evidence)
            draws = posterior.unseen(config["seed"] + place, ready, config["draws"])
            distribution = predict(ready, draws, posterior.support)[0]
            found.append(prefixes_of(distribution, evidence.gold, cost, config["longest"]))
        whole = np.concatenate(
            [np.full(e.num_questions, cost.sum()) for e, cost in zip(evidences, weights, strict=True)]
        )
        for level in config["levels"]:
            yield {"set": item["name"], "level": level} | row_of(found, evidences, whole, level, config)


def row_of(
    found: Sequence[Prefixes], evidences: Sequence[Evidence], whole: np.ndarray, level: float, config: Mapping
) -> dict[str, float | int]:
    """Tokens sent and saved at a level, over questions and over databases, and how often all gold is inside."""
    short = [(item.coverage < level - 1e-12).sum(axis=1) for item in found]
    lengths = [np.minimum(own, item.cost.shape[1] - 1) for own, item in zip(short, found, strict=True)]
    sent = np.concatenate([item.cost[np.arange(len(own)), own] for item, own in zip(found, lengths, strict=True)])
    hit = np.concatenate([item.needed <= own for item, own in zip(found, lengths, strict=True)])
    clusters = question_clusters(evidences)
    rng = np.random.default_rng(config["seed"])
    covered = clustered_bootstrap(hit.astype(float), *clusters, config["resamples"], rng)
    saved = 1 - sent / whole
    databases = np.array(["/".join(key) for key in clusters[0]])
    per_database = [saved[databases == name].mean() for name in sorted(set(databases.tolist()))]
    return {
        "questions": len(hit),
        "databases": len(per_database),
        "median_tables": float(np.median([item.num_tables for item in evidences])),
        "tokens_whole": float(whole.mean()),
        "tokens_sent": float(sent.mean()),
        "saved_of_all_tokens": float(1 - sent.sum() / whole.sum()),
        "saved_median_database": float(np.median(per_database)),
        "mean_size": float(np.concatenate(lengths).mean()),
        "longest_reached": float(np.concatenate([own > c for own, c in zip(short, lengths, strict=True)]).mean()),
        "coverage": covered.estimate,
        "coverage_lower": covered.lower,
        "coverage_upper": covered.upper,
    }
