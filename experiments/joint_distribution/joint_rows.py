"""Joint log score, credible collections and covers of each variant and of calibrated marginals taken as independent."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from bayeslink.baselines.calibrators import as_its_fit_saw, fit_platt, fold_numbers, product_distribution
from bayeslink.decision.sets import credible_collection, smallest_cover
from bayeslink.evaluation.comparison import clustered_bootstrap
from bayeslink.evaluation.held_out import FitSettings, HeldOut, held_out
from bayeslink.evaluation.recovery import strict_recall
from bayeslink.evidence.cache import cache_home
from bayeslink.evidence.channel import Evidence
from bayeslink.evidence.store import load_evidence
from bayeslink.inference import make_room
from bayeslink.inference.predictive import SubgraphDistribution
from bayeslink.model.hierarchy import Variant

SCORES = ("coverage", "excess", "size", "cover_coverage", "cover_excess", "cover_size")
"""Whether gold is inside, that less the set's own stated probability, and how large it is: collection, then cover."""

PLATT = ("independent", "independent_hierarchical", "hierarchical")
"""Variants whose marginals are scaled too, beside those of `fixed`."""


class Joint(NamedTuple):
    """What one joint distribution says, question by question.

    Attributes:
        log_score: Log probability of gold, nats; by questions.
        at_level: Each of `SCORES`; axes scores, levels, questions. A collection's size counts subsets, a
            cover's counts tables.
    """

    log_score: np.ndarray
    at_level: np.ndarray


def rows_of(data: str, config: Mapping) -> list[dict]:
    """One row for each variant and level on one set."""
    evidences = load_evidence(data, config["channels"])[: config["databases"]]
    found = held_out(
        evidences,
        [Variant(name) for name in config["variants"]],
        "known",
        FitSettings(num_draws=config["num_draws"], seed=config["seed"]),
        num_folds=config["num_folds"],
        folder=cache_home() / "held_out",
        progress=True,
    )
    first = found[Variant.INDEPENDENT]
    folds = fold_numbers([item.evidence.key for item in first], [item.key for item in evidences])
    wholes = as_its_fit_saw(evidences, [(item.evidence.key, item.questions) for item in first], folds)
    joints = {}
    for variant, items in found.items():
        parts = []
        for item in items:
            make_room()
            parts.append(joint_of(*item.predict(), item, config["levels"]))
        joints[variant.value] = together(parts)
    parts = []
    for item in first:
        make_room()
        parts.append(joint_of(*item.predict(config["coupling"]), item, config["levels"]))
    joints["fixed"] = together(parts)
    couplings = {variant: None for variant in PLATT if variant in joints} | {"fixed": config["coupling"]}
    for name, coupling in couplings.items():
        items = first if name == "fixed" else found[Variant(name)]
        joints[f"{name}_platt"] = together(calibrated(items, wholes, folds, coupling, config["levels"]))
    databases = [item.evidence.key for item in first for _ in item.questions]
    groups = np.concatenate([item.evidence.group for item in first])

    def interval(name: str, values: np.ndarray) -> dict[str, float]:
        rng = np.random.default_rng(config["seed"])
        made = clustered_bootstrap(values, databases, groups, config["resamples"], rng)
        return {name: made.estimate, f"{name}_lower": made.lower, f"{name}_upper": made.upper}

    rows, ours = [], joints["hierarchical"].log_score
    for name, joint in joints.items():
        named: dict = {"data": data, "variant": name, "questions": len(groups), "databases": len(set(databases))}
        named["joint_log_score"] = float(joint.log_score.mean())
        named |= interval("gain_of_hierarchical", ours - joint.log_score)
        for place, level in enumerate(config["levels"]):
            scores = zip(SCORES, joint.at_level[:, place], strict=True)
            rows.append(named | {"level": level} | {k: v for pair in scores for k, v in interval(*pair).items()})
    return rows


def joint_of(
    distribution: SubgraphDistribution, log_score: np.ndarray, item: HeldOut, levels: Sequence[float]
) -> Joint:
    """The scores of one part's distribution."""
    gold = np.asarray(item.evidence.gold)
    place = gold @ (1 << np.arange(gold.shape[1]))
    scores = []
    for level in levels:
        size, inside = credible_collection(distribution, level)
        found = inside[np.arange(len(gold)), place]
        cover = smallest_cover(distribution, level)
        covered = strict_recall(cover.chosen, gold)
        mass = np.where(inside, distribution.probabilities, 0.0).sum(axis=1)
        scores.append([found, found - mass, size, covered, covered - cover.cover_probability, cover.size])
    return Joint(log_score, np.array(scores, dtype=np.float64).swapaxes(0, 1))


def calibrated(
    items: Sequence[HeldOut],
    wholes: Sequence[Evidence],
    folds: Sequence[int],
    coupling: float | None,
    levels: Sequence[float],
) -> list[Joint]:
    """Marginals taken as independent, Platt-scaled by each fold's fit on its own training questions.

    A coupling, if one is given, replaces the fit's own.
    """
    given, golds = [], [np.asarray(whole.gold) for whole in wholes]
    for item, whole in zip(items, wholes, strict=True):
        make_room()
        given.append(item._replace(evidence=whole).predict(coupling)[0].marginals)
    lines = {}
    for fold in dict.fromkeys(folds):
        places = [place for place, own in enumerate(folds) if own == fold]
        pairs = [
            np.concatenate([np.delete(arrays[place], items[place].questions, axis=0).ravel() for place in places])
            for arrays in (given, golds)
        ]
        lines[fold] = fit_platt(*pairs)
    found = []
    for item, fold, marginals, gold in zip(items, folds, given, golds, strict=True):
        scaled = lines[fold].apply(marginals[item.questions])
        found.append(joint_of(*product_distribution(scaled, item.evidence.edges, gold[item.questions]), item, levels))
    return found


def together(parts: Sequence[Joint]) -> Joint:
    """All questions, part after part."""
    return Joint(*(np.concatenate(arrays, axis=-1) for arrays in zip(*parts, strict=True)))
