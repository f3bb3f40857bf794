"""Selection given parameters, approximately: blocked Gibbs sampling for graphs too wide to eliminate.

MODEL.md section 5; Hamze & de Freitas 2004. A block B is a random induced forest, drawn exactly given the
rest by eliminating its tables from the leaves to the roots, then drawing them from the roots to the leaves:

    field_v = a_v + sum_{u not in B} beta_uv x_u + sum_{children c} [softplus(field_c + beta_cv) - softplus(field_c)]
    logit P(x_v = 1 | parent p, rest) = field_v + beta_vp x_p

One sweep draws every block, hence each table at least once; any sign of the coupling will do. The marginals
average P(x_t = 1 | rest) over the draws, which varies less than x_t (Gelfand & Smith 1990) and is exact for a
table without neighbours. The diagnostics are those of that probability: split R-hat, not rank-normalised since
probabilities have no heavy tails, and the effective sample size over all chains (Vehtari et al. 2021, section 3).
"""

from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, ArrayLike, Bool, Float, Int, PRNGKeyArray

__all__ = ["LARGEST_R_HAT", "SMALLEST_ESS", "ForestPlan", "GibbsDraws", "plan", "sample"]

LARGEST_R_HAT = 1.01
"""Split R-hat of a converged table is below this."""

SMALLEST_ESS = 400.0
"""Effective sample size of a converged table is above this, over all chains."""

_NEGLIGIBLE = 1e-12
"""Spread of a probability, as a standard deviation, that counts as none."""


class ForestPlan(NamedTuple):
    """Blocks of a graph: induced forests that together hold every table.

    Attributes:
        table: Table of each row, children before parents; `num_tables` in padding rows.
        parent: Its parent in the forest; `num_tables` for a root.
        edges: Node positions of each edge.
        num_tables: Number of nodes.
    """

    table: Int[np.ndarray, "blocks steps"]
    parent: Int[np.ndarray, "blocks steps"]
    edges: Int[np.ndarray, "edges 2"]
    num_tables: int


@dataclass(frozen=True)
class GibbsDraws:
    """Selections drawn by several chains, and what they say about each table.

    Attributes:
        draws: Selections, warm-up left out.
        marginals: Probability that each table is selected.
        standard_error: Monte Carlo standard error of `marginals`; meaningless where not converged.
        r_hat: Split R-hat; 1 where the probability is the same in every draw.
        effective_sample_size: Number of independent draws that would be as good, over all chains.
        exact: False: an approximation, to be reported as one.
    """

    draws: Bool[np.ndarray, "chains draws *questions tables"]
    marginals: Float[np.ndarray, "*questions tables"]
    standard_error: Float[np.ndarray, "*questions tables"]
    r_hat: Float[np.ndarray, "*questions tables"]
    effective_sample_size: Float[np.ndarray, "*questions tables"]
    exact: bool = False

    @property
    def worst_r_hat(self) -> Float[np.ndarray, "*questions"]:
        """Largest R-hat of any table."""
        return np.asarray(self.r_hat.max(axis=-1))

    @property
    def converged_questions(self) -> Bool[np.ndarray, "*questions"]:
        """Whether every table's R-hat is below `LARGEST_R_HAT` and its sample size above `SMALLEST_ESS`."""
        long_enough = self.effective_sample_size.min(axis=-1) > SMALLEST_ESS
        return np.asarray((self.worst_r_hat < LARGEST_R_HAT) & long_enough)

    @property
    def converged(self) -> bool:
        """Whether every question's chains agree and are long enough."""
        return bool(self.converged_questions.all())


def plan(edges: Int[np.ndarray, "edges 2"], num_tables: int, seed: int = 0) -> ForestPlan:
    """Random induced forests that together hold every table; dense graphs have blocks of two tables.

    Args:
        edges: Node positions of each edge.
        num_tables: Number of nodes.
        seed: Seed of the choice of forests; any choice is valid.

    Raises:
        ValueError: If an edge does not join two different tables of the graph.
    """
    pairs = np.asarray(edges, dtype=np.int64).reshape(-1, 2)
    bad = (pairs[:, 0] == pairs[:, 1]) | (pairs < 0).any(axis=1) | (pairs >= num_tables).any(axis=1)
    if bad.any():
        raise ValueError(f"edges hold {pairs[bad][0].tolist()}: give pairs of different tables in 0..{num_tables - 1}")
    joined: list[set[int]] = [set() for _ in range(num_tables)]
    for first, second in pairs.tolist():
        joined[first].add(second)
        joined[second].add(first)
    rng = np.random.default_rng(seed)
    left, blocks = set(range(num_tables)), []
    while left:
        # Tables without a block come first; the others make the forest as large as it can be.
        forest = _forest(joined, sorted(rng.permutation(num_tables).tolist(), key=lambda table: table not in left))
        left -= {table for table, _ in forest}
        blocks.append(forest)
    table = np.full((len(blocks), max(map(len, blocks), default=0)), num_tables, dtype=np.int64)
    parent = table.copy()
    for block, forest in enumerate(blocks):
        table[block, : len(forest)], parent[block, : len(forest)] = np.array(forest).T
    return ForestPlan(table, parent, pairs, num_tables)


