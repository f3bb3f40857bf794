"""Eight clients at once on an MCP server over HTTP: errors, latency and memory; as JSON.

    python scripts/load_mcp.py DATABASE [--minutes 5] [--clients 8] [--channels lexical]

Starts `bayeslink serve DATABASE --http` on a free port of the loopback address, warms it up, and lets each client call
the four tools in turn until the time is over. Memory is the server's resident set, at the start,
in the middle, at the end.
"""

import argparse
import json
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import anyio
import numpy as np
from mcp import Client

CALLS = (
    ("link_schema", {"question": "Which customers bought which products? {}"}),
    ("explain", {"question": "Which customers bought which products? {}", "table": None}),
    ("ask", {"question": "Which customers bought which products? {}"}),
    ("check_sql", {"sql": "SELECT 1 -- {}"}),
)


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("database")
    parser.add_argument("--minutes", type=float, default=5.0)
    parser.add_argument("--clients", type=int, default=8)
    parser.add_argument("--channels", default="lexical")
    options = parser.parse_args()
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "bayeslink", "serve", options.database, "--http", "--port", str(port)]
    command += ["--channels", options.channels]
    with tempfile.TemporaryFile() as log, subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=log) as server:
        try:
            wait_for(port, server)
            print(json.dumps(anyio.run(load, f"http://127.0.0.1:{port}/mcp", server.pid, options), indent=1))
        finally:
            server.terminate()


def wait_for(port: int, server: subprocess.Popen) -> None:
    """Until the server listens."""
    while server.poll() is None:
        with socket.socket() as tried:
            if tried.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.1)
    raise SystemExit(f"the server ended with status {server.returncode}")


async def load(url: str, pid: int, options: argparse.Namespace) -> dict:
    """Calls until the time is over."""
    taken: dict[str, list[float]] = {name: [] for name, _ in CALLS}
    errors: list[str] = []
    memory = []
    async with Client(url) as first:
        found = await first.call_tool("link_schema", {"question": "Which customers bought which products?"})
        table = json.loads(found.content[0].text)["tables"][0]["table"]
        for name, values in CALLS:
            await first.call_tool(name, filled(values, table, 0))
    memory.append(resident(pid))
    end = time.monotonic() + 60 * options.minutes

    async def work(number: int) -> None:
        async with Client(url) as client:
            turn = 0
            while time.monotonic() < end:
                name, values = CALLS[turn % len(CALLS)]
                start = time.perf_counter()
                try:
                    found = await client.call_tool(name, filled(values, table, 1000 * number + turn))
                    if found.is_error:
                        errors.append(found.content[0].text)
                except Exception as error:  # Whatever goes wrong is what is looked for.
                    errors.append(repr(error))
                taken[name].append(time.perf_counter() - start)
                turn += 1

    async def watch() -> None:
        await anyio.sleep(30 * options.minutes)
        memory.append(resident(pid))

    async with anyio.create_task_group() as group:
        for number in range(options.clients):
            group.start_soon(work, number)
        group.start_soon(watch)
    memory.append(resident(pid))
    every = np.concatenate([np.array(values) for values in taken.values()]) * 1e3
    return {
        "clients": options.clients,
        "minutes": options.minutes,
        "calls": len(every),
        "errors": len(errors),
        "first_errors": errors[:3],
        "p50_ms": float(np.percentile(every, 50)),
        "p99_ms": float(np.percentile(every, 99)),
        "p99_ms_by_tool": {name: float(np.percentile(values, 99) * 1e3) for name, values in taken.items() if values},
        "resident_mib": memory,
    }


def filled(values: dict, table: str, number: int) -> dict:
    """Arguments of one call, new each time so that nothing is remembered."""
    return {name: table if text is None else text.format(number) for name, text in values.items()}


def resident(pid: int) -> float:
    """Resident set, MiB."""
    fields = Path(f"/proc/{pid}/statm").read_text().split()
    return int(fields[1]) * 4096 / 2**20


if __name__ == "__main__":
    main()
