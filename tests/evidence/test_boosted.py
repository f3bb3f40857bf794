"""Boosted trees: support of neighbours by hand, cross-fitting, files, and the channel that a linker uses."""

import gzip
import json
from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest
from conftest import QUESTIONS, harbour

from bayeslink.evidence.boosted import BoostedChannel, cross_fitted, fit_first
from bayeslink.evidence.channel import Evidence, compute_evidence, covariates
from bayeslink.evidence.embedding import MissingExtraError
from bayeslink.evidence.fields import NameMatch
from bayeslink.evidence.lexical import BM25
from bayeslink.evidence.trees import (
    NO_NEIGHBOUR,
    NO_VALUE,
    Trees,
    TreeSettings,
    neighbour_support,
    tree_features,
    with_support,
)

SETTINGS = TreeSettings(rounds=30, least=5, folds=3, threads=1)


def world(seed: int, num_databases: int = 9, questions: int = 40) -> list[Evidence]:
    """Paths of four tables whose ends follow the first channel, and whose inner tables are needed between needed ones.

    The first channel says nothing of inner tables, the second is noise.
    """
    rng = np.random.default_rng(seed)
    edges = np.array([[0, 1], [1, 2], [2, 3], [0, 3]])[:3]
    found = []
    for number in range(num_databases):
        signal = rng.normal(size=(questions, 4))
        gold = signal > 0
        gold[:, 1] = gold[:, 0] & gold[:, 2]
        signal[:, 1] = rng.normal(size=questions)
        values = np.stack([signal, rng.normal(size=signal.shape)], axis=2)
        types = np.zeros(len(edges), dtype=np.int64)
        group = np.arange(questions)
        key = ("made", f"db{number}")
        found.append(Evidence(*key, ("signal", "noise"), values, edges, types, covariates(edges, 4), gold, group))
    return found


def folds(evidences: list[Evidence]) -> dict[tuple[str, str], int]:
    return {item.key: place % SETTINGS.folds for place, item in enumerate(evidences)}


def by_hand(scores: list[float], edges: list[tuple[int, int]], table: int) -> list[float]:
    """first, second, expected, bridge and gap of one table, by the module's equations."""
    around = [b if a == table else a for a, b in edges if table in (a, b)]
    ranked = sorted((scores[u] for u in around), reverse=True) + [NO_NEIGHBOUR] * 2
    sigma = [1 / (1 + np.exp(-s)) for s in scores]
    joined = {frozenset(edge) for edge in edges}
    bridges = [sigma[u] * sigma[v] for u, v in combinations(around, 2) if frozenset((u, v)) not in joined]
    return [*ranked[:2], sum(sigma[u] for u in around), max(bridges, default=0.0), max(scores) - scores[table]]


@pytest.mark.parametrize(
    "edges", [[], [(0, 1)], [(0, 1), (1, 2)], [(0, 1), (1, 2), (0, 2)], [(0, 1), (1, 2), (1, 3), (2, 3), (1, 4)]]
)
def test_support_is_the_equations(edges):
    scores = np.random.default_rng(len(edges)).normal(0, 2, (3, 5))
    found = neighbour_support(scores, np.array(edges, dtype=np.int64).reshape(-1, 2))
    expected = [[by_hand(row, edges, table) for table in range(5)] for row in scores.tolist()]
    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-14)


def test_support_moves_with_the_tables():
    scores = np.random.default_rng(0).normal(size=(4, 6))
    edges = np.array([[0, 1], [1, 2], [2, 3], [1, 4]])
    order = np.random.default_rng(1).permutation(6)
    place = np.argsort(order)
    np.testing.assert_allclose(
        neighbour_support(scores[:, order], place[edges]), neighbour_support(scores, edges)[:, order], rtol=1e-12
    )


def test_the_second_stage_reads_the_largest_value_of_each_channel_around():
    values = np.random.default_rng(2).normal(size=(3, 4, 2))
    edges = np.array([[0, 1], [1, 2]])
    found = with_support(tree_features(values), np.zeros((3, 4)), edges)[:, :, -2:]
    expected = [values[:, 1], values[:, [0, 2]].max(axis=1), values[:, 1], np.full((3, 2), NO_VALUE)]
    np.testing.assert_allclose(found, np.stack(expected, axis=1), rtol=1e-6)
    assert tree_features(values).shape == (3, 4, 2 * 3 + 1)


def test_the_second_stage_finds_junctions_and_the_first_cannot():
    evidences = world(0)
    trees, _ = cross_fitted(evidences, folds(evidences), SETTINGS)
    new = world(1, 3)
    gold = np.concatenate([item.gold[:, 1] for item in new])

    def loss(scores: list[np.ndarray]) -> float:
        inner = np.concatenate([item[:, 1] for item in scores])
        return float(np.logaddexp(0, np.where(gold, -inner, inner)).mean())

    both = loss([trees.score(item) for item in new])
    first = loss([replace(trees, second="").score(item) for item in new])
    assert both < 0.6 * first
    alone = fit_first(evidences, SETTINGS)
    assert alone.second == ""
    np.testing.assert_array_equal(alone.score(new[0]), replace(trees, second="").score(new[0]))


