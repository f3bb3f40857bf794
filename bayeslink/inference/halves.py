"""The table of p(x) over all subsets, averaged over draws, by one matrix product of two halves of the tables.

Listing 2^n subsets for every draw costs draws x 2^n exponentials. Let the tables be split into boundary B, inside I and
rest R such that no edge joins I and R. With c, l and r the subsets of B, I and R, the energy of one draw s is

    H_s(c, l, r) = L_s(c, l) + Q_s(c, r)
    L_s(c, l) = energy of (c, l) in the graph of B + I,    Q_s(c, r) = energy of (c, r) with the edges B - R and R - R
    1/S sum_s p_s(c, l, r) = sum_s [exp L_s(c, l) / (S Z_s)] exp Q_s(c, r)
    Z_s = sum_c (sum_l exp L_s(c, l)) (sum_r exp Q_s(c, r))

which for each c is a product of matrices with the draws as inner index: the exponentials are as many as the halves
have subsets. Exact, for any graph; the fewer tables in B the quicker, and foreign-key graphs are sparse. Each factor
is divided by its largest value, so that nothing overflows and Z_s >= 1.
"""

from collections.abc import Iterable
from functools import lru_cache, partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from bayeslink.inference import enumeration
from bayeslink.inference.posterior import DatabaseDraws
from bayeslink.model.autologistic import Support, unary_log_odds

__all__ = ["HalvesPlan", "average", "plan"]


class HalvesPlan(NamedTuple):
    """A split of a graph's tables, as arrays.

    Attributes:
        left: Positions of the tables of B, then of I.
        right: Positions of the tables of B, then of R.
        left_states: Subsets of B + I, B's digits the highest.
        right_states: Subsets of B + R, B's digits the highest.
        left_edges: Edges inside B + I, as positions in `left`.
        right_edges: The other edges, as positions in `right`.
        left_chosen: Which edges of the graph `left_edges` are.
        right_chosen: Which edges of the graph `right_edges` are.
        in_rest: 1 for the tables of `right` in R, 0 for those of B, whose log-odds count on the left.
        place: For each subset in the order of `enumeration.states` its place in the flattened table over (c, l, r).
    """

    left: Int[np.ndarray, " left"]
    right: Int[np.ndarray, " right"]
    left_states: Float[np.ndarray, "left_states left"]
    right_states: Float[np.ndarray, "right_states right"]
    left_edges: Int[np.ndarray, "left_edges 2"]
    right_edges: Int[np.ndarray, "right_edges 2"]
    left_chosen: Int[np.ndarray, " left_edges"]
    right_chosen: Int[np.ndarray, " right_edges"]
    in_rest: Float[np.ndarray, " right"]
    place: Int[np.ndarray, " states"]


def plan(edges: Int[np.ndarray, "edges 2"], num_tables: int) -> tuple[HalvesPlan, int]:
    """A split with few subsets in its halves, and the number of tables in B; kept for the next question.

    Raises:
        ValueError: If there are more than `enumeration.MAX_TABLES` tables.
    """
    enumeration.check_size(num_tables)
    return _plan(tuple(map(tuple, np.asarray(edges).reshape(-1, 2).tolist())), num_tables)


@lru_cache(maxsize=256)
def _plan(edges: tuple[tuple[int, int], ...], num_tables: int) -> tuple[HalvesPlan, int]:
    boundary, inside, rest = _split(edges, num_tables)
    left, right = [*boundary, *inside], [*boundary, *rest]
    in_left = [number for number, edge in enumerate(edges) if set(edge) <= set(left)]
    others = [number for number in range(len(edges)) if number not in in_left]

    def inner(numbers: list[int], tables: list[int]) -> np.ndarray:
        found = [[tables.index(end) for end in edges[number]] for number in numbers]
        return np.array(found, dtype=np.int64).reshape(-1, 2)

    # Digits of the flattened table over (c, l, r), the highest first.
    digits = [*boundary, *inside, *rest]
    states = enumeration.states(num_tables).astype(np.int64)
    place = states[:, digits] @ (1 << np.arange(num_tables)[::-1])
    found = HalvesPlan(
        np.array(left, dtype=np.int64),
        np.array(right, dtype=np.int64),
        _subsets(len(left)),
        _subsets(len(right)),
        inner(in_left, left),
        inner(others, right),
        np.array(in_left, dtype=np.int64),
        np.array(others, dtype=np.int64),
        np.array([float(table in rest) for table in right]),
        place,
    )
    return found, len(boundary)


def _subsets(num_tables: int) -> Float[np.ndarray, "states tables"]:
    """All subsets, the first table's digit the highest."""
    return np.ascontiguousarray(enumeration.states(num_tables)[:, ::-1])


