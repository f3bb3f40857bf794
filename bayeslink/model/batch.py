"""Questions of many databases, packed for one traced likelihood.

Questions are cut into blocks of one database each; blocks of databases with similar graphs share a
bucket, padded to common shapes. Padding adds nothing: a padded question has weight 0, a padded table
is never introduced by the plan, a padded edge has coupling 0.
"""

from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from bayeslink.model.autologistic import Support, energy, log_normaliser, unary_log_odds

__all__ = ["Batch", "Bucket", "LogPartition", "log_likelihood_by_database", "log_likelihood_by_question"]

LogPartition = Callable[..., Float[Array, "*questions"]]
"""(unary [questions tables], plan, coupling [edges]) -> log Z [questions]; any solver of `inference`."""


class Bucket(NamedTuple):
    """Blocks of questions whose graphs share one padded shape.

    Attributes:
        values: Standardised evidence; axes blocks, questions, tables, channels.
        gold: Gold selection in {0,1}; axes blocks, questions, tables.
        weight: 1 for a question, 0 for padding; axes blocks, questions.
        question: Position of each question in its database's evidence, -1 for padding.
        database: Position of each block's database.
        edges: Node positions of each edge; axes blocks, edges, 2.
        is_edge: 1 for an edge, 0 for padding; axes blocks, edges.
        plan: The solver's plan with a leading axis blocks.
    """

    values: Float[Array, "blocks questions tables channels"]
    gold: Float[Array, "blocks questions tables"]
    weight: Float[Array, "blocks questions"]
    question: Int[Array, "blocks questions"]
    database: Int[Array, " blocks"]
    edges: Int[Array, "blocks edges 2"]
    is_edge: Float[Array, "blocks edges"]
    plan: tuple


@partial(
    jax.tree_util.register_dataclass,
    data_fields=["buckets"],
    meta_fields=["num_databases", "num_channels"],
)
@dataclass(frozen=True)
class Batch:
    """Questions of `num_databases` databases with `num_channels` channels, in buckets."""

    buckets: tuple[Bucket, ...]
    num_databases: int
    num_channels: int

    @property
    def num_questions(self) -> int:
        """Number of questions that count."""
        return round(sum(float(bucket.weight.sum()) for bucket in self.buckets))

    def without(self, databases: Collection[int]) -> "Batch":
        """The same batch, and the same shapes, with these databases' questions given weight 0.

        Their effects keep the prior, which integrates to 1, so a fit is the same as without them.

        Args:
            databases: Positions of the databases left out.
        """
        barred = jnp.asarray(sorted(databases), dtype=int)
        buckets = tuple(
            bucket._replace(weight=jnp.where(jnp.isin(bucket.database, barred)[:, None], 0.0, bucket.weight))
            for bucket in self.buckets
        )
        return replace(self, buckets=buckets)


def log_likelihood_by_question(
    bucket: Bucket,
    intercept: Float[Array, " databases"],
    slopes: Float[Array, " channels"],
    coupling: Float[Array, " databases"],
    log_partition: LogPartition,
    support: Support = Support.ALL,
) -> Float[Array, "blocks questions"]:
    """Log p(y | z, G, theta_d) of each question of a bucket, nats; 0 for padding.

    Args:
        bucket: The questions.
        intercept: alpha_d of each database.
        slopes: gamma.
        coupling: beta_d of each database.
        log_partition: Exact solver, `inference.elimination.log_partition` for instance.
        support: All subsets, or the non-empty ones.
    """

    def block(
        values: Array,
        gold: Array,
        weight: Array,
        database: Array,
        edges: Array,
        is_edge: Array,
        plan: tuple,
    ) -> Array:
        unary = unary_log_odds(values, intercept[database], slopes)
        pair = coupling[database] * is_edge
        normaliser = log_normaliser(log_partition(unary, plan, pair), support)
        return weight * (energy(gold, unary, edges, pair) - normaliser)

    return jax.vmap(block)(
        bucket.values, bucket.gold, bucket.weight, bucket.database, bucket.edges, bucket.is_edge, bucket.plan
    )


def log_likelihood_by_database(
    batch: Batch,
    intercept: Float[Array, " databases"],
    slopes: Float[Array, " channels"],
    coupling: Float[Array, " databases"],
    log_partition: LogPartition,
    support: Support = Support.ALL,
) -> Float[Array, " databases"]:
    """Sum over its questions of `log_likelihood_by_question`, for each database, nats."""
    total = jnp.zeros(batch.num_databases)
    for bucket in batch.buckets:
        scores = log_likelihood_by_question(bucket, intercept, slopes, coupling, log_partition, support)
        total = total.at[bucket.database].add(scores.sum(axis=1))
    return total
