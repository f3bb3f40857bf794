import json
import math

import numpy as np
import pytest

pytest.importorskip("torch", reason="extra `attention`")
pytest.importorskip("peft", reason="extra `attention`")

import tiny_models
import torch
from conftest import harbour

from bayeslink.evidence import attention_training
from bayeslink.evidence.attention import EPSILON, AttentionHead, anchor_attention
from bayeslink.evidence.attention_model import LanguageModel, load_language_model
from bayeslink.evidence.attention_prompt import Level, copying_prompt
from bayeslink.evidence.attention_training import Example, TrainSettings, ranking_precision, set_mass_loss, train

HEAD = AttentionHead("tiny", layer=1, head=2)
FAST = TrainSettings(steps=12, batch=4, every=4, check_every=4, rank=4, alpha=8, rate=1e-2, shuffle=False)


def examples(count: int) -> list[Example]:
    """Questions that name the column they need."""
    graph = harbour()
    pairs = [(t, c) for t, table in enumerate(graph.tables) for c in range(len(table.columns))]
    chosen = [pairs[(7 * number) % len(pairs)] for number in range(count)]
    return [
        Example(
            f"What is the {graph.tables[t].columns[c].name} of {graph.tables[t].name}?",
            graph,
            frozenset([t]),
            frozenset([(t, c)]),
        )
        for t, c in chosen
    ]


def log(folder) -> list[dict]:
    return [json.loads(line) for line in (folder / "log.jsonl").read_text().splitlines()]


def test_the_loss_by_hand():
    shares = torch.tensor([0.5, 0.3, 0.15, 0.05], dtype=torch.float64)
    gold = torch.tensor([True, False, True, False])
    # rho / |I+| = 0.2: 0.5 is above the floor, 0.15 below it.
    expected = -math.log(0.65) + 0.5 * math.log(0.2 / 0.15)
    assert set_mass_loss(shares, gold, 0.4).item() == pytest.approx(expected, abs=1e-6)
    assert set_mass_loss(shares, gold, 0.0).item() == pytest.approx(-math.log(0.65), abs=1e-6)
    uniform = -math.log(0.65) + 0.5 * math.log(0.5 / 0.15)
    assert set_mass_loss(shares, gold, 1.0).item() == pytest.approx(uniform, abs=1e-6)


def test_a_share_of_nothing_has_a_finite_loss():
    shares = torch.tensor([0.0, 1.0], requires_grad=True)
    loss = set_mass_loss(shares, torch.tensor([True, False]), 0.25)
    assert loss.item() == pytest.approx(-math.log(EPSILON) + math.log((0.25 + EPSILON) / EPSILON), rel=1e-5)


def test_the_floor_pulls_up_the_weaker_gold_and_not_the_stronger():
    shares = torch.tensor([0.6, 0.01, 0.39], dtype=torch.float64, requires_grad=True)
    gold = torch.tensor([True, True, False])
    slopes = []
    for floor in (0.0, 0.25):
        (gradient,) = torch.autograd.grad(set_mass_loss(shares, gold, floor), shares)
        slopes.append(gradient)
    assert slopes[0][0] == pytest.approx(slopes[0][1].item())
    assert slopes[1][1] < 10 * slopes[1][0] < 0
    assert slopes[1][0] == pytest.approx(slopes[0][0].item())


@pytest.mark.parametrize("level", list(Level))
def test_sixteen_examples_are_learned_by_heart(tmp_path, level):
    settings = TrainSettings(level=level, steps=150, batch=8, every=50, rank=16, alpha=32, rate=2e-2, shuffle=False)
    known = examples(16)
    model = tiny_models.tiny_llama()
    before = ranking_precision(model, HEAD, known, settings)["criterion"]
    train(model, HEAD, known, [], tmp_path, settings)
    losses = [line["loss"] for line in log(tmp_path) if "loss" in line]
    assert losses[-1] < 0.2 * losses[0]
    assert before < 0.7


def test_a_trained_adapter_gives_the_same_scores_when_loaded(tmp_path):
    base = tiny_models.tiny_llama()
    base.model.save_pretrained(tmp_path / "base")
    base.tokenizer.save_pretrained(tmp_path / "base")
    model = load_language_model(tmp_path / "base")
    prompts = [copying_prompt(item.question, item.graph) for item in examples(3)]
    plain = anchor_attention(model, prompts, [1])
    train(model, HEAD, examples(8), [], tmp_path / "run", FAST)
    trained = anchor_attention(LanguageModel("t", "0", model.tokenizer, model.model), prompts, [1])
    again = anchor_attention(load_language_model(tmp_path / "base", tmp_path / "run" / "adapter"), prompts, [1])
    for one, other, untrained in zip(trained, again, plain, strict=True):
        assert np.allclose(one, other, atol=1e-6)
        assert np.abs(one - untrained).max() > 1e-3


