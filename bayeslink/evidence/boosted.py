"""A channel that trees learn from other channels (`trees`), and its honest scores on the databases of its training.

Trees fit the tables they were trained on far better than new ones, so that a slope gamma fitted on the same scores
would be too steep. `cross_fitted` therefore scores each database by trees fitted on others (MODEL.md section 9),
twins left out too; f_2 is always trained on cross-fitted s. (In those folds f_2 meets s of *other* databases that
f_1 computed with the left-out ones in training; no score of a database comes from trees that saw its own labels.)
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Float32
from tqdm import tqdm

from bayeslink.evidence.channel import Channel, Evidence, compute_evidence
from bayeslink.evidence.trees import (
    Trees,
    TreeSettings,
    fit_stage,
    lightgbm_or_error,
    predict_stage,
    tree_features,
    with_support,
)
from bayeslink.schema.graph import SchemaGraph

__all__ = ["BoostedChannel", "cross_fitted", "fit_first"]


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
        lightgbm_or_error()
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
    return Trees(data.channels, fit_stage(data.features, data.gold, settings).model_to_string(), "", data.trained)


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
        second = [with_support(*parts) for parts in zip(data.features, first, data.edges, strict=True)]
        scores = data.out_of_fold(second, fold, settings, bar)
        texts = []
        for features in (data.features, second):
            texts.append(fit_stage(features, data.gold, settings).model_to_string())
            bar.update()
    return Trees(data.channels, *texts, data.trained), scores


class _Data(NamedTuple):
    """Training databases: channels, keys, and the features, gold and edges of each."""

    channels: tuple[str, ...]
    keys: list[tuple[str, str]]
    features: list[Float32[np.ndarray, "questions tables features"]]
    gold: list[np.ndarray]
    edges: list[np.ndarray]

    @property
    def trained(self) -> tuple[str, ...]:
        """Names of the databases, each once."""
        return tuple(sorted({"/".join(key) for key in self.keys}))

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
            [tree_features(evidence.values) for evidence in evidences],
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
            booster = fit_stage(
                [features[place] for place in outside], [self.gold[place] for place in outside], settings
            )
            scores |= {place: predict_stage(booster, features[place]) for place in inside}
            bar.update()
        return [scores[place] for place in range(len(self.keys))]
