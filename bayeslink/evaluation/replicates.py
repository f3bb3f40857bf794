"""Selections replicated by the fitted model, against the gold selections of its training databases.

    p-value = 2 min(P(T_rep >= T), P(T_rep <= T))     T: mean of N or of M over a database's questions

(Gelman, Meng & Stern 1996), each tail as (1 + hits) / (1 + replicates). The data are used twice: alpha_d is
fitted to N and beta_d to M, so that the p-values of `hierarchical` lean towards 1; a variant without a
coupling of its own is free to fail on M.
"""

from collections.abc import Iterator, Sequence
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from bayeslink.evaluation.comparison import LEVEL
from bayeslink.evidence.channel import Evidence
from bayeslink.inference import elimination, enumeration, queries
from bayeslink.inference.posterior import DatabaseDraws, Posterior
from bayeslink.model.autologistic import Support, num_joined_pairs, num_selected, unary_log_odds

__all__ = ["STATISTICS", "PredictiveCheck", "gold_counts", "predictive_check", "training_draws"]

STATISTICS = ("num_selected", "num_joined_pairs")
"""What a predictive check compares: N, and M, the number of edges inside the selection."""

CELLS_AT_ONCE = 2**22
"""Largest number of numbers that one step holds in memory."""


class PredictiveCheck(NamedTuple):
    """A statistic of one database's gold selections against its replicates, per question.

    Attributes:
        database: "dataset/db_id".
        statistic: One of `STATISTICS`.
        questions: Number of questions.
        observed: Mean over the questions of the gold selections.
        predicted: Mean over replicates.
        lower: Lower bound of the replicates' 95 % interval.
        upper: Upper bound.
        p_value: Two-sided posterior predictive p-value.
        inside: Whether the interval holds the observed mean.
    """

    database: str
    statistic: str
    questions: int
    observed: float
    predicted: float
    lower: float
    upper: float
    p_value: float
    inside: bool


def predictive_check(
    posterior: Posterior, evidences: Sequence[Evidence], rng: np.random.Generator, num_replicates: int = 1000
) -> list[PredictiveCheck]:
    """Mean N and mean M of each training database against replicates of its selections.

    A replicate takes one draw of the parameters and one exact sample of the selection for every question, by
    listing the subsets of schemas up to `enumeration.MAX_TABLES` tables and by elimination beyond.

    Args:
        posterior: Draws with the databases' own parameters.
        evidences: Raw evidence with gold of training databases.
        rng: Source of the replicates.
        num_replicates: Number of replicates.

    Raises:
        ValueError: As `pointwise_log_likelihood`, if there is no replicate, or if the support is the non-empty
            one and a schema is too large to list.
    """
    if num_replicates < 1:
        raise ValueError(f"num_replicates={num_replicates}: at least one replicate is needed")
    rows = []
    for evidence, _, draws in training_draws(posterior, evidences):
        taken = np.resize(rng.permutation(posterior.num_draws), num_replicates)
        key = jax.random.key(int(rng.integers(2**31)))
        drawn = _replicates(key, evidence, jax.tree.map(lambda site, t=taken: site[t], draws), posterior.support)
        observed = gold_counts(evidence).mean(axis=0)
        lower, upper = np.quantile(drawn, [(1 - LEVEL) / 2, (1 + LEVEL) / 2], axis=0)
        # A mean of counts is rounded differently by each order of summing.
        above = (drawn >= observed - 1e-9).sum(axis=0)
        below = (drawn <= observed + 1e-9).sum(axis=0)
        p_value = np.minimum(1.0, 2 * (1 + np.minimum(above, below)) / (1 + num_replicates))
        inside = (lower - 1e-9 <= observed) & (observed <= upper + 1e-9)
        for i, statistic in enumerate(STATISTICS):
            numbers = (float(column[i]) for column in (observed, drawn.mean(axis=0), lower, upper, p_value))
            rows.append(
                PredictiveCheck("/".join(evidence.key), statistic, evidence.num_questions, *numbers, bool(inside[i]))
            )
    return rows


