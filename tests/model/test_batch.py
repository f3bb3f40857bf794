"""The traced likelihood of many databases, by question and by database."""

import jax
import jax.numpy as jnp
import numpy as np
import oracles
import pytest
from worlds import ISOLATED, PATH, STAR, simulate

from bayeslink.inference.elimination import log_partition
from bayeslink.inference.packing import pack
from bayeslink.model.autologistic import Support
from bayeslink.model.batch import Batch, log_likelihood_by_database, log_likelihood_by_question

INTERCEPT = jnp.array([-0.5, 0.2, -1.0])
COUPLING = jnp.array([0.6, -0.4, 1.2])
SLOPES = jnp.array([0.9, -0.3])


@pytest.fixture(scope="module")
def world():
    return simulate(5, 3, 8, shapes=(PATH, STAR, ISOLATED), non_empty=True)


@pytest.fixture(scope="module")
def batch(world) -> Batch:
    return pack(world)


def by_database(batch: Batch, support: Support = Support.ALL, size: int = 3) -> np.ndarray:
    kept = slice(0, size)
    return np.asarray(
        log_likelihood_by_database(batch, INTERCEPT[kept], SLOPES, COUPLING[kept], log_partition, support)
    )


@pytest.mark.parametrize("support", list(Support))
def test_each_question_equals_brute_force(world, batch, support: Support):
    for bucket in batch.buckets:
        scores = log_likelihood_by_question(bucket, INTERCEPT, SLOPES, COUPLING, log_partition, support)
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
        return log_likelihood_by_database(batch, intercept, SLOPES, coupling, log_partition).sum()

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
    smaller = pack([world[0], world[2]])
    expected = log_likelihood_by_database(
        smaller, INTERCEPT[jnp.array([0, 2])], SLOPES, COUPLING[jnp.array([0, 2])], log_partition
    )
    np.testing.assert_allclose(found[[0, 2]], expected, rtol=1e-10)
    assert batch.without([]).num_questions == batch.num_questions
    assert batch.without([0, 1, 2]).num_questions == 0
    shapes = [leaf.shape for leaf in jax.tree.leaves(batch)]
    assert shapes == [leaf.shape for leaf in jax.tree.leaves(less)]
