"""Questions put to a pool of databases: the database score fitted on some, the pool's answers to others.

What `experiments/pooled_catalogue` and `pooled_bird` share. Their configuration names the corpus that is scored and the
peer's run on it; the score is fitted on questions of another split, or of another corpus (`fit_corpus`).
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np

from bayeslink.decision.pooled_cover import prefix_coverage
from bayeslink.evaluation.comparison import clustered_bootstrap, mcnemar
from bayeslink.evaluation.ranking import average_precision
from bayeslink.evidence.benchmark import question_text
from bayeslink.evidence.cache import cache_home
from bayeslink.evidence.kinds import channels_named, default_channels
from bayeslink.evidence.peers import POOLED_RUN, ReturnedFromPool, load_pooled
from bayeslink.evidence.pool import PoolEvidence, pool_evidence
from bayeslink.evidence.store import load_evidence, load_twins
from bayeslink.inference.database_score import DatabaseScore, database_features, fit_database_score
from bayeslink.inference.pooled import PooledDistribution, PoolMember
from bayeslink.inference.posterior import load_posteriors, shipped_path
from bayeslink.model.hierarchy import Variant
from bayeslink.schema.corpus import Corpus, Question, data_home, read_corpus
from bayeslink.schema.gold import Resolution, group_key, resolve

__all__ = ["Asked", "folder_of", "rows_of"]


class Asked(NamedTuple):
    """Questions of a pool, the place of each one's database, gold among all tables, and the evidence."""

    questions: list[Question]
    right: np.ndarray
    gold: np.ndarray
    evidence: PoolEvidence


def folder_of(corpus: str) -> Path:
    """Folder of the sample, or of a data set of the data home."""
    return Path(__file__).parents[2] / "data" / "sample" if corpus == "sample" else data_home() / corpus


def rows_of(config: Mapping) -> Iterator[dict]:
    """Rows of the table: the database score's weights, then the answers at each size and each level."""
    corpus = read_corpus(folder_of(config["corpus"]))
    resolution = resolve(corpus)
    fitted_on = read_corpus(folder_of(config["fit_corpus"])) if "fit_corpus" in config else corpus
    known = resolve(fitted_on) if "fit_corpus" in config else resolution
    train = asked(fit_questions(fitted_on, corpus, known, config), fitted_on, known, config)
    train = train._replace(evidence=cross_fitted(train, fitted_on, known, config))
    features, weights = features_of(train.evidence), np.zeros(0)
    members = members_of(train.evidence, None, features, config)
    normalisers = np.stack([member.log_normalisers for member in members], axis=-1)
    score = fit_database_score(features, normalisers, train.right, config["prior_scale"])
    test = asked(scored_questions(corpus, resolution, config["split"]), corpus, resolution, config)
    distribution = PooledDistribution(members_of(test.evidence, score, features_of(test.evidence), config))
    weights = score.weights * features.reshape(-1, features.shape[2]).std(axis=0)
    yield from ({"part": "weight", "name": n, "value": w} for n, w in zip(feature_names(config), weights, strict=True))
    databases = distribution.database_probability
    chosen = databases.argmax(axis=1) == test.right
    scores = {
        "right_database": chosen.astype(float),
        "log_probability_of_database": np.log(databases[np.arange(len(test.right)), test.right]),
        "map": average_precision(distribution.marginals, test.gold),
        "joint_log_score": distribution.log_probability_of(test.gold),
    }
    # The right database is always new to the trees, most wrong ones are not: being new must not be what is chosen.
    new = np.isin(list(corpus.schemas), [item.db_id for item in test.questions])
    wrong = np.where(np.arange(len(new)) == test.right[:, None], -1.0, databases).argmax(axis=1)
    scores["best_wrong_database_is_new"] = new[wrong].astype(float)
    yield {"part": "score", "name": "share_of_wrong_databases_new", "value": (new.sum() - 1) / (len(new) - 1)}
    for name, values in scores.items():
        yield {"part": "score", "name": name} | interval(values, test, corpus, config)
    curve = prefix_coverage(distribution, config["longest"])
    needed = lengths_that_hold(distribution.ranking, test.gold)
    for level in config["levels"]:
        yield {"part": "level", "name": "prefix", "level": level} | answer(curve, level, needed, test, corpus, config)
    for size in config["sizes"]:
        # The peer's own mean size, of which the stated one is a rounding.
        run = peer_at(size, config)
        exact = size if run is None else float(run.size.mean())
        level = level_of_mean(curve, exact)
        row = {"part": "size", "name": "prefix", "level": level, "asked_size": size}
        yield row | answer(curve, level, needed, test, corpus, config) | beside(curve, level, needed, size, config)


