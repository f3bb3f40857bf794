"""Rows of the table: one for each cell and variant, means over the cell's replicates with 95 % intervals."""

from collections.abc import Iterator, Mapping

import numpy as np

from bayeslink.simulation.cells import Cell
from bayeslink.simulation.summary import mean_interval

MEANS = ("ece", "joint_log_score", "marginal_log_score", "recovered", "precision", "size")
OTHERS = ("truth", "independent", "pooled", "pooled_coupling")
SITES = ("alpha", "gamma", "beta", "sigma_alpha", "sigma_beta")


def rows_of(cell: Cell, scores: Mapping[str, np.ndarray]) -> Iterator[dict]:
    """A row for each variant; replicates in which a fit failed are left out for all, and counted.

    A fit failed if it did not converge or if a score of its predictions is not finite.

    Gains are paired by replicate. A cell is shifted if the mean shift of `fixed` has its interval above 0; a variant
    restores it if its own shift is smaller and the interval holds 0.
    """
    fits = [name for name in scores if name.endswith("/converged")]
    finite = [np.isfinite(value) for name, value in scores.items() if name not in fits]
    kept = np.all([*(scores[name] for name in fits), *finite], axis=0)
    if not kept.any():
        raise FloatingPointError(f"{cell}: no replicate has all its fits converged; change the cell or more questions")
    scores = {name: value[kept] for name, value in scores.items()}
    imposed = mean_interval(scores["fixed/mean_shift"])
    for variant in dict.fromkeys(name.split("/")[0] for name in scores if name.endswith("/mean_shift")):
        row: dict[str, object] = {
            "family": cell.family.value,
            "num_tables": cell.num_tables,
            "coupling": cell.coupling,
            "coupling_sd": cell.coupling_sd,
            "strength": cell.strength,
            "intercept_sd": cell.intercept_sd,
            "variant": variant,
            "replicates": len(kept),
            "converged": int(kept.sum()),
        }
        row |= _interval("mean_shift", scores[f"{variant}/mean_shift"])
        found = mean_interval(scores[f"{variant}/mean_shift"])
        row["smaller"] = int(abs(found.mean) < abs(imposed.mean))
        row["holds_0"] = int(found.lower <= 0 <= found.upper)
        row["cell_shifted"] = int(imposed.lower > 0)
        row |= {name: float(scores[f"{variant}/{name}"].mean()) for name in MEANS}
        for other in (name for name in OTHERS if f"{name}/joint_log_score" in scores):
            gain = scores[f"{variant}/joint_log_score"] - scores[f"{other}/joint_log_score"]
            row |= _interval(f"gain_over_{other}", gain)
        row |= _interval("recovery_gain", scores[f"{variant}/recovered"] - scores["independent/recovered"])
        for site in SITES:
            values = scores.get(f"{variant}/{site}")
            row[site] = None if values is None else float(values.mean())
        yield row


def _interval(name: str, values: np.ndarray) -> dict[str, float]:
    found = mean_interval(values)
    return {name: found.mean, f"{name}_lower": found.lower, f"{name}_upper": found.upper}
