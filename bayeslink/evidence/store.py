"""Evidence as numeric files: the public benchmarks' arrays, which every analysis reads.

A file holds the databases of one set one after the other: `values [channels, pairs]` in single
precision and `gold [pairs]` over (question, table) pairs, row by row; `group` over questions;
`edges` and `edge_types` over edges; and the number of tables, questions and edges of each database.
Its only texts are the names of channels and the keys of databases. Same evidence, same bytes.

Sets lie in families, which differ in their channels alone: the paper's in the folder itself, the fields' in `rich`,
what trees make of these in `boosted`, a peer's own score of each table in `schemagate`, the scores of the learned text
channel in `encoder`, what trees make of it and the fields' together in `learned`; all but the first and the peer's also
hold Spider's robustness sets.
"""

import io
import json
import os
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
from jaxtyping import UInt64

from bayeslink.evidence.cache import checkout, replace_file
from bayeslink.evidence.channel import Evidence
from bayeslink.evidence.structure import covariates

__all__ = [
    "FAMILIES",
    "ROBUSTNESS_SETS",
    "SETS",
    "WAREHOUSE_SETS",
    "DatabaseKey",
    "evidence_home",
    "load_evidence",
    "load_fingerprints",
    "load_twins",
    "read_fingerprints",
    "save_arrays",
    "save_evidence",
    "save_fingerprints",
    "save_twins",
    "stored_files",
    "stored_home",
]

DatabaseKey = tuple[str, str]
"""(data set, db_id)."""

SETS = ("spider-train", "spider-dev", "bird-dev", "bird-dev-evidence", "bird-train", "bird-train-evidence")
"""Names of the stored sets; "-evidence" ones score the question with its evidence sentence."""

ROBUSTNESS_SETS = ("spider-syn-dev", "spider-realistic")
"""Spider dev asked in other words, in every family but the first; their gold and databases are Spider dev's."""

WAREHOUSE_SETS = tuple(
    f"{name}{keys}" for name in ("spider2-lite", "beaver-dw", "beaver-nw", "fiben") for keys in ("", "-inferred")
)
"""Sets of the family `warehouses`; in those that end in "-inferred" guessed keys stand beside the declared ones."""

FAMILIES = ("", "rich", "boosted", "schemagate", "encoder", "learned", "warehouses")
"""Folders of the families, below `evidence_home`."""


def evidence_home() -> Path:
    """Folder of the stored sets: `$BAYESLINK_EVIDENCE`, else `data/evidence` of a checkout.

    Raises:
        ValueError: If the folder is not there.
    """
    return stored_home("BAYESLINK_EVIDENCE", "evidence", "stored evidence")


def stored_home(variable: str, name: str, what: str) -> Path:
    """A folder of stored arrays: what the environment variable states, else `data/NAME` of a checkout.

    Args:
        variable: Name of the environment variable.
        name: Folder below `data`.
        what: What lies there, for the message.

    Raises:
        ValueError: If the folder is not there.
    """
    stated, root = os.environ.get(variable), checkout()
    folder = Path(stated) if stated else root / "data" / name if root else None
    if folder is None or not folder.is_dir():
        raise ValueError(f"{what}: {folder} is not a folder; set {variable} to one")
    return folder


def load_evidence(name: str, channels: Sequence[str] | None = None) -> list[Evidence]:
    """Evidence, with gold and groups, of each database of a stored set.

    Args:
        name: One of `SETS`, or of `ROBUSTNESS_SETS` or `WAREHOUSE_SETS` with channels of a family that holds them.
        channels: Channels to keep, in this order, of any family; all those of the first family by default.

    Raises:
        ValueError: If the set or a channel is not there, or the file is broken.
    """
    if channels is None:
        return _evidences(_load_arrays(_set_file(name, "")))
    families = dict.fromkeys(_family_of(name, channels).values())
    if not families:
        return [item.select_channels(()) for item in load_evidence(name)]
    parts = [_evidences(_load_arrays(_set_file(name, family))) for family in families]
    return [_joined(same).select_channels(channels) for same in zip(*parts, strict=True)]


