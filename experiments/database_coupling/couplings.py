"""Each database's coupling under the hierarchy and alone, and what of its schema goes with it."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from scipy.stats import rankdata

from bayeslink.evidence.channel import COVARIATES, Evidence
from bayeslink.inference import make_room
from bayeslink.inference.fit import fit
from bayeslink.inference.posterior import Posterior
from bayeslink.model.hierarchy import Variant

FITS = {
    "nested": (Variant.HIERARCHICAL, "nested"),
    "laplace": (Variant.HIERARCHICAL, "laplace"),
    "unpooled": (Variant.UNPOOLED, "laplace"),
    "pooled_coupling": (Variant.POOLED_COUPLING, "nested"),
}
"""Variant and method of each fit; all in sample, on every question of the set."""


class Summary(NamedTuple):
    """Posterior mean and 95 % interval; a known value has none."""

    value: float
    lower: float | None = None
    upper: float | None = None


def fitted(evidences: Sequence[Evidence], config: Mapping) -> dict[str, Posterior]:
    """Those of `FITS` that the config asks for."""
    found = {}
    for name in config["fits"]:
        variant, method = FITS[name]
        found[name] = fit(evidences, variant, num_draws=config["num_draws"], seed=config["seed"], method=method)
        make_room()
    return found


def properties(evidences: Sequence[Evidence]) -> dict[str, np.ndarray]:
    """What each schema is like, and how many questions speak of it."""
    found = {name: np.array([item.covariates[place] for item in evidences]) for place, name in enumerate(COVARIATES)}
    found["num_tables"] = np.array([float(item.num_tables) for item in evidences])
    found["num_questions"] = np.array([float(item.num_questions) for item in evidences])
    del found["log_num_tables"]
    return found


def rows_for(fits: Mapping[str, Posterior], evidences: Sequence[Evidence]) -> list[dict]:
    """Couplings, population, rank correlations with the properties, and the properties themselves."""
    rows = []
    for name in ("nested", "laplace", "unpooled"):
        couplings = fits[name].draws["beta_d"]
        for item, draws in zip(evidences, couplings.T, strict=True):
            rows.append(_row(name, "coupling", _summary(draws), database=item.db_id))
    for name in ("nested", "laplace"):
        for site in ("beta", "sigma_beta", "alpha", "sigma_alpha"):
            rows.append(_row(name, site, _summary(fits[name].draws[site])))
    for name, values in properties(evidences).items():
        rows += [
            _row("", "property", Summary(float(value)), database=item.db_id, property=name)
            for item, value in zip(evidences, values, strict=True)
        ]
        if len(set(values.tolist())) > 1:
            for fit_name in ("nested", "unpooled"):
                ranks = spearman(fits[fit_name].draws["beta_d"], values)
                rows.append(_row(fit_name, "spearman", _summary(ranks), property=name))
    return rows


def spearman(draws: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Rank correlation of one property with the databases' couplings, in each draw; equal values share their rank."""
    ours, theirs = rankdata(draws, axis=1), rankdata(values)
    ours, theirs = ours - ours.mean(axis=1, keepdims=True), theirs - theirs.mean()
    return (ours @ theirs) / np.sqrt((ours**2).sum(axis=1) * (theirs**2).sum())


def figures_of(rows: Sequence[Mapping], fits: Mapping[str, Posterior]) -> dict[str, float]:
    """Headline numbers by name, without the benchmark; without a fit in their name, of the nested fit."""
    figures: dict[str, float] = {}
    for row in rows:
        lead = "" if row["fit"] == "nested" else f"{row['fit']}_"
        ends = {"lower_95": row["lower"], "upper_95": row["upper"]}
        name = ""
        if row["quantity"] in ("beta", "sigma_beta"):
            name = row["quantity"]
        elif row["quantity"] == "spearman":
            name = f"spearman_{row['property']}"
        if name:
            figures |= {lead + name: row["value"]} | {f"{lead}{name}_{end}": value for end, value in ends.items()}
    for name, lead in (("nested", ""), ("unpooled", "unpooled_")):
        means = _means(rows, name)
        figures |= {f"{lead}coupling_least": float(means.min()), f"{lead}coupling_greatest": float(means.max())}
    together, alone, plain = (_means(rows, name) for name in ("nested", "unpooled", "laplace"))
    widths = {name: _widths(rows, name) for name in ("nested", "laplace", "unpooled")}
    figures |= {
        "shrinkage": 1.0 - float(np.std(together) / np.std(alone)),
        "moved_most": float(np.abs(together - alone).max()),
        "width_ratio_unpooled": float(np.median(widths["unpooled"] / widths["nested"])),
        "width_ratio_laplace": float(np.median(widths["laplace"] / widths["nested"])),
        "difference_laplace_most": float(np.abs(plain - together).max()),
        "pareto_k": float(fits["nested"].info["pareto_k"]),
        "couplings_above_0": float(sum(row["lower"] > 0 for row in rows if _is(row, "nested", "coupling"))),
        "couplings_below_0": float(sum(row["upper"] < 0 for row in rows if _is(row, "nested", "coupling"))),
    }
    # How far each is drawn to the common one: 0 not at all, 1 all the way.
    common = next(row["value"] for row in rows if _is(row, "nested", "beta"))
    pull = (alone - together) / (alone - common)
    figures |= {"pull_median": float(np.median(pull))}
    figures["spearman_width_pull"] = float(spearman(pull[None], widths["unpooled"])[0])
    if "pooled_coupling" in fits:
        varying, common = (float(fits[name].info["log_marginal"]) for name in ("nested", "pooled_coupling"))
        figures["log_bayes_factor"] = varying - common
    return figures


def checks_of(
    rows: Sequence[Mapping], fits: Mapping[str, Posterior], figures: Mapping[str, float], least_sigma: float
) -> dict[str, bool]:
    """What the claim says of one benchmark."""
    scale = next(row for row in rows if _is(row, "nested", "sigma_beta"))
    return {
        "couplings_vary": scale["lower"] > least_sigma,
        "couplings_shrink": bool(np.std(_means(rows, "nested")) < np.std(_means(rows, "unpooled"))),
        "intervals_narrow": bool(np.median(_widths(rows, "nested") / _widths(rows, "unpooled")) < 1),
        "uncertain_couplings_drawn_more": figures["spearman_width_pull"] > 0,
        "fits_converged": all(held for posterior in fits.values() for held in posterior.checks.values()),
    }


def _row(name: str, quantity: str, found: Summary, database: str = "", property: str = "") -> dict:
    return {"fit": name, "quantity": quantity, "database": database, "property": property} | found._asdict()


def _summary(draws: np.ndarray) -> Summary:
    lower, upper = np.quantile(draws, [0.025, 0.975])
    return Summary(float(draws.mean()), float(lower), float(upper))


def _is(row: Mapping, name: str, quantity: str) -> bool:
    return row["fit"] == name and row["quantity"] == quantity


def _means(rows: Sequence[Mapping], name: str) -> np.ndarray:
    return np.array([row["value"] for row in rows if _is(row, name, "coupling")])


def _widths(rows: Sequence[Mapping], name: str) -> np.ndarray:
    return np.array([row["upper"] - row["lower"] for row in rows if _is(row, name, "coupling")])
