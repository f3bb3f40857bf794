"""AttnLink-S: a LoRA adapter trained so that the attention of one head falls on the gold candidates.

With pi the distribution over candidates at tau = 1 (`attention`) and I+ the gold ones (shared reference, equations 7
to 11),

    loss = -log(sum_{i in I+} pi_i + eps) + (1 / |I+|) sum_{i in I+} max(0, log((rho / |I+| + eps) / (pi_i + eps)))

the set-mass loss and the adaptive floor. A step may add the same loss over tables, pi summed over each table's
columns, so that one prompt teaches both. LoRA sits on all linear layers up to the chosen one; the layers above it
do not exist for the training. A run writes a checkpoint every so many steps and goes on from it; it stops early when
the mean average precision on held-out databases has not risen for a while, and keeps the best adapter.

This module needs the extra `attention`.
"""

import hashlib
import json
import math
import re
import shutil
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from peft import LoraConfig, get_peft_model, get_peft_model_state_dict, set_peft_model_state_dict
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from tqdm import tqdm

from bayeslink.evidence.attention import EPSILON, AttentionHead, Candidates, anchor_attention, table_distribution
from bayeslink.evidence.attention_model import LanguageModel, quiet
from bayeslink.evidence.attention_prompt import Level, Pool, Prompt, candidates, copying_prompt, pooling
from bayeslink.evidence.cache import replace_file
from bayeslink.schema.graph import SchemaGraph

__all__ = ["Example", "TrainSettings", "pack_adapter", "ranking_precision", "set_mass_loss", "train"]


class Example(NamedTuple):
    """A question with its gold.

    Attributes:
        question: Its text.
        graph: The schema.
        tables: Gold tables.
        columns: Gold (table, column) pairs; may be empty, as for COUNT(*).
    """

    question: str
    graph: SchemaGraph
    tables: frozenset[int]
    columns: frozenset[tuple[int, int]]


@dataclass(frozen=True)
class TrainSettings:
    """Settings of a run; defaults are those of the shipped adapter.

    Attributes:
        both: Where candidates are columns: add the loss over tables.
        rank: Rank of the adapter.
        alpha: Its scale, as in LoRA: alpha / rank multiplies.
        rate: Largest learning rate; it rises over the first twentieth and falls as a cosine.
        batch: Examples of a step.
        steps: Steps in all.
        floor: rho.
        clip: Largest norm of the gradient.
        shuffle: Write the tables of each training prompt in random order.
        every: Steps between checkpoints.
        check_every: Steps between looks at the held-out examples.
        patience: Looks without a gain after which the run stops.
        longest: Examples with longer prompts are left out, and how many are kept is logged; tokens.
        bfloat16: Multiply in bfloat16.
        seed: Seed of the order and of the adapter.
    """

    both: bool = True
    rank: int = 16
    alpha: int = 32
    rate: float = 1e-3
    batch: int = 4
    steps: int = 1000
    floor: float = 0.25
    clip: float = 1.0
    shuffle: bool = True
    every: int = 50
    check_every: int = 200
    patience: int = 5
    longest: int = 1024
    bfloat16: bool = False
    seed: int = 0

    def __post_init__(self) -> None:
        counts = ("rank", "alpha", "batch", "steps", "every", "check_every", "patience", "longest")
        for name in counts:
            if getattr(self, name) < 1:
                raise ValueError(f"{name}={getattr(self, name)}: a positive whole number is needed")
        if not 0 <= self.floor <= 1:
            raise ValueError(f"floor={self.floor}: a share between 0 and 1 is needed")
        if not self.rate > 0 or not self.clip > 0:
            raise ValueError(f"rate={self.rate}, clip={self.clip}: positive numbers are needed")


def set_mass_loss(shares: torch.Tensor, gold: torch.Tensor, floor: float) -> torch.Tensor:
    """The loss above of one example.

    Args:
        shares: pi [candidates].
        gold: True for the candidates of I+; at least one.
        floor: rho.
    """
    own = shares[gold]
    least = floor / len(own)
    below = torch.clamp(math.log(least + EPSILON) - torch.log(own + EPSILON), min=0.0)
    return -torch.log(own.sum() + EPSILON) + below.mean()


