"""The text of a query: one statement, read by the parser as the database will read it."""

import re

import sqlglot
from sqlglot import exp
from sqlglot.errors import ParseError, SqlglotError

from bayeslink.grounding.sql_scope import RefusedQueryError

__all__ = ["parsed"]

_SUSPECT = re.compile(
    r"/\*[!M+]"  # MySQL runs what stands in such a comment; the others are hints
    r"|/\*(?:(?!\*/).)*/\*"  # whether comments nest depends on the database
    r"|[^\S \t\n\r]|\x00",  # whether it is a space, or the end, too
    re.DOTALL,
)


def parsed(sql: str, dialect: str) -> exp.Expression:
    """The one statement of a text.

    Raises:
        RefusedQueryError: If there is none or more than one, or it cannot be parsed with certainty.
    """
    if reason := _suspect(sql, dialect):
        raise RefusedQueryError(f"the query {reason}")
    try:
        found = sqlglot.parse(sql, read=dialect)
    except (SqlglotError, ValueError) as error:
        # The full text marks the place with terminal colours; the description alone has none.
        detail = error.errors[0]["description"] if isinstance(error, ParseError) and error.errors else str(error)
        reason = " ".join(str(detail).split())[:120]
        raise RefusedQueryError(f"the query does not parse as {dialect or 'SQL'}: {reason}") from error
    kept = [tree for tree in found if isinstance(tree, exp.Expression)]
    trees = [tree for tree in kept if not isinstance(tree, exp.Semicolon)]  # a comment after the last one
    if len(trees) != 1:
        raise RefusedQueryError(f"the text holds {len(trees)} statements; write one query")
    return trees[0]


def _suspect(sql: str, dialect: str) -> str | None:
    """What in a text a database may read otherwise than the parser does, or None."""
    if _SUSPECT.search(sql):
        return "has a comment or a space that databases read differently"
    if dialect in ("mysql", "") and re.search(r"--(?!\s|$)", sql):
        return "has '--' without a space, which MySQL does not read as a comment"
    return None
