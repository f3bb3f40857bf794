"""Selection from a pool against listing every (database, non-empty subset) pair in plain Python."""

import dataclasses
import math

import numpy as np
import oracles
import pytest
from pools import SHAPES, brute_force, in_pool, random_pool, reordered

from bayeslink.inference.pool_member import PoolMember
from bayeslink.inference.pooled import PooledDistribution
from bayeslink.inference.posterior import DatabaseDraws

CASES = [{"seed": 0}, {"seed": 1, "per_edge": True, "score_draws": True}, {"seed": 2, "shift": -6.0}]


@pytest.fixture(scope="module", params=CASES, ids=str)
def pool(request) -> tuple[tuple[PoolMember, ...], PooledDistribution, list[dict]]:
    members = random_pool(**request.param)
    return members, PooledDistribution(members), [brute_force(members, q) for q in range(2)]


def test_database_and_table_probabilities(pool):
    members, found, listed = pool
    for q, probability in enumerate(listed):
        databases = [math.fsum(p for (e, _), p in probability.items() if e == d) for d in range(len(members))]
        np.testing.assert_allclose(found.database_probability[q], databases, rtol=1e-10)
        tables = [
            math.fsum(p for (e, x), p in probability.items() if e == d and x[t])
            for d, member in enumerate(members)
            for t in range(member.num_tables)
        ]
        np.testing.assert_allclose(found.marginals[q], tables, rtol=1e-10)
        np.testing.assert_array_equal(found.ranking[q], np.argsort([-p for p in tables], kind="stable"))
        assert found.expected_size[q] == pytest.approx(math.fsum(tables), rel=1e-10)
    np.testing.assert_allclose(found.database_probability.sum(axis=1), 1.0, rtol=1e-12)
    assert found.num_tables == 10
    np.testing.assert_array_equal(found.database_of, [0, 0, 0, 1, 2, 2, 2, 2, 3, 3])


def test_every_selection_has_its_probability(pool):
    members, found, listed = pool
    every = list(listed[0])
    total = np.zeros(2)
    for place in every:
        both = np.repeat(in_pool(members, *place)[None], 2, axis=0)
        log_probability = found.log_probability_of(both)
        np.testing.assert_allclose(log_probability, [math.log(listed[q][place]) for q in range(2)], rtol=1e-9)
        total += np.exp(log_probability)
    np.testing.assert_allclose(total, 1.0, rtol=1e-10)


def test_selections_of_different_databases_in_one_call(pool):
    members, found, listed = pool
    first, second = (0, (1, 0, 1)), (2, (0, 1, 1, 0))
    rows = np.stack([in_pool(members, *first), in_pool(members, *second)])
    expected = [math.log(listed[0][first]), math.log(listed[1][second])]
    np.testing.assert_allclose(found.log_probability_of(rows), expected, rtol=1e-9)


def test_covers(pool):
    members, found, listed = pool
    rng = np.random.default_rng(5)
    sets = [np.zeros((2, 10), dtype=bool), np.ones((2, 10), dtype=bool), *(rng.random((6, 2, 10)) < 0.6)]
    for chosen in sets:
        expected = [
            math.fsum(p for place, p in listed[q].items() if not (in_pool(members, *place) & ~chosen[q]).any())
            for q in range(2)
        ]
        np.testing.assert_allclose(found.cover_probability(chosen), expected, rtol=1e-10, atol=1e-15)


def test_subsets_of_one_database(pool):
    members, found, listed = pool
    for d, member in enumerate(members):
        for q in range(2):
            probabilities = found.subset_probabilities(d, q)
            assert probabilities[0] == 0
            for code, probability in enumerate(probabilities[1:], start=1):
                x = tuple(code >> t & 1 for t in range(member.num_tables))
                assert probability == pytest.approx(listed[q][d, x], rel=1e-10)


