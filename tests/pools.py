"""Small pools of databases with their brute-force distributions, for the tests of pooled selection."""

import numpy as np
from oracles import mixture, pooled_distribution

from bayeslink.inference.pool_member import PoolMember
from bayeslink.inference.pooled import PooledDistribution

SHAPES: tuple[tuple[int, tuple[tuple[int, int], ...]], ...] = (
    (3, ((0, 1), (1, 2))),
    (1, ()),
    (4, ((0, 1), (1, 2), (2, 3), (0, 3))),
    (2, ()),
)
"""A path, one table, a cycle, two tables apart: ten tables in all."""


def random_pool(
    seed: int,
    shapes: tuple = SHAPES,
    num_draws: int = 3,
    num_questions: int = 2,
    per_edge: bool = False,
    shift: float = -1.0,
    score_draws: bool = False,
) -> tuple[PoolMember, ...]:
    rng = np.random.default_rng([seed, num_draws, num_questions])
    members = []
    for num_tables, edges in shapes:
        coupling = rng.normal(0.5, 1.0, (num_draws, len(edges)) if per_edge else num_draws)
        score = rng.normal(0, 1, (num_draws, num_questions) if score_draws else num_questions)
        unary = rng.normal(shift, 2.0, (num_draws, num_questions, num_tables))
        members.append(PoolMember(unary, np.array(edges, dtype=np.int64).reshape(-1, 2), coupling, score))
    return tuple(members)


def brute_force(members: tuple[PoolMember, ...], question: int) -> dict[tuple[int, tuple[int, ...]], float]:
    """P(d, x) for one question, averaged over draws."""
    parts = []
    for s in range(len(members[0].unary)):
        pool = []
        for member in members:
            coupling = member.coupling[s]
            coupling = coupling.tolist() if coupling.ndim else float(coupling)
            score = float(np.broadcast_to(member.score, member.unary.shape[:2])[s, question])
            pool.append((member.unary[s, question].tolist(), member.edges.tolist(), coupling, score))
        parts.append(pooled_distribution(pool))
    return mixture(parts)


def in_pool(members: tuple[PoolMember, ...], database: int, selection: tuple[int, ...]) -> np.ndarray:
    """One database's selection among the tables of the whole pool."""
    parts = [np.zeros(member.num_tables, dtype=bool) for member in members]
    parts[database] = np.array(selection, dtype=bool)
    return np.concatenate(parts)


def reordered(members: tuple[PoolMember, ...], order: tuple[int, ...]) -> PooledDistribution:
    return PooledDistribution(tuple(members[d] for d in order))