def _forest(joined: list[set[int]], order: list[int]) -> list[tuple[int, int]]:
    """Tables and parents of a maximal induced forest, taken in the given order; children before parents."""
    tree: dict[int, int] = {}
    for table in order:
        around = [tree[other] for other in joined[table] if other in tree]
        if len(set(around)) == len(around):
            tree = {other: table if root in around else root for other, root in tree.items()} | {table: table}
    rows: list[tuple[int, int]] = []
    for root in sorted(set(tree.values())):
        waiting = [(root, len(joined))]
        for table, parent in waiting:
            waiting.extend((other, table) for other in sorted(joined[table]) if other in tree and other != parent)
        rows.extend(waiting)
    return rows[::-1]


def sample(
    key: PRNGKeyArray,
    unary: Float[Array, "*questions tables"],
    plan: ForestPlan,
    coupling: Float[ArrayLike, "*edges"],
    *,
    num_draws: int = 1000,
    num_warmup: int = 500,
    num_chains: int = 4,
) -> GibbsDraws:
    """Selections drawn by chains that start empty, full, and (the rest) as if there were no coupling.

    Args:
        key: The same key gives the same draws.
        unary: Log-odds of each table if it had no neighbours.
        plan: From `plan(edges, num_tables)`.
        coupling: Gain in nats when both tables of a pair are selected, one value or one per edge, of any sign.
        num_draws: Sweeps kept in each chain, an even number.
        num_warmup: Sweeps left out at the start of each chain.
        num_chains: Number of chains, at least 3.

    Raises:
        ValueError: If an argument is out of range, or `unary` is not float64.
    """
    if unary.dtype != jnp.float64:
        raise ValueError(f"unary has dtype {unary.dtype}: inference is float64 only; enable jax_enable_x64")
    if unary.shape[-1] != plan.num_tables:
        raise ValueError(f"unary has {unary.shape[-1]} tables, the plan {plan.num_tables}; make a plan for this graph")
    if not (np.isfinite(unary).all() and np.isfinite(coupling).all()):
        raise ValueError("unary or coupling is not finite; use log-odds of +-1e5 to force a table in or out")
    if num_draws < 4 or num_draws % 2 or num_warmup < 0 or num_chains < 3:
        given = f"num_draws={num_draws}, num_warmup={num_warmup}, num_chains={num_chains}"
        raise ValueError(f"{given}: needs an even number of at least 4 draws, warm-up >= 0, and at least 3 chains")
    flat = unary.reshape(-1, plan.num_tables)
    # The row and column after the last table stand for none.
    one_way = jnp.zeros((plan.num_tables + 1, plan.num_tables + 1)).at[tuple(plan.edges.T)].add(coupling)
    gains = one_way + one_way.T
    draws = _chains(key, flat, gains, (plan.table, plan.parent), num_draws, num_warmup, num_chains)
    means, errors, r_hats, sizes = (
        np.asarray(value).reshape(unary.shape) for value in _summaries(draws, flat, gains[:-1, :-1])
    )
    shaped = np.asarray(draws).reshape(num_chains, num_draws, *unary.shape)
    return GibbsDraws(shaped, means, errors, r_hats, sizes)


