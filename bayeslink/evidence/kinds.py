"""The lists of channels that models are fitted on, by name.

    lexical          token overlap, BM25 and hashed n-grams: the paper's three channels without a download
    embedding        token overlap, BM25 and sentence embeddings: the paper's three channels
    rich             one channel for each way of reading each field of the catalogue, and hashed n-grams
    rich_embedding   `rich` with the cosines of sentence embeddings

The rich kinds read names, columns, descriptions, types and shape apart (`fields`, `phrases`, `hints`), and leave out
the table's own description (`Field.COMMENT`), which no training database has.
"""

from collections.abc import Sequence

from bayeslink.evidence.channel import Channel
from bayeslink.evidence.embedding import EmbeddingCosine, HashedCosine
from bayeslink.evidence.fields import BestColumn, Field, FieldBM25, FieldOverlap, Match, NameMatch
from bayeslink.evidence.fields_embedding import Cosine, FieldCosine
from bayeslink.evidence.hints import IdentifierHint, Literal, LiteralType, Shape, TableShape
from bayeslink.evidence.lexical import BM25, TokenOverlap
from bayeslink.evidence.phrases import PhraseMatch

__all__ = ["KINDS", "channels_named", "default_channels"]

KINDS = ("lexical", "embedding", "rich", "rich_embedding")
"""Names of the lists of channels."""


def default_channels(kind: str) -> tuple[Channel, ...]:
    """The channels of a kind; those of embeddings need the extra `embeddings` when they score.

    Raises:
        ValueError: If the kind is not one of `KINDS`.
    """
    if kind == "lexical":
        return TokenOverlap(), BM25(), HashedCosine()
    if kind == "embedding":
        return TokenOverlap(), BM25(), EmbeddingCosine()
    if kind == "rich":
        return _rich()
    if kind == "rich_embedding":
        return *_rich(), *map(FieldCosine, Cosine), EmbeddingCosine()
    raise ValueError(f"kind={kind!r}: use one of {', '.join(KINDS)}")


def channels_named(names: Sequence[str]) -> tuple[Channel, ...]:
    """The channels of these names, in this order, with their default settings.

    Raises:
        ValueError: If a name is not a channel's.
    """
    known = {channel.name: channel for kind in KINDS for channel in default_channels(kind)}
    comments = (FieldOverlap(Field.COMMENT), FieldBM25(Field.COMMENT))
    known |= {channel.name: channel for channel in comments}
    if missing := [name for name in names if name not in known]:
        raise ValueError(f"channels {missing} are not known; there are {', '.join(known)}")
    return tuple(known[name] for name in names)


def _rich() -> tuple[Channel, ...]:
    return (
        *map(NameMatch, Match),
        PhraseMatch(Field.NAME),
        FieldBM25(Field.NAME),
        *(
            kind(field)
            for field in (Field.COLUMNS, Field.DESCRIPTIONS)
            for kind in (FieldOverlap, FieldBM25, BestColumn)
        ),
        PhraseMatch(Field.COLUMNS),
        PhraseMatch(Field.COLUMNS, count=True),
        IdentifierHint(),
        *map(LiteralType, Literal),
        *map(TableShape, Shape),
        HashedCosine(),
    )
