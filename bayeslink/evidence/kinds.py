"""The lists of channels that models are fitted on, by name.

    lexical          token overlap, BM25 and hashed n-grams: the paper's three channels without a download
    embedding        token overlap, BM25 and sentence embeddings: the paper's three channels
    rich             one channel for each way of reading each field of the catalogue, and hashed n-grams
    rich_embedding   `rich` with the cosines of sentence embeddings
    boosted          trees trained on `rich_embedding` (`boosted`), one channel
    boosted_names    the same without column descriptions
    boosted_lexical  trees trained on `rich`
    learned          trees trained on `rich_embedding` and the learned text channel (`encoder`)
    learned_names    the same without column descriptions
    attention        `embedding` with the attention of a language model (`attention`)

The rich kinds read names, columns, descriptions, types and shape apart (`fields`, `phrases`, `hints`), and leave out
the table's own description (`Field.COMMENT`), which no training database has.
"""

from collections.abc import Sequence
from pathlib import Path

from bayeslink.evidence.attention import AttentionChannel, AttentionHead
from bayeslink.evidence.boosted import BoostedChannel
from bayeslink.evidence.channel import Channel
from bayeslink.evidence.embedding import EmbeddingCosine, HashedCosine
from bayeslink.evidence.encoder import EncoderMatch
from bayeslink.evidence.fields import BestColumn, Field, FieldBM25, FieldOverlap, Match, NameMatch
from bayeslink.evidence.fields_embedding import Cosine, FieldCosine
from bayeslink.evidence.hints import IdentifierHint, Literal, LiteralType, Shape, TableShape
from bayeslink.evidence.lexical import BM25, TokenOverlap
from bayeslink.evidence.phrases import PhraseMatch

__all__ = [
    "ATTENTION_HOME",
    "BOOSTED",
    "KINDS",
    "LEARNED",
    "TREES",
    "TREES_HOME",
    "attention_channel",
    "channels_named",
    "default_channels",
    "shipped_head",
    "trees_base",
]

BOOSTED = ("boosted", "boosted_names", "boosted_lexical")
LEARNED = ("learned", "learned_names")
TREES = (*BOOSTED, *LEARNED)
"""Lists of one channel that trees make of others: of cheap channels, and of these with the learned text channel."""

KINDS = ("lexical", "embedding", "rich", "rich_embedding", *TREES, "attention")
"""Names of the lists of channels."""

ATTENTION_HOME = Path(__file__).parent / "fitted" / "attention"
"""Folder of the adapter that the package carries."""

TREES_HOME = Path(__file__).parent / "fitted"
"""Folder of the trees."""


def default_channels(kind: str, model: str | None = None) -> tuple[Channel, ...]:
    """The channels of a kind; those of embeddings need the extra `embeddings` when they score.

    Args:
        kind: One of `KINDS`.
        model: For "attention": what `attention_channel` reads; the adapter in the package by default.

    Raises:
        ValueError: If the kind is not one of `KINDS`, or a model is named for one without attention.
    """
    if kind == "attention":
        return TokenOverlap(), BM25(), EmbeddingCosine(), attention_channel(model)
    if model is not None:
        raise ValueError(f"model={model!r}: channels {kind} read no language model; leave it out, or use attention")
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


def attention_channel(model: str | None = None) -> AttentionChannel:
    """The channel of a language model's attention.

    Args:
        model: A folder with `head.json`, or that file: where attention is read, as scripts/train_attention.py finds or
            trains it; the adapter in the package by default. The channel of that one is called `attention`, another's
            `attention_` and the start of its hash, so that no posterior takes the one for the other.

    Raises:
        ValueError: If there is no head.
    """
    if model is None:
        ours = shipped_head()
        if ours is None:
            raise ValueError(
                "model=None: the package carries no adapter; name the folder of one, made with "
                "scripts/train_attention.py"
            )
        return AttentionChannel(ours)
    path = Path(model) / "head.json" if Path(model).is_dir() else Path(model)
    if path.suffix != ".json" or not path.is_file():
        raise ValueError(
            f"model={model!r} is no folder with head.json; find the head of a language model, or train one, with "
            "scripts/train_attention.py --out FOLDER and name that folder"
        )
    head = AttentionHead.load(path)
    # The package's own head by another path is still the one that the shipped posteriors were fitted on.
    ours = shipped_head()
    same = ours is not None and head.digest == ours.digest
    return AttentionChannel(head, **({} if same else {"label": f"attention_{head.digest[:8]}"}))


def shipped_head() -> AttentionHead | None:
    """The head that the package carries; None where it carries none."""
    path = ATTENTION_HOME / "head.json"
    return AttentionHead.load(path) if path.is_file() else None


def channels_named(names: Sequence[str], model: str | None = None) -> tuple[Channel, ...]:
    """The channels of these names, in this order, with their default settings.

    Args:
        names: Names of channels.
        model: What the channel of attention reads; see `attention_channel`.

    Raises:
        ValueError: If a name is not a channel's, or is there twice.
    """
    plain = [kind for kind in KINDS if kind not in (*TREES, "attention")]
    known = {channel.name: channel for kind in plain for channel in default_channels(kind)}
    if set(names) & set(TREES):
        known |= {kind: default_channels(kind)[0] for kind in TREES}
    read = [name for name in names if name.startswith("attention")]
    if model is not None and not read:
        raise ValueError(
            f"model={model!r}: none of {', '.join(names)} reads a language model; leave it out, or name a posterior of "
            "its attention"
        )
    if read:
        channel = attention_channel(model)
        if read != [channel.name]:
            raise ValueError(
                f"model={model!r}: its channel is {channel.name}, asked for is {', '.join(read)}; name the model that "
                "the posterior was fitted on"
            )
        known[channel.name] = channel
    others = (FieldOverlap(Field.COMMENT), FieldBM25(Field.COMMENT), EncoderMatch(False), EncoderMatch(True))
    known |= {channel.name: channel for channel in others}
    if missing := [name for name in names if name not in known]:
        there = ", ".join(sorted({*known, *TREES, "attention"}))
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
    names += ["encoder_columns", "encoder_descriptions"] if kind in LEARNED else []
    return tuple(name for name in names if not kind.endswith("_names") or not name.endswith("_descriptions"))


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
