"""Selection given parameters, by listing all 2^n subsets: the reference for every other solver.

MODEL.md section 5. Same signature as `elimination`: `plan(edges, num_tables)`, then
`log_partition(unary, plan, coupling)`.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, ArrayLike, Float, Int

from bayeslink.model.autologistic import energy

__all__ = ["MAX_TABLES", "StatePlan", "check_size", "energies", "log_partition", "log_probabilities", "marginals", "plan", "states"]

MAX_TABLES = 15
"""Largest number of tables that is enumerated: 2^15 subsets."""


class StatePlan(NamedTuple):
    """All subsets of a graph's tables and its edges."""

    states: Float[Array, "states tables"] | Float[np.ndarray, "states tables"]
    edges: Int[Array, "edges 2"] | Int[np.ndarray, "edges 2"]


def check_size(num_tables: int) -> None:
    """Refuse a schema whose subsets are too many to list.

    Raises:
        ValueError: If there are more than `MAX_TABLES` tables.
    """
    if num_tables > MAX_TABLES:
        raise ValueError(f"num_tables={num_tables} > {MAX_TABLES}: too many subsets to list; use elimination")


def states(num_tables: int) -> Float[np.ndarray, "states tables"]:
    """All subsets of `num_tables` tables; row k holds the binary digits of k, table 0 the lowest.

    Raises:
        ValueError: If there are more than `MAX_TABLES` tables.
    """
    check_size(num_tables)
    return ((np.arange(2**num_tables)[:, None] >> np.arange(num_tables)) & 1).astype(np.float64)


def plan(edges: Int[np.ndarray, "edges 2"], num_tables: int) -> StatePlan:
    """The list of subsets of a graph.

    Raises:
        ValueError: If there are more than `MAX_TABLES` tables.
    """
    return StatePlan(states(num_tables), np.asarray(edges, dtype=np.int64).reshape(-1, 2))


def log_partition(
    unary: Float[Array, "*questions tables"], plan: StatePlan, coupling: Float[ArrayLike, "*edges"]
) -> Float[Array, "*questions"]:
    """Log Z, nats: logsumexp of the energy over the list of subsets.

    Args:
        unary: Log-odds of each table if it had no neighbours.
        plan: From `plan(edges, num_tables)`.
        coupling: Gain in nats when both tables of a pair are selected, one value or one per edge.
    """
    return jax.nn.logsumexp(energies(unary, plan, coupling), axis=-1)


def log_probabilities(
    unary: Float[Array, "*questions tables"], plan: StatePlan, coupling: Float[ArrayLike, "*edges"]
) -> Float[Array, "*questions states"]:
    """Log p(x) of every subset x, nats, all-subsets support."""
    return jax.nn.log_softmax(energies(unary, plan, coupling), axis=-1)


def marginals(
    unary: Float[Array, "*questions tables"], plan: StatePlan, coupling: Float[ArrayLike, "*edges"]
) -> Float[Array, "*questions tables"]:
    """Probability that each table is selected: the gradient of `log_partition` in `unary`."""
    return jax.grad(lambda a: log_partition(a, plan, coupling).sum())(unary)


def energies(
    unary: Float[Array, "*questions tables"], plan: StatePlan, coupling: Float[ArrayLike, "*edges"]
) -> Float[Array, "*questions states"]:
    """Energy of every subset, nats.

    Raises:
        ValueError: If the log-odds are not float64.
    """
    if unary.dtype != jnp.float64:
        raise ValueError(f"unary has dtype {unary.dtype}: inference is float64 only; enable jax_enable_x64")
    subsets = jnp.asarray(plan.states)
    pairs = energy(subsets, jnp.zeros(subsets.shape[1]), jnp.asarray(plan.edges), coupling)
    return unary @ subsets.T + pairs
