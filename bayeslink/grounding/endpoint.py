"""A client for endpoints that speak OpenAI's chat-completions protocol, hosted or local, on the package `openai`.

    model = Endpoint("http://localhost:8000/v1", "qwen3-8b")
    model([{"role": "user", "content": "Hello"}])

What is not given is read from `BAYESLINK_ENDPOINT`, `BAYESLINK_MODEL` and `BAYESLINK_API_KEY`. The variables of the
openai package (`OPENAI_API_KEY` and others) are not read, so that a key for one server is never sent to another. The
key is not shown, logged or stored, and is struck out of what a server says.
"""

import json
import os
from collections.abc import Sequence
from urllib.parse import urlsplit

from bayeslink.evidence.chat import ChatError, ChatFailure, ChatModel, Message, ask
from bayeslink.evidence.embedding import MissingExtraError

__all__ = ["ChatError", "ChatFailure", "ChatModel", "Endpoint", "Message", "ask"]

MAX_REASON = 300
"""Characters kept of what a server says of an error."""

_NO_KEY = "none"
"""Sent where there is no key: the protocol wants one, local servers do not look at it."""


class Endpoint:
    """A model behind an endpoint, as a callable from messages to its reply; calls are answered at temperature 0.

    Attributes:
        base_url: Address of the endpoint, without the path of the protocol.
        model: Name of the model there.
    """

    def __init__(
        self,
        base_url: str | None = None,
        model: str | None = None,
        api_key: str | None = None,
        *,
        timeout: float | int = 60.0,
        max_retries: int = 2,
        temperature: float | None = 0.0,
    ) -> None:
        """A client; nothing is sent yet.

        Args:
            base_url: Such as https://host/v1; `$BAYESLINK_ENDPOINT` by default.
            model: Name of the model; `$BAYESLINK_MODEL` by default.
            api_key: The key; `$BAYESLINK_API_KEY` by default, none where that is not set either.
            timeout: Seconds to wait for a connection and for each part of a reply.
            max_retries: How often a call is repeated when the server is busy, broken or out of reach; a count.
            temperature: Sent with each call; None sends none, for models that refuse the parameter.

        Raises:
            ValueError: If the address or the model is missing, the address is not one of http or https or holds a
                password, or a number is out of range.
            MissingExtraError: Without the extra `endpoint`.
        """
        self.base_url = _checked_url(base_url or os.environ.get("BAYESLINK_ENDPOINT", ""))
        self.model = model or os.environ.get("BAYESLINK_MODEL", "")
        if not self.model:
            raise ValueError("model is not given; name the model, or set BAYESLINK_MODEL")
        if not timeout > 0 or max_retries < 0:
            raise ValueError(f"timeout={timeout:g}, max_retries={max_retries}: use more than 0 seconds and at least 0")
        self._key = api_key or os.environ.get("BAYESLINK_API_KEY", "")
        self._temperature = temperature
        try:
            import openai
        except ImportError as error:
            raise MissingExtraError(f"an endpoint needs {error.name}; run pip install 'bayeslink[endpoint]'") from error
        self._client = openai.OpenAI(
            api_key=self._key or _NO_KEY,
            base_url=self.base_url,
            # Empty rather than None: for None the package reads the environment.
            organization="",
            project="",
            timeout=float(timeout),
            max_retries=max_retries,
        )
        self._left_out = {"OpenAI-Organization": openai.Omit(), "OpenAI-Project": openai.Omit()}

    def __call__(self, messages: Sequence[Message]) -> str:
        """The model's reply.

        Raises:
            ChatError: If the endpoint is out of reach, refuses the key, answers with an error or with something that
                is no chat completion; a sentence without the key.
        """
        import openai

        create = self._client.chat.completions.with_raw_response.create
        sent: list = [dict(message) for message in messages]
        temperature = openai.omit if self._temperature is None else self._temperature
        # From None throughout: the package's errors carry the request, and that the key.
        try:
            found = create(model=self.model, messages=sent, temperature=temperature, extra_headers=self._left_out)
        except openai.APITimeoutError:
            raise self._error(ChatFailure.TIMEOUT, "did not answer in time; raise the timeout") from None
        except openai.APIConnectionError:
            raise self._error(ChatFailure.UNREACHABLE, "cannot be reached; check the address") from None
        except (openai.AuthenticationError, openai.PermissionDeniedError) as error:
            problem = f"refuses the key ({error.status_code}); check BAYESLINK_API_KEY"
            raise self._error(ChatFailure.REFUSED_KEY, problem) from None
        except openai.APIStatusError as error:
            problem = f"answers {error.status_code} for model {self.model!r} ({self._scrubbed(error.message)})"
            raise self._error(ChatFailure.ERROR, problem) from None
        except openai.OpenAIError as error:
            raise self._error(ChatFailure.ERROR, f"cannot be used ({type(error).__name__})") from None
        text = _content(found.text)
        if text is None:
            raise self._error(ChatFailure.MALFORMED, "gave a reply that is no chat completion with a text")
        return text

    def __repr__(self) -> str:
        return f"Endpoint({self.base_url!r}, {self.model!r})"

    def close(self) -> None:
        """Close the connections that are kept open."""
        self._client.close()

    def _error(self, kind: ChatFailure, problem: str) -> ChatError:
        return ChatError(kind, f"endpoint {self.base_url} {problem}")

    def _scrubbed(self, said: str) -> str:
        """What a server says, in one line of bounded length, without the key."""
        line = " ".join(said.split())
        line = line.replace(self._key, "***") if self._key else line
        return line if len(line) <= MAX_REASON else f"{line[:MAX_REASON]}..."


def _checked_url(text: str) -> str:
    if not text:
        raise ValueError("base_url is not given; name the endpoint, such as https://host/v1, or set BAYESLINK_ENDPOINT")
    parts = urlsplit(text)
    if "@" in parts.netloc:
        raise ValueError("base_url holds a password; leave it out and give the key by BAYESLINK_API_KEY")
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.query:
        shown = text.partition("?")[0]
        raise ValueError(f"base_url={shown!r} is no address of an endpoint; write it as https://host/v1")
    return text.rstrip("/")


def _content(text: str) -> str | None:
    """The first choice's text of a chat completion in JSON; None for anything else."""
    try:
        found: object = json.loads(text)
    except ValueError:
        return None
    for step in ("choices", 0, "message", "content"):
        if isinstance(step, str):
            found = found.get(step) if isinstance(found, dict) else None
        else:
            found = found[step] if isinstance(found, list) and found else None
    return found if isinstance(found, str) and found.strip() else None
