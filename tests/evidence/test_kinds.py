"""The lists of channels: stable names, one field each, and every channel found by its name."""

import json
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from conftest import QUESTIONS
from fields_cases import described

from bayeslink.evidence import attention, kinds
from bayeslink.evidence.attention import AttentionHead
from bayeslink.evidence.attention_databases import adapter_databases
from bayeslink.evidence.attention_prompt import Level
from bayeslink.evidence.boosted import BoostedChannel
from bayeslink.evidence.channel import Channel, compute_evidence
from bayeslink.evidence.kinds import (
    ATTENTION_HOME,
    KINDS,
    TREES,
    attention_channel,
    channels_named,
    default_channels,
    trees_base,
)
from bayeslink.evidence.store import load_evidence, load_fingerprints, load_twins

RICH = (
    *("name_share", "name_any", "name_full", "phrase_name", "bm25_name"),
    *("overlap_columns", "bm25_columns", "best_columns"),
    *("overlap_descriptions", "bm25_descriptions", "best_descriptions"),
    *("phrase_columns", "phrase_count_columns", "identifier_hint"),
    *("literal_number", "literal_date", "literal_text"),
    *("shape_columns", "shape_degree", "shape_references", "shape_keys", "hashed_cosine"),
)
COSINES = (
    *("cosine_name", "cosine_text", "cosine_columns", "cosine_columns_top3", "cosine_descriptions"),
    "embedding_cosine",
)
NAMES = {
    "lexical": ("token_overlap", "bm25", "hashed_cosine"),
    "embedding": ("token_overlap", "bm25", "embedding_cosine"),
    "rich": RICH,
    "rich_embedding": (*RICH, *COSINES),
} | {kind: (kind,) for kind in TREES}


def test_default_channels():
    assert (*NAMES, "attention") == KINDS
    channels = {channel.name: channel for kind in NAMES for channel in default_channels(kind)}
    for kind, names in NAMES.items():
        assert tuple(channel.name for channel in default_channels(kind)) == names
    assert len({channel.identity for channel in channels.values()}) == len(channels)
    assert all(isinstance(channel, Channel) for channel in channels.values())
    with pytest.raises(
        ValueError, match="channels='other': use one of lexical, embedding, rich, rich_embedding, boosted"
    ):
        default_channels("other")


def test_channels_are_found_by_name():
    for names in (*NAMES.values(), ("bm25_comment", "bm25")):
        assert tuple(channel.name for channel in channels_named(names)) == names
    with pytest.raises(
        ValueError,
        match=r"channels='bm25,telepathy': telepathy unknown; use one of the lists .* channels attention, best_col",
    ):
        channels_named(("bm25", "telepathy"))
    with pytest.raises(ValueError, match="channels='bm25,bm25': a channel is named twice"):
        channels_named(("bm25", "bm25"))


def test_rich_evidence_has_a_score_of_each_channel():
    found = compute_evidence(described(), QUESTIONS, default_channels("rich"))
    assert found.channels == RICH
    assert np.isfinite(found.values).all()
    # Every channel tells some table from another in some question or, of literals, would with one.
    silent = [name for name, spread in zip(RICH, np.ptp(found.values, axis=1).max(axis=0), strict=True) if not spread]
    assert silent == ["identifier_hint", "literal_number", "literal_date", "literal_text"]


def test_trees_read_what_they_were_trained_on():
    without = [name for name in (*RICH, *COSINES) if "descriptions" not in name]
    assert [*trees_base("boosted_names")] == without
    assert len(without) == len(RICH) + len(COSINES) - 4
    assert trees_base("boosted") == (*RICH, *COSINES)
    assert trees_base("boosted_lexical") == RICH
    assert trees_base("learned") == (*RICH, *COSINES, "encoder_columns", "encoder_descriptions")
    assert [*trees_base("learned_names")] == [*without, "encoder_columns"]
    for kind in TREES:
        (channel,) = default_channels(kind)
        assert isinstance(channel, BoostedChannel)
        assert channel.trees.channels == trees_base(kind) == tuple(base.name for base in channel.base)
    with pytest.raises(ValueError, match="channels='rich': use one of boosted"):
        trees_base("rich")


def test_attention_is_read_where_a_head_is_named(tmp_path, monkeypatch):
    # To see whether it is a channel, the check of types asks for its identity, which needs the weights.
    monkeypatch.setattr(attention, "language_model", lambda *_: SimpleNamespace(revision="0"))
    AttentionHead("tiny", layer=1).save(tmp_path / "head.json")
    own, other = (str(tmp_path / name) for name in ("head.json", "."))
    channel = attention_channel(own)
    assert channel.name == f"attention_{channel.head.digest[:8]}"
    assert attention_channel(other).name == channel.name
    names = tuple(item.name for item in default_channels("attention", own))
    assert names == (*NAMES["embedding"], channel.name)
    assert tuple(item.name for item in channels_named(names, own)) == names
    with pytest.raises(ValueError, match=r"its channel is attention_[0-9a-f]{8}, asked for is attention_0"):
        channels_named(("bm25", "attention_0"), own)
    with pytest.raises(ValueError, match="none of bm25 reads a language model; leave it out"):
        channels_named(("bm25",), own)
    with pytest.raises(ValueError, match="channels rich read no language model"):
        default_channels("rich", own)


def test_without_an_adapter_in_the_package_a_head_must_be_named(tmp_path, monkeypatch):
    monkeypatch.setattr(kinds, "ATTENTION_HOME", tmp_path)
    with pytest.raises(ValueError, match="the package carries no adapter; name the folder of one"):
        default_channels("attention")


def test_the_adapter_of_the_package_is_whole():
    head = AttentionHead.load(ATTENTION_HOME / "head.json")
    assert (head.model, head.level) == ("smollm2", Level.COLUMN)
    assert Path(head.adapter) == (ATTENTION_HOME / "adapter").resolve()
    assert len(head.adapter_digest) == 64
    config = json.loads((ATTENTION_HOME / "adapter" / "adapter_config.json").read_text())
    assert config["base_model_name_or_path"] == ""
    assert max(path.stat().st_size for path in ATTENTION_HOME.rglob("*")) < 4_000_000


def test_trees_score_a_schema_without_embeddings():
    (channel,) = channels_named(("boosted_lexical",))
    scores = channel.score(QUESTIONS, described())
    assert np.isfinite(scores).all()
    assert np.ptp(scores[0]) > 1


def test_the_adapter_of_the_package_says_what_it_was_trained_on():
    known = adapter_databases(AttentionHead.load(ATTENTION_HOME / "head.json"))
    stored, twins = load_fingerprints(), load_twins()
    assert len(known) == 104
    assert {dataset for dataset, _ in known} == {"spider"}
    for key, prints in known.items():
        np.testing.assert_array_equal(prints, stored[key])
    tested = {item.key for name in ("spider-dev", "bird-dev") for item in load_evidence(name)}
    assert not known.keys() & (tested | {twin for key in tested for twin in twins[key]})


def test_the_packages_own_head_by_its_path_is_the_same_channel(monkeypatch):
    monkeypatch.setattr(attention, "language_model", lambda *_: SimpleNamespace(revision="0"))
    assert attention_channel(str(ATTENTION_HOME)) == attention_channel()
