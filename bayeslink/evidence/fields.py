"""Channels that compare the question's words with one field of the catalogue each.

Every text of the catalogue belongs to one field, and each channel reads one field, so that no text counts twice: a
column's description that also stood in a document of the whole table would make wide tables match everything.
Q holds the distinct content words of the question, N_t those of table t's name (as in the catalogue and in natural
language), F_t those of a field of t, F_c those of one column c in that field. Then

    name_share(t) = |Q and N_t| / |N_t|
    name_any(t)   = 1 if name_share(t) > 0, else 0
    name_full(t)  = 1 if Q holds every word of t's name in one of its two forms, else 0
    overlap(t)    = sum_{w in Q and F_t} idf(w) / sum_{w in Q and any F} idf(w)
    best(t)       = max over columns c of t of (sum_{w in Q and F_c} idf(w))^2 / sum_{w in F_c} idf(w)

and bm25(t) is that of `lexical` with F_t, repeats kept, as t's document. idf is that of `lexical` over the n tables,
in best(t) over all columns: a column scores by the weight of its words that the question has times their share of
its weight. A ratio 0/0 and a maximum over nothing are 0.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp
from jaxtyping import Float, Int

from bayeslink.evidence.indexed import IndexedChannel
from bayeslink.evidence.lexical import (
    OverlapIndex,
    WordIndex,
    bag_of_words,
    bm25_index,
    incidence,
    name_words,
    overlap_index,
)
from bayeslink.schema.graph import SchemaGraph, Table
from bayeslink.schema.words import content_words

__all__ = ["BestColumn", "Field", "FieldBM25", "FieldOverlap", "Match", "NameMatch", "largest_of_tables"]


class Field(StrEnum):
    """A field of the catalogue: a table's name, its columns' names, their descriptions, its own description."""

    NAME = "name"
    COLUMNS = "columns"
    DESCRIPTIONS = "descriptions"
    COMMENT = "comment"

    def texts(self, table: Table) -> list[list[str]]:
        """Content words of each text of this field: one list for each column, or one for the table."""
        if self is Field.NAME:
            return [name_words(table)]
        if self is Field.COLUMNS:
            return [name_words(column) for column in table.columns]
        if self is Field.DESCRIPTIONS:
            return [content_words(column.description or "") for column in table.columns]
        return [content_words(table.description or "")]

    def words(self, table: Table) -> list[str]:
        """Content words of the whole field, repeats kept."""
        return [word for text in self.texts(table) for word in text]


class Match(StrEnum):
    """How much of a table's name the question must have: see the module's equations."""

    SHARE = "share"
    ANY = "any"
    FULL = "full"


class _Names(NamedTuple):
    """Which names have a word, and the number of words of each; a name of no words has length infinity.

    Attributes:
        place: Row of each word.
        words: 1 where a table's name has the word, in either form.
        forms: 1 where one form of a table's name has the word; catalogue forms first, then natural ones.
        num_words: Length of the columns of `words`.
        num_form_words: Length of the columns of `forms`.
    """

    place: dict[str, int]
    words: sp.csr_array
    forms: sp.csr_array
    num_words: Float[np.ndarray, " tables"]
    num_form_words: Float[np.ndarray, " forms"]


@dataclass(frozen=True)
class NameMatch(IndexedChannel[_Names]):
    """name_share(t), name_any(t) or name_full(t) above, in [0, 1].

    Attributes:
        match: Which of them.
    """

    match: Match = Match.SHARE

    @property
    def name(self) -> str:
        """The channel's name: name_share, name_any or name_full."""
        return f"name_{self.match}"

    def build(self, graph: SchemaGraph) -> _Names:
        """The words of the tables' names."""
        names = [set(name_words(table)) for table in graph.tables]
        forms = [set(content_words(table.name)) for table in graph.tables]
        forms += [set(content_words(table.natural_name or "")) for table in graph.tables]
        place = {word: row for row, word in enumerate(sorted(set().union(*names)))}
        lengths = [np.array([len(words) or np.inf for words in some], dtype=np.float64) for some in (names, forms)]
        return _Names(place, incidence(names, place), incidence(forms, place), *lengths)

    def score_from(self, questions: Sequence[str], index: _Names) -> Float[np.ndarray, "questions tables"]:
        """The match of each table's name."""
        bag = bag_of_words(questions, index.place)
        if self.match is Match.FULL:
            full = (bag @ index.forms).toarray() == index.num_form_words
            return full.reshape(len(questions), 2, len(index.num_words)).any(axis=1).astype(np.float64)
        share = (bag @ index.words).toarray() / index.num_words
        return share if self.match is Match.SHARE else (share > 0).astype(np.float64)


