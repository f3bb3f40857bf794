"""Distributions over subsets made by hand, and the plain-Python view of them."""

import itertools
from collections.abc import Callable

import numpy as np
import pytest

from bayeslink.evidence.channel import Evidence
from bayeslink.inference.factored import FactoredDistribution
from bayeslink.inference.posterior import DatabaseDraws
from bayeslink.inference.predictive import SubgraphDistribution, predict
from bayeslink.model.autologistic import Support

Subset = frozenset[int]


def make_distribution(rows: list[dict[Subset, float]], num_tables: int, prob_empty: list[float] | None = None):
    """The distribution that gives each listed subset its probability, one dict per question."""
    probabilities = np.zeros((len(rows), 2**num_tables))
    for question, row in enumerate(rows):
        for subset, probability in row.items():
            probabilities[question, sum(2**table for table in subset)] += probability
    empty = probabilities[:, 0].copy() if prob_empty is None else np.array(prob_empty)
    return SubgraphDistribution(probabilities, empty, np.zeros((0, 2), dtype=np.int64))


def random_rows(seed: int, num_questions: int, num_tables: int, ties: bool) -> list[dict[Subset, float]]:
    """Random probabilities of all subsets; with ties they are multiples of 1/64, which are exact."""
    rng = np.random.default_rng([seed, num_tables, ties])
    rows = []
    for _ in range(num_questions):
        if ties:
            weights = np.bincount(rng.integers(0, 2**num_tables, 64), minlength=2**num_tables) / 64
        else:
            weights = rng.dirichlet(np.full(2**num_tables, 0.4))
        rows.append({subset: float(weights[code(subset)]) for subset in all_subsets(num_tables)})
    return rows


def code(subset: Subset) -> int:
    return sum(2**table for table in subset)


def all_subsets(num_tables: int) -> list[Subset]:
    return [frozenset(c) for size in range(num_tables + 1) for c in itertools.combinations(range(num_tables), size)]


def covered(row: dict[Subset, float], cover: Subset) -> float:
    """P(gold inside the cover), summed subset by subset."""
    return sum(probability for subset, probability in row.items() if subset <= cover)


def marginal(row: dict[Subset, float], table: int) -> float:
    return sum(probability for subset, probability in row.items() if table in subset)


@pytest.fixture
def build() -> Callable:
    return make_distribution


@pytest.fixture(params=[(seed, n, ties) for n in (1, 3, 5) for ties in (False, True) for seed in (0, 1)])
def case(request) -> tuple[list[dict[Subset, float]], SubgraphDistribution]:
    """Rows of random probabilities, with or without ties, and their distribution."""
    seed, num_tables, ties = request.param
    rows = random_rows(seed, 6, num_tables, ties)
    return rows, make_distribution(rows, num_tables)


@pytest.fixture
def plain():
    """The plain-Python functions: all_subsets, covered, marginal."""

    class Plain:
        subsets = staticmethod(all_subsets)
        covered = staticmethod(covered)
        marginal = staticmethod(marginal)

    return Plain


@pytest.fixture
def chosen_sets() -> Callable:
    """The chosen tables of each question as sets."""
    return lambda chosen: [frozenset(np.flatnonzero(row).tolist()) for row in chosen]


@pytest.fixture(
    params=[(support, size) for support in Support for size in (6, 9)], ids=lambda p: f"{p[0].value}-{p[1]}"
)
def same(request) -> tuple[SubgraphDistribution, FactoredDistribution]:
    """One predictive of three questions, listed and by elimination."""
    support, num_tables = request.param
    rng = np.random.default_rng(num_tables)
    edges = np.array([[t, t + 1] for t in range(num_tables - 1)] + [[0, 3]], dtype=np.int64)
    values = rng.normal(size=(3, num_tables, 2))
    draws = DatabaseDraws(rng.normal(-1, 0.8, 12), rng.normal(1.5, 0.3, (12, 2)), rng.normal(0.5, 0.5, 12))
    evidence = Evidence("made", "a", ("x", "y"), values, edges, np.zeros(len(edges), dtype=np.int64), np.zeros(3))
    listed, _ = predict(evidence, draws, support)
    assert isinstance(listed, SubgraphDistribution)
    return listed, FactoredDistribution(values, edges, draws, support)
