"""What another retrieval system returned for the benchmarks' questions, measured once and stored as numbers.

A file holds one set of questions, its databases one after the other: for each number of tables k that was asked
for, `place [ks, pairs]` over (question, table) pairs, row by row; k itself; and the number of tables and questions
of each database. Questions and databases are those of the stored evidence of the same set, in the same order, so
the two can be paired. Its only texts are the names of databases. A run on a pool of databases is stored by how many
tables came back for each question and whether all gold tables, of the right database, were among them.
"""

import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Int

from bayeslink.evidence.store import WAREHOUSE_SETS, DatabaseKey, save_arrays, stored_home

__all__ = [
    "CURVE_SETS",
    "FUSED_SETS",
    "PEER_SETS",
    "POOLED_RUN",
    "POOLED_RUNS",
    "Returned",
    "ReturnedFromPool",
    "load_pooled",
    "load_returned",
    "peers_home",
    "save_pooled",
    "save_returned",
]

PEER_SETS = (
    "schemagate-spider-dev",
    "schemagate-bird-dev",
    "schemagate-bird-dev-evidence",
    "schemagate-bird-dev-descriptions",
    "schemagate-bird-dev-evidence-descriptions",
)
"""Names of the stored runs: system, set of questions, and "-descriptions" where it read the columns' descriptions."""

FUSED_SETS = tuple(name.replace("schemagate", "fused") for name in PEER_SETS)
"""Names of the stored runs of `FusedRetriever` on the same questions; the order of its places has no meaning."""

POOLED_RUN = "schemagate-spider-dev-pooled"
"""Name of the stored run on all databases of Spider at once."""

POOLED_RUNS = (POOLED_RUN, "schemagate-bird-dev-pooled", "schemagate-bird-dev-evidence-pooled")
"""Names of the stored runs on all databases of a data set at once."""

CURVE_SETS = (
    *(f"curves/{name}" for name in PEER_SETS),
    *(f"curves/schemagate-{name}-descriptions" for name in WAREHOUSE_SETS if not name.endswith("-inferred")),
)
"""Names of the stored runs at many numbers of tables; those of the warehouses have no other."""


class ReturnedFromPool(NamedTuple):
    """What came back from a pool for each question, in the order of the corpus.

    Attributes:
        size: Number of tables.
        holds_gold: Whether every gold table of the right database is among them.
    """

    size: Int[np.ndarray, " questions"]
    holds_gold: Bool[np.ndarray, " questions"]


@dataclass(frozen=True)
class Returned:
    """Tables returned for the questions of one database, keyed (dataset, db_id).

    Attributes:
        dataset: Data set of the database.
        db_id: The database.
        place: 1 for the table that came back first, 2 for the second, ...; 0 for one that did not come back.

    Raises:
        ValueError: If the places of a question are not 1, 2, ... up to the number of its tables.
    """

    dataset: str
    db_id: str
    place: Int[np.ndarray, "questions tables"]

    def __post_init__(self) -> None:
        for question, row in enumerate(self.place):
            found = np.sort(row[row != 0])
            if not np.array_equal(found, np.arange(1, len(found) + 1)):
                raise ValueError(
                    f"place of question {question} of {self.dataset}/{self.db_id} holds {found.tolist()}; "
                    "number the returned tables 1, 2, ..."
                )

    @property
    def key(self) -> DatabaseKey:
        """(dataset, db_id)."""
        return self.dataset, self.db_id

    @property
    def chosen(self) -> Bool[np.ndarray, "questions tables"]:
        """True where the table came back."""
        return self.place > 0


def peers_home() -> Path:
    """Folder of the stored runs: `$BAYESLINK_PEERS`, else `data/peers` of a checkout.

    Raises:
        ValueError: If the folder is not there.
    """
    return stored_home("BAYESLINK_PEERS", "peers", "stored runs of peers")


