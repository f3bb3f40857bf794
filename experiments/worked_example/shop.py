"""The schema of the paper's Figure 1 and its exact distribution at one coupling."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from bayeslink.inference import elimination, enumeration
from bayeslink.simulation.timing import log_partition_and_marginals

NAMES = ("customers", "transactions", "products", "categories")
EDGES = np.array([[0, 1], [1, 2], [2, 3]])
"""The junction transactions references customers and products; products references categories, the distractor."""
RELEVANT = np.array([True, True, True, False])


class Exact(NamedTuple):
    """What the model says at one coupling.

    Attributes:
        marginals: Probability of each table, by listing all subsets.
        eliminated: The same by elimination.
        relevant_probability: Probability of exactly the relevant set.
        mode: Names of the most probable subset.
        mode_is_relevant: Whether it is the relevant set.
    """

    marginals: np.ndarray
    eliminated: np.ndarray
    relevant_probability: float
    mode: tuple[str, ...]
    mode_is_relevant: bool


def exact(unary: np.ndarray, coupling: float) -> Exact:
    """The distribution over the 16 subsets, given log-odds and a coupling in nats."""
    plan, beta = enumeration.plan(EDGES, len(NAMES)), jnp.asarray(coupling)
    probabilities = np.exp(np.asarray(_listed(jnp.asarray(unary), plan, beta)))
    order = elimination.plan(EDGES, len(NAMES))
    _, eliminated = log_partition_and_marginals(jnp.asarray(unary)[None, :], order, beta)
    best = plan.states[probabilities.argmax()] > 0
    return Exact(
        probabilities @ plan.states,
        np.asarray(eliminated)[0],
        float(probabilities[(plan.states == RELEVANT).all(axis=1)][0]),
        tuple(name for name, inside in zip(NAMES, best, strict=True) if inside),
        bool((best == RELEVANT).all()),
    )


_listed = jax.jit(enumeration.log_probabilities)
