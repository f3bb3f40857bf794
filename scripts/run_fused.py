"""Run our own build of schemagate's retrieval on the questions of its stored runs: data/peers/fused-*.npz.

    python scripts/run_fused.py                 # into data/peers

Reads the data home (`$BAYESLINK_DATA`). Stored beside schemagate's own runs, on the same questions with the same texts
and numbers of tables asked for, it shows how close `FusedRetriever` comes to the system whose description it follows.
A second run writes the same bytes.
"""

import argparse
import json
from dataclasses import replace
from pathlib import Path

import numpy as np

from bayeslink.evidence.benchmark import question_text
from bayeslink.evidence.cache import checkout, replace_file
from bayeslink.evidence.peers import FUSED_SETS, Returned, save_returned
from bayeslink.evidence.retrieval import FusedRetriever
from bayeslink.provenance import sha256
from bayeslink.schema.corpus import Corpus, data_home, read_corpus
from bayeslink.schema.gold import resolve
from bayeslink.schema.graph import SchemaGraph, Table

K = (1, 3, 5)


def main() -> None:
    """Store each run and the manifest."""
    parser = argparse.ArgumentParser(description="Run the fused retrieval on the questions of schemagate's runs.")
    parser.add_argument("--out", type=Path, help="folder to write; data/peers of the checkout by default")
    out = parser.parse_args().out or (checkout() or Path.cwd()) / "data" / "peers"
    corpora = {folder: read_corpus(data_home() / folder, split="dev") for folder in ("spider", "bird")}
    for name in FUSED_SETS:
        corpus = corpora[name.split("-")[1]]
        save_returned(out / f"{name}.npz", runs(corpus, "-evidence" in name, name.endswith("-descriptions")))
        print(name)
    kinds = ("questions.jsonl.gz", "schemas.jsonl.gz")
    manifest = {
        "licence": "CC BY-SA 4.0",
        "inputs": {f"{folder}/{kind}": sha256(data_home() / folder / kind) for folder in corpora for kind in kinds},
        "files": {f"{name}.npz": sha256(out / f"{name}.npz") for name in FUSED_SETS},
        "k": list(K),
    }
    text = json.dumps(manifest, indent=2) + "\n"
    replace_file(out / "fused.json", lambda file: file.write(text.encode()))


def runs(corpus: Corpus, with_evidence: bool, descriptions: bool) -> dict[int, list[Returned]]:
    """What comes back at each k for every question whose gold resolves, by database; numbered in the schema's order."""
    retriever, gold = FusedRetriever(descriptions), resolve(corpus).gold
    found: dict[int, list[Returned]] = {k: [] for k in K}
    for db_id in sorted({question.db_id for question in corpus.questions}):
        texts = [
            question_text(question, with_evidence)
            for question in corpus.questions
            if question.db_id == db_id and question.id in gold
        ]
        graph = as_catalogued(corpus.schemas[db_id])
        for k in K if texts else ():
            chosen = retriever.retrieve(texts, graph, k)
            place = np.where(chosen, np.cumsum(chosen, axis=1), 0).astype(np.int64)
            found[k].append(Returned(corpus.name, db_id, place))
    return found


def as_catalogued(graph: SchemaGraph) -> SchemaGraph:
    """The schema without natural-language names, which schemagate was not given either."""
    tables = tuple(
        Table(
            table.name,
            tuple(replace(column, natural_name=None) for column in table.columns),
            table.schema,
            description=table.description,
        )
        for table in graph.tables
    )
    return replace(graph, tables=tables)


if __name__ == "__main__":
    main()
