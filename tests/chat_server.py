"""A stub of an endpoint that speaks the chat-completions protocol on a loopback port, with scripted replies."""

import json
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

__all__ = ["ChatServer", "Raw", "chat_server"]


@dataclass(frozen=True)
class Raw:
    """What the server sends instead of a completion."""

    body: str = ""
    status: int = 200
    delay_s: float = 0.0
    content_type: str = "application/json"


@dataclass
class ChatServer:
    """A running stub: its address, and what it was sent."""

    url: str
    bodies: list[dict] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)

    def said(self, number: int = -1) -> str:
        """All that one request told the model."""
        return "\n".join(message["content"] for message in self.bodies[number]["messages"])


@contextmanager
def chat_server(reply: Sequence[str | Raw] | Callable[[dict], str | Raw]) -> Iterator[ChatServer]:
    """A server that answers with the replies in turn, the last for ever, or with what a function makes of a body."""
    found = ChatServer("")

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            place = len(found.bodies)
            found.bodies.append(body)
            found.headers.append({name.lower(): value for name, value in self.headers.items()})
            made = reply(body) if callable(reply) else reply[min(place, len(reply) - 1)]
            if not self.path.endswith("/v1/chat/completions"):
                made = Raw("{}", 404)
            if isinstance(made, str):
                choice = {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": made}}
                made = Raw(json.dumps({"id": "1", "object": "chat.completion", "choices": [choice]}))
            time.sleep(made.delay_s)
            data = made.body.encode()
            try:
                self.send_response(made.status)
                self.send_header("Content-Type", made.content_type)
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)
            except (BrokenPipeError, ConnectionResetError):
                pass  # the client has stopped waiting, as a test of its patience wants

        def log_message(self, format: str, *arguments: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    found.url = f"http://127.0.0.1:{server.server_port}/v1"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield found
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
