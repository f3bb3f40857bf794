"""Rules of a fixed cut: threshold on the marginals, joint mode, the k most probable tables.

Each minimises a stated expected loss: `threshold` the number of wrong tables (at 1/2), `joint_mode` the
chance that the set is not exactly right, `top_k` the number of missed tables among sets of k.
"""

import numpy as np
from jaxtyping import Bool, Float

from bayeslink.decision.selection import Selection
from bayeslink.inference.factored import FactoredDistribution
from bayeslink.inference.pooled import PooledDistribution
from bayeslink.inference.predictive import SubgraphDistribution

__all__ = ["joint_mode", "threshold", "top_k"]

Distribution = SubgraphDistribution | FactoredDistribution | PooledDistribution


def threshold(distribution: Distribution, cut: float = 0.5) -> Selection:
    """Tables whose marginal probability exceeds `cut`.

    Raises:
        ValueError: If `cut` is outside [0, 1].
    """
    if not 0 <= cut <= 1:
        raise ValueError(f"cut={cut}: a probability between 0 and 1 is needed")
    return _selection(distribution, distribution.marginals > cut, f"threshold {cut:g}")


def joint_mode(distribution: SubgraphDistribution | FactoredDistribution) -> Selection:
    """The most probable subset."""
    return _selection(distribution, distribution.mode, "joint mode")


def top_k(distribution: Distribution, k: int) -> Selection:
    """The k tables of highest marginal probability (all of them in a smaller schema).

    Raises:
        ValueError: If `k` is below 1.
    """
    if k < 1:
        raise ValueError(f"k={k}: at least one table is needed")
    return _selection(distribution, _top(distribution.marginals, k), f"top {k}")


def _top(marginals: Float[np.ndarray, "questions tables"], k: int) -> Bool[np.ndarray, "questions tables"]:
    order = np.argsort(-marginals, axis=1, kind="stable")[:, :k]
    chosen = np.zeros(marginals.shape, dtype=bool)
    np.put_along_axis(chosen, order, True, axis=1)
    return chosen


def _selection(distribution: Distribution, chosen: Bool[np.ndarray, "questions tables"], rule: str) -> Selection:
    nothing = np.zeros(len(chosen), dtype=bool)
    return Selection(chosen, nothing, rule, distribution.cover_probability(chosen))
