import json
import math
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

pytest.importorskip("torch", reason="extra `attention`")
pytest.importorskip("peft", reason="extra `attention`")

import tiny_models
import torch
from conftest import harbour
from safetensors.torch import load_file

from bayeslink.evidence import attention_training
from bayeslink.evidence.attention import EPSILON, AttentionHead, anchor_attention
from bayeslink.evidence.attention_model import LanguageModel, load_language_model
from bayeslink.evidence.attention_prompt import Level, copying_prompt
from bayeslink.evidence.attention_training import (
    Example,
    TrainSettings,
    pack_adapter,
    ranking_precision,
    set_mass_loss,
    train,
)

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
        step = torch.tensor([1e-6, 0.0, 0.0], dtype=torch.float64)
        rise = set_mass_loss(shares + step, gold, floor) - set_mass_loss(shares - step, gold, floor)
        assert (rise / 2e-6).item() == pytest.approx(gradient[0].item(), rel=1e-5)
    assert slopes[0][0] == pytest.approx(slopes[0][1].item())
    assert slopes[1][1] < 10 * slopes[1][0] < 0
    assert slopes[1][0] == pytest.approx(slopes[0][0].item())


@pytest.mark.parametrize("level", list(Level))
def test_sixteen_examples_are_learned_by_heart(tmp_path, level, monkeypatch):
    settings = TrainSettings(steps=60, batch=16, every=20, rank=16, alpha=32, rate=1e-2, shuffle=False)
    known, head = examples(16), replace(HEAD, level=level)
    model, after, save = tiny_models.tiny_llama(), {}, attention_training._save_adapter

    def watched(adapted, folder):
        after.update(ranking_precision(adapted, head, known))
        save(adapted, folder)

    monkeypatch.setattr(attention_training, "_save_adapter", watched)
    before = ranking_precision(model, head, known)
    train(model, head, known, [], tmp_path, settings)
    losses = [line["loss"] for line in log(tmp_path) if "loss" in line]
    assert losses[-1] < 0.3 * losses[0]
    assert before["criterion"] < 0.7
    assert after["criterion"] > 0.95, after


def test_a_trained_adapter_gives_the_same_scores_when_loaded(tmp_path, monkeypatch):
    base = tiny_models.tiny_llama()
    base.model.save_pretrained(tmp_path / "base")
    base.tokenizer.save_pretrained(tmp_path / "base")
    model = load_language_model(tmp_path / "base")
    prompts = [copying_prompt(item.question, item.graph) for item in examples(3)]
    plain, trained, save = anchor_attention(model, prompts, [1]), [], attention_training._save_adapter

    def watched(adapted, folder):
        trained[:] = anchor_attention(adapted, prompts, [1])
        save(adapted, folder)

    monkeypatch.setattr(attention_training, "_save_adapter", watched)
    train(model, HEAD, examples(8), [], tmp_path / "run", FAST)
    again = anchor_attention(load_language_model(tmp_path / "base", tmp_path / "run" / "adapter"), prompts, [1])
    for one, other, untrained in zip(trained, again, plain, strict=True):
        assert np.allclose(one, other, atol=1e-6)
        assert np.abs(one - untrained).max() > 1e-3


def test_the_model_is_left_as_it_was(tmp_path):
    model = tiny_models.tiny_llama()
    before = {name: value.clone() for name, value in model.model.state_dict().items()}
    train(model, HEAD, examples(8), [], tmp_path / "one", FAST)
    after = model.model.state_dict()
    assert after.keys() == before.keys()
    assert all(torch.equal(after[name], value) for name, value in before.items())
    train(model, HEAD, examples(8), [], tmp_path / "two", FAST)
    ends = [torch.load(tmp_path / name / "checkpoint.pt", weights_only=True)["adapter"] for name in ("one", "two")]
    assert all(torch.equal(value, ends[1][name]) for name, value in ends[0].items())
    assert not [name for name in ends[0] if ".layers.2." in name]
    assert [name for name in ends[0] if ".layers.1." in name]


LOOKING = replace(FAST, every=3, check_every=4, shuffle=True)


def killed_at(monkeypatch, step: int) -> None:
    """Stops the run just before that step is taken."""
    loss, rates = attention_training._batch_loss, []

    def stopping(*arguments):
        rates.append(1)
        if len(rates) == step:
            raise KeyboardInterrupt
        return loss(*arguments)

    monkeypatch.setattr(attention_training, "_batch_loss", stopping)