def test_the_order_of_databases_plays_no_role(pool):
    members, found, _ = pool
    order = (2, 0, 3, 1)
    moved = reordered(members, order)
    tables = np.concatenate([np.flatnonzero(found.database_of == d) for d in order])
    np.testing.assert_allclose(moved.database_probability, found.database_probability[:, order], rtol=1e-12)
    np.testing.assert_allclose(moved.marginals, found.marginals[:, tables], rtol=1e-12)
    chosen = np.random.default_rng(6).random((2, 10)) < 0.5
    np.testing.assert_allclose(
        moved.cover_probability(chosen[:, tables]), found.cover_probability(chosen), rtol=1e-12, atol=1e-15
    )


def test_one_database_is_the_non_empty_model():
    members = random_pool(3, SHAPES[2:3], num_draws=1, num_questions=1)
    found, member = PooledDistribution(members), members[0]
    expected = oracles.distribution(
        member.unary[0, 0].tolist(), member.edges.tolist(), float(member.coupling[0]), non_empty=True
    )
    assert found.database_probability[0, 0] == pytest.approx(1.0, abs=1e-14)
    np.testing.assert_allclose(found.marginals[0], oracles.marginals(expected), rtol=1e-10)


def test_without_evidence_only_size_and_score_speak():
    """P(d) goes as exp(r_d) ((1 + e^a)^n - 1) at coupling 0."""
    sizes, a, scores = (1, 2, 5), -0.7, (0.3, 0.0, -1.0)
    members = tuple(
        PoolMember(np.full((1, 1, n), a), np.zeros((0, 2), dtype=np.int64), np.zeros(1), np.array([s]))
        for n, s in zip(sizes, scores, strict=True)
    )
    weights = [math.exp(s) * ((1 + math.exp(a)) ** n - 1) for n, s in zip(sizes, scores, strict=True)]
    found = PooledDistribution(members)
    np.testing.assert_allclose(found.database_probability[0], np.array(weights) / sum(weights), rtol=1e-12)
    for n, of_one in zip(sizes, np.split(found.marginals[0], [1, 3]), strict=True):
        np.testing.assert_allclose(of_one, of_one[0], rtol=1e-12)
        assert len(of_one) == n


@pytest.mark.parametrize("shift", [-45.0, -300.0, 300.0])
def test_digits_are_kept_where_z_is_almost_one_or_huge(shift):
    members = random_pool(4, num_draws=1, num_questions=1, shift=shift)
    found, probability = PooledDistribution(members), brute_force(members, 0)
    databases = [math.fsum(p for (e, _), p in probability.items() if e == d) for d in range(4)]
    np.testing.assert_allclose(found.database_probability[0], databases, rtol=1e-9)
    one = max((place for place in probability if place[0] == 2), key=probability.__getitem__)
    chosen = in_pool(members, *one)[None]
    assert found.log_probability_of(chosen)[0] == pytest.approx(math.log(probability[one]), rel=1e-9)
    tables = [math.fsum(p for (e, x), p in probability.items() if e == 2 and x[t]) for t in range(4)]
    np.testing.assert_allclose(found.marginals[0, 4:8], tables, rtol=1e-9)


def test_a_database_whose_tables_cannot_be_selected_has_no_part():
    members = random_pool(7, num_draws=2, num_questions=2)
    barred = dataclasses.replace(members[2], unary=np.full((2, 2, 4), -1e4))
    found, rest = PooledDistribution((*members[:2], barred, members[3])), reordered(members, (0, 1, 3))
    np.testing.assert_allclose(found.marginals[:, [0, 1, 2, 3, 8, 9]], rest.marginals, rtol=1e-12)
    assert not found.marginals[:, 4:8].any()
    assert not found.database_probability[:, 2].any()
    nowhere = dataclasses.replace(members[1], unary=np.full((2, 2, 1), -1e4))
    with pytest.raises(ValueError, match="unary of question 0 leaves every database empty"):
        _ = PooledDistribution((barred, nowhere)).marginals


