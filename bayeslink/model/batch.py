"""Questions of many databases, packed for one traced likelihood.

Questions are cut into blocks of one database each; blocks of databases with similar graphs share a
bucket, padded to common shapes. Padding adds nothing: a padded question has weight 0, a padded table
is never introduced by the plan, a padded edge has coupling 0.
"""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from bayeslink.model.autologistic import Support, energy, log_normaliser, unary_log_odds

__all__ = [
    "Batch",
    "Bucket",
    "DatabaseRows",
    "LocalParameters",
    "LogPartition",
    "edge_couplings",
    "log_likelihood_by_database",
    "log_likelihood_by_question",
    "log_likelihood_of_block",
    "question_intercepts",
]

ABSENT = -1e4
"""Log-odds of a padded table: its probability is exactly 0 in double precision."""

LogPartition = Callable[..., Float[Array, "*questions"]]
"""(unary [questions tables], plan, coupling [edges]) -> log Z [questions]; any solver of `inference`."""


class Bucket(NamedTuple):
    """Blocks of questions whose graphs share one padded shape.

    Attributes:
        values: Standardised evidence; axes blocks, questions, tables, channels.
        context: Standardised covariates of the intercept; axes blocks, questions, contexts.
        gold: Gold selection in {0,1}; axes blocks, questions, tables.
        weight: 1 for a question, 0 for padding; axes blocks, questions.
        question: Position of each question in its database's evidence, -1 for padding.
        database: Position of each block's database.
        edges: Node positions of each edge; axes blocks, edges, 2.
        is_edge: 1 for an edge, 0 for padding; axes blocks, edges.
        edge_type: Kind of each edge; axes blocks, edges.
        is_table: 1 for a table, 0 for padding; axes blocks, tables.
        plan: The solver's plan with a leading axis blocks.
    """

    values: Float[Array, "*blocks questions tables channels"]
    context: Float[Array, "*blocks questions contexts"]
    gold: Float[Array, "*blocks questions tables"]
    weight: Float[Array, "*blocks questions"]
    question: Int[Array, "*blocks questions"]
    database: Int[Array, "*blocks"]
    edges: Int[Array, "*blocks edges 2"]
    is_edge: Float[Array, "*blocks edges"]
    edge_type: Int[Array, "*blocks edges"]
    is_table: Float[Array, "*blocks tables"]
    plan: tuple


class DatabaseRows(NamedTuple):
    """What a batch holds for each database.

    Attributes:
        covariates: Standardised covariates of the coupling; axes databases, covariates.
    """

    covariates: Float[Array, "databases covariates"]


@partial(
    jax.tree_util.register_dataclass,
    data_fields=["buckets", "rows"],
    meta_fields=["num_databases", "num_channels", "num_contexts", "num_edge_types"],
)
@dataclass(frozen=True)
class Batch:
    """Questions of several databases, in buckets.

    Attributes:
        buckets: The questions.
        rows: What is known of each database.
        num_databases: Number of databases.
        num_channels: Number of channels.
        num_contexts: Number of covariates of the intercept.
        num_edge_types: Number of kinds of edges.
    """

    buckets: tuple[Bucket, ...]
    rows: DatabaseRows
    num_databases: int
    num_channels: int
    num_contexts: int = 0
    num_edge_types: int = 1

    @property
    def covariates(self) -> Float[Array, "databases covariates"]:
        """Standardised covariates of the coupling."""
        return self.rows.covariates

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

    def without_questions(self, barred: Sequence[Bool[np.ndarray, "_"]]) -> "Batch":
        """The same batch, and the same shapes, with the marked questions given weight 0.

        Args:
            barred: For each database, its questions that are left out.

        Raises:
            ValueError: If there is not one array per database.
        """
        if len(barred) != self.num_databases:
            raise ValueError(f"barred marks {len(barred)} databases of {self.num_databases}; give one array for each")
        marks = np.zeros((self.num_databases, max(map(len, barred), default=0) + 1), dtype=bool)
        for place, mark in enumerate(barred):
            marks[place, : len(mark)] = mark
        # Padding has the position -1: the last column, which nothing marks.
        buckets = tuple(
            bucket._replace(
                weight=jnp.where(jnp.asarray(marks)[bucket.database[:, None], bucket.question], 0.0, bucket.weight)
            )
            for bucket in self.buckets
        )
        return replace(self, buckets=buckets)


class LocalParameters(NamedTuple):
    """Parameters of each database of a batch, in log-odds.

    Attributes:
        intercept: alpha_d.
        context: kappa, one per covariate of the intercept; the same for every database.
        slopes: s_d gamma.
        coupling: beta_d for each kind of edge; a single column serves every edge.
    """

    intercept: Float[Array, " databases"]
    context: Float[Array, " contexts"]
    slopes: Float[Array, "databases channels"]
    coupling: Float[Array, "databases types"]


def log_likelihood_of_block(
    block: Bucket,
    intercept: Float[Array, " questions"],
    slopes: Float[Array, " channels"],
    coupling: Float[Array, " types"],
    log_partition: LogPartition,
    support: Support = Support.ALL,
) -> Float[Array, " questions"]:
    """Log p(y | z, G, theta) of the questions of one block, nats; 0 for padding.

    Args:
        block: One block: a bucket's arrays without their first axis.
        intercept: alpha_d + kappa . w_q of each question.
        slopes: The database's slopes.
        coupling: The database's coupling for each kind of edge.
        log_partition: Exact solver.
        support: All subsets, or the non-empty ones.
    """
    unary = unary_log_odds(block.values, 0.0, slopes) + intercept[:, None]
    # A padded table is never selected; elimination does not look at it, a list of subsets does.
    unary = jnp.where(block.is_table > 0, unary, ABSENT)
    pair = edge_couplings(block, coupling)
    normaliser = log_normaliser(log_partition(unary, block.plan, pair), support)
    return block.weight * (energy(block.gold, unary, block.edges, pair) - normaliser)


def edge_couplings(block: Bucket, coupling: Float[Array, " types"]) -> Float[Array, " edges"]:
    """Coupling of each edge of a block, 0 for padding."""
    return coupling[block.edge_type] * block.is_edge if coupling.shape[0] > 1 else coupling[0] * block.is_edge


def question_intercepts(bucket: Bucket, local: LocalParameters) -> Float[Array, "blocks questions"]:
    """alpha_d + kappa . w_q of each question."""
    return local.intercept[bucket.database][:, None] + bucket.context @ local.context


def log_likelihood_by_question(
    bucket: Bucket, local: LocalParameters, log_partition: LogPartition, support: Support = Support.ALL
) -> Float[Array, "blocks questions"]:
    """Log p(y | z, G, theta_d) of each question of a bucket, nats; 0 for padding.

    Args:
        bucket: The questions.
        local: Parameters of each database.
        log_partition: Exact solver, `inference.packing.log_partition` for instance.
        support: All subsets, or the non-empty ones.
    """
    one = partial(log_likelihood_of_block, log_partition=log_partition, support=support)
    database = bucket.database
    return jax.vmap(one)(bucket, question_intercepts(bucket, local), local.slopes[database], local.coupling[database])


def log_likelihood_by_database(
    batch: Batch, local: LocalParameters, log_partition: LogPartition, support: Support = Support.ALL
) -> Float[Array, " databases"]:
    """Sum over its questions of `log_likelihood_by_question`, for each database, nats."""
    total = jnp.zeros(batch.num_databases)
    for bucket in batch.buckets:
        scores = log_likelihood_by_question(bucket, local, log_partition, support)
        total = total.at[bucket.database].add(scores.sum(axis=1))
    return total
