"""Packing: blocks, buckets and padding change no number, and nothing is lost."""

from dataclasses import replace
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import oracles
import pytest
from worlds import CYCLE, PATH, edge_array, make_evidence, rich_world, simulate

from bayeslink.evidence.channel import Evidence
from bayeslink.inference import packing
from bayeslink.inference.enumeration import StatePlan
from bayeslink.inference.packing import log_partition, pack
from bayeslink.model.autologistic import Support
from bayeslink.model.batch import Batch, LocalParameters, log_likelihood_by_database

INTERCEPT = np.array([-0.5, 0.2, -1.0, 0.4])
COUPLING = np.array([0.6, -0.4, 1.2, 0.3])
SLOPES = np.array([0.9, -0.3])


def random_evidence(seed: int, num_questions: int, num_tables: int, edges: np.ndarray, name: str) -> Evidence:
    rng = np.random.default_rng(seed)
    gold = rng.random((num_questions, num_tables)) < 0.4
    gold[:, 0] = True
    return make_evidence(rng.normal(size=(num_questions, num_tables, 2)), edges, gold, name)


@pytest.fixture(scope="module")
def mixed() -> list[Evidence]:
    """Databases of unlike sizes: a cycle, one lone table, a graph of two parts, one without edges."""
    return [
        random_evidence(0, 5, 4, edge_array(CYCLE), "cycle"),
        random_evidence(1, 3, 1, edge_array([]), "lone"),
        random_evidence(2, 7, 6, edge_array([(0, 1), (1, 2), (0, 2), (3, 4)]), "parts"),
        random_evidence(3, 2, 3, edge_array([]), "edgeless"),
    ]


def likelihood(batch: Batch, support: Support = Support.ALL, size: int = 4) -> np.ndarray:
    slopes = jnp.broadcast_to(jnp.array(SLOPES), (size, 2))
    local = LocalParameters(jnp.array(INTERCEPT[:size]), jnp.zeros(0), slopes, jnp.array(COUPLING[:size, None]))
    function = jax.jit(partial(log_likelihood_by_database, log_partition=log_partition, support=support))
    return np.asarray(function(batch, local))


def expected(world: list[Evidence], non_empty: bool = False) -> list[float]:
    return [
        oracles.log_likelihood(
            item.values.tolist(), item.gold.tolist(), item.edges.tolist(), alpha, list(SLOPES), beta, non_empty
        )
        for item, alpha, beta in zip(world, INTERCEPT.tolist(), COUPLING.tolist(), strict=False)
    ]


@pytest.mark.parametrize("support", list(Support))
@pytest.mark.parametrize("block", [4, 32])
@pytest.mark.parametrize(
    ("merge", "max_listed"),
    [(1.0, 0), (1000.0, 0), (1.6, 10), (1.6, 3)],
    ids=["many buckets", "one bucket", "listed", "some listed"],
)
def test_batch_likelihood_is_the_sum_over_questions(
    mixed, monkeypatch, support: Support, block: int, merge: float, max_listed: int
):
    monkeypatch.setattr(packing, "BLOCK", block)
    monkeypatch.setattr(packing, "MERGE_LIMIT", merge)
    found = likelihood(pack(mixed, max_listed), support)
    # The lone table is certain under the non-empty support: log 1, up to rounding.
    np.testing.assert_allclose(found, expected(mixed, support is Support.NON_EMPTY), rtol=1e-10, atol=1e-14)


def test_merging_is_what_the_limit_says(mixed, monkeypatch):
    monkeypatch.setattr(packing, "MERGE_LIMIT", 1.0)
    many = len(pack(mixed, max_listed=0).buckets)
    monkeypatch.setattr(packing, "MERGE_LIMIT", 1000.0)
    assert len(pack(mixed, max_listed=0).buckets) == 1 < many