def train(
    model: LanguageModel,
    head: AttentionHead,
    examples: Sequence[Example],
    held_out: Sequence[Example],
    folder: Path,
    settings: TrainSettings = TrainSettings(),
    minutes: float = math.inf,
    progress: bool = False,
) -> Path:
    """Train an adapter for a head and keep it in `folder / "adapter"`; a second call goes on from the checkpoint.

    Args:
        model: The language model, without an adapter; it is left as it was.
        head: Layer, head and prompt.
        examples: Training examples.
        held_out: Examples of other databases, for stopping early; may be empty.
        folder: Folder of checkpoint, log and adapter.
        settings: Settings of the run.
        minutes: Stop after so many; the checkpoint keeps what was reached, and a second call ends where one that was
            not stopped would have.
        progress: Show a progress bar.

    Raises:
        ValueError: If no example or no held-out one fits, or the folder holds another run.
    """
    folder.mkdir(parents=True, exist_ok=True)
    own, looked_at = (_fitting(model, head, some, settings) for some in (examples, held_out))
    if not own or (held_out and not looked_at):
        given = ("held_out", held_out) if own else ("examples", examples)
        raise ValueError(
            f"{given[0]}: none of {len(given[1])} has gold and a prompt of at most {settings.longest} tokens; raise "
            "`longest` or give others"
        )
    adapted = _with_adapter(model, head, settings)
    try:
        return _trained(adapted, head, own, [item.example for item in looked_at], folder, settings, minutes, progress)
    finally:
        adapted.model.unload()


def _trained(
    adapted: LanguageModel,
    head: AttentionHead,
    own: Sequence["_Prepared"],
    held_out: Sequence[Example],
    folder: Path,
    settings: TrainSettings,
    minutes: float,
    progress: bool,
) -> Path:
    weights = [parameter for parameter in adapted.model.parameters() if parameter.requires_grad]
    optimizer = torch.optim.AdamW(weights, lr=settings.rate, weight_decay=0.0)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: _rate(step, settings.steps))
    run = _fingerprint(adapted, head, own, held_out, settings)
    state = _resumed(folder, run, adapted, optimizer, schedule)
    _log(folder, {"examples": len(own), "held_out": len(held_out), "from_step": state["step"], **asdict(settings)})
    lengths = [len(item.tokens) for item in own]
    batches = list(_batches(lengths, settings))
    started, losses, best = time.perf_counter(), [], state["best"]
    adapted.model.train()
    for step in tqdm(
        range(state["step"], settings.steps), initial=state["step"], total=settings.steps, disable=not progress
    ):
        if held_out and best["step"] and step - best["step"] >= settings.patience * settings.check_every:
            break
        rng = np.random.default_rng([settings.seed, step])
        chosen = [own[place] for place in batches[step]]
        if settings.shuffle:
            orders = [_table_order(item.example.graph, head.level, rng) for item in chosen]
            chosen = [_prepared(adapted, head, item.example, o) for item, o in zip(chosen, orders, strict=True)]
        with torch.autocast("cpu", torch.bfloat16, enabled=settings.bfloat16):
            loss = _batch_loss(adapted, head, chosen, settings)
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(weights, settings.clip)
        optimizer.step()
        schedule.step()
        losses.append(loss.item())
        number, late = step + 1, time.perf_counter() - started > 60 * minutes
        # Only on the grid, so that a run that was stopped in between looks where one that was not would have.
        if held_out and (number % settings.check_every == 0 or number == settings.steps):
            precision = ranking_precision(adapted, head, held_out)
            _log(folder, {"step": number, **precision})
            if precision["criterion"] > best["criterion"]:
                best = {"criterion": precision["criterion"], "step": number}
                _save_adapter(adapted, folder)
        if number % settings.every == 0 or number == settings.steps or late:
            spent = time.perf_counter() - started
            _log(folder, {"step": number, "loss": float(np.mean(losses[-settings.every :])), "seconds": spent})
            _checkpoint(folder, run, adapted, optimizer, schedule, {"step": number, "best": best})
        if late:
            break
    if not best["step"]:
        _save_adapter(adapted, folder)
    return folder / "adapter"


