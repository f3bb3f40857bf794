"""Two distractors joined to each other: the global mode takes them in before any single flip does."""

import math
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np

from bayeslink.inference import elimination, queries
from bayeslink.provenance import Experiment
from bayeslink.theory.modes import Verdict, is_unique_mode, mass_bound, sufficient_bound
from bayeslink.theory.stability import is_single_flip_stable

CLAIM = "Both distractors enter the global mode above 2/3, while every single flip keeps them out up to 1."
EDGES = np.array([[0, 2], [1, 3], [2, 3]])
"""Distractors 2 and 3, each joined to one relevant table and to each other."""
RELEVANT = np.array([True, True, False, False])


def threshold(holds: Callable[[float], bool], highest: float, bisections: int) -> float:
    """Coupling at which a condition that holds at 0 stops to hold."""
    low, high = 0.0, highest
    for _ in range(bisections):
        middle = (low + high) / 2
        low, high = (middle, high) if holds(middle) else (low, middle)
    return (low + high) / 2


def main(arguments: list[str] | None = None) -> None:
    """Write table.csv and table.json."""
    run = Experiment.from_command(__file__, arguments)
    if run.is_current({}):
        return
    config = run.config
    relevant = 2 * config["salient_log_odds"]
    unary = np.repeat([config["salient_log_odds"], -config["margin"]], 2)
    plan = elimination.plan(EDGES, 4)

    log_partition = jax.jit(elimination.log_partition)
    gained = jax.jit(lambda beta: queries.mode(jnp.array(unary)[:, None], plan, elimination.separator_gain(plan, beta)))

    def exact_mode(beta: float) -> np.ndarray:
        return np.asarray(gained(jnp.asarray(beta))[0])[:, 0]

    def stable(beta: float) -> bool:
        return bool(is_single_flip_stable(unary, EDGES, RELEVANT, beta))

    table = []
    for beta in np.linspace(0.0, config["coupling_greatest"], config["steps"]).tolist():
        energies = {"one_added": beta - config["margin"], "both_added": 3 * beta - 2 * config["margin"]}
        log_z = float(log_partition(jnp.asarray(unary), plan, jnp.asarray(beta)))
        row = {"coupling": beta} | {f"gain_{name}": gain for name, gain in energies.items()}
        row |= {"probability_relevant": math.exp(relevant - log_z)}
        row |= {f"probability_{name}": math.exp(relevant + gain - log_z) for name, gain in energies.items()}
        row |= {"bound_others": mass_bound(unary, EDGES, RELEVANT, beta).other_prob, "single_flip_stable": stable(beta)}
        row |= {"unique_mode": is_unique_mode(unary, EDGES, RELEVANT, beta).verdict.value}
        table.append(row | {"mode_size": int(exact_mode(beta).sum())})
    search = config["coupling_greatest"], config["bisections"]
    figures = {
        "single_flip_threshold": threshold(stable, *search),
        "mode_threshold": threshold(lambda b: bool(is_unique_mode(unary, EDGES, RELEVANT, b)), *search),
        "exact_mode_threshold": threshold(lambda b: bool((exact_mode(b) == RELEVANT).all()), *search),
        "sufficient_bound": float(sufficient_bound(unary, EDGES, RELEVANT).upper),
    }
    clear = [row for row in table if row["unique_mode"] != Verdict.TIE.value]
    checks = {
        "single_flip_threshold_is_1": abs(figures["single_flip_threshold"] - 1.0) < 1e-9,
        "mode_threshold_is_two_thirds": abs(figures["mode_threshold"] - 2 / 3) < 1e-8,
        "exact_mode_threshold_is_two_thirds": abs(figures["exact_mode_threshold"] - 2 / 3) < 1e-9,
        "sufficient_bound_is_attained": abs(figures["sufficient_bound"] - 2 / 3) < 1e-12,
        "two_cuts_agree_with_exact_mode": all((r["unique_mode"] == "yes") == (r["mode_size"] == 2) for r in clear),
        "mass_bound_holds": all(1 - r["probability_relevant"] <= r["bound_others"] + 1e-12 for r in table),
    }
    run.write(table, CLAIM, figures, checks, {})


if __name__ == "__main__":
    main()