def scored_questions(corpus: Corpus, resolution: Resolution, split: str) -> list[Question]:
    """Questions of a split whose gold resolves, in the corpus's order."""
    return [item for item in corpus.questions if item.split == split and item.id in resolution.gold]


def peer_at(size: float, config: Mapping) -> ReturnedFromPool | None:
    """The peer's run at the k where it returns about so many tables; None for the sample, which no peer was run on."""
    if config["corpus"] == "sample":
        return None
    runs = load_pooled(config.get("peer", POOLED_RUN)).values()
    return min(runs, key=lambda run: abs(float(run.size.mean()) - size))


def fit_questions(corpus: Corpus, scored: Corpus, resolution: Resolution, config: Mapping) -> list[Question]:
    """A random part of the training questions, those about scored databases or their twins left out."""
    barred = set()
    if corpus.name != scored.name or config["fit_split"] != config["split"]:
        held = {(scored.name, item.db_id) for item in scored.questions if item.split == config["split"]}
        barred = held | {twin for key in held for twin in load_twins()[key]}
    usable = [
        item
        for item in scored_questions(corpus, resolution, config["fit_split"])
        if (corpus.name, item.db_id) not in barred
    ]
    rng = np.random.default_rng(config["seed"])
    places = rng.permutation(len(usable))[: config["fit_questions"]]
    return [usable[place] for place in sorted(places.tolist())]


def asked(questions: list[Question], corpus: Corpus, resolution: Resolution, config: Mapping) -> Asked:
    """The questions with the evidence of every database of the corpus."""
    names = list(corpus.schemas)
    starts = np.cumsum([0] + [graph.num_tables for graph in corpus.schemas.values()])
    gold = np.zeros((len(questions), starts[-1]), dtype=bool)
    right = np.array([names.index(item.db_id) for item in questions])
    for row, item in enumerate(questions):
        gold[row, starts[right[row]] + np.array(sorted(resolution.gold[item.id]))] = True
    evidence = pool_evidence(
        corpus.schemas,
        [question_text(item, config.get("with_evidence", False)) for item in questions],
        default_channels(config["list"]),
        channels_named(config["pool_channels"]),
        dataset=corpus.name,
        cache=cache_home(),
        progress=True,
    )
    return Asked(questions, right, gold, evidence)


def cross_fitted(train: Asked, corpus: Corpus, resolution: Resolution, config: Mapping) -> PoolEvidence:
    """The evidence with each question's own database scored by trees that have not seen it."""
    if config["corpus"] == "sample":
        return train.evidence
    name = f"{corpus.name}-train" if corpus.name == "spider" else corpus.name
    name += "-evidence" if config.get("with_evidence", False) else ""
    stored = {item.db_id: item for item in load_evidence(name, [config["list"]])}
    row_of: dict[str, int] = {}
    counts: dict[str, int] = {}
    for item in scored_questions(corpus, resolution, config["fit_split"]):
        row_of[item.id] = counts.setdefault(item.db_id, 0)
        counts[item.db_id] += 1
    databases = list(train.evidence.databases)
    for place, evidence in enumerate(databases):
        own = np.flatnonzero(train.right == place)
        if len(own):
            values = evidence.values.copy()
            rows = [row_of[train.questions[row].id] for row in own]
            start = sum(item.num_tables for item in databases[:place])
            asked_gold = train.gold[own, start : start + evidence.num_tables]
            if not np.array_equal(np.asarray(stored[evidence.db_id].gold)[rows], asked_gold):
                raise ValueError(f"stored evidence of {evidence.db_id} is of other questions; rebuild data/evidence")
            values[own] = stored[evidence.db_id].values[rows]
            databases[place] = replace(evidence, values=values)
    return train.evidence._replace(databases=tuple(databases))


