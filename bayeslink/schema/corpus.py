"""Corpora in the project's line format: questions and the schemas of the databases they ask about.

A folder holds `questions.jsonl.gz` and `schemas.jsonl.gz` (or both as plain `.jsonl`), one JSON
object per line; `schema_lines` describes those of schemas, and a question's is

    {id, db_id, question, evidence, query, split, difficulty}

with any further fields ignored.
Databases are keyed by `db_id` with case, since Spider 2.0-lite has ids that differ by case alone,
one per dialect; no data set repeats an id over dialects, so a repeated id is an error.
"""

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from bayeslink.schema.graph import SchemaGraph
from bayeslink.schema.lines import Record, read_lines, write_lines
from bayeslink.schema.schema_lines import read_schema, schema_line

__all__ = ["Corpus", "Question", "data_home", "read_corpus", "write_corpus"]


@dataclass(frozen=True)
class Question:
    """One question about one database; `query` is its gold SQL where there is one."""

    id: str
    db_id: str
    text: str
    evidence: str | None = None
    query: str | None = None
    split: str | None = None
    difficulty: str | None = None


@dataclass(frozen=True)
class Corpus:
    """Questions and the schema graphs of their databases, by db_id.

    Raises:
        ValueError: If two questions share an id, or one asks about a database that is not there.
    """

    name: str
    schemas: Mapping[str, SchemaGraph]
    questions: tuple[Question, ...]

    def __post_init__(self) -> None:
        seen: set[str] = set()
        for question in self.questions:
            if question.id in seen:
                raise ValueError(f"corpus {self.name!r}: question id {question.id!r} repeats; make ids unique")
            if question.db_id not in self.schemas:
                raise ValueError(
                    f"corpus {self.name!r}: question {question.id!r} asks about database {question.db_id!r}, "
                    "which has no schema; add the schema or leave the question out"
                )
            seen.add(question.id)

    def select(self, split: str | None = None, db_ids: Iterable[str] | None = None) -> "Corpus":
        """The questions of one split, of some databases, or both, in their order.

        Schemas kept are those of `db_ids`, or without it those that a kept question uses.

        Raises:
            ValueError: If no question has that split, or a database is not in the corpus.
        """
        splits = {question.split for question in self.questions}
        if split is not None and split not in splits:
            known = sorted(map(str, splits))
            raise ValueError(f"split={split!r} is not in corpus {self.name!r}; use one of {known}")
        wanted = None if db_ids is None else set(db_ids)
        if wanted is not None and (missing := wanted - self.schemas.keys()):
            raise ValueError(f"db_ids={sorted(missing)} not in corpus {self.name!r}; use ids of its schemas")
        kept = tuple(
            question
            for question in self.questions
            if (split is None or question.split == split) and (wanted is None or question.db_id in wanted)
        )
        used = {question.db_id for question in kept} if wanted is None else wanted
        schemas = {db_id: graph for db_id, graph in self.schemas.items() if db_id in used}
        return Corpus(self.name, schemas, kept)


def data_home() -> Path:
    """Folder of the benchmark data: `$BAYESLINK_DATA`, else `../shared/data` beside the checkout.

    Raises:
        ValueError: If the folder is not there.
    """
    stated = os.environ.get("BAYESLINK_DATA")
    folder = Path(stated) if stated else Path(__file__).resolve().parents[3] / "shared" / "data"
    if not folder.is_dir():
        raise ValueError(f"benchmark data: {folder} is not a folder; set BAYESLINK_DATA to the data's folder")
    return folder


def read_corpus(folder: str | Path, name: str | None = None, split: str | None = None) -> Corpus:
    """The corpus of a folder in the line format.

    Args:
        folder: Holds the questions and the schemas, each gzipped or plain.
        name: The corpus's name; the folder's by default.
        split: Keep only this split's questions and the schemas that they use.

    Raises:
        ValueError: If a file is missing, truncated or broken, a field is missing or of the wrong
            kind, an id repeats, a question names an unknown database or a schema has no tables.
    """
    folder = Path(folder)
    schemas: dict[str, SchemaGraph] = {}
    for record in read_lines(folder, "schemas"):
        db_id = record.text("db_id")
        if db_id in schemas:
            raise record.error(f"database {db_id!r} appears twice; keep one line per db_id")
        schemas[db_id] = read_schema(record)
    questions: dict[str, Question] = {}
    for record in read_lines(folder, "questions"):
        question = _question(record)
        if question.id in questions:
            raise record.error(f"question id {question.id!r} appears twice; make ids unique")
        if question.db_id not in schemas:
            raise record.error(f"database {question.db_id!r} has no schema line; add it to the schemas file")
        questions[question.id] = question
    corpus = Corpus(name or folder.resolve().name, schemas, tuple(questions.values()))
    return corpus if split is None else corpus.select(split=split)


def write_corpus(corpus: Corpus, folder: str | Path) -> None:
    """Write a corpus in the line format; each file replaces the old one whole, same corpus same bytes.

    Reading the folder gives the corpus back, less what its graphs dropped or warned of.
    """
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    write_lines(folder, "schemas", (schema_line(db_id, graph) for db_id, graph in corpus.schemas.items()))
    write_lines(folder, "questions", (_question_line(question) for question in corpus.questions))


def _question(record: Record) -> Question:
    return Question(
        record.text("id"),
        record.text("db_id"),
        record.text("question"),
        record.maybe_text("evidence"),
        record.maybe_text("query"),
        record.maybe_text("split"),
        record.maybe_text("difficulty"),
    )


def _question_line(question: Question) -> dict[str, object]:
    line: dict[str, object] = {"id": question.id, "db_id": question.db_id, "question": question.text}
    return line | {name: getattr(question, name) for name in ("evidence", "query", "split", "difficulty")}
