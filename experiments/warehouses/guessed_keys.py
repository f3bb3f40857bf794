"""What guessed keys are worth: against declared ones, in the model's coupling, and for covers of warehouses."""

import json
from collections.abc import Iterator, Mapping, Sequence

import numpy as np
from tqdm import tqdm

from bayeslink.evaluation.comparison import clustered_bootstrap, mcnemar, paired_difference, question_clusters
from bayeslink.evaluation.guessed_coupling import fit_with_guessed_keys
from bayeslink.evaluation.prefixes import level_lengths, prefixes_of
from bayeslink.evaluation.schemes import FitSettings
from bayeslink.evidence.channel import Evidence
from bayeslink.evidence.peers import load_returned
from bayeslink.evidence.store import evidence_home, load_evidence
from bayeslink.evidence.structure import EDGE_TYPES
from bayeslink.inference.decomposition import plan, width_of
from bayeslink.inference.guessed import shipped_offset
from bayeslink.inference.posterior import Posterior, load_posteriors, shipped_path
from bayeslink.inference.predictive import predict
from bayeslink.model.hierarchy import Variant


def stored_joins() -> dict:
    """Counts and graphs of guessed keys, as scripts/measure_joins.py stores them."""
    return json.loads((evidence_home() / "warehouses" / "joins.json").read_text())


def agreement_rows(config: Mapping) -> Iterator[dict]:
    """Precision and recall of guessed keys where the declared ones are hidden, with intervals over databases."""
    for name, databases in stored_joins()["counts"].items():
        for shown in ("as_stated", "keys_hidden"):
            for unit in ("keys", "edges"):
                counts = [[item[shown][f"{unit}_{part}"] for part in COUNTED] for item in databases.values()]
                yield {"part": "agreement", "set": name, "shown": shown, "unit": unit} | ratios(counts, config)


COUNTED = ("declared", "guessed", "both")


def ratios(counts: Sequence[Sequence[int]], config: Mapping) -> dict[str, float | int | None]:
    """Precision and recall over all databases together; databases are resampled. Nothing guessed has no precision."""
    table = np.array(counts, dtype=float)
    rng = np.random.default_rng(config["seed"])
    picks = rng.integers(len(table), size=(config["resamples"], len(table)))
    sums = table[picks].sum(axis=1)
    found: dict[str, float | int | None] = {"databases": len(table)}
    for name, below in (("precision", 1), ("recall", 0)):
        drawn, total = sums[sums[:, below] > 0], table.sum(axis=0)
        found |= dict.fromkeys((name, f"{name}_lower", f"{name}_upper"))
        if total[below]:
            lower, upper = np.percentile(drawn[:, 2] / drawn[:, below], [2.5, 97.5])
            found |= {name: float(total[2] / total[below]), f"{name}_lower": float(lower)}
            found[f"{name}_upper"] = float(upper)
    return found


def coupling_rows(config: Mapping) -> Iterator[dict]:
    """Coupling of declared and of guessed edges: every other training database has its keys guessed."""
    settings = FitSettings(num_draws=config["fit_draws"], seed=config["seed"], context=tuple(config["context"]))
    found, shown = fit_with_guessed_keys(
        config["train"],
        config["coupling_channels"],
        stored_joins()["edges"],
        settings,
        config["max_tables"],
        config["databases"],
    )
    beta = np.asarray(found.draws["beta"])
    offsets = np.concatenate([np.zeros((len(beta), 1)), np.asarray(found.draws["delta"])], axis=1)
    for kind, name in enumerate(EDGE_TYPES):
        drawn = beta + offsets[:, kind]
        edges = sum(int((item.edge_types == kind).sum()) for item in shown)
        lower, upper = np.percentile(drawn, [2.5, 97.5])
        value = {"value": float(drawn.mean()), "lower": float(lower), "upper": float(upper)}
        yield {"part": "coupling", "set": "training", "kind": name, "edges": edges} | value


def warehouse_rows(config: Mapping) -> Iterator[dict]:
    """Covers and log scores with declared keys alone and with guessed ones, with the coupling and without it."""
    for name in tqdm(config["sets"], unit="set"):
        kept = narrow(name, config)
        left_out = sum(item.num_questions for item in load_evidence(name, ["name_any"]) if item.db_id not in kept)
        places = [place for place, item in enumerate(load_evidence(name, ["name_any"])) if item.db_id in kept]
        returned = {}
        for k in config["k"]:
            every = list(load_returned(peer_of(name), k))
            returned[k] = [every[place].chosen for place in places]
        answers: dict[tuple[str, int], np.ndarray] = {}
        scores: dict[str, np.ndarray] = {}
        for keys, variant in CASES:
            every = load_evidence(f"{name}{keys}", [config["list"], "name_any"])
            evidences = [item for item in every if item.db_id in kept]
            posterior = load_posteriors(shipped_path(config["list"]))[variant]
            case = f"{variant.value}{keys.replace('-', '_')}"
            prefixes, score = answered(evidences, posterior, config)
            scores[case] = score
            same = {"set": name, "case": case, "keys": "guessed" if keys else "declared", "variant": variant.value}
            same |= {"edges": sum(len(item.edges) for item in evidences), "questions": len(score)}
            same |= {"questions_left_out": left_out}
            yield {"part": "score"} | same | mean_of(score, evidences, config)
            for k in config["k"]:
                size = float(np.concatenate([sets.sum(axis=1) for sets in returned[k]]).mean())
                _, lengths = level_lengths([one for one, _ in prefixes], size)
                chosen = [shown_tables(order, own) for (_, order), own in zip(prefixes, lengths, strict=True)]
                hits = inside(evidences, chosen)
                answers[case, k] = hits
                row = {"part": "cover", "k": k, "peer_size": size, **same}
                row |= mean_of(hits.astype(float), evidences, config) | bridges(evidences, chosen, returned[k])
                yield row | {"peer_coverage": float(inside(evidences, returned[k]).mean())}
        base, guessed = (f"{Variant.HIERARCHICAL.value}{keys}" for keys in ("", "_inferred"))
        gain = paired(scores[guessed], scores[base], evidences, config)
        yield {"part": "gain_score", "set": name} | gain
        for k in config["k"]:
            first, second = answers[guessed, k], answers[base, k]
            test = mcnemar(first, second)
            row = {"part": "gain_cover", "set": name, "k": k, "p_value": test.p_value}
            yield row | paired(first.astype(float), second.astype(float), evidences, config)


