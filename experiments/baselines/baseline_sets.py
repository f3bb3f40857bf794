"""The tables that each variant and each baseline chooses, for questions that no fit has seen."""

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple, TypeVar

import numpy as np

from bayeslink.baselines.calibrators import (
    BetaBinomial,
    Platt,
    as_its_fit_saw,
    fit_beta_binomial,
    fit_platt,
    fit_temperature,
    fold_numbers,
    log_odds_of,
)
from bayeslink.baselines.connectors import expand, join_by_shortest_paths, join_by_steiner_tree, seeds
from bayeslink.baselines.cutoffs import top_p
from bayeslink.decision.rules import top_k
from bayeslink.evaluation.held_out import FitSettings, held_out
from bayeslink.evaluation.recovery import f1, precision, recall
from bayeslink.evidence.cache import cache_home
from bayeslink.evidence.channel import Evidence
from bayeslink.evidence.store import load_evidence
from bayeslink.inference import make_room
from bayeslink.model.hierarchy import Variant

Fitted = TypeVar("Fitted")

SCORES = (precision, recall)

Sets = list[np.ndarray]
"""Chosen tables of each part: questions by tables."""


class Part(NamedTuple):
    """One database in one fold: all its questions, and which of them the fold holds out.

    Attributes:
        whole: Raw evidence of all questions.
        held: Positions of the held-out questions.
        fold: The fold.
        given: Probability of each table for all questions by the fold's fit, by start (the variant whose
            probabilities a baseline takes).
        tops: The 1, 2, ... most probable tables for all questions, by start.
        marginals: Probability of each table for the held-out questions, by variant.
        modes: The joint mode for the held-out questions, by variant.
    """

    whole: Evidence
    held: np.ndarray
    fold: int
    given: dict[str, np.ndarray]
    tops: dict[str, Sets]
    marginals: dict[str, np.ndarray]
    modes: dict[str, np.ndarray]

    @property
    def gold(self) -> np.ndarray:
        """Gold tables of all questions."""
        return np.asarray(self.whole.gold)

    def training(self, array: np.ndarray) -> np.ndarray:
        """The rows of the questions on which the fold's fit was trained."""
        return np.delete(array, self.held, axis=0)


class Choice(NamedTuple):
    """What a method chooses for the held-out questions.

    Attributes:
        sets: Chosen tables of each part.
        exact: The set that is compared with gold as a whole; the joint mode of a variant.
        fitted: What was fitted on the training folds, fold by fold, as text.
    """

    sets: Sets
    exact: Sets
    fitted: str = ""


def predicted_parts(data: str, config: Mapping) -> list[Part]:
    """Every question of a set with what a fit on the other folds says of it."""
    evidences = load_evidence(data, config["channels"])[: config["databases"]]
    raw = {item.key: item for item in evidences}
    settings = FitSettings(num_draws=config["num_draws"], seed=config["seed"])
    variants = [Variant(name) for name in config["variants"]]
    found = held_out(
        evidences,
        variants,
        "known",
        settings,
        num_folds=config["num_folds"],
        folder=cache_home() / "held_out",
        progress=True,
    )
    first = found[Variant.INDEPENDENT]
    folds = fold_numbers([item.evidence.key for item in first], list(raw))
    wholes = as_its_fit_saw(evidences, [(item.evidence.key, item.questions) for item in first], folds)
    parts = []
    for place, (item, fold, whole) in enumerate(zip(first, folds, wholes, strict=True)):
        make_room()
        made = {variant.value: found[variant][place].predict()[0] for variant in variants}
        made["fixed"] = item.predict(config["coupling"])[0]
        starts = (*config["starts"], "hierarchical")
        given = {name: found[Variant(name)][place]._replace(evidence=whole).predict()[0] for name in starts}
        parts.append(
            Part(
                raw[whole.key],
                item.questions,
                fold,
                {name: one.marginals for name, one in given.items()},
                {name: [top_k(one, k + 1).chosen for k in range(config["most_tables"])] for name, one in given.items()},
                {name: one.marginals for name, one in made.items()},
                {name: one.mode for name, one in made.items()},
            )
        )
    return parts


def choices_of(parts: Sequence[Part], config: Mapping) -> dict[str, Choice]:
    """What each variant and each baseline chooses, by name."""
    found = {
        name: Choice([part.marginals[name] > 0.5 for part in parts], [part.modes[name] for part in parts])
        for name in (*config["variants"], "fixed")
    }
    never_empty = [seeds(part.marginals["hierarchical"]) for part in parts]
    found["hierarchical_never_empty"] = Choice(never_empty, never_empty)
    found["hierarchical_tuned_cut"] = tuned_cut("hierarchical", parts, config["cuts"])
    found |= {f"beta_binomial{suffix}": choice for suffix, choice in credibility(parts).items()}
    for start in config["starts"]:
        end = "" if start == "independent" else f"_on_{start}"
        found |= {f"{name}{end}": choice for name, choice in baselines_on(start, parts, config).items()}
    return found


