"""Mode, samples, covers and sizes by elimination, against listing all subsets in plain Python."""

import itertools
import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from strategies import Model, few, models

from bayeslink.inference import queries
from bayeslink.inference.elimination import pad, plan, separator_gain, width_of

TABLES = 7


def padded(model: Model):
    """Plan, unary and gain of a model padded to common shapes."""
    exact = plan(model.edges, model.num_tables)
    wide = pad(exact, TABLES, max(width_of(exact), 6), 8, model.num_tables, TABLES)
    unary = np.concatenate([model.unary, np.full(TABLES - model.num_tables, 2.0)])
    coupling = np.concatenate([model.coupling, np.zeros(21 - len(model.edges))])
    return jnp.array(unary)[:, None], jax.tree.map(jnp.asarray, wide), separator_gain(wide, jnp.array(coupling))


def listed(model: Model) -> dict[tuple[int, ...], float]:
    """Probability of every subset, by loops."""
    weights = {}
    for x in itertools.product((0, 1), repeat=model.num_tables):
        terms = [float(a) * taken for a, taken in zip(model.unary, x, strict=True)]
        terms += [float(b) * x[s] * x[t] for b, (s, t) in zip(model.coupling, model.edges.tolist(), strict=True)]
        weights[x] = math.exp(math.fsum(terms))
    total = math.fsum(weights.values())
    return {x: weight / total for x, weight in weights.items()}


_mode = jax.jit(queries.mode)
_cover = jax.jit(queries.cover_probability)
_sizes = jax.jit(queries.size_distribution, static_argnames="num_sizes")


@few
@given(models(max_tables=TABLES))
def test_mode_cover_and_sizes_equal_the_list(model: Model):
    unary, order, gain = padded(model)
    probability = listed(model)
    chosen, energy = _mode(unary, order, gain)
    found = tuple(np.asarray(chosen)[: model.num_tables, 0].astype(int).tolist())
    assert not np.asarray(chosen)[model.num_tables :].any()
    assert probability[found] == pytest.approx(max(probability.values()), rel=1e-10)
    # The empty set has energy 0, so the mode's energy is its log-probability ratio to the empty set.
    empty = probability[(0,) * model.num_tables]
    assert float(energy[0]) == pytest.approx(math.log(probability[found] / empty), rel=1e-9, abs=1e-9)
    inside = np.zeros((TABLES, 1), dtype=bool)
    inside[: model.num_tables : 2] = True
    expected = math.fsum(p for x, p in probability.items() if not any(x[1::2]))
    assert float(_cover(unary, order, gain, jnp.array(inside))[0]) == pytest.approx(expected, rel=1e-10)
    sizes = np.asarray(_sizes(unary, order, gain, num_sizes=TABLES + 1))[:, 0]
    for size in range(TABLES + 1):
        exact = math.fsum(p for x, p in probability.items() if sum(x) == size)
        assert sizes[size] == pytest.approx(exact, rel=1e-10, abs=1e-11)


def test_samples_have_the_exact_distribution():
    """Chi-square over the 32 subsets of a cycle with a chord, couplings of both signs."""
    edges = np.array([[0, 1], [1, 2], [2, 3], [3, 4], [0, 4], [1, 3]])
    model = Model(5, edges, np.array([-0.5, 0.3, -1.0, 0.8, 0.1]), np.array([1.0, -0.8, 0.6, 0.9, -0.4, 0.5]))
    unary, order, gain = padded(model)
    many = 20_000
    taken = queries.sample(jax.random.key(3), jnp.repeat(unary, many, axis=1), order, gain)
    codes = np.asarray(taken)[:5].T @ (1 << np.arange(5))
    counts = np.bincount(codes, minlength=32)
    expected = many * np.array(
        [p for _, p in sorted((sum(b << i for i, b in enumerate(x)), p) for x, p in listed(model).items())]
    )
    statistic = float(((counts - expected) ** 2 / expected).sum())
    # 31 degrees of freedom: mean 31, variance 62; four standard errors.
    assert abs(statistic - 31) < 4 * math.sqrt(62)


# Each example compiles its own shapes here, so fewer of them.
rare = settings(max_examples=5, derandomize=True, deadline=None)


@rare
@given(models(max_tables=TABLES))
def test_entropy_and_prefixes_equal_the_list(model: Model):
    probability = listed(model)
    order = plan(model.edges, model.num_tables)
    found = queries.entropy(jnp.array(model.unary), order, jnp.array(model.coupling))
    expected = -math.fsum(p * math.log(p) for p in probability.values() if p > 0)
    assert float(found) == pytest.approx(expected, rel=1e-9, abs=1e-10)
    ranking = np.argsort(-model.unary, kind="stable")
    covers = queries.prefix_covers(
        jnp.array(model.unary), order, separator_gain(order, jnp.array(model.coupling)), jnp.array(ranking)
    )
    assert len(covers) == model.num_tables + 1
    for size in range(model.num_tables + 1):
        outside = ranking[size:]
        exact = math.fsum(p for x, p in probability.items() if not any(x[t] for t in outside))
        assert float(covers[size]) == pytest.approx(exact, rel=1e-10)


@rare
@given(models(max_tables=6))
def test_best_selections_come_in_order_and_none_is_missed(model: Model):
    probability = listed(model)
    order = plan(model.edges, model.num_tables)
    chosen, log_probability = queries.best(model.unary, order, model.edges, model.coupling, 5)
    wanted = sorted(probability.values(), reverse=True)[:5]
    assert len(chosen) == min(5, 2**model.num_tables)
    np.testing.assert_allclose(np.exp(log_probability), wanted, rtol=1e-9)
    assert len({tuple(x) for x in chosen.tolist()}) == len(chosen)
    for x, value in zip(chosen.astype(int).tolist(), log_probability, strict=True):
        assert math.exp(value) == pytest.approx(probability[tuple(x)], rel=1e-9)


def test_best_of_a_large_graph_starts_with_the_mode():
    """On a path of 60 tables the second best differs from the best, and no single flip does better than it."""
    rng = np.random.default_rng(8)
    edges = np.array([(t, t + 1) for t in range(59)])
    unary, coupling = rng.normal(0, 2, 60), rng.normal(0.5, 1, 59)
    order = plan(edges, 60)
    chosen, log_probability = queries.best(unary, order, edges, coupling, 4)
    mode, score = queries.mode(jnp.array(unary)[:, None], order, separator_gain(order, jnp.array(coupling)))
    np.testing.assert_array_equal(chosen[0], np.asarray(mode)[:, 0])

    def energy(x: np.ndarray) -> float:
        return float(unary @ x + coupling @ (x[edges[:, 0]] * x[edges[:, 1]]))

    assert energy(chosen[0]) == pytest.approx(float(score[0]), rel=1e-10)
    flips = [energy(np.where(np.arange(60) == t, ~chosen[0], chosen[0])) for t in range(60)]
    assert energy(chosen[1]) >= max(flips) - 1e-9
    assert (np.diff(log_probability) <= 1e-12).all()
    with pytest.raises(ValueError, match="k=0: at least one selection is needed"):
        queries.best(unary, order, edges, coupling, 0)