def load_returned(name: str, k: int) -> list[Returned]:
    """What came back for each database of a stored run when k tables were asked for; it may be more than k.

    Args:
        name: One of `PEER_SETS`, `FUSED_SETS` or `CURVE_SETS`.
        k: Number of tables asked for.

    Raises:
        ValueError: If the run is not there, was not made at that k, or its file is broken.
    """
    known = (*PEER_SETS, *FUSED_SETS, *CURVE_SETS)
    if name not in known:
        raise ValueError(f"name={name!r}: use one of {', '.join(known)}")
    arrays = _arrays(name)
    ks = arrays["ks"].tolist()
    if k not in ks:
        raise ValueError(f"k={k}: {name} was run at k in {ks}; use one of these or run it again")
    place = arrays["place"][ks.index(k)].astype(np.int64)
    dataset, db_ids = str(arrays["dataset"]), arrays["db_ids"].tolist()
    shapes = list(zip(arrays["num_questions"].tolist(), arrays["num_tables"].tolist(), strict=True))
    parts = np.split(place, np.cumsum([questions * tables for questions, tables in shapes])[:-1])
    return [
        Returned(dataset, db_id, part.reshape(shape)) for db_id, part, shape in zip(db_ids, parts, shapes, strict=True)
    ]


def save_returned(path: Path, runs: Mapping[int, Sequence[Returned]]) -> None:
    """Write what came back at each k, the same databases at every k; same answers, same bytes.

    Raises:
        ValueError: If there is nothing, or databases, their sizes or data sets differ.
    """
    if not runs or not all(runs.values()):
        raise ValueError(f"runs for {path.name} hold no database at some k; give at least one")
    ks = sorted(runs)
    shapes = [[(item.key, item.place.shape) for item in runs[k]] for k in ks]
    if any(shape != shapes[0] for shape in shapes) or len({key[0] for key, _ in shapes[0]}) > 1:
        raise ValueError(f"runs for {path.name} are of different databases or data sets; store them apart")
    save_arrays(
        path,
        {
            "dataset": np.array(runs[ks[0]][0].dataset),
            "db_ids": np.array([db_id for (_, db_id), _ in shapes[0]]),
            "num_questions": np.array([shape[0] for _, shape in shapes[0]], dtype=np.int32),
            "num_tables": np.array([shape[1] for _, shape in shapes[0]], dtype=np.int32),
            "ks": np.array(ks, dtype=np.int32),
            "place": np.stack([np.concatenate([item.place.ravel() for item in runs[k]]) for k in ks]).astype(np.int16),
        },
    )


def load_pooled(name: str = POOLED_RUN) -> dict[int, ReturnedFromPool]:
    """What came back from a pool, by the number of tables asked for.

    Args:
        name: One of `POOLED_RUNS`.

    Raises:
        ValueError: If there is no such run, or its file is missing or broken.
    """
    if name not in POOLED_RUNS:
        raise ValueError(f"name={name!r}: use one of {', '.join(POOLED_RUNS)}")
    arrays = _arrays(name)
    return {
        int(k): ReturnedFromPool(size.astype(np.int64), holds)
        for k, size, holds in zip(arrays["ks"], arrays["size"], arrays["holds_gold"], strict=True)
    }


def save_pooled(path: Path, runs: Mapping[int, ReturnedFromPool]) -> None:
    """Write what came back from a pool at each k; same answers, same bytes."""
    ks = sorted(runs)
    save_arrays(
        path,
        {
            "ks": np.array(ks, dtype=np.int32),
            "size": np.stack([runs[k].size for k in ks]).astype(np.int32),
            "holds_gold": np.stack([runs[k].holds_gold for k in ks]),
        },
    )


def _arrays(name: str) -> dict[str, np.ndarray]:
    path = peers_home() / f"{name}.npz"
    try:
        with path.open("rb") as file, np.load(file, allow_pickle=False) as archive:
            return {entry: archive[entry] for entry in archive.files}
    except (OSError, EOFError, ValueError, zipfile.BadZipFile) as error:
        raise ValueError(f"{path} cannot be read ({error}); run scripts/store_schemagate.py") from error