def features_of(evidence: PoolEvidence) -> np.ndarray:
    """Features of every database for every question."""
    found = []
    for place, tables in enumerate(evidence.parts(evidence.tables)):
        values = np.concatenate([tables, evidence.databases[place].values], axis=2)
        found.append(np.concatenate([database_features(values), evidence.whole[:, place]], axis=1))
    return np.stack(found, axis=1)


def feature_names(config: Mapping) -> list[str]:
    """Names of the features in their order."""
    channels = [*config["pool_channels"], config["list"]]
    return [
        *(f"largest {name}" for name in channels),
        *(f"log-sum-exp {name}" for name in channels),
        "log number of tables",
        *(f"database {name}" for name in config["pool_channels"]),
    ]


def members_of(
    evidence: PoolEvidence, score: DatabaseScore | None, features: np.ndarray, config: Mapping
) -> tuple[PoolMember, ...]:
    """Every database with its draws and its score."""
    posterior = load_posteriors(shipped_path(config["list"]))[Variant.HIERARCHICAL]
    members = []
    for place, item in enumerate(evidence.databases):
        ready = posterior.standardisation.apply(item)
        draws = posterior.unseen(config["seed"] + place, ready, config["draws"])
        given = np.zeros(len(features)) if score is None else score.score(features[:, place])
        members.append(PoolMember.of(ready.values, ready.edges, draws, given))
    return tuple(members)


def lengths_that_hold(ranking: np.ndarray, gold: np.ndarray) -> np.ndarray:
    """Length of the shortest prefix of each ranking that holds all gold."""
    ordered = np.take_along_axis(gold, ranking, axis=1)
    return ordered.shape[1] - ordered[:, ::-1].argmax(axis=1)


def lengths_of(curve: np.ndarray, level: float) -> np.ndarray:
    """Length of the shortest prefix that covers a level, the longest there is where none does."""
    return np.minimum((curve < level - 1e-12).sum(axis=1), curve.shape[1] - 1)


def level_of_mean(curve: np.ndarray, size: float) -> float:
    """The largest level whose prefixes have at most this mean length; no label is used."""
    narrow, wide = 1.0, 1e-12
    for _ in range(60):
        middle = float(np.sqrt(narrow * wide))
        narrow, wide = (middle, wide) if lengths_of(curve, 1 - middle).mean() <= size else (narrow, middle)
    return 1 - narrow


def answer(
    curve: np.ndarray, level: float, needed: np.ndarray, test: Asked, corpus: Corpus, config: Mapping
) -> dict[str, float]:
    """Mean length at a level, and the share of questions whose gold is inside with its interval."""
    lengths = lengths_of(curve, level)
    found = interval((needed <= lengths).astype(float), test, corpus, config)
    return {"mean_size": float(lengths.mean()), "capped": float((lengths == curve.shape[1] - 1).mean())} | found


def beside(curve: np.ndarray, level: float, needed: np.ndarray, size: float, config: Mapping) -> dict[str, float | int]:
    """What schemagate's stored run gives at that size, on the same questions."""
    peer = peer_at(size, config)
    if peer is None:
        return {}
    test = mcnemar(needed <= lengths_of(curve, level), peer.holds_gold)
    return {
        "peer_size": float(peer.size.mean()),
        "peer_value": float(peer.holds_gold.mean()),
        "only_ours": test.only_first,
        "only_peer": test.only_second,
        "p_value": test.p_value,
    }


def interval(values: np.ndarray, test: Asked, corpus: Corpus, config: Mapping) -> dict[str, float | int]:
    """Mean with its clustered interval."""
    numbers: dict[str, int] = {}
    queries = [group_key(item.query or "", corpus.schemas[item.db_id].dialect) for item in test.questions]
    groups = np.array([numbers.setdefault(query, len(numbers)) for query in queries])
    databases: Sequence[str] = [item.db_id for item in test.questions]
    rng = np.random.default_rng(config["seed"])
    found = clustered_bootstrap(values, databases, groups, config["resamples"], rng)
    return {"questions": len(values), "value": found.estimate, "lower": found.lower, "upper": found.upper}
