"""Families of small graphs on which the pattern is looked for: what schemas may look like.

    tree           each table joined to one drawn from those before it (a random recursive tree)
    star           one fact table joined to every other table
    snowflake      a fact table joined to half of the others; each table left is joined to one of that half
    erdos_renyi    as many pairs as tables, drawn evenly (Erdos & Renyi 1959): may have cycles and isolated tables
    scale_free     each table joined to two earlier ones, drawn in proportion to their edges (Barabasi & Albert 1999)
    real           one of the graphs given: foreign keys of real databases

The first table of a star, a snowflake and a tree is its hub; which table that is carries no meaning.
"""

from collections.abc import Iterable, Sequence
from enum import StrEnum

import networkx as nx
import numpy as np
from jaxtyping import Int

from bayeslink.evidence.channel import Evidence
from bayeslink.simulation.graphs import random_sparse_graph

__all__ = ["EdgeList", "Family", "draw_graph", "max_edges", "real_graphs"]

EdgeList = tuple[tuple[int, int], ...]
"""Edges of one graph, pairs of node positions."""

ATTACHED = 2
"""Edges that each further table of a scale-free graph brings."""


class Family(StrEnum):
    """Families of graphs."""

    TREE = "tree"
    STAR = "star"
    SNOWFLAKE = "snowflake"
    ERDOS_RENYI = "erdos_renyi"
    SCALE_FREE = "scale_free"
    REAL = "real"


def max_edges(num_tables: int) -> int:
    """Most edges of a graph of any family, to which all are padded; real graphs with more are left out."""
    return 2 * num_tables


def draw_graph(
    rng: np.random.Generator, family: Family, num_tables: int, graphs: Sequence[EdgeList] = ()
) -> Int[np.ndarray, "edges 2"]:
    """The edges of one graph of a family.

    Args:
        rng: Random numbers.
        family: The family.
        num_tables: Number of tables, at least 3.
        graphs: The real graphs, one of which is drawn; of no use to the other families.

    Raises:
        ValueError: If there are fewer than 3 tables, or no real graph to draw from.
    """
    if num_tables < 3:
        raise ValueError(f"num_tables={num_tables}: the families differ from 3 tables on")
    match family:
        case Family.TREE:
            return random_sparse_graph(rng, num_tables, num_tables - 1)
        case Family.STAR:
            return _edges((0, table) for table in range(1, num_tables))
        case Family.SNOWFLAKE:
            return _snowflake(rng, num_tables)
        case Family.ERDOS_RENYI:
            pairs = np.stack(np.triu_indices(num_tables, 1), axis=1)
            return _edges(pairs[rng.choice(len(pairs), size=num_tables, replace=False)].tolist())
        case Family.SCALE_FREE:
            return _scale_free(rng, num_tables)
    if not graphs:
        raise ValueError(f"graphs is empty: family=real needs graphs of {num_tables} tables; see real_graphs")
    return _edges(graphs[int(rng.integers(len(graphs)))])


def real_graphs(evidences: Iterable[Evidence], num_tables: int) -> tuple[EdgeList, ...]:
    """Distinct graphs, with at least one edge, of the databases that have so many tables.

    Graphs that differ in the names of tables alone count once; those with more than `max_edges` not at all.
    """
    found = {
        tuple(sorted((min(pair), max(pair)) for pair in item.edges.tolist()))
        for item in evidences
        if item.num_tables == num_tables and 0 < len(item.edges) <= max_edges(num_tables)
    }
    kept: list[tuple[EdgeList, nx.Graph]] = []
    for edges in sorted(found):
        graph = nx.Graph(edges)
        graph.add_nodes_from(range(num_tables))
        if not any(nx.is_isomorphic(graph, other) for _, other in kept):
            kept.append((edges, graph))
    return tuple(edges for edges, _ in kept)


def _snowflake(rng: np.random.Generator, num_tables: int) -> Int[np.ndarray, "edges 2"]:
    dimensions = num_tables // 2
    inner = [(0, table) for table in range(1, dimensions + 1)]
    outer = [(int(rng.integers(1, dimensions + 1)), table) for table in range(dimensions + 1, num_tables)]
    return _edges(inner + outer)


def _scale_free(rng: np.random.Generator, num_tables: int) -> Int[np.ndarray, "edges 2"]:
    pairs = [(0, 1)]
    for table in range(2, num_tables):
        degree = np.bincount(np.ravel(pairs), minlength=table).astype(float)
        near = rng.choice(table, size=ATTACHED, replace=False, p=degree / degree.sum())
        pairs += [(int(other), table) for other in near]
    return _edges(pairs)


def _edges(pairs: Iterable[Sequence[int]]) -> Int[np.ndarray, "edges 2"]:
    return np.array(sorted(tuple(pair) for pair in pairs), dtype=np.int64).reshape(-1, 2)
