"""Channels that compare the question's embedding with that of each field of a table.

With u the unit embedding of `embedding` and natural-language names where there are any,

    cosine_name(t)         = <u(question), u("table")>
    cosine_text(t)         = <u(question), u("table: column, column, ...")>
    cosine_columns(t)      = max over columns c of t of <u(question), u("column")>
    cosine_columns_top3(t) = mean of the three largest of these, of all where there are fewer
    cosine_descriptions(t) = max over columns c of t of <u(question), u("column description")>

A mean or maximum over nothing is 0, as is every cosine of a question without words. One column may fit by chance,
three hardly; a column alone, other than in `EmbeddingCosine`, is not moved by its table's name. A description is read
after its column's name, which it often leaves out, and a column without one by its name, so that schemas with and
without descriptions are on one scale. Each text passes the model once: the texts of a schema are kept with its
graph, for all channels, and the questions of a batch too.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import partial

import numpy as np
from jaxtyping import Float, Int

from bayeslink.evidence.cache import GraphMemo
from bayeslink.evidence.embedding import embed, embedded_questions, spoken
from bayeslink.schema.graph import SchemaGraph, Table

__all__ = ["Cosine", "FieldCosine"]

NUM_BEST = 3
"""Columns behind cosine_columns_top3; a count."""


class Cosine(StrEnum):
    """Which texts of a table are compared: see the module's equations."""

    NAME = "name"
    TEXT = "text"
    COLUMNS = "columns"
    COLUMNS_TOP3 = "columns_top3"
    DESCRIPTIONS = "descriptions"


@dataclass(frozen=True)
class FieldCosine:
    """A cosine above, in [-1, 1]; on the CPU, without network.

    Attributes:
        cosine: Which of them.
    """

    cosine: Cosine

    @property
    def name(self) -> str:
        """The channel's name: cosine_name, for instance."""
        return f"cosine_{self.cosine}"

    @property
    def identity(self) -> str:
        """Version and model."""
        return f"{self.name}/1 all-MiniLM-L6-v2"

    def score(self, questions: Sequence[str], graph: SchemaGraph) -> Float[np.ndarray, "questions tables"]:
        """The cosine of each table for each question.

        Raises:
            MissingExtraError: Without the extra `embeddings`.
        """
        scores = np.zeros((len(questions), graph.num_tables))
        vectors, starts = _KEPT[self.cosine](graph)
        if not questions or not len(vectors):
            return scores
        cosines = embedded_questions(questions) @ vectors.T
        num_best = NUM_BEST if self.cosine is Cosine.COLUMNS_TOP3 else 1
        for table, own in enumerate(np.split(cosines, starts[1:], axis=1)):
            if own.shape[1]:
                scores[:, table] = np.sort(own, axis=1)[:, -num_best:].mean(axis=1)
        return scores


def _name(table: Table) -> list[str]:
    return [spoken(table)]


def _text(table: Table) -> list[str]:
    return [f"{spoken(table)}: {', '.join(spoken(column) for column in table.columns)}"]


def _columns(table: Table) -> list[str]:
    return [spoken(column) for column in table.columns]


def _descriptions(table: Table) -> list[str]:
    return [f"{spoken(column)} {column.description or ''}".strip() for column in table.columns]


def _embedded(
    graph: SchemaGraph, texts: Callable[[Table], list[str]]
) -> tuple[Float[np.ndarray, "texts dims"], Int[np.ndarray, " tables"]]:
    """Embeddings of all tables' texts in order, and the place of each table's first."""
    found = [texts(table) for table in graph.tables]
    starts = np.cumsum([0, *map(len, found)])[:-1].astype(np.int64)
    listed = [text for own in found for text in own]
    if not listed:
        return np.zeros((0, 0)), starts
    place = {text: row for row, text in enumerate(dict.fromkeys(listed))}
    return embed(list(place))[[place[text] for text in listed]], starts


def _embedded_descriptions(graph: SchemaGraph) -> tuple[Float[np.ndarray, "texts dims"], Int[np.ndarray, " tables"]]:
    described = any(column.description for table in graph.tables for column in table.columns)
    return _embedded(graph, _descriptions) if described else _COLUMNS(graph)


# Shared by all channels, so that each text passes the model once.
_COLUMNS = GraphMemo(partial(_embedded, texts=_columns))
_KEPT = {
    Cosine.NAME: GraphMemo(partial(_embedded, texts=_name)),
    Cosine.TEXT: GraphMemo(partial(_embedded, texts=_text)),
    Cosine.COLUMNS: _COLUMNS,
    Cosine.COLUMNS_TOP3: _COLUMNS,
    Cosine.DESCRIPTIONS: GraphMemo(_embedded_descriptions),
}
