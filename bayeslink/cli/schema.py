"""The command `schema`: what was read of a catalogue."""

from typing import Annotated

import typer

from bayeslink.cli.common import policy_of, print_json
from bayeslink.cli.options import InferKeys, Json, PolicyFile, Principal

__all__ = ["schema"]


def schema(
    url: Annotated[str, typer.Argument(help="SQLAlchemy URL, or the path of an SQLite file; opened read-only.")],
    only: Annotated[
        list[str] | None, typer.Option("--schema", help="Database schema to read; may be repeated; '*' for all.")
    ] = None,
    policy: PolicyFile = None,
    principal: Principal = None,
    infer_keys: InferKeys = False,
    as_json: Json = False,
) -> None:
    """What was read of a database's catalogue: counts of tables, keys, edges, families and dropped keys."""
    from bayeslink.grounding.access import visible
    from bayeslink.inference.elimination import plan
    from bayeslink.schema.database import read_database
    from bayeslink.schema.graph import Origin
    from bayeslink.schema.joins import infer_keys as guessed
    from bayeslink.schema.linkable import linkable

    read = read_database(url, schemas=only)
    allowed = policy_of(policy, principal, url, only)
    if allowed is not None:
        read = visible(read, allowed).graph
    graph = linkable(read, infer_keys=infer_keys)
    origins = [key.origin for key in graph.foreign_keys]
    guesses = [(guess.key, guess.score) for guess in guessed(graph)] if infer_keys else []
    document = {
        "database": graph.name,
        "tables": sum(not table.is_view for table in read.tables),
        "views": sum(table.is_view for table in read.tables),
        "foreign_keys": sum(origin is not Origin.VIEW for origin in origins),
        "inferred_keys": sum(origin is Origin.INFERRED for origin in origins),
        "self_keys": sum(key.is_self for key in graph.foreign_keys),
        "edges": len(graph.edges),
        "dropped_keys": len(graph.dropped),
        "frontier_width": int(plan(graph.edge_array, graph.num_tables, max_width=graph.num_tables).edge.shape[1]),
        "families": {table.full_name: list(table.members) for table in graph.tables if table.members},
        "inferred": [
            {
                "table": key.table,
                "columns": list(key.columns),
                "ref_table": key.ref_table,
                "ref_columns": list(key.ref_columns),
                "score": score,
            }
            for key, score in guesses
        ],
        "warnings": [*graph.dropped, *graph.warnings],
    }
    if as_json:
        print_json(document)
        return
    for name, value in document.items():
        if name not in ("warnings", "families", "inferred"):
            print(f"{name.replace('_', ' '):<15} {value}")
    for name, members in document["families"].items():
        print(f"family          {name}: {len(members)} tables, {members[0]} to {members[-1]}")
    for key, score in guesses:
        pair = f"{key.table}({', '.join(key.columns)}) -> {key.ref_table}({', '.join(key.ref_columns)})"
        print(f"guess           {pair}, probability {score:.2f}")
    for sentence in document["warnings"]:
        print(f"warning         {sentence}")
    for edge in graph.edges:
        first, second = graph.table_names[edge.first], graph.table_names[edge.second]
        print(f"edge            {first} - {second} ({len(edge.keys)} key{'s' * (len(edge.keys) > 1)}, {edge.origin})")
