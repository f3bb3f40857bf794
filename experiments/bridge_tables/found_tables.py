"""Gold tables no word of whose name is in the question, and all gold tables, by rankings, expansions and a peer."""

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
from tqdm import tqdm

from bayeslink.baselines.connectors import expand, expand_along
from bayeslink.evaluation.comparison import mcnemar, paired_difference, question_clusters
from bayeslink.evaluation.prefixes import level_lengths, prefixes_of
from bayeslink.evidence.channel import Evidence
from bayeslink.evidence.peers import load_returned
from bayeslink.evidence.store import load_evidence
from bayeslink.inference.posterior import load_posteriors, shipped_path
from bayeslink.inference.predictive import predict
from bayeslink.model.hierarchy import Variant
from bayeslink.schema.corpus import data_home, read_corpus

SILENT, WORDS = "name_any", "bm25"
"""Channels: whether a word of the table's name is in the question; the words' ranking that is expanded."""

Sets = Sequence[np.ndarray]


def rows_of(config: Mapping) -> Iterator[dict]:
    """Rows of every set at each k."""
    for item in tqdm(config["sets"], unit="set"):
        evidences = load_evidence(item["data"], [config["list"], SILENT, WORDS])
        keys = keys_of(item, evidences)
        orders, prefixes = {}, {}
        for name in config["variants"]:
            orders[name], prefixes[name] = answered(Variant(name), evidences, config)
        orders[WORDS] = [order_of(one.values[:, :, one.channels.index(WORDS)]) for one in evidences]
        for k in config["k"]:
            peer = [found.chosen for found in load_returned(item["peer"], k)]
            size = float(np.concatenate([sets.sum(axis=1) for sets in peer]).mean())
            same = {"set": item["name"], "k": k, "questions": len(inside(evidences, peer))}
            chosen = {
                name: [
                    shown(order, own) for order, own in zip(orders[name], level_lengths(found, size)[1], strict=True)
                ]
                for name, found in prefixes.items()
            }
            yield {"part": "found", "method": "schemagate"} | same | measured(evidences, peer, k)
            for name, sets in chosen.items():
                row = {"part": "found", "method": name} | same | measured(evidences, sets, k)
                yield row | beside(evidences, sets, peer, config)
            first, second = chosen.values() if len(chosen) == 2 else [*chosen.values()] * 2
            yield {"part": "coupling", "method": "hierarchical"} | same | silent_gain(evidences, first, second, config)
            # The same rankings cut at k, then expanded along foreign keys.
            for base in (config["variants"][0], WORDS):
                top = [shown(order, np.full(len(order), k)) for order in orders[base]]
                for way, sets in expanded(top, evidences, keys).items():
                    row = {"part": "expanded", "method": f"{base}_{way}"} | same | measured(evidences, sets, k)
                    own = float(np.concatenate([one.sum(axis=1) for one in sets]).mean())
                    lengths = level_lengths(prefixes[config["variants"][0]], own)[1]
                    rival = [shown(o, n) for o, n in zip(orders[config["variants"][0]], lengths, strict=True)]
                    yield row | beside(evidences, rival, sets, config)


def keys_of(item: Mapping, evidences: Sequence[Evidence]) -> list[np.ndarray]:
    """Referencing and referenced table of each foreign key of each database, from the schemas of the data home."""
    schemas = read_corpus(data_home() / item["folder"]).schemas
    found = []
    for evidence in evidences:
        graph = schemas[evidence.db_id]
        pairs = [(key.table, key.ref_table) for key in graph.foreign_keys if not key.is_self]
        found.append(np.array(sorted(set(pairs)), dtype=np.int64).reshape(-1, 2))
    return found


def answered(variant: Variant, evidences: Sequence[Evidence], config: Mapping) -> tuple[list, list]:
    """Order of the tables and prefixes of each database by the shipped posterior."""
    posterior = load_posteriors(shipped_path(config["list"]))[variant]
    orders, prefixes = [], []
    for place, evidence in enumerate(evidences):
        ready = posterior.standardisation.apply(evidence.select_channels([config["list"]]))
        draws = posterior.unseen(config["seed"] + place, ready, config["draws"])
        found = predict(ready, draws, posterior.support)[0]
        orders.append(order_of(found.marginals))
        prefixes.append(prefixes_of(found, evidence.gold, np.ones(evidence.num_tables), config["longest"]))
    return orders, prefixes


