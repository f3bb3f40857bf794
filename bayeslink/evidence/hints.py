"""Channels that read what a question gives away of columns, and the table's own shape.

    identifier(t)  = log(1 + sum over column identifiers v of t that the text spells out of 1 / n_v)
    literal_k(t)   = [the text has a literal of kind k] * (share of t's columns that can hold one)
    columns(t)     = log of the number of columns (of 1 where there is none)
    degree(t)      = log(1 + number of tables that t is joined to)
    references(t)  = log(1 + number of other tables that t's foreign keys lead to)
    keys(t)        = share of t's columns that are in a foreign key of t

with n_v the number of tables with identifier v and k a number, a date or a quoted text. An identifier is a column name
that ordinary prose would not contain: of more than three characters, with an underscore, a space, a digit, a bracket,
a percent sign or a hump; the evidence sentences of BIRD spell such names out. It counts where it stands as a whole
word, without regard to case; where one lies inside another that counts, only the longer does. The shape is the same
for every question: large and well-joined tables are needed more often than their names say.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int

from bayeslink.evidence.indexed import IndexedChannel
from bayeslink.schema.graph import Column, SchemaGraph
from bayeslink.schema.types import TypeFamily, type_family
from bayeslink.schema.words import split_words

__all__ = ["IdentifierHint", "Literal", "LiteralType", "Shape", "TableShape"]

_UNUSUAL = re.compile(r"[_ ()\[\]\d%]|[^\W\d_A-Z][A-Z]")
_DATE_WORDS = frozenset(("date", "day", "month", "time", "timestamp", "year"))


class _Identifiers(NamedTuple):
    """Case-folded identifiers, the longest first, with the tables that have each."""

    owners: dict[str, Int[np.ndarray, " owners"]]
    num_tables: int


@dataclass(frozen=True)
class IdentifierHint(IndexedChannel[_Identifiers]):
    """identifier(t) above, at least 0."""

    @property
    def name(self) -> str:
        """The channel's name."""
        return "identifier_hint"

    def build(self, graph: SchemaGraph) -> _Identifiers:
        """The identifiers of the columns."""
        owners: dict[str, list[int]] = {}
        for place, table in enumerate(graph.tables):
            names = {column.name.casefold() for column in table.columns if _is_identifier(column.name)}
            for name in names:
                owners.setdefault(name, []).append(place)
        longest_first = sorted(owners, key=lambda name: (-len(name), name))
        return _Identifiers({name: np.array(owners[name]) for name in longest_first}, graph.num_tables)

    def score_from(self, questions: Sequence[str], index: _Identifiers) -> Float[np.ndarray, "questions tables"]:
        """identifier(t) of each table."""
        scores = np.zeros((len(questions), index.num_tables))
        for row, question in zip(scores, questions, strict=True):
            text = question.casefold()
            for name, own in index.owners.items():
                if name not in text:
                    continue
                # What counted is blanked out, so that nothing inside it counts again.
                text, times = re.subn(rf"(?<!\w){re.escape(name)}(?!\w)", "\0", text)
                if times:
                    row[own] += 1 / len(own)
        return np.log1p(scores)


class Literal(StrEnum):
    """A kind of literal that a question can hold."""

    NUMBER = "number"
    DATE = "date"
    TEXT = "text"

    def is_in(self, text: str) -> bool:
        """Whether a text holds a literal of this kind; a date is a year or two numbers joined as in 3/14 or 2020-03."""
        return _LITERALS[self].search(text) is not None

    def fits(self, column: Column) -> bool:
        """Whether a column can hold such a literal, by its type; a date also by a word of its name."""
        if self is Literal.DATE and _DATE_WORDS.intersection(split_words(column.name)):
            return True
        return type_family(column.type) is TypeFamily(self.value)


_LITERALS = {
    Literal.NUMBER: re.compile(r"(?<![\w.])\d+(?:[.,]\d+)*(?!\w)"),
    Literal.DATE: re.compile(r"(?<!\w)(?:1[5-9]|20)\d\d(?!\w)|(?<!\w)\d{1,4}[/-]\d{1,2}(?!\w)"),
    Literal.TEXT: re.compile(r"(?<!\w)'[^']+'(?!\w)|\"[^\"]+\"|“[^”]+”|‘[^’]+’|«[^»]+»"),
}


@dataclass(frozen=True)
class LiteralType(IndexedChannel[np.ndarray]):
    """literal_k(t) above, in [0, 1].

    Attributes:
        literal: The kind k.
    """

    literal: Literal

    @property
    def name(self) -> str:
        """The channel's name: literal_number, literal_date or literal_text."""
        return f"literal_{self.literal}"

    def build(self, graph: SchemaGraph) -> Float[np.ndarray, " tables"]:
        """Share of each table's columns that can hold such a literal; 0 without columns."""
        fitting = [[self.literal.fits(column) for column in table.columns] for table in graph.tables]
        return np.array([np.mean(columns) if columns else 0.0 for columns in fitting])

    def score_from(
        self, questions: Sequence[str], index: Float[np.ndarray, " tables"]
    ) -> Float[np.ndarray, "questions tables"]:
        """literal_k(t) of each table."""
        there = np.array([self.literal.is_in(question) for question in questions], dtype=np.float64)
        return there[:, None] * index


class Shape(StrEnum):
    """What is said of a table's shape: see the module's equations."""

    COLUMNS = "columns"
    DEGREE = "degree"
    REFERENCES = "references"
    KEYS = "keys"


@dataclass(frozen=True)
class TableShape(IndexedChannel[np.ndarray]):
    """columns(t), degree(t), references(t) or keys(t) above, at least 0; the same for every question.

    Attributes:
        shape: Which of them.
    """

    shape: Shape

    @property
    def name(self) -> str:
        """The channel's name: shape_columns, shape_degree, shape_references or shape_keys."""
        return f"shape_{self.shape}"

    def build(self, graph: SchemaGraph) -> Float[np.ndarray, " tables"]:
        """The value of each table."""
        if self.shape is Shape.DEGREE:
            return np.log1p(np.bincount(graph.edge_array.ravel(), minlength=graph.num_tables))
        if self.shape is Shape.REFERENCES:
            referenced: list[set[int]] = [set() for _ in graph.tables]
            for key in graph.foreign_keys:
                if not key.is_self:
                    referenced[key.table].add(key.ref_table)
            return np.log1p([len(tables) for tables in referenced])
        num_columns = np.array([max(len(table.columns), 1) for table in graph.tables], dtype=np.float64)
        if self.shape is Shape.COLUMNS:
            return np.log(num_columns)
        in_keys: list[set[str]] = [set() for _ in graph.tables]
        for key in graph.foreign_keys:
            in_keys[key.table].update(column.casefold() for column in key.columns)
        return np.array([len(columns) for columns in in_keys]) / num_columns

    def score_from(
        self, questions: Sequence[str], index: Float[np.ndarray, " tables"]
    ) -> Float[np.ndarray, "questions tables"]:
        """The same values for each question."""
        return np.tile(index, (len(questions), 1))


def _is_identifier(name: str) -> bool:
    return len(name) > 3 and _UNUSUAL.search(name) is not None
