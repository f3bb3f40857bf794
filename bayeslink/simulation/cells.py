"""Cells of the simulation study and their replicates: several databases each, with evidence and exact gold.

A cell fixes the population; a replicate draws databases from it and questions for each:

    alpha_d ~ N(alpha, sd_alpha^2),   beta_d ~ N(beta, sd_beta^2)
    z ~ N(0, 1),   y ~ p(. | z, G_d, alpha_d, gamma, beta_d)

The evidence is one standard normal channel whose slope gamma is its strength, and gold is drawn exactly from the
autologistic model given it. The other way round (gold first, evidence as noise plus strength times gold) would
claim a distribution for z, which the model does not (MODEL.md section 2), and no fit would then be well specified.
alpha is chosen so that, whatever the rest, the same share of tables is relevant on average: cells then differ in how
strongly tables go together and not in how many there are.
"""

import hashlib
import json
from dataclasses import asdict, dataclass
from functools import lru_cache
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int
from scipy.optimize import brentq

from bayeslink.inference import enumeration
from bayeslink.model.autologistic import unary_log_odds
from bayeslink.simulation.families import EdgeList, Family, draw_graph, max_edges

__all__ = ["Cell", "Replicate", "Sizes", "draw_replicates", "intercept_of"]

REFERENCE_DATABASES = 64
"""Databases over which the intercept of a cell is chosen."""


@dataclass(frozen=True)
class Cell:
    """A population of databases.

    Attributes:
        family: Family of their graphs.
        num_tables: Number of tables of each.
        coupling: Mean coupling beta, nats.
        coupling_sd: Standard deviation of couplings over databases, nats.
        strength: Slope gamma of the evidence, log-odds per standard deviation.
        share: Share of tables that are relevant, on average.
        intercept_sd: Standard deviation of intercepts over databases, log-odds.
        graphs: Graphs that a real database has one of.

    Raises:
        ValueError: If the share is not a proper one or a standard deviation is negative.
    """

    family: Family
    num_tables: int
    coupling: float
    coupling_sd: float
    strength: float
    share: float = 0.3
    intercept_sd: float = 0.0
    graphs: tuple[EdgeList, ...] = ()

    def __post_init__(self) -> None:
        if not 0 < self.share < 1:
            raise ValueError(f"share={self.share}: give a share of relevant tables between 0 and 1")
        for name in ("coupling_sd", "intercept_sd"):
            if getattr(self, name) < 0:
                raise ValueError(f"{name}={getattr(self, name)}: a standard deviation is not negative")

    @property
    def digest(self) -> str:
        """Hash of all that the cell is, hexadecimal."""
        return hashlib.sha256(json.dumps(asdict(self), sort_keys=True).encode()).hexdigest()

    def rng(self, seed: int, *more: int) -> np.random.Generator:
        """Random numbers that belong to this cell, this seed and these numbers, and to nothing else."""
        return np.random.default_rng([seed, *(int(self.digest[place : place + 8], 16) for place in (0, 8, 16)), *more])


@dataclass(frozen=True)
class Sizes:
    """Sizes of every replicate.

    Attributes:
        databases: Number of databases.
        questions: Number of questions of each to fit on, and as many more to score.
        draws: Number of posterior draws that a prediction averages over.

    Raises:
        ValueError: If one is not positive.
    """

    databases: int
    questions: int
    draws: int

    def __post_init__(self) -> None:
        for name, value in asdict(self).items():
            if value < 1:
                raise ValueError(f"{name}={value}: give at least one")


class Replicate(NamedTuple):
    """Databases with their questions; several replicates have one axis more, first.

    Attributes:
        edges: Node positions of each edge, padded.
        is_edge: 1 for an edge, 0 for padding.
        train: Evidence z of the questions that a fit sees.
        train_gold: Their gold in {0, 1}.
        test: Evidence of the questions that are scored.
        test_gold: Their gold.
        intercept: alpha_d, log-odds.
        coupling: beta_d, nats.
    """

    edges: Int[Array, "*databases edges 2"]
    is_edge: Float[Array, "*databases edges"]
    train: Float[Array, "*databases questions tables"]
    train_gold: Float[Array, "*databases questions tables"]
    test: Float[Array, "*databases questions tables"]
    test_gold: Float[Array, "*databases questions tables"]
    intercept: Float[Array, "*databases"]
    coupling: Float[Array, "*databases"]


