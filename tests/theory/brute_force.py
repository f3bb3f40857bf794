"""Propositions checked by listing: small graphs with numbers on a grid of quarters, and sums in plain Python.

Quarters add and multiply without rounding, so that ties are exact.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from hypothesis import settings
from hypothesis import strategies as st

checked = settings(derandomize=True, deadline=None, max_examples=150)
slowly_checked = settings(derandomize=True, deadline=None, max_examples=8)


class World(NamedTuple):
    """Log-odds, edges, one coupling per edge and a set R, by position; subsets are the bits of an integer."""

    unary: list[float]
    edges: list[tuple[int, int]]
    coupling: list[float]
    relevant: int

    @property
    def arrays(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Log-odds, edges and R as the functions take them."""
        return np.array(self.unary), edge_array(self.edges), members(self.relevant, len(self.unary))

    def energy(self, subset: int) -> float:
        total = sum(a for t, a in enumerate(self.unary) if subset >> t & 1)
        pairs = zip(self.edges, self.coupling, strict=True)
        return total + sum(b for (s, t), b in pairs if subset >> s & 1 and subset >> t & 1)

    def energies(self) -> list[float]:
        return [self.energy(subset) for subset in range(2 ** len(self.unary))]

    def moments(self) -> tuple[float, float, float, float]:
        """E[N], Var N, Cov(N, M) and log Z."""
        energies = self.energies()
        top = max(energies)
        weights = [math.exp(e - top) for e in energies]
        total = math.fsum(weights)
        size = [subset.bit_count() for subset in range(len(weights))]
        pairs = [sum(subset >> s & subset >> t & 1 for s, t in self.edges) for subset in range(len(weights))]

        def mean(values: Sequence[float]) -> float:
            return math.fsum(w * v for w, v in zip(weights, values, strict=True)) / total

        n, m = mean(size), mean(pairs)
        variance = mean([(v - n) ** 2 for v in size])
        covariance = mean([(v - n) * (w - m) for v, w in zip(size, pairs, strict=True)])
        return n, variance, covariance, top + math.log(total)


def members(subset: int, num_tables: int) -> np.ndarray:
    return np.array([subset >> t & 1 for t in range(num_tables)], dtype=bool)


def as_subset(rows: np.ndarray) -> int:
    return sum(1 << t for t, chosen in enumerate(rows.tolist()) if chosen)


def edge_array(edges: Sequence[tuple[int, int]]) -> np.ndarray:
    return np.array(edges, dtype=np.int64).reshape(-1, 2)


def quarters(low: int, high: int) -> st.SearchStrategy[float]:
    return st.integers(4 * low, 4 * high).map(lambda k: k / 4)


@st.composite
def worlds(draw: st.DrawFn, *, lowest: int = 0, max_tables: int = 8, per_edge: bool = True) -> World:
    """Graphs of 1 to `max_tables` tables, isolated ones among them, couplings from `lowest` to 3 nats."""
    num_tables = draw(st.integers(1, max_tables))
    pairs = [(s, t) for t in range(num_tables) for s in range(t)]
    edges = draw(st.lists(st.sampled_from(pairs), unique=True, max_size=12)) if pairs else []
    if per_edge and draw(st.booleans()):
        coupling = draw(st.lists(quarters(lowest, 3), min_size=len(edges), max_size=len(edges)))
    else:
        coupling = [draw(quarters(lowest, 3))] * len(edges)
    unary = draw(st.lists(quarters(-4, 3), min_size=num_tables, max_size=num_tables))
    # Half of the sets R are a mode or one flip from it: random sets are hardly ever stable.
    world = World(unary, edges, coupling, 0)
    mode = max(range(2**num_tables), key=world.energies().__getitem__)
    near = mode ^ draw(st.sampled_from([0, *(1 << t for t in range(num_tables))]))
    relevant = draw(st.one_of(st.just(mode), st.just(near), st.integers(0, 2**num_tables - 1)))
    return world._replace(relevant=relevant)