def ranking_precision(
    model: LanguageModel,
    head: AttentionHead,
    examples: Sequence[Example],
    shuffle: np.random.Generator | None = None,
) -> dict[str, float]:
    """Mean average precision over tables and over columns, and their mean, the criterion of stopping.

    Columns are scored on the examples that have a gold column.

    Args:
        model: The language model, with the adapter if there is one.
        head: Layer, head, prompt and pooling.
        examples: Questions with their gold.
        shuffle: Write the candidates of each prompt in a random order drawn from it; the catalogue's by default.
    """
    sizes = (len(candidates(item.graph, head.level)[0]) for item in examples)
    orders = [None if shuffle is None else shuffle.permutation(size) for size in sizes]
    prompts = [_prompt(head, example, order) for example, order in zip(examples, orders, strict=True)]
    was_training = model.model.training
    model.model.eval()
    found = anchor_attention(model, prompts, [head.layer], head.pooling, [head.head])
    model.model.train(was_training)
    tables, columns = [], []
    for example, prompt, scores in zip(examples, prompts, found, strict=True):
        shares = table_distribution(Candidates(scores[0], prompt.owner, prompt.column), example.graph.num_tables)[0]
        tables.append(_precision(shares, np.isin(np.arange(len(shares)), list(example.tables))))
        if head.level is Level.COLUMN and example.columns:
            columns.append(_precision(scores[0, 0], _gold(example, prompt)))
    result = {"table_map": float(np.mean(tables))}
    if columns:
        result["column_map"] = float(np.mean(columns))
    return result | {"criterion": float(np.mean(list(result.values())))}


def pack_adapter(folder: Path, out: Path) -> float:
    """Write an adapter in a quarter of its size, in eight-bit floats that peft reads as they are.

    The product B A of each layer is kept to some percent: A and B are multiplied by powers of two that bring them into
    the range of float8_e4m3, the same product of powers for every layer, by which `lora_alpha` is divided. Layers that
    the training did not move become zero.

    Args:
        folder: The adapter.
        out: Folder of the packed one.

    Returns:
        The largest relative error of B A among the layers, in the Frobenius norm.

    Raises:
        ValueError: If the folder holds no adapter that was trained.
    """
    try:
        weights = load_file(folder / "adapter_model.safetensors")
        config = json.loads((folder / "adapter_config.json").read_text())
    except (OSError, SafetensorError, ValueError) as error:
        raise ValueError(f"folder={str(folder)!r}: no adapter ({error}); train one first") from error
    layers = sorted({name.rpartition(".lora_")[0] for name in weights})
    pairs = {name: (weights[f"{name}.lora_A.weight"], weights[f"{name}.lora_B.weight"]) for name in layers}
    moved = {name: pair for name, pair in pairs.items() if all(part.any() for part in pair)}
    if not moved:
        raise ValueError(f"folder={str(folder)!r}: its adapter changes nothing; train it first")
    scale = min(_room(a) * _room(b) for a, b in moved.values())
    packed, worst = {}, 0.0
    for name, (a, b) in pairs.items():
        own = _room(a) if name in moved else 0.0
        first, second = ((x * y).to(torch.float8_e4m3fn) for x, y in ((a, own), (b, scale / own if own else 0.0)))
        packed |= {f"{name}.lora_A.weight": first, f"{name}.lora_B.weight": second}
        if name in moved:
            change = second.float() @ first.float() / scale - b @ a
            worst = max(worst, (change.norm() / (b @ a).norm()).item())
    out.mkdir(parents=True, exist_ok=True)
    config |= {"lora_alpha": config["lora_alpha"] / scale, "base_model_name_or_path": ""}
    config["target_modules"] = sorted(config["target_modules"])
    save_file(packed, out / "adapter_model.safetensors", metadata={"format": "pt"})
    (out / "adapter_config.json").write_text(json.dumps(config, indent=1) + "\n")
    return worst


