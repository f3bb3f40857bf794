"""Blocked Gibbs sampling against brute force, and its diagnostics against ArviZ and against a stuck sampler."""

import itertools
import math

import arviz as az
import jax
import jax.numpy as jnp
import numpy as np
import oracles
import pytest
from hypothesis import given, settings
from strategies import Model, few, graphs, models

from bayeslink.inference import elimination, gibbs

fewer = settings(few, max_examples=6)
"""Each graph shape compiles a sampler of its own."""

EDGES = np.array([[0, 1], [2, 1], [0, 2], [4, 3], [3, 2], [0, 3], [1, 4]])
"""Six tables: three cycles, and table 5 alone."""
UNARY = np.array([[0.3, -1.0, 0.7, -2.0, 1.1, -0.4], [-1.0, 0.5, 0.0, 0.5, -0.5, 4.0]])


def complete(num_tables: int) -> np.ndarray:
    return np.array(list(itertools.combinations(range(num_tables), 2)))


def sampled(edges: np.ndarray, unary: np.ndarray, coupling, seed: int = 0, **options) -> gibbs.GibbsDraws:
    plan = gibbs.plan(edges, unary.shape[-1], seed)
    return gibbs.sample(jax.random.key(seed), jnp.array(unary), plan, jnp.array(coupling), **options)


def has_cycle(tables: set[int], edges: np.ndarray) -> bool:
    """Whether stripping tables with at most one neighbour leaves some."""
    left = set(tables)
    while True:
        degree = {t: sum(1 for s, u in edges if t in (s, u) and {s, u} <= left) for t in left}
        leaves = {t for t in left if degree[t] <= 1}
        if not leaves:
            return bool(left)
        left -= leaves


@few
@given(graph=graphs(max_tables=9))
def test_blocks_are_maximal_induced_forests_that_hold_every_table(graph):
    num_tables, edges = graph
    found = gibbs.plan(edges, num_tables)
    joined = {frozenset(pair) for pair in edges.tolist()}
    held = set()
    for tables, parents in zip(found.table.tolist(), found.parent.tolist(), strict=True):
        rows = [(t, p) for t, p in zip(tables, parents, strict=True) if t < num_tables]
        block = [t for t, _ in rows]
        assert len(set(block)) == len(block)
        assert not has_cycle(set(block), edges)
        assert all(has_cycle({*block, t}, edges) for t in range(num_tables) if t not in block)
        # Every edge inside the block is one between a table and its parent, which comes later.
        assert {frozenset(row) for row in rows if row[1] < num_tables} == {e for e in joined if e <= set(block)}
        assert all(block.index(p) > block.index(t) for t, p in rows if p < num_tables)
        held |= set(block)
    assert held == set(range(num_tables))


@fewer
@given(model=models(max_tables=6, scale=2.0))
def test_sweeps_of_one_block_are_independent_exact_draws(model: Model):
    """A spanning forest's chains need no warm-up: pairs of tables within 4 standard errors of the truth."""
    kept, trees = [], {t: t for t in range(model.num_tables)}
    for index, (s, t) in enumerate(model.edges.tolist()):
        if trees[s] != trees[t]:
            kept.append(index)
            trees = {table: trees[s] if tree == trees[t] else tree for table, tree in trees.items()}
    edges, coupling = model.edges[kept], model.coupling[kept]
    found = sampled(edges, model.unary, coupling, num_warmup=0, num_draws=500)
    exact = oracles.distribution(model.unary, edges, coupling)
    draws = found.draws.reshape(-1, model.num_tables).astype(float)
    for s, t in itertools.product(range(model.num_tables), repeat=2):
        both = oracles.expectation(exact, lambda x, s=s, t=t: x[s] * x[t])
        error = math.sqrt(both * (1 - both) / len(draws))
        # One draw more than none where the pair is too rare for the normal law.
        assert abs((draws[:, s] * draws[:, t]).mean() - both) <= 4 * error + 2 / len(draws)
    assert found.r_hat.max() < 1.05


