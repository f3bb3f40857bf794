"""A Model Context Protocol server: `link_schema`, `explain`, `ask` and `check_sql` as tools of an agent.

Input that cannot be used is a tool's error with one sentence, as the command line would say; a fault of ours is one
too, and its traceback goes to the server's log alone.
"""

from collections.abc import Callable
from importlib.metadata import version

import anyio.to_thread
from mcp.server import MCPServer
from mcp.server.mcpserver.exceptions import ToolError

from bayeslink.integrations.service import LinkService

__all__ = ["build_server"]

INSTRUCTIONS = (
    "Before writing SQL, call link_schema with the user's question: it returns the tables needed, with probabilities, "
    "and their DDL. If abstain is true, call ask and put its question to the user. Pass every query to check_sql "
    "before it runs."
)


def build_server(service: LinkService) -> MCPServer:
    """The server of one database.

    Args:
        service: What answers.
    """
    server = MCPServer("bayeslink", instructions=INSTRUCTIONS, version=version("bayeslink"))

    async def answered(call: Callable[..., dict], *values: object) -> dict:
        try:
            return await anyio.to_thread.run_sync(call, *values)
        except (ValueError, OSError, ImportError) as error:
            raise ToolError(" ".join(str(error).split())) from None

    @server.tool()
    async def link_schema(question: str, evidence: str | None = None, cover: float = 0.95) -> dict:
        """Tables that a question needs, with probabilities, a set that holds all with probability `cover`, its DDL."""
        return await answered(service.link_schema, question, evidence, cover)

    @server.tool()
    async def explain(question: str, table: str, evidence: str | None = None) -> dict:
        """Why a table is thought needed for a question or not: what each source of evidence and the neighbours add."""
        return await answered(service.explain, question, table, evidence)

    @server.tool()
    async def ask(question: str, evidence: str | None = None, max_risk: float | None = None) -> dict:
        """Whether to ask the user before answering, and the one yes-or-no question that would help most."""
        return await answered(service.ask, question, evidence, max_risk)

    @server.tool()
    async def check_sql(sql: str) -> dict:
        """Whether a query reads only tables and columns that may be read; call before running it."""
        return await answered(service.check_sql, sql)

    return server