def test_a_larger_database_by_elimination():
    """Sixteen tables on a path: marginals are those of the chain rule, and covers those of its two halves."""
    edges = np.array([(t, t + 1) for t in range(15)])
    rng = np.random.default_rng(8)
    unary, small = rng.normal(-1, 1, (1, 1, 16)), random_pool(9, SHAPES[:1], num_draws=1, num_questions=1)
    member = PoolMember(unary, edges, np.array([0.8]), np.array([0.2]))
    found = PooledDistribution((*small, member))
    path = oracles.log_partition(unary[0, 0].tolist(), edges.tolist(), 0.8, non_empty=True)
    other = oracles.log_partition(
        small[0].unary[0, 0].tolist(), small[0].edges.tolist(), float(small[0].coupling[0]), non_empty=True
    )
    share = 1 / (1 + math.exp(other + float(small[0].score[0]) - path - 0.2))
    assert found.database_probability[0, 1] == pytest.approx(share, rel=1e-10)
    half = np.zeros((1, 19), dtype=bool)
    half[0, 3:11] = True
    inside = oracles.log_partition(unary[0, 0, :8].tolist(), edges[:7].tolist(), 0.8, non_empty=True)
    assert found.cover_probability(half)[0] == pytest.approx(share * math.exp(inside - path), rel=1e-10)
    with pytest.raises(ValueError, match="too many subsets to list"):
        found.subset_probabilities(1, 0)


def test_members_from_draws():
    rng = np.random.default_rng(10)
    values, slopes = rng.normal(size=(3, 4, 2)), rng.normal(size=(5, 2))
    edges, score = np.array([(0, 1), (1, 2), (2, 3)]), rng.normal(size=3)
    for intercept in (rng.normal(size=5), rng.normal(size=(5, 4))):
        draws = DatabaseDraws(intercept, slopes, rng.normal(size=5))
        member = PoolMember.of(values, edges, draws, score)
        wide = intercept.reshape(5, 1, -1)
        np.testing.assert_allclose(member.unary, wide + np.einsum("qtc,sc->sqt", values, slopes), rtol=1e-12)
        np.testing.assert_array_equal(member.coupling, draws.coupling)


def test_many_questions_go_by_chunks(monkeypatch: pytest.MonkeyPatch):
    members = random_pool(11, num_draws=2, num_questions=23)
    whole = PooledDistribution(members)
    chosen = np.random.default_rng(12).random((23, 10)) < 0.5
    expected = (whole.marginals, whole.database_probability, whole.cover_probability(chosen))
    monkeypatch.setattr("bayeslink.inference.pool_member._HELD_AT_ONCE", 2**11)
    parts = PooledDistribution(tuple(dataclasses.replace(member) for member in members))
    for found, value in zip(
        (parts.marginals, parts.database_probability, parts.cover_probability(chosen)), expected, strict=True
    ):
        np.testing.assert_allclose(found, value, rtol=1e-12, atol=1e-15)


def test_refusals():
    members = random_pool(0)
    with pytest.raises(ValueError, match="unary has dtype float32"):
        dataclasses.replace(members[0], unary=members[0].unary.astype(np.float32))
    with pytest.raises(ValueError, match="at least one draw and one table"):
        PoolMember(np.zeros((0, 1, 1)), np.zeros((0, 2), dtype=np.int64), np.zeros(0), np.zeros(1))
    with pytest.raises(ValueError, match="score holds NaN or infinity"):
        dataclasses.replace(members[0], score=np.array([0.0, np.nan]))
    with pytest.raises(ValueError, match="give databases with equally many"):
        PooledDistribution((members[0], random_pool(0, num_questions=3)[1]))
    with pytest.raises(ValueError, match="give databases with equally many"):
        PooledDistribution(())
    found = PooledDistribution(members)
    nothing, both = np.zeros((2, 10), dtype=bool), np.zeros((2, 10), dtype=bool)
    both[:, 0] = True
    with pytest.raises(ValueError, match="selection of question 0 touches 0 databases"):
        found.log_probability_of(nothing)
    both[1, 9] = True
    with pytest.raises(ValueError, match="selection of question 1 touches 2 databases"):
        found.log_probability_of(both)