def _split(edges: Iterable[tuple[int, int]], num_tables: int) -> tuple[list[int], list[int], list[int]]:
    """B, I and R with the fewest subsets 2^(B + I) + 2^(B + R) of those met by growing a set from each table."""
    beside: dict[int, set[int]] = {table: set() for table in range(num_tables)}
    for first, second in edges:
        beside[first].add(second)
        beside[second].add(first)
    best, fewest = ([], list(range(num_tables)), []), float("inf")
    for start in range(num_tables):
        grown: set[int] = set()
        while len(grown) < num_tables:
            choices = [start] if not grown else sorted(set(range(num_tables)) - grown)
            added = min(choices, key=lambda table: len(_boundary(grown | {table}, beside)))
            grown = grown | {added}
            boundary = _boundary(grown, beside)
            count = 2 ** len(grown) + 2 ** (len(boundary) + num_tables - len(grown))
            if count < fewest:
                rest = [table for table in range(num_tables) if table not in grown]
                best, fewest = (sorted(boundary), sorted(grown - boundary), rest), count
    return best


def _boundary(grown: set[int], beside: dict[int, set[int]]) -> set[int]:
    return {table for table in grown if beside[table] - grown}


@partial(jax.jit, static_argnames=("num_boundary", "support"))
def average(
    values: Float[Array, "questions tables channels"],
    plan: HalvesPlan,
    draws: DatabaseDraws,
    gold: Int[Array, " questions"] | None,
    num_boundary: int,
    support: Support = Support.ALL,
) -> tuple[Float[Array, "questions states"], Float[Array, " questions"], Float[Array, " questions"]]:
    """Mean over draws of p(x) for every subset and of P(no table), and the log of the mean of p(gold).

    Args:
        values: Standardised evidence of the questions.
        plan: From `plan(edges, num_tables)`, as is the number of tables in B.
        draws: Draws of the database's parameters.
        gold: For each question the place of its gold subset in `enumeration.states`; None for a log score of 0.
        num_boundary: Number of tables in B.
        support: All subsets or the non-empty ones. P(no table) is always that of all subsets.
    """
    num_draws, size = draws.intercept.shape[0], 2**num_boundary
    left = enumeration.StatePlan(jnp.asarray(plan.left_states), jnp.asarray(plan.left_edges))
    right = enumeration.StatePlan(jnp.asarray(plan.right_states), jnp.asarray(plan.right_edges))

    def halves(draw: DatabaseDraws, value: Array) -> tuple[Array, Array]:
        unary = unary_log_odds(value, draw.intercept, jnp.asarray(draw.slopes))
        coupling = jnp.asarray(draw.coupling)
        ours, others = (
            (coupling[plan.left_chosen], coupling[plan.right_chosen]) if coupling.ndim else (coupling, coupling)
        )
        return (
            enumeration.energies(unary[plan.left], left, ours).reshape(size, -1),
            enumeration.energies(unary[plan.right] * plan.in_rest, right, others).reshape(size, -1),
        )

    def of_question(item: tuple[Array, Array]) -> tuple[Array, Array, Array]:
        value, wanted = item
        first, second = jax.vmap(halves, in_axes=(0, None))(draws, value)
        top = second.max(axis=2, keepdims=True)
        most = (first + top).max(axis=(1, 2), keepdims=True)
        inner, outer = jnp.exp(first + top - most), jnp.exp(second - top)
        normaliser = (inner.sum(axis=2) * outer.sum(axis=2)).sum(axis=1)
        empty = inner[:, 0, 0] * outer[:, 0, 0]
        prob_empty = empty / normaliser
        if support is Support.NON_EMPTY:
            # Put together from what is not empty: 1 - P(empty) loses its digits when the empty set is almost sure.
            part = inner[:, 0, 1:].sum(axis=1) * outer[:, 0].sum(axis=1) + inner[:, 0, 0] * outer[:, 0, 1:].sum(axis=1)
            normaliser = part + (inner[:, 1:].sum(axis=2) * outer[:, 1:].sum(axis=2)).sum(axis=1)
        weights = inner / normaliser[:, None, None]
        table = jnp.einsum("scl,scr->clr", weights, outer).reshape(-1)[plan.place] / num_draws
        if support is Support.NON_EMPTY:
            table = table.at[0].set(0.0)
        if gold is None:
            score = jnp.zeros(())
        else:
            at = plan.place[wanted]
            c, pair = jnp.divmod(at, inner.shape[2] * outer.shape[2])
            l, r = jnp.divmod(pair, outer.shape[2])
            scores = first[:, c, l] + second[:, c, r] - most[:, 0, 0] - jnp.log(normaliser)
            if support is Support.NON_EMPTY:
                scores = jnp.where(wanted == 0, -jnp.inf, scores)
            score = jax.nn.logsumexp(scores) - jnp.log(num_draws)
        return table, prob_empty.mean(), score

    asked = jnp.zeros(len(values), dtype=jnp.int64) if gold is None else gold
    plan = jax.tree.map(jnp.asarray, plan)
    return jax.lax.map(of_question, (values, asked))
