"""Random sparse graphs on which the cost of exact inference is measured.

Schema graphs are trees with a few extra edges. `random_sparse_graph` is that: a random recursive tree (each
table joined to one drawn from those before it) and extra pairs drawn evenly. Its width grows with its size.
`random_narrow_graph` keeps the width: a random k-tree (Rose 1974; each table joined to all of a k-clique drawn
from those before it) from which edges are left out again, so that its treewidth is at most k.
"""

import numpy as np
from jaxtyping import Int

__all__ = ["random_narrow_graph", "random_sparse_graph"]


def random_sparse_graph(rng: np.random.Generator, num_tables: int, num_edges: int) -> Int[np.ndarray, "edges 2"]:
    """A connected graph: a random recursive tree and `num_edges - num_tables + 1` extra edges.

    Raises:
        ValueError: If the edges are too few to connect the tables, or more than there are pairs.
    """
    if not num_tables - 1 <= num_edges <= num_tables * (num_tables - 1) // 2:
        raise ValueError(
            f"num_edges={num_edges} for {num_tables} tables: a connected graph has from {num_tables - 1} to "
            f"{num_tables * (num_tables - 1) // 2}"
        )
    pairs = {(int(rng.integers(table)), table) for table in range(1, num_tables)}
    while len(pairs) < num_edges:
        first, second = sorted(rng.choice(num_tables, size=2, replace=False).tolist())
        pairs.add((first, second))
    return _edges(pairs)


def random_narrow_graph(
    rng: np.random.Generator, num_tables: int, width: int, kept: float
) -> Int[np.ndarray, "edges 2"]:
    """A connected graph of treewidth at most `width`.

    Args:
        rng: Random numbers.
        num_tables: Number of tables, more than `width`.
        width: The k of the k-tree.
        kept: Probability that an edge beyond the first of each table is kept.

    Raises:
        ValueError: If there are not more than `width` tables, or the width is not positive.
    """
    if not 0 < width < num_tables:
        raise ValueError(f"width={width} for {num_tables} tables: give a width from 1 to {num_tables - 1}")
    pairs = set()
    cliques = [tuple(range(width))]
    for table in range(1, num_tables):
        around = tuple(range(table)) if table < width else cliques[int(rng.integers(len(cliques)))]
        first = int(rng.integers(len(around)))
        chosen = rng.random(len(around)) < kept
        chosen[first] = True
        pairs |= {(near, table) for near, keep in zip(around, chosen.tolist(), strict=True) if keep}
        if table >= width:
            cliques += [(*around[:place], *around[place + 1 :], table) for place in range(width)]
    return _edges(pairs)


def _edges(pairs: set[tuple[int, int]]) -> Int[np.ndarray, "edges 2"]:
    return np.array(sorted(pairs), dtype=np.int64).reshape(-1, 2)