@dataclass(frozen=True)
class FieldOverlap(IndexedChannel[OverlapIndex]):
    """overlap(t) above, in [0, 1].

    Attributes:
        field: The field that is read.
    """

    field: Field

    @property
    def name(self) -> str:
        """The channel's name: overlap_columns, for instance."""
        return f"overlap_{self.field}"

    def build(self, graph: SchemaGraph) -> OverlapIndex:
        """The words of the field with their weights."""
        return overlap_index([self.field.words(table) for table in graph.tables])

    def score_from(self, questions: Sequence[str], index: OverlapIndex) -> Float[np.ndarray, "questions tables"]:
        """overlap(t) of each table."""
        return index.share(bag_of_words(questions, index.place))


@dataclass(frozen=True)
class FieldBM25(IndexedChannel[WordIndex]):
    """bm25(t) of one field, in nats of idf, at least 0.

    Attributes:
        field: The field that is read.
        k1: How soon further occurrences of a word stop counting.
        b: How much long fields are discounted, in [0, 1].
    """

    field: Field
    k1: float = 1.5
    b: float = 0.75

    @property
    def name(self) -> str:
        """The channel's name: bm25_columns, for instance."""
        return f"bm25_{self.field}"

    @property
    def identity(self) -> str:
        """Version and settings."""
        return f"{self.name}/1 k1={self.k1} b={self.b}"

    def build(self, graph: SchemaGraph) -> WordIndex:
        """The terms of bm25(t)."""
        return bm25_index([self.field.words(table) for table in graph.tables], self.k1, self.b)

    def score_from(self, questions: Sequence[str], index: WordIndex) -> Float[np.ndarray, "questions tables"]:
        """bm25(t) of each table."""
        return index.score(questions)


class _Columns(NamedTuple):
    """Words of each column, the weight of all its words, and the place of each table's first column."""

    words: OverlapIndex
    weight: Float[np.ndarray, " columns"]
    starts: Int[np.ndarray, " tables"]


@dataclass(frozen=True)
class BestColumn(IndexedChannel[_Columns]):
    """best(t) above, in nats of idf, at least 0.

    Attributes:
        field: The field that is read: columns or descriptions.
    """

    field: Field

    @property
    def name(self) -> str:
        """The channel's name: best_columns or best_descriptions."""
        return f"best_{self.field}"

    def build(self, graph: SchemaGraph) -> _Columns:
        """The words of each column with their weights."""
        texts = [self.field.texts(table) for table in graph.tables]
        starts = np.cumsum([0, *map(len, texts)])[:-1].astype(np.int64)
        words = overlap_index([text for table in texts for text in table])
        return _Columns(words, np.asarray(words.weights.sum(axis=0)).ravel(), starts)

    def score_from(self, questions: Sequence[str], index: _Columns) -> Float[np.ndarray, "questions tables"]:
        """best(t) of each table."""
        hit = (bag_of_words(questions, index.words.place) @ index.words.weights).toarray()
        return largest_of_tables(hit**2 / np.where(index.weight > 0, index.weight, 1.0), index.starts)


def largest_of_tables(
    values: Float[np.ndarray, "questions columns"], starts: Int[np.ndarray, " tables"]
) -> Float[np.ndarray, "questions tables"]:
    """Largest value over each table's columns; 0 for a table without columns.

    Args:
        values: Value of each column, at least 0, the columns of each table together.
        starts: Place of each table's first column; a table without columns has the next table's.
    """
    # A last column of zeros gives `reduceat` a place to stand where the last tables have no columns.
    padded = np.pad(values, ((0, 0), (0, 1)))
    empty = np.diff([*starts, values.shape[1]]) == 0
    return np.where(empty, 0.0, np.maximum.reduceat(padded, starts, axis=1))
