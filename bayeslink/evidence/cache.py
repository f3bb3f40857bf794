"""Scores kept on disk between runs, and indexes kept in memory between questions.

A stored entry is one array, keyed by everything that it depends on: the channel's identity, the
content of the schema graph and the questions. An entry that cannot be read is computed again and a
warning logged. Nothing is pickled.
"""

import hashlib
import json
import logging
import os
import tempfile
import zipfile
from collections import OrderedDict
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import IO, Generic, TypeVar

import numpy as np
import platformdirs
from jaxtyping import Float

from bayeslink.schema.graph import SchemaGraph

__all__ = ["GraphMemo", "cache_home", "cached_scores", "checkout", "graph_digest", "replace_file"]

MAX_GRAPHS = 16
"""Graphs whose index a channel keeps in memory; a count."""

_log = logging.getLogger(__name__)

Index = TypeVar("Index")


class GraphMemo(Generic[Index]):
    """A function of a schema graph that remembers its last results, by the identity of the graph."""

    def __init__(self, build: Callable[[SchemaGraph], Index]) -> None:
        self._build = build
        self._kept: OrderedDict[int, tuple[SchemaGraph, Index]] = OrderedDict()

    def __call__(self, graph: SchemaGraph) -> Index:
        """The function's value, built when this graph object is not among the last `MAX_GRAPHS`."""
        kept = self._kept.get(id(graph))
        if kept is not None and kept[0] is graph:
            return kept[1]
        index = self._build(graph)
        self._kept[id(graph)] = (graph, index)
        while len(self._kept) > MAX_GRAPHS:
            self._kept.popitem(last=False)
        return index


def cached_scores(
    folder: Path,
    identity: str,
    graph: SchemaGraph,
    questions: Sequence[str],
    compute: Callable[[], Float[np.ndarray, "questions tables"]],
    complete: Callable[[], bool] = lambda: True,
) -> Float[np.ndarray, "questions tables"]:
    """The stored scores of one channel on one database, computed and stored where there are none.

    Args:
        folder: Cache folder; entries lie in its subfolder `channels`.
        identity: Identity of the channel.
        graph: Schema of the database.
        questions: Texts of the questions.
        compute: Computes the scores.
        complete: Asked afterwards, whether they may be stored.
    """
    key = hashlib.sha256(json.dumps([identity, graph_digest(graph), list(questions)]).encode()).hexdigest()
    path = folder / "channels" / f"{key}.npz"
    if path.is_file():
        try:
            with path.open("rb") as file, np.load(file, allow_pickle=False) as entry:
                scores = entry["scores"]
            if scores.shape == (len(questions), graph.num_tables) and scores.dtype == np.float64:
                return scores
            reason = f"it holds {scores.dtype} of shape {scores.shape}"
        except (OSError, EOFError, KeyError, ValueError, zipfile.BadZipFile) as error:
            reason = str(error)
        _log.warning("cache entry %s of channel %s is corrupt and computed again: %s", path, identity, reason)
    scores = compute()
    if not complete():
        return scores
    replace_file(path, lambda file: np.savez_compressed(file, scores=scores))
    return scores


def replace_file(path: Path, write: Callable[[IO[bytes]], object]) -> None:
    """Write a file whole or not at all: to a temporary name beside it, synchronised, then renamed.

    Args:
        path: The file; its folder is made.
        write: Writes to the binary file object it is given.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") as file:
            write(file)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(temporary, 0o644)
        os.replace(temporary, path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def graph_digest(graph: SchemaGraph) -> str:
    """SHA-256 of what a channel can read of a graph: tables, columns, their texts, the edges and the keys."""
    tables = [
        [
            *(table.schema, table.name, table.natural_name, table.description),
            [[c.name, c.type, c.natural_name, c.description, c.primary_key] for c in table.columns],
        ]
        for table in graph.tables
    ]
    keys = [[key.table, key.columns, key.ref_table] for key in graph.foreign_keys]
    return hashlib.sha256(json.dumps([tables, graph.edge_array.tolist(), keys]).encode()).hexdigest()


def checkout() -> Path | None:
    """Root of the source checkout that the package runs from; None for an installed package."""
    root = Path(__file__).resolve().parents[2]
    return root if (root / "pyproject.toml").is_file() else None


def cache_home() -> Path:
    """Folder of what can be computed again: `$BAYESLINK_CACHE`, `data/cache` of a checkout, or the user's."""
    if stated := os.environ.get("BAYESLINK_CACHE"):
        return Path(stated)
    root = checkout()
    return root / "data" / "cache" if root else Path(platformdirs.user_cache_dir("bayeslink"))