def narrow(name: str, config: Mapping) -> set[str]:
    """Databases whose graph stays narrow enough for quick exact inference with guessed keys too."""
    found = set()
    for item in load_evidence(f"{name}-inferred", ["name_any"]):
        if width_of(plan(item.edges, item.num_tables, item.num_tables)) <= config["max_width"]:
            found.add(item.db_id)
    return found


CASES = (
    ("", Variant.HIERARCHICAL),
    ("", Variant.INDEPENDENT_HIERARCHICAL),
    ("-inferred", Variant.HIERARCHICAL),
    ("-inferred", Variant.INDEPENDENT_HIERARCHICAL),
)


def peer_of(name: str) -> str:
    """Stored run of schemagate on a set."""
    return f"curves/schemagate-{name}-descriptions"


def answered(evidences: Sequence[Evidence], posterior: Posterior, config: Mapping) -> tuple[list[tuple], np.ndarray]:
    """Prefixes with the order of the tables for each database, and the joint log score of each question, nats."""
    prefixes, scores = [], []
    for place, evidence in enumerate(evidences):
        ready = posterior.standardisation.apply(evidence.select_channels([config["list"]]))
        draws = posterior.unseen(config["seed"] + place, ready, config["draws"])
        guessed = ready.edge_types == EDGE_TYPES.index("inferred")
        if guessed.any() and "beta" in posterior.draws:
            # As the linker does.
            draws = shipped_offset().apply(draws, guessed)
        distribution = predict(ready, draws, posterior.support)[0]
        found = prefixes_of(distribution, evidence.gold, np.ones(evidence.num_tables), config["longest"])
        prefixes.append((found, np.argsort(-distribution.marginals, axis=1, kind="stable")))
        scores.append(np.log(distribution.probability_of(evidence.gold)))
    return prefixes, np.concatenate(scores)


def shown_tables(order: np.ndarray, lengths: np.ndarray) -> np.ndarray:
    """The first tables of each order, as a mask."""
    chosen = np.zeros(order.shape, dtype=bool)
    np.put_along_axis(chosen, order, np.arange(order.shape[1]) < lengths[:, None], axis=1)
    return chosen


def inside(evidences: Sequence[Evidence], chosen: Sequence[np.ndarray]) -> np.ndarray:
    """Whether every gold table of each question is among the chosen."""
    return np.concatenate([~(item.gold & ~sets).any(axis=1) for item, sets in zip(evidences, chosen, strict=True)])


def bridges(
    evidences: Sequence[Evidence], chosen: Sequence[np.ndarray], returned: Sequence[np.ndarray]
) -> dict[str, float | int]:
    """Gold tables no word of whose name is in the question: how many are among the chosen, and among the peer's."""
    found = theirs = total = 0
    for item, ours, peers in zip(evidences, chosen, returned, strict=True):
        silent = item.gold & (item.values[:, :, item.channels.index("name_any")] == 0)
        total += int(silent.sum())
        found, theirs = found + int((silent & ours).sum()), theirs + int((silent & peers).sum())
    return {"silent_gold": total, "silent_found": found / max(total, 1), "silent_found_peer": theirs / max(total, 1)}


def mean_of(values: np.ndarray, evidences: Sequence[Evidence], config: Mapping) -> dict[str, float]:
    """Mean with its clustered interval."""
    rng = np.random.default_rng(config["seed"])
    found = clustered_bootstrap(values, *question_clusters(evidences), config["resamples"], rng)
    return {"value": found.estimate, "lower": found.lower, "upper": found.upper}


def paired(first: np.ndarray, second: np.ndarray, evidences: Sequence[Evidence], config: Mapping) -> dict[str, float]:
    """Mean paired difference with its clustered interval."""
    rng = np.random.default_rng(config["seed"])
    found = paired_difference(first, second, *question_clusters(evidences), config["resamples"], rng)
    return {"value": found.estimate, "lower": found.lower, "upper": found.upper}
