"""Figures and checks: in how many cells the pattern holds."""

from collections.abc import Sequence

import pandas as pd


def figures_of(table: Sequence[dict]) -> dict[str, float]:
    """Counts of cells and replicates, and the share of cells in which each part of the pattern holds."""
    frame = pd.DataFrame(table)
    fixed, hierarchical = (frame[frame["variant"] == variant] for variant in ("fixed", "hierarchical"))
    coupled = fixed["coupling"] > 0
    figures: dict[str, float] = {
        "cells": len(fixed),
        "replicates": int(fixed["replicates"].sum()),
        "replicates_unconverged": int((fixed["replicates"] - fixed["converged"]).sum()),
        "cells_coupled": int(coupled.sum()),
        "cells_with_shift": int(fixed["cell_shifted"].sum()),
        "share_of_cells_with_shift": _mean(fixed["cell_shifted"]),
        "share_of_coupled_cells_with_shift": _mean(fixed["cell_shifted"][coupled]),
        "share_of_uncoupled_cells_with_shift": _mean(fixed["cell_shifted"][fixed["coupling"] == 0]),
        "share_restored": _restored(hierarchical),
    }
    for variant, every in frame.groupby("variant", sort=False):
        rows = every[every["cell_shifted"] == 1]
        figures[f"share_restored_{variant}"] = _restored(every)
        figures[f"share_smaller_{variant}"] = _mean(rows["smaller"])
        figures[f"mean_shift_{variant}"] = _mean(rows["mean_shift"])
        figures[f"mean_shift_greatest_{variant}"] = float(every["mean_shift"].abs().max())
        figures[f"ece_{variant}"] = _mean(rows["ece"])
        figures[f"joint_log_score_less_truths_{variant}"] = _mean(rows["gain_over_truth"])
        figures[f"share_holding_0_{variant}"] = _mean(every["holds_0"])
    for spread, rows in hierarchical.groupby("coupling_sd"):
        for other in ("pooled", "pooled_coupling"):
            gain = f"gain_over_{other}"
            figures[f"gain_hierarchical_over_{other}_sd_{spread:g}"] = _mean(rows[gain])
            figures[f"share_hierarchical_better_than_{other}_sd_{spread:g}"] = _mean(rows[f"{gain}_lower"] > 0)
            figures[f"share_hierarchical_worse_than_{other}_sd_{spread:g}"] = _mean(rows[f"{gain}_upper"] < 0)
    for coupling, rows in hierarchical.groupby("coupling"):
        figures[f"recovery_gain_hierarchical_coupling_{coupling:g}"] = _mean(rows["recovery_gain"])
    return figures


def checks_of(table: Sequence[dict]) -> dict[str, bool]:
    """Whether each part of the pattern holds in every cell in which it should: findings, not faults.

    Where nothing is shifted an interval misses 0 in one cell of twenty all the same, half of these above it; so
    those parts ask for nine cells in ten.
    """
    frame = pd.DataFrame(table)
    shifted = frame[frame["cell_shifted"] == 1]
    fixed, hierarchical = (frame[frame["variant"] == variant] for variant in ("fixed", "hierarchical"))
    joint, platt = (shifted[shifted["variant"] == variant] for variant in ("hierarchical", "fixed_platt"))
    differing = hierarchical[hierarchical["coupling_sd"] > 0]
    found = {
        "every_fit_converged": (fixed["converged"] == fixed["replicates"]).all(),
        "shift_in_every_coupled_cell": fixed["cell_shifted"][fixed["coupling"] > 0].all(),
        "no_shift_at_coupling_0_in_nine_of_ten": _mean(fixed["cell_shifted"][fixed["coupling"] == 0]) <= 0.1,
        "joint_fit_shifts_less_in_every_shifted_cell": joint["smaller"].all(),
        "joint_fit_restores_nine_in_ten": _restored(hierarchical) >= 0.9,
        "platt_shifts_less_in_every_shifted_cell": platt["smaller"].all(),
        "platt_below_pooled_jointly_in_every_shifted_cell": (platt["gain_over_pooled_upper"] < 0).all(),
        "hierarchical_better_wherever_couplings_differ": (differing["gain_over_pooled_coupling_lower"] > 0).all(),
    }
    return {name: bool(held) for name, held in found.items()}


def _restored(rows: pd.DataFrame) -> float:
    """Share of the shifted cells in which the shift is smaller and its interval holds 0."""
    rows = rows[rows["cell_shifted"] == 1]
    return _mean(rows["smaller"] * rows["holds_0"])


def _mean(values: pd.Series) -> float:
    return float(values.mean()) if len(values) else 0.0
