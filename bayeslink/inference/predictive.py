"""The exact distribution over subsets of tables, averaged over posterior draws (MODEL.md section 4).

    p(x* | z*, D) = 1/S sum_s p(x* | z*, G*, theta_s)

Each draw's distribution is exact; so is everything read off their average here, by listing the subsets
of a schema of up to `enumeration.MAX_TABLES` tables. `factored` answers for larger schemas.
"""

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from jaxtyping import Bool, Float, Int

from bayeslink.evidence.channel import Evidence
from bayeslink.inference import enumeration, halves
from bayeslink.inference.exports import DistributionExports
from bayeslink.inference.factored import FactoredDistribution
from bayeslink.inference.posterior import DatabaseDraws
from bayeslink.model.autologistic import Support

__all__ = ["SubgraphDistribution", "predict"]


@dataclass(frozen=True)
class SubgraphDistribution(DistributionExports):
    """Posterior predictive distribution over subsets of one database's tables, for each question.

    Attributes:
        probabilities: p(x) of every subset, in the order of `enumeration.states`; averaged over draws.
        prob_empty: P(no table) of the all-subsets form, whatever the support; the off-topic signal.
        edges: Node positions of each edge.
        support: All subsets, or the non-empty ones.
        exact: True: no approximation given the draws.
    """

    probabilities: Float[np.ndarray, "questions states"]
    prob_empty: Float[np.ndarray, " questions"]
    edges: Int[np.ndarray, "edges 2"]
    support: Support = Support.ALL
    exact: bool = True

    @property
    def num_tables(self) -> int:
        """Number of tables n."""
        return int(self.probabilities.shape[1]).bit_length() - 1

    @cached_property
    def states(self) -> Float[np.ndarray, "states tables"]:
        """All subsets; row k holds the binary digits of k."""
        return enumeration.states(self.num_tables)

    @cached_property
    def marginals(self) -> Float[np.ndarray, "questions tables"]:
        """Probability that each table is needed."""
        return np.clip(self.probabilities @ self.states, 0.0, 1.0)

    @cached_property
    def expected_size(self) -> Float[np.ndarray, " questions"]:
        """E[N], the expected number of needed tables."""
        return self.marginals.sum(axis=1)

    @cached_property
    def pair_marginals(self) -> Float[np.ndarray, "questions edges"]:
        """Probability that both tables of each edge are needed."""
        both = self.states[:, self.edges[:, 0]] * self.states[:, self.edges[:, 1]]
        return self.probabilities @ both

    @cached_property
    def entropy(self) -> Float[np.ndarray, " questions"]:
        """Entropy of the joint distribution over subsets, nats."""
        p = self.probabilities
        return -np.sum(np.where(p > 0, p * np.log(np.where(p > 0, p, 1.0)), 0.0), axis=1)

    @cached_property
    def size_distribution(self) -> Float[np.ndarray, "questions sizes"]:
        """P(N = 0), ..., P(N = n)."""
        sizes = self.states.sum(axis=1).astype(int)
        return np.stack([np.bincount(sizes, weights=row, minlength=self.num_tables + 1) for row in self.probabilities])

    @cached_property
    def mode(self) -> Bool[np.ndarray, "questions tables"]:
        """The most probable subset."""
        return self.states[self.probabilities.argmax(axis=1)] > 0

    @cached_property
    def mode_probability(self) -> Float[np.ndarray, " questions"]:
        """Probability of the most probable subset."""
        return self.probabilities.max(axis=1)

    @property
    def mode_certain(self) -> Bool[np.ndarray, " questions"]:
        """True: every subset was listed."""
        return np.ones(len(self.probabilities), dtype=bool)

    @property
    def unexplored_mass(self) -> Float[np.ndarray, " questions"]:
        """0: every subset was listed."""
        return np.zeros(len(self.probabilities))

    @property
    def entropy_standard_error(self) -> Float[np.ndarray, " questions"]:
        """0: the entropy is a sum over all subsets."""
        return np.zeros(len(self.probabilities))

    @property
    def connected_standard_error(self) -> Float[np.ndarray, " questions"]:
        """0: the probability is a sum over all subsets."""
        return np.zeros(len(self.probabilities))

    def probability_of(self, selection: Bool[np.ndarray, "questions tables"]) -> Float[np.ndarray, " questions"]:
        """Probability of one subset for each question."""
        return np.take_along_axis(self.probabilities, _code(selection)[:, None], axis=1)[:, 0]

    def condition(
        self, table: Int[np.ndarray, " questions"], needed: Bool[np.ndarray, " questions"]
    ) -> "SubgraphDistribution":
        """The distribution given that one table of each question is needed, or is not: subsets that disagree leave.

        `prob_empty` is conditioned too: exactly under the support of all subsets, and under the non-empty one as if
        all draws had the same P(empty), for the draws are not kept apart here.

        Args:
            table: Position of the table.
            needed: Whether it is needed.

        Raises:
            ValueError: If an answer has probability 0.
        """
        agrees = (self.states[:, table].T > 0) == needed[:, None]
        kept = np.where(agrees, self.probabilities, 0.0)
        mass = kept.sum(axis=1)
        if (impossible := np.flatnonzero(mass <= 0)).size:
            raise ValueError(f"table={int(table[impossible[0]])}: this answer has probability 0; leave it out")
        # Of the all-subsets form: P(empty | x_t = 0) = P(empty) / P(x_t = 0). Under the non-empty support P(x_t = 0) is
        # put together from means over draws, which are not kept apart here.
        without = mass if self.support is Support.ALL else self.prob_empty + (1 - self.prob_empty) * mass
        empty = np.where(needed, 0.0, self.prob_empty / np.where(needed, 1.0, without))
        return replace(self, probabilities=kept / mass[:, None], prob_empty=np.clip(empty, 0.0, 1.0))

    def top(
        self, k: int
    ) -> tuple[Bool[np.ndarray, "questions subsets tables"], Float[np.ndarray, "questions subsets"]]:
        """The k most probable subsets and their probabilities, most probable first."""
        k = min(k, self.probabilities.shape[1])
        best = np.argsort(-self.probabilities, axis=1, kind="stable")[:, :k]
        return self.states[best] > 0, np.take_along_axis(self.probabilities, best, axis=1)

    @cached_property
    def covered(self) -> Float[np.ndarray, "questions states"]:
        """P(gold inside S) for every S: sums of p(x) over the subsets x of S, by n halving passes."""
        sums = self.probabilities.copy()
        for table in range(self.num_tables):
            cube = sums.reshape(len(sums), -1, 2, 2**table)
            cube[:, :, 1] += cube[:, :, 0]
        return np.clip(sums, 0.0, 1.0)

    def cover_probability(self, selection: Bool[np.ndarray, "questions tables"]) -> Float[np.ndarray, " questions"]:
        """P(gold inside S) for one S for each question."""
        return np.take_along_axis(self.covered, _code(selection)[:, None], axis=1)[:, 0]

    @cached_property
    def connected_probability(self) -> Float[np.ndarray, " questions"]:
        """Probability that the selection is non-empty and connected in the graph."""
        return self.probabilities @ _connected(self.states, self.edges)


