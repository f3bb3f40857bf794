"""What a language model is to this package: a callable from messages to a text, and a count of how its calls went.

Nothing here or in what builds on it calls a model that the user has not given. `grounding.endpoint` has a client for
endpoints; any other callable may stand in its place. A call that fails is never an empty answer: `ask` raises, and who
goes on without the answer counts the failure.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Literal, Protocol, TypedDict, runtime_checkable

__all__ = ["ChatError", "ChatFailure", "ChatModel", "Counts", "Message", "Tally", "ask"]


class Message(TypedDict):
    """One message of a conversation, as the chat-completions protocol writes it."""

    role: Literal["system", "user", "assistant"]
    content: str


@runtime_checkable
class ChatModel(Protocol):
    """Anything that answers a conversation with a text."""

    def __call__(self, messages: Sequence[Message]) -> str:
        """The reply to the last message; raises whatever it likes where there is none."""
        ...


class ChatFailure(StrEnum):
    """Why a call gave no text."""

    UNREACHABLE = "unreachable"
    TIMEOUT = "timeout"
    REFUSED_KEY = "refused_key"
    ERROR = "error"
    MALFORMED = "malformed"


class ChatError(ValueError):
    """A call to a model failed; the message is one sentence without secrets.

    Attributes:
        kind: Why.
    """

    def __init__(self, kind: ChatFailure, message: str) -> None:
        super().__init__(message)
        self.kind = kind


@dataclass(frozen=True)
class Counts:
    """How the calls to a model went: `asked` = `answered` + `num_failed`.

    Attributes:
        asked: Calls made.
        answered: Calls whose reply was used.
        failures: Calls whose reply was not, by reason.
    """

    asked: int = 0
    answered: int = 0
    failures: Mapping[str, int] = field(default_factory=dict)

    @property
    def num_failed(self) -> int:
        """Calls without a usable reply; a count."""
        return sum(self.failures.values())

    def __str__(self) -> str:
        reasons = "; ".join(f"{number} {reason}" for reason, number in self.failures.items())
        return f"{self.asked} asked, {self.answered} answered, {self.num_failed} failed{reasons and f' ({reasons})'}"


class Tally:
    """Counts while they grow."""

    def __init__(self) -> None:
        self._answered = 0
        self._failures: Counter[str] = Counter()
        self._failed_before = 0

    def begin_batch(self) -> None:
        """Count the failures from here on also by themselves."""
        self._failed_before = self._failures.total()

    @property
    def num_failed_in_batch(self) -> int:
        """Failures since the last `begin_batch`; a count."""
        return self._failures.total() - self._failed_before

    def answer(self) -> None:
        """Count a call whose reply was used."""
        self._answered += 1

    def fail(self, reason: str) -> None:
        """Count a call whose reply was not, with the reason."""
        self._failures[reason] += 1

    @property
    def counts(self) -> Counts:
        """The counts so far."""
        return Counts(self._answered + self._failures.total(), self._answered, dict(self._failures))


def ask(model: ChatModel, messages: Sequence[Message]) -> str:
    """The model's reply, a text that is not blank.

    Raises:
        ChatError: If the call fails in any way or the reply is no text. Of an error of a callable that is not ours only
            the kind is told, since its text may hold a key.
    """
    try:
        found: object = model(messages)
    except ChatError:
        raise
    except Exception as error:  # a callable of the user may raise anything; all of it is reported
        raise ChatError(ChatFailure.ERROR, f"the call to the model failed ({type(error).__name__})") from error
    if not isinstance(found, str) or not found.strip():
        kind = "a blank text" if isinstance(found, str) else type(found).__name__
        raise ChatError(ChatFailure.MALFORMED, f"the model gave {kind} in place of a text")
    return found
