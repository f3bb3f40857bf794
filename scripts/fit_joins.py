"""Fit the weights of guessed foreign keys on the declared keys of training databases.

    python scripts/fit_joins.py         # writes bayeslink/schema/joins.json

Reads the data home (`$BAYESLINK_DATA`). Databases of Spider dev and BIRD dev and their twins are left out, as are
those that declare no key. Every other training database hides its primary keys. A second run writes the same bytes.
"""

import argparse
import json
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
from scipy.optimize import minimize

from bayeslink.evidence.cache import replace_file
from bayeslink.evidence.store import load_evidence, load_twins
from bayeslink.provenance import sha256, versions
from bayeslink.schema.corpus import data_home, read_corpus
from bayeslink.schema.graph import SchemaGraph
from bayeslink.schema.joins import (
    FEATURES,
    WEIGHTS_FILE,
    Candidate,
    best_candidates,
    candidates,
    column_numbers,
    reference_probabilities,
)
from bayeslink.schema.split import hashed_fingerprint

TRAIN = ("spider", "bird-train")
PRIOR_SD = 3.0
"""Standard deviation of the weights' normal prior, log-odds."""
FOLDS = 5
"""Parts of the training databases by which the threshold is found."""


def main() -> None:
    """Write the weights."""
    parser = argparse.ArgumentParser(description="Fit the weights of guessed foreign keys.")
    parser.add_argument("--out", type=Path, default=WEIGHTS_FILE, help="file to write; the package's by default")
    options = parser.parse_args()
    twins = load_twins()
    barred = {item.key for name in ("spider-dev", "bird-dev") for item in load_evidence(name)}
    barred |= {twin for key in barred for twin in twins[key]}
    used, seen, databases = [], set(), []
    for name in TRAIN:
        for db_id, graph in sorted(read_corpus(data_home() / name).schemas.items()):
            mark = hashed_fingerprint(graph).tobytes()
            if (name, db_id) in barred or not graph.edges or mark in seen:
                continue
            seen.add(mark)
            used.append(f"{name}/{db_id}")
            listed = candidates(graph if len(used) % 2 else without_primary_keys(graph))
            databases.append(Labelled(listed, labels(listed, declared_pairs(graph)), graph))
    weights = fit(databases)
    fold = np.random.default_rng(0).permutation(len(databases)) % FOLDS
    held: list[np.ndarray] = [np.zeros(0)] * len(databases)
    for part in range(FOLDS):
        others = fit([item for item, own in zip(databases, fold, strict=True) if own != part])
        for place in np.flatnonzero(fold == part):
            held[place] = reference_probabilities(others, databases[place].listed)
    grid = np.round(np.arange(0.1, 0.91, 0.05), 2).tolist()
    scores = {level: edge_f1(databases, held, level) for level in grid}
    text = json.dumps(
        {
            "weights": dict(zip(FEATURES, np.round(weights, 6).tolist(), strict=True)),
            "threshold": max(scores, key=lambda level: scores[level]),
            "held_out_edge_f1": {str(level): round(score, 4) for level, score in scores.items()},
            "candidates": sum(len(item.listed) for item in databases),
            "declared": int(sum(item.chosen.sum() for item in databases)),
            "databases": used,
            "inputs": {f"{name}/schemas.jsonl.gz": sha256(data_home() / name / "schemas.jsonl.gz") for name in TRAIN},
            "versions": versions(("scipy", "numpy")),
        },
        indent=1,
    )
    replace_file(options.out, lambda file: file.write(f"{text}\n".encode()))
    print(text[: text.index('"databases"')])


class Labelled(NamedTuple):
    """A training database: candidates, which are declared, the schema."""

    listed: list[Candidate]
    chosen: np.ndarray
    graph: SchemaGraph


def labels(listed: list[Candidate], declared: set[tuple[tuple[int, int], tuple[int, int]]]) -> np.ndarray:
    """Which candidates are declared; of two of one column the first."""
    taken: set[tuple[int, int]] = set()
    found = np.zeros(len(listed), dtype=bool)
    for place, item in enumerate(listed):
        child = item.table, item.column
        if (child, (item.ref_table, item.ref_column)) in declared and child not in taken:
            taken.add(child)
            found[place] = True
    return found


def fit(databases: list[Labelled]) -> np.ndarray:
    """Weights of the largest posterior density."""

    def loss(weights: np.ndarray) -> tuple[float, np.ndarray]:
        value, slope = 0.5 * float(weights @ weights) / PRIOR_SD**2, weights / PRIOR_SD**2
        for item in databases:
            if item.listed:
                features = np.array([one.features for one in item.listed])
                probability = reference_probabilities(weights, item.listed)
                column = column_numbers(item.listed)
                none = 1 - np.bincount(column, probability)
                unchosen = np.bincount(column, item.chosen) == 0
                value -= np.log(probability[item.chosen]).sum() + np.log(none[unchosen]).sum()
                slope = slope + (probability - item.chosen) @ features
        return value, slope

    found = minimize(
        loss, np.zeros(len(FEATURES)), jac=True, method="L-BFGS-B", options={"gtol": 1e-8, "maxiter": 5000}
    )
    if not found.success:
        raise SystemExit(f"the fit did not converge: {found.message}")
    return found.x


def edge_f1(databases: list[Labelled], probabilities: list[np.ndarray], threshold: float) -> float:
    """F1 of guessed joined pairs of tables over all databases together."""
    right = guessed = there = 0
    for item, probability in zip(databases, probabilities, strict=True):
        best = best_candidates(item.listed, probability, threshold)
        found = {frozenset((one.table, one.ref_table)) for _, one in best}
        declared = {frozenset((edge.first, edge.second)) for edge in item.graph.edges}
        right, guessed, there = right + len(found & declared), guessed + len(found), there + len(declared)
    return 2 * right / (guessed + there)


def declared_pairs(graph: SchemaGraph) -> set[tuple[tuple[int, int], tuple[int, int]]]:
    """Every pair of columns of a declared key, as places (table, column) of child and parent."""
    place = [{column.name: number for number, column in enumerate(table.columns)} for table in graph.tables]
    return {
        ((key.table, place[key.table][column]), (key.ref_table, place[key.ref_table][ref]))
        for key in graph.foreign_keys
        for column, ref in zip(key.columns, key.ref_columns, strict=True)
    }


def without_primary_keys(graph: SchemaGraph) -> SchemaGraph:
    """The schema as a catalogue that states no primary key would show it."""
    tables = [
        replace(table, key_columns=(), columns=tuple(replace(column, primary_key=False) for column in table.columns))
        for table in graph.tables
    ]
    return replace(graph, tables=tuple(tables))


if __name__ == "__main__":
    main()
