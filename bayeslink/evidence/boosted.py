"""A channel learned by gradient-boosted trees from other channels, and from what they say of a table's neighbours.

Trees join the channels in two stages, each a sum of trees (Friedman 2001; LightGBM, Ke et al. 2017) that gives the
log-odds of a table t of n:

    s_t = f_1( forms of every channel of t, log n )
    b_t = f_2( the same, s_t, support of t )

with the value, the distance below the best table and the rank of each channel (`forms`), and as the support of t,
over its neighbours N(t) in the foreign-key graph,

    first, second   largest and second largest s_u, u in N(t); -9 where there is none
    expected        sum of sigma(s_u), u in N(t)
    bridge          largest sigma(s_u) sigma(s_v) of two neighbours u, v that are not joined to each other; 0 without
    gap             max_u s_u - s_t over all tables u.

A junction table is needed because of the tables on its two sides, and says little itself: f_2 can see that, and the
autologistic model that takes b as evidence still has its own coupling, which the fit makes as large as b left to do.

Trees fit the tables they were trained on far better than new ones, so that a slope gamma fitted on the same scores
would be too steep. `cross_fitted` therefore scores each database by trees fitted on others (MODEL.md section 9),
twins left out too; f_2 is always trained on cross-fitted s. (In those folds f_2 meets s of *other* databases that
f_1 computed with the left-out ones in training; no score of a database comes from trees that saw its own labels.)
"""

import gzip
import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from pathlib import Path
from types import ModuleType
from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Float32, Int
from tqdm import tqdm

from bayeslink.evidence.cache import replace_file
from bayeslink.evidence.channel import Channel, Evidence, compute_evidence
from bayeslink.evidence.embedding import MissingExtraError
from bayeslink.evidence.forms import form_values
from bayeslink.schema.graph import SchemaGraph

__all__ = ["BoostedChannel", "Trees", "TreeSettings", "cross_fitted", "fit_first", "neighbour_support"]

FORMS = ("value", "below_best", "rank")
"""Forms of each channel that the trees see."""

NO_NEIGHBOUR = -9.0
"""`first` and `second` of a table without so many neighbours, log-odds; less than any tree says."""


class TreeSettings(NamedTuple):
    """Settings of both stages.

    Attributes:
        rounds: Number of trees.
        learning_rate: Share of each tree that is kept.
        leaves: Most leaves of a tree.
        ridge: L2 penalty on the leaves.
        least: Fewest (question, table) pairs in a leaf.
        features: Share of the features that each tree may use.
        pairs: Share of the pairs that each tree is fitted on.
        folds: Folds of databases that cross-fitting uses.
        seed: Seed of the choices of features, pairs and folds.
        threads: Threads of the fit; the trees do not depend on it.
    """

    rounds: int = 300
    learning_rate: float = 0.06
    leaves: int = 15
    ridge: float = 5.0
    least: int = 50
    features: float = 0.5
    pairs: float = 0.8
    folds: int = 5
    seed: int = 0
    threads: int = 2


@dataclass(frozen=True)
class Trees:
    """Fitted trees of both stages.

    Attributes:
        channels: The channels they read, in this order.
        first: f_1 as LightGBM writes it.
        second: f_2 as LightGBM writes it; empty where the score is s_t.
    """

    channels: tuple[str, ...]
    first: str
    second: str

    def score(self, evidence: Evidence) -> Float[np.ndarray, "questions tables"]:
        """b_t above, or s_t without a second stage, log-odds.

        Args:
            evidence: Raw evidence that holds the trees' channels, in any order.

        Raises:
            ValueError: If it lacks a channel.
            MissingExtraError: Without the extra `boosted`.
        """
        features = _features(evidence.select_channels(self.channels).values)
        first = _predict(self._boosters[0], features)
        if not self.second:
            return first
        return _predict(self._boosters[1], _with_support(features, first, evidence.edges))

    @cached_property
    def identity(self) -> str:
        """Hash of the trees, hexadecimal."""
        return hashlib.sha256(json.dumps([self.channels, self.first, self.second]).encode()).hexdigest()[:16]

    @cached_property
    def _boosters(self) -> tuple:
        lightgbm = _lightgbm()
        return tuple(lightgbm.Booster(model_str=text) for text in (self.first, self.second) if text)

    def save(self, path: Path) -> None:
        """Write the trees as compressed JSON; same trees, same bytes."""
        document = {"channels": self.channels, "first": self.first, "second": self.second}
        packed = gzip.compress(json.dumps(document).encode(), mtime=0)
        replace_file(path, lambda file: file.write(packed))

    @classmethod
    def load(cls, path: Path) -> "Trees":
        """Trees that `save` wrote.

        Raises:
            ValueError: If the file is missing or holds something else.
        """
        try:
            document = json.loads(gzip.decompress(path.read_bytes()))
            return cls(tuple(document["channels"]), document["first"], document["second"])
        except (OSError, EOFError, ValueError, KeyError, TypeError) as error:
            raise ValueError(f"trees {path} cannot be read ({error}); run scripts/train_boosted.py") from error


