"""Derivatives of each question's log likelihood against brute-force cumulants and differences of them."""

import math

import differences
import jax
import jax.numpy as jnp
import numpy as np
import oracles
import pytest
from worlds import rich_world

from bayeslink.inference import packing
from bayeslink.inference.expansion import Expansion, coordinates, directional, expand
from bayeslink.inference.laplace import owners
from bayeslink.inference.packing import pack
from bayeslink.model.autologistic import Support
from bayeslink.model.batch import Batch, LocalParameters

INTERCEPT = np.array([-0.5, 0.2, -1.0, 0.4])
CONTEXT = np.array([0.4, -0.3, 0.6])
SLOPES = np.array([[0.9, -0.3], [0.4, 0.2], [-0.6, 1.1], [0.8, 0.5]])
COUPLING = np.array([[0.6, -0.4, 1.2], [-0.3, 0.9, 0.5], [1.1, 0.2, -0.7], [0.7, -0.2, 0.4]])
DIRECTIONS = np.array([[0.7, 0.0, 0.0, 0.3, -0.2, 0.1], [0.2, -0.5, 1.3, 0.0, 0.6, 0.4]])
"""Neither of unit length nor at right angles; the first entries where there are fewer coordinates."""

CASES = {"kinds of edges": (3, True), "one coupling": (1, True), "held coupling": (1, False)}
"""Number of kinds of edges that are told apart, and whether the couplings are among the coordinates."""


@pytest.fixture(scope="module")
def world():
    return rich_world(num_questions=2)


@pytest.fixture(scope="module", params=list(CASES))
def case(request):
    """(local parameters, directions, whether the couplings are coordinates)."""
    kinds, with_coupling = CASES[request.param]
    local = LocalParameters(*map(jnp.array, (INTERCEPT, CONTEXT, SLOPES, COUPLING[:, :kinds])))
    size = 3 + (kinds if with_coupling else 0)
    return local, jnp.array(DIRECTIONS[:, :size]), with_coupling


@pytest.fixture(scope="module", params=list(Support), ids=lambda support: support.value)
def support(request) -> Support:
    return request.param


@pytest.fixture(scope="module")
def found(world, case, support) -> dict[str, list]:
    """Expansions of order 2, 3, 4 and the one along directions, listed and eliminated, sorted by question."""
    local, directions, with_coupling = case

    def all_orders(batch: Batch, local: LocalParameters) -> list[Expansion]:
        orders = [expand(batch, local, directions, with_coupling, support, order) for order in (2, 3, 4)]
        return [*orders, directional(batch, local, directions, support)]

    results = {}
    with pytest.MonkeyPatch.context() as patch:
        # Small blocks, one of them partly padding: the work is that of the questions that are there.
        patch.setattr(packing, "BLOCK", 4)
        # All eliminated schemas in one padded bucket: one program to compile.
        patch.setattr(packing, "MERGE_LIMIT", 1000.0)
        for name, max_listed in (("listed", 10), ("eliminated", 0)):
            batch = pack(world, max_listed)
            rows = jax.jit(all_orders)(batch, local)
            question = np.concatenate([np.asarray(bucket.question).reshape(-1) for bucket in batch.buckets])
            database = np.asarray(owners(batch))
            real = question >= 0
            for expansion in rows:
                for part in expansion:
                    assert part is None or not np.asarray(part)[~real].any()
            order = np.lexsort((question, database))
            order = order[real[order]]
            results[name] = [Expansion(*(p if p is None else np.asarray(p)[order] for p in e)) for e in rows]
    jax.clear_caches()
    return results


def statistics(item, question: int, x: oracles.Selection, kinds: int) -> list[float]:
    """(N, sum_t z_t x_t, M of each kind of edge)."""
    rows = item.values[question].tolist()
    matched = [math.fsum(row[k] for row, bit in zip(rows, x, strict=True) if bit) for k in range(2)]
    joined = [0.0] * kinds
    for (s, t), kind in zip(item.edges.tolist(), item.edge_types.tolist(), strict=True):
        joined[kind if kinds > 1 else 0] += x[s] * x[t]
    return [float(sum(x)), *matched, *joined]