def stored_files(name: str, channels: Sequence[str]) -> tuple[Path, ...]:
    """Files that `load_evidence` reads for these channels of a set.

    Raises:
        ValueError: As `load_evidence`.
    """
    return tuple(_set_file(name, family) for family in dict.fromkeys(_family_of(name, channels).values()))


def _set_file(name: str, family: str) -> Path:
    known = (*SETS, *ROBUSTNESS_SETS, *WAREHOUSE_SETS)
    if name not in known:
        raise ValueError(f"name={name!r}: use one of {', '.join(known)}")
    return evidence_home() / family / f"{name}.npz"


def _family_of(name: str, channels: Sequence[str]) -> dict[str, str]:
    """The first family that holds each channel of a set."""
    held = {}
    for family in FAMILIES:
        path = _set_file(name, family)
        if path.is_file() or (name in SETS and not family):
            held[family] = _load_arrays(path, ("channels",))["channels"].tolist()
    found = {}
    for channel in channels:
        holding = [family for family, names in held.items() if channel in names]
        if not holding:
            there = ", ".join(name for names in held.values() for name in names)
            raise ValueError(f"channels {[channel]} are not among those of the stored set {name}: {there}")
        found[channel] = holding[0]
    return found


def _joined(same: Sequence[Evidence]) -> Evidence:
    """One database's evidence from several families, channels that recur taken once."""
    first = same[0]
    for other in same[1:]:
        if other.key != first.key or not np.array_equal(np.asarray(other.gold), np.asarray(first.gold)):
            raise ValueError(f"families of {first.key} hold other questions; rebuild data/evidence whole")
        new = [channel for channel in other.channels if channel not in first.channels]
        values = np.concatenate([first.values, other.select_channels(new).values], axis=2)
        first = replace(first, channels=(*first.channels, *new), values=values)
    return first


def save_evidence(path: Path, evidences: Sequence[Evidence]) -> None:
    """Write evidence of one data set with gold and groups; values are rounded to single precision.

    Raises:
        ValueError: If there is none, data sets or channels differ, or gold or groups are missing.
    """
    if not evidences:
        raise ValueError(f"evidences for {path.name} are empty; give at least one database")
    dataset, channels = evidences[0].dataset, evidences[0].channels
    values, gold, group = [], [], []
    for evidence in evidences:
        if (evidence.dataset, evidence.channels) != (dataset, channels):
            raise ValueError(f"{evidence.key} and {evidences[0].key} differ in data set or channels; split them")
        if evidence.gold is None or evidence.group is None:
            raise ValueError(f"{evidence.key} has no gold or no groups; a stored set needs both")
        values.append(evidence.values.reshape(-1, len(channels)))
        gold.append(evidence.gold.ravel())
        group.append(evidence.group)
    save_arrays(
        path,
        {
            "dataset": np.array(dataset),
            "channels": np.array(channels),
            "db_ids": np.array([evidence.db_id for evidence in evidences]),
            "num_tables": np.array([evidence.num_tables for evidence in evidences], dtype=np.int32),
            "num_questions": np.array([evidence.num_questions for evidence in evidences], dtype=np.int32),
            "num_edges": np.array([len(evidence.edges) for evidence in evidences], dtype=np.int32),
            "values": np.concatenate(values).T.astype(np.float32, order="C"),
            "gold": np.concatenate(gold),
            "group": np.concatenate(group).astype(np.int32),
            "edges": np.concatenate([evidence.edges for evidence in evidences]).astype(np.int32),
            "edge_types": np.concatenate([evidence.edge_types for evidence in evidences]).astype(np.int8),
        },
    )


def load_twins() -> dict[DatabaseKey, tuple[DatabaseKey, ...]]:
    """Twins of each stored database among all of them, empty where there is none (MODEL.md section 9).

    Raises:
        ValueError: If the file is missing or broken.
    """
    path = evidence_home() / "twins.json"
    try:
        stored = json.loads(path.read_text())
    except (OSError, ValueError) as error:
        raise ValueError(f"{path} cannot be read ({error}); run scripts/build_evidence.py") from error
    return {
        (dataset, db_id): tuple((other, twin) for other, twin in found)
        for dataset, databases in stored.items()
        for db_id, found in databases.items()
    }