def training_draws(
    posterior: Posterior, evidences: Sequence[Evidence]
) -> Iterator[tuple[Evidence, Float[np.ndarray, "questions tables"], DatabaseDraws]]:
    """Standardised evidence of each database, its gold and the draws of its own parameters.

    Args:
        posterior: Draws with the databases' own parameters.
        evidences: Raw evidence with gold of training databases.

    Raises:
        ValueError: If a database was not in the fit, or has no question or no gold.
    """
    for raw in evidences:
        if raw.gold is None or not len(raw.gold):
            raise ValueError(f"evidence of {raw.key} has no gold selections: there is nothing to check")
        evidence = posterior.standardisation.apply(raw)
        draws = jax.tree.map(jnp.asarray, posterior.seen(raw.key, evidence))
        yield evidence, raw.gold.astype(np.float64), draws


def gold_counts(evidence: Evidence) -> Float[np.ndarray, "questions statistics"]:
    """N and M of each question's gold selection."""
    return np.asarray(_counts(jnp.asarray(evidence.gold, dtype=jnp.float64), jnp.asarray(evidence.edges)))


def _counts(selection: Float[Array, "*questions tables"], edges: Array) -> Float[Array, "*questions statistics"]:
    return jnp.stack([num_selected(selection), num_joined_pairs(selection, edges).sum(axis=-1)], axis=-1)


def _replicates(
    key: Array, evidence: Evidence, draws: DatabaseDraws, support: Support
) -> Float[np.ndarray, "replicates statistics"]:
    """Mean N and M over the questions of exact samples, one sample of every question for each draw."""
    plan, cells = _plan(evidence, support)
    size, total = max(1, CELLS_AT_ONCE // cells), np.zeros((len(draws.intercept), len(STATISTICS)))
    for start in range(0, evidence.num_questions, size):
        values = jnp.asarray(evidence.values[start : start + size])
        keys = jax.random.split(jax.random.fold_in(key, start), len(total))
        total += np.asarray(_sampled_counts(keys, values, jnp.asarray(evidence.edges), plan, draws, support))
    return total / evidence.num_questions


def _plan(evidence: Evidence, support: Support) -> tuple[enumeration.StatePlan | elimination.Plan, int]:
    """The solver's plan of a database and how many numbers a question takes."""
    if evidence.num_tables <= enumeration.MAX_TABLES:
        return enumeration.plan(evidence.edges, evidence.num_tables), 2**evidence.num_tables
    if support is Support.NON_EMPTY:
        raise ValueError(
            f"database={evidence.key} has {evidence.num_tables} tables: non-empty selections are replicated up to "
            f"{enumeration.MAX_TABLES}; fit with Support.ALL"
        )
    plan = elimination.plan(evidence.edges, evidence.num_tables)
    return plan, len(plan.table) << elimination.width_of(plan)


@partial(jax.jit, static_argnames="support")
def _sampled_counts(
    keys: Array,
    values: Array,
    edges: Array,
    plan: enumeration.StatePlan | elimination.Plan,
    draws: DatabaseDraws,
    support: Support,
) -> Float[Array, "draws statistics"]:
    """Sums of N and M over the questions."""

    def one(item: tuple[Array, DatabaseDraws]) -> Array:
        key, draw = item
        unary = unary_log_odds(values, draw.intercept, jnp.asarray(draw.slopes))
        if isinstance(plan, enumeration.StatePlan):
            log_probs = enumeration.log_probabilities(unary, plan, draw.coupling)
            if support is Support.NON_EMPTY:
                log_probs = log_probs.at[:, 0].set(-jnp.inf)
            found = jnp.asarray(plan.states)[jax.random.categorical(key, log_probs)]
        else:
            gain = elimination.separator_gain(plan, jnp.asarray(draw.coupling))
            found = queries.sample(key, unary.T, plan, gain).T.astype(jnp.float64)
        return _counts(found, edges).sum(axis=0)

    return jax.lax.map(one, (keys, draws))
