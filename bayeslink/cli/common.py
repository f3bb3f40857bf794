"""What the commands share: how they read their input, print, and refuse."""

import json
import sys
import tempfile
import unicodedata
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from bayeslink.grounding.policy import Policy

__all__ = ["at_terminal", "check_writable", "member", "one_line", "policy_of", "print_json", "say", "unwritable"]

MAX_SHOWN = 200
"""Characters of a question that are printed; JSON has them all."""

_Member = TypeVar("_Member", bound=StrEnum)


def say(text: str) -> None:
    """Print a note or a warning on standard error."""
    print(text, file=sys.stderr)


def policy_of(path: Path | None, principal: str | None, url: str, schemas: list[str] | None = None) -> "Policy | None":
    """The policy of `--policy` and `--principal`; the database's own privileges without --policy; None without both."""
    if principal is None:
        if path is not None:
            raise ValueError(f"policy={str(path)!r}: name who asks with --principal")
        return None
    from bayeslink.grounding.policy import database_policy, read_policy

    return database_policy(url, principal, schemas) if path is None else read_policy(path, principal)


def print_json(document: dict) -> None:
    """Print the one document of `--json`; a number that is not finite is a fault of ours."""
    try:
        text = json.dumps(document, ensure_ascii=False, allow_nan=False)
    except ValueError as error:
        # A fault of ours, not refused input.
        raise RuntimeError("the document holds a number that is not finite") from error
    print(text)


def one_line(question: str) -> str:
    """The question on one line of a terminal: shortened, its control and format characters escaped."""
    short = question if len(question) <= MAX_SHOWN else f"{question[: MAX_SHOWN - 3]}..."
    hidden = ("Cc", "Cf", "Cs", "Zl", "Zp")
    return "".join(
        char.encode("unicode_escape").decode() if unicodedata.category(char) in hidden else char for char in short
    )


def check_writable(out: Path, argument: str = "out") -> None:
    """Refuses a file that cannot be written, before anything is fitted."""
    if out.is_dir():
        raise ValueError(f"{argument}={str(out)!r} is a folder; give the name of a file")
    try:
        folder = next(parent for parent in out.absolute().parents if parent.exists())
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise unwritable(out, error, argument) from error


def unwritable(out: Path, error: OSError, argument: str = "out") -> ValueError:
    """The refusal of a file that cannot be written."""
    # Not the error's own text, which names a temporary file.
    reason = error.strerror or type(error).__name__
    return ValueError(
        f"{argument}={str(out)!r} cannot be written ({reason}); give a file in a folder that can be written to"
    )


def member(kind: type[_Member], argument: str, name: str) -> _Member:
    """The member of an enumeration that an option names."""
    try:
        return kind(name)
    except ValueError:
        raise ValueError(f"{argument}={name!r}: use one of {', '.join(kind)}") from None


def at_terminal() -> bool:
    """True where stderr is read by a person, who wants to see progress."""
    return sys.stderr.isatty()
