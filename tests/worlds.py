"""Simulated worlds: evidence of databases whose gold selections are drawn from the model itself."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from bayeslink.evidence.channel import Evidence, Standardisation, covariates

PATH = ((0, 1), (1, 2), (2, 3))
STAR = ((0, 1), (0, 2), (0, 3))
CYCLE = ((0, 1), (1, 2), (2, 3), (0, 3))
ISOLATED = ((1, 2),)
SHAPES = (PATH, STAR, CYCLE, ISOLATED)
"""Graphs of four tables: a path, a star, a cycle, and one with two isolated tables."""


def edge_array(edges: Sequence[tuple[int, int]]) -> np.ndarray:
    return np.array(edges, dtype=np.int64).reshape(-1, 2)


def make_evidence(
    values: np.ndarray, edges: np.ndarray, gold: np.ndarray | None, name: str = "one", dataset: str = "test"
) -> Evidence:
    """Evidence with these numbers; channels are called c0, c1, ..."""
    return Evidence(
        dataset,
        name,
        tuple(f"c{k}" for k in range(values.shape[2])),
        values,
        edges,
        np.zeros(len(edges), dtype=np.int64),
        covariates(edges, values.shape[1]),
        gold,
        None,
    )


def draw_selections(
    rng: np.random.Generator, unary: np.ndarray, edges: np.ndarray, coupling: float, non_empty: bool = False
) -> np.ndarray:
    """One exact draw of x for each row of log-odds, by listing the subsets."""
    num_tables = unary.shape[1]
    subsets = (np.arange(2**num_tables)[:, None] >> np.arange(num_tables)) & 1
    pairs = (subsets[:, edges[:, 0]] * subsets[:, edges[:, 1]]).sum(axis=1)
    energies = unary @ subsets.T + coupling * pairs
    if non_empty:
        energies[:, 0] = -np.inf
    # Gumbel's trick: the largest of energy + Gumbel noise is an exact draw.
    return subsets[(energies + rng.gumbel(size=energies.shape)).argmax(axis=1)].astype(bool)


def simulate(
    seed: int,
    num_databases: int,
    num_questions: int,
    *,
    alpha: float = -0.7,
    gamma: Sequence[float] = (1.0, -0.5),
    beta: float = 0.6,
    sigma_alpha: float = 0.65,
    sigma_beta: float = 0.5,
    shapes: Sequence[Sequence[tuple[int, int]]] = SHAPES,
    num_tables: int = 4,
    non_empty: bool = False,
) -> list[Evidence]:
    """Evidence and gold of databases drawn from the hierarchical model with standard normal channels."""
    rng = np.random.default_rng(seed)
    world = []
    for d in range(num_databases):
        edges = edge_array(shapes[d % len(shapes)])
        intercept = alpha + sigma_alpha * rng.standard_normal()
        coupling = beta + sigma_beta * rng.standard_normal()
        values = rng.standard_normal((num_questions, num_tables, len(gamma)))
        gold = draw_selections(rng, intercept + values @ np.array(gamma), edges, coupling, non_empty)
        world.append(make_evidence(values, edges, gold, f"db{d}"))
    return world


CONTEXT = ("mean_degree", "evidence_max")
"""Covariates of the intercept in `rich_world`: one of the database, and one for each of two channels."""


def rich_world(seed: int = 11, num_questions: int = 4) -> list[Evidence]:
    """Standardised evidence of four databases with covariates of the intercept and all kinds of edges.

    Schemas of 3, 4, 4 and 5 tables, so that listed and eliminated ones are padded; no gold selection is empty.
    """
    rng = np.random.default_rng(seed)
    world = []
    for d, (pairs, num_tables) in enumerate(
        [(((0, 1), (1, 2)), 3), (CYCLE, 4), (ISOLATED, 4), (((0, 1), (2, 1), (0, 2), (3, 4)), 5)]
    ):
        edges = edge_array(pairs)
        values = rng.standard_normal((num_questions + d, num_tables, 2))
        gold = rng.random(values.shape[:2]) < 0.4 + 0.1 * d
        gold[:, 0] |= ~gold.any(axis=1)
        item = make_evidence(values, edges, gold, f"rich{d}")
        world.append(replace(item, edge_types=rng.integers(0, 3, len(edges))))
    standardisation = Standardisation.fit(world, CONTEXT)
    return [standardisation.apply(item) for item in world]
