"""Exact answers about selections given parameters, on graphs of any size, by elimination.

All functions take unaries with tables first and questions last, [tables questions], and the separators' gains
[steps states questions], so that each question may have its own coupling: posterior draws are questions here.
With F as in `elimination`, and separators eliminated later than their tables, a selection is drawn (or the mode
traced back) by visiting the tables in reverse order of elimination:

    logit P(x_v = 1 | x_S) = log F(1, x_S) - log F(0, x_S)
"""

import heapq
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from bayeslink.inference.elimination import (
    Plan,
    eliminated_unary,
    forward_log,
    log_partition,
    log_sum,
    marginals,
    pair_marginals,
    projected,
    separator_gain,
    width_of,
)
from bayeslink.model.autologistic import energy

__all__ = [
    "CLAMPED",
    "FORCED",
    "Traced",
    "best",
    "cover_probability",
    "entropy",
    "mode",
    "prefix_covers",
    "sample",
    "size_distribution",
    "trace",
]

CLAMPED = -1e15
"""Log-odds of a table that is held out of the selection; far below any log-odds in use, yet finite."""

FORCED = 1e6
"""Log-odds of a table that is held in the selection; an energy keeps ten decimals beside it."""


class Traced(NamedTuple):
    """One pass of elimination with what is needed to go back.

    Attributes:
        log_odds: log F(1, x_S) - log F(0, x_S); axes steps, states, questions.
        total: log Z, or the mode's energy for the maximum; axis questions.
    """

    log_odds: Float[Array, "steps states questions"]
    total: Float[Array, " questions"]


def trace(
    unary: Float[Array, "tables questions"],
    plan: Plan,
    gain: Float[Array, "steps states _"],
    maximum: bool = False,
) -> Traced:
    """Elimination that keeps the log-odds of every eliminated table given its separator.

    Args:
        unary: Log-odds of each table if it had no neighbours.
        plan: Elimination order.
        gain: sum over the separator of the couplings times its selections, nats; last axis 1 or questions.
        maximum: Take the maximum over each table in place of the sum.
    """
    width, slots = width_of(plan), plan.slot.shape[-1]
    own, parent = jnp.argmax(plan.slot, axis=-1), jnp.argmax(plan.parent, axis=-1)
    real = (jnp.asarray(plan.table) < unary.shape[0]).astype(jnp.float64)

    def step(held: Array, row: tuple[Array, ...]) -> tuple[Array, Array]:
        a, gains, own_slot, parent_slot, project, counts = row
        factor = jax.lax.dynamic_index_in_dim(held, own_slot, keepdims=False)
        left_out, taken = factor[: 2**width], factor[2**width :] + a[None, :] + gains
        merged = jnp.maximum(left_out, taken) if maximum else log_sum(left_out, taken)
        held = jax.lax.dynamic_update_index_in_dim(held, jnp.zeros_like(factor), own_slot, 0)
        received = jax.lax.dynamic_index_in_dim(held, parent_slot, keepdims=False) + projected(counts * merged, project)
        return jax.lax.dynamic_update_index_in_dim(held, received, parent_slot, 0), taken - left_out

    start = jnp.zeros((slots, 2 ** (width + 1), unary.shape[1]))
    rows = (eliminated_unary(unary, plan), gain, own, parent, jnp.asarray(plan.project), real)
    held, log_odds = jax.lax.scan(step, start, rows)
    return Traced(log_odds, held[0, 0])


def mode(
    unary: Float[Array, "tables questions"], plan: Plan, gain: Float[Array, "steps states _"]
) -> tuple[Bool[Array, "tables questions"], Float[Array, " questions"]]:
    """A selection of greatest energy, and that energy in nats; modes can tie, and one of them is returned."""
    traced = trace(unary, plan, gain, maximum=True)
    return _back(traced, plan, unary.shape[0], jnp.zeros(traced.log_odds.shape[::2])), traced.total


def sample(
    key: PRNGKeyArray,
    unary: Float[Array, "tables questions"],
    plan: Plan,
    gain: Float[Array, "steps states _"],
    copies: int = 1,
) -> Bool[Array, "tables samples"]:
    """Exact draws of the selection for each question, question by question.

    Args:
        key: Random key.
        unary: Log-odds of each table if it had no neighbours.
        plan: Elimination order.
        gain: As in `trace`.
        copies: Draws for each question, all from one elimination.
    """
    traced = trace(unary, plan, gain)
    steps, _, questions = traced.log_odds.shape
    # A selection with log-odds l is taken when a standard logistic number lies below l.
    noise = jax.random.logistic(key, (steps, questions * copies), dtype=jnp.float64)
    return _back(traced, plan, unary.shape[0], noise)


