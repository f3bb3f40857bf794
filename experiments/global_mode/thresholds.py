"""Couplings at which the needed set stops to be stable, and the most probable, on one small graph."""

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np

from bayeslink.inference import elimination, queries
from bayeslink.theory.modes import is_unique_mode
from bayeslink.theory.stability import is_single_flip_stable


class Case:
    """A graph with its log-odds and the needed tables.

    Args:
        unary: Log-odds of each table.
        edges: Pairs of tables.
        relevant: Needed tables.
    """

    def __init__(self, unary: np.ndarray, edges: np.ndarray, relevant: np.ndarray) -> None:
        self.unary, self.edges, self.relevant = unary, edges, relevant
        plan = elimination.plan(edges, len(unary))
        self._log_partition = jax.jit(lambda beta: elimination.log_partition(jnp.asarray(unary), plan, beta))
        self._mode = jax.jit(
            lambda beta: queries.mode(jnp.array(unary)[:, None], plan, elimination.separator_gain(plan, beta))
        )

    def log_partition(self, beta: float) -> float:
        """Log normalising constant."""
        return float(self._log_partition(jnp.asarray(beta)))

    def mode(self, beta: float) -> np.ndarray:
        """The most probable set, by exact maximisation."""
        return np.asarray(self._mode(jnp.asarray(beta))[0])[:, 0]

    def is_stable(self, beta: float) -> bool:
        """Whether every single flip from the needed set lowers the score."""
        return bool(is_single_flip_stable(self.unary, self.edges, self.relevant, beta))

    def thresholds(self, highest: float, bisections: int) -> dict[str, float]:
        """Where stability ends, where the two minimum cuts and where the exact mode leave the needed set."""
        conditions = {
            "single_flip_threshold": self.is_stable,
            "mode_threshold": lambda beta: bool(is_unique_mode(self.unary, self.edges, self.relevant, beta)),
            "exact_mode_threshold": lambda beta: bool((self.mode(beta) == self.relevant).all()),
        }
        return {name: _last(holds, highest, bisections) for name, holds in conditions.items()}


def _last(holds: Callable[[float], bool], highest: float, bisections: int) -> float:
    """Coupling at which a condition that holds at 0 stops to hold."""
    low, high = 0.0, highest
    for _ in range(bisections):
        middle = (low + high) / 2
        low, high = (middle, high) if holds(middle) else (low, middle)
    return (low + high) / 2
