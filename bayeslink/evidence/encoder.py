"""A learned text channel: the score of a table by a bi-encoder that was fine-tuned on Spider train and BIRD train.

The equation is in `encoder_model`. `encoder_columns` reads names alone, `encoder_descriptions` each column with its
description; both are 0 for a question without words. The encoder is the packaged MiniLM with a difference that the
package carries (`fitted/encoder.npz`; its card says what it was trained on); `scripts/train_encoder.py` trains it.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path

import numpy as np
from jaxtyping import Float

from bayeslink.evidence.cache import GraphMemo
from bayeslink.evidence.embedding import MissingExtraError, spoken
from bayeslink.provenance import sha256
from bayeslink.schema.graph import SchemaGraph, Table
from bayeslink.schema.words import split_words

__all__ = ["ENCODER_FILE", "EncoderMatch", "table_texts"]

ENCODER_FILE = Path(__file__).parent / "fitted" / "encoder.npz"
"""The difference to MiniLM."""


def table_texts(table: Table, described: bool) -> tuple[str, list[str]]:
    """The table's name and the text of each of its columns, in natural language where there is such a form.

    Args:
        table: The table.
        described: Add each column's description.
    """
    name = spoken(table)
    described_as = (f" {column.description}" if described and column.description else "" for column in table.columns)
    return name, [f"{name} {spoken(column)}{text}" for column, text in zip(table.columns, described_as, strict=True)]


@dataclass(frozen=True)
class EncoderMatch:
    """score(q, t) above; on the CPU, without network.

    Attributes:
        described: Read the columns' descriptions.
    """

    described: bool = False

    @property
    def name(self) -> str:
        """The channel's name: encoder_columns or encoder_descriptions."""
        return "encoder_descriptions" if self.described else "encoder_columns"

    @property
    def identity(self) -> str:
        """Version and hash of the difference."""
        return f"{self.name}/1 {sha256(ENCODER_FILE)}"

    def score(self, questions: Sequence[str], graph: SchemaGraph) -> Float[np.ndarray, "questions tables"]:
        """The score of each table for each question; 0 for a question without words.

        Raises:
            MissingExtraError: Without the extra `embeddings`.
            ValueError: If the file of the difference is broken.
        """
        scores = np.zeros((len(questions), graph.num_tables))
        asked = [place for place, question in enumerate(questions) if split_words(question)]
        if not asked or not graph.num_tables:
            return scores
        encoder = _encoder()
        import torch

        with torch.inference_mode():
            tables, place, embedded = _TEXTS[self.described](graph)
            found = encoder.scores(encoder.questions([questions[row] for row in asked]), tables, place, embedded)
        scores[asked] = found.double().numpy()
        return scores


@cache
def _encoder():
    try:
        from bayeslink.evidence.encoder_model import with_difference
    except ImportError as error:
        raise MissingExtraError(f"the encoder needs {error.name}; run pip install 'bayeslink[embeddings]'") from error
    try:
        with np.load(ENCODER_FILE, allow_pickle=False) as file:
            return with_difference({name: file[name] for name in file.files})
    except (OSError, ValueError, KeyError, EOFError) as error:
        raise ValueError(f"encoder {ENCODER_FILE} cannot be read ({error}); install the package again") from error


def _embedded(graph: SchemaGraph, described: bool) -> tuple:
    tables = [table_texts(table, described) for table in graph.tables]
    return tables, *_encoder().texts(tables)


_TEXTS = {described: GraphMemo(partial(_embedded, described=described)) for described in (False, True)}
