"""Channels that find whole names and values in the question, word by word in order.

A phrase is the list of words of a name, in the form that the catalogue or natural language gives it, or of a value
that a database holds. The question has a phrase when the phrase's words stand in it one after the other. A phrase of
function words alone ("to", "from") is none. With n_v the number of tables that own phrase v, over the phrases v of
table t that the question has,

    phrase(t)       = max_v (number of words of v) / sqrt(n_v)
    phrase_count(t) = log(1 + sum_v 1 / n_v)

A long phrase is hardly there by chance, and one that many tables own tells little. Without a phrase both are 0.
"""

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int

from bayeslink.evidence.fields import Field
from bayeslink.evidence.indexed import IndexedChannel
from bayeslink.schema.graph import Column, SchemaGraph, Table
from bayeslink.schema.words import STOP_WORDS, split_words

__all__ = ["PhraseIndex", "PhraseMatch", "ValueHint", "phrase_index"]

Phrase = tuple[str, ...]


class PhraseIndex(NamedTuple):
    """The tables that own each phrase.

    Attributes:
        owners: Positions of the tables that own a phrase.
        lengths: The numbers of words that phrases have, increasing.
        num_tables: Number of tables.
    """

    owners: Mapping[Phrase, Int[np.ndarray, " owners"]]
    lengths: tuple[int, ...]
    num_tables: int

    def found(self, question: str) -> set[Phrase]:
        """The phrases that a question has."""
        words = _words(question)
        spans = (words[i : i + length] for length in self.lengths for i in range(len(words) - length + 1))
        return {span for span in spans if span in self.owners}

    def longest(self, questions: Sequence[str]) -> Float[np.ndarray, "questions tables"]:
        """phrase(t) above of each table for each question."""
        scores = np.zeros((len(questions), self.num_tables))
        for row, question in zip(scores, questions, strict=True):
            for phrase in self.found(question):
                own = self.owners[phrase]
                row[own] = np.maximum(row[own], len(phrase) / np.sqrt(len(own)))
        return scores

    def total(self, questions: Sequence[str]) -> Float[np.ndarray, "questions tables"]:
        """phrase_count(t) above of each table for each question."""
        scores = np.zeros((len(questions), self.num_tables))
        for row, question in zip(scores, questions, strict=True):
            # Sorted, so that the sum is the same on every run.
            for phrase in sorted(self.found(question)):
                own = self.owners[phrase]
                row[own] += 1 / len(own)
        return np.log1p(scores)


def phrase_index(tables: Sequence[Iterable[str]]) -> PhraseIndex:
    """The phrases of each table's texts.

    Args:
        tables: Names or values of each table.
    """
    owners: dict[Phrase, list[int]] = {}
    for table, texts in enumerate(tables):
        phrases = {_words(text) for text in texts}
        for phrase in phrases:
            if any(word not in STOP_WORDS for word in phrase):
                owners.setdefault(phrase, []).append(table)
    lengths = tuple(sorted({len(phrase) for phrase in owners}))
    return PhraseIndex({phrase: np.array(own) for phrase, own in owners.items()}, lengths, len(tables))


@dataclass(frozen=True)
class PhraseMatch(IndexedChannel[PhraseIndex]):
    """phrase(t) or phrase_count(t) above, of the table's name or of its columns' names; at least 0.

    Attributes:
        field: Names that are looked for: name or columns.
        count: phrase_count(t) in place of phrase(t).

    Raises:
        ValueError: If the field is another.
    """

    field: Field = Field.COLUMNS
    count: bool = False

    def __post_init__(self) -> None:
        if self.field not in (Field.NAME, Field.COLUMNS):
            raise ValueError(f"field={self.field.value!r} holds no names to look for; use name or columns")

    @property
    def name(self) -> str:
        """The channel's name: phrase_name, phrase_columns or, with `count`, phrase_count_columns."""
        return f"phrase_count_{self.field}" if self.count else f"phrase_{self.field}"

    def build(self, graph: SchemaGraph) -> PhraseIndex:
        """The names as phrases."""
        if self.field is Field.NAME:
            return phrase_index([_forms(table) for table in graph.tables])
        return phrase_index([[form for c in table.columns for form in _forms(c)] for table in graph.tables])

    def score_from(self, questions: Sequence[str], index: PhraseIndex) -> Float[np.ndarray, "questions tables"]:
        """phrase(t) or phrase_count(t) of each table."""
        return index.total(questions) if self.count else index.longest(questions)


@dataclass(frozen=True)
class ValueHint(IndexedChannel[PhraseIndex]):
    """phrase(t) above, of values that the database holds; at least 0.

    Opt-in, since it reads data and not the catalogue alone: see `schema.values` for a sample of a live database.

    Attributes:
        values: Values by (full name of the table, name of the column), compared without case. Tables and columns
            that a schema lacks are passed over, so that one mapping may hold more than is asked for.
    """

    values: Mapping[tuple[str, str], Sequence[str]]

    @property
    def name(self) -> str:
        """The channel's name."""
        return "value_hint"

    @property
    def identity(self) -> str:
        """Version, and a hash of the values."""
        listed = sorted((*key, *values) for key, values in self.values.items())
        return f"value_hint/1 {hashlib.sha256(json.dumps(listed).encode()).hexdigest()}"

    def build(self, graph: SchemaGraph) -> PhraseIndex:
        """The values as phrases."""
        folded: dict[tuple[str, str], list[str]] = {}
        for (table, column), values in self.values.items():
            folded.setdefault((table.casefold(), column.casefold()), []).extend(values)
        return phrase_index(
            [
                [v for c in table.columns for v in folded.get((table.full_name.casefold(), c.name.casefold()), ())]
                for table in graph.tables
            ]
        )

    def score_from(self, questions: Sequence[str], index: PhraseIndex) -> Float[np.ndarray, "questions tables"]:
        """phrase(t) of each table."""
        return index.longest(questions)


def _forms(thing: Table | Column) -> list[str]:
    return [thing.name, thing.natural_name or ""]


@lru_cache(maxsize=4096)
def _words(text: str) -> Phrase:
    return tuple(split_words(text))
