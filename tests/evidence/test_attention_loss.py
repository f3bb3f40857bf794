"""One step of the training against plain NumPy: the loss of a batch, its gradient's length, its rate and its order."""

import math
from dataclasses import replace

import numpy as np
import pytest

pytest.importorskip("torch", reason="extra `attention`")
pytest.importorskip("peft", reason="extra `attention`")

import tiny_models
import torch
from conftest import harbour

from bayeslink.evidence import attention_training
from bayeslink.evidence.attention import EPSILON, AttentionHead
from bayeslink.evidence.attention_model import LanguageModel
from bayeslink.evidence.attention_prompt import Instruction, Level, Pooling, candidates
from bayeslink.evidence.attention_training import Example, TrainSettings, ranking_precision, train

HEAD = AttentionHead("tiny", layer=1, head=2)
FAST = TrainSettings(steps=6, batch=2, rank=2, alpha=4, rate=1e-2, shuffle=False)


def asked() -> list[Example]:
    """Two gold tables of unlike size, one table without its columns, and a prompt of another length."""
    graph = harbour()
    return [
        Example(
            "Names and ranks of the crew of each ship", graph, frozenset([0, 3]), frozenset([(0, 1), (3, 2), (3, 3)])
        ),
        Example("How many ports?", graph, frozenset([1]), frozenset()),
        Example("Which fee was paid on arrival, in all, and when?", graph, frozenset([2]), frozenset([(2, 3)])),
    ]


def written(prompt) -> list[tuple[str, str]]:
    """Table and column of each line of the prompt's list, read from its text."""
    names = prompt.text.split("\n\nCandidates:\n")[1].split("\n")
    return [(name.partition("@")[2] or name, name.partition("@")[0] if "@" in name else "") for name in names]


def plain_shares(model: LanguageModel, head: AttentionHead, prompt) -> np.ndarray:
    """(s_i + eps) / sum_r (s_r + eps) from the attention on each token, by a loop over characters."""
    text, begins = model.chat(prompt.text)
    ((ids, offsets),) = model.tokens([text])
    with torch.no_grad():
        attention = model.weights([ids], [head.layer])[head.layer][0, head.head].double().numpy()
    place, scores = begins + prompt.text.index("\n\nCandidates:\n") + len("\n\nCandidates:\n"), []
    for name in prompt.text.split("\n\nCandidates:\n")[1].split("\n"):
        own = [attention[t] for t, (a, b) in enumerate(offsets) if a < min(b, place + len(name)) and b > place]
        scores.append({"span_mean": np.mean(own), "first_token": own[0], "span_sum": np.sum(own)}[head.pooling.value])
        place += len(name) + 1
    lifted = np.array(scores) + EPSILON
    return lifted / lifted.sum()


def plain_loss(shares: list[float], gold: list[bool], floor: float) -> float:
    own = [share for share, right in zip(shares, gold, strict=True) if right]
    low = [max(0.0, math.log((floor / len(own) + EPSILON) / (share + EPSILON))) for share in own]
    return -math.log(sum(own) + EPSILON) + sum(low) / len(own)


def plain_batch_loss(model: LanguageModel, head: AttentionHead, chosen, settings: TrainSettings) -> float:
    """The mean over examples; gold is told by name, whatever the order of the list."""
    total = 0.0
    for item in chosen:
        graph = item.example.graph
        tables = [graph.tables[t].name for t in item.example.tables]
        columns = [(graph.tables[t].name, graph.tables[t].columns[c].name) for t, c in item.example.columns]
        shares, names = plain_shares(model, head, item.prompt), written(item.prompt)
        right = [name in columns if name[1] else name[0] in tables for name in names]
        if any(right):
            total += plain_loss(shares.tolist(), right, settings.floor)
        if head.level is Level.COLUMN and settings.both:
            listed = [table.name for table in graph.tables]
            sums = [sum(s for s, name in zip(shares, names, strict=True) if name[0] == table) for table in listed]
            total += plain_loss(sums, [table in tables for table in listed], settings.floor)
    return total / len(chosen)


def prepared(model: LanguageModel, head: AttentionHead, examples: list[Example], seed: int | None = None) -> list:
    """Examples ready for a step, the lists in the catalogue's order or, with a seed, in one of chance."""
    rng = np.random.default_rng(seed)
    sizes = [len(candidates(item.graph, head.level)[0]) for item in examples]
    orders = [None if seed is None else rng.permutation(size) for size in sizes]
    return [attention_training._prepared(model, head, *pair) for pair in zip(examples, orders, strict=True)]


