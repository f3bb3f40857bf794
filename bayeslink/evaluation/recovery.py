"""Scores of a selected set against gold, macro over questions (each question counts once)."""

import numpy as np
from jaxtyping import Bool, Float

__all__ = ["exact_match", "f1", "precision", "recall", "strict_recall"]

Sets = Bool[np.ndarray, "questions tables"]


def precision(chosen: Sets, gold: Sets) -> Float[np.ndarray, " questions"]:
    """Share of the selected tables that are gold; an empty selection counts 0."""
    return (chosen & gold).sum(axis=1) / np.maximum(chosen.sum(axis=1), 1)


def recall(chosen: Sets, gold: Sets) -> Float[np.ndarray, " questions"]:
    """Share of the gold tables that are selected."""
    return (chosen & gold).sum(axis=1) / np.maximum(gold.sum(axis=1), 1)


def f1(mean_precision: float, mean_recall: float) -> float:
    """Harmonic mean of the two macro means; 0 when both are 0."""
    total = mean_precision + mean_recall
    return 2 * mean_precision * mean_recall / total if total > 0 else 0.0


def strict_recall(chosen: Sets, gold: Sets) -> Float[np.ndarray, " questions"]:
    """1 where every gold table is selected."""
    return (chosen | ~gold).all(axis=1).astype(np.float64)


def exact_match(chosen: Sets, gold: Sets) -> Float[np.ndarray, " questions"]:
    """1 where the selection equals gold."""
    return (chosen == gold).all(axis=1).astype(np.float64)
