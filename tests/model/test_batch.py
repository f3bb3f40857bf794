"""The traced likelihood of many databases, by question and by database."""

import jax
import jax.numpy as jnp
import numpy as np
import oracles
import pytest
from worlds import ISOLATED, PATH, STAR, rich_world, simulate

from bayeslink.inference.packing import log_partition, pack
from bayeslink.model.autologistic import Support
from bayeslink.model.batch import Batch, LocalParameters, log_likelihood_by_database, log_likelihood_by_question

INTERCEPT = jnp.array([-0.5, 0.2, -1.0])
COUPLING = jnp.array([0.6, -0.4, 1.2])
SLOPES = jnp.array([0.9, -0.3])


@pytest.fixture(scope="module")
def world():
    return simulate(5, 3, 8, shapes=(PATH, STAR, ISOLATED), non_empty=True)


@pytest.fixture(scope="module", params=[0, 10], ids=["eliminated", "listed"])
def batch(world, request) -> Batch:
    return pack(world, request.param)


def local(intercept: jax.Array = INTERCEPT, coupling: jax.Array = COUPLING) -> LocalParameters:
    """Parameters of each database: one slope vector for all, one coupling for all kinds of edges."""
    slopes = jnp.broadcast_to(SLOPES, (len(intercept), 2))
    return LocalParameters(intercept, jnp.zeros(0), slopes, coupling[:, None])


def by_database(batch: Batch, support: Support = Support.ALL) -> np.ndarray:
    return np.asarray(log_likelihood_by_database(batch, local(), log_partition, support))


@pytest.mark.parametrize("support", list(Support))
def test_each_question_equals_brute_force(world, batch, support: Support):
    for bucket in batch.buckets:
        scores = log_likelihood_by_question(bucket, local(), log_partition, support)
        for database, questions, row in zip(bucket.database.tolist(), bucket.question.tolist(), scores, strict=True):
            item = world[database]
            for q, score in zip(questions, row.tolist(), strict=True):
                if q < 0:
                    assert score == 0
                    continue
                exact = oracles.log_likelihood(
                    [item.values[q].tolist()],
                    [item.gold[q].tolist()],
                    item.edges.tolist(),
                    float(INTERCEPT[database]),
                    SLOPES.tolist(),
                    float(COUPLING[database]),
                    support is Support.NON_EMPTY,
                )
                assert score == pytest.approx(exact, rel=1e-10)


def test_score_equations(world, batch):
    """D l_d / d alpha_d = sum_q N(y_q) - E[N_q], and in beta_d the same with M."""

    def total(intercept, coupling):
        return log_likelihood_by_database(batch, local(intercept, coupling), log_partition).sum()

    by_alpha, by_beta = jax.grad(total, argnums=(0, 1))(INTERCEPT, COUPLING)
    for d, item in enumerate(world):
        size = pairs = 0.0
        for rows, gold in zip(item.values.tolist(), item.gold.tolist(), strict=True):
            unary = oracles.unary_log_odds(rows, float(INTERCEPT[d]), SLOPES.tolist())
            exact = oracles.distribution(unary, item.edges, float(COUPLING[d]))
            chosen = tuple(map(int, gold))
            size += sum(chosen) - oracles.expected_size(exact)
            pairs += oracles.num_joined_pairs(chosen, item.edges) - oracles.expected_pairs(exact, item.edges)
        assert by_alpha[d] == pytest.approx(size, rel=1e-10, abs=1e-10)
        assert by_beta[d] == pytest.approx(pairs, rel=1e-10, abs=1e-10)


def test_without_equals_packing_without(world, batch):
    less = batch.without([1])
    assert less.num_questions == batch.num_questions - world[1].num_questions
    full, found = by_database(batch), by_database(less)
    assert found[1] == 0
    np.testing.assert_array_equal(found[[0, 2]], full[[0, 2]])
    kept = jnp.array([0, 2])
    expected = log_likelihood_by_database(
        pack([world[0], world[2]]), local(INTERCEPT[kept], COUPLING[kept]), log_partition
    )
    np.testing.assert_allclose(found[[0, 2]], expected, rtol=1e-10)
    assert batch.without([]).num_questions == batch.num_questions
    assert batch.without([0, 1, 2]).num_questions == 0
    shapes = [leaf.shape for leaf in jax.tree.leaves(batch)]
    assert shapes == [leaf.shape for leaf in jax.tree.leaves(less)]


def test_without_questions_equals_packing_the_others(world, batch):
    """Marked questions weigh nothing; padding and shapes stay."""
    marks = [np.arange(item.num_questions) % 3 == place for place, item in enumerate(world)]
    less = batch.without_questions(marks)
    kept = [item.select_questions(~mark) for item, mark in zip(world, marks, strict=True)]
    assert less.num_questions == sum(item.num_questions for item in kept)
    np.testing.assert_allclose(by_database(less), by_database(pack(kept)), rtol=1e-10)
    assert (by_database(less) != by_database(batch)).all()
    shapes = [leaf.shape for leaf in jax.tree.leaves(batch)]
    assert shapes == [leaf.shape for leaf in jax.tree.leaves(less)]
    nothing = [np.zeros(item.num_questions, dtype=bool) for item in world]
    np.testing.assert_array_equal(by_database(batch.without_questions(nothing)), by_database(batch))
    with pytest.raises(ValueError, match="barred marks 1 databases of 3"):
        batch.without_questions(marks[:1])


@pytest.mark.parametrize("support", list(Support))
@pytest.mark.parametrize("max_listed", [0, 10])
def test_contexts_scales_and_kinds_of_edges_equal_brute_force(support: Support, max_listed: int):
    """Each database has its own slopes, its own coupling for each kind of edge, and shares kappa."""
    world = rich_world()
    rng = np.random.default_rng(1)
    context = rng.normal(size=3)
    parts = rng.normal(size=4), rng.normal(size=(4, 2)), rng.normal(size=(4, 3))
    given = LocalParameters(jnp.array(parts[0]), jnp.array(context), *map(jnp.array, parts[1:]))
    found = log_likelihood_by_database(pack(world, max_listed), given, log_partition, support)
    expected = [
        oracles.log_likelihood(
            item.values.tolist(),
            item.gold.tolist(),
            item.edges.tolist(),
            alpha,
            [*slopes, *context.tolist()],
            [kinds[kind] for kind in item.edge_types.tolist()],
            support is Support.NON_EMPTY,
        )
        for item, alpha, slopes, kinds in zip(world, *(part.tolist() for part in parts), strict=True)
    ]
    np.testing.assert_allclose(found, expected, rtol=1e-10)
