"""Rows of the table: refits on the real graph and on placebos, scored on held-out questions of the same databases."""

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from tqdm import tqdm

from bayeslink.evaluation.comparison import paired_difference, question_clusters
from bayeslink.evaluation.held_out import FitSettings, fit_arguments, question_folds
from bayeslink.evaluation.recovery import precision
from bayeslink.evaluation.weak_tables import (
    CUT,
    matched_threshold,
    recovered,
    structural_connectors,
    weakly_signalled,
)
from bayeslink.evidence.cache import cache_home, replace_file
from bayeslink.evidence.channel import Evidence, Standardisation
from bayeslink.inference.elimination import Plan, pad, plan, width_of
from bayeslink.inference.fit import fit_packed
from bayeslink.inference.packing import MAX_LISTED, pack
from bayeslink.inference.predictive import predict
from bayeslink.model.batch import Batch
from bayeslink.model.hierarchy import Variant
from bayeslink.simulation.placebos import Placebo, has_placebo, placebo_sets

DIGITS = 10
"""Decimals at which probabilities tie: the order of summation decides nothing."""

FEW = 10
"""A database with fewer placebos than this gives the same graph to many sets: they are no independent draws."""


class Scored(NamedTuple):
    """Held-out results, questions in the order of the databases.

    Attributes:
        log_score: Log probability of gold, nats.
        marginals: Probability of each table, one array per database.
    """

    log_score: np.ndarray
    marginals: list[np.ndarray]


class Shape(NamedTuple):
    """Least width and number of slots of an elimination plan."""

    width: int
    slots: int

    @classmethod
    def of(cls, evidences: Iterable[Evidence]) -> "Shape":
        """The least shape that holds the plan of every one of these graphs which is eliminated."""
        plans = [plan(item.edges, item.num_tables) for item in evidences if item.num_tables > MAX_LISTED]
        return cls(max(map(width_of, plans), default=1), max((found.slot.shape[1] for found in plans), default=1))


class Refits:
    """Fits of one configuration, kept in the cache so that a stopped run goes on.

    All graphs are eliminated in plans of one shape, so that every refit runs the program compiled for the first.
    """

    def __init__(self, config: Mapping, source: str, shape: Shape) -> None:
        self.settings = FitSettings(num_draws=config["num_draws"], seed=config["seed"])
        self.num_folds = config["num_folds"]
        self.source = source
        self.shape = shape

    def __call__(self, evidences: Sequence[Evidence], variant: Variant) -> Scored:
        """Held-out results of a variant on these databases and their graphs."""
        path = cache_home() / "placebo_graphs" / f"{self._key(evidences, variant)}.npz"
        if not path.is_file():
            found = self._scores(evidences, variant)
            flat = np.concatenate([item.ravel() for item in found.marginals])
            replace_file(path, lambda file: np.savez_compressed(file, log_score=found.log_score, marginals=flat))
        with np.load(path, allow_pickle=False) as file:
            ends = np.cumsum([item.num_questions * item.num_tables for item in evidences])[:-1]
            shapes = [(item.num_questions, item.num_tables) for item in evidences]
            parts = np.split(file["marginals"], ends)
            return Scored(file["log_score"], [part.reshape(shape) for part, shape in zip(parts, shapes, strict=True)])

    def _scores(self, evidences: Sequence[Evidence], variant: Variant) -> Scored:
        """As `fit_folds`, but with little more than the training questions packed, and always to the same shapes."""
        marginals = [np.zeros((item.num_questions, item.num_tables)) for item in evidences]
        scores = [np.zeros(item.num_questions) for item in evidences]
        seed, keys = self.settings.seed, tuple(item.key for item in evidences)
        folds = [
            question_folds(item, self.num_folds, np.random.default_rng([seed, place]))
            for place, item in enumerate(evidences)
        ]
        start = None
        for fold in range(self.num_folds):
            standardisation = Standardisation.fit(
                [item.select_questions(own != fold) for item, own in zip(evidences, folds, strict=True)]
            )
            # Filled up with held-out questions of weight 0 to the size that the largest training part has.
            packed = [
                np.argsort(own == fold, kind="stable")[: len(own) - np.bincount(own, minlength=self.num_folds).min()]
                for own in folds
            ]
            ready = [
                standardisation.apply(item.select_questions(chosen))
                for item, chosen in zip(evidences, packed, strict=True)
            ]
            barred = [own[chosen] == fold for own, chosen in zip(folds, packed, strict=True)]
            batch = _of_shape(pack(ready), ready, self.shape).without_questions(barred)
            posterior, start = fit_packed(
                batch, keys, standardisation, variant, start=start, **fit_arguments(self.settings)
            )
            for place, (item, own) in enumerate(zip(evidences, folds, strict=True)):
                held = own == fold
                asked = standardisation.apply(item.select_questions(held))
                distribution, log_score = predict(asked, posterior.seen(item.key, asked), posterior.support)
                scores[place][held] = log_score
                marginals[place][held] = np.round(distribution.marginals, DIGITS)
        return Scored(np.concatenate(scores), marginals)

    def _key(self, evidences: Sequence[Evidence], variant: Variant) -> str:
        asked = [self.source, variant.value, repr(self.settings), self.num_folds, self.shape]
        digest = hashlib.sha256(json.dumps(asked).encode())
        for item in evidences:
            digest.update(json.dumps([item.key, item.channels, item.edges.tolist()]).encode())
            for array in (item.values, item.gold, item.group):
                digest.update(np.ascontiguousarray(array))
        return digest.hexdigest()[:24]


