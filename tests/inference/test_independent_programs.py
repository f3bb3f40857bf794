"""Elimination on 20 to 120 tables against three programs written by others.

dwave-samplers (tree decomposition in C++; energies are minus ours), opt_einsum (the sum over selections as one
tensor contraction) and pyAgrum (Shafer-Shenoy message passing on a Markov random field).
"""

import functools
import itertools
import math
import warnings

import dimod
import jax
import jax.numpy as jnp
import numpy as np
import opt_einsum
import pytest
from dwave.samplers import TreeDecompositionSampler, TreeDecompositionSolver
from strategies import Model

from bayeslink.inference import elimination, mincut, queries

with warnings.catch_warnings():
    # SWIG's own types, created when its modules are imported; as an error this ends the process.
    warnings.filterwarnings("ignore", r"builtin type (SwigPy\w+|swigvarlink) has no __module__", DeprecationWarning)
    import pyagrum
    import pyagrum.markov_random_field  # imported here, not on first use

RTOL = 1e-10
CASES = pytest.mark.parametrize(
    ("num_tables", "couplings"),
    list(itertools.product([20, 50, 120], ["positive", "negative", "per-edge"])),
)


@functools.cache
def sparse_model(num_tables: int, couplings: str) -> Model:
    """Trees with a few short cycles; every tenth table is alone, and some trees are apart from the others."""
    rng = np.random.default_rng(num_tables)
    joined = [t for t in range(num_tables) if t % 10 != 7]
    pairs = {(int(rng.choice(joined[:i])), t) for i, t in enumerate(joined) if i and t % 25}
    pairs |= {(joined[i - step], joined[i]) for i in range(4, len(joined)) for step in (1, 4) if rng.random() < 0.12}
    edges = np.array([pair if rng.random() < 0.5 else pair[::-1] for pair in sorted(pairs)])
    low, high = {"positive": (0.0, 2.5), "negative": (-2.5, 0.0), "per-edge": (-2.5, 2.5)}[couplings]
    coupling = (
        rng.uniform(low, high, len(edges)) if couplings == "per-edge" else np.full(len(edges), 0.4 * (low + high))
    )
    return Model(num_tables, edges, rng.normal(-0.5, 1.5, num_tables), coupling)


@functools.cache
def eliminated(num_tables: int, couplings: str) -> tuple[float, np.ndarray, np.ndarray]:
    """Log Z, marginals and pair marginals."""
    model = sparse_model(num_tables, couplings)
    plan = elimination.plan(model.edges, num_tables)
    function = jax.value_and_grad(lambda a, b: elimination.log_partition(a, plan, b), argnums=(0, 1))
    value, slopes = jax.jit(function)(jnp.array(model.unary), jnp.array(model.coupling))
    return float(value), np.asarray(slopes[0]), np.asarray(slopes[1])


def quadratic(model: Model) -> dimod.BinaryQuadraticModel:
    """D-Wave's model, whose energy is minus ours."""
    linear = {t: -float(a) for t, a in enumerate(model.unary)}
    pairs = {(int(s), int(t)): -float(b) for (s, t), b in zip(model.edges, model.coupling, strict=True)}
    return dimod.BinaryQuadraticModel(linear, pairs, 0.0, dimod.BINARY)


def test_graphs_have_what_they_should():
    """Widths above that of a tree, tables alone, and more than one tree."""
    for num_tables in (20, 50, 120):
        model = sparse_model(num_tables, "per-edge")
        used = set(model.edges.ravel().tolist())
        assert num_tables - len(used) >= num_tables // 10
        assert {1.0, -1.0} == set(np.sign(model.coupling))
        assert elimination.width_of(elimination.plan(model.edges, num_tables)) >= 2
        assert len(model.edges) >= num_tables * 0.9


@CASES
def test_dwave_finds_the_same_marginals(num_tables: int, couplings: str):
    model = sparse_model(num_tables, couplings)
    info = TreeDecompositionSampler().sample(quadratic(model), beta=1.0, marginals=True, seed=1).info
    log_z, marginals, pair_marginals = eliminated(num_tables, couplings)
    assert log_z == pytest.approx(info["log_partition_function"], rel=RTOL)
    np.testing.assert_allclose(marginals, [info["variable_marginals"][t] for t in range(num_tables)], rtol=RTOL)
    pairs = {frozenset(map(int, pair)): table[1, 1] for pair, table in info["interaction_marginals"].items()}
    np.testing.assert_allclose(pair_marginals, [pairs[frozenset(e)] for e in model.edges.tolist()], rtol=RTOL)


