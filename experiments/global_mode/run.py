"""Two distractors joined to each other: the global mode takes them in before any single flip does."""

import math

import numpy as np
from thresholds import Case

from bayeslink.provenance import Experiment
from bayeslink.theory.modes import Verdict, is_unique_mode, mass_bound, sufficient_bound

CLAIM = "Both distractors enter the global mode above 2/3, while every single flip keeps them out up to 1."
EDGES = np.array([[0, 2], [1, 3], [2, 3]])
"""Distractors 2 and 3, each joined to one relevant table and to each other."""
RELEVANT = np.array([True, True, False, False])
LONE_EDGES = np.array([[0, 1], [1, 2]])
"""Distractor 1 joined to the relevant table and to distractor 2, which is far below its threshold."""


def main(arguments: list[str] | None = None) -> None:
    """Write table.csv and table.json."""
    run = Experiment.from_command(__file__, arguments)
    if run.is_current({}):
        return
    config = run.config
    relevant = 2 * config["salient_log_odds"]
    unary = np.repeat([config["salient_log_odds"], -config["margin"]], 2)
    case = Case(unary, EDGES, RELEVANT)
    lone_unary = np.array([config["salient_log_odds"], -config["margin"], -config["far_margin"]])
    lone = Case(lone_unary, LONE_EDGES, np.array([True, False, False]))

    table = []
    for beta in np.linspace(0.0, config["coupling_greatest"], config["steps"]).tolist():
        energies = {"one_added": beta - config["margin"], "both_added": 3 * beta - 2 * config["margin"]}
        log_z = case.log_partition(beta)
        row = {"coupling": beta} | {f"gain_{name}": gain for name, gain in energies.items()}
        row |= {"probability_relevant": math.exp(relevant - log_z)}
        row |= {f"probability_{name}": math.exp(relevant + gain - log_z) for name, gain in energies.items()}
        row |= {
            "bound_others": mass_bound(unary, EDGES, RELEVANT, beta).other_prob,
            "single_flip_stable": case.is_stable(beta),
        }
        row |= {"unique_mode": is_unique_mode(unary, EDGES, RELEVANT, beta).verdict.value}
        table.append(row | {"mode_size": int(case.mode(beta).sum())})
    search = config["coupling_greatest"], config["bisections"]
    figures = case.thresholds(*search)
    figures["sufficient_bound"] = float(sufficient_bound(unary, EDGES, RELEVANT).upper)
    figures |= {f"lone_{name}": round(value, 7) for name, value in lone.thresholds(*search).items()}
    figures |= {"lone_margin": config["margin"], "lone_far_margin": config["far_margin"]}
    clear = [row for row in table if row["unique_mode"] != Verdict.TIE.value]
    checks = {
        "single_flip_threshold_is_1": abs(figures["single_flip_threshold"] - 1.0) < 1e-9,
        "mode_threshold_is_two_thirds": abs(figures["mode_threshold"] - 2 / 3) < 1e-8,
        "exact_mode_threshold_is_two_thirds": abs(figures["exact_mode_threshold"] - 2 / 3) < 1e-9,
        "sufficient_bound_is_attained": abs(figures["sufficient_bound"] - 2 / 3) < 1e-12,
        "two_cuts_agree_with_exact_mode": all((r["unique_mode"] == "yes") == (r["mode_size"] == 2) for r in clear),
        "lone_distractor_needs_no_smaller_coupling": all(
            abs(figures[f"lone_{name}_threshold"] - 1.0) < 1e-8 for name in ("single_flip", "mode", "exact_mode")
        ),
        "mass_bound_holds": all(1 - r["probability_relevant"] <= r["bound_others"] + 1e-12 for r in table),
    }
    run.write(table, CLAIM, figures, checks, {})


if __name__ == "__main__":
    main()
