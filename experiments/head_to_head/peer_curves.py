"""All gold tables at the mean size, and the mean tokens, of what another system returns, for every k it was asked."""

import json
from collections.abc import Iterator, Mapping, Sequence

import numpy as np
from tqdm import tqdm

from bayeslink.evaluation.comparison import mcnemar, paired_difference, question_clusters
from bayeslink.evaluation.prefixes import (
    Prefixes,
    constant_lengths,
    level_lengths,
    prefixes_of,
    ranked_prefixes,
)
from bayeslink.evidence.channel import Evidence
from bayeslink.evidence.peers import load_pooled, load_returned
from bayeslink.evidence.store import evidence_home, load_evidence
from bayeslink.inference.posterior import load_posteriors, shipped_path
from bayeslink.inference.predictive import predict
from bayeslink.model.hierarchy import Variant


def curve_rows(config: Mapping) -> Iterator[dict]:
    """Rows of every set: each method at each k of the peer, for tables and for tokens."""
    tokens = json.loads((evidence_home() / "warehouses" / "ddl_tokens.json").read_text())
    for item in tqdm(config["sets"], unit="set"):
        evidences = load_evidence(item["data"], [item["list"], *config["plain"]])
        weights = [np.array(tokens[item["tokens"]][evidence.db_id], dtype=float) for evidence in evidences]
        methods = {name: posterior_prefixes(name, item, evidences, weights, config) for name in config["variants"]}
        # The same ranking with one length for all questions, which the posterior does not choose.
        methods["top_k"] = {
            unit: [one._replace(coverage=np.full_like(one.coverage, np.nan)) for one in found]
            for unit, found in methods[config["variants"][0]].items()
        }
        for place, name in enumerate(config["plain"], start=1):
            methods[name] = {
                unit: [
                    ranked_prefixes(evidence.values[:, :, place], evidence.gold, cost, config["longest"])
                    for evidence, cost in zip(evidences, costs(unit, weights), strict=True)
                ]
                for unit in config["units"]
            }
        for k in item["k"]:
            returned = [found.chosen for found in load_returned(item["peer"], k)]
            for unit in config["units"]:
                paid = peer_costs(returned, costs(unit, weights))
                peer = inside(evidences, returned)
                row = {"set": item["name"], "k": k, "unit": unit, "peer_cost": float(paid.mean())}
                row |= {"questions": len(peer), "unresolved": item["unresolved"], "peer_coverage": float(peer.mean())}
                row["closure"] = closure(returned, evidences, k) if unit == "tables" else None
                for method, prefixes in methods.items():
                    yield row | against(method, prefixes[unit], float(paid.mean()), peer, evidences, config)


def posterior_prefixes(
    name: str, item: Mapping, evidences: Sequence[Evidence], weights: Sequence[np.ndarray], config: Mapping
) -> dict[str, list[Prefixes]]:
    """Prefixes of one variant's posterior for every unit."""
    posterior = load_posteriors(shipped_path(item["posterior"]))[Variant(name)]
    found: dict[str, list[Prefixes]] = {unit: [] for unit in config["units"]}
    for place, evidence in enumerate(evidences):
        ready = posterior.standardisation.apply(evidence.select_channels([item["list"]]))
        draws = posterior.unseen(config["seed"] + place, ready, config["draws"])
        distribution = predict(ready, draws, posterior.support)[0]
        first: Prefixes | None = None
        for unit, cost in ((unit, costs(unit, [weights[place]])[0]) for unit in config["units"]):
            if first is None:
                first = prefixes_of(distribution, evidence.gold, cost, config["longest"])
                found[unit].append(first)
                continue
            other = ranked_prefixes(distribution.marginals, evidence.gold, cost, config["longest"])
            found[unit].append(other._replace(coverage=first.coverage))
    return found


def costs(unit: str, weights: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Cost of each table: 1, or its tokens."""
    return [np.ones_like(own) if unit == "tables" else own for own in weights]


def peer_costs(returned: Sequence[np.ndarray], weights: Sequence[np.ndarray]) -> np.ndarray:
    """Cost of what came back for each question."""
    return np.concatenate([chosen @ own for chosen, own in zip(returned, weights, strict=True)])


def inside(evidences: Sequence[Evidence], chosen: Sequence[np.ndarray]) -> np.ndarray:
    """Whether every gold table of each question is among the chosen."""
    return np.concatenate([~(item.gold & ~sets).any(axis=1) for item, sets in zip(evidences, chosen, strict=True)])


def closure(returned: Sequence[np.ndarray], evidences: Sequence[Evidence], k: int) -> float:
    """Mean number of tables beyond the k that were asked for, or beyond all there are."""
    extra = [sets.sum(axis=1) - min(k, item.num_tables) for sets, item in zip(returned, evidences, strict=True)]
    return float(np.concatenate(extra).mean())


def against(
    method: str,
    prefixes: list[Prefixes],
    paid: float,
    peer: np.ndarray,
    evidences: Sequence[Evidence],
    config: Mapping,
) -> dict[str, float | int | str | None]:
    """Coverage of a method at a mean cost, and the paired comparison with the peer."""
    has_posterior = not np.isnan(prefixes[0].coverage).any()
    chosen, lengths = (level_lengths if has_posterior else constant_lengths)(prefixes, paid)
    hit = np.concatenate([item.needed <= own for item, own in zip(prefixes, lengths, strict=True)])
    cost = np.concatenate([item.cost[np.arange(len(own)), own] for item, own in zip(prefixes, lengths, strict=True)])
    rng = np.random.default_rng(config["seed"])
    clusters = question_clusters(evidences)
    gain = paired_difference(hit.astype(float), peer.astype(float), *clusters, config["resamples"], rng)
    test = mcnemar(hit, peer)
    return {
        "method": method,
        "chosen": float(chosen),
        "cost": float(cost.mean()),
        "coverage": float(hit.mean()),
        "gain": gain.estimate,
        "gain_lower": gain.lower,
        "gain_upper": gain.upper,
        "only_ours": test.only_first,
        "only_peer": test.only_second,
        "p_value": test.p_value,
    }


def pooled_figures() -> dict[str, float]:
    """What the stored pooled runs of the peer hold, by run and k."""
    names = {"spider": "schemagate-spider-dev-pooled", "bird": "schemagate-bird-dev-pooled"}
    names["bird_evidence"] = "schemagate-bird-dev-evidence-pooled"
    return {
        f"{what}_pooled_{name}_k{k}": value
        for name, stored in names.items()
        for k, run in load_pooled(stored).items()
        for what, value in (("coverage_peer", float(run.holds_gold.mean())), ("peer_size", float(run.size.mean())))
    }