@pytest.mark.parametrize("step", [2, 5, 8, 11])
def test_a_run_that_was_killed_ends_where_another_would(tmp_path, monkeypatch, step):
    known = examples(8)
    train(tiny_models.tiny_llama(), HEAD, known, known[:2], tmp_path / "whole", LOOKING)
    with monkeypatch.context() as patch:
        killed_at(patch, step)
        with pytest.raises(KeyboardInterrupt):
            train(tiny_models.tiny_llama(), HEAD, known, known[:2], tmp_path / "parts", LOOKING)
    train(tiny_models.tiny_llama(), HEAD, known, known[:2], tmp_path / "parts", LOOKING)
    same_end(tmp_path)


def test_a_run_that_ran_out_of_minutes_ends_where_another_would(tmp_path):
    known = examples(8)
    train(tiny_models.tiny_llama(), HEAD, known, known[:2], tmp_path / "whole", LOOKING)
    for _ in range(12):
        train(tiny_models.tiny_llama(), HEAD, known, known[:2], tmp_path / "parts", LOOKING, minutes=0.0)
    same_end(tmp_path)


def same_end(folder) -> None:
    ends = [torch.load(folder / name / "checkpoint.pt", weights_only=True) for name in ("whole", "parts")]
    assert ends[0]["step"] == ends[1]["step"] == 12
    assert ends[0]["best"] == ends[1]["best"]
    for name, value in ends[0]["adapter"].items():
        assert torch.equal(value, ends[1]["adapter"][name]), name
    kept = [(folder / name / "adapter" / "adapter_model.safetensors").read_bytes() for name in ("whole", "parts")]
    assert kept[0] == kept[1]


@pytest.mark.parametrize("change", ["settings", "head", "model", "examples"])
def test_a_folder_of_another_run_is_refused(tmp_path, change):
    train(tiny_models.tiny_llama(), HEAD, examples(4), [], tmp_path, FAST)
    model = tiny_models.tiny_llama()
    model.revision = "1" if change == "model" else "0"
    head = replace(HEAD, head=1) if change == "head" else HEAD
    settings = replace(FAST, floor=0.5) if change == "settings" else FAST
    with pytest.raises(ValueError, match="holds a run with other settings, head, model or examples"):
        train(model, head, examples(5 if change == "examples" else 4), [], tmp_path, settings)


@pytest.mark.parametrize("part", ["examples", "held_out"])
@pytest.mark.parametrize("change", ["question", "schema", "tables", "columns"])
def test_a_folder_of_other_examples_is_refused(tmp_path, change, part):
    """Whatever of an example changes the run: also its gold columns, and the schema under the same name."""
    own, held, settings = examples(4), examples(2), replace(FAST, steps=1)
    train(tiny_models.tiny_llama(), HEAD, own, held, tmp_path, settings)
    some = own if part == "examples" else held
    some[0] = some[0]._replace(
        **{
            "question": {"question": "What is it?"},
            "schema": {"graph": replace(some[0].graph, tables=(*some[0].graph.tables[:-1], renamed(some[0].graph)))},
            "tables": {"tables": some[0].tables | {4}},
            "columns": {"columns": some[0].columns | {(4, 1)}},
        }[change]
    )
    with pytest.raises(ValueError, match="holds a run with other settings, head, model or examples"):
        train(tiny_models.tiny_llama(), HEAD, own, held, tmp_path, settings)


def renamed(graph):
    """The last table with another name for its last column."""
    table = graph.tables[-1]
    return replace(table, columns=(*table.columns[:-1], replace(table.columns[-1], name="gusts")))


def test_a_checkpoint_that_is_broken_is_refused(tmp_path):
    train(tiny_models.tiny_llama(), HEAD, examples(4), [], tmp_path, FAST)
    (tmp_path / "checkpoint.pt").write_bytes(b"PK nothing")
    with pytest.raises(ValueError, match=r"checkpoint\.pt cannot be read"):
        train(tiny_models.tiny_llama(), HEAD, examples(4), [], tmp_path, FAST)


def test_a_run_stops_when_the_held_out_ranking_no_longer_rises(tmp_path, monkeypatch):
    # As good as the best is no gain.
    marks = iter([0.5, 0.6, 0.6, 0.55, 0.55, 0.9])
    monkeypatch.setattr(attention_training, "ranking_precision", lambda *_: {"criterion": next(marks)})
    settings = replace(FAST, steps=40, patience=2, every=1)
    for _ in range(2):
        train(tiny_models.tiny_llama(), HEAD, examples(8), examples(2), tmp_path, settings)
        state = torch.load(tmp_path / "checkpoint.pt", weights_only=True)
        assert state["best"] == {"criterion": 0.6, "step": 8}
        assert state["step"] == 16


