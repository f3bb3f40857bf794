"""Elimination on graphs too large to list, its width, its padding, and its two arithmetics."""

import itertools
import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from strategies import Model, few, models

from bayeslink.inference import elimination, enumeration


def path(num_tables: int) -> np.ndarray:
    return np.array([(t, t + 1) for t in range(num_tables - 1)], dtype=int).reshape(-1, 2)


def grid(rows: int, columns: int) -> np.ndarray:
    place = lambda r, c: r * columns + c  # noqa: E731
    across = [(place(r, c), place(r, c + 1)) for r in range(rows) for c in range(columns - 1)]
    down = [(place(r, c), place(r + 1, c)) for r in range(rows - 1) for c in range(columns)]
    return np.array(across + down)


def complete(num_tables: int) -> np.ndarray:
    return np.array(list(itertools.combinations(range(num_tables), 2)))


def width(edges: np.ndarray, num_tables: int) -> int:
    return elimination.width_of(elimination.plan(edges, num_tables))


def test_long_path_equals_the_transfer_recursion():
    rng = np.random.default_rng(0)
    unary, coupling = rng.normal(0, 2, 40), rng.normal(0, 2, 39)
    off, on = 0.0, float(unary[0])
    for t in range(1, 40):
        total = np.logaddexp(off, on)
        off, on = float(total), float(unary[t] + np.logaddexp(off, on + coupling[t - 1]))
    found = elimination.log_partition(jnp.array(unary), elimination.plan(path(40), 40), jnp.array(coupling))
    assert found == pytest.approx(np.logaddexp(off, on), rel=1e-10)


def test_star_has_a_closed_form():
    """Log Z = log( prod (1 + e^a) + e^centre prod (1 + e^{a + beta}) )."""
    unary = np.random.default_rng(1).normal(0, 2, 31)
    edges = np.array([(0, leaf) for leaf in range(1, 31)])
    off = math.fsum(math.log1p(math.exp(a)) for a in unary[1:])
    on = unary[0] + math.fsum(math.log1p(math.exp(a + 0.9)) for a in unary[1:])
    found = elimination.log_partition(jnp.array(unary), elimination.plan(edges, 31), 0.9)
    assert found == pytest.approx(np.logaddexp(off, on), rel=1e-10)


def test_grid_equals_enumeration():
    edges = grid(3, 4)
    rng = np.random.default_rng(2)
    unary, coupling = jnp.array(rng.normal(0, 2, (3, 12))), jnp.array(rng.normal(0, 2, len(edges)))
    plans = elimination.plan(edges, 12), enumeration.plan(edges, 12)
    found, expected = elimination.marginals(unary, plans[0], coupling), enumeration.marginals(unary, plans[1], coupling)
    np.testing.assert_allclose(found, expected, rtol=1e-10)


def test_components_factorise():
    unary = np.random.default_rng(3).normal(0, 1, 6)
    both = elimination.plan(np.array([[0, 1], [1, 2], [3, 4], [4, 5]]), 6)
    one = elimination.plan(path(3), 3)
    whole = elimination.log_partition(jnp.array(unary), both, 0.7)
    parts = elimination.log_partition(jnp.array(unary.reshape(2, 3)), one, 0.7).sum()
    assert whole == pytest.approx(float(parts), rel=1e-10)


@pytest.mark.parametrize(
    ("edges", "num_tables", "widest"),
    [(path(40), 40, 1), (grid(3, 6), 18, 3), (complete(6), 6, 5), (np.zeros((0, 2), dtype=int), 5, 1)],
    ids=["path", "grid", "complete", "no edges"],
)
def test_separators_are_narrow(edges: np.ndarray, num_tables: int, widest: int):
    """The widest separator of the best order is the treewidth; min-fill finds it here (at least 1 is reported)."""
    assert width(edges, num_tables) <= widest


def test_a_wide_separator_is_refused_in_a_sentence():
    assert width(complete(8), 8) == 7
    with pytest.raises(ValueError, match=r"max_width=6: this graph of 8 tables needs separators of 7; raise max_width"):
        elimination.plan(complete(8), 8, max_width=6)
    with pytest.raises(ValueError, match=r"max_width=20: this graph of 22 tables needs separators of 21"):
        elimination.plan(complete(22), 22)