def _room(weights: torch.Tensor) -> float:
    """The largest power of two by which the weights stay below 256, inside the range of float8_e4m3."""
    return 2.0 ** math.floor(math.log2(256 / weights.abs().max().item()))


class _Prepared(NamedTuple):
    """An example with its prompt and where its tokens are."""

    example: Example
    prompt: Prompt
    tokens: list[int]
    pool: Pool


def _prompt(head: AttentionHead, example: Example, order: np.ndarray | None = None) -> Prompt:
    return copying_prompt(
        example.question,
        example.graph,
        head.level,
        instruction=head.instruction,
        with_schema=head.with_schema,
        order=None if order is None else order.tolist(),
    )


def _prepared(
    model: LanguageModel, head: AttentionHead, example: Example, order: np.ndarray | None = None
) -> _Prepared:
    prompt = _prompt(head, example, order)
    text, begins = model.chat(prompt.text)
    ((ids, offsets),) = model.tokens([text])
    return _Prepared(example, prompt, ids, pooling(prompt.spans + begins, offsets, head.pooling))


def _fitting(
    model: LanguageModel, head: AttentionHead, examples: Sequence[Example], settings: TrainSettings
) -> list[_Prepared]:
    """The examples whose prompt is short enough and that have gold for a loss."""
    useful = [
        item
        for item in examples
        if len(candidates(item.graph, head.level)[0])
        and (item.columns if head.level is Level.COLUMN and not settings.both else item.tables)
    ]
    return [item for item in (_prepared(model, head, one) for one in useful) if len(item.tokens) <= settings.longest]


def _table_order(graph: SchemaGraph, level: Level, rng: np.random.Generator) -> np.ndarray:
    """The candidates with their tables in random order, the columns of each in the catalogue's."""
    rank = rng.permutation(graph.num_tables)
    return np.argsort(rank[candidates(graph, level)[0]], kind="stable")


def _gold(example: Example, prompt: Prompt) -> np.ndarray:
    pairs = zip(prompt.owner.tolist(), prompt.column.tolist(), strict=True)
    return np.array([(t in example.tables) if c < 0 else ((t, c) in example.columns) for t, c in pairs], dtype=bool)


def _batch_loss(
    model: LanguageModel, head: AttentionHead, chosen: Sequence[_Prepared], settings: TrainSettings
) -> torch.Tensor:
    weights = model.weights([item.tokens for item in chosen], [head.layer], [head.head])[head.layer]
    losses = []
    for row, item in enumerate(chosen):
        on_tokens = weights[row, 0, torch.tensor(item.pool.token)].float()
        parts_of = on_tokens * torch.tensor(item.pool.weight, dtype=torch.float32)
        scores = torch.zeros(len(item.prompt.owner)).index_add(0, torch.tensor(item.pool.candidate), parts_of)
        shares = (scores + EPSILON) / (scores + EPSILON).sum()
        gold = torch.tensor(_gold(item.example, item.prompt))
        parts = [set_mass_loss(shares, gold, settings.floor)] if gold.any() else []
        if head.level is Level.COLUMN and settings.both:
            num_tables = item.example.graph.num_tables
            tables = torch.zeros(num_tables).index_add(0, torch.tensor(item.prompt.owner), shares)
            needed = torch.zeros(num_tables, dtype=torch.bool)
            needed[sorted(item.example.tables)] = True
            parts.append(set_mass_loss(tables, needed, settings.floor))
        losses.append(torch.stack(parts).sum())
    return torch.stack(losses).mean()


def _with_adapter(model: LanguageModel, head: AttentionHead, settings: TrainSettings) -> LanguageModel:
    layers = _linear_layers(model.model, head.layer)
    if not layers or getattr(model.model, "peft_config", None):
        reason = "has an adapter already" if layers else "has no linear layer to adapt"
        raise ValueError(f"model={model.name!r} {reason}; give a plain Llama, Qwen, Mistral or SmolLM model")
    torch.manual_seed(settings.seed)
    config = LoraConfig(
        r=settings.rank,
        lora_alpha=settings.alpha,
        lora_dropout=0.0,
        target_modules=layers,
    )
    with quiet():
        adapted = get_peft_model(model.model, config)
    return LanguageModel(model.name, model.revision, model.tokenizer, adapted)


