"""One set of every size for each question, by each method, with the level at which the method returns it."""

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from tqdm import tqdm

from bayeslink.baselines.calibrators import fit_platt, fit_temperature, product_distribution
from bayeslink.decision.covers import cover_family
from bayeslink.evaluation.held_out import FitSettings, fit_folds, fresh_draws
from bayeslink.evaluation.questions import Questions, stored_questions
from bayeslink.evaluation.report import fit_posteriors
from bayeslink.evidence.channel import Evidence
from bayeslink.evidence.forms import form_values
from bayeslink.evidence.store import load_evidence, load_twins
from bayeslink.inference import make_room
from bayeslink.inference.predictive import predict
from bayeslink.model.hierarchy import Terms, Variant
from bayeslink.schema.split import folds_by_database

HELD = ("spider-dev", "bird-dev")
FORMS = ("value", "below_best", "rank")


class Family(NamedTuple):
    """A method's sets of 0, 1, ... tables for the questions of one database.

    Attributes:
        probability: Level up to which the set of each size is returned.
        holds: Whether it holds gold.
        score: Log probability of gold under the method's joint, nats.
    """

    probability: np.ndarray
    holds: np.ndarray
    score: np.ndarray

    @property
    def required(self) -> np.ndarray:
        """The level above which gold is inside, as `decision.covers.required_level`."""
        return np.where(self.holds, 0.0, self.probability).max(axis=1)

    def at(self, level: float) -> tuple[np.ndarray, np.ndarray]:
        """Size of the set of this level, and whether it holds gold."""
        size = (self.probability >= level - 1e-12).argmax(axis=1)
        size[self.probability.max(axis=1) < level - 1e-12] = self.probability.shape[1] - 1
        return size, self.holds[np.arange(len(size)), size]


Families = dict[str, dict[tuple[str, str], Family]]
"""By method, then by database."""


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
    calibrating: dict[str, list] = {}
    for number in tqdm(sorted(set(fold.values())), desc="cross-fit", unit="fold"):
        inside = [
            item.select_questions(np.arange(min(item.num_questions, config["calibration_questions"])))
            for item in training.evidences
            if fold[item.key] == number and item.num_tables <= config["calibration_tables"]
        ]
        rest = training.without([key for key in keys if fold[key] == number])
        for name, found in joint_distributions(rest, inside, config).items():
            calibrating.setdefault(name, []).extend(found)
    train = {name: by_key(found) for name, found in calibrating.items()}
    tests = {data: load_evidence(data, config["channels"])[: config["databases"]] for data in config["transfer"]}
    every = [item for items in tests.values() for item in items]
    distributions = joint_distributions(training, every, config)
    recalibrated = recalibrations(calibrating["independent"])
    peers = schemagate(config, keys)
    train |= {name: by_key(rule(calibrating["independent"])) for name, rule in recalibrated.items()}
    train |= {"schemagate": by_key(peers([item for item, _, _ in calibrating["independent"]]))}
    found: dict[str, Families] = {}
    start = 0
    for data, items in tests.items():
        place = slice(start, start + len(items))
        found[data] = {name: by_key(rows[place]) for name, rows in distributions.items()}
        plain = distributions["independent"][place]
        found[data] |= {name: by_key(rule(plain)) for name, rule in recalibrated.items()}
        found[data] |= {"top_p": top_p(plain), "schemagate": by_key(peers(items, data))}
        start += len(items)
    return train | {"top_p": top_p(calibrating["independent"])}, found


def left_out(data: str, config: Mapping) -> Families:
    """Families of each database of a set by fits on the others."""
    evidences = load_evidence(data, config["channels"])[: config["databases"]]
    found: Families = {}
    for name in tqdm(config["variants"], desc=data, unit="variant"):
        rows = []
        for item in fit_folds(evidences, Variant(name), "unseen", settings_of(config), twins=load_twins()):
            distribution, score = item.predict()
            rows.append((item.evidence, distribution, score))
            make_room()
        found[name] = by_key(rows)
    return found


