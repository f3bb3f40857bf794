"""Cut-offs on a ranking of tables; top k is `decision.rules.top_k`.

top p       softmax of scores / T over a question's tables; the fewest best tables that hold mass p (as AttnLink),
            where asked no more than k of them and none whose mass is below a share of the first one's
"""

import numpy as np
from jaxtyping import Bool, Float
from scipy.special import softmax

__all__ = ["top_p"]


def top_p(
    scores: Float[np.ndarray, "questions tables"],
    mass: float,
    temperature: float = 1.0,
    most: int | None = None,
    least: float = 0.0,
) -> Bool[np.ndarray, "questions tables"]:
    """The shortest prefix of each question's ranking with at least this softmax mass; of ties the first table.

    Rounding is forgiven up to a share of 1e-12, so that the whole schema, which holds mass 1, always qualifies.

    Args:
        scores: Score of each table, for instance its log-odds.
        mass: p, in (0, 1].
        temperature: T; above 1 flattens, below 1 sharpens.
        most: Largest size; any by default.
        least: min-p: smallest mass relative to the first table's, in [0, 1].

    Raises:
        ValueError: If `mass` is outside (0, 1], `temperature` or `most` is not positive, or `least` not in [0, 1].
    """
    if not 0 < mass <= 1:
        raise ValueError(f"mass={mass}: a probability above 0 and at most 1 is needed")
    if not 0 < temperature < np.inf:
        raise ValueError(f"temperature={temperature}: a positive number is needed")
    if most is not None and most < 1:
        raise ValueError(f"most={most}: at least one table is needed")
    if not 0 <= least <= 1:
        raise ValueError(f"least={least}: a share between 0 and 1 is needed")
    share = softmax(scores / temperature, axis=1)
    order = np.argsort(-scores, axis=1, kind="stable")
    ranked = np.take_along_axis(share, order, axis=1)
    before = np.cumsum(ranked, axis=1) - ranked
    chosen = np.zeros(scores.shape, dtype=bool)
    kept = (before < mass * (1 - 1e-12)) & (ranked >= least * ranked[:, :1] * (1 - 1e-12))
    if most is not None:
        kept[:, most:] = False
    np.put_along_axis(chosen, order, kept, axis=1)
    return chosen
