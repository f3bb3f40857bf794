"""The lists of channels that models are fitted on, by name.

    lexical          token overlap, BM25 and hashed n-grams: the paper's three channels without a download
    embedding        token overlap, BM25 and sentence embeddings: the paper's three channels
    rich             one channel for each way of reading each field of the catalogue, and hashed n-grams
    rich_embedding   `rich` with the cosines of sentence embeddings
    boosted          trees trained on `rich_embedding` (`boosted`), one channel
    boosted_names    the same without column descriptions
    boosted_lexical  trees trained on `rich`

The rich kinds read names, columns, descriptions, types and shape apart (`fields`, `phrases`, `hints`), and leave out
the table's own description (`Field.COMMENT`), which no training database has.
"""

from collections.abc import Sequence
from pathlib import Path

from bayeslink.evidence.boosted import BoostedChannel
from bayeslink.evidence.channel import Channel
from bayeslink.evidence.embedding import EmbeddingCosine, HashedCosine
from bayeslink.evidence.fields import BestColumn, Field, FieldBM25, FieldOverlap, Match, NameMatch
from bayeslink.evidence.fields_embedding import Cosine, FieldCosine
from bayeslink.evidence.hints import IdentifierHint, Literal, LiteralType, Shape, TableShape
from bayeslink.evidence.lexical import BM25, TokenOverlap
from bayeslink.evidence.phrases import PhraseMatch

__all__ = ["KINDS", "TREES", "TREES_HOME", "channels_named", "default_channels", "trees_base"]

TREES = ("boosted", "boosted_names", "boosted_lexical")
"""Lists of one channel that trees make of others."""

KINDS = ("lexical", "embedding", "rich", "rich_embedding", *TREES)
"""Names of the lists of channels."""

TREES_HOME = Path(__file__).parent / "fitted"
"""Folder of the trees."""


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
    if kind in TREES:
        return (BoostedChannel(kind, channels_named(trees_base(kind)), TREES_HOME / f"{kind}.json.gz"),)
    raise ValueError(f"channels={kind!r}: use one of {', '.join(KINDS)}")


def channels_named(names: Sequence[str]) -> tuple[Channel, ...]:
    """The channels of these names, in this order, with their default settings.

    Raises:
        ValueError: If a name is not a channel's, or is there twice.
    """
    plain = [kind for kind in KINDS if kind not in TREES]
    known = {channel.name: channel for kind in plain for channel in default_channels(kind)}
    if set(names) & set(TREES):
        known |= {kind: default_channels(kind)[0] for kind in TREES}
    comments = (FieldOverlap(Field.COMMENT), FieldBM25(Field.COMMENT))
    known |= {channel.name: channel for channel in comments}
    if missing := [name for name in names if name not in known]:
        there = ", ".join(sorted({*known, *TREES}))
        raise ValueError(
            f"channels={','.join(names)!r}: {', '.join(missing)} unknown; use one of the lists {', '.join(KINDS)}, "
            f"or of the channels {there}"
        )
    if len(set(names)) < len(names):
        raise ValueError(f"channels={','.join(names)!r}: a channel is named twice; name each once")
    return tuple(known[name] for name in names)


def trees_base(kind: str) -> tuple[str, ...]:
    """Names of the channels that one of `TREES` is trained on.

    Raises:
        ValueError: If there are no such trees.
    """
    if kind not in TREES:
        raise ValueError(f"channels={kind!r}: use one of {', '.join(TREES)}")
    names = [channel.name for channel in default_channels("rich" if kind == "boosted_lexical" else "rich_embedding")]
    return tuple(name for name in names if kind != "boosted_names" or not name.endswith("_descriptions"))


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