def _sweep(
    key: Array, state: Float[Array, "_ batch"], unary: Array, gains: Array, blocks: tuple[Array, Array]
) -> Float[Array, "_ batch"]:
    """One draw of every block, given the rest; the last row is the table that stands for none, never selected."""

    def draw_block(state: Array, block: tuple[Array, Array, Array]) -> tuple[Array, None]:
        key, tables, parents = block
        joined, uniforms = gains[tables, parents], jax.random.uniform(key, (len(tables), state.shape[1]))
        field = unary + gains @ state.at[tables].set(0.0)

        def eliminate(field: Array, row: tuple[Array, Array, Array]) -> tuple[Array, None]:
            table, parent, gain = row
            message = jax.nn.softplus(field[table] + gain) - jax.nn.softplus(field[table])
            return field.at[parent].add(message), None

        def draw(state: Array, row: tuple[Array, ...]) -> tuple[Array, None]:
            table, parent, gain, uniform = row
            chosen = uniform < jax.nn.sigmoid(field[table] + gain * state[parent])
            return state.at[table].set(chosen.astype(state.dtype)), None

        field, _ = jax.lax.scan(eliminate, field, (tables, parents, joined))
        return jax.lax.scan(draw, state, (tables, parents, joined, uniforms), reverse=True)[0], None

    return jax.lax.scan(draw_block, state, (jax.random.split(key, len(blocks[0])), *blocks))[0]


@partial(jax.jit, static_argnames=("num_draws", "num_warmup", "num_chains"))
def _chains(
    key: Array,
    unary: Array,
    gains: Array,
    blocks: tuple[Array, Array],
    num_draws: int,
    num_warmup: int,
    num_chains: int,
) -> Bool[Array, "chains draws questions tables"]:
    start_key, sweep_key = jax.random.split(key)
    start = jax.random.uniform(start_key, (num_chains, *unary.shape)) < jax.nn.sigmoid(unary)
    start = start.at[0].set(False).at[1].set(True).reshape(-1, unary.shape[1]).T
    state = jnp.pad(start.astype(unary.dtype), ((0, 1), (0, 0)))
    repeated = jnp.pad(jnp.tile(unary.T, num_chains), ((0, 1), (0, 0)), constant_values=-jnp.inf)

    def sweep(state: Array, index: Array) -> tuple[Array, Array]:
        state = _sweep(jax.random.fold_in(sweep_key, index), state, repeated, gains, blocks)
        return state, state[:-1] > 0

    state = jax.lax.fori_loop(0, num_warmup, lambda index, state: sweep(state, index)[0], state)
    _, draws = jax.lax.scan(sweep, state, num_warmup + jnp.arange(num_draws))
    return draws.reshape(num_draws, unary.shape[1], num_chains, unary.shape[0]).transpose(2, 0, 3, 1)


@jax.jit
def _summaries(
    draws: Bool[Array, "chains draws questions tables"], unary: Float[Array, "questions tables"], gains: Array
) -> tuple[Array, Array, Array, Array]:
    """Marginals, standard errors, R-hat and effective sample sizes, one question at a time to save memory."""

    def one(question: tuple[Array, Array]) -> tuple[Array, Array, Array, Array]:
        probabilities = jax.nn.sigmoid(question[0] + question[1].astype(unary.dtype) @ gains)
        return probabilities.mean(axis=(0, 1)), *_diagnostics(probabilities)

    return jax.lax.map(one, (unary, draws.transpose(2, 0, 1, 3)))


def _diagnostics(values: Float[Array, "chains draws tables"]) -> tuple[Array, Array, Array]:
    """Standard error of the mean, split R-hat and effective sample size.

    Autocorrelations are summed in pairs up to the first negative one, made to decrease (Geyer 1992).
    """
    halves = values.reshape(2 * values.shape[0], -1, values.shape[-1])
    chains, length, _ = halves.shape
    means = halves.mean(axis=1, keepdims=True)
    spectrum = jnp.abs(jnp.fft.rfft(halves - means, 2 * length, axis=1)) ** 2
    covariance = jnp.fft.irfft(spectrum, 2 * length, axis=1)[:, :length].mean(axis=0) / length
    within = covariance[0] * length / (length - 1)
    total = covariance[0] + means[:, 0].var(axis=0, ddof=1)
    constant = total <= _NEGLIGIBLE**2
    correlation = (1.0 - (within - covariance) / jnp.where(constant, 1.0, total)).at[0].set(1.0)
    pairs = correlation[: length - length % 2].reshape(-1, 2, values.shape[-1]).sum(axis=1)
    kept = jnp.where(jnp.cumprod(pairs > 0, axis=0), jax.lax.cummin(pairs), 0.0)
    # Stan's bound on what antithetic draws may gain.
    time = jnp.maximum(2.0 * kept.sum(axis=0) - 1.0, 1.0 / jnp.log10(chains * length))
    ess = jnp.where(constant, chains * length, chains * length / time)
    r_hat = jnp.where(constant, 1.0, jnp.sqrt(total / within))
    return jnp.where(constant, 0.0, jnp.sqrt(total / ess)), r_hat, ess
