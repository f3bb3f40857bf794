"""Placebo graphs, on which a gain from structure must vanish (MODEL.md section 8).

rewired      every table keeps its number of neighbours
random       as many edges, between pairs drawn evenly
relabelled   the real graph with its tables permuted

Each is drawn evenly from the simple graphs of its kind that differ from the real one. Rewiring is a Markov chain:
two edges are drawn, their four ends paired anew in one of the three ways, and the result kept where no edge
doubles. Proposals are symmetric, one of the three ways changes nothing, and swaps lead from any graph to every other
of the same degrees (Taylor 1981), so the chain's limit is even. It takes `PROPOSALS_PER_EDGE` proposals for each
edge (Milo et al. 2003) and goes on by as many while it is back at the real graph.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from enum import StrEnum
from functools import cache
from itertools import combinations, product
from math import comb, factorial, prod
from typing import NamedTuple

import networkx as nx
import numpy as np
from jaxtyping import Int

from bayeslink.evidence.channel import Evidence, covariates

__all__ = ["Distinct", "Placebo", "has_placebo", "num_distinct", "placebo", "placebo_sets", "with_edges"]

PROPOSALS_PER_EDGE = 100
MAX_COUNTED = 20
"""Rewirings and relabellings of up to so many tables are counted exactly."""
NUM_SAMPLES = 1000
"""Draws among which distinct graphs are counted beyond that."""

Pair = tuple[int, int]
Pairs = frozenset[Pair]
Edges = Int[np.ndarray, "edges 2"]


class Placebo(StrEnum):
    """Kinds of placebo graphs."""

    REWIRED = "rewired"
    RANDOM = "random"
    RELABELLED = "relabelled"


class Distinct(NamedTuple):
    """How many graphs of a kind differ from the real one.

    Attributes:
        number: Their number; a lower bound where it is not exact.
        exact: Counted, not seen among draws.
    """

    number: int
    exact: bool


def has_placebo(kind: Placebo, edges: Edges, num_tables: int) -> bool:
    """Whether some graph of the kind differs from the real one.

    Raises:
        ValueError: If the graph is not simple or names a table out of range.
    """
    real = _pairs(edges, num_tables)
    if kind is Placebo.REWIRED:
        found = [_paired_anew(*two, way) for two in combinations(real, 2) for way in (1, 2)]
        return any(all(s < t and (s, t) not in real for s, t in new) for new in found)
    return 0 < len(real) < comb(num_tables, 2)


def placebo(rng: np.random.Generator, kind: Placebo, edges: Edges, num_tables: int) -> Edges:
    """A graph of the kind that differs from the real one; every edge and the edges among them sorted.

    Args:
        rng: Random numbers.
        kind: The kind.
        edges: Node positions of each real edge.
        num_tables: Number of tables.

    Raises:
        ValueError: If there is none, or the graph is not simple.
    """
    if not has_placebo(kind, edges, num_tables):
        raise ValueError(f"kind={kind.value}: no other graph than {edges.tolist()} exists; leave the database out")
    real = _pairs(edges, num_tables)
    drawn = real
    while drawn == real:
        if kind is Placebo.REWIRED:
            drawn = _rewired(rng, drawn)
        elif kind is Placebo.RANDOM:
            every = list(combinations(range(num_tables), 2))
            drawn = frozenset(every[place] for place in rng.choice(len(every), len(real), replace=False))
        else:
            name = rng.permutation(num_tables).tolist()
            drawn = frozenset(_pair(name[first], name[second]) for first, second in real)
    return np.array(sorted(drawn), dtype=np.int64).reshape(-1, 2)


def num_distinct(kind: Placebo, edges: Edges, num_tables: int) -> Distinct:
    """Number of graphs of the kind that differ from the real one.

    Counted exactly for random graphs of any size and for schemas of up to `MAX_COUNTED` tables: labelled graphs of
    the same degrees; n! over the number of automorphisms. Beyond, the distinct graphs among `NUM_SAMPLES` draws.

    Raises:
        ValueError: If the graph is not simple or names a table out of range.
    """
    real = _pairs(edges, num_tables)
    if not has_placebo(kind, edges, num_tables):
        return Distinct(0, True)
    if kind is Placebo.RANDOM:
        return Distinct(comb(comb(num_tables, 2), len(real)) - 1, True)
    if num_tables > MAX_COUNTED:
        rng = np.random.default_rng(0)
        return Distinct(len({placebo(rng, kind, edges, num_tables).tobytes() for _ in range(NUM_SAMPLES)}), False)
    if kind is Placebo.REWIRED:
        degrees = Counter(table for pair in real for table in pair)
        return Distinct(_num_graphs(tuple(sorted(degrees.values(), reverse=True))) - 1, True)
    return Distinct(factorial(num_tables) // _num_automorphisms(real, num_tables) - 1, True)


def with_edges(evidence: Evidence, edges: Edges) -> Evidence:
    """The same questions on another graph, its edges all of the first kind."""
    return replace(
        evidence,
        edges=edges,
        edge_types=np.zeros(len(edges), dtype=np.int64),
        covariates=covariates(edges, evidence.num_tables),
    )


def placebo_sets(
    rng: np.random.Generator, kind: Placebo, evidences: Sequence[Evidence], number: int
) -> Iterator[list[Evidence]]:
    """Sets of one placebo for each database, all sets distinct; fewer than asked for where fewer exist.

    Args:
        rng: Random numbers.
        kind: The kind.
        evidences: Databases, each with a placebo of the kind.
        number: Number of sets.

    Raises:
        ValueError: If a database has no placebo of the kind.
    """
    if without := [item.key for item in evidences if not has_placebo(kind, item.edges, item.num_tables)]:
        raise ValueError(f"kind={kind.value}: no placebo of {without} exists; leave these databases out")
    exist = prod(num_distinct(kind, item.edges, item.num_tables).number for item in evidences)
    seen: set[bytes] = set()
    while len(seen) < min(number, exist):
        found = [with_edges(item, placebo(rng, kind, item.edges, item.num_tables)) for item in evidences]
        code = b"".join(item.edges.tobytes() for item in found)
        if code not in seen:
            seen.add(code)
            yield found


def _pair(first: int, second: int) -> Pair:
    return min(first, second), max(first, second)


def _pairs(edges: Edges, num_tables: int) -> Pairs:
    found = frozenset(_pair(first, second) for first, second in edges.tolist())
    if len(found) < len(edges) or any(first == second for first, second in found):
        raise ValueError(f"edges={edges.tolist()} repeat a pair or join a table to itself; give a simple graph")
    if any(not 0 <= table < num_tables for pair in found for table in pair):
        raise ValueError(f"edges={edges.tolist()} name a table outside 0..{num_tables - 1}")
    return found


def _paired_anew(one: Pair, other: Pair, way: int) -> tuple[Pair, Pair]:
    """The ends of two edges, each of the first with one of the second, in one of the two ways."""
    (a, b), (c, d) = one, other if way == 1 else other[::-1]
    return (min(a, c), max(a, c)), (min(b, d), max(b, d))


def _rewired(rng: np.random.Generator, real: Pairs) -> Pairs:
    size = PROPOSALS_PER_EDGE * len(real)
    first = rng.integers(len(real), size=size)
    second = (first + rng.integers(1, len(real), size=size)) % len(real)
    ways = rng.integers(3, size=size)
    order, held = sorted(real), set(real)
    for place, other, way in zip(first.tolist(), second.tolist(), ways.tolist(), strict=True):
        if way == 0:
            continue
        new = _paired_anew(order[place], order[other], way)
        if all(s < t and (s, t) not in held for s, t in new):
            held -= {order[place], order[other]}
            held |= set(new)
            order[place], order[other] = new
    return frozenset(held)


@cache
def _num_graphs(degrees: tuple[int, ...]) -> int:
    """Number of simple graphs on labelled tables with these degrees, sorted from the largest.

    The first table's neighbours are chosen from each class of equal degrees; the rest is a smaller problem.
    """
    if not degrees:
        return 1
    classes = sorted(Counter(degrees[1:]).items())
    total = 0
    for chosen in product(*(range(min(size, degrees[0]) + 1) for _, size in classes)):
        if sum(chosen) == degrees[0]:
            left: list[int] = []
            for taken, (degree, size) in zip(chosen, classes, strict=True):
                left += [degree - 1] * taken + [degree] * (size - taken)
            ways = prod(comb(size, taken) for taken, (_, size) in zip(chosen, classes, strict=True))
            total += ways * _num_graphs(tuple(sorted((degree for degree in left if degree), reverse=True)))
    return total


def _num_automorphisms(pairs: Pairs, num_tables: int) -> int:
    """Product over tables of how many places each can take once the earlier ones are held (orbit and stabiliser)."""

    def held(last: int, before: int) -> nx.Graph:
        graph = nx.Graph(list(pairs))
        graph.add_nodes_from(range(num_tables), label=-1)
        nx.set_node_attributes(graph, {**{table: table for table in range(before)}, last: before}, "label")
        return graph

    return prod(
        sum(
            nx.vf2pp_is_isomorphic(held(table, table), held(image, table), "label")
            for image in range(table, num_tables)
        )
        for table in range(num_tables)
    )
