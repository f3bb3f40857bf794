"""One set of every size for each question, by each method, with the level up to which the method returns it."""

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from tqdm import tqdm

from bayeslink.baselines.calibrators import fit_platt, fit_temperature, product_distribution
from bayeslink.decision.covers import cover_family
from bayeslink.decision.sets import credible_collection
from bayeslink.evaluation.held_out import FitSettings, fit_folds, fresh_draws
from bayeslink.evaluation.questions import Questions, stored_questions
from bayeslink.evaluation.report import fit_posteriors
from bayeslink.evidence.channel import Evidence
from bayeslink.evidence.forms import form_values
from bayeslink.evidence.store import load_evidence, load_twins
from bayeslink.inference import make_room
from bayeslink.inference.predictive import SubgraphDistribution, predict
from bayeslink.model.hierarchy import Terms, Variant
from bayeslink.schema.split import folds_by_database

HELD = ("spider-dev", "bird-dev")
FORMS = ("value", "below_best", "rank")
PLAIN = "independent"
"""The variant whose marginals are calibrated and cut."""

Key = tuple[str, str]


class Row(NamedTuple):
    """A database's questions under one joint: the distribution, and the log probability of gold, nats."""

    evidence: Evidence
    distribution: SubgraphDistribution
    score: np.ndarray


class Family(NamedTuple):
    """A method's sets of 0, 1, ... tables for the questions of one database.

    Attributes:
        probability: Level up to which the set of each size is returned.
        holds: Whether it holds gold.
        score: Log probability of gold under the method's joint, nats; NaN where it has none.
        collection: Whether gold is in the credible collection of subsets of each level, and its size; by level.
    """

    probability: np.ndarray
    holds: np.ndarray
    score: np.ndarray
    collection: Mapping[float, tuple[np.ndarray, np.ndarray]]

    @property
    def required(self) -> np.ndarray:
        """The level above which gold is inside, as `decision.covers.required_level`."""
        return np.where(self.holds, 0.0, self.probability).max(axis=1)

    def at(self, level: float) -> tuple[np.ndarray, np.ndarray]:
        """Size of the set of this level, and whether it holds gold."""
        size = (self.probability >= level - 1e-12).argmax(axis=1)
        size[self.probability.max(axis=1) < level - 1e-12] = self.probability.shape[1] - 1
        return size, self.holds[np.arange(len(size)), size]


Families = dict[str, dict[Key, Family]]
"""By method, then by database."""
Rule = Callable[[Sequence[Row]], list[Row]]


def settings_of(config: Mapping) -> FitSettings:
    """Settings of every fit."""
    return FitSettings(
        num_draws=config["draws"],
        seed=config["seed"],
        context=tuple(config["context"]),
        terms=Terms(correlated=True),
    )


def transferred(config: Mapping) -> tuple[Families, dict[str, Families]]:
    """Families of the training databases by a cross-fit, and of each dev set by fits on all training databases."""
    training = stored_questions(config["train"], config["channels"])
    barred = {item.key for name in HELD for item in load_evidence(name)}
    twins = load_twins()
    training = training.without(barred | {twin for key in barred for twin in twins[key]})
    training = training.without([item.key for item in training.evidences if item.num_tables > config["fit_tables"]])
    training = training.without([item.key for item in training.evidences[config["databases"] :]])
    keys = sorted(item.key for item in training.evidences)
    fold = folds_by_database(keys, twins, config["folds"], np.random.default_rng(config["seed"]))
    by_fold: list[dict[str, list[Row]]] = []
    for number in tqdm(sorted(set(fold.values())), desc="cross-fit", unit="fold"):
        inside = [
            item.select_questions(np.arange(min(item.num_questions, config["calibration_questions"])))
            for item in training.evidences
            if fold[item.key] == number and item.num_tables <= config["calibration_tables"]
        ]
        rest = training.without([key for key in keys if fold[key] == number])
        by_fold.append(joint_distributions(rest, inside, config))
    calibrating: Families = {}
    for place, rows in enumerate(by_fold):
        # What is fitted on labels is fitted on the other folds, as the joint was.
        others = [row for other, found in enumerate(by_fold) if other != place for row in found[PLAIN]]
        for name, found in methods(rows, others, config).items():
            calibrating.setdefault(name, {}).update(found)
    tests = {data: load_evidence(data, config["channels"])[: config["databases"]] for data in config["transfer"]}
    every = joint_distributions(training, [item for items in tests.values() for item in items], config)
    plain = [row for rows in by_fold for row in rows[PLAIN]]
    found: dict[str, Families] = {}
    start = 0
    for data, items in tests.items():
        part = slice(start, start + len(items))
        found[data] = methods({name: rows[part] for name, rows in every.items()}, plain, config, data)
        start += len(items)
    return calibrating, found


