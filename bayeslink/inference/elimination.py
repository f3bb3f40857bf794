"""Selection given parameters, exactly, by eliminating one table after another.

MODEL.md section 5. `decomposition.plan` orders the tables; each row eliminates a table v with separator S:

    F(x_v, x_S) = exp( x_v (a_v + sum_{u in S} beta_vu x_u) ) * product of the messages sent to v
    m(x_S)      = F(0, x_S) + F(1, x_S)                     (the maximum in place of the sum gives the mode)

and sends m to the first table of S to be eliminated; messages without a separator multiply to Z. So log Z
costs n 2^w for separators of up to w tables instead of 2^n. Log space is the reference arithmetic. Linear
space takes one exponential per table and question, then multiplications and additions, each message divided
by its largest entry; it is exact where `linear_is_safe`. Inside, questions are the last axis, states the first.
"""

from enum import StrEnum

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, ArrayLike, Float

from bayeslink.inference.decomposition import MAX_WIDTH, Plan, pad, plan, width_of

__all__ = [
    "MAX_WIDTH",
    "Arithmetic",
    "Plan",
    "eliminated_unary",
    "forward_log",
    "linear_is_safe",
    "log_partition",
    "log_sum",
    "marginals",
    "pad",
    "pair_marginals",
    "plan",
    "projected",
    "separator_gain",
    "width_of",
]

SAFE_EXPONENT = 500.0
"""Largest difference in nats within one message for which linear space neither under- nor overflows."""


class Arithmetic(StrEnum):
    """How messages are held: their logarithms (the reference), or rescaled values."""

    LOG = "log"
    LINEAR = "linear"


def linear_is_safe(
    unary: Float[ArrayLike, "*questions tables"], plan: Plan, coupling: Float[ArrayLike, "*edges"]
) -> bool:
    """Whether linear space is exact for these parameters; needs concrete values.

    Two states of one message differ in at most w + 1 tables, and changing one table's state changes any
    energy by at most |a_t| + sum of |beta| over its edges. So no entry of a rescaled message is below
    exp(-(w + 1) max_t (|a_t| + sum |beta|)), which is far from underflow up to `SAFE_EXPONENT`.
    """
    edge, table = np.asarray(plan.edge), np.asarray(plan.table)
    strength = np.abs(np.asarray(coupling, dtype=np.float64))
    each = np.where(edge >= 0, strength if strength.ndim == 0 else np.append(strength, 0.0)[edge], 0.0)
    around = np.zeros(np.asarray(unary).shape[-1] + 1)
    np.add.at(around, table, each.sum(axis=1))
    np.add.at(around, np.asarray(plan.separator), each)
    largest = np.abs(np.asarray(unary)).max(initial=0.0) + around[:-1].max(initial=0.0)
    return bool((width_of(plan) + 1) * largest <= SAFE_EXPONENT)


def log_partition(
    unary: Float[Array, "*questions tables"],
    plan: Plan,
    coupling: Float[ArrayLike, "*edges"],
    arithmetic: Arithmetic = Arithmetic.LOG,
) -> Float[Array, "*questions"]:
    """Log Z, nats: log of the sum of exp(energy) over all 2^n selections.

    Args:
        unary: Log-odds of each table if it had no neighbours.
        plan: Elimination order of the graph, from `plan(edges, num_tables)`.
        coupling: Gain in nats when both tables of a pair are selected, one value or one per edge.
        arithmetic: Log space, or linear space where `linear_is_safe`.

    Raises:
        ValueError: If `unary` is not float64.
    """
    if unary.dtype != jnp.float64:
        raise ValueError(f"unary has dtype {unary.dtype}: inference is float64 only; enable jax_enable_x64")
    flat = unary.reshape(-1, unary.shape[-1]).T
    forward = _forward_linear if arithmetic is Arithmetic.LINEAR else forward_log
    return forward(flat, plan, separator_gain(plan, jnp.asarray(coupling))).reshape(unary.shape[:-1])


def marginals(
    unary: Float[Array, "*questions tables"],
    plan: Plan,
    coupling: Float[ArrayLike, "*edges"],
    arithmetic: Arithmetic = Arithmetic.LOG,
) -> Float[Array, "*questions tables"]:
    """Probability that each table is selected: the gradient of `log_partition` in `unary`."""
    return jax.grad(lambda a: log_partition(a, plan, coupling, arithmetic).sum())(unary)


def pair_marginals(
    unary: Float[Array, "*questions tables"], plan: Plan, coupling: Float[Array, " edges"]
) -> Float[Array, "*questions edges"]:
    """Probability that both tables of each edge are selected: the gradient of `log_partition` in the couplings."""
    flat = unary.reshape(-1, unary.shape[-1])
    pairs = jax.vmap(jax.grad(lambda b, a: log_partition(a, plan, b)), in_axes=(None, 0))(jnp.asarray(coupling), flat)
    return pairs.reshape(*unary.shape[:-1], pairs.shape[-1])


