"""Evidence, its standardisation, its graph's covariates, and the cache of scores."""

import json
import logging
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from conftest import QUESTIONS, harbour
from hypothesis import given
from hypothesis import strategies as st
from jaxtyping import TypeCheckError

from bayeslink.evidence import cache as cache_module
from bayeslink.evidence.cache import GraphMemo, graph_digest, replace_file
from bayeslink.evidence.channel import (
    COVARIATES,
    Channel,
    Evidence,
    Standardisation,
    cache_home,
    compute_evidence,
    covariates,
    edge_types,
)
from bayeslink.evidence.lexical import BM25, TokenOverlap
from bayeslink.schema.graph import Column, Origin, RawKey, SchemaGraph, Table, build_graph


class Counting:
    """A channel that gives one value everywhere and counts its calls."""

    def __init__(self, value: float = 1.0, identity: str = "counting/1") -> None:
        self.value, self.identity, self.name, self.calls = value, identity, "counting", 0

    def score(self, questions: Sequence[str], graph: SchemaGraph) -> np.ndarray:
        self.calls += 1
        return np.full((len(questions), graph.num_tables), self.value)


def evidence(values, db_id: str = "a", channels: tuple[str, ...] = ("one", "two"), **changes) -> Evidence:
    """Evidence with these values on a graph of one edge."""
    values = np.asarray(values, dtype=np.float64)
    edges = np.array([[0, 1]])
    fields = {
        "edges": edges,
        "edge_types": np.zeros(1, dtype=np.int64),
        "covariates": covariates(edges, values.shape[1]),
        "gold": np.ones(values.shape[:2], dtype=bool),
        "group": np.arange(len(values)),
    } | changes
    return Evidence("test", db_id, channels, values, **fields)


def random_evidence(seed: int, questions: int = 4, tables: int = 3, db_id: str = "a") -> Evidence:
    return evidence(np.random.default_rng(seed).normal(2, 3, (questions, tables, 2)), db_id)


def test_compute_evidence(graph: SchemaGraph):
    channels = (TokenOverlap(), BM25())
    assert all(isinstance(channel, Channel) for channel in channels)
    found = compute_evidence(graph, QUESTIONS, channels)
    assert found.key == ("live", "harbour")
    assert (found.num_questions, found.num_tables) == (5, 5)
    assert found.channels == ("token_overlap", "bm25")
    assert found.gold is None
    assert found.group is None
    for place, channel in enumerate(channels):
        np.testing.assert_array_equal(found.values[..., place], channel.score(QUESTIONS, graph))
    np.testing.assert_array_equal(found.edges, graph.edge_array)
    assert compute_evidence(graph, QUESTIONS, ()).values.shape == (5, 5, 0)
    assert compute_evidence(graph, [], channels).values.shape == (0, 5, 2)


def test_compute_evidence_refuses_a_value_that_is_not_finite(graph: SchemaGraph):
    with pytest.raises(ValueError, match="NaN or infinity"):
        compute_evidence(graph, QUESTIONS, (Counting(np.nan),))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"edges": np.array([[0, 3]])}, "outside 0..2"),
        ({"edges": np.array([[-1, 1]])}, "outside 0..2"),
        ({"edges": np.array([[1, 1]])}, "to itself"),
        ({"covariates": np.zeros(2)}, "covariates"),
        ({"covariates": np.full(3, np.inf)}, "covariates"),
        ({"channels": ("one",)}, "for channels"),
        ({"channels": ("one", "one")}, "repeat"),
    ],
)
def test_evidence_refuses(changes, message):
    with pytest.raises(ValueError, match=message):
        evidence(np.zeros((4, 3, 2)), **changes)


@pytest.mark.parametrize(
    "changes",
    [
        {"edge_types": np.zeros(2, dtype=np.int64)},
        {"gold": np.ones((4, 2), dtype=bool)},
        {"group": np.arange(3)},
    ],
)
def test_evidence_refuses_shapes_that_disagree(changes):
    # With run-time checking of shapes on, the type refuses before the value check.
    with pytest.raises((ValueError, TypeCheckError)):
        evidence(np.zeros((4, 3, 2)), **changes)