def test_looks_checkpoints_and_losses_come_on_their_grids_and_at_the_end(tmp_path, monkeypatch):
    losses, loss = [], attention_training._batch_loss

    def watched(*given):
        losses.append(loss(*given))
        return losses[-1]

    monkeypatch.setattr(attention_training, "_batch_loss", watched)
    settings = replace(FAST, steps=7, every=3, check_every=2)
    train(tiny_models.tiny_llama(), HEAD, examples(8), examples(2), tmp_path, settings)
    assert [line["step"] for line in log(tmp_path) if "criterion" in line] == [2, 4, 6, 7]
    lines = {line["step"]: line["loss"] for line in log(tmp_path) if "loss" in line}
    means = [np.mean([one.item() for one in losses[first:last]]) for first, last in ((0, 3), (3, 6), (4, 7))]
    assert list(lines) == [3, 6, 7]
    assert list(lines.values()) == pytest.approx(means)
    assert torch.load(tmp_path / "checkpoint.pt", weights_only=True)["step"] == 7


def test_a_run_stops_after_its_minutes(tmp_path, monkeypatch):
    """A clock that goes ten seconds on at each look: one look a step, and one when the run starts."""
    ticks = iter(range(0, 10_000, 10))
    monkeypatch.setattr(attention_training, "time", SimpleNamespace(perf_counter=lambda: next(ticks)))
    train(tiny_models.tiny_llama(), HEAD, examples(4), [], tmp_path, replace(FAST, every=12), minutes=1.0)
    assert torch.load(tmp_path / "checkpoint.pt", weights_only=True)["step"] == 7


def test_a_look_leaves_the_model_as_it_was():
    model = tiny_models.tiny_llama()
    for training in (True, False):
        model.model.train(training)
        ranking_precision(model, HEAD, examples(1))
        assert model.model.training is training


def test_a_prompt_of_just_the_longest_length_is_kept(tmp_path):
    model, known = tiny_models.tiny_llama(), examples(1)
    text, _ = model.chat(copying_prompt(known[0].question, known[0].graph).text)
    ((ids, _),) = model.tokens([text])
    train(model, HEAD, known, [], tmp_path / "fits", replace(FAST, steps=1, longest=len(ids)))
    with pytest.raises(ValueError, match=f"a prompt of at most {len(ids) - 1} tokens"):
        train(model, HEAD, known, [], tmp_path / "longer", replace(FAST, steps=1, longest=len(ids) - 1))


def test_the_seed_is_that_of_the_adapter(tmp_path):
    """A of a layer that the loss does not reach stays as it was drawn."""
    drawn = []
    for name, seed in (("one", 0), ("again", 0), ("other", 1)):
        folder = train(
            tiny_models.tiny_llama(), HEAD, examples(2), [], tmp_path / name, replace(FAST, steps=1, seed=seed)
        )
        weights = load_file(folder / "adapter_model.safetensors")
        (place,) = [part for part in weights if part.endswith("layers.1.mlp.up_proj.lora_A.weight")]
        drawn.append(weights[place])
    assert torch.equal(drawn[0], drawn[1])
    assert not torch.equal(drawn[0], drawn[2])


def test_examples_that_do_not_fit_are_counted(tmp_path):
    known = examples(4)
    long = known[0]._replace(question="name " * 900)
    train(tiny_models.tiny_llama(), HEAD, [*known, long], [], tmp_path, FAST)
    assert log(tmp_path)[0]["examples"] == 4
    for own, held in (([long], []), (known, [long])):
        with pytest.raises(ValueError, match="none of 1 has gold and a prompt of at most 1024 tokens"):
            train(tiny_models.tiny_llama(), HEAD, own, held, tmp_path / "none", FAST)


def test_an_example_without_gold_columns_teaches_its_tables_alone(tmp_path):
    counted = [item._replace(columns=frozenset()) for item in examples(4)]
    train(tiny_models.tiny_llama(), HEAD, counted, [], tmp_path / "both", FAST)
    assert log(tmp_path / "both")[0]["examples"] == 4
    with pytest.raises(ValueError, match="examples: none of 4 has gold"):
        train(tiny_models.tiny_llama(), HEAD, counted, [], tmp_path / "columns", replace(FAST, both=False))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"floor": -0.5}, r"floor=-0\.5: a share"),
        ({"steps": 0}, "steps=0: a positive"),
        ({"rate": 0.0}, r"rate=0\.0"),
    ],
)
def test_settings_that_make_no_sense_are_refused(change, message):
    with pytest.raises(ValueError, match=message):
        replace(FAST, **change)


