"""Execution accuracy: the share of questions whose answer has the rows of the gold query.

Rows are compared as BIRD does, as sets of tuples:

    right        set(rows) = set(gold rows)
    right, strict  the same as multisets, so that a missing DISTINCT counts

The order of rows is not graded, nor are names of columns; the order of columns is, for a row is a tuple. NULL equals
NULL. Numbers are equal when their values are (1, 1.0 and a decimal 1), floats to the last digit and NaN to itself; a
text never equals a number. Every question with gold SQL is in the denominator: a refusal, an error, a model that
cannot be reached and a gold query that fails all count as not right, each by its kind.
"""

import hashlib
import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from tqdm import tqdm

from bayeslink.grounding.answer import Answer
from bayeslink.grounding.read_only import QueryError, run_read_only
from bayeslink.schema.corpus import Corpus, Question

__all__ = ["Executed", "ExecutionAccuracy", "database_files", "execution_accuracy", "same_rows"]

Rows = Sequence[tuple[object, ...]]

_ENDINGS = (".sqlite", ".db", ".sqlite3", ".duckdb")
_ASKED_AGAIN = "model_"
"""Outcomes that begin so are of a call that failed; a later run makes it again."""


@dataclass(frozen=True)
class Executed:
    """How one question went.

    Attributes:
        id: The question.
        outcome: `right`, `wrong`, `too_many_rows` or `gold_failed`; else the kind of the refusal.
        multiset: Whether the rows are right also as a multiset.
        reason: Of everything but right and wrong, in a sentence.
        sql: The model's last query.
        num_tables: Tables that the model was shown; a count.
        num_calls: Calls to the model; a count.
        prompt_tokens: Tokens that the model was sent.
        repaired: Whether there was a second query.
    """

    id: str
    outcome: str
    multiset: bool = False
    reason: str = ""
    sql: str | None = None
    num_tables: int = 0
    num_calls: int = 0
    prompt_tokens: int = 0
    repaired: bool = False


@dataclass(frozen=True)
class ExecutionAccuracy:
    """Every question with gold SQL, and how it went.

    Attributes:
        executed: One per question with gold SQL.
        num_without_query: Questions without gold SQL, which cannot be graded; a count.
    """

    executed: tuple[Executed, ...]
    num_without_query: int = 0

    @property
    def outcomes(self) -> dict[str, int]:
        """Number of questions by outcome, the most frequent first."""
        return dict(Counter(item.outcome for item in self.executed).most_common())

    @property
    def accuracy(self) -> float:
        """Share of right answers among all questions with gold SQL; NaN without any."""
        return self._share([item.outcome == "right" for item in self.executed])

    @property
    def multiset_accuracy(self) -> float:
        """The same with rows as multisets."""
        return self._share([item.multiset for item in self.executed])

    @property
    def accuracy_where_gold_runs(self) -> float:
        """Share of right answers among the questions whose gold query gives rows that can be compared."""
        return self._share([item.outcome == "right" for item in self.executed if item.outcome != "gold_failed"])

    def to_dict(self) -> dict:
        """Counts and shares as JSON values; a share of nothing is null."""
        num = len(self.executed)
        shares = {
            "execution_accuracy": self.accuracy,
            "multiset_accuracy": self.multiset_accuracy,
            "accuracy_where_gold_runs": self.accuracy_where_gold_runs,
            "mean_tables_shown": sum(item.num_tables for item in self.executed) / num if num else float("nan"),
            "mean_prompt_tokens": sum(item.prompt_tokens for item in self.executed) / num if num else float("nan"),
        }
        return {
            "n_questions": num,
            "n_without_query": self.num_without_query,
            **{name: value if value == value else None for name, value in shares.items()},
            "outcomes": self.outcomes,
            "n_repaired": sum(item.repaired for item in self.executed),
            "model_calls": sum(item.num_calls for item in self.executed),
        }

    @staticmethod
    def _share(marks: Sequence[bool]) -> float:
        return sum(marks) / len(marks) if marks else float("nan")


def same_rows(rows: Rows, gold: Rows, multiset: bool = False) -> bool:
    """Whether two results are equal as sets of rows, or as multisets; see the module's rules.

    Args:
        rows: The rows of an answer.
        gold: Those of the gold query.
        multiset: Count how often a row comes.
    """
    found, wanted = (Counter(tuple(_cell(cell) for cell in row) for row in side) for side in (rows, gold))
    return found == wanted if multiset else found.keys() == wanted.keys()


def database_files(corpus: Corpus, folder: Path | str) -> dict[str, str]:
    """Path of each database that a question asks about, as `ID.sqlite` or, as in BIRD and Spider, `ID/ID.sqlite`.

    The endings .db, .sqlite3 and .duckdb count as well; of DuckDB the URL is given.

    Raises:
        ValueError: If a database has no file, or more than one.
    """
    found = {}
    for db_id in dict.fromkeys(question.db_id for question in corpus.questions if question.query is not None):
        names = [Path(folder) / inner / f"{db_id}{ending}" for inner in ("", db_id) for ending in _ENDINGS]
        files = [path for path in names if path.is_file()]
        if len(files) != 1:
            what = f"there are {', '.join(map(str, files))}" if files else f"there is no {names[0]}"
            raise ValueError(f"database {db_id!r}: {what}; one file is needed, ID.sqlite or ID/ID.sqlite")
        found[db_id] = f"duckdb:///{files[0]}" if files[0].suffix == ".duckdb" else str(files[0])
    return found