def test_a_databases_own_labels_do_not_reach_its_cross_fitted_scores():
    """The last database's gold is turned round, and its own scores hardly move: other trees give them."""
    evidences = world(2)
    fold = folds(evidences)
    turned = [*evidences[:-1], replace(evidences[-1], gold=~evidences[-1].gold)]
    trees, scores = cross_fitted(evidences, fold, SETTINGS)
    other_trees, other = cross_fitted(turned, fold, SETTINGS)
    assert not np.array_equal(trees.score(evidences[0]), other_trees.score(evidences[0]))
    outside = [item for item in evidences if fold[item.key] != fold[evidences[-1].key]]
    honest = fit_first(outside, SETTINGS).score(evidences[-1])
    assert np.corrcoef(honest.ravel(), other[-1].ravel())[0, 1] > 0.8
    # Second-stage trees see it through other databases' first scores alone, which shifts scores a little.
    assert np.corrcoef(scores[-1].ravel(), other[-1].ravel())[0, 1] > 0.9
    inside = trees.score(evidences[-1])
    assert np.abs(scores[-1] - inside).max() > 1e-3


def test_two_databases_of_one_key_are_kept_together():
    evidences = world(3, 6)
    again = [replace(evidences[0], values=evidences[0].values + 0.01), *evidences]
    _, scores = cross_fitted(again, folds(evidences), SETTINGS)
    inside = [item for item in evidences if folds(evidences)[item.key] != folds(evidences)[evidences[0].key]]
    assert len(scores) == len(again)
    honest = fit_first(inside, SETTINGS)
    assert honest.score(evidences[0]).shape == scores[0].shape == scores[1].shape


def test_same_data_same_trees_whatever_the_threads(tmp_path):
    evidences = world(4, 6)
    first, _ = cross_fitted(evidences, folds(evidences), SETTINGS)
    second, _ = cross_fitted(evidences, folds(evidences), SETTINGS._replace(threads=2))
    assert first.identity == first.identity
    np.testing.assert_allclose(first.score(evidences[0]), second.score(evidences[0]), rtol=1e-9)
    first.save(tmp_path / "one.json.gz")
    first.save(tmp_path / "two.json.gz")
    assert (tmp_path / "one.json.gz").read_bytes() == (tmp_path / "two.json.gz").read_bytes()
    loaded = Trees.load(tmp_path / "one.json.gz")
    assert loaded.channels == first.channels
    assert loaded.trained == first.trained == tuple(f"made/db{number}" for number in range(6))
    assert loaded.identity == first.identity
    np.testing.assert_array_equal(loaded.score(evidences[1]), first.score(evidences[1]))


def test_channels_are_found_by_name_in_any_order():
    evidences = world(5, 6)
    trees = fit_first(evidences, SETTINGS)
    swapped = evidences[0].select_channels(("noise", "signal"))
    np.testing.assert_array_equal(trees.score(swapped), trees.score(evidences[0]))
    with pytest.raises(ValueError, match="noise"):
        trees.score(evidences[0].select_channels(("signal",)))


def test_what_cannot_be_fitted_is_refused():
    evidences = world(6, 3)
    with pytest.raises(ValueError, match="evidences are empty"):
        fit_first([], SETTINGS)
    with pytest.raises(ValueError, match="has no gold"):
        fit_first([replace(evidences[0], gold=None)], SETTINGS)
    with pytest.raises(ValueError, match="has channels"):
        fit_first([evidences[0], evidences[1].select_channels(("noise", "signal"))], SETTINGS)


WHOLE = gzip.compress(b"{" + b"some text that packs, " * 200)
NO_TREES = {
    "empty": b"",
    "not packed": b"nonsense",
    "damaged": WHOLE[:20] + b"X" * 10 + WHOLE[30:],
    "a list": gzip.compress(b"[1, 2]"),
    "missing": None,
}


@pytest.mark.parametrize("kind", NO_TREES)
def test_a_file_that_holds_no_trees_is_refused(tmp_path, kind):
    path = tmp_path / "trees.json.gz"
    if NO_TREES[kind] is not None:
        path.write_bytes(NO_TREES[kind])
    with pytest.raises(ValueError, match=r"trees .*trees.json.gz cannot be read .*train_boosted"):
        Trees.load(path)


def test_trees_that_were_changed_after_they_were_written_are_refused(tmp_path):
    path = tmp_path / "trees.json.gz"
    fit_first(world(8, 3), SETTINGS).save(path)
    document = json.loads(gzip.decompress(path.read_bytes()))
    document["first"] = document["first"].replace("0", "1", 1)
    path.write_bytes(gzip.compress(json.dumps(document).encode()))
    with pytest.raises(ValueError, match=r"cannot be read \(it does not have the hash that it states\)"):
        Trees.load(path)


def test_a_text_that_is_no_model_is_refused():
    with pytest.raises(ValueError, match="trees hold no LightGBM model"):
        Trees(("signal", "noise"), "not a model", "").score(world(8, 1)[0])


def test_the_channel_scores_what_its_base_channels_say(tmp_path):
    base = (NameMatch(), BM25())
    graph = harbour()
    evidence = compute_evidence(graph, QUESTIONS, base)
    gold = np.random.default_rng(0).random(evidence.values.shape[:2]) < 0.4
    trees = fit_first([replace(evidence, gold=gold)], SETTINGS._replace(least=1))
    trees.save(tmp_path / "own.json.gz")
    channel = BoostedChannel("own", base, tmp_path / "own.json.gz")
    np.testing.assert_array_equal(channel.score(QUESTIONS, graph), trees.score(evidence))
    assert channel.score([], graph).shape == (0, graph.num_tables)
    assert trees.identity in channel.identity
    assert base[1].identity in channel.identity


def test_without_lightgbm_the_extra_is_named(monkeypatch, tmp_path):
    trees = fit_first(world(7, 3), SETTINGS)
    trees.save(tmp_path / "own.json.gz")
    monkeypatch.setitem(__import__("sys").modules, "lightgbm", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'bayeslink\[boosted\]'"):
        BoostedChannel("own", (NameMatch(),), tmp_path / "own.json.gz").score(["which"], harbour())