@CASES
def test_dwave_finds_the_same_mode(num_tables: int, couplings: str):
    model = sparse_model(num_tables, couplings)
    best = TreeDecompositionSolver().sample(quadratic(model)).first
    plan = elimination.plan(model.edges, num_tables)
    gain = elimination.separator_gain(plan, jnp.array(model.coupling))
    selection, score = queries.mode(jnp.array(model.unary)[:, None], plan, gain)
    assert float(score[0]) == pytest.approx(-best.energy, rel=RTOL)
    # Log-odds are drawn from a continuum: no ties.
    assert np.asarray(selection)[:, 0].tolist() == [bool(best.sample[t]) for t in range(num_tables)]
    if couplings == "positive":
        assert mincut.mode(model.unary, model.edges, model.coupling).score == pytest.approx(-best.energy, rel=RTOL)


@CASES
def test_samples_follow_the_marginals_of_dwave(num_tables: int, couplings: str):
    model, num_draws = sparse_model(num_tables, couplings), 2000
    info = TreeDecompositionSampler().sample(quadratic(model), beta=1.0, marginals=True, seed=1).info
    plan = elimination.plan(model.edges, num_tables)
    gain = elimination.separator_gain(plan, jnp.array(model.coupling))
    repeated = jnp.tile(jnp.array(model.unary)[:, None], num_draws)
    draws = np.asarray(queries.sample(jax.random.key(num_tables), repeated, plan, gain), dtype=float)
    expected = np.array([info["variable_marginals"][t] for t in range(num_tables)])
    assert (np.abs(draws.mean(axis=1) - expected) < 4 * np.sqrt(expected * (1 - expected) / num_draws)).all()
    pairs = np.array([table[1, 1] for table in info["interaction_marginals"].values()])
    first, second = np.array(list(info["interaction_marginals"])).T
    both = (draws[first] * draws[second]).mean(axis=1)
    assert (np.abs(both - pairs) < 4 * np.sqrt(pairs * (1 - pairs) / num_draws)).all()


@CASES
def test_tensor_contraction_finds_the_same_marginals(num_tables: int, couplings: str):
    """Z = sum_x prod_t [1, e^a][x_t] prod_e [[1, 1], [1, e^beta]][x_s, x_t]; marginals of six tables."""
    model = sparse_model(num_tables, couplings)
    operands: list = []
    shift = 0.0
    for t, a in enumerate(model.unary.tolist()):
        operands += [np.exp([-max(a, 0.0), a - max(a, 0.0)]), (t,)]
        shift += max(a, 0.0)
    for (s, t), b in zip(model.edges.tolist(), model.coupling.tolist(), strict=True):
        operands += [np.array([[1.0, 1.0], [1.0, math.exp(b)]]), (s, t)]
    log_z, marginals, _ = eliminated(num_tables, couplings)
    total = opt_einsum.contract(*operands, (), optimize="greedy")
    assert log_z == pytest.approx(math.log(total) + shift, rel=RTOL)
    for t in (0, 3, 7, num_tables // 2, num_tables - 3, num_tables - 1):
        off, on = opt_einsum.contract(*operands, (t,), optimize="greedy")
        assert off + on == pytest.approx(total, rel=RTOL)
        assert marginals[t] == pytest.approx(on / total, rel=RTOL)


@CASES
def test_shafer_shenoy_finds_the_same_marginals(num_tables: int, couplings: str):
    model = sparse_model(num_tables, couplings)
    field = pyagrum.MarkovRandomField()
    for t, a in enumerate(model.unary.tolist()):
        field.add(pyagrum.LabelizedVariable(f"table{t}", "", 2))
        field.addFactor([t])[:] = [1.0, math.exp(a)]
    for (s, t), b in zip(model.edges.tolist(), model.coupling.tolist(), strict=True):
        field.addFactor([s, t])[:] = [[1.0, 1.0], [1.0, math.exp(b)]]
    engine = pyagrum.ShaferShenoyMRFInference(field)
    engine.makeInference()
    expected = [engine.posterior(t)[1] for t in range(num_tables)]
    np.testing.assert_allclose(eliminated(num_tables, couplings)[1], expected, rtol=RTOL)
