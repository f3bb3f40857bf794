"""Stored evidence: round trips, and what the committed arrays hold."""

import hashlib
import json
import re
import zipfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from bayeslink.evaluation.ranking import average_precision
from bayeslink.evidence import store
from bayeslink.evidence.benchmark import corpus_evidence, question_text
from bayeslink.evidence.cache import checkout
from bayeslink.evidence.channel import Evidence, covariates
from bayeslink.evidence.embedding import EmbeddingCosine, HashedCosine
from bayeslink.evidence.encoder import ENCODER_FILE
from bayeslink.evidence.kinds import TREES, TREES_HOME
from bayeslink.evidence.lexical import BM25, TokenOverlap
from bayeslink.evidence.store import (
    ROBUSTNESS_SETS,
    SETS,
    evidence_home,
    load_evidence,
    load_fingerprints,
    load_twins,
    save_arrays,
    save_evidence,
    save_fingerprints,
    save_twins,
    stored_files,
)
from bayeslink.evidence.trees import Trees
from bayeslink.inference.posterior import load_posteriors, shipped_path
from bayeslink.model.hierarchy import Variant
from bayeslink.schema.corpus import Corpus, Question, read_corpus
from bayeslink.schema.split import are_twins

CHANNELS = ("token_overlap", "bm25", "embedding_cosine", "hashed_cosine")


def random_evidence(db_id: str, questions: int, tables: int, num_edges: int) -> Evidence:
    rng = np.random.default_rng([questions, tables])
    pairs = np.array([(i, j) for i in range(tables) for j in range(i + 1, tables)], dtype=np.int64).reshape(-1, 2)
    edges = pairs[:num_edges]
    gold = rng.random((questions, tables)) < 0.5
    gold[:, 0] = True
    return Evidence(
        "spider",
        db_id,
        ("one", "two", "three"),
        rng.normal(size=(questions, tables, 3)).astype(np.float32).astype(np.float64),
        edges,
        rng.integers(0, 3, num_edges),
        covariates(edges, tables),
        gold,
        rng.integers(0, 5, questions),
    )


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("BAYESLINK_EVIDENCE", str(tmp_path))
    return tmp_path


def assert_same(found: Evidence, expected: Evidence) -> None:
    assert (found.key, found.channels) == (expected.key, expected.channels)
    for name in ("values", "edges", "edge_types", "covariates", "gold", "group"):
        np.testing.assert_array_equal(getattr(found, name), getattr(expected, name))
        assert getattr(found, name).dtype == getattr(expected, name).dtype


def test_evidence_round_trip(home: Path):
    kept = [random_evidence("a", 4, 3, 2), random_evidence("b", 1, 1, 0), random_evidence("c", 2, 6, 9)]
    save_evidence(home / "spider-dev.npz", kept)
    for found, expected in zip(load_evidence("spider-dev"), kept, strict=True):
        assert_same(found, expected)
    chosen = load_evidence("spider-dev", channels=["three", "one"])
    assert_same(chosen[2], kept[2].select_channels(["three", "one"]))


def test_same_evidence_same_bytes(home: Path, monkeypatch: pytest.MonkeyPatch):
    save_evidence(home / "first.npz", [random_evidence("a", 4, 3, 2)])
    monkeypatch.setattr("time.time", lambda: 2e9)
    save_evidence(home / "second.npz", [random_evidence("a", 4, 3, 2)])
    assert (home / "first.npz").read_bytes() == (home / "second.npz").read_bytes()


def test_saving_refuses(home: Path):
    kept = random_evidence("a", 4, 3, 2)
    with pytest.raises(ValueError, match="are empty"):
        save_evidence(home / "x.npz", [])
    with pytest.raises(ValueError, match="differ in data set or channels"):
        save_evidence(home / "x.npz", [kept, kept.select_channels(["one"])])
    bare = Evidence("spider", "b", kept.channels, kept.values, kept.edges, kept.edge_types, kept.covariates)
    with pytest.raises(ValueError, match="no gold or no groups"):
        save_evidence(home / "x.npz", [bare])
    assert not list(home.iterdir())
    with pytest.raises(ValueError, match="Object arrays"):
        save_arrays(home / "x.npz", {"pickled": np.array([{}], dtype=object)})