def test_a_model_without_linear_layers_is_refused(tmp_path):
    from transformers import GPT2Config, GPT2LMHeadModel

    config = GPT2Config(n_embd=32, n_layer=2, n_head=4, vocab_size=400, n_positions=512)
    model = LanguageModel("gpt2", "0", tiny_models.tiny_tokenizer(), GPT2LMHeadModel(config))
    with pytest.raises(ValueError, match="model='gpt2' has no linear layer to adapt"):
        train(model, HEAD, examples(4), [], tmp_path, replace(FAST, longest=500))


def test_every_example_is_used_once_an_epoch():
    settings = TrainSettings(steps=25, batch=4)
    batches = list(attention_training._batches([3] * 50, settings))
    assert len(batches) == 25
    assert sorted(place for batch in batches[:13] for place in batch) == list(range(50))
    assert batches == list(attention_training._batches([3] * 50, settings))


def test_a_batch_holds_like_lengths_in_an_order_of_the_seeds():
    """Sixteen batches at a time are sorted; their own order is one of chance."""
    settings = TrainSettings(steps=16, batch=4)
    lengths = [(37 * place) % 64 for place in range(64)]
    batches = list(attention_training._batches(lengths, settings))
    held = [sorted(lengths[place] for place in batch) for batch in batches]
    assert sorted(held) == [list(range(first, first + 4)) for first in range(0, 64, 4)]
    assert held != sorted(held)
    assert batches != list(attention_training._batches(lengths, replace(settings, seed=1)))


def test_the_rate_rises_and_falls():
    rates = [attention_training._rate(step, 100) for step in range(100)]
    assert rates[4] == pytest.approx(1.0)
    assert rates == sorted(rates[:5]) + sorted(rates[5:], reverse=True)
    assert rates[-1] < 0.01


def test_a_packed_adapter_attends_as_the_whole_one_does(tmp_path):
    model = tiny_models.tiny_llama()
    model.model.save_pretrained(tmp_path / "plain")
    model.tokenizer.save_pretrained(tmp_path / "plain")
    whole = train(model, HEAD, examples(24), [], tmp_path / "run", replace(FAST, steps=40))
    worst = pack_adapter(whole, tmp_path / "packed")
    assert 0 < worst < 0.06
    stored = [load_file(folder / "adapter_model.safetensors") for folder in (whole, tmp_path / "packed")]
    scales = [
        json.loads((folder / "adapter_config.json").read_text())["lora_alpha"]
        for folder in (whole, tmp_path / "packed")
    ]
    errors = []
    for name in [part for part in stored[0] if "lora_A" in part]:
        exact, packed = (item[name.replace("_A", "_B")].double() @ item[name].double() for item in stored)
        if exact.any():
            errors.append(((packed * scales[1] / scales[0] - exact).norm() / exact.norm()).item())
    assert len(set(errors)) > 1
    assert worst == pytest.approx(max(errors), rel=1e-4)
    sizes = [(folder / "adapter_model.safetensors").stat().st_size for folder in (whole, tmp_path / "packed")]
    assert sizes[1] < 0.5 * sizes[0]
    prompts = [copying_prompt(item.question, item.graph, Level.COLUMN) for item in examples(6)]
    found = []
    for adapter in (None, whole, tmp_path / "packed"):
        adapted = load_language_model(tmp_path / "plain", adapter)
        found.append(np.concatenate([s[0, 0] for s in anchor_attention(adapted, prompts, [1], heads=[2])]))
    plain, exact, packed = found
    assert np.abs(packed - exact).max() < 0.1 * np.abs(plain - exact).max()


def test_what_is_no_trained_adapter_is_not_packed(tmp_path):
    with pytest.raises(ValueError, match=r"no adapter .*; train one first"):
        pack_adapter(tmp_path, tmp_path / "packed")
    model = tiny_models.tiny_llama()
    untrained = train(model, HEAD, examples(4), [], tmp_path / "run", replace(FAST, steps=1, rate=1e-60))
    with pytest.raises(ValueError, match="its adapter changes nothing; train it first"):
        pack_adapter(untrained, tmp_path / "packed")
