"""From a question to rows: link, show the DDL, let a model write SQL, check it, run it read-only.

    model = Endpoint("http://localhost:8000/v1", "qwen3-8b")
    answer("shop.sqlite", "How many customers are there?", model).rows

The steps are those of `linker` and `grounding.answer`; here they are put in a row for one database, and for a corpus.
"""

from collections.abc import Callable, Mapping
from enum import StrEnum
from pathlib import Path

from bayeslink.evaluation.execution import ExecutionAccuracy, execution_accuracy
from bayeslink.evidence.chat import ChatModel
from bayeslink.grounding.access import Policy, visible
from bayeslink.grounding.answer import Answer, Check, Refusal, answer_question
from bayeslink.grounding.ddl import estimated_tokens, prune_schema
from bayeslink.linker import SchemaLinker
from bayeslink.schema.corpus import Corpus, Question
from bayeslink.schema.database import read_database
from bayeslink.schema.linkable import linkable

__all__ = ["Shown", "answer", "answer_linked", "execute"]


class Shown(StrEnum):
    """The tables that the model is shown: the whole schema, or the smallest cover."""

    WHOLE = "whole"
    COVER = "cover"


def answer(
    url: str,
    question: str,
    model: ChatModel,
    *,
    evidence: str | None = None,
    shown: Shown = Shown.COVER,
    cover: float = 0.95,
    max_risk: float | None = None,
    max_tokens: int | None = None,
    channels: str | None = None,
    policy: Policy | None = None,
    check: Check | None = None,
    max_rows: int = 1000,
    timeout: float | int = 30,
) -> Answer:
    """The answer of a live database to a question.

    Args:
        url: SQLAlchemy URL, or the path of an SQLite file; opened read-only.
        question: The question, in natural language.
        model: A callable from messages to a text, such as `grounding.endpoint.Endpoint`.
        evidence: A hint that belongs to the question.
        shown: The tables that the model sees.
        cover: Level of the cover.
        max_risk: Refuse when the most probable set of tables is wrong with a larger probability; None never does.
        max_tokens: Most tokens of the DDL.
        channels: Evidence, one of `linker.KINDS`; by default what is installed.
        policy: What the principal may read: the model is shown nothing else, and told that its view is partial, and
            SQL that reads anything else is not run (`grounding.access`).
        check: Whether a query may be run; by default that of the policy, without one `grounding.answer.check_tables`.
        max_rows: Most rows; a count.
        timeout: Seconds that a query may take.

    Raises:
        ValueError: If the database, the policy, the question or a number cannot be used; what the model does is a
            refusal.
        MissingExtraError: If the channels need an extra that is not installed.
    """
    graph = read_database(url)
    if policy is not None:
        seen = visible(graph, policy)
        graph, evidence = seen.graph, " ".join(filter(None, (evidence, seen.notice))) or None
        check = check or (lambda sql, _: seen.check(sql))
    return answer_linked(
        SchemaLinker.from_graph(linkable(graph), channels=channels),
        url,
        question,
        model,
        evidence=evidence,
        shown=shown,
        cover=cover,
        max_risk=max_risk,
        max_tokens=max_tokens,
        check=check,
        max_rows=max_rows,
        timeout=timeout,
    )


def answer_linked(
    linker: SchemaLinker,
    url: str,
    question: str,
    model: ChatModel,
    *,
    evidence: str | None = None,
    shown: Shown = Shown.COVER,
    cover: float = 0.95,
    max_risk: float | None = None,
    max_tokens: int | None = None,
    check: Check | None = None,
    max_rows: int = 1000,
    timeout: float | int = 30,
    count: Callable[[str], int] = estimated_tokens,
) -> Answer:
    """The same with a linker that is already made, which holds the part of the schema that may be read.

    Args:
        linker: The linker; its graph is all that the model's SQL may read.
        count: Tokens of a text.

    The other arguments are those of `answer`, and so is what raises.
    """
    if shown is Shown.WHOLE and max_risk is None and max_tokens is None:
        # Nothing is left to the posterior: no table, no column and no doubt.
        pruned = prune_schema(linker.graph, range(linker.graph.num_tables), count=count)
    else:
        link = linker.link(question, evidence, cover, max_risk, columns=max_tokens is not None)
        if max_risk is not None and link.abstention.abstained[0]:
            return Answer(question, (), refusal=Refusal.ABSTAINED, reason=link.abstention.reasons[0])
        pruned = link.ddl(linker.graph.table_names if shown is Shown.WHOLE else link.tables, max_tokens, count)
    return answer_question(
        question, pruned, model, url, evidence=evidence, check=check, max_rows=max_rows, timeout=timeout, count=count
    )


def execute(
    corpus: Corpus,
    databases: Mapping[str, str],
    model: ChatModel,
    *,
    model_name: str,
    shown: Shown = Shown.COVER,
    cover: float = 0.95,
    with_evidence: bool = False,
    channels: str | None = None,
    check: Check | None = None,
    out: Path | str | None = None,
    max_rows: int = 100_000,
    timeout: float | int = 30,
    progress: bool = False,
) -> ExecutionAccuracy:
    """Execution accuracy of the whole way on a corpus; the tables are those of its schemas.

    Args:
        corpus: The questions with their gold SQL.
        databases: URL or path of each database, by db_id; see `evaluation.execution.database_files`.
        model: A callable from messages to a text.
        model_name: Its name, for the record.
        shown: The tables that the model sees.
        cover: Level of the cover.
        with_evidence: Read each question with its evidence string.
        channels: Evidence, one of `linker.KINDS`; by default what is installed.
        check: Whether a query may be run.
        out: JSON lines to write and to go on from.
        max_rows: Most rows of a result; a count.
        timeout: Seconds that a query may take.
        progress: Show a progress bar.

    Raises:
        ValueError: If a database is missing, or `out` is of another corpus or other settings.
        MissingExtraError: If the channels need an extra that is not installed.
    """
    linkers: dict[str, SchemaLinker] = {}

    def one(question: Question) -> Answer:
        if question.db_id not in linkers:
            linkers[question.db_id] = SchemaLinker.from_graph(corpus.schemas[question.db_id], channels=channels)
        return answer_linked(
            linkers[question.db_id],
            databases[question.db_id],
            question.text,
            model,
            evidence=question.evidence if with_evidence else None,
            shown=shown,
            cover=cover,
            check=check,
            max_rows=max_rows,
            timeout=timeout,
        )

    settings = {
        "model": model_name,
        "shown": shown.value,
        "cover": cover,
        "with_evidence": with_evidence,
        "channels": channels,
    }
    return execution_accuracy(
        corpus,
        databases,
        one,
        out=out,
        settings=settings,
        max_rows=max_rows,
        timeout=timeout,
        progress=progress,
    )