def exact(item, d: int, question: int, local: LocalParameters, theta, size: int, support: Support):
    """l, its gradient and its second derivatives in the first `size` coordinates, by listing the subsets."""
    kinds = local.coupling.shape[1]
    intercept = float(theta[0]) + math.fsum((item.values[question, 0, 2:] * CONTEXT).tolist())
    coupling = np.concatenate([theta[3:], np.asarray(local.coupling)[d, max(size - 3, 0) :]]).tolist()
    each = [coupling[kind if kinds > 1 else 0] for kind in item.edge_types.tolist()]
    unary = oracles.unary_log_odds(item.values[question, :, :2].tolist(), intercept, theta[1:3].tolist())
    chances = oracles.distribution(unary, item.edges.tolist(), each, support is Support.NON_EMPTY)
    gold = tuple(map(int, item.gold[question]))
    rows = np.array([statistics(item, question, x, kinds)[:size] for x in chances])
    weights = np.array(list(chances.values()))
    mean = weights @ rows
    centred = rows - mean
    first = np.array(statistics(item, question, gold, kinds)[:size]) - mean
    return math.log(chances[gold]), first, -(weights[:, None] * centred).T @ centred


def theta_of(local: LocalParameters, d: int, size: int) -> np.ndarray:
    return np.concatenate([[INTERCEPT[d]], SLOPES[d], np.asarray(local.coupling)[d]])[:size]


def each_question(world):
    return [(d, q) for d, item in enumerate(world) for q in range(item.num_questions)]


def test_coordinates_are_the_rows_of_theta(case):
    local, directions, with_coupling = case
    size = directions.shape[1]
    rows = coordinates(local, with_coupling)
    np.testing.assert_array_equal(rows, [theta_of(local, d, size) for d in range(4)])


def test_value_gradient_and_curvature_are_cumulants(world, case, support, found):
    local, directions, _ = case
    size = directions.shape[1]
    for row, (d, q) in enumerate(each_question(world)):
        expected = exact(world[d], d, q, local, theta_of(local, d, size), size, support)
        for expansion in found["listed"][:3]:
            for part, other in zip(expansion[:3], expected, strict=True):
                np.testing.assert_allclose(part[row], other, rtol=1e-10, atol=1e-12)


def test_third_and_fourth_derivatives_equal_finite_differences(world, case, support, found):
    """Differences of the brute-force second derivatives: along each coordinate, and twice along the directions."""
    local, directions, _ = case
    size = directions.shape[1]
    ways = np.asarray(directions)
    for row, (d, q) in enumerate(each_question(world)):
        if q > 1:
            continue
        theta = theta_of(local, d, size)

        def curvature(point, d=d, q=q):
            return exact(world[d], d, q, local, point, size, support)[2]

        third = np.moveaxis(differences.gradient(curvature, theta), 0, -1)
        fourth = differences.hessian(lambda move, f=curvature, at=theta: f(at + move @ ways), np.zeros(2))
        # Fourth-order differences: with step 1e-3 good to 1e-10, twice with step 3e-3 to 1e-9.
        np.testing.assert_allclose(found["listed"][1].third[row], third, atol=1e-8)
        np.testing.assert_allclose(found["listed"][2].third[row], third, atol=1e-8)
        np.testing.assert_allclose(found["listed"][2].fourth[row], fourth, rtol=1e-6, atol=1e-7)


def test_the_list_and_elimination_agree(found):
    for one, other in zip(found["listed"], found["eliminated"], strict=True):
        for part, same in zip(one, other, strict=True):
            assert (part is None) == (same is None)
            if part is not None:
                np.testing.assert_allclose(part, same, rtol=1e-9, atol=1e-9)


def test_an_order_has_its_own_derivatives_and_no_more(found):
    for results in found.values():
        second, third, fourth, along = results
        assert [part is None for part in second] == [False] * 3 + [True, True]
        assert [part is None for part in third] == [False] * 4 + [True]
        assert [part is None for part in fourth] == [False] * 5
        assert [part is None for part in along] == [False] * 3 + [True, True]


def test_derivatives_along_directions_are_projections(case, found):
    ways = np.asarray(case[1])
    for results in found.values():
        whole, along = results[0], results[3]
        np.testing.assert_allclose(along.value, whole.value, rtol=1e-12)
        np.testing.assert_allclose(along.first, whole.first @ ways.T, rtol=1e-9, atol=1e-10)
        np.testing.assert_allclose(along.second, ways @ whole.second @ ways.T, rtol=1e-9, atol=1e-10)


def test_tensors_are_symmetric(found):
    for results in found.values():
        third, fourth = results[2].third, results[2].fourth
        for axes in ((0, 2, 1, 3), (0, 3, 2, 1)):
            np.testing.assert_allclose(third, third.transpose(axes), rtol=1e-12, atol=1e-14)
        for axes in ((0, 2, 1, 3, 4), (0, 1, 2, 4, 3)):
            np.testing.assert_allclose(fourth, fourth.transpose(axes), rtol=1e-12, atol=1e-14)