def order_of(scores: np.ndarray) -> np.ndarray:
    """Tables of each question, the largest score first."""
    return np.argsort(-scores, axis=1, kind="stable")


def shown(order: np.ndarray, lengths: np.ndarray) -> np.ndarray:
    """The first tables of each order, as a mask."""
    chosen = np.zeros(order.shape, dtype=bool)
    np.put_along_axis(chosen, order, np.arange(order.shape[1]) < lengths[:, None], axis=1)
    return chosen


def expanded(top: Sets, evidences: Sequence[Evidence], keys: Sets) -> dict[str, Sets]:
    """The top tables as they are, with what they reference, with what references them, and with both."""
    return {
        "alone": top,
        "outward": [expand_along(own, key) for own, key in zip(top, keys, strict=True)],
        "inward": [expand_along(own, key, inward=True) for own, key in zip(top, keys, strict=True)],
        "both": [expand(own, item.edges) for own, item in zip(top, evidences, strict=True)],
    }


def inside(evidences: Sequence[Evidence], chosen: Sets) -> np.ndarray:
    """Whether every gold table of each question is among the chosen."""
    return np.concatenate([~(item.gold & ~sets).any(axis=1) for item, sets in zip(evidences, chosen, strict=True)])


def silent_of(item: Evidence) -> np.ndarray:
    """Gold tables that share no word with the question by their names."""
    return item.gold & (item.values[:, :, item.channels.index(SILENT)] == 0)


def measured(evidences: Sequence[Evidence], chosen: Sets, k: int) -> dict[str, float | int]:
    """Size, closure(k) = size - min(k, tables there are), all gold inside, and silent gold tables found."""
    pairs = list(zip(evidences, chosen, strict=True))
    sizes = np.concatenate([sets.sum(axis=1) for sets in chosen])
    extra = np.concatenate([sets.sum(axis=1) - min(k, item.num_tables) for item, sets in pairs])
    silent = sum(int(silent_of(item).sum()) for item in evidences)
    found = sum(int((silent_of(item) & sets).sum()) for item, sets in pairs)
    return {
        "mean_size": float(sizes.mean()),
        "closure": float(extra.mean()),
        "coverage": float(inside(evidences, chosen).mean()),
        "silent_gold": silent,
        "silent_found": found / max(silent, 1),
    }


def beside(evidences: Sequence[Evidence], ours: Sets, others: Sets, config: Mapping) -> dict[str, float | int]:
    """All gold inside, ours less the others' at a mean size that is no larger, with its interval and McNemar's test."""
    first, second = inside(evidences, ours), inside(evidences, others)
    rng = np.random.default_rng(config["seed"])
    clusters = question_clusters(evidences)
    gain = paired_difference(first.astype(float), second.astype(float), *clusters, config["resamples"], rng)
    test = mcnemar(first, second)
    found = {"gain": gain.estimate, "gain_lower": gain.lower, "gain_upper": gain.upper, "p_value": test.p_value}
    return found | {"only_ours": test.only_first, "only_other": test.only_second}


def silent_gain(evidences: Sequence[Evidence], ours: Sets, others: Sets, config: Mapping) -> dict[str, float]:
    """Silent gold tables found a question, of the questions that have some: ours less the others'."""
    first, second, kept = [], [], []
    for item, own, other in zip(evidences, ours, others, strict=True):
        silent = silent_of(item)
        kept.append(silent.any(axis=1))
        count = np.maximum(silent.sum(axis=1), 1)
        first.append((silent & own).sum(axis=1) / count)
        second.append((silent & other).sum(axis=1) / count)
    some = np.concatenate(kept)
    databases, groups = question_clusters(evidences)
    rng = np.random.default_rng(config["seed"])
    gain = paired_difference(
        np.concatenate(first)[some],
        np.concatenate(second)[some],
        [name for name, has in zip(databases, some, strict=True) if has],
        groups[some],
        config["resamples"],
        rng,
    )
    return {"gain": gain.estimate, "gain_lower": gain.lower, "gain_upper": gain.upper, "silent_gold": int(some.sum())}
