"""Rows of the table: areas under risk against coverage by 1 - P(mode), and paired differences."""

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from tqdm import tqdm

from bayeslink.evaluation.comparison import Interval, clustered_bootstrap, question_clusters
from bayeslink.evaluation.coverage import area_under_risk, risk_at
from bayeslink.evaluation.learners import population_learners
from bayeslink.evaluation.learning import CurvePoint, learning_curve
from bayeslink.evaluation.recovery import exact_match
from bayeslink.evaluation.schemes import fresh_draws
from bayeslink.evidence.channel import Evidence
from bayeslink.evidence.store import load_evidence
from bayeslink.inference import make_room
from bayeslink.inference.posterior import Posterior, load_posteriors, shipped_path
from bayeslink.inference.predictive import predict
from bayeslink.model.hierarchy import Variant

LEARNED = ("independent", "pooled", "hierarchical_tables", "independent_hierarchical_tables")
"""Methods that are compared where there are labelled questions; the first two do not learn from them."""


class Ordered(NamedTuple):
    """A method's stated probability of being wrong and whether it was, of each question in each replicate."""

    risks: np.ndarray
    wrong: np.ndarray

    def values(self) -> np.ndarray:
        """One row a question: the risks of all replicates, then the losses; rounding must not break ties."""
        return np.concatenate([self.risks.round(12), self.wrong]).T


def unseen(config: Mapping) -> Iterator[dict]:
    """Posteriors of the package on databases that nothing was fitted on."""
    cases = [(name, data) for name in config["shipped"] for data in config["sets"]]
    for name, data in tqdm(cases, unit="set"):
        shipped = load_posteriors(shipped_path(name))
        given = {variant: shipped[Variant(variant)] for variant in config["variants"]}
        evidences = load_evidence(data, next(iter(given.values())).channels)[: config["databases"]]
        orders = {variant: ordered(evidences, posterior, config) for variant, posterior in given.items()}
        yield from compared(orders, "hierarchical", question_clusters(evidences), config, name, data, 0)


def labelled(config: Mapping) -> Iterator[dict]:
    """Methods of the learning curve, given the same labelled questions."""
    learners, found = population_learners(config, (Variant.INDEPENDENT, Variant.POOLED))
    chosen = {name: learners[name] for name in LEARNED}
    for data in config["sets"]:
        small = [item for item in load_evidence(data, config["channels"]) if item.num_tables <= config["max_tables"]]
        small = small[: config["databases"]]
        points = learning_curve(small, chosen, config["counts"], config["replicates"], config["seed"], progress=True)
        for count in config["counts"]:
            here = {point.method: point for point in points if point.num_labelled == count}
            first = next(iter(here.values()))
            orders = {name: of_point(point) for name, point in here.items()}
            clusters = list(first.databases), first.groups
            for row in compared(orders, "hierarchical_tables", clusters, config, "embedding", data, count):
                gone = len(load_evidence(data)) - row["databases"]
                yield row | {"databases_left_out": gone, "train_databases": found["train_databases"]}


def of_point(point: CurvePoint) -> Ordered:
    """A method's orders in each replicate of its labelled questions.

    Raises:
        FloatingPointError: If an update did not converge, whose questions would be left out of one order alone.
    """
    if point.num_failed:
        raise FloatingPointError(f"{point.method}: {point.num_failed} updates did not converge; see learning_curve")
    return Ordered(point.risks, 1 - point.exact)


def ordered(evidences: Sequence[Evidence], posterior: Posterior, config: Mapping) -> Ordered:
    """One order: fresh effects for every database."""
    risks, wrong = [], []
    for item in evidences:
        ready = posterior.standardisation.apply(item)
        distribution, _ = predict(ready, fresh_draws(posterior, ready, config["seed"]), posterior.support)
        risks.append(1 - distribution.mode_probability)
        wrong.append(1 - exact_match(distribution.mode, np.asarray(item.gold)).astype(float))
        make_room()
    return Ordered(np.concatenate(risks)[None], np.concatenate(wrong)[None])


def compared(
    orders: Mapping[str, Ordered],
    ours: str,
    clusters: tuple[Sequence, np.ndarray],
    config: Mapping,
    channels: str,
    data: str,
    count: int,
) -> Iterator[dict]:
    """A row for each method: its area and risk at 80 %, and our area less its own, absolute and relative."""

    def interval(values: np.ndarray, statistic) -> Interval:
        rng = np.random.default_rng(config["seed"])
        return clustered_bootstrap(values, *clusters, config["resamples"], rng, statistic)

    first = orders[ours].values()
    for name, order in orders.items():
        both = np.concatenate([first, order.values()], axis=1)
        half = first.shape[1]
        own = interval(order.values(), area)
        less = interval(both, lambda drawn, half=half: area(drawn[:, :half]) - area(drawn[:, half:]))
        ratio = interval(both, lambda drawn, half=half: area(drawn[:, :half]) / area(drawn[:, half:]) - 1)
        row = {"channels": channels, "data": data, "labelled": count, "method": name, "ours": name == ours}
        row |= {"questions": len(first)}
        row |= {"area": own.estimate, "area_lower": own.lower, "area_upper": own.upper}
        row |= {"risk_at_80": mean_over(order.values(), lambda risk, loss: risk_at(risk, loss, 0.8))}
        row |= {"exact": float(1 - order.wrong.mean())}
        row |= {"change": less.estimate, "change_lower": less.lower, "change_upper": less.upper}
        row |= {"relative": ratio.estimate, "relative_lower": ratio.lower, "relative_upper": ratio.upper}
        yield row | {"databases": len(set(clusters[0])), "databases_left_out": 0, "train_databases": None}


def area(values: np.ndarray) -> float:
    """Area under risk against coverage, mean over replicates."""
    return mean_over(values, area_under_risk)


def mean_over(values: np.ndarray, score) -> float:
    """Mean over replicates of a score of (risks, losses)."""
    replicates = values.shape[1] // 2
    return float(np.mean([score(values[:, place], values[:, replicates + place] > 0.5) for place in range(replicates)]))
