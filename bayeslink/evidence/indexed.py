"""Channels that read each schema once and keep what they read for the questions that follow."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from functools import cached_property
from typing import Generic

import numpy as np
from jaxtyping import Float

from bayeslink.evidence.cache import GraphMemo, Index
from bayeslink.schema.graph import SchemaGraph

__all__ = ["IndexedChannel"]


class IndexedChannel(ABC, Generic[Index]):
    """A channel that scores questions from an index of the schema, built once for each of the last graphs.

    Subclasses are frozen dataclasses whose fields are the channel's settings.
    """

    @property
    @abstractmethod
    def name(self) -> str:
        """The channel's name."""

    @property
    def identity(self) -> str:
        """Name and version of the definition."""
        return f"{self.name}/1"

    @abstractmethod
    def build(self, graph: SchemaGraph) -> Index:
        """What the channel reads of a schema."""

    @abstractmethod
    def score_from(self, questions: Sequence[str], index: Index) -> Float[np.ndarray, "questions tables"]:
        """Scores from what was read of the schema."""

    def score(self, questions: Sequence[str], graph: SchemaGraph) -> Float[np.ndarray, "questions tables"]:
        """Score of each table for each question."""
        return self.score_from(questions, self._index(graph))

    @cached_property
    def _index(self) -> GraphMemo[Index]:
        return GraphMemo(self.build)