def test_small_schemas_are_listed_in_buckets_of_like_size(mixed):
    """Tables 4, 1, 6, 3: up to four share a bucket, padded to its largest; none is listed above the limit."""
    for max_listed, listed in ((0, []), (1, [1]), (3, [3]), (5, [4]), (10, [4, 6])):
        batch = pack(mixed, max_listed)
        found = {bucket.values.shape[2]: bucket for bucket in batch.buckets if isinstance(bucket.plan, StatePlan)}
        assert list(found) == listed
        for tables, bucket in found.items():
            assert bucket.plan.states.shape[1:] == (2**tables, tables)
        inside = {int(d) for bucket in found.values() for d in bucket.database}
        assert inside == {d for d, item in enumerate(mixed) if item.num_tables <= max_listed}
    five = random_evidence(4, 2, 5, edge_array(PATH), "five")
    assert [bucket.values.shape[2] for bucket in pack([five, *mixed]).buckets] == [4, 6]
    assert packing.MAX_LISTED == 10


def test_padding_is_marked(mixed):
    (bucket,) = [bucket for bucket in pack(mixed).buckets if bucket.values.shape[2] == 4]
    for d, is_table, is_edge in zip(bucket.database.tolist(), bucket.is_table, bucket.is_edge, strict=True):
        item = mixed[d]
        assert is_table.tolist() == [1.0] * item.num_tables + [0.0] * (4 - item.num_tables)
        assert is_edge.sum() == len(item.edges)


def test_contexts_and_kinds_of_edges_are_those_of_the_evidence():
    world = rich_world()
    batch = pack(world, max_listed=4)
    assert (batch.num_channels, batch.num_contexts, batch.num_edge_types) == (2, 3, 3)
    np.testing.assert_array_equal(batch.covariates, [item.covariates for item in world])
    for bucket in batch.buckets:
        for b, d in enumerate(bucket.database.tolist()):
            item, there = world[d], np.asarray(bucket.weight[b]) > 0
            chosen = np.asarray(bucket.question[b])[there]
            np.testing.assert_array_equal(bucket.context[b][there], item.values[chosen, 0, 2:])
            np.testing.assert_array_equal(bucket.values[b][there][:, : item.num_tables], item.values[chosen, :, :2])
            np.testing.assert_array_equal(bucket.edge_type[b][: len(item.edges)], item.edge_types)


@pytest.mark.parametrize("max_listed", [0, 10])
def test_every_question_is_there_once(mixed, monkeypatch, max_listed: int):
    monkeypatch.setattr(packing, "BLOCK", 3)
    batch = pack(mixed, max_listed)
    assert (batch.num_questions, batch.num_databases, batch.num_channels) == (17, 4, 2)
    found = []
    for bucket in batch.buckets:
        for database, questions, weight in zip(bucket.database, bucket.question, bucket.weight, strict=True):
            found += [
                (int(database), int(q)) for q, w in zip(questions.tolist(), weight.tolist(), strict=True) if w > 0
            ]
            assert all((q == -1) == (w == 0) for q, w in zip(questions.tolist(), weight.tolist(), strict=True))
    assert sorted(found) == [(d, q) for d, item in enumerate(mixed) for q in range(item.num_questions)]


def test_a_database_without_questions_counts_and_adds_nothing(mixed):
    world = [mixed[0], mixed[2].select_questions([]), mixed[3]]
    batch = pack(world)
    assert batch.num_databases == 3
    np.testing.assert_allclose(likelihood(batch, size=3), expected(world), rtol=1e-10)
    assert likelihood(batch, size=3)[1] == 0


def test_order_of_questions_and_direction_of_edges_do_not_matter(mixed):
    item = mixed[2]
    turned = make_evidence(item.values[::-1], item.edges[::-1, ::-1].copy(), item.gold[::-1], "parts")
    found, other = likelihood(pack([item]), size=1), likelihood(pack([turned]), size=1)
    np.testing.assert_allclose(found, other, rtol=1e-10)


def test_refusals():
    world = simulate(0, 2, 2, shapes=(PATH,))
    with pytest.raises(ValueError, match=r"evidences is empty: a fit needs at least one database"):
        pack([])
    with pytest.raises(ValueError, match=r"has channels \('c0',\), not \('c0', 'c1'\)"):
        pack([world[0], world[1].select_channels(["c0"])])
    unknown = make_evidence(world[0].values, world[0].edges, None)
    with pytest.raises(ValueError, match=r"has no gold selections: a fit needs them"):
        pack([unknown])
    rich = rich_world()
    blind = [replace(item, num_contexts=0) for item in rich[1:]]
    with pytest.raises(ValueError, match=r"rich1'\) has 0 covariates, not 3"):
        pack([rich[0], *blind])