@pytest.mark.parametrize("seed", [None, 1])
@pytest.mark.parametrize(
    ("change", "both", "floor"),
    [
        ({}, True, 0.25),
        ({}, False, 1.0),
        ({"pooling": Pooling.SUM}, True, 0.25),
        ({"pooling": Pooling.FIRST}, True, 0.0),
        ({"level": Level.TABLE}, True, 0.5),
        ({"instruction": Instruction.RATIONALE, "with_schema": True}, True, 0.25),
    ],
)
def test_the_loss_of_a_batch_is_the_plain_one(change, both, floor, seed):
    model, head, settings = tiny_models.tiny_llama(), replace(HEAD, **change), replace(FAST, both=both, floor=floor)
    examples = asked() if both else [item for item in asked() if item.columns]
    chosen = prepared(model, head, examples, seed)
    with torch.no_grad():
        found = attention_training._batch_loss(model, head, chosen, settings).item()
    # Single precision.
    assert found == pytest.approx(plain_batch_loss(model, head, chosen, settings), rel=1e-5)


def test_faint_attention_has_shares_with_epsilon(monkeypatch):
    """Attention a millionth as strong, so that eps is no longer a trifle."""
    model, plain = tiny_models.tiny_llama(), LanguageModel.weights
    faint = lambda *given: {layer: 1e-6 * found for layer, found in plain(*given).items()}  # noqa: E731
    chosen = prepared(model, HEAD, asked(), 1)
    strong = plain_batch_loss(model, HEAD, chosen, FAST)
    monkeypatch.setattr(LanguageModel, "weights", faint)
    with torch.no_grad():
        found = attention_training._batch_loss(model, HEAD, chosen, FAST).item()
    expected = plain_batch_loss(model, HEAD, chosen, FAST)
    assert abs(expected - strong) > 0.1
    assert found == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize("level", list(Level))
def test_a_shuffled_step_has_its_gold_where_it_is_written(tmp_path, monkeypatch, level):
    """The steps of a run itself: tables in another order each time, the columns of each together and in order."""
    head, settings, seen = replace(HEAD, level=level), replace(FAST, shuffle=True), []
    loss = attention_training._batch_loss

    def watched(model, own, chosen, given):
        found = loss(model, own, chosen, given)
        seen.extend(tuple(written(item.prompt)) for item in chosen)
        assert found.item() == pytest.approx(plain_batch_loss(model, head, chosen, settings), rel=1e-5)
        return found

    monkeypatch.setattr(attention_training, "_batch_loss", watched)
    train(tiny_models.tiny_llama(), head, asked(), [], tmp_path, settings)
    orders = [tuple(dict.fromkeys(table for table, _ in lines)) for lines in seen]
    assert len(set(orders)) > 4
    columns = {table.name: [column.name for column in table.columns] for table in harbour().tables}
    for lines, order in zip(seen, orders, strict=True):
        assert sorted(order) == sorted(columns)
        assert list(lines) == [(t, c) for t in order for c in (columns[t] if level is Level.COLUMN else [""])]


def test_without_shuffle_the_order_is_the_catalogues(tmp_path, monkeypatch):
    seen, loss = [], attention_training._batch_loss

    def watched(*given):
        seen.extend(item.prompt.owner.tolist() for item in given[2])
        return loss(*given)

    monkeypatch.setattr(attention_training, "_batch_loss", watched)
    train(tiny_models.tiny_llama(), HEAD, asked(), [], tmp_path, FAST)
    assert all(owner == sorted(owner) for owner in seen)


class Steps(torch.optim.AdamW):
    """The optimiser, which keeps what it is given at each step."""

    taken: list[dict]

    def step(self, *given):
        (group,) = self.param_groups
        # The chosen layer's values and all behind its attention do not matter to the loss.
        moved = [weight.grad for weight in group["params"] if weight.grad is not None]
        gradient = torch.cat([part.flatten() for part in moved]).double()
        self.taken.append({"rate": group["lr"], "decay": group["weight_decay"], "gradient": gradient.numpy()})
        return super().step(*given)


def steps(folder, monkeypatch, settings: TrainSettings, model: LanguageModel | None = None) -> list[dict]:
    monkeypatch.setattr(torch.optim, "AdamW", type("Kept", (Steps,), {"taken": []}))
    train(model or tiny_models.tiny_llama(), HEAD, asked(), [], folder, settings)
    return torch.optim.AdamW.taken


def test_a_gradient_is_cut_to_the_largest_norm(tmp_path, monkeypatch):
    with monkeypatch.context() as patch:
        free = steps(tmp_path / "free", patch, replace(FAST, clip=1e6))
    with monkeypatch.context() as patch:
        cut = steps(tmp_path / "cut", patch, replace(FAST, clip=1e-3))
    norms = [np.linalg.norm(step["gradient"]) for step in free]
    assert min(norms) > 1e-2
    assert [np.linalg.norm(step["gradient"]) for step in cut] == pytest.approx([1e-3] * len(cut), rel=1e-3)
    # The first step of both is from the same weights: the direction stays.
    np.testing.assert_allclose(cut[0]["gradient"], free[0]["gradient"] * 1e-3 / norms[0], rtol=1e-3, atol=1e-9)


