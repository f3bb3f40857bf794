"""Rankings, selections and probabilities from stored attention, beside cheap channels."""

import json
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice, product

import numpy as np

from bayeslink.baselines.cutoffs import top_p
from bayeslink.evaluation.calibration import calibration_error, marginal_log_score, mean_shift
from bayeslink.evaluation.comparison import clustered_bootstrap, paired_difference, question_clusters
from bayeslink.evaluation.questions import Questions
from bayeslink.evaluation.ranking import average_precision
from bayeslink.evaluation.recovery import precision, recall, strict_recall
from bayeslink.evaluation.report import fit_posteriors
from bayeslink.evaluation.schemes import FitSettings, transfer
from bayeslink.evidence.attention import EPSILON, table_distribution
from bayeslink.evidence.attention_store import (
    FIT_SETS,
    AttentionScores,
    attention_home,
    joined_evidence,
    stored_attention,
)
from bayeslink.evidence.channel import Evidence
from bayeslink.evidence.columns import column_channels, column_evidence, column_graph
from bayeslink.evidence.store import load_evidence, load_fingerprints, load_twins
from bayeslink.inference.columns import ColumnPosterior, shipped_columns
from bayeslink.inference.posterior import load_posteriors, shipped_path
from bayeslink.model.hierarchy import Variant

MODELS = {"trained": "s", "untrained": "u"}
RANKINGS = {"bm25_columns": "bm25", "cosine_columns": "minilm"}
TABLE_RANKINGS = {"bm25": "bm25", "embedding_cosine": "minilm"}


def rows_of(config: Mapping) -> Iterator[dict]:
    """Every row of the table."""
    most = config["databases"]
    found = {name: list(islice(stored_attention(name), most)) for name in (*config["sets"], *FIT_SETS)}
    for name in config["sets"]:
        yield from table_rankings(name, found[name], config)
        yield from column_rows(name, found[name], config)
    yield from posterior_rows(found, config)


def _interval(values: np.ndarray, databases: list, groups: np.ndarray, config: Mapping) -> dict:
    found = clustered_bootstrap(values, databases, groups, config["resamples"], np.random.default_rng(config["seed"]))
    return {"value": found.estimate, "lower": found.lower, "upper": found.upper, "questions": len(values)}


def table_rankings(name: str, columns: Sequence[AttentionScores], config: Mapping) -> Iterator[dict]:
    """Mean average precision of tables by attention, summed over their columns, and by two cheap channels."""
    evidences = joined_evidence(name, columns, list(TABLE_RANKINGS))
    databases, groups = question_clusters(evidences)
    scores = {
        label: [item.values[..., item.channels.index(c)] for item in evidences] for c, label in TABLE_RANKINGS.items()
    }
    for model, label in MODELS.items():
        if all(model in item.scores for item in columns):
            scores[label] = [table_distribution(item.candidates(model), item.graph.num_tables) for item in columns]
    for label, own in scores.items():
        values = np.concatenate([average_precision(s, np.asarray(e.gold)) for s, e in zip(own, evidences, strict=True)])
        yield {"part": "tables", "name": label, "data": name, **_interval(values, databases, groups, config)}


def column_rows(name: str, columns: Sequence[AttentionScores], config: Mapping) -> Iterator[dict]:
    """Rankings of columns, top-p selections of attention, and the calibration of the posteriors of columns."""
    evidences = joined_evidence(name, columns, ["bm25"])
    databases, groups = question_clusters(evidences)
    some = np.concatenate([item.gold.any(axis=1) for item in columns])
    scores: dict[str, list[np.ndarray]] = {}
    for channel in channels_of_columns(config):
        read = next(item for item in column_channels("embedding") if item.name == channel)
        scores[RANKINGS[channel]] = [read.score(item.texts, column_graph(item.graph)) for item in columns]
    for model, label in MODELS.items():
        if all(model in item.scores for item in columns):
            scores[label] = [item.scores[model] for item in columns]
    tables = table_probabilities(name, columns, config)
    for kind in config["columns"]:
        given = [column_probabilities(item, kind) for item in columns]
        joint = [tables[item.key][:, item.owner] * p for item, p in zip(columns, given, strict=True)]
        scores[f"posterior_{kind}"] = joint
        for label, rows in (("given_gold_tables", given), ("joint", joint)):
            p, y = known_rows(columns, rows, within=label != "joint")
            found = {"ece": calibration_error(p, y), "mean_shift": mean_shift(p, y)}
            for score, value in (found | {"log_score": marginal_log_score(p, y)}).items():
                yield {"part": "calibration", "name": f"{kind}_{label}_{score}", "data": name, "value": value}
    for label, own in scores.items():
        values = np.concatenate([average_precision(s, item.gold) for s, item in zip(own, columns, strict=True)])
        row = _interval(
            values[some], [d for d, kept in zip(databases, some, strict=True) if kept], groups[some], config
        )
        yield {"part": "columns", "name": label, "data": name, **row}
    yield from selections(name, columns, config)


def column_probabilities(item: AttentionScores, kind: str) -> np.ndarray:
    """P(column | its table is needed) by a posterior of the package."""
    attention = item.scores["trained"] if kind == "attention" else None
    evidence = column_evidence(item.texts, item.graph, kind, attention=attention)
    return ColumnPosterior.load(shipped_columns(kind)).given_table(evidence.names, evidence.values)


