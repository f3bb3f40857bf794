"""Cells and replicates: exact gold, the share of relevant tables, random numbers that belong to a replicate."""

import math
from collections import Counter

import jax
import numpy as np
import oracles
import pytest

from bayeslink.simulation.cells import Cell, Sizes, draw_replicates, intercept_of
from bayeslink.simulation.families import Family

CELL = Cell(Family.STAR, 3, 0.8, 0.5, 1.2)
SIZES = Sizes(2, 3, 1)


def parts(replicate) -> list[np.ndarray]:
    return [np.asarray(leaf) for leaf in jax.tree.leaves(replicate)]


def test_a_replicate_does_not_depend_on_the_chunk_that_it_is_drawn_in():
    together = parts(draw_replicates(CELL, SIZES, 0, 0, 3))
    for place in range(3):
        alone = parts(draw_replicates(CELL, SIZES, 0, place, 1))
        assert all((one[0] == several[place]).all() for one, several in zip(alone, together, strict=True))
    other = draw_replicates(CELL, SIZES, 1, 0, 3)
    assert not (np.asarray(other.train) == together[2]).any()
    neighbour = draw_replicates(Cell(Family.STAR, 3, 0.8, 0.5, 1.3), SIZES, 0, 0, 3)
    assert not (np.asarray(neighbour.train) == together[2]).any()


def test_shapes_and_padding():
    drawn = draw_replicates(Cell(Family.TREE, 4, 0.0, 0.0, 1.0), SIZES, 0, 0, 2)
    assert drawn.train.shape == drawn.test.shape == drawn.test_gold.shape == (2, 2, 3, 4)
    assert drawn.edges.shape == (2, 2, 8, 2)
    assert (np.asarray(drawn.is_edge).sum(axis=-1) == 3).all()
    assert set(np.unique(np.asarray(drawn.train_gold))) <= {0.0, 1.0}
    assert not (np.asarray(drawn.train) == np.asarray(drawn.test)).any()


def test_gold_has_the_autologistic_distribution():
    """Without evidence all questions of a database share one distribution, which the oracle lists."""
    cell = Cell(Family.STAR, 3, 1.1, 0.0, 0.0, share=0.4)
    drawn = draw_replicates(cell, Sizes(1, 4000, 1), 3, 0, 1)
    alpha = float(drawn.intercept[0, 0])
    exact = oracles.distribution([alpha] * 3, [(0, 1), (0, 2)], float(drawn.coupling[0, 0]))
    gold = np.concatenate([np.asarray(drawn.train_gold), np.asarray(drawn.test_gold)], axis=2)[0, 0]
    counts = Counter(tuple(int(bit) for bit in row) for row in gold)
    for selection, probability in exact.items():
        error = math.sqrt(len(gold) * probability * (1 - probability))
        assert abs(counts[selection] - len(gold) * probability) < 4 * error


def test_gold_follows_the_evidence():
    """One channel of strength gamma: the mean of z over gold tables against the oracle's, pair by pair."""
    cell = Cell(Family.STAR, 3, 0.7, 0.6, 1.5)
    drawn = draw_replicates(cell, Sizes(4, 150, 1), 0, 0, 1)
    error, variance = 0.0, 0.0
    for database in range(4):
        edges = np.asarray(drawn.edges)[0, database][np.asarray(drawn.is_edge)[0, database] > 0].tolist()
        for z, y in zip(np.asarray(drawn.train)[0, database], np.asarray(drawn.train_gold)[0, database], strict=True):
            unary = [float(drawn.intercept[0, database]) + 1.5 * float(value) for value in z]
            exact = oracles.distribution(unary, edges, float(drawn.coupling[0, database]))
            statistic = {x: float(np.dot(z, x)) for x in exact}
            mean = oracles.expectation(exact, statistic.__getitem__)
            error += float(np.dot(z, y)) - mean
            variance += oracles.expectation(exact, lambda x, s=statistic, m=mean: (s[x] - m) ** 2)
    assert abs(error) < 4 * math.sqrt(variance)


def test_databases_vary_as_the_cell_says():
    drawn = draw_replicates(Cell(Family.TREE, 3, 0.5, 0.4, 1.0, intercept_sd=0.3), Sizes(400, 1, 1), 0, 0, 1)
    for values, mean, spread in (
        (np.asarray(drawn.coupling), 0.5, 0.4),
        (np.asarray(drawn.intercept), intercept_of(Cell(Family.TREE, 3, 0.5, 0.4, 1.0, intercept_sd=0.3), 0), 0.3),
    ):
        assert abs(values.mean() - mean) < 4 * spread / 20
        assert abs(values.std() - spread) < 4 * spread / math.sqrt(800)


def test_share_of_relevant_tables_is_the_cells():
    for cell in (CELL, Cell(Family.SCALE_FREE, 5, 1.5, 1.0, 2.0, share=0.25)):
        drawn = draw_replicates(cell, Sizes(400, 20, 1), 5, 0, 1)
        by_database = np.asarray(drawn.train_gold)[0].mean(axis=(1, 2))
        # The intercept itself comes from a reference of 64 databases: the error of both.
        error = by_database.std() * math.sqrt(1 / 400 + 1 / 64)
        assert abs(by_database.mean() - cell.share) < 4 * error


def test_intercept_is_the_logit_of_the_share_where_nothing_else_is():
    cell = Cell(Family.TREE, 4, 0.0, 0.0, 0.0, share=0.3)
    assert intercept_of(cell, 0) == pytest.approx(math.log(0.3 / 0.7), abs=1e-5)
    stronger = [intercept_of(Cell(Family.STAR, 4, beta, 0.0, 1.0), 0) for beta in (0.0, 1.0, 2.0)]
    assert stronger == sorted(stronger, reverse=True)
    assert intercept_of(Cell(Family.STAR, 4, 6.0, 0.0, 0.0, share=0.02), 0) < -2


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Cell(Family.TREE, 3, 0.0, -0.1, 1.0), "coupling_sd=-0.1: a standard deviation is not negative"),
        (lambda: Cell(Family.TREE, 3, 0.0, 0.1, 1.0, share=1.0), "share=1.0: give a share"),
        (lambda: Sizes(2, 0, 1), "questions=0: give at least one"),
        (lambda: draw_replicates(CELL, SIZES, 0, 0, 0), "count=0: ask for at least one replicate"),
    ],
)
def test_what_makes_no_sense_is_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make()