@dataclass(frozen=True)
class BoostedChannel:
    """b_t above of a live question, log-odds.

    Attributes:
        name: The channel's name.
        base: The channels that the trees read.
        path: File of the trees.
    """

    name: str
    base: tuple[Channel, ...]
    path: Path

    @cached_property
    def trees(self) -> Trees:
        """The trees, read once."""
        return Trees.load(self.path)

    @property
    def identity(self) -> str:
        """Name, hash of the trees and the channels that they read."""
        return f"{self.name}/1 {self.trees.identity} {' '.join(channel.identity for channel in self.base)}"

    def score(self, questions: Sequence[str], graph: SchemaGraph) -> Float[np.ndarray, "questions tables"]:
        """b_t of each table for each question.

        Raises:
            MissingExtraError: Without the extra `boosted`, or one that a base channel needs.
        """
        _lightgbm()
        return self.trees.score(compute_evidence(graph, questions, self.base))


def fit_first(evidences: Sequence[Evidence], settings: TreeSettings = TreeSettings()) -> Trees:
    """Trees of the first stage alone, which do not see the graph, fitted on all of these databases.

    Args:
        evidences: Raw evidence with gold of the training databases.
        settings: Settings of the stage.

    Raises:
        ValueError: If there is no evidence, gold is missing or channels differ.
        MissingExtraError: Without the extra `boosted`.
    """
    data = _Data.of(evidences)
    return Trees(data.channels, data.fit(data.features, data.gold, settings).model_to_string(), "")


def cross_fitted(
    evidences: Sequence[Evidence],
    fold: Mapping[tuple[str, str], int],
    settings: TreeSettings = TreeSettings(),
    progress: bool = False,
) -> tuple[Trees, list[Float[np.ndarray, "questions tables"]]]:
    """Trees of both stages fitted on all databases, and b_t of each by trees fitted on the other folds alone.

    Args:
        evidences: Raw evidence with gold of the training databases; several of one key are kept together.
        fold: Fold of each database, such as `split.folds_by_database` gives.
        settings: Settings of both stages.
        progress: Show a progress bar over fits.

    Raises:
        ValueError: If there is no evidence, gold is missing or channels differ.
        MissingExtraError: Without the extra `boosted`.
    """
    data = _Data.of(evidences)
    with tqdm(total=2 * len(set(fold.values())) + 2, desc="trees", unit="fit", disable=not progress) as bar:
        first = data.out_of_fold(data.features, fold, settings, bar)
        second = [_with_support(*parts) for parts in zip(data.features, first, data.edges, strict=True)]
        scores = data.out_of_fold(second, fold, settings, bar)
        texts = []
        for features in (data.features, second):
            texts.append(data.fit(features, data.gold, settings).model_to_string())
            bar.update()
    return Trees(data.channels, *texts), scores


def neighbour_support(
    scores: Float[np.ndarray, "questions tables"], edges: Int[np.ndarray, "edges 2"]
) -> Float[np.ndarray, "questions tables 5"]:
    """first, second, expected, bridge and gap above of each table.

    Args:
        scores: s_t of each table, log-odds.
        edges: Node positions of each edge.
    """
    num_tables = scores.shape[1]
    neighbours: list[list[int]] = [[] for _ in range(num_tables)]
    for a, b in edges.tolist():
        neighbours[a].append(b)
        neighbours[b].append(a)
    joined = {frozenset(edge) for edge in edges.tolist()}
    probability = 1 / (1 + np.exp(-scores))
    support = np.zeros((*scores.shape, 5))
    support[:, :, :2] = NO_NEIGHBOUR
    for table, around in enumerate(neighbours):
        if around:
            largest = -np.sort(-scores[:, around], axis=1)[:, :2]
            support[:, table, : largest.shape[1]] = largest
            support[:, table, 2] = probability[:, around].sum(axis=1)
        apart = [pair for pair in combinations(around, 2) if frozenset(pair) not in joined]
        if apart:
            one, other = np.array(apart).T
            support[:, table, 3] = (probability[:, one] * probability[:, other]).max(axis=1)
    support[:, :, 4] = scores.max(axis=1, keepdims=True) - scores
    return support


