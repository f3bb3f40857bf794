"""The question to ask the user back: which table's yes or no would help most.

The answer x_t to "does this need table t?" is part of the selection, so that its expected information about the
selection is its own entropy, I(x; x_t) = H(x_t): the most informative question is about the marginal nearest 1/2. What
an answer must mend is the set that is returned, and the chance that this is exactly right after the answer is

    v_t = max over x with x_t = 1 of p(x)  +  max over x with x_t = 0 of p(x),

largest for the tables that separate the most probable subset from the second most probable (the two terms are these);
of those the one of largest entropy. Either way the table comes with the pair that it separates: the most probable
subset, and the most probable one that disagrees about the table. `condition` of a distribution is the posterior after
the answer.
"""

from typing import Literal, NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int

from bayeslink.inference.factored import FactoredDistribution
from bayeslink.inference.predictive import SubgraphDistribution

__all__ = ["Clarification", "clarifying_question", "expected_after"]

Distribution = SubgraphDistribution | FactoredDistribution


class Clarification(NamedTuple):
    """One table to ask about for each question.

    Attributes:
        table: Its position.
        probability: P(it is needed).
        gain: Expected information of the answer about the whole selection, nats.
        before: P(the most probable subset is exactly right), without asking.
        after: The same once the answer is known, in expectation over the answer.
        rivals: The most probable subset, and the most probable one that disagrees about the table.
        rival_probability: Their probabilities.
    """

    table: Int[np.ndarray, " questions"]
    probability: Float[np.ndarray, " questions"]
    gain: Float[np.ndarray, " questions"]
    before: Float[np.ndarray, " questions"]
    after: Float[np.ndarray, " questions"]
    rivals: Bool[np.ndarray, "questions 2 tables"]
    rival_probability: Float[np.ndarray, "questions 2"]


def clarifying_question(distribution: Distribution, rule: Literal["rivals", "entropy"] = "entropy") -> Clarification:
    """The table to ask about.

    Args:
        distribution: Posterior predictive of at least one table.
        rule: "entropy" for the largest gain, the marginal nearest 1/2; "rivals" for the largest `after`, of equal ones
            the larger gain. On the benchmarks the two do equally well (`experiments/clarification`).

    Raises:
        ValueError: If the rule is another.
    """
    if rule not in ("rivals", "entropy"):
        raise ValueError(f"rule={rule!r}: use rivals or entropy")
    p = distribution.marginals
    gain = _entropy(p)
    after, rival = expected_after(distribution)
    helps = np.where(after >= after.max(axis=1, keepdims=True) - 1e-12, gain, -1.0)
    table = (gain if rule == "entropy" else helps).argmax(axis=1)
    rows = np.arange(len(p))
    rivals = np.stack([distribution.mode, rival[rows, table]], axis=1)
    before = distribution.mode_probability
    return Clarification(
        table,
        p[rows, table],
        gain[rows, table],
        before,
        after[rows, table],
        rivals,
        np.stack([before, after[rows, table] - before], axis=1),
    )


def expected_after(
    distribution: Distribution,
) -> tuple[Float[np.ndarray, "questions tables"], Bool[np.ndarray, "questions tables tables"]]:
    """v_t above of every table, and the most probable subset that disagrees with the mode about it.

    On a schema too large to list, among the most probable subsets explored; a table about which all of these agree
    has the probability of the mode, and the mode with that table turned as its rival.
    """
    mode, best = distribution.mode, distribution.mode_probability
    after, rival = np.empty(mode.shape), np.empty((*mode.shape, mode.shape[1]), dtype=bool)
    for question, first in enumerate(mode):
        if isinstance(distribution, FactoredDistribution):
            chosen, probability = distribution.explored(question)
        else:
            chosen, probability = distribution.states > 0, distribution.probabilities[question]
        value = np.where(chosen != first, probability[:, None], -1.0)
        place = value.argmax(axis=0)
        found = value[place, np.arange(len(first))]
        turned = first ^ np.eye(len(first), dtype=bool)
        rival[question] = np.where((found >= 0)[:, None], chosen[place], turned)
        after[question] = np.minimum(best[question] + np.maximum(found, 0.0), 1.0)
    return after, rival


def _entropy(p: Float[np.ndarray, "questions tables"]) -> Float[np.ndarray, "questions tables"]:
    q = np.clip(p, 1e-300, 1.0)
    r = np.clip(1 - p, 1e-300, 1.0)
    return -(p * np.log(q) + (1 - p) * np.log(r))
