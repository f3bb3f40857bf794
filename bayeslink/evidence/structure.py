"""What the graph itself says: a kind for each edge and three covariates for each database."""

import numpy as np
from jaxtyping import Float, Int

from bayeslink.schema.graph import Origin, SchemaGraph

__all__ = ["COVARIATES", "EDGE_TYPES", "covariates", "edge_types"]

EDGE_TYPES = ("plain", "junction", "inferred")
"""Meaning of the numbers 0, 1, 2 of `edge_types`."""
STATED = (Origin.DECLARED, Origin.USER)
"""Origins of keys that somebody states."""

COVARIATES = ("log_num_tables", "mean_degree", "isolated_share")
"""Names of the entries of `covariates`."""


def covariates(edges: Int[np.ndarray, "edges 2"], num_tables: int) -> Float[np.ndarray, " covariates"]:
    """The `COVARIATES` of a graph: log n; 2 |E| / n, a count; the share of tables without an edge.

    Args:
        edges: Node positions of each edge.
        num_tables: Number of tables n.

    Raises:
        ValueError: If there is no table.
    """
    if num_tables < 1:
        raise ValueError(f"num_tables={num_tables}: a database needs at least one table")
    isolated = num_tables - len(np.unique(edges))
    return np.array([np.log(num_tables), 2 * len(edges) / num_tables, isolated / num_tables])


def edge_types(graph: SchemaGraph) -> Int[np.ndarray, " edges"]:
    """Position in `EDGE_TYPES` of each edge's kind.

    An edge is inferred when no constraint and no user states it: all its keys are guessed, or read off a view's SQL.
    Any other is a junction edge when it touches a junction table, one whose stated keys reference at least two other
    tables, as a linking table of a many-to-many relation does; the rest are plain.
    """
    references: list[set[int]] = [set() for _ in graph.tables]
    for key in graph.foreign_keys:
        if not key.is_self and key.origin in STATED:
            references[key.table].add(key.ref_table)
    junction = [len(found) >= 2 for found in references]
    kinds = [
        "inferred"
        if edge.origin not in STATED
        else "junction"
        if junction[edge.first] or junction[edge.second]
        else "plain"
        for edge in graph.edges
    ]
    return np.array([EDGE_TYPES.index(kind) for kind in kinds], dtype=np.int64)
