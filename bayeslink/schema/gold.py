"""Gold tables: the physical tables that a gold SQL query reads, found by scope in its syntax tree.

A common table expression hides a physical table of its name only where SQL lets it: in the query
that it is attached to, from the expressions after its own on (in its own too under RECURSIVE).
Where a dialect lets expressions refer to themselves or to later ones unasked (SQLite, Snowflake), a
physical table of that name comes first. Names compare case-insensitively. A query counts as failed,
with its reason, when it does not parse, is no query, reads a table that the schema lacks, or none.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import sqlglot
from sqlglot import exp
from sqlglot.errors import ParseError, SqlglotError
from tqdm import tqdm

from bayeslink.schema.corpus import Corpus
from bayeslink.schema.graph import SchemaGraph

__all__ = ["Resolution", "TableNames", "UnresolvedQueryError", "gold_tables", "group_key", "parsed_query", "resolve"]


class UnresolvedQueryError(ValueError):
    """A query has no gold tables; the message is the reason."""


@dataclass(frozen=True)
class Resolution:
    """Gold tables of a corpus's questions, and every question for which there are none.

    Attributes:
        gold: Positions in `SchemaGraph.tables` by question id; never an empty set.
        failures: (question id, reason) of each question whose query did not resolve.
        num_without_query: Count of questions that have no gold SQL; they are in neither.
    """

    gold: dict[str, frozenset[int]]
    failures: tuple[tuple[str, str], ...]
    num_without_query: int

    @property
    def num_with_query(self) -> int:
        """Count of questions with gold SQL: the denominator that counts failures."""
        return len(self.gold) + len(self.failures)

    @property
    def num_questions(self) -> int:
        """Count of all questions of the corpus."""
        return self.num_with_query + self.num_without_query


def gold_tables(query: str, graph: SchemaGraph, schema: str | None = None) -> frozenset[int]:
    """Positions of the tables that a query reads, one or more.

    A qualified name matches a table's full name or the end of it (`dataset.table` for
    `project.dataset.table`); where the schema's tables are unqualified, the qualifier cannot be
    checked and only the name counts. A BigQuery wildcard (`events_*`) reads every table it matches,
    and a table that stands for a family (`events_*` in the schema) is read through any member.

    Args:
        query: SQL in the graph's dialect.
        graph: The schema.
        schema: Where an unqualified name is looked for first, such as the schema of a view.

    Raises:
        UnresolvedQueryError: If the query does not parse, is not a query, reads a table that is
            not in the schema or could be two of it, or reads no table.
    """
    return _gold(query, graph.dialect, TableNames(graph, schema))


def resolve(corpus: Corpus, progress: bool = False) -> Resolution:
    """Gold tables of every question with gold SQL; failures are listed, never left out.

    Args:
        corpus: The questions and schemas.
        progress: Show a progress bar.
    """
    names: dict[str, TableNames] = {}
    cache: dict[tuple[str, str], frozenset[int] | str] = {}
    gold: dict[str, frozenset[int]] = {}
    failures: list[tuple[str, str]] = []
    num_without_query = 0
    for question in tqdm(corpus.questions, desc=f"gold tables of {corpus.name}", disable=not progress):
        if question.query is None:
            num_without_query += 1
            continue
        graph = corpus.schemas[question.db_id]
        key = (question.db_id, question.query)
        if key not in cache:
            if question.db_id not in names:
                names[question.db_id] = TableNames(graph)
            try:
                cache[key] = _gold(question.query, graph.dialect, names[question.db_id])
            except UnresolvedQueryError as error:
                cache[key] = str(error)
        found = cache[key]
        if isinstance(found, str):
            failures.append((question.id, found))
        else:
            gold[question.id] = found
    return Resolution(gold, tuple(failures), num_without_query)


def group_key(query: str, dialect: str = "sqlite") -> str:
    """Normalised SQL: equal for queries that differ in white space, case, comments or operator spelling.

    Identifiers are case-folded and literals kept. SQLite reads an unqualified "word" as a string
    where no column has that name, so there such words keep their case. A query that does not parse
    is its own text with white space folded.
    """
    try:
        trees = _parse(query, dialect)
    except UnresolvedQueryError:
        return " ".join(query.split())
    for name in (name for tree in trees for name in tree.find_all(exp.Identifier)):
        column = name.parent
        may_be_string = dialect in ("", "sqlite") and isinstance(column, exp.Column) and not column.table
        if not (name.quoted and may_be_string):
            name.set("this", name.name.casefold())
        name.set("quoted", True)
    return "; ".join(tree.sql(dialect=dialect, comments=False) for tree in trees)


class TableNames:
    """Tables of a graph by case-folded full name and by every dotted end of it; a family by its members' too."""

    def __init__(self, graph: SchemaGraph, schema: str | None = None) -> None:
        self.schema = schema
        members = {member.casefold(): index for index, table in enumerate(graph.tables) for member in table.members}
        self.full = members | {name.casefold(): index for index, name in enumerate(graph.table_names)}
        self.ends: dict[str, set[int]] = {}
        for name, index in self.full.items():
            parts = name.split(".")
            for start in range(len(parts)):
                self.ends.setdefault(".".join(parts[start:]), set()).add(index)

    def find(self, parts: list[str]) -> set[int]:
        """Positions of the tables meant by a dotted name: none, one, several of a wildcard.

        Raises:
            UnresolvedQueryError: If the name fits two tables.
        """
        wanted = ".".join(parts).casefold()
        if self.schema is not None and len(parts) == 1 and (own := f"{self.schema}.{wanted}".casefold()) in self.full:
            return {self.full[own]}
        if wanted in self.full:
            return {self.full[wanted]}
        found = self.ends.get(wanted, set())
        if not found and parts[-1].casefold() in self.full:
            return {self.full[parts[-1].casefold()]}
        if len(found) > 1:
            raise UnresolvedQueryError(f"ambiguous table {'.'.join(parts)}")
        if not found and wanted.endswith("*"):
            prefix = wanted[:-1]
            return set().union(*(hits for end, hits in self.ends.items() if end.startswith(prefix)))
        if not found:
            families = (end for end in self.ends if end.endswith("*") and wanted.startswith(end[:-1]))
            return self.ends.get(max(families, key=len, default=""), set())
        return found


