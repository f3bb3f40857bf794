"""Integrals by brute force: Gauss-Hermite over a database's effects, and weights of a grid."""

import itertools
import math
from collections.abc import Mapping, Sequence

import numpy as np
import oracles

__all__ = ["log_marginal", "moments"]


def log_marginal(
    item, variant: str, sites: Mapping, places: Sequence[int], num_nodes: int = 16, non_empty: bool = False
) -> float:
    """Log p(D_d | population), the effects at these places integrated out; `item` is standardised evidence."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(num_nodes)
    pairs = list(zip(nodes.tolist(), np.log(weights / math.sqrt(2 * math.pi)).tolist(), strict=True))
    terms = []
    for chosen in itertools.product(pairs, repeat=len(places)):
        effects = [0.0, 0.0, 0.0]
        for place, (node, _) in zip(places, chosen, strict=True):
            effects[place] = node
        data = oracles.log_likelihood_of_database(item, variant, sites, effects, non_empty=non_empty)
        terms.append(math.fsum([data, *(log_weight for _, log_weight in chosen)]))
    return oracles.log_sum_exp(terms)


def moments(values: np.ndarray, log_weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Weighted mean and standard deviation of each column."""
    weights = np.exp(log_weights - log_weights.max())
    weights /= weights.sum()
    mean = weights @ values
    return mean, np.sqrt(weights @ (values - mean) ** 2)
