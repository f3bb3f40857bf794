"""Rows of the table: each variant's selections of held-out questions, at two thresholds, against the weak tables."""

from collections.abc import Mapping, Sequence

import numpy as np

from bayeslink.evaluation.comparison import clustered_bootstrap, mcnemar, question_clusters
from bayeslink.evaluation.held_out import FitSettings, HeldOut, held_out
from bayeslink.evaluation.recovery import precision
from bayeslink.evaluation.weak_tables import (
    CUT,
    matched_threshold,
    share_recovered,
    structural_connectors,
    weakly_signalled,
)
from bayeslink.evidence.cache import cache_home
from bayeslink.evidence.store import load_evidence, load_twins
from bayeslink.model.hierarchy import Variant

FITTED = ("independent", "independent_hierarchical", "pooled", "pooled_coupling", "hierarchical")
VARIANTS = ("independent", "independent_hierarchical", "fixed", "pooled", "pooled_coupling", "hierarchical")
COMPARATORS = VARIANTS[:-1]
DIGITS = 10
"""Decimals at which probabilities tie: the order of summation decides nothing."""

Arrays = list[np.ndarray]


def scheme_rows(data: str, scheme: str, config: Mapping) -> list[dict]:
    """All rows of one set and one scheme."""
    evidences = load_evidence(data, config["channels"])[: config["databases"]]
    settings = FitSettings(num_draws=config["num_draws"], seed=config["seed"])
    found = held_out(
        evidences,
        [Variant(name) for name in FITTED],
        scheme,
        settings,
        num_folds=config["num_folds"],
        twins=load_twins() if scheme == "unseen" else None,
        folder=cache_home() / "held_out",
        progress=True,
    )
    marginals = {name: _marginals(found[Variant(name)]) for name in FITTED}
    marginals["fixed"] = _marginals(found[Variant.INDEPENDENT], config["fixed_coupling"])
    items = [item.evidence for item in found[Variant.INDEPENDENT]]
    gold = [np.asarray(item.gold) for item in items]
    weak = [weakly_signalled(p, y) for p, y in zip(marginals["independent"], gold, strict=True)]
    connectors = [structural_connectors(w, y, e.edges) for w, y, e in zip(weak, gold, items, strict=True)]
    kinds = {
        "weak": weak,
        "connectors": connectors,
        "rest": [w & ~c for w, c in zip(weak, connectors, strict=True)],
    }
    databases, groups = question_clusters(items)
    size = float(np.mean(np.concatenate([(p > CUT).sum(axis=1) for p in marginals["hierarchical"]])))

    def interval(values: np.ndarray, of: np.ndarray | None = None) -> tuple[float, float, float]:
        rng = np.random.default_rng(config["seed"])
        resamples = config["resamples"]
        if of is None:
            return tuple(clustered_bootstrap(values, databases, groups, resamples, rng))
        return tuple(share_recovered(values, of, databases, groups, resamples, rng))

    rows = []
    for rule in ("own", "matched"):
        cuts = {name: CUT if rule == "own" else matched_threshold(p, size).threshold for name, p in marginals.items()}
        chosen = {name: [p > cuts[name] for p in marginals[name]] for name in VARIANTS}
        for name in VARIANTS:
            scores = np.concatenate([precision(c, y) for c, y in zip(chosen[name], gold, strict=True)])
            mean, lower, upper = interval(scores)
            shared = {
                "scheme": scheme,
                "data": data,
                "variant": name,
                "rule": rule,
                "questions": len(databases),
                "databases": len(set(databases)),
                "threshold": cuts[name],
                "mean_size": float(np.mean(np.concatenate([c.sum(axis=1) for c in chosen[name]]))),
                "precision": mean,
                "precision_lower": lower,
                "precision_upper": upper,
            }
            for kind, tables in kinds.items():
                ours, theirs, count = (
                    _per_question(of, tables) for of in (chosen["hierarchical"], chosen[name], tables)
                )
                share, difference = interval(theirs, count), interval(ours - theirs, count)
                test = mcnemar(_of(chosen["hierarchical"], tables), _of(chosen[name], tables))
                rows.append(
                    shared
                    | {"tables": kind, "count": int(count.sum()), "recovered": int(theirs.sum())}
                    | dict(zip(("share", "share_lower", "share_upper"), share, strict=True))
                    | dict(zip(("difference", "difference_lower", "difference_upper"), difference, strict=True))
                    | {"only_hierarchical": test.only_first, "only_other": test.only_second, "p_value": test.p_value}
                )
    return rows


def _marginals(items: Sequence[HeldOut], coupling: float | None = None) -> Arrays:
    return [np.round(item.predict(coupling)[0].marginals, DIGITS) for item in items]


def _per_question(chosen: Arrays, tables: Arrays) -> np.ndarray:
    """Number of these tables that are chosen, for each question."""
    return np.concatenate([(c & t).sum(axis=1) for c, t in zip(chosen, tables, strict=True)])


def _of(chosen: Arrays, tables: Arrays) -> np.ndarray:
    """Whether each of these tables is chosen."""
    return np.concatenate([c[t] for c, t in zip(chosen, tables, strict=True)])
