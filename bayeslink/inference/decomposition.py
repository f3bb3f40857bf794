"""Elimination order of a graph and the layout of its messages, made on the host.

MODEL.md section 5. Tables are eliminated in min-fill order (Koller & Friedman 2009, section 9.4.3): the
next table is one whose elimination joins the fewest pairs of its neighbours. Eliminating table v leaves a
message over its separator, the neighbours it then has; the first of these to be eliminated is its parent.
Messages wait in a small set of slots: tables are visited depth first, deepest need first (Sethi & Ullman
1970), so that few slots are in use at once.
"""

from typing import NamedTuple

import jax
import numpy as np
from jaxtyping import Int

__all__ = ["MAX_WIDTH", "Plan", "pad", "plan", "width_of"]

MAX_WIDTH = 20
"""Widest separator accepted, in tables: 2^20 states in one message."""

IntArray = np.ndarray | jax.Array


class Plan(NamedTuple):
    """One row per eliminated table; padding rows eliminate nothing.

    Attributes:
        table: Table eliminated, or the number of tables for none.
        separator: Tables of its separator, or the number of tables for none.
        edge: Edge to each table of the separator, or -1.
        slot: One-hot slot that gathers the messages to this table.
        parent: One-hot slot that receives its message; the first slot keeps the total.
        project: State of the message for each state of the parent's separator and table.
    """

    table: Int[IntArray, " steps"]
    separator: Int[IntArray, "steps width"]
    edge: Int[IntArray, "steps width"]
    slot: Int[IntArray, "steps slots"]
    parent: Int[IntArray, "steps slots"]
    project: Int[IntArray, "steps states"]


def width_of(plan: Plan) -> int:
    """Number of tables in the widest separator: the treewidth of the order, at least 1."""
    return plan.separator.shape[-1]


def plan(edges: Int[np.ndarray, "edges 2"], num_tables: int, max_width: int = MAX_WIDTH) -> Plan:
    """Elimination order of a graph and the layout of its messages.

    Args:
        edges: Node positions of each edge; no self edges.
        num_tables: Number of nodes.
        max_width: Widest separator accepted, in tables.

    Raises:
        ValueError: If a separator holds more than `max_width` tables, or an edge repeats.
    """
    pairs = np.asarray(edges).reshape(-1, 2).tolist()
    if len({frozenset(pair) for pair in pairs}) < len(pairs):
        repeated = next(pair for i, pair in enumerate(pairs) if set(pair) in [set(other) for other in pairs[:i]])
        raise ValueError(f"edges join tables {repeated[0]} and {repeated[1]} more than once; give each pair one edge")
    order, separators = _min_fill(pairs, num_tables)
    width = max([len(found) for found in separators.values()], default=0)
    if width > max_width:
        raise ValueError(
            f"max_width={max_width}: this graph of {num_tables} tables needs separators of {width}; raise max_width, "
            "remove keys between densely joined tables, or use gibbs"
        )
    sequence = _depth_first(order, separators)
    slots = _slots(sequence, separators)
    return _pack(sequence, separators, slots, {frozenset(pair): i for i, pair in enumerate(pairs)}, max(width, 1))


def _min_fill(pairs: list[list[int]], num_tables: int) -> tuple[list[int], dict[int, list[int]]]:
    """Order of elimination and the separator of each table, its members in that order."""
    joined: list[set[int]] = [set() for _ in range(num_tables)]
    for first, second in pairs:
        joined[first].add(second)
        joined[second].add(first)

    def cost(table: int) -> tuple[int, int, int]:
        around = joined[table]
        missing = sum(len(around - joined[other]) - 1 for other in around)
        return missing, len(around), table

    costs = {table: cost(table) for table in range(num_tables)}
    order: list[int] = []
    separators: dict[int, list[int]] = {}
    while costs:
        table = min(costs, key=costs.__getitem__)
        del costs[table]
        order.append(table)
        around = joined[table]
        separators[table] = list(around)
        for other in around:
            joined[other] |= around
            joined[other] -= {other, table}
        for other in around | {far for near in around for far in joined[near]}:
            costs[other] = cost(other)
    place = {table: index for index, table in enumerate(order)}
    return order, {table: sorted(found, key=place.__getitem__) for table, found in separators.items()}