def test_loading_refuses(home: Path, monkeypatch: pytest.MonkeyPatch):
    with pytest.raises(ValueError, match="use one of spider-train"):
        load_evidence("spider")
    with pytest.raises(ValueError, match="cannot be read"):
        load_evidence("spider-dev")
    (home / "spider-dev.npz").write_bytes(b"PK broken")
    with pytest.raises(ValueError, match="cannot be read"):
        load_evidence("spider-dev")
    (home / "twins.json").write_text("{")
    with pytest.raises(ValueError, match="cannot be read"):
        load_twins()
    monkeypatch.setenv("BAYESLINK_EVIDENCE", str(home / "absent"))
    with pytest.raises(ValueError, match="set BAYESLINK_EVIDENCE"):
        evidence_home()
    monkeypatch.delenv("BAYESLINK_EVIDENCE")
    monkeypatch.setattr(store, "checkout", lambda: None)
    with pytest.raises(ValueError, match="set BAYESLINK_EVIDENCE"):
        evidence_home()


def test_twins_and_fingerprints_round_trip(home: Path):
    twins = {("x", "b"): (("y", "b"),), ("y", "b"): (("x", "b"),), ("x", "a"): ()}
    save_twins(home / "twins.json", twins)
    assert load_twins() == twins
    prints = {("x", "b"): np.array([1, 2**63 + 5], dtype=np.uint64), ("x", "a"): np.zeros(0, dtype=np.uint64)}
    save_fingerprints(home / "fingerprints.npz", prints)
    found = load_fingerprints()
    assert list(found) == [("x", "a"), ("x", "b")]
    for key, expected in prints.items():
        np.testing.assert_array_equal(found[key], expected)
        assert found[key].dtype == np.uint64


def test_corpus_evidence_leaves_unresolved_questions_out(graph):
    queries = {
        "1": "SELECT * FROM ships",
        "2": "SELECT nonsense FROM nowhere",
        "3": "SELECT * FROM ports JOIN visits ON visits.portID = ports.portID",
        "4": "select * from SHIPS",
    }
    questions = [Question(i, "harbour", "ships?", "ports!", query) for i, query in queries.items()]
    corpus = Corpus("test", {"harbour": graph}, (*questions, Question("5", "harbour", "no query")))
    (found,), resolution = corpus_evidence(corpus, [TokenOverlap()])
    assert found.key == ("test", "harbour")
    assert [question_id for question_id, _ in resolution.failures] == ["2"]
    assert found.gold is not None
    assert found.group is not None
    assert [set(np.flatnonzero(row)) for row in found.gold] == [{0}, {1, 2}, {0}]
    assert found.group[0] == found.group[2] != found.group[1]
    np.testing.assert_array_equal(found.values[:, :, 0], TokenOverlap().score(["ships?"] * 3, graph))
    (longer,), _ = corpus_evidence(corpus, [TokenOverlap()], dataset="other", with_evidence=True)
    assert longer.dataset == "other"
    np.testing.assert_array_equal(longer.values[:, :, 0], TokenOverlap().score(["ships? ports!"] * 3, graph))
    assert question_text(Question("6", "harbour", "ships?", ""), True) == "ships?"


@pytest.fixture(scope="session")
def committed() -> Path:
    root = checkout()
    assert root is not None
    return root / "data" / "evidence"


