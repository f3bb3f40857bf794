"""Seeds joined in the schema graph: shortest paths, a Steiner tree, foreign-key expansion.

seeds            tables with probability above 1/2; where there is none, the single most probable table
shortest paths   the union, over all pairs of seeds, of a shortest path between them (as SchemaGraphSQL)
Steiner tree     the fewest tables that hold the seeds and hang together: exact, by trying added sets in order of size
expansion        every table one edge away; or outward, every table that a seed references (as schemagate by default);
                 or inward, every table that references a seed (as its `expand_inward`)

Seeds in different components are joined inside their own component only. Results depend on nothing but the graph and
the order of its tables: of several shortest paths from the earlier seed to the later the first in lexicographic
order is taken, and of several smallest added sets likewise.
"""

from collections.abc import Callable
from itertools import combinations

import networkx as nx
import numpy as np
from jaxtyping import Bool, Float, Int

__all__ = ["MAX_SETS", "expand", "expand_along", "join_by_shortest_paths", "join_by_steiner_tree", "seeds"]

MAX_SETS = 2**16
"""Largest number of added sets that the exact Steiner search tries for one set of seeds."""

Chosen = Bool[np.ndarray, "questions tables"]
Edges = Int[np.ndarray, "edges 2"]


def seeds(probability: Float[np.ndarray, "questions tables"], cut: float = 0.5) -> Chosen:
    """Tables above the cut; where there is none, the most probable table, of ties the first.

    Raises:
        ValueError: If `cut` is outside [0, 1].
    """
    if not 0 <= cut <= 1:
        raise ValueError(f"cut={cut}: a probability between 0 and 1 is needed")
    chosen = probability > cut
    empty = ~chosen.any(axis=1)
    chosen[empty, probability[empty].argmax(axis=1)] = True
    return chosen


def join_by_shortest_paths(chosen: Chosen, edges: Edges) -> Chosen:
    """The seeds and a shortest path between every two of them that are joined at all.

    Raises:
        ValueError: If an edge names a table that is not there.
    """

    def joined(graph: nx.Graph, ends: list[int]) -> set[int]:
        found = set(ends)
        for place, first in enumerate(ends):
            # Breadth first with sorted neighbours: the paths found are the first in lexicographic order.
            paths = nx.single_source_shortest_path(graph, first)
            found.update(*(paths[second] for second in ends[place + 1 :] if second in paths))
        return found

    return _for_each_set(chosen, edges, joined)


def join_by_steiner_tree(chosen: Chosen, edges: Edges) -> Chosen:
    """The smallest superset of the seeds in which the seeds of each component hang together, exact.

    Raises:
        ValueError: If an edge names a table that is not there, or more than `MAX_SETS` sets would have to be tried.
    """

    def joined(graph: nx.Graph, ends: list[int]) -> set[int]:
        found = set(ends)
        for component in nx.connected_components(graph):
            if len(own := component & set(ends)) > 1:
                found |= own | _fewest_added(graph.subgraph(component), own)
        return found

    return _for_each_set(chosen, edges, joined)


def expand(chosen: Chosen, edges: Edges) -> Chosen:
    """The seeds and every table that shares an edge with one of them.

    Raises:
        ValueError: If an edge names a table that is not there.
    """
    _check_edges(edges, chosen.shape[1])
    found = chosen.copy()
    for first, second in edges:
        found[:, first] |= chosen[:, second]
        found[:, second] |= chosen[:, first]
    return found


def expand_along(chosen: Chosen, keys: Int[np.ndarray, "keys 2"], inward: bool = False) -> Chosen:
    """The seeds and every table that a seed references, or with `inward` every table that references a seed.

    Args:
        chosen: The seeds.
        keys: Positions of the referencing and of the referenced table of each foreign key.
        inward: Follow keys from the referenced to the referencing table.

    Raises:
        ValueError: If a key names a table that is not there.
    """
    _check_edges(keys, chosen.shape[1])
    found = chosen.copy()
    for source, target in keys[:, ::-1] if inward else keys:
        found[:, target] |= chosen[:, source]
    return found


def _fewest_added(graph: nx.Graph, ends: set[int]) -> set[int]:
    """The first smallest set of further tables that connects the ends; a table with one neighbour never helps."""
    others = sorted(table for table in graph if table not in ends and graph.degree(table) > 1)
    tried = 0
    for size in range(len(others) + 1):
        for added in combinations(others, size):
            tried += 1
            if tried > MAX_SETS:
                raise ValueError(
                    f"chosen: {len(ends)} seeds among {len(graph)} joined tables need more than {MAX_SETS} sets; "
                    "use join_by_shortest_paths"
                )
            if nx.is_connected(graph.subgraph(ends.union(added))):
                return set(added)
    raise AssertionError("the whole component is connected")


def _for_each_set(chosen: Chosen, edges: Edges, joined: Callable[[nx.Graph, list[int]], set[int]]) -> Chosen:
    """`joined` for each distinct set of seeds."""
    _check_edges(edges, chosen.shape[1])
    graph = nx.Graph()
    graph.add_nodes_from(range(chosen.shape[1]))
    graph.add_edges_from(sorted((min(pair), max(pair)) for pair in edges.tolist()))
    rows, which = np.unique(chosen, axis=0, return_inverse=True)
    found = np.zeros_like(rows)
    for place, row in enumerate(rows):
        found[place, sorted(joined(graph, np.flatnonzero(row).tolist()))] = True
    return found[which]


def _check_edges(edges: np.ndarray, num_tables: int) -> None:
    if ((edges < 0) | (edges >= num_tables)).any():
        raise ValueError(f"edges name a table outside 0..{num_tables - 1}; give positions of the chosen tables")
