"""The question to ask the user back: which table's yes or no would help most.

The answer x_t to "does this need table t?" is part of the selection, so that its expected information about the
selection is its own entropy, I(x; x_t) = H(x_t): the most informative question is about the marginal nearest 1/2. What
an answer must mend is the set that is returned, and the chance that this is exactly right after the answer is

    v_t = max over x with x_t = 1 of p(x)  +  max over x with x_t = 0 of p(x),

largest for the tables that separate the most probable subset from its first rival (both terms are one of these); of
these tables the one of largest entropy is asked about. `condition` of a distribution is the posterior after the answer.
"""

from typing import Literal, NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int

from bayeslink.inference.factored import FactoredDistribution
from bayeslink.inference.predictive import SubgraphDistribution

__all__ = ["Clarification", "clarifying_question", "expected_after"]

Distribution = SubgraphDistribution | FactoredDistribution

NUM_LISTED = 200
"""Subsets of a large schema, the most probable ones explored, among which rivals are sought; a count."""


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


def clarifying_question(distribution: Distribution, rule: Literal["rivals", "entropy"] = "rivals") -> Clarification:
    """The table to ask about.

    Args:
        distribution: Posterior predictive of at least one table.
        rule: "rivals" for the largest `after`, ties by the larger gain; "entropy" for the marginal nearest 1/2.

    Raises:
        ValueError: If the rule is another.
    """
    if rule not in ("rivals", "entropy"):
        raise ValueError(f"rule={rule!r}: use rivals or entropy")
    p = distribution.marginals
    gain = _entropy(p)
    after, rival = expected_after(distribution)
    score = gain if rule == "entropy" else np.round(after, 12) + gain * 1e-13
    table = score.argmax(axis=1)
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
    if isinstance(distribution, FactoredDistribution):
        chosen, probability = distribution.top(NUM_LISTED)
    else:
        chosen = np.broadcast_to(distribution.states > 0, (len(distribution.marginals), *distribution.states.shape))
        probability = distribution.probabilities
    mode = distribution.mode
    n = distribution.num_tables
    after, rival = np.empty((len(mode), n)), np.empty((len(mode), n, n), dtype=bool)
    rows = np.arange(len(mode))
    for table in range(n):
        value = np.where(chosen[:, :, table] != mode[:, None, table], probability, -1.0)
        place = value.argmax(axis=1)
        found = value[rows, place]
        turned = mode.copy()
        turned[:, table] = ~turned[:, table]
        rival[:, table] = np.where((found >= 0)[:, None], chosen[rows, place], turned)
        after[:, table] = distribution.mode_probability + np.maximum(found, 0.0)
    return np.minimum(after, 1.0), rival


def _entropy(p: Float[np.ndarray, "questions tables"]) -> Float[np.ndarray, "questions tables"]:
    q = np.clip(p, 1e-300, 1.0)
    r = np.clip(1 - p, 1e-300, 1.0)
    return -(p * np.log(q) + (1 - p) * np.log(r))