@pytest.fixture
def stored(committed: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("BAYESLINK_EVIDENCE", str(committed))
    return committed


def test_committed_files_are_those_of_the_manifest(committed: Path):
    manifest = json.loads((committed / "manifest.json").read_text())
    assert {path.name for path in committed.iterdir() if path.is_file()} == {*manifest["files"], "manifest.json"}
    assert set(manifest["files"]) == {*(f"{name}.npz" for name in SETS), "fingerprints.npz", "twins.json"}
    for name, digest in manifest["files"].items():
        content = (committed / name).read_bytes()
        assert hashlib.sha256(content).hexdigest() == digest
        assert len(content) < 4_000_000
    channels = (TokenOverlap(), BM25(), EmbeddingCosine(), HashedCosine())
    assert manifest["channels"] == {channel.name: channel.identity for channel in channels}


def test_committed_arrays_hold_no_text_but_keys(committed: Path):
    texts = {"dataset", "datasets", "channels", "db_ids"}
    for path in committed.glob("*.npz"):
        with zipfile.ZipFile(path) as archive:
            assert not archive.comment
            assert all(re.fullmatch(r"[a-z_]+\.npy", entry.filename) for entry in archive.infolist())
        with path.open("rb") as file, np.load(file, allow_pickle=False) as archive:
            for name in archive.files:
                array = archive[name]
                assert array.dtype.kind == "U" if name in texts else array.dtype.kind in "biuf", name
                if name in texts:
                    assert all(re.fullmatch(r"[A-Za-z0-9_-]{1,40}", str(key)) for key in array.ravel())
    twins = json.loads((committed / "twins.json").read_text())
    keys = {(dataset, db_id) for dataset, databases in twins.items() for db_id in databases}
    assert all(tuple(key) in keys for databases in twins.values() for found in databases.values() for key in found)
    assert all(re.fullmatch(r"[A-Za-z0-9_-]{1,40}", part) for key in keys for part in key)


@pytest.mark.parametrize("name", SETS)
def test_committed_sets_load(stored: Path, name: str):
    manifest = json.loads((stored / "manifest.json").read_text())["sets"][name]
    evidences = load_evidence(name)
    assert len(evidences) == manifest["n_databases"]
    assert sum(evidence.num_questions for evidence in evidences) == manifest["n_questions"]
    assert sum(evidence.values[..., 0].size for evidence in evidences) == manifest["n_pairs"]
    prints, twins = load_fingerprints(), load_twins()
    dataset = {"spider": "spider", "bird-dev": "bird", "bird-train": "bird-train"}
    for evidence in evidences:
        assert evidence.dataset == next(d for prefix, d in dataset.items() if name.startswith(prefix))
        assert evidence.channels == CHANNELS
        assert evidence.values.dtype == np.float64
        assert evidence.key in prints
        assert evidence.key in twins


def test_evidence_sets_ask_the_same_questions(stored: Path):
    for name in ("bird-dev", "bird-train"):
        for alone, longer in zip(load_evidence(name), load_evidence(f"{name}-evidence"), strict=True):
            assert alone.key == longer.key
            np.testing.assert_array_equal(alone.gold, longer.gold)
            np.testing.assert_array_equal(alone.edges, longer.edges)
            assert (alone.values != longer.values).any()


@pytest.mark.usefixtures("stored")
def test_committed_twins_are_those_of_the_fingerprints():
    prints, twins = load_fingerprints(), load_twins()
    assert set(prints) == set(twins)
    assert ("spider", "formula_1") in twins["bird", "formula_1"]
    assert ("spider", "soccer_1") in twins["bird", "european_football_2"]
    assert ("bird-train", "world") in twins["spider", "world_1"]
    for key in (("bird", "formula_1"), ("spider", "world_1"), ("bird", "toxicology")):
        found = {other for other in prints if other != key and are_twins(prints[key], prints[other])}
        assert found == set(twins[key])


@pytest.mark.usefixtures("embeddings", "stored")
@pytest.mark.parametrize(
    ("name", "folder", "split"), [("spider-dev", "spider", "dev"), ("bird-dev-evidence", "bird", None)]
)
def test_rebuilding_gives_the_committed_arrays(benchmark: Path, name: str, folder: str, split: str | None):
    expected = min(load_evidence(name), key=lambda evidence: (evidence.num_questions, evidence.db_id))
    corpus = read_corpus(benchmark / folder, split=split).select(db_ids=[expected.db_id])
    channels = (TokenOverlap(), BM25(), EmbeddingCosine(), HashedCosine())
    (found,), _ = corpus_evidence(corpus, channels, with_evidence=name.endswith("-evidence"))
    assert found.key == expected.key
    # Stored in single precision; BM25 scores reach about 10, so one unit in the last place is 1e-6.
    np.testing.assert_allclose(found.values, expected.values, rtol=1e-6, atol=1e-6)
    for field in ("edges", "edge_types", "covariates", "gold", "group"):
        np.testing.assert_array_equal(getattr(found, field), getattr(expected, field))


def test_channels_come_from_the_families_that_hold_them():
    mixed = load_evidence("spider-dev", ("boosted", "token_overlap", "bm25_columns"))
    parts = [load_evidence("spider-dev", (name,)) for name in ("boosted", "token_overlap", "bm25_columns")]
    for found, *single in zip(mixed, *parts, strict=True):
        assert found.channels == ("boosted", "token_overlap", "bm25_columns")
        np.testing.assert_array_equal(found.values, np.concatenate([item.values for item in single], axis=2))
        assert found.key == single[0].key
    names = [path.relative_to(evidence_home()).as_posix() for path in stored_files("spider-dev", ("bm25", "boosted"))]
    assert names == ["spider-dev.npz", "boosted/spider-dev.npz"]
    with pytest.raises(ValueError, match=r"channels \['telepathy'\] are not among those of the stored set spider-dev"):
        load_evidence("spider-dev", ("telepathy",))
    with pytest.raises(ValueError, match="name='spider-x': use one of"):
        load_evidence("spider-x", ("bm25",))


@pytest.mark.parametrize("name", ROBUSTNESS_SETS)
def test_robustness_sets_ask_about_the_databases_of_spider_dev(name):
    known = {item.db_id: item for item in load_evidence("spider-dev", ("boosted",))}
    found = load_evidence(name, ("boosted", "name_any"))
    assert {item.key for item in found} <= {item.key for item in known.values()}
    if name == "spider-syn-dev":
        for item in found:
            np.testing.assert_array_equal(item.gold, known[item.db_id].gold)
    with pytest.raises(ValueError, match="token_overlap"):
        load_evidence(name, ("token_overlap",))


def barred_databases() -> set[str]:
    """The databases of the dev sets and their twins, which no evidence is trained on."""
    held = {item.key for name in ("spider-dev", "bird-dev") for item in load_evidence(name)}
    twins = load_twins()
    return {"/".join(key) for key in held | {twin for key in held for twin in twins[key]}}


@pytest.mark.parametrize("family", ["rich", "boosted", "encoder", "learned"])
def test_families_are_what_their_manifests_say(family):
    folder = evidence_home() / family
    manifest = json.loads((folder / "manifest.json").read_text())
    assert set(manifest["files"]) == {f"{name}.npz" for name in (*SETS, *ROBUSTNESS_SETS)}
    for name, digest in manifest["files"].items():
        assert hashlib.sha256((folder / name).read_bytes()).hexdigest() == digest
    if family == "encoder":
        assert manifest["encoder"] == hashlib.sha256(ENCODER_FILE.read_bytes()).hexdigest()
        trained = load_posteriors(shipped_path("learned"))[Variant.INDEPENDENT].databases
        folds, twins = manifest["folds"], load_twins()
        assert {"/".join(key) for key in trained} <= set(folds)
        assert not barred_databases() & set(folds)
        assert sorted(set(folds.values())) == [0, 1]
        joined = {"/".join(key): ["/".join(twin) for twin in found] for key, found in twins.items()}
        assert all(folds[key] == folds.get(twin, folds[key]) for key in folds for twin in joined[key])
    if family in ("boosted", "learned"):
        barred = barred_databases()
        assert not barred & set(manifest["training"])
        read = {}
        for part in ("rich", "encoder")[: 1 + (family == "learned")]:
            files = json.loads((evidence_home() / part / "manifest.json").read_text())["files"]
            read |= files if family == "boosted" else {f"{part}/{name}": digest for name, digest in files.items()}
        assert manifest["inputs"] == read
        for kind, digest in manifest["trees"].items():
            assert hashlib.sha256((TREES_HOME / f"{kind}.json.gz").read_bytes()).hexdigest() == digest


@pytest.mark.parametrize("name", ["spider-dev", "bird-dev-evidence", "spider-realistic"])
def test_stored_scores_are_those_of_the_trees(name):
    for kind in TREES:
        trees = Trees.load(TREES_HOME / f"{kind}.json.gz")
        base, stored = load_evidence(name, trees.channels), load_evidence(name, (kind,))
        for raw, found in zip(base[:3], stored[:3], strict=True):
            np.testing.assert_allclose(trees.score(raw), found.values[:, :, 0], atol=2e-6)


@pytest.mark.parametrize("kind", ["boosted", "learned"])
def test_training_databases_are_scored_by_trees_that_have_not_seen_them(kind):
    """Their own trees would rank them better than these do."""
    trees = Trees.load(TREES_HOME / f"{kind}.json.gz")
    base, stored = load_evidence("bird-train", trees.channels)[:20], load_evidence("bird-train", (kind,))[:20]
    seen = np.mean([average_precision(trees.score(item), item.gold).mean() for item in base])
    cross = np.mean([average_precision(item.values[:, :, 0], item.gold).mean() for item in stored])
    assert cross < seen - 0.005


@pytest.mark.parametrize("name", SETS)
def test_families_hold_the_same_questions_in_the_same_order(name):
    """`load_evidence` puts the channels of several families side by side, question by question."""
    parts = [
        load_evidence(name, (channel,)) for channel in ("bm25", "name_any", "boosted", "encoder_columns", "learned")
    ]
    for first, *others in zip(*parts, strict=True):
        for other in others:
            assert other.key == first.key
            np.testing.assert_array_equal(other.gold, first.gold)
            np.testing.assert_array_equal(other.group, first.group)
            np.testing.assert_array_equal(other.edges, first.edges)


def test_families_of_other_questions_are_not_joined(home: Path):
    evidences = [random_evidence("a", 3, 4, 2)]
    other = replace(evidences[0], channels=("four", "five", "six"), gold=~evidences[0].gold)
    save_evidence(home / "spider-dev.npz", evidences)
    save_evidence(home / "rich" / "spider-dev.npz", [other])
    assert load_evidence("spider-dev", ("four", "five"))[0].channels == ("four", "five")
    with pytest.raises(ValueError, match=r"families of .* hold other questions"):
        load_evidence("spider-dev", ("one", "four"))


def test_a_peers_scores_are_stored_for_every_set():
    folder = evidence_home() / "schemagate"
    runs = json.loads((folder / "manifest.json").read_text())["runs"]
    assert tuple(runs) == SETS
    for name, entry in runs.items():
        assert hashlib.sha256((folder / f"{name}.npz").read_bytes()).hexdigest() == entry["file"]
        assert entry["settings"]["descriptions"] is name.startswith("bird")
        found = load_evidence(name, ("schemagate",))
        assert [item.key for item in found] == [item.key for item in load_evidence(name)]
        assert all((item.values >= 0).all() for item in found)
    dev = load_evidence("spider-dev", ("schemagate",))
    ranked = np.concatenate([average_precision(item.values[:, :, 0], item.gold) for item in dev])
    # A peer that ranks by its score: far above chance, below our trees.
    assert 0.9 < ranked.mean() < 0.97
