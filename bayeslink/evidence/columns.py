"""What the question says about each column: the channels of tables, read column by column.

`column_graph` writes each column as a node of its own, named by the column, with one text beside it: "table column",
or, for channels that read identifiers and types, the column as it is. Every channel of tables reads such a graph
unchanged, so nothing is defined twice: `name_share` of a node is that of the column's name, `bm25_columns` that of
"table column", `cosine_descriptions` that of the column with its description, `identifier_hint` that of its own
identifier. Each value z_c has two more forms, relative to the best column of its own table and of the whole schema,
because a question names few of a table's columns:

    z_c,    z_c - max over columns c' of c's table of z_c',    z_c - max over all columns c' of z_c'

To these come four facts of the catalogue, the same for every question: whether c is in the primary key, in a foreign
key, referenced by one, and the logarithm of the number of columns of its table.
"""

from collections.abc import Sequence
from dataclasses import replace
from functools import cache, partial
from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int

from bayeslink.evidence.attention import EPSILON, AttentionHead, candidate_distribution, score_candidates
from bayeslink.evidence.cache import GraphMemo
from bayeslink.evidence.channel import Channel
from bayeslink.evidence.embedding import HashedCosine
from bayeslink.evidence.fields import Field, FieldBM25, FieldOverlap, Match, NameMatch
from bayeslink.evidence.fields_embedding import Cosine, FieldCosine
from bayeslink.evidence.hints import IdentifierHint, Literal, LiteralType
from bayeslink.evidence.phrases import PhraseMatch
from bayeslink.schema.graph import Column, SchemaGraph, Table

__all__ = [
    "COLUMN_KINDS",
    "FACTS",
    "ColumnEvidence",
    "column_channels",
    "column_evidence",
    "column_graph",
    "column_owner",
]

COLUMN_KINDS = ("lexical", "embedding", "attention")
"""Lists of column channels: without a download, with sentence embeddings, and with attention besides."""

FACTS = ("primary_key", "foreign_key", "referenced", "log_columns")
"""What the catalogue says of a column, whatever is asked."""


class ColumnEvidence(NamedTuple):
    """Predictors of one database's columns.

    Attributes:
        names: Name of each predictor.
        values: Its value.
        owner: Table of each column.
    """

    names: tuple[str, ...]
    values: Float[np.ndarray, "questions columns predictors"]
    owner: Int[np.ndarray, " columns"]


def column_graph(graph: SchemaGraph, beside: bool = True) -> SchemaGraph:
    """A graph whose nodes are the columns of all tables, in order, without an edge.

    Args:
        graph: The schema.
        beside: Write "table column" as the text of a node, and not the column alone.
    """
    nodes = [
        Table(
            column.name,
            (_beside(table, column) if beside else column,),
            schema=f"{place}.{position}",
            natural_name=column.natural_name,
        )
        for place, table in enumerate(graph.tables)
        for position, column in enumerate(table.columns)
    ]
    return SchemaGraph(graph.name, tuple(nodes), dialect=graph.dialect)


# Kept with their schema, so that the channels' indexes of them are kept too.
_BESIDE = GraphMemo(column_graph)
_ALONE = GraphMemo(partial(column_graph, beside=False))


def column_owner(graph: SchemaGraph) -> Int[np.ndarray, " columns"]:
    """Table of each column, in the order of `column_graph`."""
    return np.repeat(np.arange(graph.num_tables), [len(table.columns) for table in graph.tables])


def column_channels(kind: str) -> tuple[Channel, ...]:
    """The channels of a kind; attention is read apart.

    Raises:
        ValueError: If the kind is not one of `COLUMN_KINDS`.
    """
    if kind not in COLUMN_KINDS:
        raise ValueError(f"kind={kind!r}: use one of {', '.join(COLUMN_KINDS)}")
    return _channels(kind)


