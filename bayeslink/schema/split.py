"""Splits that keep what is one database, or one gold query, on one side (MODEL.md section 9).

Databases recur between benchmarks, so training and test databases may be twins. A fingerprint is
the set of `table.column` names, each without case, punctuation or a table's plural s and without
the table's schema: `driverStandings.driverId` and `driver_standings.driver_id` are one. Twins:

    share(A, B) = |A and B| / min(|A|, |B|) > 0.5,   min(|A|, |B|) >= 10.

Column names alone were tried and join unrelated databases (id, name, date); exact names miss twins
that a renaming tool has touched. Fingerprints are hashed, so that a fitted posterior can carry
those of its training databases and know their twins again without carrying any name.
"""

import re
from collections.abc import Hashable, Mapping, Sequence
from hashlib import blake2b
from itertools import combinations
from typing import TypeVar

import numpy as np
from jaxtyping import Bool, UInt64

from bayeslink.schema.graph import SchemaGraph

__all__ = [
    "MIN_COLUMNS",
    "TWIN_SHARE",
    "DatabaseKey",
    "are_twins",
    "find_twins",
    "fingerprint",
    "folds_by_database",
    "hashed_fingerprint",
    "split_by_group",
    "twin_share",
    "twins_of",
]

DatabaseKey = tuple[str, str]
"""(data set, db_id)."""

TWIN_SHARE = 0.5
"""Databases are twins above this share of the smaller one's columns."""

MIN_COLUMNS = 10
"""Fewer columns than this are too few to tell a twin from a common table; a count."""

Group = TypeVar("Group", bound=Hashable)


def fingerprint(graph: SchemaGraph) -> frozenset[str]:
    """Normalised `table.column` names of a database."""
    return frozenset(
        f"{_plain(table.name.rpartition('.')[2]).removesuffix('s')}.{_plain(column.name)}"
        for table in graph.tables
        for column in table.columns
    )


def hashed_fingerprint(graph: SchemaGraph) -> UInt64[np.ndarray, "_"]:
    """The fingerprint as sorted 64-bit hashes, the same on every machine and in every run."""
    hashes = [int.from_bytes(blake2b(name.encode(), digest_size=8).digest()) for name in fingerprint(graph)]
    return np.unique(np.array(hashes, dtype=np.uint64))


def twin_share(first: UInt64[np.ndarray, "_"], second: UInt64[np.ndarray, "_"]) -> float:
    """Share of the smaller fingerprint that the larger contains, in [0, 1]; 0 where one is empty.

    Args:
        first: Hashed fingerprint.
        second: Hashed fingerprint.
    """
    smaller, larger = sorted((first, second), key=len)
    if not len(smaller):
        return 0.0
    place = np.minimum(np.searchsorted(larger, smaller), len(larger) - 1)
    return float(np.mean(larger[place] == smaller))


def are_twins(first: UInt64[np.ndarray, "_"], second: UInt64[np.ndarray, "_"]) -> bool:
    """True when the share is above `TWIN_SHARE` and both have at least `MIN_COLUMNS` columns."""
    return min(len(first), len(second)) >= MIN_COLUMNS and twin_share(first, second) > TWIN_SHARE


def twins_of(
    print_: UInt64[np.ndarray, "_"], others: Mapping[DatabaseKey, UInt64[np.ndarray, "_"]]
) -> tuple[DatabaseKey, ...]:
    """Databases, such as a posterior's training databases, that are twins of one given database.

    Args:
        print_: Hashed fingerprint of the database.
        others: Hashed fingerprints of the others.
    """
    return tuple(key for key, other in others.items() if are_twins(print_, other))


def find_twins(graphs: Mapping[DatabaseKey, SchemaGraph]) -> dict[DatabaseKey, tuple[DatabaseKey, ...]]:
    """Twins of every database among the others; empty where it has none.

    Args:
        graphs: Schemas by (data set, db_id).
    """
    prints = {key: hashed_fingerprint(graph) for key, graph in graphs.items()}
    twins: dict[DatabaseKey, list[DatabaseKey]] = {key: [] for key in graphs}
    for first, second in combinations(prints, 2):
        if are_twins(prints[first], prints[second]):
            twins[first].append(second)
            twins[second].append(first)
    return {key: tuple(found) for key, found in twins.items()}