def test_only_the_adapter_learns(tmp_path):
    model = tiny_models.tiny_llama()
    before = {name: value.clone() for name, value in model.model.state_dict().items()}
    train(model, HEAD, examples(8), [], tmp_path, FAST)
    after = model.model.state_dict()
    for name, value in before.items():
        stem, _, kind = name.rpartition(".")
        kept = after.get(name, after.get(f"{stem}.base_layer.{kind}"))
        assert kept is not None, name
        assert torch.equal(kept, value), name
    adapted = [name for name in after if "lora" in name]
    assert adapted
    assert not [name for name in adapted if ".layers.2." in name]


def test_a_run_that_was_stopped_goes_on_to_the_same_end(tmp_path, monkeypatch):
    known = examples(8)
    train(tiny_models.tiny_llama(), HEAD, known, known[:2], tmp_path / "whole", FAST)
    checkpoint, done = attention_training._checkpoint, []

    def killed(folder, settings, adapted, optimizer, schedule, state):
        checkpoint(folder, settings, adapted, optimizer, schedule, state)
        done.append(state["step"])
        if len(done) == 2:
            raise KeyboardInterrupt

    monkeypatch.setattr(attention_training, "_checkpoint", killed)
    with pytest.raises(KeyboardInterrupt):
        train(tiny_models.tiny_llama(), HEAD, known, known[:2], tmp_path / "parts", FAST)
    assert done == [4, 8]
    monkeypatch.setattr(attention_training, "_checkpoint", checkpoint)
    train(tiny_models.tiny_llama(), HEAD, known, known[:2], tmp_path / "parts", FAST)
    ends = [torch.load(tmp_path / name / "checkpoint.pt", weights_only=True) for name in ("whole", "parts")]
    assert ends[0]["step"] == ends[1]["step"] == 12
    for name, value in ends[0]["adapter"].items():
        assert torch.allclose(value, ends[1]["adapter"][name], atol=1e-6), name


def test_a_folder_of_another_run_is_refused(tmp_path):
    train(tiny_models.tiny_llama(), HEAD, examples(4), [], tmp_path, FAST)
    other = TrainSettings(**{**vars(FAST), "floor": 0.5})
    with pytest.raises(ValueError, match="holds a run with other settings"):
        train(tiny_models.tiny_llama(), HEAD, examples(4), [], tmp_path, other)


def test_a_run_stops_when_the_held_out_ranking_no_longer_rises(tmp_path, monkeypatch):
    marks = iter([0.5, 0.6, 0.55, 0.55, 0.55, 0.9])
    monkeypatch.setattr(attention_training, "ranking_precision", lambda *_: {"criterion": next(marks)})
    settings = TrainSettings(**{**vars(FAST), "steps": 40, "patience": 2})
    train(tiny_models.tiny_llama(), HEAD, examples(8), examples(2), tmp_path, settings)
    state = torch.load(tmp_path / "checkpoint.pt", weights_only=True)
    assert state["best"] == {"criterion": 0.6, "step": 8}
    assert state["step"] == 16


def test_examples_that_do_not_fit_are_counted(tmp_path):
    known = examples(4)
    long = known[0]._replace(question="name " * 900)
    train(tiny_models.tiny_llama(), HEAD, [*known, long], [], tmp_path, FAST)
    assert log(tmp_path)[0] | {"examples": 4, "left_out": 1} == log(tmp_path)[0]
    with pytest.raises(ValueError, match="none of 1 has a prompt of at most 1024 tokens"):
        train(tiny_models.tiny_llama(), HEAD, [long], [], tmp_path / "none", FAST)


def test_every_example_is_used_once_an_epoch():
    settings = TrainSettings(steps=25, batch=4)
    batches = list(attention_training._batches([3] * 50, settings))
    assert len(batches) == 25
    assert sorted(place for batch in batches[:13] for place in batch) == list(range(50))
    assert batches == list(attention_training._batches([3] * 50, settings))


def test_the_rate_rises_and_falls():
    rates = [attention_training._rate(step, 100) for step in range(100)]
    assert rates[4] == pytest.approx(1.0)
    assert rates == sorted(rates[:5]) + sorted(rates[5:], reverse=True)
    assert rates[-1] < 0.01