def save_twins(path: Path, twins: Mapping[DatabaseKey, Sequence[DatabaseKey]]) -> None:
    """Write the twins of each database as JSON, sorted by key."""
    stored: dict[str, dict[str, list[list[str]]]] = {}
    for (dataset, db_id), found in sorted(twins.items()):
        stored.setdefault(dataset, {})[db_id] = [list(key) for key in sorted(found)]
    text = json.dumps(stored, indent=1) + "\n"
    replace_file(path, lambda file: file.write(text.encode()))


def load_fingerprints() -> dict[DatabaseKey, UInt64[np.ndarray, "_"]]:
    """Hashed fingerprint of each stored database, from which twins of a new one are known.

    Raises:
        ValueError: If the file is missing or broken.
    """
    return read_fingerprints(evidence_home() / "fingerprints.npz")


def read_fingerprints(path: Path) -> dict[DatabaseKey, UInt64[np.ndarray, "_"]]:
    """Hashed fingerprints of databases from a file of `save_fingerprints`.

    Raises:
        ValueError: If the file is missing or broken.
    """
    arrays = _load_arrays(path)
    keys = zip(arrays["datasets"].tolist(), arrays["db_ids"].tolist(), strict=True)
    parts = np.split(arrays["hashes"], np.cumsum(arrays["lengths"])[:-1])
    return dict(zip(keys, parts, strict=True))


def save_fingerprints(path: Path, fingerprints: Mapping[DatabaseKey, UInt64[np.ndarray, "_"]]) -> None:
    """Write the hashed fingerprints, sorted by key."""
    keys = sorted(fingerprints)
    arrays = {
        "datasets": np.array([dataset for dataset, _ in keys]),
        "db_ids": np.array([db_id for _, db_id in keys]),
        "lengths": np.array([len(fingerprints[key]) for key in keys], dtype=np.int32),
        "hashes": np.concatenate([fingerprints[key] for key in keys]),
    }
    save_arrays(path, arrays)


def save_arrays(path: Path, arrays: Mapping[str, np.ndarray]) -> None:
    """Write a compressed npz whose bytes depend on the arrays alone: fixed times, no pickle."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, array in arrays.items():
            member = io.BytesIO()
            np.lib.format.write_array(member, np.asanyarray(array), allow_pickle=False)
            entry = zipfile.ZipInfo(f"{name}.npy", date_time=(1980, 1, 1, 0, 0, 0))
            entry.external_attr, entry.create_system = 0o644 << 16, 3
            archive.writestr(entry, member.getvalue(), compress_type=zipfile.ZIP_DEFLATED, compresslevel=9)
    replace_file(path, lambda file: file.write(buffer.getvalue()))


def _load_arrays(path: Path, names: Sequence[str] | None = None) -> dict[str, np.ndarray]:
    try:
        with path.open("rb") as file, np.load(file, allow_pickle=False) as archive:
            return {name: archive[name] for name in names or archive.files}
    except (OSError, EOFError, KeyError, ValueError, zipfile.BadZipFile) as error:
        raise ValueError(f"{path} cannot be read ({error}); run scripts/build_evidence.py") from error


def _evidences(arrays: Mapping[str, np.ndarray]) -> list[Evidence]:
    channels, dataset = tuple(arrays["channels"].tolist()), str(arrays["dataset"])
    values, gold = arrays["values"].astype(np.float64), arrays["gold"]
    edges, edge_types, group = (arrays[name].astype(np.int64) for name in ("edges", "edge_types", "group"))
    counts = (arrays[name].tolist() for name in ("db_ids", "num_tables", "num_questions", "num_edges"))
    evidences, pair, question, edge = [], 0, 0, 0
    for db_id, num_tables, num_questions, num_edges in zip(*counts, strict=True):
        pairs = slice(pair, pair + num_questions * num_tables)
        questions = slice(question, question + num_questions)
        own = slice(edge, edge + num_edges)
        shape = (num_questions, num_tables)
        evidences.append(
            Evidence(
                dataset,
                db_id,
                channels,
                np.ascontiguousarray(values[:, pairs].T).reshape(*shape, len(channels)),
                edges[own],
                edge_types[own],
                covariates(edges[own], num_tables),
                gold[pairs].reshape(shape),
                group[questions],
            )
        )
        pair, question, edge = pairs.stop, questions.stop, own.stop
    return evidences
