"""Evidence of many databases packed into one `Batch`, with elimination plans made on the host."""

from collections.abc import Sequence

import jax
import jax.numpy as jnp
import numpy as np

from bayeslink.evidence.channel import Evidence
from bayeslink.inference import elimination
from bayeslink.model.batch import Batch, Bucket

__all__ = ["BLOCK", "pack"]

BLOCK = 32
"""Questions in a block."""
MERGE_LIMIT = 1.6
"""Buckets are merged while the padded work grows by less than this factor."""


def pack(evidences: Sequence[Evidence]) -> Batch:
    """Standardised evidence with gold as a `Batch` for `elimination.log_partition`.

    Args:
        evidences: One per database, all with the same channels and with gold.

    Raises:
        ValueError: If there is none, channels differ, gold is missing.
    """
    if not evidences:
        raise ValueError("evidences is empty: a fit needs at least one database")
    channels = evidences[0].channels
    for item in evidences:
        if item.channels != channels:
            raise ValueError(f"evidence of {item.key} has channels {item.channels}, not {channels}")
        if item.gold is None:
            raise ValueError(f"evidence of {item.key} has no gold selections: a fit needs them")
    plans = [elimination.plan(item.edges, item.num_tables) for item in evidences]
    buckets = tuple(_bucket(group, evidences, plans) for group in _groups(evidences, plans))
    return Batch(buckets, len(evidences), len(channels))


def _groups(evidences: Sequence[Evidence], plans: Sequence[elimination.Plan]) -> list[list[int]]:
    """Databases whose padded shapes are close, found by merging the cheapest pair of shapes first."""
    blocks = [-(-item.num_questions // BLOCK) for item in evidences]
    shapes: dict[tuple[int, int], list[int]] = {}
    for index, wanted in enumerate(plans):
        if blocks[index]:
            steps, width = wanted.edge.shape
            shapes.setdefault((width, 1 << (steps - 1).bit_length()), []).append(index)
    groups = [(shape, members) for shape, members in sorted(shapes.items())]

    def work(shape: tuple[int, int], members: list[int]) -> int:
        return 2 ** shape[0] * shape[1] * sum(blocks[index] for index in members)

    budget = MERGE_LIMIT * sum(work(*group) for group in groups)
    while len(groups) > 1:
        options = []
        for i in range(len(groups)):
            for j in range(i + 1, len(groups)):
                (a, first), (b, second) = groups[i], groups[j]
                shape = (max(a[0], b[0]), max(a[1], b[1]))
                added = work(shape, first + second) - work(a, first) - work(b, second)
                options.append((added, i, j, shape))
        added, i, j, shape = min(options)
        if sum(work(*group) for group in groups) + added > budget:
            break
        merged = (shape, groups[i][1] + groups[j][1])
        groups = [group for k, group in enumerate(groups) if k not in (i, j)] + [merged]
    return [members for _, members in groups]


def _bucket(members: Sequence[int], evidences: Sequence[Evidence], plans: Sequence[elimination.Plan]) -> Bucket:
    tables = max(evidences[d].num_tables for d in members)
    edges = max(max(len(evidences[d].edges) for d in members), 1)
    steps = max(plans[d].edge.shape[0] for d in members)
    width = max(elimination.width_of(plans[d]) for d in members)
    slots = max(plans[d].slot.shape[1] for d in members)
    rows: list[tuple] = []
    for d in members:
        item = evidences[d]
        gold = np.asarray(item.gold, dtype=np.float64)
        padded = elimination.pad(plans[d], steps, width, slots, item.num_tables, tables)
        pairs = np.pad(item.edges, ((0, edges - len(item.edges)), (0, 0)))
        is_edge = (np.arange(edges) < len(item.edges)).astype(np.float64)
        for start in range(0, item.num_questions, BLOCK):
            chosen = np.arange(start, min(start + BLOCK, item.num_questions))
            missing = BLOCK - len(chosen)
            absent = tables - item.num_tables
            rows.append(
                (
                    np.pad(item.values[chosen], ((0, missing), (0, absent), (0, 0))),
                    np.pad(gold[chosen], ((0, missing), (0, absent))),
                    np.pad(np.ones(len(chosen)), (0, missing)),
                    np.pad(chosen, (0, missing), constant_values=-1),
                    np.int64(d),
                    pairs,
                    is_edge,
                    padded,
                )
            )
    return Bucket(*jax.tree.map(lambda *leaves: jnp.asarray(np.stack(leaves)), *rows))
