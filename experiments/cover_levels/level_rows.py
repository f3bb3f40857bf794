"""Rows of the table: covers at their levels, conformal levels, curves of size against coverage, and log scores."""

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
from families import Families, Family

from bayeslink.decision.conformal import ConformalLevel, conformal_level
from bayeslink.evaluation.comparison import Interval, clustered_bootstrap, paired_difference, question_clusters
from bayeslink.evidence.channel import Evidence
from bayeslink.evidence.store import load_twins

CURVE = np.append(1 - np.geomspace(0.6, 1e-6, 150), 1.0)
"""Levels of the curves."""


def set_rows(
    evidences: Sequence[Evidence], families: Families, conformal: Mapping[str, Mapping], config: Mapping
) -> Iterator[dict]:
    """Every row of one set under one scheme.

    Args:
        evidences: The set's databases.
        families: By method and database.
        conformal: By method and target, the conformal level of each database.
        config: The experiment's configuration.
    """
    clusters = question_clusters(evidences)
    for method, found in families.items():
        own = [found[item.key] for item in evidences]
        for level in config["levels"]:
            yield at_levels("own", method, level, own, [level] * len(own), clusters, config) | NO_PROMISE
            promised = [conformal[method][level, item.key] for item in evidences]
            row = at_levels("conformal", method, level, own, [one.level for one in promised], clusters, config)
            yield row | {
                "conformal_level": float(np.mean([one.level for one in promised])),
                "enough_databases": all(one.holds for one in promised),
                "calibration_databases": promised[0].num_databases,
            }
        for level in CURVE:
            size, holds = (np.concatenate(parts) for parts in zip(*(one.at(float(level)) for one in own), strict=True))
            row = {"part": "curve", "method": method, "level": float(level), "questions": len(holds)}
            yield row | {"coverage": float(holds.mean()), "mean_size": float(size.mean())}
        for level in config["levels"] if own[0].collection else ():
            inside, size = (
                np.concatenate(parts) for parts in zip(*(one.collection[level] for one in own), strict=True)
            )
            share = interval(inside.astype(float), clusters, config)
            row = {"part": "collection", "method": method, "level": level, "questions": len(inside)}
            row |= {"coverage": share.estimate, "coverage_lower": share.lower, "coverage_upper": share.upper}
            yield row | {"mean_size": float(size.mean())}
    yield from score_rows(evidences, families, clusters, config)


NO_PROMISE = {"conformal_level": None, "enough_databases": None, "calibration_databases": None}


def at_levels(
    part: str,
    method: str,
    target: float,
    families: Sequence[Family],
    levels: Sequence[float],
    clusters: tuple[list, np.ndarray],
    config: Mapping,
) -> dict:
    """Coverage with its interval and mean size of a method's sets, each database at its level."""
    found = [family.at(level) for family, level in zip(families, levels, strict=True)]
    size, holds = (np.concatenate(parts) for parts in zip(*found, strict=True))
    share = interval(holds.astype(float), clusters, config)
    row = {"part": part, "method": method, "level": target, "questions": len(holds), "coverage": share.estimate}
    return row | {"coverage_lower": share.lower, "coverage_upper": share.upper, "mean_size": float(size.mean())}


def score_rows(
    evidences: Sequence[Evidence], families: Families, clusters: tuple[list, np.ndarray], config: Mapping
) -> Iterator[dict]:
    """Log probability of gold under each joint, and what `hierarchical` gains over it, with their intervals."""
    scores = {name: np.concatenate([found[item.key].score for item in evidences]) for name, found in families.items()}
    for method, score in scores.items():
        if np.isnan(score).any():
            continue
        rng = np.random.default_rng(config["seed"])
        mean = interval(score, clusters, config)
        gain = paired_difference(scores["hierarchical"], score, *clusters, config["resamples"], rng)
        row = {"part": "score", "method": method, "questions": len(score), "joint_log_score": mean.estimate}
        row |= {"score_lower": mean.lower, "score_upper": mean.upper, "gain": gain.estimate}
        row |= {"gain_lower": gain.lower, "gain_upper": gain.upper}
        rng = np.random.default_rng(config["seed"])
        both = np.stack([scores["hierarchical"], score], axis=1)
        below = clustered_bootstrap(both, *clusters, config["resamples"], rng, share_below)
        yield row | {"nll_below": below.estimate, "nll_below_lower": below.lower, "nll_below_upper": below.upper}


def share_below(both: np.ndarray) -> float:
    """By which share the first column's mean is nearer 0 than the second's."""
    return 1 - float(both[:, 0].mean() / both[:, 1].mean())


def from_training(training: Families, evidences: Sequence[Evidence], config: Mapping) -> dict[str, dict]:
    """Conformal levels calibrated on the training databases: the same for every database of the set."""
    return {
        method: {
            (level, item.key): promised
            for level in config["levels"]
            for promised in [calibrated(found, list(found), level)]
            for item in evidences
        }
        for method, found in training.items()
    }


def from_the_others(families: Families, config: Mapping) -> dict[str, dict]:
    """Conformal levels of each database calibrated on the other databases of its set but its twins.

    Their covers come from fits that saw the database (jackknife, not split), so the promise holds only nearly.
    """
    twins = load_twins()
    return {
        method: {
            (level, key): calibrated(found, [other for other in found if other not in {key, *twins[key]}], level)
            for level in config["levels"]
            for key in found
        }
        for method, found in families.items()
    }


def calibrated(
    found: Mapping[tuple[str, str], Family], keys: Sequence[tuple[str, str]], level: float
) -> ConformalLevel:
    """The conformal level of a method from these databases."""
    required = [found[key].required for key in keys]
    databases = [key for key, values in zip(keys, required, strict=True) for _ in values]
    return conformal_level(np.concatenate(required), databases, level)


def size_at(rows: Sequence[Mapping], coverage: float) -> float | None:
    """Mean size of a method at a realised coverage: between its curve's smallest sizes there; None off its ends."""
    smallest: dict[float, float] = {}
    for row in rows:
        smallest[row["coverage"]] = min(row["mean_size"], smallest.get(row["coverage"], np.inf))
    reached = sorted(smallest)
    if not reached[0] <= coverage <= reached[-1]:
        return None
    return float(np.interp(coverage, reached, [smallest[point] for point in reached]))


def interval(values: np.ndarray, clusters: tuple[list, np.ndarray], config: Mapping) -> Interval:
    """Mean with its clustered interval."""
    return clustered_bootstrap(values, *clusters, config["resamples"], np.random.default_rng(config["seed"]))