def left_out(data: str, config: Mapping) -> Families:
    """Families of each database of a set, everything fitted on the other databases without its twins."""
    evidences = load_evidence(data, config["channels"])[: config["databases"]]
    twins = load_twins()
    rows: dict[str, list[Row]] = {}
    for name in tqdm(config["variants"], desc=data, unit="variant"):
        for item in fit_folds(evidences, Variant(name), "unseen", settings_of(config), twins=twins):
            distribution, score = item.predict()
            raw = next(own for own in evidences if own.key == item.evidence.key)
            rows.setdefault(name, []).append(Row(raw, distribution, score))
            make_room()
    found: Families = {}
    for key in [row.evidence.key for row in rows[PLAIN]]:
        barred = {key, *twins[key]}
        own = {name: [row for row in listed if row.evidence.key == key] for name, listed in rows.items()}
        others = [row for row in rows[PLAIN] if row.evidence.key not in barred]
        for name, families in methods(own, others, config, data, data).items():
            found.setdefault(name, {}).update(families)
    return found


def methods(
    rows: Mapping[str, list[Row]],
    others: Sequence[Row],
    config: Mapping,
    data: str | None = None,
    of: str | None = None,
) -> Families:
    """Families of every method on some databases; what calibrates marginals is fitted on other databases.

    Args:
        rows: The databases' rows by variant.
        others: Rows of `PLAIN` on the databases that calibrate.
        config: The experiment's configuration.
        data: Stored set of the databases; a training set where None.
        of: Stored set of the others; training sets where None.
    """
    found = {name: {row.evidence.key: family(row, config) for row in listed} for name, listed in rows.items()}
    plain = rows[PLAIN]
    found["hierarchical_prefix"] = {row.evidence.key: prefixes(row) for row in rows["hierarchical"]}
    found["top_p"] = {row.evidence.key: top_p(row) for row in plain}
    for name, rule in (recalibrations(others) | {"schemagate": schemagate(others, config, data, of)}).items():
        found[name] = {row.evidence.key: family(row, config) for row in rule(plain)}
    return found


def joint_distributions(training: Questions, evidences: Sequence[Evidence], config: Mapping) -> dict[str, list[Row]]:
    """Rows of each database under each variant fitted on the training databases."""
    posteriors = fit_posteriors(
        training, [Variant(name) for name in config["variants"]], (), settings_of(config), effects=False
    )
    found: dict[str, list[Row]] = {}
    for posterior in posteriors:
        for item in evidences:
            ready = posterior.standardisation.apply(item)
            distribution, score = predict(ready, fresh_draws(posterior, ready, config["seed"]), posterior.support)
            found.setdefault(posterior.variant.value, []).append(Row(item, distribution, np.asarray(score)))
        make_room()
    return found


def recalibrations(others: Sequence[Row]) -> dict[str, Rule]:
    """Temperature and Platt scaling of marginals, fitted on these databases, tables then taken as independent."""
    probability = np.concatenate([row.distribution.marginals.ravel() for row in others])
    outcome = np.concatenate([np.asarray(row.evidence.gold).ravel() for row in others])
    fits = {"temperature": fit_temperature(probability, outcome), "platt": fit_platt(probability, outcome)}

    def applied(fit) -> Rule:
        return lambda rows: [products(row.evidence, fit.apply(row.distribution.marginals)) for row in rows]

    return {name: applied(fit) for name, fit in fits.items()}


