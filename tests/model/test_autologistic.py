"""The energy, its statistics, and the identities of MODEL.md sections 2, 6 and 7 on random graphs."""

import math

import jax
import jax.numpy as jnp
import numpy as np
import oracles
import pytest
from hypothesis import given
from strategies import Model, few, models

from bayeslink.inference import enumeration
from bayeslink.model.autologistic import (
    Support,
    energy,
    log_normaliser,
    num_joined_pairs,
    num_selected,
    unary_log_odds,
)

RTOL = 1e-10


def logit(probability: float) -> float:
    return math.log(probability) - math.log1p(-probability)


@few
@given(models(max_tables=6))
def test_energy_and_statistics_equal_the_loops(model: Model):
    subsets = list(oracles.subsets(model.num_tables))
    selection, edges = jnp.array(subsets, dtype=float), jnp.array(model.edges)
    found = energy(selection, jnp.array(model.unary), edges, jnp.array(model.coupling))
    expected = [oracles.energy(x, model.unary, model.edges, model.coupling) for x in subsets]
    np.testing.assert_allclose(found, expected, rtol=RTOL, atol=1e-12)
    assert num_selected(selection).tolist() == [sum(x) for x in subsets]
    pairs = num_joined_pairs(selection, edges).sum(axis=1)
    assert pairs.tolist() == [oracles.num_joined_pairs(x, model.edges) for x in subsets]


def test_one_coupling_is_beta_times_the_number_of_joined_pairs():
    edges = jnp.array([[0, 1], [1, 2], [0, 2]])
    selection = jnp.array([1.0, 1.0, 1.0])
    assert energy(selection, jnp.zeros(3), edges, 0.7) == pytest.approx(2.1, rel=RTOL)
    assert energy(selection, jnp.zeros(3), edges, jnp.array([0.1, 0.2, 0.3])) == pytest.approx(0.6, rel=RTOL)


def test_unary_log_odds():
    values = np.random.default_rng(0).normal(size=(2, 3, 4))
    slopes = [0.3, -1.0, 2.0, 0.0]
    found = unary_log_odds(jnp.array(values), 0.4, jnp.array(slopes))
    expected = [oracles.unary_log_odds(rows, 0.4, slopes) for rows in values.tolist()]
    np.testing.assert_allclose(found, expected, rtol=RTOL)


@few
@given(models(max_tables=6))
def test_full_conditional_logit(model: Model):
    """Logit P(x_t = 1 | rest) = a_t + the couplings to selected neighbours."""
    plan = enumeration.plan(model.edges, model.num_tables)
    log_probs = enumeration.log_probabilities(jnp.array(model.unary), plan, jnp.array(model.coupling))
    rows = {tuple(row): p for row, p in zip(plan.states.astype(int).tolist(), log_probs.tolist(), strict=True)}
    for x, log_prob in rows.items():
        for t in range(model.num_tables):
            if x[t]:
                rest = (*x[:t], 0, *x[t + 1 :])
                joined = [b for e, b in zip(model.edges, model.coupling, strict=True) if t in e and x[sum(e) - t]]
                expected = math.fsum([model.unary[t], *joined])
                np.testing.assert_allclose(log_prob - rows[rest], expected, rtol=RTOL, atol=1e-10)


@few
@given(models(max_tables=6))
def test_without_coupling_the_tables_are_independent(model: Model):
    found = enumeration.marginals(jnp.array(model.unary), enumeration.plan(model.edges, model.num_tables), 0.0)
    np.testing.assert_allclose(found, [1 / (1 + math.exp(-a)) for a in model.unary], rtol=RTOL)


@few
@given(models(max_tables=6))
def test_non_empty_support_takes_one_from_the_normaliser(model: Model):
    log_z = jnp.array(oracles.log_partition(model.unary, model.edges, model.coupling))
    assert log_normaliser(log_z, Support.ALL) == log_z
    expected = oracles.log_partition(model.unary, model.edges, model.coupling, non_empty=True)
    # Z - 1 loses about one digit for each digit by which Z is close to 1.
    atol = 1e-14 / math.expm1(float(log_z))
    np.testing.assert_allclose(log_normaliser(log_z, Support.NON_EMPTY), expected, rtol=RTOL, atol=atol + 1e-12)
    free = log_z - log_normaliser(log_z, Support.NON_EMPTY)
    empty = oracles.distribution(model.unary, model.edges, model.coupling)[(0,) * model.num_tables]
    np.testing.assert_allclose(free, -math.log1p(-empty), rtol=1e-8, atol=atol + 1e-12)
    conditional = oracles.distribution(model.unary, model.edges, model.coupling, non_empty=True)
    assert sum(oracles.marginals(conditional)) >= 1 - 1e-12


