"""The command `serve`: a Model Context Protocol server of one database."""

from pathlib import Path
from typing import Annotated

import typer

from bayeslink.cli.common import policy_of, say
from bayeslink.cli.options import InferKeys, PolicyFile, Principal

__all__ = ["serve"]


def serve(
    url: Annotated[str, typer.Argument(help="SQLAlchemy URL, or the path of an SQLite file; opened read-only.")],
    http: Annotated[
        bool, typer.Option("--http", help="Serve over HTTP on this machine; standard input by default.")
    ] = False,
    port: Annotated[int, typer.Option(min=1, max=65535, help="Port of --http, on the loopback address.")] = 8765,
    channels: Annotated[str | None, typer.Option(help="Evidence; by default what is installed.")] = None,
    posterior: Annotated[Path | None, typer.Option(help="Posterior file; the shipped one by default.")] = None,
    schema: Annotated[
        list[str] | None, typer.Option(help="Database schema to read; may be repeated; '*' for all.")
    ] = None,
    policy: PolicyFile = None,
    principal: Principal = None,
    infer_keys: InferKeys = False,
) -> None:
    """Tools of an agent over MCP: link_schema, explain, ask, check_sql."""
    from bayeslink.evidence.embedding import MissingExtraError
    from bayeslink.inference import keep_compiled
    from bayeslink.integrations.service import LinkService

    try:
        from bayeslink.integrations.mcp_server import build_server
    except ModuleNotFoundError as error:
        raise MissingExtraError(f"{error.name} is missing: pip install 'bayeslink[mcp]'") from error
    keep_compiled()
    service = LinkService(
        url,
        policy_of(policy, principal, url, schema),
        channels,
        posterior,
        None if schema is None else tuple(schema),
        infer_keys,
    )
    # Refuses what cannot be read before anybody connects.
    service.check_sql("SELECT 1")
    server = build_server(service)
    if http:
        say(f"serving    http://127.0.0.1:{port}/mcp")
        server.run("streamable-http", host="127.0.0.1", port=port)
    else:
        server.run("stdio")