def _depth_first(order: list[int], separators: dict[int, list[int]]) -> list[int]:
    """Tables so that each comes after those whose message it receives, the deepest need first."""
    children: dict[int, list[int]] = {table: [] for table in order}
    roots: list[int] = []
    need: dict[int, int] = {}
    for table in order:
        (children[separators[table][0]] if separators[table] else roots).append(table)
    for table in order:
        children[table].sort(key=lambda child: -need[child])
        need[table] = max([1, *(need[child] + (rank > 0) for rank, child in enumerate(children[table]))])
    sequence: list[int] = []
    stack = [(root, False) for root in reversed(roots)]
    while stack:
        table, visited = stack.pop()
        if visited:
            sequence.append(table)
        else:
            stack.append((table, True))
            stack.extend((child, False) for child in reversed(children[table]))
    return sequence


def _slots(sequence: list[int], separators: dict[int, list[int]]) -> dict[int, int]:
    """Slot of each table from the first message it receives until it is eliminated; slot 0 is the total's."""
    held: dict[int, int] = {}
    free: list[int] = []
    used = 1
    chosen: dict[int, int] = {}
    for table in sequence:
        if table not in held:
            held[table] = free.pop() if free else used
            used = max(used, held[table] + 1)
        chosen[table] = held.pop(table)
        # The table's slot is read before its message is written, so the parent may take it over.
        free.append(chosen[table])
        if separators[table] and separators[table][0] not in held:
            held[separators[table][0]] = free.pop()
    return chosen


def _pack(
    sequence: list[int],
    separators: dict[int, list[int]],
    slots: dict[int, int],
    edges: dict[frozenset[int], int],
    width: int,
) -> Plan:
    num_tables, num_slots = len(sequence), max(slots.values(), default=0) + 1
    states = np.arange(2 ** (width + 1))
    separator = np.full((num_tables, width), num_tables, dtype=np.int32)
    edge = np.full((num_tables, width), -1, dtype=np.int32)
    slot = np.zeros((num_tables, num_slots), dtype=np.int8)
    parent = np.zeros((num_tables, num_slots), dtype=np.int8)
    project = np.zeros((num_tables, len(states)), dtype=np.int32)
    for row, table in enumerate(sequence):
        around = separators[table]
        separator[row, : len(around)] = around
        edge[row, : len(around)] = [edges.get(frozenset((table, other)), -1) for other in around]
        slot[row, slots[table]] = 1
        parent[row, slots[around[0]] if around else 0] = 1
        if around:
            # States of the parent: its separator in the low bits, itself in the highest.
            bit = {other: place for place, other in enumerate(separators[around[0]])} | {around[0]: width}
            project[row] = sum(((states >> bit[other]) & 1) << place for place, other in enumerate(around))
    return Plan(np.array(sequence, dtype=np.int32).reshape(-1), separator, edge, slot, parent, project)


def pad(wanted: Plan, num_steps: int, width: int, num_slots: int, num_tables: int, padded_tables: int) -> Plan:
    """The same plan with more rows, wider separators and more slots, for batching graphs of different sizes.

    Args:
        wanted: Plan of a graph with `num_tables` tables.
        num_steps: Rows of the padded plan; the added ones eliminate nothing.
        width: Separator width of the padded plan.
        num_slots: Slots of the padded plan.
        num_tables: Tables of the graph.
        padded_tables: Tables of the padded evidence; the entry for "none" moves there.
    """
    old_width = width_of(wanted)
    rows = (0, num_steps - len(wanted.table))
    wider = (0, width - old_width)
    more = (0, num_slots - wanted.slot.shape[1])
    states = np.arange(2 ** (width + 1))
    # The table's own bit moves from old_width to width; bits between belong to no table.
    source = (states & (2**old_width - 1)) | ((states >> width) << old_width)

    def none(tables: np.ndarray) -> np.ndarray:
        return np.where(tables == num_tables, padded_tables, tables)

    slot = np.pad(np.asarray(wanted.slot), (rows, more))
    parent = np.pad(np.asarray(wanted.parent), (rows, more))
    slot[len(wanted.table) :, -1] = 1
    parent[len(wanted.table) :, 0] = 1
    return Plan(
        np.pad(none(np.asarray(wanted.table)), rows, constant_values=padded_tables),
        np.pad(none(np.asarray(wanted.separator)), (rows, wider), constant_values=padded_tables),
        np.pad(np.asarray(wanted.edge), (rows, wider), constant_values=-1),
        slot,
        parent,
        np.pad(np.asarray(wanted.project)[:, source], (rows, (0, 0))),
    )
