"""Relevant tables that match their question only weakly, and how many of them a selection recovers.

MODEL.md section 8. A gold table is weakly-signalled when the independent selector, fitted on other questions, gives
it a probability below 1/2; a structural connector when it also has at least two gold neighbours. What selects more
recovers more, so methods are compared at one mean set size: `matched_threshold` moves a method's common threshold,
without labels, until its mean set size is the wanted one.
"""

from collections.abc import Hashable, Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int

from bayeslink.evaluation.comparison import Interval, clustered_bootstrap

__all__ = [
    "CUT",
    "Matched",
    "Recovered",
    "matched_threshold",
    "recovered",
    "share_recovered",
    "structural_connectors",
    "weakly_signalled",
]

CUT = 0.5
"""Probability below which a gold table is weakly-signalled, and above which a table is selected."""

Sets = Bool[np.ndarray, "questions tables"]
ManySets = Sequence[Bool[np.ndarray, "_ _"]]
"""One array per database, axes questions and tables."""


class Matched(NamedTuple):
    """A common threshold: tables of a greater probability are selected.

    Attributes:
        threshold: The threshold; minus infinity where every table is selected.
        mean_size: Mean number of tables selected for a question.
    """

    threshold: float
    mean_size: float


class Recovered(NamedTuple):
    """Counts over (question, table) pairs.

    Attributes:
        weak: Weakly-signalled tables.
        weak_recovered: Those among them that are selected.
        connectors: Structural connectors.
        connectors_recovered: Those among them that are selected.
    """

    weak: int
    weak_recovered: int
    connectors: int
    connectors_recovered: int


def weakly_signalled(independent: Float[np.ndarray, "questions tables"], gold: Sets) -> Sets:
    """Gold tables to which the independent selector gives a probability below 1/2.

    Args:
        independent: Its probabilities, from a fit that has not seen the questions.
        gold: The gold tables.

    Raises:
        ValueError: If shapes disagree or a probability is not one.
    """
    if independent.shape != gold.shape:
        raise ValueError(f"independent {independent.shape} and gold {gold.shape} differ; give the same questions")
    if not ((independent >= 0) & (independent <= 1)).all():
        raise ValueError("independent holds values outside [0, 1]; give probabilities, not log-odds")
    return gold & (independent < CUT)


def structural_connectors(weak: Sets, gold: Sets, edges: Int[np.ndarray, "edges 2"]) -> Sets:
    """Weakly-signalled tables with at least two gold neighbours.

    Args:
        weak: The weakly-signalled tables.
        gold: The gold tables.
        edges: Node positions of each edge of the real graph, each pair once.

    Raises:
        ValueError: If shapes disagree.
    """
    if weak.shape != gold.shape:
        raise ValueError(f"weak {weak.shape} and gold {gold.shape} differ; give the same questions")
    neighbours = np.zeros(gold.shape, dtype=int)
    for first, second in edges:
        neighbours[:, first] += gold[:, second]
        neighbours[:, second] += gold[:, first]
    return weak & (neighbours >= 2)


def recovered(chosen: ManySets, weak: ManySets, connectors: ManySets) -> Recovered:
    """How many weakly-signalled tables and structural connectors a selection holds.

    Args:
        chosen: The selected tables, one array per database.
        weak: The weakly-signalled tables of the same questions.
        connectors: The structural connectors of the same questions.

    Raises:
        ValueError: If there is not one array per database in each.
    """
    if not len(chosen) == len(weak) == len(connectors):
        raise ValueError(f"{len(chosen)}, {len(weak)} and {len(connectors)} databases; give the same ones")
    counts = [
        (w.sum(), (c & w).sum(), k.sum(), (c & k).sum()) for c, w, k in zip(chosen, weak, connectors, strict=True)
    ]
    return Recovered(*np.array(counts).reshape(-1, 4).sum(axis=0).tolist())


def matched_threshold(marginals: Sequence[Float[np.ndarray, "_ _"]], mean_size: float) -> Matched:
    """The common threshold at which the mean set size is nearest to the wanted one; no labels are used.

    Tables of equal probability enter together. So not every size can be had; of two equally near sizes the smaller
    is taken.

    Args:
        marginals: Probabilities of the tables, one array per database, axes questions and tables.
        mean_size: Wanted mean number of tables for a question.

    Raises:
        ValueError: If there is no question, or the size is not between 0 and the mean number of tables.
    """
    questions = sum(len(item) for item in marginals)
    if not questions:
        raise ValueError("marginals hold no question; a threshold needs at least one")
    values, sizes = np.unique(np.concatenate([item.ravel() for item in marginals]), return_counts=True)
    thresholds = np.concatenate([[-np.inf], values])[::-1]
    totals = np.concatenate([[0], np.cumsum(sizes[::-1])])
    wanted = mean_size * questions
    if not 0 <= wanted <= totals[-1]:
        raise ValueError(f"mean_size={mean_size}: sizes from 0 to {totals[-1] / questions:g} can be had")
    best = int(np.abs(totals - wanted).argmin())
    return Matched(float(thresholds[best]), float(totals[best] / questions))


def share_recovered(
    count: Int[np.ndarray, " questions"],
    weak: Int[np.ndarray, " questions"],
    databases: Sequence[Hashable],
    groups: Int[np.ndarray, " questions"],
    num_resamples: int,
    rng: np.random.Generator,
) -> Interval:
    """Sum of counts over the number of weak tables, with its clustered 95 % interval.

    A resample without a weak table counts 0.

    Args:
        count: For each question the recovered tables of one method, or one method's less another's.
        weak: The question's weak tables, of the kind that is counted.
        databases: Database of each question.
        groups: Number of each question's gold SQL, counted inside its database.
        num_resamples: Number of resamples.
        rng: Source of the resamples.

    Raises:
        ValueError: As `clustered_bootstrap`.
    """
    both = np.stack([count, weak], axis=1).astype(np.float64)
    return clustered_bootstrap(
        both, databases, groups, num_resamples, rng, lambda rows: rows[:, 0].sum() / max(rows[:, 1].sum(), 1.0)
    )
