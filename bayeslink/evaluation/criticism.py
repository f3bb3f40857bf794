"""Leave-one-out and leave-one-database-out densities of the variants, and their comparison.

    elpd_loo  = sum_q log p(y_q | all other questions)          a new question of a known database
    elpd_lodo = sum_d sum_{q in d} log p(y_q | all other databases)     a database never seen

The first by Pareto smoothed importance sampling (Vehtari, Gelman & Gabry 2017), which takes the draws for draws
of the posterior: for a Laplace fit it is as good as the fit. Its standard errors take questions as independent;
the differences between databases left out are clustered. `predictive_check` stands in `replicates`.
"""

import warnings
from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr
from jaxtyping import Array, Float

from bayeslink.evaluation.comparison import paired_difference
from bayeslink.evaluation.replicates import (
    CELLS_AT_ONCE,
    STATISTICS,
    PredictiveCheck,
    gold_counts,
    predictive_check,
    training_draws,
)
from bayeslink.evaluation.scores import Predicted
from bayeslink.evidence.channel import Evidence
from bayeslink.inference import elimination
from bayeslink.inference.posterior import DatabaseDraws, Posterior
from bayeslink.model.autologistic import Support, energy, log_normaliser, unary_log_odds
from bayeslink.model.hierarchy import Variant

if TYPE_CHECKING:
    from arviz import InferenceData

__all__ = [
    "PARETO_LIMIT",
    "DatabaseLeftOut",
    "LeaveOneOut",
    "PredictiveCheck",
    "leave_one_database_out_table",
    "leave_one_out",
    "pointwise_log_likelihood",
    "predictive_check",
    "to_inference_data",
]

PARETO_LIMIT = 0.7
"""Above this Pareto k a question's leave-one-out density is not to be trusted."""


class LeaveOneOut(NamedTuple):
    """PSIS leave-one-out of one variant, nats, and its place among the variants compared.

    Attributes:
        variant: The variant.
        questions: Number of questions.
        databases: Number of databases.
        elpd_loo: Expected log predictive density, summed over questions.
        se: Its standard error, questions taken as independent.
        p_loo: Effective number of parameters.
        worst_k: Largest Pareto k of a question.
        share_k_above: Share of questions with k above `PARETO_LIMIT`.
        rank: 0 for the best variant.
        elpd_diff: elpd_loo of the best variant minus this one's.
        dse: Standard error of that difference, questions taken as independent.
        weight: Stacking weight.
    """

    variant: Variant
    questions: int
    databases: int
    elpd_loo: float
    se: float
    p_loo: float
    worst_k: float
    share_k_above: float
    rank: int
    elpd_diff: float
    dse: float
    weight: float


class DatabaseLeftOut(NamedTuple):
    """Log predictive density of a database left out of the fit, or of all of them, nats.

    Attributes:
        variant: The variant.
        database: "dataset/db_id", or "all".
        questions: Number of questions.
        databases: Number of databases.
        elpd: Sum of the questions' log scores.
        difference: Mean over questions of `hierarchical` minus this variant.
        lower: Lower bound of its clustered 95 % interval.
        upper: Upper bound.
    """

    variant: Variant
    database: str
    questions: int
    databases: int
    elpd: float
    difference: float
    lower: float
    upper: float


