"""The order of a model among the best tables of another channel, as a channel; off unless one is made.

A base channel scores all tables; its best `num_tables` are shown to a reranker, which gives each a score. With the
tables sorted by those scores (ties as the base has them), the others after them as the base has them,

    reranked(t) = 1 / rank(t),        tied tables share the mean of their ranks.

A reranker is any callable from a question and tables to one score a table, such as a cross-encoder; `ChatReranker`
makes one of a chat model. Where it fails, or what it gives is no such thing, the ranks are the base's for that
question, and the failure is counted with its reason: `RerankedTables.counts`, and a warning in the log after each
batch. A batch with a failure in it is not kept in a cache (`complete`).
"""

import json
import logging
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

import numpy as np
from jaxtyping import Float
from scipy.stats import rankdata

from bayeslink.evidence.channel import Channel
from bayeslink.evidence.chat import ChatError, ChatModel, Counts, Tally, ask
from bayeslink.schema.graph import SchemaGraph, Table

__all__ = ["TOP_TABLES", "ChatReranker", "Reranker", "RerankedTables", "RerankingError"]

TOP_TABLES = 20
"""Tables that are shown to a reranker; a count."""

_SYSTEM = """You rank tables of a database by how much a question needs them.
Reply with one JSON list and nothing else: the numbers, or the names as text, of the tables that the question needs,
the most needed first. Tables that you leave out follow in the order that they have here."""

_FENCE = re.compile(r"\A```(?:json)?\s*(.*?)\s*```\Z", re.DOTALL)

_log = logging.getLogger(__name__)


class RerankingError(ValueError):
    """A reranker gave no scores; the message is the reason, the same for the same kind of failure."""


@runtime_checkable
class Reranker(Protocol):
    """Scores of tables for a question."""

    def __call__(self, question: str, tables: Sequence[Table]) -> Sequence[float] | Float[np.ndarray, " tables"]:
        """One finite score a table, more meaning a better match; raises whatever it likes where there is none."""
        ...


@dataclass(frozen=True)
class ChatReranker:
    """A reranker of a chat model.

    The model is shown the tables with numbers, names, columns and comments, and is to reply with a JSON list (alone or
    in one fenced block) of numbers or names, best first, of at least one table; what it lists that was not shown, or
    lists twice, makes the reply worth nothing.

    Attributes:
        model: A callable from messages to a text, such as `grounding.endpoint.Endpoint`.
    """

    model: ChatModel

    def __call__(self, question: str, tables: Sequence[Table]) -> Sequence[float]:
        """Minus the place of each table in the model's list, 0 for the first; unlisted tables tie behind them.

        Raises:
            ChatError: If the call fails.
            RerankingError: If the reply is no list of tables that were shown.
        """
        shown = "\n".join(f"{number}. {_line(table)}" for number, table in enumerate(tables, start=1))
        asked = f"Question: {' '.join(question.split())}\n\nTables:\n{shown}"
        text = ask(self.model, [{"role": "system", "content": _SYSTEM}, {"role": "user", "content": asked}])
        places = _listed(text, tables)
        return [-float(places.index(table) if table in places else len(places)) for table in range(len(tables))]


@dataclass(frozen=True)
class RerankedTables:
    """reranked(t) above, in (0, 1].

    Attributes:
        reranker: What re-scores the best tables.
        model_name: Its name, which keeps its scores apart from those of others in a cache.
        base: The channel whose best tables it is shown.
        num_tables: How many; a count of at least 2.
    """

    reranker: Reranker
    model_name: str
    base: Channel
    num_tables: int = TOP_TABLES
    _tally: Tally = field(default_factory=Tally, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if self.num_tables < 2 or not self.model_name:
            raise ValueError(
                f"num_tables={self.num_tables}, model_name={self.model_name!r}: rerank at least 2 tables, by a "
                "model that has a name"
            )

    @property
    def name(self) -> str:
        """The channel's name."""
        return "reranked"

    @property
    def identity(self) -> str:
        """Version, model, number of tables and the base's identity."""
        return f"reranked/1 model={self.model_name} tables={self.num_tables} of {self.base.identity}"

    @property
    def counts(self) -> Counts:
        """How the reranker's calls went since the channel was made."""
        return self._tally.counts

    @property
    def complete(self) -> bool:
        """Whether no call failed for the last batch, so that another run would give the same scores."""
        return self._tally.num_failed_in_batch == 0

    def score(self, questions: Sequence[str], graph: SchemaGraph) -> Float[np.ndarray, "questions tables"]:
        """reranked(t) of each table for each question."""
        base = self.base.score(questions, graph)
        self._tally.begin_batch()
        scores = [self._scored(question, row, graph) for question, row in zip(questions, base, strict=True)]
        if failed := self._tally.num_failed_in_batch:
            told = "reranker %s: %d of %d questions keep the order of %s; so far %s"
            _log.warning(told, self.model_name, failed, len(questions), self.base.name, self.counts)
        return np.array(scores, dtype=np.float64).reshape(base.shape)

    def _scored(
        self, question: str, base: Float[np.ndarray, " tables"], graph: SchemaGraph
    ) -> Float[np.ndarray, " tables"]:
        if graph.num_tables < 2:
            return np.ones(graph.num_tables)
        best = np.argsort(-base, kind="stable")[: self.num_tables]
        try:
            given = _checked(self.reranker(question, [graph.tables[table] for table in best]), len(best))
        except (ChatError, RerankingError) as error:
            self._tally.fail(error.kind.value if isinstance(error, ChatError) else str(error))
            return 1 / rankdata(-base)
        except Exception as error:  # a callable of the user may raise anything; all of it is counted and reported
            self._tally.fail(type(error).__name__)
            return 1 / rankdata(-base)
        self._tally.answer()
        # Sorted by: shown or not, the reranker's score, the base's score.
        keys = np.stack([np.ones(len(base)), np.zeros(len(base)), -base], axis=1)
        keys[best, 0], keys[best, 1] = 0.0, -given
        _, order = np.unique(keys, axis=0, return_inverse=True)
        return 1 / rankdata(order.ravel())


def _checked(given: object, num_tables: int) -> Float[np.ndarray, " tables"]:
    try:
        scores = np.array(given, dtype=np.float64)
    except (TypeError, ValueError):
        raise RerankingError("scores that are no numbers") from None
    if scores.shape != (num_tables,):
        raise RerankingError("not one score a table")
    if not np.isfinite(scores).all():
        raise RerankingError("scores that are not finite")
    return scores


def _line(table: Table) -> str:
    columns = ", ".join(column.name for column in table.columns)
    comment = " ".join((table.description or "").split())
    return " ".join(f"{table.full_name} ({columns}){f': {comment}' if comment else ''}".split())


def _listed(text: str, tables: Sequence[Table]) -> list[int]:
    """Positions of the tables that a reply lists."""
    fenced = _FENCE.match(text.strip())
    try:
        found: object = json.loads(fenced.group(1) if fenced else text)
    except ValueError:
        raise RerankingError("a reply that is not JSON") from None
    if not isinstance(found, list) or not found:
        raise RerankingError("a reply that is no list of tables")
    names = {table.full_name.casefold(): place for place, table in enumerate(tables)}
    places: list[int] = []
    for item in found:
        if isinstance(item, str):
            place = names.get(item.casefold())
        else:
            place = item - 1 if isinstance(item, int) and not isinstance(item, bool) else None
        if place is None or not 0 <= place < len(tables):
            raise RerankingError("a reply with a table that was not shown")
        if place in places:
            raise RerankingError("a reply that lists a table twice")
        places.append(place)
    return places