def _gold(query: str, dialect: str, names: TableNames) -> frozenset[int]:
    trees = _parse(query, dialect)
    _check_is_query(trees)
    found: set[int] = set()
    for parts, may_be_cte in (read for tree in trees for read in _reads(tree, dialect)):
        hits = names.find(parts)
        if not hits and not may_be_cte:
            raise UnresolvedQueryError(f"unknown table {'.'.join(parts)}")
        found |= hits
    if not found:
        raise UnresolvedQueryError("reads no table")
    return frozenset(found)


def _parse(query: str, dialect: str) -> list[exp.Expression]:
    try:
        trees = sqlglot.parse(query, read=dialect)
    except (SqlglotError, RecursionError) as error:
        # The full text marks the place with terminal colours; the description alone has none.
        detail = error.errors[0]["description"] if isinstance(error, ParseError) and error.errors else str(error)
        reason = " ".join(str(detail).split())[:200]
        raise UnresolvedQueryError(f"does not parse as {dialect or 'SQL'}: {reason}") from error
    kept = (tree for tree in trees if isinstance(tree, exp.Expression))
    return [tree for tree in kept if not isinstance(tree, exp.Semicolon)]  # a comment after the last one


def parsed_query(query: str, dialect: str) -> exp.Expression:
    """Syntax tree of the one query that a text holds; variables set before it are left out.

    Args:
        query: SQL.
        dialect: Its sqlglot dialect.

    Raises:
        UnresolvedQueryError: If the text does not parse or is not one query.
    """
    trees = _parse(query, dialect)
    _check_is_query(trees)
    return _queries(trees)[0]


def _queries(trees: list[exp.Expression]) -> list[exp.Expression]:
    # A BigQuery script may set variables before its one query.
    return [tree for tree in trees if not isinstance(tree, (exp.Declare, exp.Set))]


def _check_is_query(trees: list[exp.Expression]) -> None:
    queries = _queries(trees)
    if len(queries) != 1:
        raise UnresolvedQueryError(f"holds {len(queries)} statements instead of one query")
    writes = queries[0].find(exp.DML, exp.DDL, exp.Into, exp.Command)
    if writes is not None or not isinstance(queries[0], exp.Query):
        raise UnresolvedQueryError(f"is not a query but {(writes or queries[0]).key.upper()}")


def _reads(tree: exp.Expression, dialect: str) -> Iterator[tuple[list[str], bool]]:
    """Dotted names of the tables read, in no set order, each with whether a CTE could be meant instead."""
    # A stack and not recursion: conditions nest as deep as they are long.
    none: frozenset[str] = frozenset()
    stack: list[tuple[exp.Expression, frozenset[str], frozenset[str]]] = [(tree, none, none)]
    while stack:
        node, hidden, possible = stack.pop()
        with_ = next((child for child in node.iter_expressions() if isinstance(child, exp.With)), None)
        if with_ is not None:
            every = possible.union(cte.alias.casefold() for cte in with_.expressions)
            for cte in with_.expressions:
                after = hidden | {cte.alias.casefold()}
                stack.append((cte.this, after if with_.recursive else hidden, every))
                hidden = after
        parts = _table_parts(node, dialect)
        name = parts[0].casefold() if len(parts) == 1 else ""
        if parts and name not in hidden:
            yield parts, name in possible
        stack.extend((child, hidden, possible) for child in node.iter_expressions() if child is not with_)


def _table_parts(node: exp.Expression, dialect: str) -> list[str]:
    """The dotted name of a table that stands here; empty for anything else, table functions included."""
    if isinstance(node, exp.Table):
        named = all(isinstance(part, exp.Identifier) for part in node.parts)
        return [part.name for part in node.parts] if named else []
    # SQLite reads `x IN name` as a table, sqlglot as a column.
    if dialect == "sqlite" and isinstance(node.parent, exp.In) and node.arg_key == "field":
        return [part.name for part in node.parts] if isinstance(node, exp.Column) else []
    return []
