"""All scores of one variant on one set of questions, by the names and definitions of the result contract."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float, Int

from bayeslink.decision.rules import joint_mode, threshold
from bayeslink.decision.sets import smallest_cover
from bayeslink.evaluation import calibration, ranking, recovery
from bayeslink.inference.factored import FactoredDistribution
from bayeslink.inference.predictive import SubgraphDistribution

__all__ = ["COVER_LEVELS", "Predicted", "predicted", "score"]

COVER_LEVELS = (0.80, 0.90, 0.95, 0.98)


@dataclass(frozen=True)
class Predicted:
    """What one variant predicted for the questions of one database.

    Attributes:
        key: (dataset, db_id).
        gold: Gold selection.
        marginals: Probability of each table.
        selected: Tables with probability above 1/2.
        mode: The joint mode.
        log_score: Log probability of gold, nats.
        covers: The smallest cover at each of `COVER_LEVELS`.
        group: Number of each question's gold SQL inside the database, the cluster of the bootstrap.
    """

    key: tuple[str, str]
    gold: Bool[np.ndarray, "questions tables"]
    marginals: Float[np.ndarray, "questions tables"]
    selected: Bool[np.ndarray, "questions tables"]
    mode: Bool[np.ndarray, "questions tables"]
    log_score: Float[np.ndarray, " questions"]
    covers: tuple[Bool[np.ndarray, "questions tables"], ...]
    group: Int[np.ndarray, " questions"]


def predicted(
    key: tuple[str, str],
    distribution: SubgraphDistribution | FactoredDistribution,
    gold: Bool[np.ndarray, "questions tables"],
    log_score: Float[np.ndarray, " questions"],
    group: Int[np.ndarray, " questions"] | None = None,
) -> Predicted:
    """The parts of a predictive distribution that are scored; without `group` every question is its own."""
    return Predicted(
        key,
        gold,
        distribution.marginals,
        threshold(distribution).chosen,
        joint_mode(distribution).chosen,
        log_score,
        tuple(smallest_cover(distribution, level).chosen for level in COVER_LEVELS),
        np.arange(len(gold)) if group is None else group,
    )


def score(items: Sequence[Predicted]) -> dict[str, float | dict[str, dict[str, float]]]:
    """Scores over all questions of all databases, by the contract's names.

    Means over questions are macro; ece, brier, mean_shift and marginal_log_score are pooled over
    (question, table) pairs.

    Raises:
        ValueError: If there is no question.
    """
    if not sum(len(item.gold) for item in items):
        raise ValueError("items hold no question: there is nothing to score")

    def mean(values: list[np.ndarray]) -> float:
        return float(np.concatenate(values).mean())

    probability = np.concatenate([item.marginals.ravel() for item in items])
    outcome = np.concatenate([item.gold.ravel() for item in items]).astype(np.float64)
    precision = mean([recovery.precision(item.selected, item.gold) for item in items])
    recall = mean([recovery.recall(item.selected, item.gold) for item in items])
    return {
        "map": mean([ranking.average_precision(item.marginals, item.gold) for item in items]),
        "precision": precision,
        "recall": recall,
        "f1": recovery.f1(precision, recall),
        "strict_recall": mean([recovery.strict_recall(item.selected, item.gold) for item in items]),
        "exact_match": mean([recovery.exact_match(item.mode, item.gold) for item in items]),
        "mean_size": mean([item.selected.sum(axis=1) for item in items]),
        "all_gold_at_3": mean([ranking.all_gold_at_k(item.marginals, item.gold, 3) for item in items]),
        "all_gold_at_5": mean([ranking.all_gold_at_k(item.marginals, item.gold, 5) for item in items]),
        "ece": calibration.calibration_error(probability, outcome),
        "brier": calibration.brier(probability, outcome),
        "mean_shift": calibration.mean_shift(probability, outcome),
        "marginal_log_score": calibration.marginal_log_score(probability, outcome),
        "joint_log_score": mean([item.log_score for item in items]),
        "cover": {
            f"{level:.2f}": {
                "coverage": mean([recovery.strict_recall(item.covers[i], item.gold) for item in items]),
                "mean_size": mean([item.covers[i].sum(axis=1) for item in items]),
            }
            for i, level in enumerate(COVER_LEVELS)
        },
    }