def schemagate(others: Sequence[Row], config: Mapping, data: str | None, of: str | None) -> Rule:
    """Logistic regression on the peer's own score of every table, fitted on the databases of these rows.

    It reads the score, its distance from the question's best and its rank, and what our intercept reads too: the log
    number of tables, and mean and maximum over the question's tables.
    """

    def stored(name: str | None) -> dict[Key, Evidence]:
        names = config["train"] if name is None else [name]
        return {item.key: item for one in names for item in load_evidence(one, ["schemagate"])}

    def features(item: Evidence) -> np.ndarray:
        of_question = [np.full((item.num_questions, 1), np.log(item.num_tables))]
        of_question += [item.values.mean(axis=1), item.values.max(axis=1)]
        wide = np.repeat(np.concatenate(of_question, axis=1)[:, None, :], item.num_tables, axis=1)
        return np.concatenate([form_values(item.values, FORMS), wide], axis=2)

    known = stored(of)
    training = [known[row.evidence.key] for row in others]
    pairs = np.concatenate([features(item).reshape(-1, len(FORMS) + 3) for item in training])
    gold = np.concatenate([np.asarray(item.gold).ravel() for item in training])
    fit = make_pipeline(StandardScaler(), LogisticRegression(C=1e3, max_iter=1000)).fit(pairs, gold)
    asked = stored(data)

    def apply(rows: Sequence[Row]) -> list[Row]:
        found = []
        for row in rows:
            own = asked[row.evidence.key].select_questions(np.arange(row.evidence.num_questions))
            values = features(own)
            p = fit.predict_proba(values.reshape(-1, values.shape[2]))[:, 1].reshape(values.shape[:2])
            found.append(products(row.evidence, p))
        return found

    return apply


def products(item: Evidence, marginals: np.ndarray) -> Row:
    """The joint of independent tables with these probabilities."""
    return Row(item, *product_distribution(marginals, item.edges, np.asarray(item.gold)))


def family(row: Row, config: Mapping) -> Family:
    """The smallest covers of a joint, and its credible collections of subsets."""
    found = cover_family(row.distribution)
    gold = np.asarray(row.evidence.gold)
    place = gold.astype(np.int64) @ (1 << np.arange(gold.shape[1]))
    collections = {}
    for level in config["levels"]:
        size, members = credible_collection(row.distribution, level)
        collections[level] = np.take_along_axis(members, place[:, None], axis=1)[:, 0], size
    return Family(found.probability, holding(gold, found.chosen), row.score, collections)


def prefixes(row: Row) -> Family:
    """The prefixes of the marginal order, with the probabilities that they cover."""
    chosen = ranked(row)
    states = chosen.astype(np.int64) @ (1 << np.arange(chosen.shape[2]))
    probability = np.take_along_axis(row.distribution.covered, states, axis=1)
    return Family(probability, holding(np.asarray(row.evidence.gold), chosen), row.score, {})


def top_p(row: Row) -> Family:
    """The most probable tables until their share of the sum of the marginals reaches the level."""
    chosen, p = ranked(row), row.distribution.marginals
    total = np.maximum(p.sum(axis=1, keepdims=True), 1e-300)
    share = np.minimum((chosen * p[:, None, :]).sum(axis=2) / total, 1.0)
    share[:, -1] = 1.0
    return Family(share, holding(np.asarray(row.evidence.gold), chosen), np.full(len(p), np.nan), {})


def ranked(row: Row) -> np.ndarray:
    """The 0, 1, ... most probable tables of each question; axes questions, sizes, tables."""
    p = row.distribution.marginals
    rank = np.argsort(np.argsort(-p, axis=1, kind="stable"), axis=1, kind="stable")
    return rank[:, None, :] < np.arange(p.shape[1] + 1)[None, :, None]


def holding(gold: np.ndarray, chosen: np.ndarray) -> np.ndarray:
    """Whether the sets of every size hold gold."""
    return ~(gold[:, None, :] & ~chosen).any(axis=2)
