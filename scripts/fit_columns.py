"""Fit the posteriors of columns that the package carries, on Spider train and BIRD train.

    python scripts/fit_columns.py             # both kinds, from the data home, in some minutes

Databases of Spider dev and BIRD dev and their twins are left out. Rows are the columns of gold tables; questions of
BIRD train are read in turn with and without their evidence sentence. A question whose gold columns cannot all be told
is left out and counted.
"""

import argparse
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from tqdm import tqdm

from bayeslink.evidence.benchmark import question_text
from bayeslink.evidence.columns import column_evidence, column_owner
from bayeslink.evidence.store import load_evidence, load_twins
from bayeslink.inference.columns import ColumnRows, databases_named, fit_columns
from bayeslink.schema.corpus import data_home, read_corpus
from bayeslink.schema.gold import UnresolvedQueryError, resolve
from bayeslink.schema.gold_columns import gold_columns

TRAIN = (("spider", "train"), ("bird-train", None))


def main() -> None:
    """Fit each kind and write it."""
    parser = argparse.ArgumentParser(description="Fit the posteriors of columns.")
    parser.add_argument("--kinds", nargs="+", default=["lexical", "embedding"])
    parser.add_argument("--out", type=Path, default=Path(__file__).parents[1] / "bayeslink" / "posteriors")
    options = parser.parse_args()
    barred = {item.key for name in ("spider-dev", "bird-dev") for item in load_evidence(name)}
    twins = load_twins()
    barred |= {twin for key in barred for twin in twins[key]}
    for kind in options.kinds:
        counts = {"num_questions": 0, "num_left_out": 0}
        used: list[tuple[str, str]] = []
        found = list(_rows(kind, barred, counts, used))
        info = counts | {"databases": databases_named(used)}
        posterior = fit_columns([rows for _, rows in found], found[0][0], info)
        posterior.save(options.out / f"columns_{kind}.json")
        print(f"{kind}: {counts}, {len(used)} databases, sigma {posterior.sigma:.2f}")


def _rows(
    kind: str, barred: set, counts: dict[str, int], used: list[tuple[str, str]]
) -> Iterator[tuple[tuple[str, ...], ColumnRows]]:
    """Names of the predictors and rows of each training database."""
    for folder, split in TRAIN:
        corpus = read_corpus(data_home() / folder, split=split)
        gold = resolve(corpus).gold
        for db_id in tqdm(sorted(corpus.schemas), desc=f"{kind} {folder}", disable=None):
            if (folder, db_id) in barred:
                continue
            graph, texts, tables, columns = corpus.schemas[db_id], [], [], []
            for place, question in enumerate(item for item in corpus.questions if item.db_id == db_id):
                if question.id not in gold:
                    continue
                try:
                    read = gold_columns(question.query or "", graph)
                except UnresolvedQueryError:
                    read = None
                if read is None or read.unknown:
                    counts["num_left_out"] += 1
                    continue
                texts.append(question_text(question, place % 2 == 0))
                tables.append(gold[question.id])
                columns.append(read.columns)
            if texts:
                counts["num_questions"] += len(texts)
                used.append((folder, db_id))
                evidence = column_evidence(texts, graph, kind)
                chosen, kept = _gold(graph, tables, columns)
                yield evidence.names, ColumnRows(evidence.values[kept], chosen[kept])


def _gold(graph, tables, columns) -> tuple[np.ndarray, np.ndarray]:
    """Whether each column is gold, and whether its table is, for each question."""
    owner = column_owner(graph)
    starts = np.searchsorted(owner, np.arange(graph.num_tables))
    chosen = np.zeros((len(tables), len(owner)), dtype=bool)
    kept = np.zeros_like(chosen)
    for row, (own, read) in enumerate(zip(tables, columns, strict=True)):
        chosen[row, [starts[table] + column for table, column in read]] = True
        kept[row] = np.isin(owner, list(own))
    return chosen, kept


if __name__ == "__main__":
    main()
