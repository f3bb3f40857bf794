"""Ask schemagate for the tables of benchmark questions: one JSON line per question.

    python3.11 -m venv FOLDER && FOLDER/bin/pip install schemagate
    FOLDER/bin/python scripts/run_schemagate.py --data spider --split dev --out a.jsonl
    FOLDER/bin/python scripts/run_schemagate.py --data bird --split dev --with-evidence --out b.jsonl

It runs in schemagate's own environment, so it imports nothing of this package; `store_schemagate.py` turns its
lines into arrays. The set-up is that of schemagate's benchmark page: a table is its name, its columns with their
types, and its declared foreign keys; the embedder is the hashed one, and all settings are the defaults. With
`--descriptions` columns also carry the catalogue's descriptions as comments, and with `--pooled` all databases of
the schema file are one catalogue and no question says which it is about. There a pick also brings the tables of other
databases that have the name of one it references, because schemagate 1.12 resolves references by bare name. With
`--prepared` the tables of a warehouse are those that this package links to, partitions folded, so that both systems
choose among the same; a table's schema is then its owner.

With `--scores` it asks for the score of every table instead, without the tables that references add: what its answers
are cut from, and what a calibrated probability can be fitted on.

A line is {id, db_id, total, tables: {k: [[db_id, table], ...]}}: the tables that came back when k were asked for,
in schemagate's order, and the number of tables in the catalogue. What comes back for k may exceed k, because
schemagate adds tables that the picks reference. With `--scores` a table is [db_id, table, score]. Beside the lines,
OUT with the suffix `.meta.json` records the version, the settings and the hashes of the inputs.
"""

import argparse
import gzip
import hashlib
import json
import os
import time
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path

from schemagate import Catalog, Column, ForeignKey, HashingEmbedder, ObjectDoc

Line = dict


def main() -> None:
    """Run schemagate and write its answers."""
    parser = argparse.ArgumentParser(description="Tables that schemagate returns for benchmark questions.")
    parser.add_argument("--data", required=True, help="folder of the data home: spider, bird, ...")
    parser.add_argument(
        "--prepared", type=Path, help="folder of build_warehouses.py --write: its corpus of this name, not the raw one"
    )
    parser.add_argument("--split", help="only this split's questions")
    parser.add_argument("--k", type=int, nargs="+", default=[1, 3, 5], help="numbers of tables to ask for")
    parser.add_argument("--with-evidence", action="store_true", help="follow the question with its evidence sentence")
    parser.add_argument("--descriptions", action="store_true", help="give columns their descriptions as comments")
    parser.add_argument("--pooled", action="store_true", help="one catalogue of all databases")
    parser.add_argument("--scores", action="store_true", help="the score of every table")
    parser.add_argument("--out", type=Path, required=True, help="JSON lines to write")
    options = parser.parse_args()
    folder = (options.prepared or data_home()) / options.data
    inputs = [folder / f"{kind}.jsonl.gz" for kind in ("questions", "schemas")]
    questions = [line for line in read(inputs[0]) if options.split is None or line["split"] == options.split]
    if options.prepared:
        questions = [line for line in questions if line["query"] is not None]
    if not questions:
        parser.error(f"--split {options.split}: no question of {options.data} has it")
    schemas = {line["db_id"]: line for line in read(inputs[1])}
    began = time.perf_counter()
    catalogues = build(schemas, {q["db_id"] for q in questions}, options.pooled, options.descriptions)
    options.out.parent.mkdir(parents=True, exist_ok=True)
    with options.out.open("w", encoding="utf-8") as out:
        for question in questions:
            catalogue, total = catalogues["" if options.pooled else question["db_id"]]
            text = question["question"]
            if options.with_evidence and question["evidence"]:
                text = f"{text} {question['evidence']}"
            if options.scores:
                found = catalogue.select(text, top_k=total, expand_fks=False).hits
                tables = {str(total): [[item.doc.schema, item.doc.name, item.score] for item in found]}
            else:
                tables = {
                    str(k): [[item["owner"], item["name"]] for item in catalogue.select(text, top_k=k).object_list]
                    for k in options.k
                }
            line = {"id": question["id"], "db_id": question["db_id"], "total": total, "tables": tables}
            out.write(json.dumps(line) + "\n")
    meta = {
        "versions": {"schemagate": version("schemagate"), "sqlalchemy": version("sqlalchemy")},
        "settings": {
            "data": options.data,
            "split": options.split,
            "k": options.k,
            "text": "question and evidence" if options.with_evidence else "question",
            "descriptions": options.descriptions,
            "pooled": options.pooled,
            "prepared": options.prepared is not None,
            "scores": options.scores,
            "embedder": "HashingEmbedder()",
        },
        "inputs": {f"{options.data}/{path.name}": sha256(path) for path in inputs},
        "lines": sha256(options.out),
        "seconds": round(time.perf_counter() - began, 1),
    }
    options.out.with_suffix(".meta.json").write_text(json.dumps(meta, indent=2) + "\n")
    print(f"{len(questions)} questions in {meta['seconds']} s")


def build(schemas: dict[str, Line], asked: set[str], pooled: bool, descriptions: bool) -> dict[str, tuple]:
    """A catalogue with its number of tables for each database asked about, or one of all under the key ""."""
    groups = {"": list(schemas)} if pooled else {db_id: [db_id] for db_id in sorted(asked)}
    found = {}
    for key, db_ids in groups.items():
        catalogue = Catalog(embedder=HashingEmbedder())
        documents = [document for db_id in db_ids for document in describe(schemas[db_id], descriptions)]
        catalogue.add_all(documents)
        found[key] = (catalogue.index(), len(documents))
    return found


def describe(schema: Line, descriptions: bool) -> Iterator[ObjectDoc]:
    """The database's tables as schemagate knows them; the database's id is their owner."""
    for table in schema["tables"]:
        columns = [
            Column(
                column["name"],
                column["type"],
                comment=column["description"] if descriptions else None,
                pk=column["primary_key"],
            )
            for column in table["columns"]
        ]
        owner = table.get("schema")
        keys = [
            ForeignKey([key["column"]], key["ref_table"], [key["ref_column"]])
            for key in schema["foreign_keys"]
            if key["table"].casefold() == table["name"].casefold() and key.get("schema") == owner
        ]
        yield ObjectDoc(
            table["name"],
            owner or schema["db_id"],
            description=table["description"] if descriptions else None,
            columns=columns,
            foreign_keys=keys,
        )


def data_home() -> Path:
    """Folder of the benchmark data, as `bayeslink.schema.corpus.data_home` finds it."""
    stated = os.environ.get("BAYESLINK_DATA")
    folder = Path(stated) if stated else Path(__file__).resolve().parents[2] / "shared" / "data"
    if not folder.is_dir():
        raise SystemExit(f"benchmark data: {folder} is not a folder; set BAYESLINK_DATA to the data's folder")
    return folder


def read(path: Path) -> list[Line]:
    """The JSON lines of a gzipped file."""
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


def sha256(path: Path) -> str:
    """Hash of a file's bytes, hexadecimal."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


if __name__ == "__main__":
    main()