def pointwise_log_likelihood(
    posterior: Posterior, evidences: Sequence[Evidence]
) -> Float[np.ndarray, "draws questions"]:
    """Log p(y_q | z_q, G_d, theta_d) of every training question under every draw, nats; exact, by elimination.

    Args:
        posterior: Draws with the databases' own parameters.
        evidences: Raw evidence with gold of training databases; their questions follow one another.

    Raises:
        ValueError: If there is none, a database was not in the fit, or gold is missing.
    """
    if not evidences:
        raise ValueError("evidences is empty: give the training databases of the posterior")
    columns = []
    for evidence, gold, draws in training_draws(posterior, evidences):
        plan = elimination.plan(evidence.edges, evidence.num_tables)
        size = max(1, CELLS_AT_ONCE // (len(plan.table) << elimination.width_of(plan)))
        for start in range(0, evidence.num_questions, size):
            part = slice(start, start + size)
            arrays = (jnp.asarray(evidence.values[part]), jnp.asarray(gold[part]), jnp.asarray(evidence.edges))
            columns.append(np.asarray(_log_likelihood(*arrays, plan, draws, posterior.support)))
    return np.concatenate(columns, axis=1)


def to_inference_data(posterior: Posterior, evidences: Sequence[Evidence]) -> "InferenceData":
    """The draws with the log-likelihood of each question and what was observed, as ArviZ InferenceData.

    The coordinate `question` is "dataset/db_id/number", and `database` gives each question's database.

    Args:
        posterior: Draws with the databases' own parameters.
        evidences: Raw evidence with gold of training databases.

    Raises:
        ValueError: As `pointwise_log_likelihood`.
    """
    scores = pointwise_log_likelihood(posterior, evidences)
    names = ["/".join(item.key) for item in evidences]
    coords = {
        "question": [
            f"{name}/{i}" for name, item in zip(names, evidences, strict=True) for i in range(item.num_questions)
        ],
        "database": ("question", np.repeat(names, [item.num_questions for item in evidences])),
    }
    counts = np.concatenate([gold_counts(item) for item in evidences])
    data = posterior.to_arviz()
    data.add_groups(
        log_likelihood=xr.Dataset({"gold": (("chain", "draw", "question"), scores[None])}, coords).assign_coords(
            chain=data["posterior"]["chain"], draw=data["posterior"]["draw"]
        ),
        observed_data=xr.Dataset({name: ("question", counts[:, i]) for i, name in enumerate(STATISTICS)}, coords),
    )
    return data


def leave_one_out(posteriors: Mapping[Variant, Posterior], evidences: Sequence[Evidence]) -> list[LeaveOneOut]:
    """PSIS leave-one-out of each variant and their comparison, the best variant first.

    Args:
        posteriors: Fits of the variants on these very questions.
        evidences: Raw evidence with gold, all of the fits' training data.

    Raises:
        ValueError: As `pointwise_log_likelihood`, if there is no posterior, if a fit had another number of
            questions, or if a gold selection is impossible under the support.
    """
    import arviz as az

    questions, found = sum(item.num_questions for item in evidences), {}
    for variant, posterior in posteriors.items():
        if (fitted := posterior.info.get("num_questions", questions)) != questions:
            raise ValueError(f"evidences hold {questions} questions, {variant.value} was fitted on {fitted}")
        data = to_inference_data(posterior, evidences)
        if not np.isfinite(data["log_likelihood"]["gold"]).all():
            raise ValueError(f"{variant.value}: an empty gold selection has probability 0; fit with Support.ALL")
        with warnings.catch_warnings():
            # The table tells of every k that is too large.
            warnings.filterwarnings("ignore", "Estimated shape parameter of Pareto", UserWarning)
            found[variant.value] = az.loo(data, pointwise=True, var_name="gold", scale="log")
    if not found:
        raise ValueError("posteriors is empty: give at least one variant")
    with warnings.catch_warnings():
        # ArviZ 0.23 sorts in place, which pandas 3 announces to end.
        warnings.filterwarnings("ignore", "The inplace keyword", DeprecationWarning)
        table = az.compare(found, method="stacking")
    rows = []
    for name, row in table.iterrows():
        shapes = np.asarray(found[name]["pareto_k"])
        numbers = {field: float(row[field]) for field in ("elpd_loo", "se", "p_loo", "elpd_diff", "dse", "weight")}
        numbers |= {"worst_k": float(shapes.max()), "share_k_above": float((shapes > PARETO_LIMIT).mean())}
        rows.append(LeaveOneOut(Variant(str(name)), questions, len(evidences), rank=int(row["rank"]), **numbers))
    return rows


def leave_one_database_out_table(
    predictions: Mapping[Variant, Sequence[Predicted]], rng: np.random.Generator, num_resamples: int = 2000
) -> list[DatabaseLeftOut]:
    """Each variant's log predictive density of all databases and of each, with `hierarchical`'s gain over it.

    Args:
        predictions: Predictions of `schemes.leave_one_database_out` by variant, databases in the same order.
        rng: Source of the resamples.
        num_resamples: Bootstrap resamples behind an interval.

    Raises:
        ValueError: If `hierarchical` is missing or two variants are not about the same questions.
    """
    if Variant.HIERARCHICAL not in predictions:
        raise ValueError(
            f"predictions of {[v.value for v in predictions]}: `hierarchical` is what others are set against"
        )
    best = predictions[Variant.HIERARCHICAL]
    rows = []
    for variant, items in predictions.items():
        if [(item.key, len(item.gold)) for item in items] != [(item.key, len(item.gold)) for item in best]:
            raise ValueError(f"{variant.value} and hierarchical differ in databases or questions; predict the same")
        parts = [("all", slice(None)), *(("/".join(item.key), slice(i, i + 1)) for i, item in enumerate(items))]
        for name, part in parts:
            first, second = (np.concatenate([item.log_score for item in found[part]]) for found in (best, items))
            keys = [item.key for item in items[part] for _ in item.group]
            groups = np.concatenate([item.group for item in items[part]])
            gain = paired_difference(first, second, keys, groups, num_resamples, rng)
            rows.append(DatabaseLeftOut(variant, name, len(first), len(items[part]), float(second.sum()), *gain))
    return rows


@partial(jax.jit, static_argnames="support")
def _log_likelihood(
    values: Array, gold: Array, edges: Array, plan: elimination.Plan, draws: DatabaseDraws, support: Support
) -> Float[Array, "draws questions"]:
    def one(draw: DatabaseDraws) -> Array:
        unary = unary_log_odds(values, draw.intercept, jnp.asarray(draw.slopes))
        log_z = elimination.log_partition(unary, plan, draw.coupling)
        scores = energy(gold, unary, edges, draw.coupling) - log_normaliser(log_z, support)
        return jnp.where(gold.any(axis=-1), scores, -jnp.inf) if support is Support.NON_EMPTY else scores

    return jax.lax.map(one, draws)
