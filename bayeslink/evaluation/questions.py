"""Questions to fit or to score: the stored numeric arrays, or a corpus folder."""

import json
import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from bayeslink.evidence.attention import AttentionChannel
from bayeslink.evidence.attention_databases import adapter_databases
from bayeslink.evidence.benchmark import corpus_evidence
from bayeslink.evidence.boosted import BoostedChannel
from bayeslink.evidence.channel import Channel, Evidence, cache_home
from bayeslink.evidence.store import SETS, evidence_home, load_evidence, load_fingerprints, load_twins, stored_files
from bayeslink.schema.corpus import Corpus
from bayeslink.schema.split import find_twins, hashed_fingerprint, twins_of

__all__ = ["Questions", "corpus_questions", "stored_questions", "stored_set"]

Key = tuple[str, str]

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Questions:
    """Questions to fit or to score, with what must be known about where they come from.

    Attributes:
        name: Name of the set.
        evidences: Raw evidence with gold, one per database.
        num_unresolved: Questions left out because their gold SQL does not resolve; a count.
        twins: Twins of each database among the set.
        fingerprints: Hashed fingerprint of each database.
        files: Files that were read, for provenance.
        num_without_query: Questions left out because they have no gold SQL; a count, apart from `num_unresolved`.
        seen: Databases that a learned channel was trained on, or on a twin of, and scores too well.
        with_evidence: Whether the text is the question with its evidence sentence.
    """

    name: str
    evidences: tuple[Evidence, ...]
    num_unresolved: int
    twins: Mapping[Key, Sequence[Key]]
    fingerprints: Mapping[Key, np.ndarray]
    files: tuple[Path, ...] = ()
    num_without_query: int = 0
    seen: tuple[Key, ...] = ()
    with_evidence: bool = False

    def without(self, keys: Iterable[Key]) -> "Questions":
        """The same set without these databases."""
        barred = set(keys)
        return replace(self, evidences=tuple(item for item in self.evidences if item.key not in barred))


def stored_set(data: str, split: str | None, with_evidence: bool) -> str:
    """Name of a stored set from a data set's folder name and a split.

    Args:
        data: "spider", "bird", "bird-train", or the name of a stored set itself.
        split: "train" or "dev" for spider, dev by default; elsewhere there is one split, and it may be left out.
        with_evidence: The set whose text is the question with its evidence sentence.

    Raises:
        ValueError: If there is no such set.
    """
    bare = data.removesuffix("-evidence")
    base = f"{bare}-{split or 'dev'}" if bare in ("spider", "bird") else bare
    name = f"{base}-evidence" if with_evidence or bare != data else base
    if name not in SETS or split not in (None, base.rpartition("-")[2]) or (bare, split) == ("bird", "train"):
        raise ValueError(
            f"data={data!r}, split={split!r}, with_evidence={with_evidence}: no such stored set; "
            f"there are {', '.join(SETS)}"
        )
    return name


def stored_questions(names: Sequence[str], channels: Sequence[str]) -> Questions:
    """The stored sets of these names as one set of questions.

    Raises:
        ValueError: If a set is not there, lacks a channel, or two sets share a database.
    """
    evidences = [item for name in names for item in load_evidence(name, channels)]
    keys = [item.key for item in evidences]
    if len(set(keys)) < len(keys):
        raise ValueError(f"data={list(names)}: two sets share a database; name each database once")
    home = evidence_home()
    unresolved = 0
    for name in names:
        folder = home if name in SETS else home / "rich"
        unresolved += int(json.loads((folder / "manifest.json").read_text())["sets"][name]["n_unresolved"])
    files = tuple(path for name in names for path in stored_files(name, channels))
    prints = load_fingerprints()
    read = any(name.endswith("-evidence") for name in names)
    return Questions("+".join(names), tuple(evidences), unresolved, load_twins(), prints, files, with_evidence=read)


def corpus_questions(
    corpus: Corpus,
    channels: Sequence[Channel],
    with_evidence: bool,
    progress: bool = False,
    files: Sequence[Path] = (),
) -> Questions:
    """A corpus in the line format as a set of questions; scores are kept in the cache.

    A warning is logged where a learned channel was trained on a database of the corpus, known by its name or,
    where the stored fingerprints are there, as a twin.

    Args:
        corpus: The questions and schemas.
        channels: The sources of evidence.
        with_evidence: Score the question with its evidence sentence.
        progress: Show a progress bar on stderr.
        files: Files that hold the corpus, for provenance.
    """
    evidences, resolution = corpus_evidence(
        corpus, channels, with_evidence=with_evidence, cache=cache_home(), progress=progress
    )
    graphs = {(corpus.name, db_id): graph for db_id, graph in corpus.schemas.items()}
    prints = {key: hashed_fingerprint(graph) for key, graph in graphs.items()}
    known_to_some: list[Key] = []
    for channel in channels:
        known = _trained(channel)
        found = [i.key for i in evidences if i.key in known or twins_of(prints[i.key], known)]
        known_to_some += found
        if seen := sorted(db_id for _, db_id in found):
            _log.warning(
                "channel %s: it was trained on %d of these %d databases (%s, ...) or on twins and scores "
                "them too well; fit on the stored sets instead, whose scores are cross-fitted, or leave these out",
                channel.name,
                len(seen),
                len(evidences),
                seen[0],
            )
    unresolved = len(resolution.failures)
    return Questions(
        corpus.name,
        tuple(evidences),
        unresolved,
        find_twins(graphs),
        prints,
        tuple(files),
        resolution.num_without_query,
        tuple(dict.fromkeys(known_to_some)),
        with_evidence,
    )


def _trained(channel: Channel) -> dict[Key, np.ndarray]:
    """Fingerprints of the databases that the channel was trained on; empty ones where none are stored."""
    if isinstance(channel, AttentionChannel):
        found = adapter_databases(channel.head)
        if found is None:
            _log.warning(
                "channel %s: its adapter %s does not say which databases it was trained on (no databases.npz), so that "
                "none can be left out; leave them out yourself",
                channel.name,
                channel.head.adapter,
            )
        return found or {}
    if not isinstance(channel, BoostedChannel):
        return {}
    try:
        stored = load_fingerprints()
    except ValueError:
        stored = {}
    keys = [(dataset, db_id) for dataset, _, db_id in (name.partition("/") for name in channel.trees.trained)]
    return {key: stored.get(key, np.zeros(0, dtype=np.uint64)) for key in keys}