def known_rows(
    columns: Sequence[AttentionScores], rows: Sequence[np.ndarray], within: bool
) -> tuple[np.ndarray, np.ndarray]:
    """Probabilities and gold of columns, those of gold tables or all, where the gold columns can all be told."""
    kept = [
        item.told[:, None] & (item.tables[:, item.owner] if within else np.ones_like(item.gold)) for item in columns
    ]
    p = np.concatenate([row[k] for row, k in zip(rows, kept, strict=True)])
    return p, np.concatenate([item.gold[k] for item, k in zip(columns, kept, strict=True)]).astype(np.float64)


def table_probabilities(
    name: str, columns: Sequence[AttentionScores], config: Mapping
) -> dict[tuple[str, str], np.ndarray]:
    """Probability of each table by the package's posterior, on databases that it never saw."""
    posterior = load_posteriors(shipped_path(config["tables"]))[Variant.HIERARCHICAL]
    held = {item.key: item for item in load_evidence(name, posterior.channels)}
    asked = [held[item.key].select_questions(item.places) for item in columns]
    ((_, rows),) = transfer(asked, {Variant.HIERARCHICAL: posterior}, config["seed"])
    return {row.key: row.marginals for row in rows}


def channels_of_columns(config: Mapping) -> list[str]:
    """Column rankings to compare with: embeddings only where a posterior of columns with them is asked for."""
    return [name for name in RANKINGS if name != "cosine_columns" or "embedding" in config["columns"]]


def selections(name: str, columns: Sequence[AttentionScores], config: Mapping) -> Iterator[dict]:
    """Precision, recall, strict recall and size of top-p selections of tables and columns, by temperature and mass."""
    logs = {
        "column": [np.log(item.scores["trained"] + EPSILON) for item in columns],
        "table": [
            np.log(table_distribution(item.candidates("trained"), item.graph.num_tables) + EPSILON) for item in columns
        ],
    }
    gold = {"column": [item.gold for item in columns], "table": [item.tables for item in columns]}
    for (level, own), temperature, mass in product(logs.items(), config["temperatures"], config["masses"]):
        some = np.concatenate([right.any(axis=1) for right in gold[level]])
        chosen = [top_p(values, mass, temperature) for values in own]
        pairs = list(zip(chosen, gold[level], strict=True))
        parts = {
            "precision": [precision(c, right) for c, right in pairs],
            "recall": [recall(c, right) for c, right in pairs],
            "strict_recall": [strict_recall(c, right) for c, right in pairs],
            "size": [c.sum(axis=1) for c in chosen],
        }
        for score, values in parts.items():
            row = {"part": "selection", "name": f"{level}_{score}", "data": name, "questions": int(some.sum())}
            value = float(np.concatenate(values)[some].mean())
            yield row | {"temperature": temperature, "mass": mass, "value": value}


def ablation_rows() -> Iterator[dict]:
    """MAP on a sample of Spider dev where one thing is otherwise, as scripts/train_attention.py ablate stored it."""
    report = json.loads((attention_home() / "ablations.json").read_text())
    for name, found in report.items():
        for level in ("table", "column"):
            if isinstance(found, dict):
                row = {"part": "ablation", "name": f"{level}_map_{name}", "data": "spider-dev"}
                yield row | {"value": found[f"{level}_map"], "questions": report["questions"]}
    for layer, heads in enumerate(report["heads"]):
        for head, value in enumerate(heads):
            row = {"part": "heads", "name": f"column_map_layer_{layer}_head_{head}", "data": "spider-dev"}
            yield row | {"value": value, "questions": report["questions"]}


def posterior_rows(found: Mapping[str, Sequence[AttentionScores]], config: Mapping) -> Iterator[dict]:
    """Variants with and without the attention channel, fitted where the adapter was not and met by the others."""
    settings = FitSettings(num_draws=config["draws"], seed=config["seed"], context=tuple(config["context"]))
    for listed, channels in config["lists"].items():
        evidences = {name: joined_evidence(name, columns, channels) for name, columns in found.items()}
        without = list(transferred(evidences, channels, config, settings))
        joined = list(transferred(evidences, [*channels, "attention"], config, settings))
        for (name, variant, score, first), (*_, second) in zip(without, joined, strict=True):
            clusters = question_clusters(evidences[name])
            for label, values in (("without", first), ("with", second)):
                row = _interval(values, *clusters, config)
                yield {"part": label, "name": f"{listed}_{variant}_{score}", "data": name, **row}
            rng = np.random.default_rng(config["seed"])
            gain = paired_difference(second, first, *clusters, config["resamples"], rng)
            row = {"value": gain.estimate, "lower": gain.lower, "upper": gain.upper, "questions": len(first)}
            yield {"part": "gain", "name": f"{listed}_{variant}_{score}", "data": name, **row}


def transferred(
    evidences: Mapping[str, Sequence[Evidence]], channels: Sequence[str], config: Mapping, settings: FitSettings
) -> Iterator[tuple[str, str, str, np.ndarray]]:
    """Set, variant, score and its value for each question, of fits on databases that the adapter never saw."""
    variants = [Variant(name) for name in config["variants"]]
    training = tuple(item.select_channels(channels) for name in FIT_SETS for item in evidences[name])
    questions = Questions("+".join(FIT_SETS), training, 0, load_twins(), load_fingerprints())
    fitted = fit_posteriors(questions, variants, (), settings, effects=False, max_tables=config["max_tables"])
    posteriors = {item.variant: item for item in fitted}
    for name in config["sets"]:
        asked = [item.select_channels(channels) for item in evidences[name]]
        for variant, rows in transfer(asked, posteriors, config["seed"]):
            yield name, variant.value, "joint_log_score", np.concatenate([row.log_score for row in rows])
            ranked = [average_precision(row.marginals, row.gold) for row in rows]
            yield name, variant.value, "map", np.concatenate(ranked)
