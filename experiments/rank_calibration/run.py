"""Ranks of true parameters among posterior draws: which fits are calibrated on worlds drawn from the prior."""

import hashlib
import json
import shutil
from pathlib import Path

import numpy as np
from ranked_fits import fitters_of

from bayeslink.evidence.cache import cache_home
from bayeslink.inference import keep_compiled
from bayeslink.inference.nested import PARETO_LIMIT
from bayeslink.model.priors import Priors
from bayeslink.provenance import Experiment
from bayeslink.simulation.calibration import calibrate
from bayeslink.simulation.ranks import envelope
from bayeslink.simulation.worlds import Setting, draw_world

CLAIM = "Nested Laplace and NUTS are calibrated on simulated worlds; a fit with shrunk draws is found out."
GRAPHS = (((0, 1), (1, 2), (2, 3)), ((0, 1), (0, 2), (0, 3)), ((0, 1), (1, 2), (2, 3), (0, 3)), ((1, 2),))
"""A path, a star, a cycle, and one with two isolated tables."""


def main(arguments: list[str] | None = None) -> None:
    """Write table.csv and table.json."""
    run = Experiment.from_command(__file__, arguments)
    config = run.config
    inputs: dict[str, Path] = {}
    if run.is_current(inputs):
        return
    keep_compiled()
    setting = Setting(config["databases"], config["questions"], GRAPHS, config["tables"], config["channels"])
    priors = Priors()
    worlds = [
        draw_world(np.random.default_rng([config["seed"], place]), priors, setting) for place in range(config["worlds"])
    ]
    key = hashlib.sha256(json.dumps([dict(config), run.source], sort_keys=True).encode()).hexdigest()[:16]
    folder = cache_home() / "rank_calibration" / key
    if run.force:
        shutil.rmtree(folder, ignore_errors=True)
    fitters = fitters_of(config, setting, priors, set(worlds[: config["nuts_worlds"]]))
    found = calibrate(worlds, lambda world: world.truth(setting.design, priors), fitters, config["seed"], folder)
    envelopes = {
        name: envelope(ranks, np.random.default_rng(config["seed"]), num_replicates=config["replicates"])
        for name, ranks in found.ranks.items()
    }
    table = [{"fit": name} | row for name, band in envelopes.items() for row in band.rows()]
    figures: dict[str, float | int] = {"worlds": len(worlds)}
    for name, band in envelopes.items():
        label = "broken_fit" if name == "broken" else name
        figures[f"{label}_inside_envelope"] = band.share_inside
        figures[f"{name}_statistic"] = band.statistic
        figures[f"{name}_critical"] = band.critical
        figures[f"{name}_worlds"] = band.num_worlds
        figures[f"failures_{name}"] = len(found.failures[name])
    nuts, pareto_k = found.diagnostics["nuts"], found.diagnostics["nested"]["pareto_k"]
    figures |= {
        "nested_share_pareto_k_above_limit": float((pareto_k > PARETO_LIMIT).mean()),
        "nuts_worst_r_hat": float(nuts["r_hat"].max()),
        "nuts_least_ess_bulk": float(nuts["ess_bulk"].min()),
        "nuts_median_ess_bulk": float(np.median(nuts["ess_bulk"])),
        "nuts_worlds_with_divergences": int((nuts["divergences"] > 0).sum()),
    }
    checks = {
        "nested_inside": envelopes["nested"].share_inside == 1.0,
        "nuts_inside": envelopes["nuts"].share_inside == 1.0,
        "broken_falls_out": envelopes["broken"].share_inside <= 0.5,
    }
    outside = {name: [site for site, held in band.inside.items() if not held] for name, band in envelopes.items()}
    messages = {name: sorted(set(failed.values())) for name, failed in found.failures.items()}
    run.write(table, CLAIM, figures, checks, inputs, outside_envelope=outside, failure_messages=messages)


if __name__ == "__main__":
    main()
