"""Packing: blocks, buckets and padding change no number, and nothing is lost."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import oracles
import pytest
from worlds import CYCLE, PATH, edge_array, make_evidence, simulate

from bayeslink.evidence.channel import Evidence
from bayeslink.inference import packing
from bayeslink.inference.elimination import log_partition
from bayeslink.inference.packing import pack
from bayeslink.model.autologistic import Support
from bayeslink.model.batch import Batch, log_likelihood_by_database

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
    arguments = jnp.array(INTERCEPT[:size]), jnp.array(SLOPES), jnp.array(COUPLING[:size])
    function = jax.jit(partial(log_likelihood_by_database, log_partition=log_partition, support=support))
    return np.asarray(function(batch, *arguments))


def expected(world: list[Evidence], non_empty: bool = False) -> list[float]:
    return [
        oracles.log_likelihood(
            item.values.tolist(), item.gold.tolist(), item.edges.tolist(), alpha, list(SLOPES), beta, non_empty
        )
        for item, alpha, beta in zip(world, INTERCEPT.tolist(), COUPLING.tolist(), strict=False)
    ]


@pytest.mark.parametrize("support", list(Support))
@pytest.mark.parametrize("block", [4, 32])
@pytest.mark.parametrize("merge", [1.0, 1000.0], ids=["many buckets", "one bucket"])
def test_batch_likelihood_is_the_sum_over_questions(mixed, monkeypatch, support: Support, block: int, merge: float):
    monkeypatch.setattr(packing, "BLOCK", block)
    monkeypatch.setattr(packing, "MERGE_LIMIT", merge)
    found = likelihood(pack(mixed), support)
    # The lone table is certain under the non-empty support: log 1, up to rounding.
    np.testing.assert_allclose(found, expected(mixed, support is Support.NON_EMPTY), rtol=1e-10, atol=1e-14)


def test_merging_is_what_the_limit_says(mixed, monkeypatch):
    monkeypatch.setattr(packing, "MERGE_LIMIT", 1.0)
    many = len(pack(mixed).buckets)
    monkeypatch.setattr(packing, "MERGE_LIMIT", 1000.0)
    assert len(pack(mixed).buckets) == 1 < many


def test_every_question_is_there_once(mixed, monkeypatch):
    monkeypatch.setattr(packing, "BLOCK", 3)
    batch = pack(mixed)
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