def test_selection_of_channels_and_questions():
    whole = random_evidence(1)
    turned = whole.select_channels(["two", "one"])
    np.testing.assert_array_equal(turned.values, whole.values[..., ::-1])
    assert turned.channels == ("two", "one")
    with pytest.raises(ValueError, match="'three'"):
        whole.select_channels(["three"])
    for indices in (np.array([2, 0]), [2, 0]):
        some = whole.select_questions(indices)
        np.testing.assert_array_equal(some.values, whole.values[[2, 0]])
        np.testing.assert_array_equal(some.group, [2, 0])
    marked = whole.select_questions(np.array([True, False, False, True]))
    np.testing.assert_array_equal(marked.group, [0, 3])
    assert whole.select_questions([]).num_questions == 0


def test_standardisation_is_over_all_training_pairs_only():
    train = [random_evidence(1, 4, 3), random_evidence(2, 2, 5, "b")]
    test = random_evidence(3)
    fitted = Standardisation.fit(train)
    pairs = [list(table) for found in train for question in found.values for table in question]
    for channel in range(2):
        column = [pair[channel] for pair in pairs]
        mean = sum(column) / len(column)
        scale = (sum((value - mean) ** 2 for value in column) / len(column)) ** 0.5
        assert fitted.mean[channel] == pytest.approx(mean, rel=1e-10)
        assert fitted.scale[channel] == pytest.approx(scale, rel=1e-10)
    np.testing.assert_allclose(fitted.apply(test).values, (test.values - fitted.mean) / fitted.scale, rtol=1e-12)
    whole = np.concatenate([fitted.apply(found).values.reshape(-1, 2) for found in train])
    np.testing.assert_allclose(whole.mean(axis=0), 0, atol=1e-12)
    np.testing.assert_allclose(whole.std(axis=0), 1, rtol=1e-10)


@given(st.floats(-1e6, 1e6), st.integers(1, 6))
def test_a_constant_channel_is_zero(value: float, questions: int):
    constant = evidence(np.full((questions, 3, 2), value))
    fitted = Standardisation.fit([constant])
    np.testing.assert_array_equal(fitted.scale, 1.0)
    np.testing.assert_array_equal(fitted.apply(constant).values, 0.0)


def test_standardisation_refuses():
    with pytest.raises(ValueError, match="no question"):
        Standardisation.fit([])
    with pytest.raises(ValueError, match="no question"):
        Standardisation.fit([evidence(np.zeros((0, 3, 2)))])
    other = random_evidence(1).select_channels(["two", "one"])
    with pytest.raises(ValueError, match="same channels in the same order"):
        Standardisation.fit([random_evidence(1), other])
    with pytest.raises(ValueError, match="same channels in the same order"):
        Standardisation.fit([random_evidence(1)]).apply(other)


def test_covariates():
    assert COVARIATES == ("log_num_tables", "mean_degree", "isolated_share")
    np.testing.assert_allclose(covariates(np.array([[0, 1], [1, 2]]), 4), [np.log(4), 1.0, 0.25], rtol=1e-12)
    np.testing.assert_allclose(covariates(np.zeros((0, 2), dtype=np.int64), 1), [0, 0, 1])
    with pytest.raises(ValueError, match="num_tables=0"):
        covariates(np.zeros((0, 2), dtype=np.int64), 0)


def test_edge_types(graph: SchemaGraph):
    # visits references ships and ports, so its edges are junction edges.
    kinds = {(e.first, e.second): kind for e, kind in zip(graph.edges, edge_types(graph), strict=True)}
    assert kinds == {(0, 1): 0, (0, 2): 1, (1, 2): 1, (0, 3): 0}
    tables = [Table(name, (Column("x"), Column("y"))) for name in "abc"]
    keys = [
        RawKey("a", ("x",), "b", ("x",)),
        RawKey("a", ("y",), "a", ("x",)),
        RawKey("a", ("x",), "c", ("x",), origin=Origin.INFERRED),
    ]
    assert edge_types(build_graph("inferred", tables, keys)).tolist() == [0, 2]
    assert edge_types(build_graph("none", tables, ())).shape == (0,)
    # What a user states counts as declared, and a junction may stand at either end of an edge.
    stated = [RawKey("c", ("x",), name, ("x",), origin=Origin.USER) for name in "ab"]
    assert edge_types(build_graph("stated", tables, stated)).tolist() == [1, 1]
    assert edge_types(build_graph("stated", tables, stated[:1])).tolist() == [0]


