"""Measure guessed foreign keys against the declared ones, and store the graphs that they give.

    python scripts/measure_joins.py         # writes data/evidence/warehouses/joins.json

Reads the data home (`$BAYESLINK_DATA`). For each database that declares keys: how many pairs of columns, and of tables,
are declared, guessed, and both, with the declared keys hidden, and once more with the primary keys hidden too; and the
guessed pairs of tables of the training databases, for a fit of their coupling. Numbers and ids only.
"""

import json
from dataclasses import replace
from pathlib import Path

from fit_joins import declared_pairs, without_primary_keys

from bayeslink.evidence.cache import checkout, replace_file
from bayeslink.provenance import sha256
from bayeslink.schema.corpus import data_home, read_corpus
from bayeslink.schema.graph import SchemaGraph
from bayeslink.schema.joins import WEIGHTS_FILE, infer_keys, with_inferred_keys

MEASURED = {"spider-dev": ("spider", "dev"), "bird-dev": ("bird", None), "beaver-nw": ("beaver", None)}
MEASURED |= {"fiben": ("fiben", None)}
TRAIN = ("spider", "bird-train")


def main() -> None:
    """Write the counts and the graphs."""
    counts = {
        name: {
            db_id: {"as_stated": compared(graph, graph), "keys_hidden": compared(graph, without_primary_keys(graph))}
            for db_id, graph in sorted(read_corpus(data_home() / folder, split=split).schemas.items())
            if graph.edges
        }
        for name, (folder, split) in MEASURED.items()
    }
    edges = {
        name: {
            db_id: with_inferred_keys(replace(graph, foreign_keys=(), edges=())).edge_array.tolist()
            for db_id, graph in sorted(read_corpus(data_home() / name).schemas.items())
        }
        for name in TRAIN
    }
    folders = sorted({folder for folder, _ in MEASURED.values()} | set(TRAIN))
    stored = {
        "weights": sha256(WEIGHTS_FILE),
        "inputs": {f"{name}/schemas.jsonl.gz": sha256(data_home() / name / "schemas.jsonl.gz") for name in folders},
        "counts": counts,
        "edges": edges,
    }
    out = (checkout() or Path.cwd()) / "data" / "evidence" / "warehouses" / "joins.json"
    text = json.dumps(stored, separators=(",", ":")) + "\n"
    replace_file(out, lambda file: file.write(text.encode()))


def compared(graph: SchemaGraph, shown: SchemaGraph) -> dict[str, int]:
    """Declared, guessed and common pairs of columns and of tables; self keys are left out."""
    declared = {frozenset(pair) for pair in declared_pairs(graph) if pair[0][0] != pair[1][0]}
    place = {table.key: number for number, table in enumerate(graph.tables)}
    column = [{item.name: number for number, item in enumerate(table.columns)} for table in graph.tables]
    guessed = set()
    for found in infer_keys(shown):
        child, parent = place[found.key.child_key], place[found.key.parent_key]
        ends = (child, column[child][found.key.columns[0]]), (parent, column[parent][found.key.ref_columns[0]])
        guessed.add(frozenset(ends))
    tables = [{frozenset(table for table, _ in pair) for pair in pairs} for pairs in (declared, guessed)]
    return {
        "keys_declared": len(declared),
        "keys_guessed": len(guessed),
        "keys_both": len(declared & guessed),
        "edges_declared": len(tables[0]),
        "edges_guessed": len(tables[1]),
        "edges_both": len(tables[0] & tables[1]),
    }


if __name__ == "__main__":
    main()