def _code(selection: Bool[np.ndarray, "questions tables"]) -> Int[np.ndarray, " questions"]:
    return selection.astype(np.int64) @ (1 << np.arange(selection.shape[1]))


def _connected(states: Float[np.ndarray, "states tables"], edges: Int[np.ndarray, "edges 2"]) -> np.ndarray:
    """1.0 for each subset whose tables hang together: spread from its lowest table, compare."""
    inside = states > 0
    reached = np.zeros_like(inside)
    some = inside.any(axis=1)
    reached[some, inside[some].argmax(axis=1)] = True
    for _ in range(states.shape[1]):
        for first, second in edges:
            both = inside[:, first] & inside[:, second]
            touched = both & (reached[:, first] | reached[:, second])
            reached[touched, first] = True
            reached[touched, second] = True
    return (some & (reached == inside).all(axis=1)).astype(np.float64)


def predict(
    evidence: Evidence, draws: DatabaseDraws, support: Support = Support.ALL
) -> tuple[SubgraphDistribution | FactoredDistribution, Float[np.ndarray, " questions"] | None]:
    """The predictive distribution of each question, and the log score of its gold where there is gold.

    The log score, log of the mean over draws of p(gold), is computed in logs apart from the table of
    probabilities, so that a very improbable gold subset keeps a finite score.

    Args:
        evidence: Standardised evidence of one database.
        draws: Draws of its parameters, from `Posterior.seen` or `Posterior.unseen`.
        support: The posterior's support.

    Returns:
        The distribution, listed subset by subset up to `enumeration.MAX_TABLES` tables and by elimination
        beyond, and the log scores.

    Raises:
        ValueError: If a large schema's graph is too densely joined for elimination.
    """
    if evidence.num_tables > enumeration.MAX_TABLES:
        factored = FactoredDistribution(evidence.values, evidence.edges, draws, support)
        if evidence.gold is None:
            return factored, None
        found = factored.log_probability_of(list(evidence.gold[:, None]))
        return factored, np.array([float(scores[0]) for scores in found])
    plan, num_boundary = halves.plan(evidence.edges, evidence.num_tables)
    gold = None if evidence.gold is None else _code(evidence.gold)
    found = halves.average(evidence.values, plan, draws, gold, num_boundary, support)
    probabilities, empties, scores = map(np.asarray, found)
    distribution = SubgraphDistribution(probabilities, empties, evidence.edges, support)
    return distribution, None if evidence.gold is None else scores
