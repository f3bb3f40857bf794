"""Channels that compare words: token overlap and BM25.

Q holds the distinct content words of the question; N_t those of table t's name (as in the catalogue
and in natural language), D_t those of its name and of its columns' names, V the union of all D_t;
n_w of the n tables have w in D_t. Then

    idf(w) = log(1 + (n - n_w + 1/2) / (n_w + 1/2))
    overlap(t) = |Q and N_t| / |N_t| + sum_{w in Q and D_t} idf(w) / sum_{w in Q and V} idf(w)
    bm25(t) = sum_{w in Q} idf(w) f_wt / (f_wt + k1 (1 - b + b l_t / l))

with f_wt the count of w among table t's words, l_t their number and l its mean over tables
(Robertson & Zaragoza 2009, with the positive idf of Lucene). The first part of the overlap sees a
table that the question names, the second one whose columns it names. A sum
without terms and a ratio 0/0 are 0, so a question with none of the schema's words scores 0 everywhere.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from functools import lru_cache, partial
from typing import NamedTuple

import bm25s
import numpy as np
import scipy.sparse as sp
from jaxtyping import Float, Int

from bayeslink.evidence.cache import GraphMemo
from bayeslink.schema.graph import Column, SchemaGraph, Table
from bayeslink.schema.words import content_words

__all__ = [
    "BM25",
    "OverlapIndex",
    "TokenOverlap",
    "WordIndex",
    "bag_of_words",
    "bm25_index",
    "incidence",
    "inverse_frequency",
    "name_words",
    "overlap_index",
]


def inverse_frequency(num_with: Int[np.ndarray, " words"], num_tables: int) -> Float[np.ndarray, " words"]:
    """idf(w) above: the weight of a word, positive and larger the fewer tables have it.

    Args:
        num_with: Number of tables that have the word.
        num_tables: Number of tables n.
    """
    return np.log1p((num_tables - num_with + 0.5) / (num_with + 0.5))


class WordIndex(NamedTuple):
    """What each word of a question adds to the score of each document.

    Attributes:
        place: Row of each word.
        weights: The addends.
    """

    place: dict[str, int]
    weights: sp.csr_array

    def score(self, questions: Sequence[str]) -> Float[np.ndarray, "questions documents"]:
        """Sum of the addends over the distinct content words of each question."""
        return (bag_of_words(questions, self.place) @ self.weights).toarray()


class OverlapIndex(NamedTuple):
    """Which documents have a word, weighted by its idf over the documents.

    Attributes:
        place: Row of each word.
        weights: idf of a word in the documents that have it.
        idf: idf of each word.
    """

    place: dict[str, int]
    weights: sp.csr_array
    idf: Float[np.ndarray, " words"]

    def share(self, bag: sp.csr_array) -> Float[np.ndarray, "questions documents"]:
        """The second part of overlap(t) above: the share of the question's known idf that each document has.

        Args:
            bag: Words of the questions, from `bag_of_words`.
        """
        known = bag @ self.idf
        return (bag @ self.weights).toarray() / np.where(known > 0, known, 1.0)[:, None]


def bm25_index(documents: Sequence[Sequence[str]], k1: float = 1.5, b: float = 0.75) -> WordIndex:
    """The terms of bm25(t) above, from the index of bm25s.

    Args:
        documents: Words of each document, repeats kept.
        k1: How soon further occurrences of a word stop counting.
        b: How much long documents are discounted, in [0, 1].
    """
    if not any(documents):
        return WordIndex({}, sp.csr_array((0, len(documents))))
    index = bm25s.BM25(method="lucene", k1=k1, b=b, dtype="float64")
    index.index(documents, create_empty_token=False, show_progress=False)
    data, indices, indptr = (np.asarray(index.scores[name]) for name in ("data", "indices", "indptr"))
    weights = sp.csc_array((data, indices, indptr), shape=(len(documents), len(indptr) - 1)).T.tocsr()
    # bm25s numbers the words in an order that changes from run to run, and with it the last bit of a sum.
    place = index.vocab_dict
    return WordIndex({w: row for row, w in enumerate(sorted(place))}, weights[[place[w] for w in sorted(place)]])


def overlap_index(documents: Sequence[Collection[str]]) -> OverlapIndex:
    """The words of the documents, each given by its words, with their idf over the documents."""
    words = [set(document) for document in documents]
    place = {word: index for index, word in enumerate(sorted(set().union(*words)))}
    found = incidence(words, place)
    idf = inverse_frequency(np.asarray(found.sum(axis=1)).astype(np.int64), len(words))
    return OverlapIndex(place, found.multiply(idf[:, None]).tocsr(), idf)


def bag_of_words(questions: Sequence[str], place: dict[str, int]) -> sp.csr_array:
    """One row per question: 1 for each known content word, repeats counted once.

    Args:
        questions: Texts of the questions.
        place: Column of each known word.
    """
    rows = [sorted({place[word] for word in _asked(question) if word in place}) for question in questions]
    starts = np.cumsum([0, *map(len, rows)])
    found = np.array([index for row in rows for index in row], dtype=np.int64)
    return sp.csr_array((np.ones(len(found)), found, starts), shape=(len(questions), len(place)))


def incidence(sets: Sequence[set[str]], place: dict[str, int]) -> sp.csr_array:
    """One row per known word, one column per set: 1 where the set has the word.

    Args:
        sets: Sets of known words.
        place: Row of each word.
    """
    pairs = [(place[word], table) for table, words in enumerate(sets) for word in words]
    rows, columns = np.array(pairs, dtype=np.int64).reshape(-1, 2).T
    return sp.csr_array((np.ones(len(pairs)), (rows, columns)), shape=(len(place), len(sets)))


def name_words(thing: Table | Column) -> list[str]:
    """Content words of a name, then those that only its natural-language form has."""
    words = content_words(thing.name)
    return words + [word for word in content_words(thing.natural_name or "") if word not in words]


@dataclass(frozen=True)
class _Weights:
    """Share of a table's name that each word is, and the words' overlap with names and columns."""

    name: sp.csr_array
    all: OverlapIndex


@dataclass(frozen=True)
class TokenOverlap:
    """overlap(t) above, in [0, 2].

    Attributes:
        descriptions: Count the words of the catalogue's descriptions of table and columns in D_t.
    """

    descriptions: bool = False
    _weights: GraphMemo[_Weights] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        build = partial(_overlap_weights, descriptions=self.descriptions)
        object.__setattr__(self, "_weights", GraphMemo(build))

    @property
    def name(self) -> str:
        """The channel's name."""
        return "token_overlap"

    @property
    def identity(self) -> str:
        """Version and setting."""
        return f"token_overlap/1 descriptions={self.descriptions}"

    def score(self, questions: Sequence[str], graph: SchemaGraph) -> Float[np.ndarray, "questions tables"]:
        """overlap(t) of each table for each question."""
        weights = self._weights(graph)
        bag = bag_of_words(questions, weights.all.place)
        return (bag @ weights.name).toarray() + weights.all.share(bag)


