"""From one benchmark and scheme to its rows, its headline numbers and its checks."""

from collections.abc import Mapping, Sequence

import numpy as np
from forecasts import forecasts, parts_of
from measures import COLUMNS, SCORES, Asked, agrees, difference, rows_of
from sizes import shift_rows

from bayeslink.evidence.channel import Evidence
from bayeslink.model.hierarchy import Variant

CONTRASTS = (
    ("size", "fixed", "independent"),
    ("size", "fixed_2", "independent"),
    ("ece", "fixed", "independent"),
    ("ece", "fixed_2", "independent"),
    ("ece", "fixed_temperature", "fixed_platt"),
    ("ece", "fixed_2_temperature", "fixed_2_platt"),
    ("ece", "pooled", "fixed"),
    ("ece", "hierarchical", "fixed"),
    ("ece", "hierarchical", "fixed_platt"),
    ("ece", "hierarchical", "independent_hierarchical"),
)
"""Paired differences: a score of the first model less that of the second."""


def rows_for(evidences: Sequence[Evidence], scheme: str, config: Mapping) -> tuple[list[dict], dict[str, bool]]:
    """Rows of one benchmark under one scheme, and whether the arithmetic is sound."""
    parts = parts_of(evidences, scheme, config)
    base = parts[Variant.INDEPENDENT]
    found = forecasts(parts, evidences, scheme, config)
    asked = Asked.of(base, config["num_resamples"], config["seed"])
    rows = [row for forecast in found for row in rows_of(forecast, asked)]
    by_name = {forecast.model: forecast for forecast in found}
    rows += [
        difference(by_name[first], by_name[second], score, asked)
        for score, first, second in CONTRASTS
        if first in by_name and second in by_name
    ]
    size = {"value": float(np.mean(np.concatenate([gold.sum(axis=1) for gold in asked.gold])))}
    rows.append(
        {"model": "gold", "against": "", "quantity": "size"}
        | dict.fromkeys(COLUMNS)
        | size
        | {"count": len(asked.databases)}
    )
    sound = {"measures_are_the_packages": all(agrees(forecast, asked) for forecast in found)}
    if scheme == "known":
        rows += shift_rows(base, parts[Variant.POOLED], config["couplings"])
        observed, exact, predicted = (_curve(rows, quantity) for quantity in ("size", "size_exact", "size_predicted"))
        sound |= {
            "two_solvers_agree": bool(np.allclose(observed, exact, rtol=1e-9)),
            "covariance_predicts_the_size": bool(np.allclose(observed, predicted, atol=0.005)),
            "compensating_intercept_falls": bool((np.diff(_curve(rows, "intercept")) < 0).all()),
        }
    return rows, sound


def figures_of(rows: Sequence[Mapping]) -> dict[str, float]:
    """Headline numbers by name, without the benchmark."""
    figures: dict[str, float] = {}
    for row in rows:
        quantity, model = row["quantity"], row["model"]
        if model == "curve" or quantity == "reliability":
            continue
        if quantity in SCORES:
            figures[f"{quantity}_{model}"] = row["value"]
            if quantity == "mean_shift":
                figures |= {f"mean_shift_{end}_{model}": row[end] for end in ("lower", "upper")}
            if model == "gold":
                figures["questions"] = row["count"]
        elif row["against"]:
            name = f"{quantity}_{model}_less_{row['against']}"
            figures |= {name: row["value"]} | {f"{name}_{end}": row[end] for end in ("lower", "upper")}
    curve = [row for row in rows if row["model"] == "curve" and row["quantity"] == "intercept"]
    figures |= {f"intercept_at_{row['coupling']:g}": row["value"] for row in (curve[:1] + curve[-1:])}
    return figures


def checks_of(rows: Sequence[Mapping]) -> dict[str, bool]:
    """What the claim says, each with its interval."""
    at = {(row["quantity"], row["model"], row["against"]): row for row in rows if row["model"] != "curve"}
    checks = {}
    for name in ("fixed", "fixed_2"):
        for score in ("size", "ece"):
            checks[f"{name}_raises_{score}"] = at[f"{score}_difference", name, "independent"]["lower"] > 0
        checks[f"temperature_leaves_the_shift_of_{name}"] = not _holds_0(at["mean_shift", f"{name}_temperature", ""])
        checks[f"platt_takes_the_shift_of_{name}"] = _holds_0(at["mean_shift", f"{name}_platt", ""])
    for model in ("pooled", "independent_hierarchical", "hierarchical"):
        if ("mean_shift", model, "") in at:
            checks[f"{model}_shift_interval_holds_0"] = _holds_0(at["mean_shift", model, ""])
    for model in ("pooled", "hierarchical"):
        if ("ece_difference", model, "fixed") in at:
            checks[f"{model}_better_than_fixed"] = at["ece_difference", model, "fixed"]["upper"] < 0
    return checks


def _holds_0(row: Mapping) -> bool:
    return bool(row["lower"] <= 0 <= row["upper"])


def _curve(rows: Sequence[Mapping], quantity: str) -> np.ndarray:
    return np.array([row["value"] for row in rows if row["model"] == "curve" and row["quantity"] == quantity])