def test_a_repeated_edge_is_refused():
    """Counting it once or twice would be a guess."""
    with pytest.raises(ValueError, match=r"edges join tables 1 and 0 more than once; give each pair one edge"):
        elimination.plan(np.array([[0, 1], [1, 2], [1, 0]]), 3)


def wider(model: Model) -> tuple[jax.Array, elimination.Plan, jax.Array]:
    """A model of up to 6 tables padded to 8: one shape, hence one compiled program, for all of them."""
    plan = elimination.plan(model.edges, model.num_tables)
    padded = elimination.pad(plan, 12, 6, 7, model.num_tables, 8)
    # Padded tables get log-odds that would show if they were ever eliminated.
    unary = np.concatenate([model.unary, np.full(8 - model.num_tables, 3.0)])
    coupling = np.concatenate([model.coupling, np.zeros(15 - len(model.edges))])
    return jnp.array(unary), jax.tree.map(jnp.asarray, padded), jnp.array(coupling)


@few
@given(models(max_tables=5))
def test_padding_changes_nothing(model: Model):
    """More steps, slots, tables and edges of coupling 0, so that every graph has one shape."""
    unary, padded, coupling = wider(model)
    value, slope = _padded(unary, padded, coupling)
    reference = enumeration.plan(model.edges, model.num_tables)
    expected = enumeration.log_partition(jnp.array(model.unary), reference, jnp.array(model.coupling))
    assert value == pytest.approx(float(expected), rel=1e-10)
    assert (slope[model.num_tables :] == 0).all()


_padded = jax.jit(jax.value_and_grad(elimination.log_partition))
_linear = jax.jit(
    jax.value_and_grad(lambda a, plan, b: elimination.log_partition(a, plan, b, elimination.Arithmetic.LINEAR))
)
_pairs = jax.jit(elimination.pair_marginals)


@few
@given(models(max_tables=6))
def test_linear_space_equals_log_space(model: Model):
    unary, plan, coupling = wider(model)
    assert elimination.linear_is_safe(unary, plan, coupling)
    found, expected = _linear(unary, plan, coupling), _padded(unary, plan, coupling)
    assert found[0] == pytest.approx(float(expected[0]), rel=1e-10)
    np.testing.assert_allclose(found[1], expected[1], rtol=1e-10, atol=1e-15)


def test_range_check_refuses_what_linear_space_cannot_hold():
    """Log-odds of 1e5 are out of range, and linear space is then really wrong; log space is not."""
    plan = elimination.plan(path(4), 4)
    unary = jnp.array([-1e5, 9e4, -1e5, 2.0])
    assert not elimination.linear_is_safe(unary, plan, 50.0)
    assert not elimination.linear_is_safe(jnp.zeros(4), plan, 150.0)
    assert elimination.linear_is_safe(jnp.zeros(4), plan, 50.0)
    assert elimination.log_partition(unary, plan, 50.0) == pytest.approx(9e4 + math.log1p(math.exp(2.0)), rel=1e-12)


def test_second_derivatives_at_a_tie():
    """All log-odds zero: the variance of each table is 1/4, in forward and in reverse mode."""
    plan = elimination.plan(path(3), 3)
    for derivative in (jax.hessian, lambda f: jax.jacfwd(jax.jacfwd(f)), lambda f: jax.jacrev(jax.jacrev(f))):
        curvature = derivative(lambda a: elimination.log_partition(a, plan, 0.0))(jnp.zeros(3))
        np.testing.assert_allclose(curvature, np.eye(3) / 4, rtol=0, atol=1e-14)


@few
@given(models(max_tables=6))
def test_pair_marginals_equal_the_derivative_of_enumeration(model: Model):
    unary, plan, coupling = wider(model)
    reference = enumeration.plan(model.edges, model.num_tables)
    found = _pairs(unary, plan, coupling)[: len(model.edges)]
    expected = jax.grad(lambda b: enumeration.log_partition(jnp.array(model.unary), reference, b))(
        jnp.array(model.coupling)
    )
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-12)
