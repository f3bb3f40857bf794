"""Which exact solver answers for a graph: picked by its size and width, and recorded.

MODEL.md section 5: enumeration is the reference and is quickest for a handful of tables; elimination does the rest.
A graph too wide for elimination is refused here; `gibbs` approximates it, and its results say so.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from jaxtyping import Array, ArrayLike, Float, Int

from bayeslink.inference import elimination, enumeration

__all__ = ["METHODS", "Solution", "Solver", "log_partition", "solver"]

METHODS = ("auto", "enumeration", "elimination")
FEW_TABLES = 6
"""Up to so many tables `auto` lists all subsets."""


class Solver(NamedTuple):
    """A solver with its plan of one graph.

    Attributes:
        method: "enumeration" or "elimination".
        plan: The solver's plan.
        log_partition: (unary, plan, coupling) -> log Z.
        marginals: (unary, plan, coupling) -> P(x_t = 1).
        exact: True: both are exact.
    """

    method: str
    plan: tuple
    log_partition: Callable[..., Array]
    marginals: Callable[..., Array]
    exact: bool = True


class Solution(NamedTuple):
    """log Z with the method that found it."""

    value: Float[Array, "*questions"]
    method: str
    exact: bool


def solver(
    edges: Int[np.ndarray, "edges 2"],
    num_tables: int,
    method: str = "auto",
    max_width: int = elimination.MAX_WIDTH,
) -> Solver:
    """The solver for a graph.

    Args:
        edges: Node positions of each edge.
        num_tables: Number of nodes.
        method: One of `METHODS`.
        max_width: Widest separator that elimination accepts, in tables.

    Raises:
        ValueError: If the method is unknown or the graph is too large or too wide for it.
    """
    if method not in METHODS:
        raise ValueError(f"method={method!r}: use one of {', '.join(METHODS)}")
    if method == "auto":
        method = "enumeration" if num_tables <= FEW_TABLES else "elimination"
    if method == "enumeration":
        listed = enumeration.plan(edges, num_tables)
        return Solver(method, listed, enumeration.log_partition, enumeration.marginals)
    order = elimination.plan(edges, num_tables, max_width)
    return Solver(method, order, elimination.log_partition, elimination.marginals)


def log_partition(
    unary: Float[Array, "*questions tables"],
    edges: Int[np.ndarray, "edges 2"],
    coupling: Float[ArrayLike, "*edges"],
    method: str = "auto",
) -> Solution:
    """Log Z of a graph by the solver that suits it, and which one that was.

    Args:
        unary: Log-odds of each table if it had no neighbours.
        edges: Node positions of each edge.
        coupling: Gain in nats when both tables of a pair are selected, one value or one per edge.
        method: One of `METHODS`.

    Raises:
        ValueError: As `solver`.
    """
    chosen = solver(edges, unary.shape[-1], method)
    return Solution(chosen.log_partition(unary, chosen.plan, coupling), chosen.method, chosen.exact)
