"""Selections that maximise an expectation over the joint distribution: F1, and the utility of covering at a cost.

With N the number of needed tables,

    E F1(S) = sum over t in S of D_t(|S|),   D_t(k) = sum over s of 2 P(x_t = 1, N = s) / (k + s)
    E F1(empty) = P(N = 0)

so the best set of k tables has the k largest D_t(k), and the best of all is found among n + 1 candidates: exact for
any joint distribution, from n^2 numbers (Dembczynski, Waegeman, Cheng & Huellermeier 2011). The expected utility of a
set is P(gold inside S) - sum of the costs of its tables, with a covering answer worth 1.
"""

import numpy as np
from jaxtyping import Float

from bayeslink.decision.selection import Selection
from bayeslink.inference.factored import FactoredDistribution
from bayeslink.inference.predictive import SubgraphDistribution

__all__ = ["max_expected_f1", "max_expected_utility"]

Distribution = SubgraphDistribution | FactoredDistribution


def max_expected_f1(distribution: Distribution) -> tuple[Selection, Float[np.ndarray, " questions"]]:
    """The set of largest expected F1, and its expected F1.

    Exact where subsets are listed; on a larger schema P(x_t = 1, N = s) is the share of exact samples.
    """
    together = _with_size(distribution)
    sizes = np.arange(together.shape[2])
    chosen = np.zeros(together.shape[:2], dtype=bool)
    best = distribution.size_distribution[:, 0].copy()
    rows = np.arange(len(chosen))[:, None]
    for k in range(1, distribution.num_tables + 1):
        gain = together @ (2 / (k + sizes))
        top = np.argsort(-gain, axis=1, kind="stable")[:, :k]
        value = gain[rows, top].sum(axis=1)
        better = value > best + 1e-12
        taken = np.zeros_like(chosen)
        np.put_along_axis(taken, top, True, axis=1)
        chosen = np.where(better[:, None], taken, chosen)
        best = np.where(better, value, best)
    rule = "expected F1" if isinstance(distribution, SubgraphDistribution) else "expected F1 of samples"
    nothing = np.zeros(len(chosen), dtype=bool)
    return Selection(chosen, nothing, rule, distribution.cover_probability(chosen)), np.minimum(best, 1.0)


def max_expected_utility(
    distribution: Distribution, costs: Float[np.ndarray, " tables"]
) -> tuple[Selection, Float[np.ndarray, " questions"]]:
    """The set of largest P(gold inside S) - sum of its tables' costs, and that utility.

    Exact where subsets are listed; on a larger schema tables leave the prefixes of the marginal order one at a time
    as long as that pays, and the best set reached is returned.

    Args:
        distribution: Posterior predictive.
        costs: Cost of showing each table, in units of the value of an answer that covers.

    Raises:
        ValueError: If costs are negative or not one for each table.
    """
    if costs.shape != (distribution.num_tables,):
        raise ValueError(f"costs have shape {costs.shape}: give one for each of {distribution.num_tables} tables")
    if not (costs >= 0).all():
        raise ValueError(f"costs hold {costs.min():g}: costs of at least 0 are needed")
    if isinstance(distribution, SubgraphDistribution):
        utility = distribution.covered - distribution.states @ costs
        place = utility.argmax(axis=1)
        chosen, best, rule = distribution.states[place] > 0, utility.max(axis=1), "expected utility"
    else:
        chosen, rule = _improved(distribution, costs), "expected utility, greedy"
        best = distribution.cover_probability(chosen) - chosen @ costs
    nothing = np.zeros(len(chosen), dtype=bool)
    return Selection(chosen, nothing, rule, distribution.cover_probability(chosen)), best


def _with_size(distribution: Distribution) -> Float[np.ndarray, "questions tables sizes"]:
    """P(x_t = 1, N = s)."""
    n = distribution.num_tables
    if isinstance(distribution, SubgraphDistribution):
        sizes = distribution.states.sum(axis=1).astype(int)
        of_size = np.eye(n + 1)[sizes]
        return np.stack([distribution.states.T @ (row[:, None] * of_size) for row in distribution.probabilities])
    found = []
    for chosen, weight in distribution.weighted_samples():
        of_size = np.eye(n + 1)[chosen.sum(axis=1)]
        found.append(chosen.T.astype(float) @ (weight[:, None] * of_size))
    return np.stack(found)


def _improved(distribution: FactoredDistribution, costs: Float[np.ndarray, " tables"]) -> np.ndarray:
    order = np.argsort(-distribution.marginals, axis=1, kind="stable")
    rank = np.argsort(order, axis=1, kind="stable")
    found = []
    for question, own in enumerate(rank):
        prefixes = own[None, :] < np.arange(distribution.num_tables + 1)[:, None]
        utility = distribution.coverage(question, prefixes) - prefixes @ costs
        chosen, best = prefixes[utility.argmax()].copy(), float(utility.max())
        while chosen.any():
            sets = np.repeat(chosen[None], int(chosen.sum()), axis=0)
            sets[np.arange(len(sets)), np.flatnonzero(chosen)] = False
            utility = distribution.coverage(question, sets) - sets @ costs
            if utility.max() <= best:
                break
            chosen, best = sets[utility.argmax()], float(utility.max())
        found.append(chosen)
    return np.stack(found)
