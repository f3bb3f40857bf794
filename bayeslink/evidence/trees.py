"""Gradient-boosted trees over other channels, and over what these say of a table's neighbours.

Trees join the channels in two stages, each a sum of trees (Friedman 2001; LightGBM, Ke et al. 2017) that gives the
log-odds of a table t of n:

    s_t = f_1( forms of every channel of t, log n )
    b_t = f_2( the same, s_t, support of t )

with the value, the distance below the best table and the rank of each channel (`forms`), and as the support of t,
over its neighbours N(t) in the foreign-key graph,

    first, second   largest and second largest s_u, u in N(t); -9 where there is none
    expected        sum of sigma(s_u), u in N(t)
    bridge          largest sigma(s_u) sigma(s_v) of two neighbours u, v that are not joined to each other; 0 without
    gap             max_u s_u - s_t over all tables u
    values          largest value of each channel over u in N(t); -1 where there is none.

A junction table is needed because of the tables on its two sides, and says little itself: f_2 can see that, and the
autologistic model that takes b as evidence still has its own coupling, which the fit makes as large as b left to do.
"""

import gzip
import hashlib
import json
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from pathlib import Path
from types import ModuleType
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Float32, Int

from bayeslink.evidence.cache import replace_file
from bayeslink.evidence.channel import Evidence
from bayeslink.evidence.embedding import MissingExtraError
from bayeslink.evidence.forms import form_values

__all__ = [
    "TreeSettings",
    "Trees",
    "fit_stage",
    "lightgbm_or_error",
    "neighbour_support",
    "predict_stage",
    "tree_features",
    "with_support",
]

FORMS = ("value", "below_best", "rank")
"""Forms of each channel that the trees see."""

NO_NEIGHBOUR = -9.0
"""`first` and `second` of a table without so many neighbours, log-odds; less than any tree says."""

NO_VALUE = -1.0
"""Largest value over the neighbours of a table without any; no channel scores less."""


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
        trained: "data set/db_id" of the training databases, whose tables they score too well.
    """

    channels: tuple[str, ...]
    first: str
    second: str
    trained: tuple[str, ...] = ()

    def score(self, evidence: Evidence) -> Float[np.ndarray, "questions tables"]:
        """b_t above, or s_t without a second stage, log-odds.

        Args:
            evidence: Raw evidence that holds the trees' channels, in any order.

        Raises:
            ValueError: If it lacks a channel, or the trees are no LightGBM model.
            MissingExtraError: Without the extra `boosted`.
        """
        features = tree_features(evidence.select_channels(self.channels).values)
        first = predict_stage(self._boosters[0], features)
        if not self.second:
            return first
        return predict_stage(self._boosters[1], with_support(features, first, evidence.edges))

    @cached_property
    def identity(self) -> str:
        """First half of the hash of the trees, hexadecimal."""
        return self._digest[:16]

    @property
    def _digest(self) -> str:
        return hashlib.sha256(json.dumps([self.channels, self.first, self.second]).encode()).hexdigest()

    @cached_property
    def _boosters(self) -> tuple:
        lightgbm = lightgbm_or_error()
        try:
            return tuple(lightgbm.Booster(model_str=text) for text in (self.first, self.second) if text)
        except lightgbm.basic.LightGBMError as error:
            raise ValueError(f"trees hold no LightGBM model ({error}); run scripts/train_boosted.py") from error

    def save(self, path: Path) -> None:
        """Write the trees as compressed JSON with their hash; same trees, same bytes."""
        document = {name: getattr(self, name) for name in ("channels", "first", "second", "trained")}
        document["sha256"] = self._digest
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
            parts = document["first"], document["second"]
            trees = cls(tuple(document["channels"]), *parts, tuple(document["trained"]))
            # LightGBM may end the process on a damaged model, so none reaches it.
            if document["sha256"] != trees._digest:
                raise ValueError("it does not have the hash that it states")
            return trees
        except (OSError, EOFError, ValueError, KeyError, TypeError, zlib.error) as error:
            raise ValueError(f"trees {path} cannot be read ({error}); run scripts/train_boosted.py") from error


def neighbour_support(
    scores: Float[np.ndarray, "questions tables"], edges: Int[np.ndarray, "edges 2"]
) -> Float[np.ndarray, "questions tables 5"]:
    """first, second, expected, bridge and gap above of each table.

    Args:
        scores: s_t of each table, log-odds.
        edges: Node positions of each edge.
    """
    neighbours = _neighbours(edges, scores.shape[1])
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


def fit_stage(
    features: Sequence[Float32[np.ndarray, "questions tables features"]],
    gold: Sequence[Bool[np.ndarray, "questions tables"]],
    settings: TreeSettings,
):
    """One stage fitted on these databases, as a LightGBM booster.

    Raises:
        MissingExtraError: Without the extra `boosted`.
    """
    lightgbm = lightgbm_or_error()
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


def tree_features(
    values: Float[np.ndarray, "questions tables channels"],
) -> Float32[np.ndarray, "questions tables features"]:
    """What the first stage reads: the forms of every channel, and the log of the number of tables."""
    count = np.full((*values.shape[:2], 1), np.log(values.shape[1]))
    return np.concatenate([form_values(values, FORMS), count], axis=2).astype(np.float32)


def with_support(
    features: Float32[np.ndarray, "questions tables features"],
    scores: Float[np.ndarray, "questions tables"],
    edges: Int[np.ndarray, "edges 2"],
) -> Float32[np.ndarray, "questions tables more"]:
    """What the second stage reads: the features of the first, its scores s_t and the support of the neighbours."""
    support = neighbour_support(scores, edges)
    # The first form of a channel is its value, and the forms come one after the other.
    values = features[:, :, : (features.shape[2] - 1) // len(FORMS)]
    around = _neighbours(edges, scores.shape[1])
    largest = np.full(values.shape, NO_VALUE, dtype=np.float32)
    for table, neighbours in enumerate(around):
        if neighbours:
            largest[:, table] = values[:, neighbours].max(axis=1)
    return np.concatenate([features, scores[:, :, None], support, largest], axis=2).astype(np.float32)


def _neighbours(edges: Int[np.ndarray, "edges 2"], num_tables: int) -> list[list[int]]:
    neighbours: list[list[int]] = [[] for _ in range(num_tables)]
    for a, b in edges.tolist():
        neighbours[a].append(b)
        neighbours[b].append(a)
    return neighbours


def predict_stage(
    booster, features: Float32[np.ndarray, "questions tables features"]
) -> Float[np.ndarray, "questions tables"]:
    """Log-odds of each table by one stage."""
    if not features[..., 0].size:
        return np.zeros(features.shape[:2])
    # One thread: a question is a few tables, and a pool of threads costs more than its trees.
    flat = booster.predict(features.reshape(-1, features.shape[2]), raw_score=True, num_threads=1)
    return np.asarray(flat, dtype=np.float64).reshape(features.shape[:2])


def lightgbm_or_error() -> ModuleType:
    """LightGBM, imported when it is needed.

    Raises:
        MissingExtraError: Without the extra `boosted`.
    """
    try:
        import lightgbm
    except (ImportError, OSError) as error:
        raise MissingExtraError(
            f"boosted trees need lightgbm ({error}); run pip install 'bayeslink[boosted]'"
        ) from error
    return lightgbm
