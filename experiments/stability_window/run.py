"""The worked example: in which window of couplings the relevant set is stable."""

import math
from pathlib import Path

import jax.numpy as jnp
import numpy as np

from bayeslink.inference import elimination
from bayeslink.provenance import Experiment
from bayeslink.simulation.timing import log_partition_and_marginals
from bayeslink.theory.stability import flip_gains, is_single_flip_stable, stability_window

CLAIM = "A coupling between 0.58 and 1 recovers the weak junction table without the distractor."
EDGES = np.array([[0, 1], [1, 2], [2, 3]])
"""Salient tables 0 and 2, the weak junction 1 between them, a distractor 3 joined to table 2."""
RELEVANT = np.array([True, True, True, False])


def main(arguments: list[str] | None = None) -> None:
    """Write table.csv and table.json."""
    run = Experiment.from_command(__file__, arguments)
    inputs: dict[str, Path] = {}
    if run.is_current(inputs):
        return
    config = run.config
    junction = math.log(config["junction_probability"] / (1 - config["junction_probability"]))
    salient, distractor = config["salient_log_odds"], config["distractor_log_odds"]
    unary = np.array([salient, junction, salient, distractor])
    window = stability_window(unary, EDGES, RELEVANT)
    plan = elimination.plan(EDGES, len(unary))
    table = []
    for beta in np.linspace(0.0, config["coupling_greatest"], config["steps"]).tolist():
        gains = flip_gains(unary, EDGES, RELEVANT, beta)
        answers = log_partition_and_marginals(jnp.asarray(unary)[None, :], plan, jnp.asarray(beta))
        log_z, marginals = (np.asarray(answer)[0] for answer in answers)
        energy = float(unary[RELEVANT].sum()) + 2 * beta
        table.append(
            {
                "coupling": beta,
                "junction_log_odds": -float(gains[1]),
                "distractor_log_odds": float(gains[3]),
                "salient_probability": float(marginals[0]),
                "junction_probability": float(marginals[1]),
                "distractor_probability": float(marginals[3]),
                "relevant_set_probability": math.exp(energy - float(log_z)),
                "stable": bool(is_single_flip_stable(unary, EDGES, RELEVANT, beta)),
                "inside_window": bool(window.contains(beta)),
            }
        )
    figures = {
        "junction_deficit": -junction,
        "window_lower": float(window.lower),
        "window_upper": float(window.upper),
        "best_coupling": max(table, key=lambda row: row["relevant_set_probability"])["coupling"],
        "best_probability": max(row["relevant_set_probability"] for row in table),
    }
    checks = {
        "window_is_the_papers": (round(figures["window_lower"], 2), figures["window_upper"]) == (0.58, 1.0),
        "stable_exactly_inside_window": all(row["stable"] == row["inside_window"] for row in table),
        "probability_at_zero_coupling_is_unary": abs(table[0]["junction_probability"] - config["junction_probability"])
        < 1e-12,
        "probabilities_rise_with_coupling": all(
            (np.diff([row[name] for row in table]) > 0).all()
            for name in ("salient_probability", "junction_probability", "distractor_probability")
        ),
    }
    run.write(table, CLAIM, figures, checks, inputs)


if __name__ == "__main__":
    main()