@pytest.mark.parametrize(
    "coupling",
    [0.9, -1.3, np.array([0.8, -1.5, 0.3, 1.5, -0.2, 1.0, -0.7])],
    ids=["positive", "negative", "per-edge"],
)
def test_marginals_of_several_questions_equal_brute_force(coupling):
    found = sampled(EDGES, UNARY, coupling, num_draws=2000)
    per_edge = coupling if isinstance(coupling, float) else coupling.tolist()
    exact = [oracles.distribution(row, EDGES, per_edge) for row in UNARY]
    expected = np.array([oracles.marginals(each) for each in exact])
    assert found.marginals.shape == UNARY.shape
    assert (np.abs(found.marginals - expected) <= 4 * found.standard_error + 1e-12).all()
    assert found.standard_error.max() < 0.01
    assert found.converged
    assert found.converged_questions.tolist() == [True, True]
    assert not found.exact
    # The draws themselves, and so their pairs, follow the same law.
    draws = found.draws.astype(float)
    pairs = (draws[..., EDGES[:, 0]] * draws[..., EDGES[:, 1]]).transpose(2, 0, 1, 3)
    truth = np.array([oracles.pair_marginals(each, EDGES) for each in exact])
    errors = np.array([[az.mcse(values[..., e], method="mean") for e in range(len(EDGES))] for values in pairs])
    assert (np.abs(pairs.mean(axis=(1, 2)) - truth) <= 4 * errors).all()


@fewer
@given(model=models(max_tables=7, scale=2.0))
def test_random_graphs_equal_brute_force_where_converged(model: Model):
    found = sampled(model.edges, model.unary, model.coupling)
    expected = oracles.marginals(oracles.distribution(model.unary, model.edges, model.coupling))
    if found.converged:  # a strong coupling may be flagged instead
        assert (np.abs(found.marginals - expected) <= 4 * found.standard_error + 1e-12).all()


def test_without_coupling_and_alone_marginals_are_exact():
    found = sampled(EDGES, UNARY, 0.0, num_draws=10, num_warmup=0)
    np.testing.assert_allclose(found.marginals, 1 / (1 + np.exp(-UNARY)), rtol=1e-12)
    np.testing.assert_array_equal(found.standard_error, 0.0)
    np.testing.assert_array_equal(found.r_hat, 1.0)
    np.testing.assert_array_equal(found.effective_sample_size, 40.0)
    assert not found.converged  # 40 draws are too few to say so
    coupled = sampled(EDGES, UNARY, 0.7, num_draws=10, num_warmup=0)
    np.testing.assert_allclose(coupled.marginals[:, 5], 1 / (1 + np.exp(-UNARY[:, 5])), rtol=1e-12)


def test_extreme_values_stay_finite():
    """Log-odds of +-1e5 force tables in and out, whatever the coupling."""
    for coupling in (50.0, -50.0):
        found = sampled(EDGES, np.array([1e5, -1e5, 1e5, -1e5, 1e5, -1e5]), coupling, num_draws=10, num_warmup=0)
        np.testing.assert_array_equal(found.draws, np.broadcast_to([1, 0, 1, 0, 1, 0], found.draws.shape) > 0)
        np.testing.assert_allclose(found.marginals, [1, 0, 1, 0, 1, 0], atol=1e-15)
        assert found.worst_r_hat == 1.0


@pytest.mark.parametrize(("coupling", "mixes"), [(1.0, False), (0.1, True)])
def test_two_modes_far_apart_are_flagged(coupling: float, mixes: bool):
    """With a_t = -beta (n - 1) / 2, x and its complement are equally probable: all marginals are 1/2."""
    unary = np.full(12, -coupling * 11 / 2)
    found = sampled(complete(12), unary, coupling, num_draws=400, num_warmup=100)
    assert found.converged is mixes
    if mixes:
        assert (np.abs(found.marginals - 0.5) < 4 * found.standard_error).all()
    else:
        assert found.worst_r_hat > 1.2
        # What R-hat is for: chains that start together do not notice.
        one_start = found.draws[0].mean()
        assert abs(one_start - 0.5) > 0.4


def test_too_few_draws_are_flagged():
    assert not sampled(EDGES, UNARY, 0.9, num_draws=50).converged


