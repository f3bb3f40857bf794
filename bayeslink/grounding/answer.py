"""From the tables that are shown to an answer: SQL of a language model, checked, run read-only, repaired at most once.

    prompt (DDL, question) -> reply -> SQL -> check -> run -> rows
                                                       | the database raises an error: the model sees it, once
                                                       v
                                                  reply -> SQL -> check -> run -> rows or a refusal

Everything that can go wrong ends in a refusal with its kind and reason, never in an empty answer. No SQL is run that
the check has not let through, also after the repair; the model is shown the DDL, the question and what the database
said of its own SQL, never a row.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import NamedTuple, Protocol, runtime_checkable

import sqlglot
from sqlglot import exp

from bayeslink.evidence.chat import ChatError, ChatModel, Message, ask
from bayeslink.grounding.ddl import PrunedSchema, estimated_tokens
from bayeslink.grounding.read_only import QueryError, QueryTimeoutError, Rows, run_read_only, told
from bayeslink.schema.gold import UnresolvedQueryError, gold_tables, parsed_query
from bayeslink.schema.graph import SchemaGraph

__all__ = ["Answer", "Check", "Refusal", "Verdict", "answer_question", "check_tables", "prompt", "sql_of_reply"]

INSUFFICIENT = "INSUFFICIENT"
"""Word that a model is to reply with where the tables do not hold the answer."""

_SYSTEM = f"""You write one SQL query that answers a question about a database.
Dialect: {{dialect}}. Read only the tables and columns of the schema that is given, spelled and quoted as there.
Reply with the query alone, in one ```sql block: a single SELECT (WITH is allowed) that changes nothing.
If the schema does not hold what the question needs, reply with {INSUFFICIENT}: and the reason in one sentence."""

_REPAIR = """The database refused that query: {reason}
Reply with the corrected query alone, in one ```sql block."""

_FENCE = re.compile(r"```[ \t]*\w*[ \t]*\n?(.*?)```", re.DOTALL)
_THOUGHT = re.compile(r"\A\s*<think>.*?</think>", re.DOTALL)
_START = re.compile(r"(?:^|(?<=:))[ \t]*(?=(?:SELECT|WITH)\b)", re.IGNORECASE | re.MULTILINE)
_END = re.compile(r";|\n[ \t]*\n|\Z")


@runtime_checkable
class Verdict(Protocol):
    """What a check says of a query."""

    @property
    def allowed(self) -> bool:
        """Whether it may be run."""
        ...

    @property
    def reason(self) -> str:
        """Why not, in one sentence."""
        ...


Check = Callable[[str, SchemaGraph], Verdict]
"""Whether SQL reads nothing but tables and columns of a graph; it must refuse what it cannot read."""


class Refusal(StrEnum):
    """Why there is no answer."""

    ABSTAINED = "abstained"
    NO_TABLES = "no_tables"
    INSUFFICIENT = "insufficient"
    NO_SQL = "no_sql"
    NOT_ALLOWED = "not_allowed"
    DATABASE_ERROR = "database_error"
    DATABASE_TIMEOUT = "database_timeout"
    MODEL_UNREACHABLE = "model_unreachable"
    MODEL_TIMEOUT = "model_timeout"
    MODEL_REFUSED_KEY = "model_refused_key"
    MODEL_ERROR = "model_error"
    MODEL_MALFORMED = "model_malformed"


@dataclass(frozen=True)
class Answer:
    """The rows that answer a question, or why there are none.

    Attributes:
        question: The question.
        tables: Names of the tables that the model was shown.
        sql: The last query that the model wrote; None where it wrote none. A refused one was not run, or failed.
        columns: Names of the result's columns.
        rows: Its first rows.
        more: Whether it has more rows.
        refusal: Why there is no answer; None where there is one.
        reason: The same in a sentence; empty where there is an answer.
        repaired: Whether the model was asked for a second query, for the database refused the first.
        num_calls: Calls to the model; a count.
        prompt_tokens: Tokens of all that the model was sent, by the counter given.
    """

    question: str
    tables: tuple[str, ...]
    sql: str | None = None
    columns: tuple[str, ...] = ()
    rows: tuple[tuple[object, ...], ...] = ()
    more: bool = False
    refusal: Refusal | None = None
    reason: str = ""
    repaired: bool = False
    num_calls: int = 0
    prompt_tokens: int = 0

    def to_dict(self) -> dict:
        """The same as JSON values; a cell that JSON does not know is a text."""
        plain = (str, int, float, bool, type(None))
        rows = [[cell if isinstance(cell, plain) else str(cell) for cell in row] for row in self.rows]
        return {
            "question": self.question,
            "tables": list(self.tables),
            "sql": self.sql,
            "columns": list(self.columns),
            "rows": rows,
            "more_rows": self.more,
            "refusal": None if self.refusal is None else self.refusal.value,
            "reason": self.reason or None,
            "repaired": self.repaired,
            "model_calls": self.num_calls,
            "prompt_tokens": self.prompt_tokens,
        }


class Reply(NamedTuple):
    """What a model's reply says: a query, or that the tables do not suffice, or neither.

    Attributes:
        sql: The query.
        insufficient: The reason that the model gives for having none; None where it does not say so.
    """

    sql: str | None
    insufficient: str | None = None


def answer_question(
    question: str,
    shown: PrunedSchema,
    model: ChatModel,
    url: str,
    *,
    evidence: str | None = None,
    check: Check | None = None,
    max_rows: int = 1000,
    timeout: float | int = 30,
    count: Callable[[str], int] = estimated_tokens,
) -> Answer:
    """The answer of the database at `url`, by a query that a model writes for the tables shown.

    Args:
        question: The question, in natural language.
        shown: What the model sees; its whole graph is what the query may read.
        model: A callable from messages to a text, such as `endpoint.Endpoint`.
        url: SQLAlchemy URL, or the path of an SQLite file.
        evidence: A hint that belongs to the question.
        check: Whether a query may be run; by default `check_tables`.
        max_rows: Most rows of the answer; a count.
        timeout: Seconds that a query may take.
        count: Tokens of a text.

    Raises:
        ValueError: If the address or a number cannot be used; what the model or the database does is a refusal.
    """
    allowed, answer = check or check_tables, Answer(question, shown.tables)
    if not shown.columns:
        return replace(answer, refusal=Refusal.NO_TABLES, reason="no table is shown, so there is nothing to ask")
    messages = prompt(question, shown, evidence)
    while True:
        tokens = sum(count(message["content"]) for message in messages)
        answer = replace(answer, num_calls=answer.num_calls + 1, prompt_tokens=answer.prompt_tokens + tokens)
        try:
            text = ask(model, messages)
        except ChatError as error:
            return replace(answer, refusal=Refusal(f"model_{error.kind}"), reason=str(error))
        reply = sql_of_reply(text, shown.graph.dialect)
        if reply.insufficient is not None:
            return replace(answer, refusal=Refusal.INSUFFICIENT, reason=reply.insufficient)
        if reply.sql is None:
            return replace(answer, refusal=Refusal.NO_SQL, reason="the model's reply holds no SQL")
        answer = replace(answer, sql=reply.sql)
        verdict = allowed(reply.sql, shown.graph)
        if not verdict.allowed:
            return replace(answer, refusal=Refusal.NOT_ALLOWED, reason=verdict.reason)
        try:
            found: Rows = run_read_only(url, reply.sql, max_rows, timeout)
        except QueryTimeoutError as error:
            return replace(answer, refusal=Refusal.DATABASE_TIMEOUT, reason=str(error))
        except QueryError as error:
            reason = told(str(error), [reply.sql, shown.text])
            if answer.repaired:
                return replace(answer, refusal=Refusal.DATABASE_ERROR, reason=reason)
            answer = replace(answer, repaired=True)
            messages += [
                {"role": "assistant", "content": text},
                {"role": "user", "content": _REPAIR.format(reason=reason)},
            ]
            continue
        return replace(answer, columns=found.columns, rows=found.rows, more=found.more)


def prompt(question: str, shown: PrunedSchema, evidence: str | None = None) -> list[Message]:
    """The messages that ask for a query.

    Args:
        question: The question.
        shown: The tables; nothing else of the schema is in the prompt.
        evidence: A hint that belongs to the question.
    """
    hint = f"\n\nHint: {' '.join(evidence.split())}" if evidence else ""
    asked = f"Schema:\n\n{shown.text}\n\nQuestion: {' '.join(question.split())}{hint}"
    return [
        {"role": "system", "content": _SYSTEM.format(dialect=shown.graph.dialect or "SQL")},
        {"role": "user", "content": asked},
    ]


def sql_of_reply(text: str, dialect: str) -> Reply:
    """The query in a model's reply.

    A thought in front (`<think>`) is left out. A reply, or its last fenced block, that begins with INSUFFICIENT says
    that the tables do not suffice. Else the query is the last fenced block that is not blank; without one, the text
    from a SELECT or WITH that begins a line or follows a colon, up to a semicolon, a blank line or the end, the first
    such text that parses; a reply that is nothing but SQL is taken whole, so that the check can say what is wrong.

    Args:
        text: The reply.
        dialect: sqlglot dialect of the SQL.
    """
    text = _THOUGHT.sub("", text).strip()
    blocks = [block.strip() for block in _FENCE.findall(text) if block.strip()]
    for said in (text, *blocks[-1:]):
        if said.upper().startswith(INSUFFICIENT):
            reason = " ".join(said[len(INSUFFICIENT) :].strip(" :.-\n`").split())
            return Reply(None, reason or "the model says that the tables do not suffice")
    if blocks:
        return Reply(_trimmed(blocks[-1]))
    for start in _START.finditer(text):
        # A semicolon may stand inside a string: each end is tried until the text parses.
        for end in _END.finditer(text, start.end()):
            sql = text[start.end() : end.start()].strip()
            if _parses(sql, dialect):
                return Reply(sql)
    bare = re.match(r"(?:SELECT|WITH)\b", text, re.IGNORECASE)
    return Reply(_trimmed(text) if bare else None)


class _Judgement(NamedTuple):
    allowed: bool
    reason: str


def check_tables(sql: str, graph: SchemaGraph) -> Verdict:
    """Whether a text is exactly one query that parses and reads nothing but tables of the graph.

    A function in place of a table is refused, as is a qualified name that is not in full that of a table.

    Args:
        sql: The text.
        graph: What may be read. Columns are not looked at.
    """
    try:
        tree = parsed_query(sql, graph.dialect)
        gold_tables(sql, graph)
    except UnresolvedQueryError as error:
        return _Judgement(False, f"the query is not run ({error})")
    reason = "" if len(sqlglot.parse(sql, read=graph.dialect)) == 1 else "holds more than one statement"
    names = {name.casefold() for name in graph.table_names}
    for table in tree.find_all(exp.Table):
        if not all(isinstance(part, exp.Identifier) for part in table.parts):
            reason = "reads a function in place of a table"
        elif len(table.parts) > 1 and ".".join(part.name for part in table.parts).casefold() not in names:
            reason = f"unknown table {'.'.join(part.name for part in table.parts)}"
    return _Judgement(not reason, f"the query is not run ({reason})" if reason else "")


def _trimmed(sql: str) -> str:
    return sql.strip().rstrip(";").rstrip()


def _parses(sql: str, dialect: str) -> bool:
    try:
        parsed_query(sql, dialect)
    except UnresolvedQueryError:
        return False
    return True
