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
from jaxtyping import Float, Int

from bayeslink.schema.graph import SchemaGraph

__all__ = ["INSTRUCTIONS", "PROMPT_VERSION", "Instruction", "Level", "Pooling", "Prompt", "copying_prompt", "pooling"]

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
        order: Positions of the tables in the order in which they are written; the catalogue's by default.

    Raises:
        ValueError: If the schema has no candidate, or `order` is not a permutation of its tables.
    """
    places = range(graph.num_tables) if order is None else list(order)
    if sorted(places) != list(range(graph.num_tables)):
        raise ValueError(f"order={order!r} is not a permutation of the {graph.num_tables} tables of {graph.name}")
    lines, owner, column = [], [], []
    for table in places:
        name = _line(graph.table_names[table])
        columns = [_line(item.name) for item in graph.tables[table].columns] if level is Level.COLUMN else [None]
        for place, item in enumerate(columns):
            lines.append(name if item is None else f"{item}@{name}")
            owner.append(table)
            column.append(-1 if item is None else place)
    if not lines:
        raise ValueError(f"{graph.name} has no {level.value} to choose from; read a schema that has some")
    parts = [INSTRUCTIONS[instruction].format(what=level.value), f"Question: {_line(question)}"]
    if with_schema:
        tables = (f"{_line(graph.table_names[t])}: {_columns(graph, t)}" for t in places)
        parts.append("Schema:\n" + "\n".join(tables))
    head = "\n\n".join(parts) + "\n\nCandidates:\n"
    ends = np.cumsum([len(line) + 1 for line in lines]) - 1 + len(head)
    spans = np.stack([ends - [len(line) for line in lines], ends], axis=1)
    return Prompt(head + "\n".join(lines), spans, np.array(owner, dtype=np.int64), np.array(column, dtype=np.int64))


def pooling(
    spans: Int[np.ndarray, "candidates 2"], offsets: Int[np.ndarray, "tokens 2"], kind: Pooling = Pooling.MEAN
) -> Float[np.ndarray, "candidates tokens"]:
    """Weight of each token in each candidate's score, so that scores = weights @ attention.

    A token belongs to a candidate when their characters overlap.

    Args:
        spans: First character and the one after the last of each candidate.
        offsets: The same of each token; empty for a token without text.
        kind: Mean, first token or sum.

    Raises:
        ValueError: If a candidate has no token.
    """
    start = np.maximum(spans[:, None, 0], offsets[None, :, 0])
    end = np.minimum(spans[:, None, 1], offsets[None, :, 1])
    inside = (start < end).astype(np.float64)
    count = inside.sum(axis=1, keepdims=True)
    if (count == 0).any():
        raise ValueError(f"candidate {int(np.argmin(count[:, 0]))} has no token in the prompt; its span is {spans}")
    if kind is Pooling.MEAN:
        return inside / count
    if kind is Pooling.FIRST:
        first = np.zeros_like(inside)
        first[np.arange(len(inside)), inside.argmax(axis=1)] = 1.0
        return first
    return inside


def _line(text: str) -> str:
    """The text on one line: a candidate is a line, whatever its name holds."""
    return re.sub(r"\s+", " ", text).strip() or "?"


def _columns(graph: SchemaGraph, table: int) -> str:
    return ", ".join(_line(column.name) for column in graph.tables[table].columns)