@pytest.mark.parametrize("coupling", [0.08, -0.3])
def test_complete_graph_of_25_tables_has_a_closed_form(coupling: float):
    """Curie-Weiss: Z = sum_k C(n, k) exp(a k + beta k (k - 1) / 2), P(x_t = 1) = E[k] / n."""
    edges, num_tables, unary = complete(25), 25, -0.9
    with pytest.raises(ValueError, match=r"max_width=10: .* or use gibbs"):
        elimination.plan(edges, num_tables, max_width=10)
    logs = [math.log(math.comb(num_tables, k)) + unary * k + coupling * k * (k - 1) / 2 for k in range(num_tables + 1)]
    log_z = oracles.log_sum_exp(logs)
    size = math.fsum(k * math.exp(value - log_z) for k, value in enumerate(logs))
    found = sampled(edges, np.full(num_tables, unary), coupling)
    assert found.converged
    assert (np.abs(found.marginals - size / num_tables) < 4 * found.standard_error).all()
    sizes = found.draws.sum(axis=-1).astype(float)
    assert abs(sizes.mean() - size) < 4 * az.mcse(sizes, method="mean")


def test_diagnostics_equal_those_of_arviz():
    """Autoregressive chains, one set of them apart from the others; ArviZ's sum has one term more at its end."""
    rng = np.random.default_rng(3)
    values = np.zeros((4, 600, 3))
    noise = rng.normal(size=values.shape)
    for draw in range(1, 600):
        values[:, draw] = np.array([0.8, 0.0, -0.4]) * values[:, draw - 1] + noise[:, draw]
    values[0, :, 1] += 0.5
    found = [np.asarray(value) for value in gibbs._diagnostics(jnp.array(values))]
    for table in range(3):
        chains = values[..., table]
        assert found[1][table] == pytest.approx(az.rhat(chains, method="split"), rel=1e-10)
        assert found[2][table] == pytest.approx(az.ess(chains, method="mean"), rel=0.03)
        assert found[0][table] == pytest.approx(az.mcse(chains, method="mean"), rel=0.03)


def test_same_key_same_draws():
    plan = gibbs.plan(EDGES, 6)
    first, again, other = (
        gibbs.sample(jax.random.key(seed), jnp.array(UNARY), plan, 0.5, num_draws=20) for seed in (0, 0, 1)
    )
    np.testing.assert_array_equal(first.draws, again.draws)
    np.testing.assert_array_equal(first.marginals, again.marginals)
    assert (first.draws != other.draws).any()
    np.testing.assert_array_equal(gibbs.plan(EDGES, 6, 4).table, gibbs.plan(EDGES, 6, 4).table)


@pytest.mark.parametrize("edge", [[2, 2], [0, 6], [-1, 3]])
def test_impossible_edges_are_refused(edge: list[int]):
    with pytest.raises(ValueError, match=r"give pairs of different tables in 0\.\.5"):
        gibbs.plan(np.array([[0, 1], edge]), 6)


@pytest.mark.parametrize(
    ("unary", "coupling", "options", "message"),
    [
        (np.zeros(6, dtype=np.float32), 0.5, {}, "unary has dtype float32"),
        (np.zeros(5), 0.5, {}, "unary has 5 tables, the plan 6; make a plan"),
        (np.full(6, np.inf), 0.5, {}, "not finite; use log-odds"),
        (np.zeros(6), np.nan, {}, "not finite; use log-odds"),
        (np.zeros(6), 0.5, {"num_draws": 7}, "num_draws=7, .* even number"),
        (np.zeros(6), 0.5, {"num_draws": 2}, "num_draws=2, .* even number"),
        (np.zeros(6), 0.5, {"num_warmup": -1}, "num_warmup=-1, .* warm-up >= 0"),
        (np.zeros(6), 0.5, {"num_chains": 2}, "num_chains=2: .* at least 3 chains"),
    ],
)
def test_arguments_out_of_range_are_refused(unary, coupling, options, message):
    with pytest.raises(ValueError, match=message):
        gibbs.sample(jax.random.key(0), jnp.array(unary), gibbs.plan(EDGES, 6), coupling, **options)