@cache
def _channels(kind: str) -> tuple[Channel, ...]:
    """The same objects at each call, with the indexes that they keep."""
    lexical = (
        NameMatch(Match.SHARE),
        NameMatch(Match.FULL),
        PhraseMatch(Field.NAME),
        *(make(field) for field in (Field.COLUMNS, Field.DESCRIPTIONS) for make in (FieldOverlap, FieldBM25)),
        IdentifierHint(),
        *map(LiteralType, Literal),
        HashedCosine(),
    )
    embedded = tuple(FieldCosine(cosine) for cosine in (Cosine.NAME, Cosine.COLUMNS, Cosine.DESCRIPTIONS))
    return lexical if kind == "lexical" else (*lexical, *embedded)


def column_evidence(
    questions: Sequence[str],
    graph: SchemaGraph,
    kind: str = "lexical",
    head: AttentionHead | None = None,
    attention: Float[np.ndarray, "questions columns"] | None = None,
) -> ColumnEvidence:
    """Predictors of each column for each question, raw.

    Args:
        questions: Texts of the questions.
        graph: The schema.
        kind: One of `COLUMN_KINDS`.
        head: Where attention is read, for the kind "attention".
        attention: Its scores s_c where they are already there.

    Raises:
        MissingExtraError: Without the extra that the kind needs.
        ValueError: If the kind is unknown, or "attention" comes without a head.
    """
    channels = column_channels(kind)
    owner = column_owner(graph)
    if not len(owner):
        return ColumnEvidence(_names(channels, kind), np.zeros((len(questions), 0, len(_names(channels, kind)))), owner)
    own = (IdentifierHint, LiteralType)
    graphs = [(_ALONE if isinstance(channel, own) else _BESIDE)(graph) for channel in channels]
    scores = [channel.score(questions, nodes) for channel, nodes in zip(channels, graphs, strict=True)]
    if kind == "attention":
        if attention is None:
            if head is None:
                raise ValueError("head=None: attention is read at a layer and head; name them")
            attention = score_candidates(head, questions, graph).scores
        scores.append(np.log(candidate_distribution(attention) + EPSILON))
    formed = [form for score in scores for form in (score, score - _best(score, owner), score - _widest(score))]
    facts = np.broadcast_to(_facts(graph)[None], (len(questions), len(owner), len(FACTS)))
    return ColumnEvidence(_names(channels, kind), np.concatenate([np.stack(formed, axis=-1), facts], axis=-1), owner)


def _names(channels: Sequence[Channel], kind: str) -> tuple[str, ...]:
    listed = [*(channel.name for channel in channels), *(["attention"] if kind == "attention" else [])]
    return *(f"{form}{name}" for name in listed for form in ("", "below_own_", "below_all_")), *FACTS


def _beside(table: Table, column: Column) -> Column:
    """The text "table column" of a node, with the column's type and description."""
    natural = f"{table.natural_name or table.name} {column.natural_name or column.name}"
    return replace(column, name=f"{table.name} {column.name}", natural_name=natural)


def _best(score: Float[np.ndarray, "questions columns"], owner: Int[np.ndarray, " columns"]) -> np.ndarray:
    """The best score among the columns of each column's table."""
    starts = np.flatnonzero(np.diff(owner, prepend=-1))
    return np.repeat(np.maximum.reduceat(score, starts, axis=1), np.diff([*starts, len(owner)]), axis=1)


def _widest(score: Float[np.ndarray, "questions columns"]) -> Float[np.ndarray, "questions 1"]:
    return score.max(axis=1, keepdims=True)


def _facts(graph: SchemaGraph) -> Float[np.ndarray, "columns facts"]:
    child = {(key.table, name.casefold()) for key in graph.foreign_keys for name in key.columns}
    parent = {(key.ref_table, name.casefold()) for key in graph.foreign_keys for name in key.ref_columns}
    rows = []
    for place, table in enumerate(graph.tables):
        primary = {name.casefold() for name in table.primary_key}
        for column in table.columns:
            name = column.name.casefold()
            where = (place, name)
            rows.append((name in primary, where in child, where in parent, np.log(len(table.columns))))
    return np.array(rows, dtype=np.float64)