@dataclass(frozen=True)
class BM25:
    """bm25(t) above, in nats of idf, at least 0.

    Attributes:
        k1: How soon further occurrences of a word stop counting.
        b: How much long tables are discounted, in [0, 1].
        descriptions: Count the words of the catalogue's descriptions too.
    """

    k1: float = 1.5
    b: float = 0.75
    descriptions: bool = False
    _index: GraphMemo[WordIndex] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        build = partial(_bm25_weights, k1=self.k1, b=self.b, descriptions=self.descriptions)
        object.__setattr__(self, "_index", GraphMemo(build))

    @property
    def name(self) -> str:
        """The channel's name."""
        return "bm25"

    @property
    def identity(self) -> str:
        """Version and settings."""
        return f"bm25/1 k1={self.k1} b={self.b} descriptions={self.descriptions}"

    def score(self, questions: Sequence[str], graph: SchemaGraph) -> Float[np.ndarray, "questions tables"]:
        """bm25(t) of each table for each question."""
        return self._index(graph).score(questions)


def _overlap_weights(graph: SchemaGraph, descriptions: bool) -> _Weights:
    words = overlap_index([_table_words(table, descriptions) for table in graph.tables])
    names = [set(name_words(table)) for table in graph.tables]
    share = incidence(names, words.place).multiply(1 / np.array([[max(len(found), 1) for found in names]]))
    return _Weights(share.tocsr(), words)


def _bm25_weights(graph: SchemaGraph, k1: float, b: float, descriptions: bool) -> WordIndex:
    return bm25_index([_table_words(table, descriptions) for table in graph.tables], k1, b)


def _table_words(table: Table, descriptions: bool) -> list[str]:
    words = name_words(table) + [word for column in table.columns for word in name_words(column)]
    if descriptions:
        words += [w for thing in (table, *table.columns) for w in content_words(thing.description or "")]
    return words


@lru_cache(maxsize=4096)
def _asked(question: str) -> frozenset[str]:
    """Distinct content words of a question, which many channels ask for."""
    return frozenset(content_words(question))