def test_non_empty_normaliser_stays_finite_when_nothing_is_likely():
    log_z = jnp.array(math.log1p(math.exp(-30.0)))
    value, slope = jax.value_and_grad(lambda z: log_normaliser(z, Support.NON_EMPTY))(log_z)
    assert value == pytest.approx(-30.0, abs=1e-3)
    assert np.isfinite(slope)


@few
@given(models(min_tables=2, max_tables=6, coupling_from=0.0))
def test_coupling_raises_the_expected_number_of_tables(model: Model):
    """Proposition 3: d E[N] / d beta = Cov(N, M) >= 0 for beta >= 0, strictly when there is an edge."""
    beta = float(model.coupling.mean()) if len(model.edges) else 0.5
    plan = enumeration.plan(model.edges, model.num_tables)
    unary = jnp.array(model.unary)
    slope = jax.jit(jax.grad(lambda b: enumeration.marginals(unary, plan, b).sum()))(jnp.array(beta))
    exact = oracles.distribution(model.unary, model.edges, beta)
    np.testing.assert_allclose(slope, oracles.covariance_size_pairs(exact, model.edges), rtol=1e-8, atol=1e-12)
    assert (slope > 0) == bool(len(model.edges))


EXAMPLE = [[0, 1], [1, 2], [1, 3]]
"""Tables 0 and 2 are relevant and clear, 1 joins them with weak evidence, 3 is a distractor."""


def example_unary() -> list[float]:
    return [2.0, math.log(0.24 / 0.76), 2.0, -1.0]


def test_worked_example_of_the_paper():
    """Probability 0.24 is a deficit of 1.15; with two neighbours 0.58 corrects it; mu = 1 enters above 1."""
    deficit = -logit(0.24)
    assert round(deficit, 2) == 1.15
    assert round(deficit / 2, 2) == 0.58
    plan = enumeration.plan(np.array(EXAMPLE), 4)
    unary = jnp.array(example_unary())

    def log_prob(x: tuple[int, ...], beta: float) -> float:
        return float(enumeration.log_probabilities(unary, plan, beta)[sum(bit << t for t, bit in enumerate(x))])

    for beta, enters in ((deficit / 2 - 1e-6, False), (deficit / 2 + 1e-6, True)):
        assert (log_prob((1, 1, 1, 0), beta) > log_prob((1, 0, 1, 0), beta)) is enters
    for beta, enters in ((1 - 1e-6, False), (1 + 1e-6, True)):
        assert (log_prob((1, 1, 1, 1), beta) > log_prob((1, 1, 1, 0), beta)) is enters


@pytest.mark.parametrize(
    ("beta", "mode"), [(0.5, (1, 0, 1, 0)), (0.6, (1, 1, 1, 0)), (0.99, (1, 1, 1, 0)), (1.01, (1, 1, 1, 1))]
)
def test_modes_of_the_worked_example(beta: float, mode: tuple[int, ...]):
    assert oracles.modes(example_unary(), EXAMPLE, beta) == [mode]
    plan = enumeration.plan(np.array(EXAMPLE), 4)
    best = int(enumeration.log_probabilities(jnp.array(example_unary()), plan, beta).argmax())
    assert tuple(plan.states[best].astype(int)) == mode


@pytest.mark.parametrize(("beta", "both"), [(0.66, False), (0.68, True), (0.99, True)])
def test_two_joined_distractors_enter_together_above_two_thirds(beta: float, both: bool):
    """Every single flip excludes them up to beta = 1, yet the mode includes both above 2/3."""
    unary, edges = [3.0, 3.0, -1.0, -1.0], [[0, 2], [1, 3], [2, 3]]
    alone = oracles.energy((1, 1, 1, 0), unary, edges, beta) - oracles.energy((1, 1, 0, 0), unary, edges, beta)
    assert alone < 0
    best = int(enumeration.log_probabilities(jnp.array(unary), enumeration.plan(np.array(edges), 4), beta).argmax())
    assert best == (0b1111 if both else 0b0011)
