"""Retrievers: so many tables for each question, without a probability. What a posterior is compared with at equal size.

`RankedRetriever` takes the k best tables of any channel. `FusedRetriever` is the retrieval of schemagate, from its
public description: k picks by the fused score of `fused`, of which two may give way,

    coverage slot    of the question's words that are in the name of some table, but of no more than half of them,
                     and in the name of no pick: the best table that has the rarest of them
    column slot      the best table of the lexical ranking, the only one that reads columns

and then every table that a pick references through a foreign key (one step, from the referencing table outward). A
slot goes to a table that is not picked yet, in place of the lowest pick, so the number of picks stays k; neither
the first pick nor one that alone has a covered word in its name gives way, and where every pick is such, no slot is
given. Tables with equal scores are ordered by their names, so the order of a catalogue plays no role.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

import numpy as np
from jaxtyping import Bool, Float, Int

from bayeslink.evidence.channel import Channel
from bayeslink.evidence.fused import FusedRanks, reciprocal_rank_fusion
from bayeslink.schema.graph import SchemaGraph
from bayeslink.schema.words import content_words

__all__ = ["FusedRetriever", "RankedRetriever", "Retriever", "referenced"]

Chosen = Bool[np.ndarray, "questions tables"]
Count = int | Int[np.ndarray, " questions"]


@runtime_checkable
class Retriever(Protocol):
    """A rule that returns tables for questions."""

    @property
    def name(self) -> str:
        """Name of the retriever."""
        ...

    def retrieve(
        self, questions: Sequence[str], graph: SchemaGraph, k: int | Int[np.ndarray, " questions"]
    ) -> Bool[np.ndarray, "questions tables"]:
        """True where the table is returned, for k picks: one number, or one for each question."""
        ...


@dataclass(frozen=True)
class RankedRetriever:
    """The k best tables of a channel (all of them in a smaller schema), and nothing else."""

    channel: Channel

    @property
    def name(self) -> str:
        """The channel's name."""
        return self.channel.name

    def retrieve(self, questions: Sequence[str], graph: SchemaGraph, k: Count) -> Chosen:
        """True where the table is among the k of largest score; arguments as `Retriever.retrieve`.

        Raises:
            ValueError: If k is below 1.
        """
        counts = _counts(k, len(questions))
        order = _order(self.channel.score(questions, graph), graph)
        return _marked([row[:count].tolist() for row, count in zip(order, counts, strict=True)], graph.num_tables)


@dataclass(frozen=True)
class FusedRetriever:
    """Fused picks with the two slots, and the tables that they reference.

    Attributes:
        descriptions: Let the prose ranking read descriptions.
        slots: Give the coverage slot and the column slot.
        expand: Return the tables that picks reference, beyond k.
    """

    descriptions: bool = True
    slots: bool = True
    expand: bool = True
    _channel: FusedRanks = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_channel", FusedRanks(self.descriptions))

    @property
    def name(self) -> str:
        """The retriever's name."""
        return "fused_retrieval"

    def retrieve(self, questions: Sequence[str], graph: SchemaGraph, k: Count) -> Chosen:
        """True where the table is returned: k picks and what they reference; arguments as `Retriever.retrieve`.

        Raises:
            ValueError: If k is below 1.
        """
        counts = _counts(k, len(questions))
        rankings = self._channel.rankings(questions, graph)
        order = _order(reciprocal_rank_fusion(rankings), graph)
        named = [_name_words(graph, table) for table in range(graph.num_tables)]
        picked = []
        for question, ranked, lexical, count in zip(questions, order, rankings[0], counts, strict=True):
            picks = ranked[:count].tolist()
            if self.slots:
                words = _informative_words(question, named)
                picks = _with_slots(picks, ranked.tolist(), lexical, words, named)
            picked.append(picks)
        chosen = _marked(picked, graph.num_tables)
        return referenced(chosen, graph) if self.expand else chosen


def referenced(
    chosen: Bool[np.ndarray, "questions tables"], graph: SchemaGraph
) -> Bool[np.ndarray, "questions tables"]:
    """The chosen tables and every table that one of them references through a foreign key; one step."""
    found = chosen.copy()
    for key in graph.foreign_keys:
        found[:, key.ref_table] |= chosen[:, key.table]
    return found


def _with_slots(
    picks: list[int],
    ranked: list[int],
    lexical: Float[np.ndarray, " tables"],
    words: list[str],
    named: Sequence[set[str]],
) -> list[int]:
    """The picks after both slots."""
    uncovered = [word for word in words if not any(word in named[pick] for pick in picks)]
    if uncovered:
        covering = next(table for table in ranked if uncovered[0] in named[table])
        picks = _give_slot(picks, covering, words, named)
    if lexical.max() > 0 and np.ptp(lexical) > 0:
        # The first of the fused ranking among the best of the lexical one.
        best = next(table for table in ranked if lexical[table] == lexical.max())
        picks = _give_slot(picks, best, words, named)
    return picks


def _give_slot(picks: list[int], table: int, words: Sequence[str], named: Sequence[set[str]]) -> list[int]:
    """The picks with the table in place of the last one that may give way; unchanged where none may."""
    if table in picks:
        return picks
    for place in range(len(picks) - 1, 0, -1):
        others = picks[:place] + picks[place + 1 :]
        alone = [word for word in words if word in named[picks[place]] and not any(word in named[o] for o in others)]
        if not alone:
            return [*others, table]
    return picks


def _informative_words(question: str, named: Sequence[set[str]]) -> list[str]:
    """The question's words in the name of some table and of no more than half of them, the rarest first."""
    counts = {word: sum(word in name for name in named) for word in set(content_words(question))}
    return sorted(
        (word for word, n in counts.items() if 0 < 2 * n <= len(named)), key=lambda word: (counts[word], word)
    )


def _name_words(graph: SchemaGraph, table: int) -> set[str]:
    found = graph.tables[table]
    return {*content_words(found.name), *content_words(found.natural_name or "")}


def _order(scores: Float[np.ndarray, "questions tables"], graph: SchemaGraph) -> Int[np.ndarray, "questions tables"]:
    """Tables of each question, the best first, equal ones by name."""
    by_name = np.array(sorted(range(graph.num_tables), key=lambda table: graph.tables[table].key), dtype=np.int64)
    return by_name[np.argsort(-scores[:, by_name], axis=1, kind="stable")]


def _counts(k: Count, num_questions: int) -> list[int]:
    counts = np.broadcast_to(k, num_questions).tolist()
    if min(counts, default=1) < 1:
        raise ValueError(f"k={min(counts)}: at least one table is needed")
    return counts


def _marked(picked: Sequence[Sequence[int]], num_tables: int) -> Chosen:
    chosen = np.zeros((len(picked), num_tables), dtype=bool)
    for row, picks in zip(chosen, picked, strict=True):
        row[list(picks)] = True
    return chosen