class _Data(NamedTuple):
    """Training databases: channels, keys, and the features, gold and edges of each."""

    channels: tuple[str, ...]
    keys: list[tuple[str, str]]
    features: list[Float32[np.ndarray, "questions tables features"]]
    gold: list[np.ndarray]
    edges: list[np.ndarray]

    @classmethod
    def of(cls, evidences: Sequence[Evidence]) -> "_Data":
        if not evidences:
            raise ValueError("evidences are empty; trees need training databases")
        channels = evidences[0].channels
        gold = []
        for evidence in evidences:
            if evidence.gold is None:
                raise ValueError(f"evidence of {evidence.key} has no gold; trees are fitted on labelled questions")
            if evidence.channels != channels:
                raise ValueError(f"evidence of {evidence.key} has channels {evidence.channels}, others {channels}")
            gold.append(np.asarray(evidence.gold))
        return cls(
            channels,
            [evidence.key for evidence in evidences],
            [_features(evidence.values) for evidence in evidences],
            gold,
            [evidence.edges for evidence in evidences],
        )

    def out_of_fold(
        self,
        features: Sequence[Float32[np.ndarray, "questions tables features"]],
        fold: Mapping[tuple[str, str], int],
        settings: TreeSettings,
        bar: tqdm,
    ) -> list[Float[np.ndarray, "questions tables"]]:
        """Scores of each database by trees fitted on the other folds."""
        scores: dict[int, np.ndarray] = {}
        for name in sorted(set(fold.values())):
            inside = [place for place, key in enumerate(self.keys) if fold[key] == name]
            outside = [place for place, key in enumerate(self.keys) if fold[key] != name]
            booster = self.fit(
                [features[place] for place in outside], [self.gold[place] for place in outside], settings
            )
            scores |= {place: _predict(booster, features[place]) for place in inside}
            bar.update()
        return [scores[place] for place in range(len(self.keys))]

    @staticmethod
    def fit(
        features: Sequence[Float32[np.ndarray, "questions tables features"]],
        gold: Sequence[np.ndarray],
        settings: TreeSettings,
    ):
        """One stage."""
        lightgbm = _lightgbm()
        pairs = np.concatenate([item.reshape(-1, item.shape[2]) for item in features])
        labels = np.concatenate([item.ravel() for item in gold]).astype(np.float32)
        parameters = {
            "objective": "binary",
            "learning_rate": settings.learning_rate,
            "num_leaves": settings.leaves,
            "lambda_l2": settings.ridge,
            "min_data_in_leaf": settings.least,
            "feature_fraction": settings.features,
            "bagging_fraction": settings.pairs,
            "bagging_freq": 1,
            "seed": settings.seed,
            "num_threads": settings.threads,
            "deterministic": True,
            "force_row_wise": True,
            "verbose": -1,
        }
        return lightgbm.train(parameters, lightgbm.Dataset(pairs, labels), settings.rounds)


def _features(
    values: Float[np.ndarray, "questions tables channels"],
) -> Float32[np.ndarray, "questions tables features"]:
    count = np.full((*values.shape[:2], 1), np.log(values.shape[1]))
    return np.concatenate([form_values(values, FORMS), count], axis=2).astype(np.float32)


def _with_support(
    features: Float32[np.ndarray, "questions tables features"],
    scores: Float[np.ndarray, "questions tables"],
    edges: Int[np.ndarray, "edges 2"],
) -> Float32[np.ndarray, "questions tables more"]:
    support = neighbour_support(scores, edges)
    return np.concatenate([features, scores[:, :, None], support], axis=2).astype(np.float32)


def _predict(
    booster, features: Float32[np.ndarray, "questions tables features"]
) -> Float[np.ndarray, "questions tables"]:
    if not features[..., 0].size:
        return np.zeros(features.shape[:2])
    # One thread: a question is a few tables, and a pool of threads costs more than its trees.
    flat = booster.predict(features.reshape(-1, features.shape[2]), raw_score=True, num_threads=1)
    return np.asarray(flat, dtype=np.float64).reshape(features.shape[:2])


def _lightgbm() -> ModuleType:
    try:
        import lightgbm
    except (ImportError, OSError) as error:
        raise MissingExtraError(
            f"boosted trees need lightgbm ({error}); run pip install 'bayeslink[boosted]'"
        ) from error
    return lightgbm