def test_the_rates_that_are_used_rise_over_a_twentieth_and_fall_as_a_cosine(tmp_path, monkeypatch):
    taken = steps(tmp_path, monkeypatch, replace(FAST, steps=41, batch=1, rate=3e-3))
    fall = [0.5 * (1 + math.cos(math.pi * step / 39)) for step in range(39)]
    assert [step["rate"] for step in taken] == pytest.approx([1.5e-3, *(3e-3 * share for share in (1.0, *fall))])
    assert {step["decay"] for step in taken} == {0.0}


def test_gradients_of_a_step_do_not_add_to_those_of_the_one_before(tmp_path, monkeypatch):
    """At a rate of next to nothing, the same batch has the same gradient each time."""
    taken = steps(tmp_path, monkeypatch, replace(FAST, batch=3, rate=1e-30, clip=1e6))
    for step in taken[1:]:
        np.testing.assert_allclose(step["gradient"], taken[0]["gradient"], rtol=1e-4, atol=1e-7)


@pytest.mark.parametrize("wanted", [False, True])
def test_a_step_multiplies_in_bfloat16_where_it_is_asked_to(tmp_path, monkeypatch, wanted):
    seen, loss = [], attention_training._batch_loss

    def watched(*given):
        seen.append(torch.is_autocast_enabled("cpu") and torch.get_autocast_dtype("cpu") is torch.bfloat16)
        return loss(*given)

    monkeypatch.setattr(attention_training, "_batch_loss", watched)
    train(tiny_models.tiny_llama(), HEAD, asked(), [], tmp_path, replace(FAST, steps=1, bfloat16=wanted))
    assert seen == [wanted]


def test_the_adapter_sits_up_to_the_chosen_layer_with_its_rank_and_scale(tmp_path):
    from peft import PeftConfig
    from safetensors.torch import load_file

    folder = train(tiny_models.tiny_llama(), HEAD, asked(), [], tmp_path, replace(FAST, steps=1, rank=3, alpha=12))
    config = PeftConfig.from_pretrained(str(folder))
    assert (config.r, config.lora_alpha, config.lora_dropout) == (3, 12, 0.0)
    weights = load_file(folder / "adapter_model.safetensors")
    kinds = {name.split(".layers.")[1].split(".lora_")[0].replace(".", " ", 1) for name in weights}
    parts = ["self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj", "self_attn.o_proj"]
    parts += ["mlp.gate_proj", "mlp.up_proj", "mlp.down_proj"]
    assert kinds == {f"{layer} {part}" for layer in (0, 1) for part in parts}


@pytest.mark.parametrize("shuffled", [False, True])
@pytest.mark.parametrize(
    "change", [{}, {"pooling": Pooling.SUM}, {"instruction": Instruction.RATIONALE}, {"with_schema": True}]
)
def test_the_mark_of_stopping_is_the_plain_mean_average_precision(change, shuffled):
    model, head, examples = tiny_models.tiny_llama(), replace(HEAD, **change), asked()
    rng = np.random.default_rng(5)
    orders = [rng.permutation(18) if shuffled else np.arange(18) for _ in examples]
    marks = {"tables": [], "columns": []}
    for example, order in zip(examples, orders, strict=True):
        (item,) = [attention_training._prepared(model, head, example, order)]
        names = written(item.prompt)
        shares = dict(zip(names, plain_shares(model, head, item.prompt), strict=True))
        tables = example.graph.tables
        sums = {t: sum(s for (own, _), s in shares.items() if own == table.name) for t, table in enumerate(tables)}
        marks["tables"].append(plain_precision(sums, example.tables))
        columns = {(tables[t].name, tables[t].columns[c].name) for t, c in example.columns}
        if columns:
            marks["columns"].append(plain_precision(shares, columns))
    found = ranking_precision(model, head, examples, np.random.default_rng(5) if shuffled else None)
    table_map, column_map = np.mean(marks["tables"]), np.mean(marks["columns"])
    assert len(marks["columns"]) == 2
    expected = {"table_map": table_map, "column_map": column_map, "criterion": (table_map + column_map) / 2}
    assert found == pytest.approx(expected)


def plain_precision(shares: dict, gold) -> float:
    ranked = sorted(shares, key=lambda item: -shares[item])
    ranks = sorted(ranked.index(item) + 1 for item in gold)
    return sum(place / rank for place, rank in enumerate(ranks, 1)) / len(ranks)