def baselines_on(start: str, parts: Sequence[Part], config: Mapping) -> dict[str, Choice]:
    """The baselines that take one variant's probabilities."""
    given = [part.given[start] for part in parts]
    picks = [seeds(probability) for probability in given]
    heats = by_fold(parts, lambda some: fit_temperature(*training_pairs(some, start)))
    lines = by_fold(parts, lambda some: fit_platt(*training_pairs(some, start)))
    ks = {f"k {k + 1}": [part.tops[start][k] for part in parts] for k in range(config["most_tables"])}
    prefixes = {
        f"T {heat:g} p {mass:g}": [top_p(log_odds_of(probability), mass, heat) for probability in given]
        for heat in config["temperatures"]
        for mass in config["masses"]
    }
    paths = {
        f"cut {cut:g}": joined(join_by_shortest_paths, [seeds(probability, cut) for probability in given], parts)
        for cut in config["cuts"]
    }
    return {
        "temperature": picked(given, heats, parts, [f"T {one.temperature:.3f}" for one in heats]),
        "platt": picked(given, lines, parts, [f"a {one.intercept:.3f} b {one.slope:.3f}" for one in lines]),
        "tuned_cut": tuned_cut(start, parts, config["cuts"]),
        "top_k": tuned(ks, parts),
        "top_p": tuned(prefixes, parts),
        "shortest_path": held_of(joined(join_by_shortest_paths, picks, parts), parts),
        "steiner": held_of(joined(join_by_steiner_tree, picks, parts), parts),
        "expansion": held_of(joined(expand, picks, parts), parts),
        "tuned_shortest_path": tuned(paths, parts),
    }


def credibility(parts: Sequence[Part]) -> dict[str, Choice]:
    """Beta-Binomial credibility above 1/2, as it is and calibrated to gold."""

    def fit(some: list[Part]) -> tuple[BetaBinomial, Platt]:
        values = np.concatenate(
            [part.training(part.whole.values).reshape(-1, len(part.whole.channels)) for part in some]
        )
        gold = np.concatenate([part.training(part.gold).ravel() for part in some])
        votes = fit_beta_binomial(values, gold)
        return votes, fit_platt(votes.apply(values), gold)

    found = by_fold(parts, fit)
    stated = [votes.apply(part.whole.values) for part, (votes, _) in zip(parts, found, strict=True)]
    texts = [f"a {votes.a:.3f} b {votes.b:.3f}" for votes, _ in found]
    lines = [line for _, line in found]
    return {
        "": held_of([probability > 0.5 for probability in stated], parts, texts),
        "_platt": picked(stated, lines, parts, [f"a {line.intercept:.3f} b {line.slope:.3f}" for line in lines]),
    }


def by_fold(parts: Sequence[Part], fit: Callable[[list[Part]], Fitted]) -> list[Fitted]:
    """For each part what `fit` makes of all parts of its fold; it is to read their training questions alone."""
    folds = {part.fold: [other for other in parts if other.fold == part.fold] for part in parts}
    made = {fold: fit(some) for fold, some in folds.items()}
    return [made[part.fold] for part in parts]


def tuned(ways: Mapping[str, Sets], parts: Sequence[Part]) -> Choice:
    """Of several ways to choose, the one with the largest F1 on each fold's training questions; of ties the first."""
    place = {id(part): number for number, part in enumerate(parts)}

    def best(some: list[Part]) -> str:
        def value(way: str) -> float:
            chosen = [(part.training(ways[way][place[id(part)]]), part.training(part.gold)) for part in some]
            return f1(*(float(np.concatenate([score(*pair) for pair in chosen]).mean()) for score in SCORES))

        return max(ways, key=value)

    found = by_fold(parts, best)
    return held_of([ways[way][number] for number, way in enumerate(found)], parts, found)


def tuned_cut(name: str, parts: Sequence[Part], cuts: Sequence[float]) -> Choice:
    """Tables above a threshold that is tuned."""
    return tuned({f"cut {cut:g}": [part.given[name] > cut for part in parts] for cut in cuts}, parts)


def training_pairs(parts: Sequence[Part], name: str) -> tuple[np.ndarray, np.ndarray]:
    """Probability and gold of every (question, table) pair of the training questions."""
    probability = np.concatenate([part.training(part.given[name]).ravel() for part in parts])
    return probability, np.concatenate([part.training(part.gold).ravel() for part in parts])


def picked(given: Sets, calibrators: Sequence, parts: Sequence[Part], texts: Sequence[str]) -> Choice:
    """Tables whose calibrated probability exceeds 1/2."""
    return held_of([one.apply(p) > 0.5 for one, p in zip(calibrators, given, strict=True)], parts, texts)


def joined(join: Callable[..., np.ndarray], picks: Sets, parts: Sequence[Part]) -> Sets:
    """The picks joined in each part's graph."""
    return [join(some, part.whole.edges) for some, part in zip(picks, parts, strict=True)]


def held_of(sets: Sets, parts: Sequence[Part], texts: Sequence[str] = ()) -> Choice:
    """The held-out rows of sets for all questions; one text for each fold, in which parts have the same."""
    chosen = [some[part.held] for some, part in zip(sets, parts, strict=True)]
    fitted = {part.fold: text for part, text in zip(parts, texts, strict=False)}
    return Choice(chosen, chosen, "; ".join(fitted.values()))
