"""The list of subsets and the distribution over it."""

import jax.numpy as jnp
import numpy as np
import oracles
import pytest
from hypothesis import given
from strategies import Model, few, models

from bayeslink.inference import enumeration


def test_rows_are_binary_digits_with_table_0_lowest():
    assert enumeration.states(3).tolist() == [
        [0, 0, 0],
        [1, 0, 0],
        [0, 1, 0],
        [1, 1, 0],
        [0, 0, 1],
        [1, 0, 1],
        [0, 1, 1],
        [1, 1, 1],
    ]


@few
@given(models(max_tables=6))
def test_probabilities_equal_brute_force(model: Model):
    plan = enumeration.plan(model.edges, model.num_tables)
    log_probs = enumeration.log_probabilities(jnp.array(model.unary), plan, jnp.array(model.coupling))
    exact = oracles.distribution(model.unary, model.edges, model.coupling)
    expected = [exact[tuple(row)] for row in plan.states.astype(int).tolist()]
    np.testing.assert_allclose(jnp.exp(log_probs), expected, rtol=1e-10)


def test_too_many_tables_are_refused_in_a_sentence():
    assert enumeration.states(enumeration.MAX_TABLES).shape == (2**15, 15)
    with pytest.raises(ValueError, match=r"num_tables=16 > 15: too many subsets to list; use elimination"):
        enumeration.plan(np.zeros((0, 2), dtype=int), 16)