def execution_accuracy(
    corpus: Corpus,
    databases: Mapping[str, str],
    answer: Callable[[Question], Answer],
    *,
    out: Path | str | None = None,
    settings: Mapping[str, str | int | float | None] | None = None,
    max_rows: int = 100_000,
    timeout: float | int = 30,
    progress: bool = False,
) -> ExecutionAccuracy:
    """Answer every question with gold SQL, and compare its rows with those of the gold query.

    Args:
        corpus: The questions with their gold SQL.
        databases: URL or path of each database, by db_id; see `database_files`.
        answer: The answer to a question, with at most `max_rows` rows.
        out: JSON lines, one per question, written as each is done. A run that finds the file goes on where it stopped,
            and asks again where a call to the model failed.
        settings: What the answers depend on (model, tables shown, ...), kept in the file's first line.
        max_rows: Most rows of a gold query; a count.
        timeout: Seconds of a gold query.
        progress: Show a progress bar.

    Raises:
        ValueError: If a database is missing, or the file is of another corpus or other settings, or broken.
    """
    asked = [question for question in corpus.questions if question.query is not None]
    if missing := sorted({question.db_id for question in asked} - databases.keys()):
        raise ValueError(f"databases: {', '.join(missing)} missing; give each database of the questions")
    head = {"corpus": _digest(asked), "settings": dict(settings or {})}
    path = None if out is None else Path(out)
    done = {} if path is None else _resumed(path, head, {question.id for question in asked})
    with tqdm(asked, desc=f"answers of {corpus.name}", disable=not progress) as bar:
        for question in bar:
            if question.id not in done or done[question.id].outcome.startswith(_ASKED_AGAIN):
                done[question.id] = _graded(question, databases[question.db_id], answer, max_rows, timeout)
                if path is not None:
                    _append(path, asdict(done[question.id]))
            right = sum(item.outcome == "right" for item in done.values())
            bar.set_postfix_str(f"{right} of {len(done)} right", refresh=False)
    return ExecutionAccuracy(tuple(done[question.id] for question in asked), len(corpus.questions) - len(asked))


def _graded(
    question: Question, url: str, answer: Callable[[Question], Answer], max_rows: int, timeout: float | int
) -> Executed:
    try:
        gold = run_read_only(url, question.query or "", max_rows, timeout)
    except QueryError as error:
        return Executed(question.id, "gold_failed", reason=str(error))
    if gold.more:
        return Executed(question.id, "gold_failed", reason=f"the gold query gives more than {max_rows} rows")
    found = answer(question)
    right = found.refusal is None and not found.more and same_rows(found.rows, gold.rows)
    outcome = "right" if right else "too_many_rows" if found.more else "wrong"
    return Executed(
        question.id,
        outcome if found.refusal is None else found.refusal.value,
        right and same_rows(found.rows, gold.rows, multiset=True),
        "the answer has more rows than are read" if found.more else found.reason,
        found.sql,
        len(found.tables),
        found.num_calls,
        found.prompt_tokens,
        found.repaired,
    )


def _resumed(path: Path, head: dict, ids: set[str]) -> dict[str, Executed]:
    """What an earlier run has written; the file is begun where there is none, and a line cut short is taken off."""
    if not path.exists() or not path.stat().st_size:
        path.parent.mkdir(parents=True, exist_ok=True)
        _append(path, head)
        return {}
    data = path.read_bytes()
    whole = data[: data.rfind(b"\n") + 1]
    lines = whole.decode("utf-8").split("\n")[:-1]
    done: dict[str, Executed] = {}
    for number, line in enumerate(lines, start=1):
        try:
            found = json.loads(line)
            if number == 1:
                if found != head:
                    raise ValueError(f"{path} is of other questions or settings ({line}); name another file")
                continue
            item = Executed(**found)
        except (json.JSONDecodeError, TypeError):
            raise ValueError(f"{path}, line {number}: no result of a question; remove the line or the file") from None
        if item.id not in ids:
            raise ValueError(f"{path}, line {number}: question {item.id!r} is not asked; name another file")
        done[item.id] = item
    if len(whole) < len(data):
        with path.open("r+b") as file:
            file.truncate(len(whole))
    if not lines:
        _append(path, head)
    return done


def _append(path: Path, line: dict) -> None:
    with path.open("a", encoding="utf-8") as file:
        file.write(json.dumps(line, ensure_ascii=False) + "\n")


def _digest(questions: Sequence[Question]) -> str:
    texts = [[question.id, question.db_id, question.text, question.evidence, question.query] for question in questions]
    return hashlib.sha256(json.dumps(texts).encode()).hexdigest()[:16]


def _cell(cell: object) -> object:
    """A cell that can stand in a set; NaN becomes a mark, for it does not equal itself."""
    if cell != cell:
        return ("NaN",)
    try:
        hash(cell)
    except TypeError:
        return (type(cell).__name__, str(cell))
    return cell