def separator_gain(plan: Plan, coupling: Float[Array, "*edges"]) -> Float[Array, "steps states 1"]:
    """sum_{u in S} beta_vu x_u for each state of each separator, nats, the same for every question."""
    # Edge -1 means none: it finds the 0 appended at the end.
    joined = jnp.where(plan.edge >= 0, coupling, 0.0) if coupling.ndim == 0 else jnp.append(coupling, 0.0)[plan.edge]
    width = width_of(plan)
    bits = jnp.asarray((np.arange(2**width)[:, None] >> np.arange(width)) & 1, dtype=jnp.float64)
    return (joined @ bits.T)[..., None]


def eliminated_unary(unary: Float[Array, "tables questions"], plan: Plan) -> Float[Array, "steps questions"]:
    """Unary of each row's table; 0 for padding rows."""
    return jnp.concatenate([unary, jnp.zeros((1, unary.shape[1]))])[plan.table]


def log_sum(first: Array, second: Array) -> Array:
    """log(exp first + exp second), with exact derivatives of every order in every mode, at ties too.

    The larger value is a constant to differentiation; it cancels. (`jnp.logaddexp` inside a scan loses its
    own derivative rule in reverse mode, and its second derivative at a tie.)
    """
    largest = jax.lax.stop_gradient(jnp.maximum(first, second))
    smooth = jnp.log(jnp.exp(first - largest) + jnp.exp(second - largest))
    # The same value, exact to the last digit where one term is tiny.
    precise = jnp.log1p(jnp.exp(-jnp.abs(first - second)))
    return largest + smooth + jax.lax.stop_gradient(precise - smooth)


def forward_log(
    unary: Float[Array, "tables questions"], plan: Plan, gain: Float[Array, "steps states _"]
) -> Float[Array, " questions"]:
    """Log Z in log space, nats, for gains of the separators as `separator_gain` makes them."""
    width, slots = width_of(plan), plan.slot.shape[-1]
    own, parent = jnp.argmax(plan.slot, axis=-1), jnp.argmax(plan.parent, axis=-1)
    real = (jnp.asarray(plan.table) < unary.shape[0]).astype(jnp.float64)

    def step(held: Array, row: tuple[Array, ...]) -> tuple[Array, None]:
        a, gains, own_slot, parent_slot, project, counts = row
        factor = jax.lax.dynamic_index_in_dim(held, own_slot, keepdims=False)
        message = counts * log_sum(factor[: 2**width], factor[2**width :] + a[None, :] + gains)
        held = jax.lax.dynamic_update_index_in_dim(held, jnp.zeros_like(factor), own_slot, 0)
        received = jax.lax.dynamic_index_in_dim(held, parent_slot, keepdims=False) + projected(message, project)
        return jax.lax.dynamic_update_index_in_dim(held, received, parent_slot, 0), None

    start = jnp.zeros((slots, 2 ** (width + 1), unary.shape[1]))
    held, _ = jax.lax.scan(
        step, start, (eliminated_unary(unary, plan), gain, own, parent, jnp.asarray(plan.project), real)
    )
    return held[0, 0]


def _forward_linear(
    unary: Float[Array, "tables questions"], plan: Plan, gain: Float[Array, "steps states _"]
) -> Float[Array, " questions"]:
    width, slots = width_of(plan), plan.slot.shape[-1]
    own, parent = jnp.argmax(plan.slot, axis=-1), jnp.argmax(plan.parent, axis=-1)
    a = eliminated_unary(unary, plan)
    # A constant to differentiation; it cancels in the result.
    shift = jax.lax.stop_gradient(jnp.maximum(a, 0.0))
    real = jnp.asarray(plan.table) < unary.shape[0]
    rows = (jnp.exp(-shift), jnp.exp(a - shift), jnp.exp(gain), own, parent, jnp.asarray(plan.project), real)

    def step(carry: tuple[Array, Array], row: tuple[Array, ...]) -> tuple[tuple[Array, Array], None]:
        held, log_scale = carry
        left_out, taken, gains, own_slot, parent_slot, project, counts = row
        factor = jax.lax.dynamic_index_in_dim(held, own_slot, keepdims=False)
        message = factor[: 2**width] * left_out[None, :] + factor[2**width :] * (gains * taken[None, :])
        message = jnp.where(counts, message, 1.0)
        largest = jax.lax.stop_gradient(message.max(axis=0))
        message = message / largest
        held = jax.lax.dynamic_update_index_in_dim(held, jnp.ones_like(factor), own_slot, 0)
        received = jax.lax.dynamic_index_in_dim(held, parent_slot, keepdims=False) * message[project]
        held = jax.lax.dynamic_update_index_in_dim(held, received, parent_slot, 0)
        return (held, log_scale + jnp.log(largest)), None

    start = (jnp.ones((slots, 2 ** (width + 1), unary.shape[1])), jnp.zeros(unary.shape[1]))
    (held, log_scale), _ = jax.lax.scan(step, start, rows)
    return jnp.log(held[0, 0]) + log_scale + shift.sum(axis=0)


def projected(message: Float[Array, "states questions"], project: Array) -> Float[Array, "_ questions"]:
    """A message read at the states of its receiver; a product with a 0/1 matrix while that is small."""
    states = message.shape[0]
    if states > 32:
        return message[project]
    chosen = (project[:, None] == jnp.arange(states)[None, :]).astype(message.dtype)
    return chosen @ message
