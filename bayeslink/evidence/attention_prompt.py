"""The copying prompt of AttnLink, and where in it each candidate stands.

A language model is told to copy one identifier that the question needs from a list. The list has a line for each
candidate, `table` or `column@table`, and the last token of the prompt is the generation anchor: what it attends to is
what the model would copy. Parts come in the order of the paper (shared reference, "Copying-Prompt Construction"):
instruction, question, schema (may be left out), candidates.
"""

import re
from collections.abc import Sequence
from enum import StrEnum
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp
from jaxtyping import Float, Int

from bayeslink.schema.graph import SchemaGraph

__all__ = [
    "INSTRUCTIONS",
    "PROMPT_VERSION",
    "Instruction",
    "Level",
    "Pool",
    "Pooling",
    "Prompt",
    "candidates",
    "copying_prompt",
    "pooling",
]

PROMPT_VERSION = 1
"""Number of the wording below; a stored head or adapter belongs to one."""


class Level(StrEnum):
    """What the candidates are."""

    TABLE = "table"
    COLUMN = "column"


class Instruction(StrEnum):
    """What the model is told to do: copy one identifier, or explain in its own words (the paper's ablation)."""

    COPY = "copy"
    RATIONALE = "rationale"


class Pooling(StrEnum):
    """How the attention on a candidate's tokens makes its score."""

    MEAN = "span_mean"
    FIRST = "first_token"
    SUM = "span_sum"


INSTRUCTIONS = {
    Instruction.COPY: (
        "Copy one line of the list of candidates: a {what} that the SQL query for the question must read. If several "
        "are needed, pick one of them at random, not the most likely one. Write that line and nothing else."
    ),
    Instruction.RATIONALE: (
        "Say which {what}s the SQL query for the question must read, and explain in a sentence why each is needed. Use "
        "ordinary names for tables and columns."
    ),
}
"""Wording of each instruction; `{what}` is the level."""


class Prompt(NamedTuple):
    """A prompt without a chat template.

    Attributes:
        text: The whole text.
        spans: First character and the one after the last of each candidate in `text`.
        owner: Table of each candidate, a position in the graph.
        column: Column of each candidate among its table's; -1 for a table.
    """

    text: str
    spans: Int[np.ndarray, "candidates 2"]
    owner: Int[np.ndarray, " candidates"]
    column: Int[np.ndarray, " candidates"]


def copying_prompt(
    question: str,
    graph: SchemaGraph,
    level: Level = Level.COLUMN,
    *,
    instruction: Instruction = Instruction.COPY,
    with_schema: bool = False,
    order: Sequence[int] | None = None,
) -> Prompt:
    """The prompt of a question on a schema.

    Args:
        question: The question, with its evidence sentence where it has one.
        graph: The schema.
        level: Candidates are its tables or its columns.
        instruction: What the model is told to do.
        with_schema: Also list each table with its columns before the candidates.
        order: Places of the candidates in the order in which they are written; the catalogue's by default.

    Raises:
        ValueError: If the schema has no candidate, or `order` is not a permutation of the candidates.
    """
    owner, column = candidates(graph, level)
    if not len(owner):
        raise ValueError(f"{graph.name} has no {level.value} to choose from; read a schema that has some")
    places = np.arange(len(owner)) if order is None else np.array(order, dtype=np.int64)
    if sorted(places.tolist()) != list(range(len(owner))):
        raise ValueError(
            f"order of length {len(places)} is no permutation of the {len(owner)} candidates of {graph.name}; give "
            "each place once"
        )
    owner, column = owner[places], column[places]
    lines = [
        _line(graph.table_names[t])
        if c < 0
        else f"{_line(graph.tables[t].columns[c].name)}@{_line(graph.table_names[t])}"
        for t, c in zip(owner.tolist(), column.tolist(), strict=True)
    ]
    parts = [INSTRUCTIONS[instruction].format(what=level.value), f"Question: {_line(question)}"]
    if with_schema:
        tables = (f"{_line(graph.table_names[t])}: {_columns(graph, t)}" for t in range(graph.num_tables))
        parts.append("Schema:\n" + "\n".join(tables))
    head = "\n\n".join(parts) + "\n\nCandidates:\n"
    ends = np.cumsum([len(line) + 1 for line in lines]) - 1 + len(head)
    spans = np.stack([ends - [len(line) for line in lines], ends], axis=1)
    return Prompt(head + "\n".join(lines), spans, owner, column)


def candidates(
    graph: SchemaGraph, level: Level
) -> tuple[Int[np.ndarray, " candidates"], Int[np.ndarray, " candidates"]]:
    """Table of each candidate in the catalogue's order, and its column among the table's; -1 for a table."""
    if level is Level.TABLE:
        return np.arange(graph.num_tables), np.full(graph.num_tables, -1, dtype=np.int64)
    widths = [len(table.columns) for table in graph.tables]
    columns = [np.arange(width) for width in widths]
    return np.repeat(np.arange(graph.num_tables), widths), np.concatenate([*columns, np.zeros(0, dtype=np.int64)])


class Pool(NamedTuple):
    """Tokens of each candidate with their weights, one entry a pair: s_i = sum over its entries of weight * a_token.

    Attributes:
        candidate: Candidate of each entry.
        token: Its token.
        weight: Weight of the token in the candidate's score.
    """

    candidate: Int[np.ndarray, " entries"]
    token: Int[np.ndarray, " entries"]
    weight: Float[np.ndarray, " entries"]

    def scores(
        self, attention: Float[np.ndarray, "*parts tokens"], count: int
    ) -> Float[np.ndarray, "*parts candidates"]:
        """s_i of `count` candidates from the attention on the tokens."""
        matrix = sp.csr_array((self.weight, (self.candidate, self.token)), shape=(count, attention.shape[-1]))
        return (matrix @ attention.reshape(-1, attention.shape[-1]).T).T.reshape(*attention.shape[:-1], count)


def pooling(spans: Int[np.ndarray, "candidates 2"], offsets: Int[np.ndarray, "tokens 2"], kind: Pooling) -> Pool:
    """The tokens whose characters overlap those of each candidate, with their weights.

    Args:
        spans: First character and the one after the last of each candidate.
        offsets: The same of each token, in the order of the text; empty for a token without text.
        kind: Mean, first token or sum.

    Raises:
        ValueError: If a candidate has no token.
    """
    written = np.flatnonzero(offsets[:, 0] < offsets[:, 1])
    first = np.searchsorted(offsets[written, 1], spans[:, 0], side="right")
    last = np.searchsorted(offsets[written, 0], spans[:, 1], side="left")
    count = last - first
    if (count < 1).any():
        place = int(np.argmin(count))
        raise ValueError(
            f"candidate {place} (characters {spans[place, 0]} to {spans[place, 1]}) has no token of the prompt; use a "
            "model whose tokeniser tells the characters of its tokens"
        )
    if kind is Pooling.FIRST:
        count = np.ones_like(count)
    candidate = np.repeat(np.arange(len(spans)), count)
    within = np.arange(len(candidate)) - np.repeat(np.cumsum(count) - count, count)
    weight = np.repeat(1.0 / count, count) if kind is Pooling.MEAN else np.ones(len(candidate))
    return Pool(candidate, written[np.repeat(first, count) + within], weight)


def _line(text: str) -> str:
    """The text on one line: a candidate is a line, whatever its name holds."""
    return re.sub(r"\s+", " ", text).strip() or "?"


def _columns(graph: SchemaGraph, table: int) -> str:
    return ", ".join(_line(column.name) for column in graph.tables[table].columns)
