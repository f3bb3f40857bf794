"""Milliseconds that each list of channels takes for one question."""

import time

from bayeslink.evidence.channel import compute_evidence
from bayeslink.evidence.kinds import default_channels
from bayeslink.schema.graph import Column, RawKey, Table, build_graph

REPEATS = 30
"""Questions that are timed, one after another."""


def timings(kinds: list[str]) -> dict[str, float]:
    """Milliseconds for one question on a schema of nine tables, asked one after another, by list of channels."""
    columns = tuple(Column(name, "text") for name in ("id", "parent id", "name", "city", "opening date", "price"))
    tables = [
        Table(name, columns) for name in ("shop", "item", "sale", "buyer", "seller", "order", "bill", "tax", "day")
    ]
    keys = [RawKey(table.name, ("parent id",), "shop", ("id",)) for table in tables[1:]]
    graph = build_graph("market", tables, keys)
    found = {}
    for kind in kinds:
        channels = default_channels(kind)
        compute_evidence(graph, ["Which shops opened first?"], channels)
        start = time.perf_counter()
        for number in range(REPEATS):
            compute_evidence(graph, [f"Which buyers in the city paid more than {number}?"], channels)
        found[f"{kind}_ms_per_question"] = (time.perf_counter() - start) / REPEATS * 1000
    return found | {"ms_per_question": found[f"{kinds[-1]}_ms_per_question"]}
