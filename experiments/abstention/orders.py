"""What each model answers, and in which order it would give the answers up."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int

from bayeslink.decision.rules import joint_mode, threshold
from bayeslink.evaluation.held_out import HeldOut
from bayeslink.evaluation.recovery import exact_match, strict_recall
from bayeslink.inference import make_room
from bayeslink.model.hierarchy import Variant

TASKS = ("exact", "contained")
"""The most probable set is answered, wrong unless it is gold; the tables above 1/2, wrong unless gold is inside."""

STATED = {"exact": "mode", "contained": "cover"}
"""The score that is the model's own probability of being wrong."""

SCORES = ("mode", "cover", "entropy", "product", "max_marginal", "top_marginal")
"""1 - P(mode); 1 - P(gold inside the answer); joint entropy; and from the marginals p alone
1 - prod max(p, 1 - p); max min(p, 1 - p), the least certain table; 1 - max p, the most probable one."""


class Ordering(NamedTuple):
    """One model's answers to one task with one score.

    Attributes:
        model: The variant's name.
        task: One of `TASKS`.
        score: One of `SCORES`.
        uncertainty: The score, larger where the answer is less trusted.
        loss: True where the answer is wrong.
    """

    model: str
    task: str
    score: str
    uncertainty: Float[np.ndarray, " questions"]
    loss: Bool[np.ndarray, " questions"]


class Asked(NamedTuple):
    """The questions in the order of every `Ordering`: database and gold-SQL group of each."""

    databases: tuple[str, ...]
    groups: Int[np.ndarray, " questions"]


def asked(found: Sequence[HeldOut]) -> Asked:
    """The questions of these predictions."""
    names = tuple(item.evidence.db_id for item in found for _ in item.questions)
    return Asked(names, np.concatenate([np.asarray(item.evidence.group) for item in found]))


def orderings(variant: Variant, found: Sequence[HeldOut]) -> list[Ordering]:
    """Every task and score of one model.

    A model without coupling has no joint to take the mode of: its answer to both tasks is the tables above 1/2.
    """
    parts: dict[tuple[str, str], list[np.ndarray]] = {}
    losses: dict[str, list[np.ndarray]] = {}
    for item in found:
        distribution, _ = item.predict()
        gold, marginals = np.asarray(item.evidence.gold), distribution.marginals
        chosen = threshold(distribution)
        mode = chosen if variant.structure.coupling == "zero" else joint_mode(distribution)
        losses.setdefault("exact", []).append(exact_match(mode.chosen, gold) < 0.5)
        losses.setdefault("contained", []).append(strict_recall(chosen.chosen, gold) < 0.5)
        certain = np.maximum(marginals, 1 - marginals)
        for task, answer in (("exact", mode), ("contained", chosen)):
            values = (
                1 - distribution.mode_probability,
                1 - answer.cover_probability,
                distribution.entropy,
                1 - certain.prod(axis=1),
                1 - certain.min(axis=1),
                1 - marginals.max(axis=1),
            )
            for score, value in zip(SCORES, values, strict=True):
                parts.setdefault((task, score), []).append(value)
        make_room()
    # Twelve digits: what differs by rounding alone is a tie.
    return [
        Ordering(variant.value, task, score, np.concatenate(value).round(12), np.concatenate(losses[task]))
        for (task, score), value in parts.items()
    ]