def _back(
    traced: Traced, plan: Plan, num_tables: int, threshold: Float[Array, "steps samples"]
) -> Bool[Array, "tables samples"]:
    """Tables taken where their log-odds given the separator exceed a threshold, last eliminated first."""
    num_questions = threshold.shape[1]
    traced_for = jnp.repeat(jnp.arange(traced.log_odds.shape[2]), num_questions // traced.log_odds.shape[2])
    weights = jnp.asarray(1 << np.arange(width_of(plan)))

    def step(taken: Array, row: tuple[Array, ...]) -> tuple[Array, None]:
        log_odds, cut, table, separator = row
        state = (taken[separator] * weights[:, None]).sum(axis=0)
        odds = log_odds[state, traced_for]
        # The row past the last table takes what padding rows write, and stays 0 for absent separators.
        return taken.at[table].set(jnp.where(table < num_tables, odds > cut, False).astype(taken.dtype)), None

    start = jnp.zeros((num_tables + 1, num_questions), dtype=jnp.int64)
    rows = (traced.log_odds, threshold, jnp.asarray(plan.table), jnp.asarray(plan.separator))
    taken, _ = jax.lax.scan(step, start, rows, reverse=True)
    return taken[:num_tables] > 0


def cover_probability(
    unary: Float[Array, "tables questions"],
    plan: Plan,
    gain: Float[Array, "steps states _"],
    inside: Bool[Array, "tables questions"],
) -> Float[Array, " questions"]:
    """P(selection inside S): Z with the tables outside S held out, over Z."""
    clamped = forward_log(jnp.where(inside, unary, CLAMPED), plan, gain)
    return jnp.exp(clamped - forward_log(unary, plan, gain))


def prefix_covers(
    unary: Float[Array, " tables"], plan: Plan, gain: Float[Array, "steps states 1"], order: Int[Array, " tables"]
) -> Float[Array, " prefixes"]:
    """P(selection inside S) for the first 0, 1, ..., n tables of an order, all in one pass.

    Args:
        unary: Log-odds of each table if it had no neighbours.
        plan: Elimination order.
        gain: As in `trace`, the same for every prefix.
        order: All tables, the first to be included first.
    """
    rank = jnp.argsort(order)
    inside = rank[:, None] < jnp.arange(unary.shape[0] + 1)[None, :]
    return cover_probability(jnp.broadcast_to(unary[:, None], inside.shape), plan, gain, inside)


def entropy(
    unary: Float[Array, "*questions tables"], plan: Plan, coupling: Float[Array, " edges"]
) -> Float[Array, "*questions"]:
    """Entropy of the distribution over selections, nats: log Z - a . E[x] - sum_e beta_e E[x_s x_t]."""
    expected = (unary * marginals(unary, plan, coupling)).sum(axis=-1)
    paired = (coupling * pair_marginals(unary, plan, coupling)).sum(axis=-1)
    return log_partition(unary, plan, coupling) - expected - paired


def best(
    unary: Float[np.ndarray, " tables"],
    plan: Plan,
    edges: Int[np.ndarray, "edges 2"],
    coupling: Float[np.ndarray, " edges"],
    k: int,
) -> tuple[Bool[np.ndarray, "subsets tables"], Float[np.ndarray, " subsets"]]:
    """The k most probable selections and their log-probabilities, nats, most probable first; exact.

    Lawler (1972): the selections but the best are split by the first table at which they leave it; each part's
    best is a mode with some tables held in or out, and the best of the parts comes next. All parts of one
    split are solved in one pass.

    Args:
        unary: Log-odds of each table if it had no neighbours.
        plan: Elimination order of the graph.
        edges: Node positions of each edge.
        coupling: Gain of each edge, nats.
        k: How many; fewer are returned where there are fewer selections.

    Raises:
        ValueError: If `k` is below 1.
    """
    if k < 1:
        raise ValueError(f"k={k}: at least one selection is needed")
    num_tables = len(unary)
    gain = separator_gain(plan, jnp.asarray(coupling))
    log_z = float(log_partition(jnp.asarray(unary), plan, jnp.asarray(coupling)))

    def solve(held: Int[np.ndarray, "parts tables"]) -> list[tuple[float, tuple[bool, ...]]]:
        """Best selection of each part; `held` is 1 in, 0 out, -1 free."""
        columns = np.where(held == 1, FORCED, np.where(held == 0, CLAMPED, unary)).T
        # One compiled program serves every split: parts are padded to the number of tables.
        padded = np.concatenate([columns, np.repeat(unary[:, None], num_tables - columns.shape[1], axis=1)], axis=1)
        chosen = np.asarray(_mode(jnp.asarray(padded), plan, gain)[0]).T[: len(held)]
        scores = energy(jnp.asarray(chosen, dtype=float), jnp.asarray(unary), jnp.asarray(edges), jnp.asarray(coupling))
        return [(float(s), tuple(x.tolist())) for s, x in zip(np.asarray(scores), chosen, strict=True)]

    free = np.full((1, num_tables), -1)
    waiting = [_Waiting((-score, chosen, free[0])) for score, chosen in solve(free)]
    found: list[tuple[float, tuple[bool, ...]]] = []
    while waiting and len(found) < k:
        cost, chosen, held = heapq.heappop(waiting)
        found.append((-cost, chosen))
        open_tables = np.flatnonzero(held == -1)
        parts = np.repeat(held[None, :], len(open_tables), axis=0)
        for row, table in enumerate(open_tables):
            parts[row, open_tables[:row]] = np.array(chosen)[open_tables[:row]]
            parts[row, table] = not chosen[table]
        if len(parts):
            for part, (score, other) in zip(parts, solve(parts), strict=True):
                heapq.heappush(waiting, _Waiting((-score, other, part)))
    selections = np.array([chosen for _, chosen in found], dtype=bool)
    return selections, np.array([score for score, _ in found]) - log_z


class _Waiting(tuple):
    """A part in the queue, ordered by its cost and selection alone."""

    __slots__ = ()

    def __lt__(self, other: tuple) -> bool:
        return self[:2] < other[:2]


_mode = jax.jit(mode)


def size_distribution(
    unary: Float[Array, "tables questions"], plan: Plan, gain: Float[Array, "steps states _"], num_sizes: int
) -> Float[Array, "sizes questions"]:
    """P(N = 0), ..., P(N = num_sizes - 1), by the discrete Fourier transform of E[exp(i omega N)].

    The characteristic function at omega is Z with i omega added to every unary, over Z; messages are complex,
    held as rescaled values. Absolute error about 1e-13.

    Args:
        unary: Log-odds of each table if it had no neighbours.
        plan: Elimination order.
        gain: As in `trace`.
        num_sizes: More than the number of tables; or so many that larger sizes have no probability to speak of, which
            would be added to that of N modulo `num_sizes`.
    """
    log_z = forward_log(unary, plan, gain)

    def scaled(frequency: Array) -> Array:
        value, log_scale = _complex_forward(unary, plan, gain, 2 * jnp.pi * frequency / num_sizes)
        return value * jnp.exp(log_scale - log_z)

    # The other half of the frequencies are these, conjugate.
    values = jax.lax.map(scaled, jnp.arange(num_sizes // 2 + 1, dtype=jnp.float64))
    return jnp.clip(jnp.fft.irfft(jnp.conj(values), n=num_sizes, axis=0), 0.0, 1.0)


def _complex_forward(
    unary: Float[Array, "tables questions"], plan: Plan, gain: Float[Array, "steps states _"], omega: Array
) -> tuple[Array, Array]:
    """Z with i omega added to every unary, as a complex number times exp of a real scale."""
    width, slots = width_of(plan), plan.slot.shape[-1]
    own, parent = jnp.argmax(plan.slot, axis=-1), jnp.argmax(plan.parent, axis=-1)
    real = jnp.asarray(plan.table) < unary.shape[0]
    turn = jnp.exp(1j * omega)

    def step(carry: tuple[Array, Array], row: tuple[Array, ...]) -> tuple[tuple[Array, Array], None]:
        held, scales = carry
        a, gains, own_slot, parent_slot, project, counts = row
        factor = jax.lax.dynamic_index_in_dim(held, own_slot, keepdims=False)
        scale = jax.lax.dynamic_index_in_dim(scales, own_slot, keepdims=False)
        # Held messages are values over exp(scale); the largest exponent of this table's factor is taken out too.
        exponent = a[None, :] + gains
        largest = jnp.maximum(exponent.max(axis=0), 0.0)
        message = factor[: 2**width] * jnp.exp(-largest) + factor[2**width :] * (turn * jnp.exp(exponent - largest))
        size = jnp.maximum(jnp.abs(message).max(axis=0), 1e-290)
        message = jnp.where(counts, message / size, 1.0)
        scale = jnp.where(counts, scale + largest + jnp.log(size), 0.0)
        held = jax.lax.dynamic_update_index_in_dim(held, jnp.ones_like(factor), own_slot, 0)
        scales = jax.lax.dynamic_update_index_in_dim(scales, jnp.zeros_like(scale), own_slot, 0)
        received = jax.lax.dynamic_index_in_dim(held, parent_slot, keepdims=False) * message[project]
        total = jax.lax.dynamic_index_in_dim(scales, parent_slot, keepdims=False) + scale
        held = jax.lax.dynamic_update_index_in_dim(held, received, parent_slot, 0)
        return (held, jax.lax.dynamic_update_index_in_dim(scales, total, parent_slot, 0)), None

    questions = unary.shape[1]
    start = (jnp.ones((slots, 2 ** (width + 1), questions), dtype=jnp.complex128), jnp.zeros((slots, questions)))
    rows = (eliminated_unary(unary, plan), gain, own, parent, jnp.asarray(plan.project), real)
    (held, scales), _ = jax.lax.scan(step, start, rows)
    return held[0, 0], scales[0]