def folds_by_database(
    keys: Sequence[DatabaseKey],
    twins: Mapping[DatabaseKey, Sequence[DatabaseKey]],
    num_folds: int,
    rng: np.random.Generator,
) -> dict[DatabaseKey, int]:
    """Fold of each database, with twins, and twins of twins, in one fold.

    Clusters of twins go, largest first and in random order among equals, to the fold with the
    fewest databases. Every fold gets at least one database.

    Args:
        keys: The databases to share out.
        twins: Twins by database, as from `find_twins`; databases that are not in `keys` still join others.
        num_folds: Number of folds, at least 2.
        rng: Source of the random order.

    Raises:
        ValueError: If a key repeats, or there are fewer clusters than folds.
    """
    if len(set(keys)) < len(keys):
        raise ValueError("keys: a database appears twice; give each once")
    clusters = _clusters(keys, twins)
    if not 2 <= num_folds <= len(clusters):
        raise ValueError(
            f"num_folds={num_folds}: {len(keys)} databases make {len(clusters)} clusters of twins; "
            "use at least 2 folds and at most one per cluster"
        )
    folds: dict[DatabaseKey, int] = {}
    sizes = [0] * num_folds
    order = [clusters[index] for index in rng.permutation(len(clusters))]
    for cluster in sorted(order, key=len, reverse=True):
        fold = sizes.index(min(sizes))
        sizes[fold] += len(cluster)
        folds |= dict.fromkeys(cluster, fold)
    return {key: folds[key] for key in keys}


def split_by_group(groups: Sequence[Group], share: float, rng: np.random.Generator) -> Bool[np.ndarray, " questions"]:
    """Marks the questions of the first part of a two-way split that keeps groups whole.

    Groups are taken in random order while that brings the part's share of questions closer to the
    one asked for; each part gets at least one group.

    Args:
        groups: Group of each question, such as its `gold.group_key`.
        share: Wanted share of the questions in the first part, between 0 and 1.
        rng: Source of the random order.

    Raises:
        ValueError: If the share is not inside (0, 1), or there are fewer than two groups.
    """
    counts: dict[Group, int] = {}
    for group in groups:
        counts[group] = counts.get(group, 0) + 1
    if not 0 < share < 1:
        raise ValueError(f"share={share}: give a share of the questions above 0 and below 1")
    if len(counts) < 2:
        raise ValueError(f"groups: {len(counts)} distinct; a split needs at least two")
    names = list(counts)
    order = [names[index] for index in rng.permutation(len(names))]
    totals = np.cumsum([counts[group] for group in order[:-1]])
    first = set(order[: int(np.argmin(np.abs(totals - share * len(groups)))) + 1])
    return np.array([group in first for group in groups])


def _plain(name: str) -> str:
    return re.sub(r"[\W_]+", "", name.casefold())


def _clusters(
    keys: Sequence[DatabaseKey], twins: Mapping[DatabaseKey, Sequence[DatabaseKey]]
) -> list[list[DatabaseKey]]:
    neighbours: dict[DatabaseKey, set[DatabaseKey]] = {key: set() for key in keys}
    for key, found in twins.items():
        for other in found:
            neighbours.setdefault(key, set()).add(other)
            neighbours.setdefault(other, set()).add(key)
    clusters: list[list[DatabaseKey]] = []
    seen: set[DatabaseKey] = set()
    for key in keys:
        reached, queue = set(), [key]
        while queue:
            current = queue.pop()
            if current not in seen:
                seen.add(current)
                reached.add(current)
                queue.extend(neighbours[current])
        if reached:
            clusters.append([other for other in keys if other in reached])
    return clusters
