"""The worked example with names: customers and products mentioned, transactions needed, categories not."""

import numpy as np
from scipy.optimize import brentq
from scipy.special import expit, logit
from shop import EDGES, NAMES, RELEVANT, exact

from bayeslink.provenance import Experiment
from bayeslink.theory.modes import is_unique_mode
from bayeslink.theory.stability import flip_gains, is_single_flip_stable, stability_window

CLAIM = (
    "Coupling along foreign keys lifts the junction table transactions and leaves the distractor out, from 0.58 to 1."
)
JUNCTION, DISTRACTOR = NAMES.index("transactions"), NAMES.index("categories")


def main(arguments: list[str] | None = None) -> None:
    """Write table.csv and table.json."""
    run = Experiment.from_command(__file__, arguments)
    if run.is_current({}):
        return
    config = run.config
    unary = np.full(len(NAMES), config["salient_log_odds"])
    unary[JUNCTION] = logit(config["junction_probability"])
    unary[DISTRACTOR] = config["distractor_log_odds"]
    window = stability_window(unary, EDGES, RELEVANT)
    lower, upper = float(window.lower), float(window.upper)
    shown = (lower + upper) / 2
    table, differences = [], []
    for beta in sorted({shown, *np.linspace(0.0, config["coupling_greatest"], config["steps"]).tolist()}):
        found = exact(unary, beta)
        differences.append(np.abs(found.marginals - found.eliminated).max())
        row = {"coupling": beta, "shown": beta == shown}
        row |= {f"{name}_probability": float(p) for name, p in zip(NAMES, found.marginals, strict=True)}
        row |= {"relevant_set_probability": found.relevant_probability, "mode": " ".join(found.mode)}
        row |= {"mode_is_relevant_set": found.mode_is_relevant, "inside_window": bool(window.contains(beta))}
        row |= {"stable": bool(is_single_flip_stable(unary, EDGES, RELEVANT, beta))}
        row |= {"unique_mode": is_unique_mode(unary, EDGES, RELEVANT, beta).verdict.value}
        table.append(row)

    def crossing(value) -> float:
        return float(brentq(value, 0.0, 2 * config["coupling_greatest"], xtol=1e-14))

    figures = {"junction_deficit": -float(unary[JUNCTION]), "window_lower": lower, "window_upper": upper}
    figures |= {"coupling_shown": shown}
    for when, beta in (("before", 0.0), ("after", shown)):
        found = exact(unary, beta)
        figures |= {f"{name}_{when}": float(p) for name, p in zip(NAMES, found.marginals, strict=True)}
        figures[f"relevant_set_{when}"] = found.relevant_probability
    for table_name, place in (("transactions", JUNCTION), ("categories", DISTRACTOR)):
        figures[f"{table_name}_flips_at"] = crossing(lambda b, t=place: flip_gains(unary, EDGES, RELEVANT, b)[t])
        figures[f"{table_name}_reaches_half_at"] = crossing(lambda b, t=place: exact(unary, b).marginals[t] - 0.5)
    clear = [row for row in table if row["unique_mode"] != "tie"]
    checks = {
        "deficit_is_the_papers": round(figures["junction_deficit"], 2) == 1.15,
        "window_is_the_papers": (round(lower, 2), upper) == (0.58, 1.0),
        "flips_at_the_windows_ends": np.allclose(
            [figures["transactions_flips_at"], figures["categories_flips_at"]], [lower, upper], atol=1e-12
        ),
        "before_is_the_unary_probability": np.allclose([figures[f"{name}_before"] for name in NAMES], expit(unary)),
        "stable_exactly_inside_window": all(row["stable"] == row["inside_window"] for row in table),
        "mode_is_the_relevant_set_exactly_inside_window": all(
            row["mode_is_relevant_set"] == row["inside_window"] == (row["unique_mode"] == "yes") for row in clear
        ),
        "listing_and_elimination_agree": max(differences) < 1e-12,
        "junction_is_lifted_over_one_half": figures["transactions_before"] < 0.5 < figures["transactions_after"],
        "distractor_stays_below_one_half": figures["categories_after"] < 0.5,
    }
    held = {name: bool(held) for name, held in checks.items()}
    run.write(table, CLAIM, figures, held, {}, tables=NAMES, edges=EDGES.tolist())


if __name__ == "__main__":
    main()
