"""The autologistic model: unary log-odds, sufficient statistics and energy, written once.

MODEL.md sections 1 and 2, the paper's (1):

    log p(x | z, G, theta) = sum_t a_t x_t + sum_{(s,t) in E} beta_st x_s x_t - log Z(a, beta)
    a_t = alpha + gamma . z_t

with x in {0,1}^n (Besag 1974 with {0,1} coding). One coupling for all edges broadcasts, so that
the pair term is beta M(x). `inference` supplies log Z.
"""

from enum import StrEnum
from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, ArrayLike, Float, Int

__all__ = [
    "Parameters",
    "Support",
    "energy",
    "log_normaliser",
    "num_joined_pairs",
    "num_selected",
    "unary_log_odds",
]


class Support(StrEnum):
    """Which selections are possible; one flag for fit and prediction alike (MODEL.md section 2)."""

    ALL = "all"
    NON_EMPTY = "non-empty"


class Parameters(NamedTuple):
    """Parameters of one database, all in log-odds.

    Attributes:
        intercept: alpha_d.
        slopes: gamma, one per channel of standardised evidence.
        coupling: beta_d, one value or one per edge.
    """

    intercept: Float[ArrayLike, ""]
    slopes: Float[Array, " channels"]
    coupling: Float[ArrayLike, "*edges"]


def unary_log_odds(
    values: Float[Array, "*questions tables channels"],
    intercept: Float[ArrayLike, "*tables"],
    slopes: Float[Array, " channels"],
) -> Float[Array, "*questions tables"]:
    """Log-odds a_t = alpha + gamma . z_t of each table if it had no neighbours.

    Args:
        values: Standardised evidence z.
        intercept: alpha_d, log-odds, one value or one per table.
        slopes: gamma, log-odds per standard deviation of each channel.
    """
    return jnp.asarray(intercept) + values @ slopes


def num_selected(selection: Float[Array, "*questions tables"]) -> Float[Array, "*questions"]:
    """N(x), the number of selected tables."""
    return selection.sum(axis=-1)


def num_joined_pairs(
    selection: Float[Array, "*questions tables"], edges: Int[Array, "edges 2"]
) -> Float[Array, "*questions edges"]:
    """x_s x_t for each edge; its sum over edges is M(x), the number of edges inside the selection."""
    return selection[..., edges[:, 0]] * selection[..., edges[:, 1]]


def energy(
    selection: Float[Array, "*#questions tables"],
    unary: Float[Array, "*#questions tables"],
    edges: Int[Array, "edges 2"],
    coupling: Float[ArrayLike, "*edges"],
) -> Float[Array, "*#questions"]:
    """Log-probability of a selection up to log Z, in nats: sum_t a_t x_t + sum_e beta_e x_s x_t.

    Args:
        selection: x in {0,1}.
        unary: a, log-odds.
        edges: Node positions of each edge.
        coupling: Gain in nats when both tables of a pair are selected, one value or one per edge.
    """
    return (unary * selection).sum(axis=-1) + (coupling * num_joined_pairs(selection, edges)).sum(axis=-1)


def log_normaliser(log_partition: Float[Array, "*questions"], support: Support) -> Float[Array, "*questions"]:
    """Log of the normaliser under the support: log Z, or log(Z - 1) when the empty set is excluded.

    log(Z - 1) = log Z + log(1 - exp(-log Z)), stable since Z > 1 always.
    """
    if support is Support.NON_EMPTY:
        return log_partition + jnp.log(-jnp.expm1(-log_partition))
    return log_partition