def _of_shape(batch: Batch, evidences: Sequence[Evidence], shape: Shape) -> Batch:
    """The batch with its elimination plans padded to a shape."""
    buckets = []
    for bucket in batch.buckets:
        if isinstance(bucket.plan, Plan):
            steps, tables = bucket.plan.table.shape[1], bucket.values.shape[2]
            padded = [
                pad(plan(item.edges, item.num_tables), steps, *shape, item.num_tables, tables)
                for item in (evidences[place] for place in bucket.database.tolist())
            ]
            bucket = bucket._replace(plan=jax.tree.map(lambda *leaves: jnp.asarray(np.stack(leaves)), *padded))
        buckets.append(bucket)
    return replace(batch, buckets=tuple(buckets))


def graph_sets(kind: Placebo, evidences: Sequence[Evidence], config: Mapping) -> list[list[Evidence]]:
    """The databases that have a placebo of the kind, on their real graphs, then on each set of placebos."""
    used = [item for item in evidences if has_placebo(kind, item.edges, item.num_tables)][: config["databases"]]
    rng = np.random.default_rng([config["seed"], list(Placebo).index(kind)])
    return [used, *placebo_sets(rng, kind, used, config["placebos"])]


def placebo_rows(
    data: str, kind: Placebo, sets: Sequence[Sequence[Evidence]], config: Mapping, refits: Refits, progress: tqdm
) -> Iterator[dict]:
    """Rows of one benchmark and one kind: no graph, the real graph, then each set of placebos."""
    used = sets[0]
    gold = [np.asarray(item.gold) for item in used]
    weak = [weakly_signalled(p, y) for p, y in zip(refits(used, Variant.INDEPENDENT).marginals, gold, strict=True)]
    connectors = [structural_connectors(w, y, item.edges) for w, y, item in zip(weak, gold, used, strict=True)]
    without = refits(used, Variant.INDEPENDENT_HIERARCHICAL)
    real = refits(used, Variant.HIERARCHICAL)
    clusters = question_clusters(used)
    size = float(np.mean(np.concatenate([(p > CUT).sum(axis=1) for p in real.marginals])))

    def row(graph: str, draw: int, scored: Scored) -> dict:
        matched = matched_threshold(scored.marginals, size)
        chosen = [p > matched.threshold for p in scored.marginals]
        found = recovered(chosen, weak, connectors)
        ends = (None, None)
        if graph == "real":
            rng = np.random.default_rng(config["seed"])
            found_gain = paired_difference(scored.log_score, without.log_score, *clusters, config["resamples"], rng)
            ends = found_gain[1:]
        return {
            "data": data,
            "kind": kind.value,
            "graph": graph,
            "draw": draw,
            "databases": len(used),
            "questions": len(clusters[0]),
            "log_score": float(scored.log_score.mean()),
            "gain": float((scored.log_score - without.log_score).mean()),
            "gain_lower": ends[0],
            "gain_upper": ends[1],
            "mean_size": matched.mean_size,
            "precision": float(np.concatenate([precision(*pair) for pair in zip(chosen, gold, strict=True)]).mean()),
            **found._asdict(),
        }

    yield row("none", 0, without)
    yield row("real", 0, real)
    for draw, placebos in enumerate(sets[1:]):
        yield row("placebo", draw, refits(placebos, Variant.HIERARCHICAL))
        progress.update()