def _linear_layers(model: torch.nn.Module, last: int) -> list[str]:
    """Names of the linear layers of the blocks 0 to `last`."""
    linear = [name for name, module in model.named_modules() if isinstance(module, torch.nn.Linear)]
    numbered = [(name, re.search(r"\.(\d+)\.", name)) for name in linear]
    return [name for name, found in numbered if found and int(found[1]) <= last]


def _rate(step: int, steps: int) -> float:
    """Share of the largest learning rate at a step."""
    warm = max(1, steps // 20)
    if step < warm:
        return (step + 1) / warm
    return 0.5 * (1 + math.cos(math.pi * (step - warm) / max(1, steps - warm)))


def _batches(lengths: Sequence[int], settings: TrainSettings) -> Iterator[list[int]]:
    """Places of the examples of each step, like lengths together; every example once an epoch."""
    rng = np.random.default_rng(settings.seed)
    done = 0
    while done < settings.steps:
        order = rng.permutation(len(lengths))
        epoch = []
        for start in range(0, len(order), 16 * settings.batch):
            window = sorted(order[start : start + 16 * settings.batch].tolist(), key=lambda place: lengths[place])
            epoch += [window[place : place + settings.batch] for place in range(0, len(window), settings.batch)]
        for place in rng.permutation(len(epoch))[: settings.steps - done]:
            done += 1
            yield epoch[place]


def _precision(scores: np.ndarray, gold: np.ndarray) -> float:
    hits = gold[np.argsort(-scores, kind="stable")]
    return float((np.cumsum(hits) / np.arange(1, len(hits) + 1) * hits).sum() / hits.sum())


def _save_adapter(model: LanguageModel, folder: Path) -> None:
    """The adapter, written beside the old one and then put in its place."""
    made = folder / "adapter.new"
    model.model.save_pretrained(made)
    shutil.rmtree(folder / "adapter", ignore_errors=True)
    made.rename(folder / "adapter")


def _fingerprint(
    model: LanguageModel,
    head: AttentionHead,
    own: Sequence[_Prepared],
    held_out: Sequence[Example],
    settings: TrainSettings,
) -> str:
    """A text that differs whenever a run would: settings, head, weights and examples."""
    taught = [[item.tokens, sorted(item.example.tables), sorted(item.example.columns)] for item in own]
    looked_at = [[_prompt(head, item).text, sorted(item.tables), sorted(item.columns)] for item in held_out]
    digest = hashlib.sha256(json.dumps([taught, looked_at]).encode()).hexdigest()
    return json.dumps([asdict(settings), asdict(head), model.revision, digest])


def _checkpoint(folder, run, adapted, optimizer, schedule, state) -> None:
    content = {
        **state,
        "run": run,
        "adapter": get_peft_model_state_dict(adapted.model),
        "optimizer": optimizer.state_dict(),
        "schedule": schedule.state_dict(),
    }
    replace_file(folder / "checkpoint.pt", lambda file: torch.save(content, file))


def _resumed(folder, run, adapted, optimizer, schedule) -> dict:
    path = folder / "checkpoint.pt"
    if not path.is_file():
        return {"step": 0, "best": {"criterion": -math.inf, "step": 0}}
    try:
        state = torch.load(path, weights_only=True)
        known = state["run"]
    except Exception as error:  # torch raises what it likes on a file that is none of its own
        raise ValueError(f"folder={str(folder)!r}: checkpoint.pt cannot be read ({error}); remove it") from error
    if known != run:
        raise ValueError(
            f"folder={str(folder)!r} holds a run with other settings, head, model or examples; name another folder"
        )
    set_peft_model_state_dict(adapted.model, state["adapter"])
    optimizer.load_state_dict(state["optimizer"])
    schedule.load_state_dict(state["schedule"])
    return {"step": state["step"], "best": state["best"]}


def _log(folder: Path, line: dict) -> None:
    with (folder / "log.jsonl").open("a") as file:
        file.write(json.dumps(line) + "\n")
