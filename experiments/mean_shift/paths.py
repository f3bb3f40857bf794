"""Mean size and compensating intercept of one database, along couplings."""

import jax
import jax.numpy as jnp
import numpy as np

from bayeslink.evidence.channel import Evidence
from bayeslink.inference import elimination
from bayeslink.theory.shift import compensating_intercept, size_moments


def rows_of(item: Evidence, alpha: float, slopes: np.ndarray, couplings: np.ndarray, step: float) -> list[dict]:
    """Mean size, its slope and the compensating intercept of one database, along couplings."""
    plan, scores = elimination.plan(item.edges, item.num_tables), jnp.asarray(item.values @ slopes)
    moments = jax.jit(lambda a, beta: size_moments(scores + a, plan, beta))
    gold = float(np.asarray(item.gold).sum())
    # Every coupling between its two neighbours, for central differences.
    triples = (couplings[:, None] + step * np.array([-1.0, 0.0, 1.0])).ravel()
    path = compensating_intercept(scores, plan, triples, gold)
    intercepts, rows = path.intercept.reshape(-1, 3), []
    for place, beta in enumerate(couplings.tolist()):
        below, here, above = (moments(alpha, beta + shift) for shift in (-step, 0.0, step))
        kept = moments(intercepts[place, 1], beta)
        rows.append(
            {
                "database": item.db_id,
                "questions": item.num_questions,
                "edges": len(item.edges),
                "coupling": beta,
                "gold_size": gold / item.num_questions,
                "size_fixed": float(here.mean.mean()),
                "size_slope": float(here.covariance.mean()),
                "size_difference": float((above.mean - below.mean).mean() / (2 * step)),
                "size_compensated": float(kept.mean.mean()),
                "intercept": float(intercepts[place, 1]),
                "intercept_slope": float(path.slope.reshape(-1, 3)[place, 1]),
                "intercept_difference": float((intercepts[place, 2] - intercepts[place, 0]) / (2 * step)),
            }
        )
    return rows
