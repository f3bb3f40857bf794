"""What fixed unaries select as the coupling and the number of edges rise; gold's stability beside it.

Unaries are plug-ins, a = mean alpha + mean gamma . z over the draws of an independent fit that has not seen the
question. Everything is exact, by listing all subsets, as every schema here has at most 15 tables.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int
from scipy.special import softmax

from bayeslink.evaluation.held_out import HeldOut
from bayeslink.inference import enumeration
from bayeslink.theory.modes import TIE_TOLERANCE, Verdict, is_unique_mode
from bayeslink.theory.stability import is_single_flip_stable, stability_window


class Asked(NamedTuple):
    """Questions of one database with their unaries.

    Attributes:
        key: (dataset, db_id).
        unary: a, log-odds.
        gold: Gold selection.
        group: Number of each question's gold SQL.
        edges: The schema's own edges.
    """

    key: tuple[str, str]
    unary: Float[np.ndarray, "questions tables"]
    gold: Bool[np.ndarray, "questions tables"]
    group: Int[np.ndarray, " questions"]
    edges: Int[np.ndarray, "edges 2"]


class Outcome(NamedTuple):
    """What happened to each question on one graph at one coupling.

    Attributes:
        recovered: Weak tables (gold, a < 0) with probability above 1/2, a count.
        weak: Weak tables, a count.
        wrong: Tables with probability above 1/2 that are not gold, a count.
        exact: Whether the tables above 1/2 are the gold ones.
        stable: Whether no single flip of gold gains or ties.
        inside: Whether the coupling is inside gold's window.
        gap: Score of gold less that of the best other subset, nats; positive where gold is the unique mode.
    """

    recovered: Int[np.ndarray, " questions"]
    weak: Int[np.ndarray, " questions"]
    wrong: Int[np.ndarray, " questions"]
    exact: Bool[np.ndarray, " questions"]
    stable: Bool[np.ndarray, " questions"]
    inside: Bool[np.ndarray, " questions"]
    gap: Float[np.ndarray, " questions"]


def asked_of(items: Sequence[HeldOut], num_questions: int) -> list[Asked]:
    """The questions of each database, of all its folds together, at most so many."""
    found: dict[tuple[str, str], list[Asked]] = {}
    for item in items:
        unary = item.evidence.values @ item.draws.slopes.mean(axis=0) + item.draws.intercept.mean()
        evidence = item.evidence
        gold, group = np.asarray(evidence.gold), np.asarray(evidence.group)
        found.setdefault(evidence.key, []).append(Asked(evidence.key, unary, gold, group, evidence.edges))
    return [
        Asked(key, *(np.concatenate(arrays)[:num_questions] for arrays in _columns(parts)), parts[0].edges)
        for key, parts in found.items()
    ]


def _columns(parts: Sequence[Asked]) -> list[list[np.ndarray]]:
    return [[getattr(part, name) for part in parts] for name in ("unary", "gold", "group")]


def nested_graphs(
    edges: Int[np.ndarray, "edges 2"], num_tables: int, densities: Sequence[float], rng: np.random.Generator
) -> list[Int[np.ndarray, "_ 2"]]:
    """A graph for each density, the smaller ones inside the larger ones.

    Below 1 the first edges of one random order of the schema's own; above 1 all of these and the first pairs of
    one random order of the others, as far as there are pairs.

    Args:
        edges: The schema's own edges, E of them.
        num_tables: Number of tables.
        densities: Number of edges over E, each at least 0; rounded to whole edges, halves up.
        rng: Source of both orders.
    """
    own = {frozenset(pair) for pair in edges.tolist()}
    pairs = [(s, t) for s in range(num_tables) for t in range(s + 1, num_tables) if frozenset((s, t)) not in own]
    others = np.array(pairs, dtype=np.int64).reshape(-1, 2)
    ordered = np.concatenate([edges[rng.permutation(len(edges))], others[rng.permutation(len(others))]])
    return [ordered[: int(np.floor(density * len(edges) + 0.5))] for density in densities]


class Listed:
    """All subsets of one database's tables, with the scores that do not depend on the graph."""

    def __init__(self, asked: Asked) -> None:
        self.asked = asked
        self.states = enumeration.states(asked.gold.shape[1])
        self.own = asked.unary @ self.states.T
        self.gold_state = asked.gold @ (1 << np.arange(asked.gold.shape[1]))

    def outcome(self, edges: Int[np.ndarray, "edges 2"], coupling: float) -> Outcome:
        """What the model selects on this graph at this coupling, and how gold stands."""
        asked, rows = self.asked, np.arange(len(self.own))
        joined = (self.states[:, edges[:, 0]] * self.states[:, edges[:, 1]]).sum(axis=1)
        score = self.own + coupling * joined
        chosen = softmax(score, axis=1) @ self.states > 0.5
        weak = asked.gold & (asked.unary < 0)
        gold_score = score[rows, self.gold_state].copy()
        score[rows, self.gold_state] = -np.inf
        return Outcome(
            (chosen & weak).sum(axis=1),
            weak.sum(axis=1),
            (chosen & ~asked.gold).sum(axis=1),
            (chosen == asked.gold).all(axis=1),
            is_single_flip_stable(asked.unary, edges, asked.gold, coupling),
            stability_window(asked.unary, edges, asked.gold).contains(coupling),
            gold_score - score.max(axis=1),
        )


class ModeAgreement(NamedTuple):
    """Proposition 2 against the list of all subsets: counts of questions.

    Attributes:
        agreeing: Both say that gold is the unique mode, or both that it is not.
        compared: Questions where neither found a tie.
        ties: Questions where one of them did, left out.
    """

    agreeing: int
    compared: int
    ties: int


def mode_agreement(
    asked: Asked, edges: Int[np.ndarray, "edges 2"], coupling: float, gap: Float[np.ndarray, " questions"]
) -> ModeAgreement:
    """How often Proposition 2's two minimum cuts and the exact gap say the same."""
    verdicts = [
        is_unique_mode(a, edges, gold, coupling).verdict for a, gold in zip(asked.unary, asked.gold, strict=True)
    ]
    found = np.array([verdict.value for verdict in verdicts])
    # As the cuts count ties: a tolerance per table, for the largest parameter.
    tolerance = TIE_TOLERANCE * np.maximum(np.abs(asked.unary).max(axis=1), max(coupling, 1.0)) * asked.gold.shape[1]
    tied = (found == Verdict.TIE.value) | (np.abs(gap) <= tolerance)
    agreeing = ~tied & ((found == Verdict.YES.value) == (gap > 0))
    return ModeAgreement(int(agreeing.sum()), int((~tied).sum()), int(tied.sum()))
