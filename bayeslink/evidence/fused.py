"""Reciprocal-rank fusion of four rankings of the tables, as the retrieval of schemagate, as a channel.

Ranking r gives table t the rank rank_r(t), 1 for the best; tied tables share the mean of their ranks, and a table
that scores 0 (nothing in common with the question) has none. Then (Cormack, Clarke & Buettcher 2009)

    fused(t) = sum over rankings r that tell tables apart, among those that rank t, of 1 / (60 + rank_r(t)).

A ranking in which every table scores the same says nothing about the question and abstains. The rankings are

    lexical    BM25 on the names of the table and of its columns; the only one that reads column names as words
    vector     cosine of hashed character n-grams
    name       BM25 on the names of tables alone, so that a word's weight is that among table names
    prose      BM25 on the catalogue's descriptions alone

Each text is a field of one of the BM25 rankings or a part of it; descriptions are in no other, since a text that
counts in several rankings makes tables with many columns match everything.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial

import numpy as np
from jaxtyping import Float
from scipy.stats import rankdata

from bayeslink.evidence.cache import GraphMemo
from bayeslink.evidence.embedding import HashedCosine
from bayeslink.evidence.lexical import BM25
from bayeslink.schema.graph import Column, SchemaGraph, Table

__all__ = ["RANK_OFFSET", "RANKINGS", "FusedRanks", "reciprocal_rank_fusion"]

RANK_OFFSET = 60
"""Added to every rank, so that the first few ranks differ little."""

RANKINGS = ("lexical", "vector", "name", "prose")
"""Names of the rankings, in their order."""

Scores = Float[np.ndarray, "questions tables"]


def reciprocal_rank_fusion(rankings: Sequence[Scores], offset: int = RANK_OFFSET) -> Scores:
    """fused(t) above, at least 0; 0 for a table that no ranking ranks.

    Args:
        rankings: Scores of each ranking, all of one shape, more meaning better.
        offset: Added to every rank.

    Raises:
        ValueError: If there is no ranking, shapes differ, or `offset` is negative.
    """
    if not rankings or len({scores.shape for scores in rankings}) > 1:
        shapes = [scores.shape for scores in rankings]
        raise ValueError(f"rankings have shapes {shapes}; give at least one, all of the same questions and tables")
    if offset < 0:
        raise ValueError(f"offset={offset}: ranks start at 1; use an offset of at least 0")
    total = np.zeros(rankings[0].shape)
    for scores in rankings:
        if scores.size:
            tells_apart = np.ptp(scores, axis=1, keepdims=True) > 0
            ranks = rankdata(-scores, axis=1)
            total += np.where(tells_apart & (scores > 0), 1 / (offset + ranks), 0.0)
    return total


@dataclass(frozen=True)
class FusedRanks:
    """fused(t) above of the four rankings, in [0, 4 / 61].

    Attributes:
        descriptions: Let the prose ranking read descriptions; without them it abstains.
    """

    descriptions: bool = True
    _lexical: BM25 = field(default_factory=BM25, init=False, repr=False, compare=False)
    _vector: HashedCosine = field(default_factory=HashedCosine, init=False, repr=False, compare=False)
    _prose: BM25 = field(default_factory=partial(BM25, descriptions=True), init=False, repr=False, compare=False)
    _names: GraphMemo[SchemaGraph] = field(init=False, repr=False, compare=False)
    _texts: GraphMemo[SchemaGraph] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_names", GraphMemo(_names_alone))
        object.__setattr__(self, "_texts", GraphMemo(_descriptions_alone))

    @property
    def name(self) -> str:
        """The channel's name."""
        return "fused"

    @property
    def identity(self) -> str:
        """Version and settings, those of the rankings included."""
        parts = [self._lexical.identity, self._vector.identity, self._prose.identity]
        return f"fused/1 descriptions={self.descriptions} offset={RANK_OFFSET} of {'; '.join(parts)}"

    def rankings(self, questions: Sequence[str], graph: SchemaGraph) -> tuple[Scores, ...]:
        """Scores of each of the `RANKINGS`."""
        return (
            self._lexical.score(questions, graph),
            self._vector.score(questions, graph),
            self._lexical.score(questions, self._names(graph)),
            self._prose.score(questions, self._texts(graph))
            if self.descriptions
            else np.zeros((len(questions), graph.num_tables)),
        )

    def score(self, questions: Sequence[str], graph: SchemaGraph) -> Float[np.ndarray, "questions tables"]:
        """fused(t) of each table for each question."""
        return reciprocal_rank_fusion(self.rankings(questions, graph))


def _names_alone(graph: SchemaGraph) -> SchemaGraph:
    """The tables without columns."""
    tables = tuple(Table(table.name, (), table.schema, table.natural_name) for table in graph.tables)
    return SchemaGraph(graph.name, tables)


def _descriptions_alone(graph: SchemaGraph) -> SchemaGraph:
    """Tables and columns without names, with what the catalogue says of them."""
    tables = []
    for table in graph.tables:
        columns = tuple(Column("", description=column.description) for column in table.columns)
        tables.append(Table("", columns, description=table.description))
    return SchemaGraph(graph.name, tuple(tables))