def draw_replicates(cell: Cell, sizes: Sizes, seed: int, first: int, count: int) -> Replicate:
    """The replicates from number `first` on, each from random numbers of its own, stacked.

    Args:
        cell: The cell.
        sizes: Sizes of a replicate.
        seed: Seed of the study.
        first: Number of the first replicate.
        count: How many.

    Raises:
        ValueError: If none is asked for.
    """
    if count < 1:
        raise ValueError(f"count={count}: ask for at least one replicate")
    alpha = intercept_of(cell, seed)
    parts = [_draw_one(cell, sizes, alpha, cell.rng(seed, 1, first + place)) for place in range(count)]
    edges, is_edge, values, uniform, intercept, coupling = (np.stack(part) for part in zip(*parts, strict=True))
    gold = _selections(edges, is_edge, values, uniform, intercept, coupling, jnp.asarray(cell.strength))
    half = sizes.questions
    cut = (values[:, :, :half], gold[:, :, :half], values[:, :, half:], gold[:, :, half:])
    return Replicate(*(jnp.asarray(part) for part in (edges, is_edge, *cut, intercept, coupling)))


@lru_cache(maxsize=64)
def intercept_of(cell: Cell, seed: int) -> float:
    """The mean intercept alpha at which the cell's share of tables is relevant on average, log-odds.

    The average is over a large reference sample of the cell's own databases and questions.
    """
    sizes = Sizes(REFERENCE_DATABASES, 16, 1)
    edges, is_edge, values, _, intercept, coupling = _draw_one(cell, sizes, 0.0, cell.rng(seed, 0))
    strength = jnp.asarray(cell.strength)

    def excess(alpha: float) -> float:
        return float(_share(edges, is_edge, values, intercept + alpha, coupling, strength)) - cell.share

    lowest, highest = -2.0, 2.0
    while excess(lowest) > 0:
        lowest *= 2
    while excess(highest) < 0:
        highest *= 2
    return float(brentq(excess, lowest, highest, xtol=1e-6))


def _draw_one(cell: Cell, sizes: Sizes, alpha: float, rng: np.random.Generator) -> tuple[np.ndarray, ...]:
    """Graphs, evidence and parameters of one replicate, and a uniform number for each selection."""
    num_edges = max_edges(cell.num_tables)
    edges = np.zeros((sizes.databases, num_edges, 2), dtype=np.int64)
    is_edge = np.zeros((sizes.databases, num_edges))
    for place in range(sizes.databases):
        drawn = draw_graph(rng, cell.family, cell.num_tables, cell.graphs)
        edges[place, : len(drawn)], is_edge[place, : len(drawn)] = drawn, 1.0
    intercept = alpha + cell.intercept_sd * rng.standard_normal(sizes.databases)
    coupling = cell.coupling + cell.coupling_sd * rng.standard_normal(sizes.databases)
    values = rng.standard_normal((sizes.databases, 2 * sizes.questions, cell.num_tables))
    return edges, is_edge, values, rng.random(values.shape[:2]), intercept, coupling


def _log_probabilities(
    edges: Array, is_edge: Array, values: Array, intercept: Array, coupling: Array, strength: Array
) -> Float[Array, "questions states"]:
    """Log p(x) of every subset for the questions of one database."""
    unary = unary_log_odds(values[..., None], intercept, strength[None])
    plan = enumeration.StatePlan(jnp.asarray(enumeration.states(values.shape[-1])), edges)
    return enumeration.log_probabilities(unary, plan, coupling * is_edge)


@jax.jit
@jax.vmap
def _drawn(*database: Array) -> Float[Array, "questions tables"]:
    """A selection for each question: the first subset whose cumulative probability exceeds the uniform number."""
    *known, uniform = database
    cumulative = jnp.cumsum(jnp.exp(_log_probabilities(*known)), axis=1)
    # Scaled by the last, which is 1 up to rounding.
    place = (cumulative <= uniform[:, None] * cumulative[:, -1:]).sum(axis=1)
    return jnp.asarray(enumeration.states(known[2].shape[-1]))[place]


def _selections(
    edges: np.ndarray,
    is_edge: np.ndarray,
    values: np.ndarray,
    uniform: np.ndarray,
    intercept: np.ndarray,
    coupling: np.ndarray,
    strength: Array,
) -> np.ndarray:
    def merged(part: np.ndarray) -> np.ndarray:
        return part.reshape(-1, *part.shape[2:])

    strengths = jnp.full(merged(intercept).shape, strength)
    known = (*(merged(part) for part in (edges, is_edge, values, intercept, coupling)), strengths, merged(uniform))
    return np.asarray(_drawn(*known)).reshape(values.shape)


@jax.jit
def _share(
    edges: Array, is_edge: Array, values: Array, intercept: Array, coupling: Array, strength: Array
) -> Float[Array, ""]:
    """Mean share of relevant tables."""
    subsets = jnp.asarray(enumeration.states(values.shape[-1]))
    probabilities = jnp.exp(
        jax.vmap(_log_probabilities, (0, 0, 0, 0, 0, None))(edges, is_edge, values, intercept, coupling, strength)
    )
    return (probabilities @ subsets.mean(axis=1)).mean()
