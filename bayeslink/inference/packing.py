"""Evidence of many databases packed into one `Batch`, with the solvers' plans made on the host.

Small schemas are listed subset by subset: all cumulants then come from one list (`expansion`). Larger ones
are eliminated. `log_partition` answers for either, by the kind of plan.
"""

from collections.abc import Mapping, Sequence

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, ArrayLike, Float

from bayeslink.evidence.channel import Evidence
from bayeslink.evidence.structure import EDGE_TYPES
from bayeslink.inference import elimination, enumeration
from bayeslink.model.batch import Batch, Bucket, DatabaseRows

__all__ = ["BLOCK", "MAX_LISTED", "log_partition", "pack"]

MAX_LISTED = 10
"""Schemas of up to so many tables are listed subset by subset in a fit."""
SMALLEST = 4
"""Listed schemas of up to so many tables share a bucket."""

BLOCK = 32
"""Questions in a block."""
MERGE_LIMIT = 1.6
"""Buckets are merged while the padded work grows by less than this factor."""


def log_partition(
    unary: Float[Array, "*questions tables"],
    plan: enumeration.StatePlan | elimination.Plan,
    coupling: Float[ArrayLike, "*edges"],
) -> Float[Array, "*questions"]:
    """Log Z, nats, by the solver that made the plan."""
    if isinstance(plan, enumeration.StatePlan):
        return enumeration.log_partition(unary, plan, coupling)
    return elimination.log_partition(unary, plan, coupling)


def pack(evidences: Sequence[Evidence], max_listed: int = MAX_LISTED) -> Batch:
    """Standardised evidence with gold as a `Batch`.

    Args:
        evidences: One per database, all with the same channels and with gold.
        max_listed: Schemas of up to so many tables are listed, larger ones eliminated; 0 eliminates all.

    Raises:
        ValueError: If there is none, channels differ, gold is missing.
    """
    if not evidences:
        raise ValueError("evidences is empty: a fit needs at least one database")
    channels, num_contexts = evidences[0].channels, evidences[0].num_contexts
    for item in evidences:
        if item.channels != channels:
            raise ValueError(f"evidence of {item.key} has channels {item.channels}, not {channels}")
        if item.num_contexts != num_contexts:
            raise ValueError(f"evidence of {item.key} has {item.num_contexts} covariates, not {num_contexts}")
        if item.gold is None:
            raise ValueError(f"evidence of {item.key} has no gold selections: a fit needs them")
    plans = {
        d: elimination.plan(item.edges, item.num_tables)
        for d, item in enumerate(evidences)
        if item.num_tables > max_listed
    }
    buckets = [_bucket(group, evidences, plans) for group in _groups(evidences, plans)]
    buckets += [_bucket(group, evidences, {}) for group in _sizes(evidences, max_listed)]
    return Batch(
        tuple(buckets),
        DatabaseRows(jnp.asarray(np.stack([item.covariates for item in evidences]))),
        len(evidences),
        len(channels) - num_contexts,
        num_contexts,
        len(EDGE_TYPES),
    )


def _sizes(evidences: Sequence[Evidence], max_listed: int) -> list[list[int]]:
    """Databases that are listed, by number of tables in steps of two: padding by one table costs little."""
    sizes: dict[int, list[int]] = {}
    for d, item in enumerate(evidences):
        if item.num_tables <= max_listed and item.num_questions:
            sizes.setdefault(max(item.num_tables + item.num_tables % 2, SMALLEST), []).append(d)
    return [sizes[size] for size in sorted(sizes)]


def _groups(evidences: Sequence[Evidence], plans: Mapping[int, elimination.Plan]) -> list[list[int]]:
    """Databases whose padded shapes are close, found by merging the cheapest pair of shapes first."""
    blocks = [-(-item.num_questions // BLOCK) for item in evidences]
    shapes: dict[tuple[int, int], list[int]] = {}
    for index, wanted in plans.items():
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


def _bucket(members: Sequence[int], evidences: Sequence[Evidence], plans: Mapping[int, elimination.Plan]) -> Bucket:
    """One bucket of databases with elimination plans, or of listed ones where there are none."""
    tables = max(evidences[d].num_tables for d in members)
    edges = max(max(len(evidences[d].edges) for d in members), 1)
    if plans:
        steps = max(plans[d].edge.shape[0] for d in members)
        width = max(elimination.width_of(plans[d]) for d in members)
        slots = max(plans[d].slot.shape[1] for d in members)
    rows: list[tuple] = []
    for d in members:
        item = evidences[d]
        gold = np.asarray(item.gold, dtype=np.float64)
        pairs = np.pad(item.edges, ((0, edges - len(item.edges)), (0, 0)))
        if plans:
            solved: tuple = elimination.pad(plans[d], steps, width, slots, item.num_tables, tables)
        else:
            solved = enumeration.plan(pairs, tables)
        is_edge = (np.arange(edges) < len(item.edges)).astype(np.float64)
        is_table = (np.arange(tables) < item.num_tables).astype(np.float64)
        kinds = np.pad(item.edge_types, (0, edges - len(item.edges)))
        split = len(item.channels) - item.num_contexts
        absent = tables - item.num_tables
        for start in range(0, item.num_questions, BLOCK):
            chosen = np.arange(start, min(start + BLOCK, item.num_questions))
            missing = BLOCK - len(chosen)
            rows.append(
                (
                    np.pad(item.values[chosen, :, :split], ((0, missing), (0, absent), (0, 0))),
                    np.pad(item.values[chosen, 0, split:], ((0, missing), (0, 0))),
                    np.pad(gold[chosen], ((0, missing), (0, absent))),
                    np.pad(np.ones(len(chosen)), (0, missing)),
                    np.pad(chosen, (0, missing), constant_values=-1),
                    np.int64(d),
                    pairs,
                    is_edge,
                    kinds,
                    is_table,
                    solved,
                )
            )
    return Bucket(*jax.tree.map(lambda *leaves: jnp.asarray(np.stack(leaves)), *rows))