def joint_distributions(training: Questions, evidences: Sequence[Evidence], config: Mapping) -> dict[str, list]:
    """(evidence, distribution, log score) of each database under each variant fitted on the training databases."""
    variants = [Variant(name) for name in config["variants"]]
    posteriors = fit_posteriors(training, variants, (), settings_of(config), effects=False)
    found = {}
    for posterior in posteriors:
        rows = []
        for item in evidences:
            ready = posterior.standardisation.apply(item)
            distribution, score = predict(ready, fresh_draws(posterior, ready, config["seed"]), posterior.support)
            rows.append((item, distribution, score))
        found[posterior.variant.value] = rows
        make_room()
    return found


def recalibrations(rows: Sequence[tuple]) -> Mapping:
    """Temperature and Platt scaling of marginals, fitted on the pairs of these databases, as independent tables."""
    probability = np.concatenate([distribution.marginals.ravel() for _, distribution, _ in rows])
    outcome = np.concatenate([np.asarray(item.gold).ravel() for item, _, _ in rows])
    fits = {"temperature": fit_temperature(probability, outcome), "platt": fit_platt(probability, outcome)}

    def applied(fit) -> Callable[[Sequence[tuple]], list]:
        return lambda found: [products(item, fit.apply(d.marginals)) for item, d, _ in found]

    return {name: applied(fit) for name, fit in fits.items()}


def schemagate(config: Mapping, keys: Sequence[tuple[str, str]]):
    """Logistic regression on the peer's own score of each table, trained on the same databases: a function of evidence.

    It reads the score, its distance from the question's best, its rank and the log number of tables.
    """

    def features(item: Evidence) -> np.ndarray:
        count = np.full((*item.values.shape[:2], 1), np.log(item.num_tables))
        return np.concatenate([form_values(item.values, FORMS), count], axis=2)

    stored = {item.key: item for name in config["train"] for item in load_evidence(name, ["schemagate"])}
    pairs = [features(stored[key]).reshape(-1, len(FORMS) + 1) for key in keys]
    gold = np.concatenate([np.asarray(stored[key].gold).ravel() for key in keys])
    fit = make_pipeline(StandardScaler(), LogisticRegression(C=1e3, max_iter=1000)).fit(np.concatenate(pairs), gold)

    def apply(items: Sequence[Evidence], data: str | None = None) -> list:
        own = stored if data is None else {item.key: item for item in load_evidence(data, ["schemagate"])}
        rows = []
        for item in items:
            read = own[item.key].select_questions(np.arange(item.num_questions))
            values = features(read)
            p = fit.predict_proba(values.reshape(-1, values.shape[2]))[:, 1].reshape(values.shape[:2])
            rows.append(products(item, p))
        return rows

    return apply


def products(item: Evidence, marginals: np.ndarray) -> tuple:
    """The joint of independent tables with these probabilities, and its log score."""
    return item, *product_distribution(marginals, item.edges, np.asarray(item.gold))


def by_key(rows: Sequence[tuple]) -> dict[tuple[str, str], Family]:
    """Families of the smallest covers."""
    found = {}
    for item, distribution, score in rows:
        family = cover_family(distribution)
        holds = ~(np.asarray(item.gold)[:, None, :] & ~family.chosen).any(axis=2)
        found[item.key] = Family(family.probability, holds, np.asarray(score))
    return found


def top_p(rows: Sequence[tuple]) -> dict[tuple[str, str], Family]:
    """The most probable tables until their share of the sum of the marginals reaches the level."""
    found = {}
    for item, distribution, score in rows:
        p = distribution.marginals
        order = np.argsort(-p, axis=1, kind="stable")
        rank = np.argsort(order, axis=1, kind="stable")
        sizes = np.arange(p.shape[1] + 1)
        chosen = rank[:, None, :] < sizes[None, :, None]
        share = np.minimum((chosen * p[:, None, :]).sum(axis=2) / np.maximum(p.sum(axis=1, keepdims=True), 1e-300), 1.0)
        share[:, -1] = 1.0
        holds = ~(np.asarray(item.gold)[:, None, :] & ~chosen).any(axis=2)
        found[item.key] = Family(share, holds, np.full_like(np.asarray(score), np.nan))
    return found
