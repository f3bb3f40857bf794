"""One database of a pool: what its subsets weigh, for every posterior draw and question.

With Z[S] the sum of exp(energy) over the subsets of S, by elimination with the tables outside S held out, all
non-empty subsets of S together weigh log(Z[S] - 1), by the one form of it that keeps its digits however near Z[S] is
to 1 (`autologistic.log_normaliser`), and its gradient in the unaries is P(x_t = 1 | x non-empty).
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from bayeslink.inference import queries
from bayeslink.inference.elimination import Plan, forward_log, width_of
from bayeslink.inference.factored import draws_gain, padded_plan
from bayeslink.inference.posterior import DatabaseDraws
from bayeslink.model.autologistic import Support, log_normaliser, unary_log_odds

__all__ = ["PoolMember"]

_HELD_AT_ONCE = 2**22
"""Largest number of message entries held over the steps of an elimination."""


@dataclass(frozen=True)
class PoolMember:
    """One database of a pool, for every posterior draw and question.

    Attributes:
        unary: Log-odds a_t of each table if it had no neighbours.
        edges: Node positions of each edge.
        coupling: Gain in nats when both tables of a pair are selected, one value or one per edge.
        score: r_d in nats, the same for every draw or one for each.

    Raises:
        ValueError: If a number is not finite, the unaries are not float64, or there is no draw or no table.
    """

    unary: Float[np.ndarray, "draws questions tables"]
    edges: Int[np.ndarray, "edges 2"]
    coupling: Float[np.ndarray, " draws"] | Float[np.ndarray, "draws edges"]
    score: Float[np.ndarray, " questions"] | Float[np.ndarray, "draws questions"]

    def __post_init__(self) -> None:
        if self.unary.dtype != np.float64:
            raise ValueError(f"unary has dtype {self.unary.dtype}: inference is float64 only; convert it first")
        if not self.unary.shape[0] or not self.unary.shape[2]:
            raise ValueError(f"unary has shape {self.unary.shape}; a member needs at least one draw and one table")
        for name in ("unary", "coupling", "score"):
            if not np.isfinite(getattr(self, name)).all():
                raise ValueError(f"{name} holds NaN or infinity; give finite log-odds")

    @classmethod
    def of(
        cls,
        values: Float[np.ndarray, "questions tables channels"],
        edges: Int[np.ndarray, "edges 2"],
        draws: DatabaseDraws,
        score: Float[np.ndarray, " questions"],
    ) -> "PoolMember":
        """The member with these standardised evidence values and draws of the database's parameters."""
        intercept, slopes = jnp.asarray(draws.intercept), jnp.asarray(draws.slopes)
        unary = jax.vmap(unary_log_odds, in_axes=(None, 0, 0))(jnp.asarray(values), intercept, slopes)
        return cls(np.asarray(unary), edges, np.asarray(draws.coupling), score)

    @property
    def num_tables(self) -> int:
        """Number of tables of the database."""
        return self.unary.shape[2]

    @cached_property
    def log_normalisers(self) -> Float[np.ndarray, "draws questions"]:
        """log(Z_d - 1), nats; minus infinity where Z_d rounds to 1 (all unaries below about -740)."""
        every = np.arange(self.unary.shape[1])
        return self.log_mass(np.ones((len(every), self.num_tables), dtype=bool), every)

    def log_mass(
        self, inside: Bool[np.ndarray, "sets tables"], questions: Int[np.ndarray, " sets"]
    ) -> Float[np.ndarray, "draws sets"]:
        """log(Z_d[S] - 1), nats, of sets of tables, each for the question beside it; minus infinity if empty."""
        found = np.full((len(self.unary), len(inside)), -np.inf)
        some = np.flatnonzero(inside.any(axis=1))
        if len(some):
            padded = np.pad(inside[some], ((0, 0), (0, self._plan[1] - self.num_tables)))
            found[:, some] = self._by_chunks(_log_mass, questions[some], padded)
        return found

    def weighted_marginals(
        self, weights: Float[np.ndarray, "draws questions"]
    ) -> Float[np.ndarray, "tables questions"]:
        """Sum over draws of a weight times P(x_t = 1 | x non-empty)."""
        every = np.arange(self.unary.shape[1])
        return self._by_chunks(_weighted_marginals, every, weights.T)[: self.num_tables]

    @cached_property
    def _plan(self) -> tuple[Plan, int, Array]:
        plan, rows = padded_plan(self.edges, self.num_tables)
        return plan, rows, draws_gain(plan, self.coupling)

    def _by_chunks(self, function: Callable[..., Array], questions: np.ndarray, given: np.ndarray) -> np.ndarray:
        """The function's values for these questions, which are its last axis, some at a time.

        The last chunk is filled up with its last question, so that one compiled program serves all chunks.
        """
        plan, rows, gain = self._plan
        num_draws, num_questions, num_tables = self.unary.shape
        held = 2 ** (width_of(plan) + 1) * rows * num_draws
        size = min(max(num_questions, 16), max(1, _HELD_AT_ONCE // held))
        parts = []
        for start in range(0, len(questions), size):
            place = np.minimum(np.arange(start, start + size), len(questions) - 1)
            unary = np.pad(self.unary[:, questions[place]].T, ((0, rows - num_tables), (0, 0), (0, 0)))
            values = np.asarray(function(unary, given[place], plan, gain))
            parts.append(values[:, : len(questions) - start])
        return np.concatenate(parts, axis=1)


@jax.jit
def _log_mass(unary: Array, inside: Array, plan: Plan, gain: Array) -> Array:
    """log(Z[S] - 1) by draw and question, from unaries [tables questions draws] and sets [questions tables]."""
    clamped = jnp.where(inside.T[..., None], unary, queries.CLAMPED)
    log_z = jax.vmap(forward_log, in_axes=(1, None, None), out_axes=1)(clamped, plan, gain)
    return log_normaliser(log_z, Support.NON_EMPTY)


@jax.jit
def _weighted_marginals(unary: Array, weights: Array, plan: Plan, gain: Array) -> Array:
    """Sum over draws of weights [questions draws] times the gradient of log(Z - 1), by table and question."""

    def total(shift: Array) -> Array:
        log_z = jax.vmap(forward_log, in_axes=(1, None, None))(unary + shift[..., None], plan, gain)
        # Where Z rounds to 1 the weight is 0, and the gradient must not be taken there.
        some = log_z > 0
        return (jnp.where(some, weights, 0.0) * log_normaliser(jnp.where(some, log_z, 1.0), Support.NON_EMPTY)).sum()

    return jax.grad(total)(jnp.zeros(unary.shape[:2]))