def test_cache_hits_and_misses(graph: SchemaGraph, tmp_path: Path):
    channel = Counting()
    first = compute_evidence(graph, QUESTIONS, (channel,), cache=tmp_path)
    second = compute_evidence(harbour(), QUESTIONS, (channel,), cache=tmp_path)
    assert channel.calls == 1
    np.testing.assert_array_equal(first.values, second.values)
    compute_evidence(graph, QUESTIONS[:2], (channel,), cache=tmp_path)
    compute_evidence(harbour((1, 0, 2, 3, 4)), QUESTIONS, (channel,), cache=tmp_path)
    channel.identity = "counting/2"
    compute_evidence(graph, QUESTIONS, (channel,), cache=tmp_path)
    assert channel.calls == 4
    assert len(list((tmp_path / "channels").iterdir())) == 4


@pytest.mark.parametrize("damage", ["truncated", "pickled", "reshaped", "renamed", "empty"])
def test_a_corrupt_entry_is_computed_again(graph: SchemaGraph, tmp_path: Path, damage: str, caplog):
    channel = Counting()
    compute_evidence(graph, QUESTIONS, (channel,), cache=tmp_path)
    (path,) = (tmp_path / "channels").iterdir()
    if damage == "truncated":
        path.write_bytes(path.read_bytes()[:-30])
    elif damage == "empty":
        path.write_bytes(b"")
    else:
        arrays = {
            "pickled": {"scores": np.array([{}], dtype=object)},
            "reshaped": {"scores": np.zeros((1, 1))},
            "renamed": {"other": np.zeros((5, 5))},
        }
        np.savez(path, **arrays[damage])
    with caplog.at_level(logging.WARNING):
        found = compute_evidence(graph, QUESTIONS, (channel,), cache=tmp_path)
    assert channel.calls == 2
    assert (found.values == 1).all()
    assert "corrupt" in caplog.text
    caplog.clear()
    compute_evidence(graph, QUESTIONS, (channel,), cache=tmp_path)
    assert channel.calls == 2
    assert not caplog.text


def test_a_failed_write_leaves_the_old_file(tmp_path: Path):
    path = tmp_path / "kept.txt"
    replace_file(path, lambda file: file.write(b"old"))

    def fail(file):
        file.write(b"new")
        raise OSError("disk full")

    with pytest.raises(OSError, match="disk full"):
        replace_file(path, fail)
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


def test_the_digest_sees_all_that_a_channel_can_read():
    def digest(**changes):
        column = Column("c", **{k: v for k, v in changes.items() if k in ("natural_name", "description")})
        return graph_digest(build_graph("g", [Table(changes.get("table", "t"), (column,))], ()))

    texts = [{}, {"table": "u"}, {"natural_name": "x"}, {"description": "x"}]
    assert len({digest(**changes) for changes in texts}) == 4
    assert graph_digest(harbour()) == graph_digest(harbour(name="other"))
    tables = [Table(name, (Column("x"), Column("y"))) for name in "ab"]
    keyed = [build_graph("g", tables, [RawKey("a", (column,), "b", ("x",))]) for column in "xy"]
    assert graph_digest(keyed[0]) != graph_digest(keyed[1])


def test_graph_memo_builds_once_per_graph(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(cache_module, "MAX_GRAPHS", 2)
    built = []
    memo = GraphMemo(lambda graph: built.append(graph) or len(built))
    first, second, third = harbour(), harbour(), harbour()
    assert [memo(first), memo(first), memo(second), memo(first)] == [1, 1, 2, 1]
    memo(third)
    assert memo(third) == 3
    assert memo(first) == 4


def test_cache_home(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    monkeypatch.setenv("BAYESLINK_CACHE", str(tmp_path))
    assert cache_home() == tmp_path
    monkeypatch.delenv("BAYESLINK_CACHE")
    assert cache_home().parts[-2:] == ("data", "cache")
    monkeypatch.setattr(cache_module, "checkout", lambda: None)
    assert "bayeslink" in json.dumps(str(cache_home()))
