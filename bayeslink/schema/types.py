"""What a declared column type can hold: numbers, dates and times, or text.

Types are read by their words, so that every dialect's spelling counts, with what follows it in a DDL ("NUMBER(10,2)",
"datetime DEFAULT NULL"). A type that is not known, or not stated, is text: SQLite lets a column hold anything.
"""

import re
from enum import StrEnum

__all__ = ["TypeFamily", "type_family"]


class TypeFamily(StrEnum):
    """What a column can hold."""

    NUMBER = "number"
    DATE = "date"
    TEXT = "text"
    OTHER = "other"


_FAMILIES = (
    (
        TypeFamily.OTHER,
        re.compile(
            r"bool|blob|binary|bytea|\bbytes\b|\bbit\b|image|geo|point|json|xml|variant|interval|uuid|uniqueidentifier"
            r"|\b(?:array|struct|record|object|map|vector)\b"
        ),
    ),
    (TypeFamily.DATE, re.compile(r"date|time|\byear\b")),
    (
        TypeFamily.NUMBER,
        re.compile(
            r"\bu?(?:tiny|small|medium|big|huge)?int(?:eger)?\d*\b|\b(?:small|big)?serial\d*\b"
            r"|\b(?:numeric|bignumeric|number|decimal|dec|real|double|float\d*|money)\b"
        ),
    ),
)
_CLAUSES = re.compile(r"\b(?:default|collate|not null|null|comment|check|references)\b")


def type_family(declared: str) -> TypeFamily:
    """The family of a declared type.

    Args:
        declared: The type as the catalogue states it; may be empty.
    """
    # Neither the values of an enumeration nor what a DDL says after the type's name belong to the name.
    stated = _CLAUSES.split(re.sub(r"'[^']*'", "", declared.casefold()))[0]
    return next((family for family, pattern in _FAMILIES if pattern.search(stated)), TypeFamily.TEXT)
