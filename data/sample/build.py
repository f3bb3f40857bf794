"""Builds the sample databases as SQLite files; `--check` runs every gold query and prints counts.

`--schemas FILE` writes their catalogues in the line format, as `schemas.jsonl` holds them.
"""

import argparse
import json
import re
import sqlite3
import tempfile
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from sqlglot import exp, parse_one

from bayeslink.schema.database import read_database
from bayeslink.schema.graph import Origin, SchemaGraph, build_graph, raw_key
from bayeslink.schema.schema_lines import schema_line

__all__ = [
    "Counts",
    "build",
    "check",
    "database_ids",
    "gold_tables",
    "open_database",
    "questions",
    "words",
    "write_schemas",
]

HERE = Path(__file__).resolve().parent
PLURAL = re.compile(r"(?<=ss|ch|sh)es$|(?<=x)es$|(?<=[^sui])s$")


class Counts(NamedTuple):
    """Sizes of the sample; `share` is `unshared` over `pairs`, the (question, gold table) pairs."""

    databases: int
    tables: int
    questions: int
    queries_that_run: int
    pairs: int
    unshared: int
    share: float


def database_ids() -> list[str]:
    """Names of the sample databases, sorted."""
    return sorted(path.stem for path in (HERE / "databases").glob("*.sql"))


def questions() -> list[dict]:
    """Rows of questions.jsonl."""
    return [json.loads(line) for line in (HERE / "questions.jsonl").read_text(encoding="utf-8").splitlines()]


def open_database(db_id: str, path: str | Path = ":memory:") -> sqlite3.Connection:
    """Connection to a freshly built database; raises ValueError if a foreign key has no parent row."""
    script = (HERE / "databases" / f"{db_id}.sql").read_text(encoding="utf-8")
    connection = sqlite3.connect(path)
    connection.executescript("PRAGMA foreign_keys=ON;\n" + script)
    if broken := connection.execute("PRAGMA foreign_key_check").fetchall():
        connection.close()
        raise ValueError(f"{db_id}: rows without a parent {broken}; correct the INSERT statements")
    return connection


def build(outdir: Path, db_ids: list[str]) -> None:
    """Write `OUTDIR/<db_id>.sqlite` for each database; an older file is replaced."""
    outdir.mkdir(parents=True, exist_ok=True)
    for db_id in db_ids:
        (outdir / f"{db_id}.sqlite").unlink(missing_ok=True)
        open_database(db_id, outdir / f"{db_id}.sqlite").close()


def words(text: str) -> set[str]:
    """Lower-case words of a name or question, split on case, underscore, digits, spaces; plurals folded."""
    spaced = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", text).lower()
    return {PLURAL.sub("", re.sub(r"(?<=\w\w)ies$", "y", word)) for word in re.findall(r"[^\W\d_]+", spaced)}


def gold_tables(query: str) -> set[str]:
    """Names of the tables that a query reads, without the names of its CTEs."""
    tree = parse_one(query, read="sqlite")
    return {table.name for table in tree.find_all(exp.Table)} - {cte.alias for cte in tree.find_all(exp.CTE)}


def check() -> Counts:
    """Counts over the sample; sqlite3.Error if a gold query fails."""
    num_tables, results, unshared = 0, [], []
    for db_id in database_ids():
        rows = [row for row in questions() if row["db_id"] == db_id]
        with closing(open_database(db_id)) as connection:
            num_tables += connection.execute("SELECT SUM(type = 'table') FROM sqlite_master").fetchone()[0]
            results += [connection.execute(row["query"]).fetchall() for row in rows]
        unshared += [not words(row["question"]) & words(t) for row in rows for t in gold_tables(row["query"])]
    sizes = (len(database_ids()), num_tables, len(questions()), len(results), len(unshared), sum(unshared))
    return Counts(*sizes, share=sum(unshared) / len(unshared))


def write_schemas(path: Path) -> None:
    """One line for each database, as bayeslink reads its catalogue."""
    with tempfile.TemporaryDirectory() as folder:
        build(Path(folder), database_ids())
        graphs = {db_id: read_database(str(Path(folder) / f"{db_id}.sqlite")) for db_id in database_ids()}
    lines = [json.dumps(schema_line(db_id, stated(graph)), ensure_ascii=False) for db_id, graph in graphs.items()]
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")


def stated(graph: SchemaGraph) -> SchemaGraph:
    """The catalogue without what the SQL of its views says: like the benchmarks', it holds declared keys alone."""
    tables = [replace(table, definition=None) for table in graph.tables]
    declared = [key for key in graph.foreign_keys if key.origin is not Origin.VIEW]
    keys = [raw_key(key, tables[key.table], tables[key.ref_table]) for key in declared]
    return build_graph(graph.name, tables, keys, graph.dialect)


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description="Build or check the sample databases.")
    parser.add_argument("outdir", nargs="?", type=Path, default=HERE.parent / "cache" / "sample")
    parser.add_argument("db_id", nargs="*", default=database_ids(), help="default: all")
    parser.add_argument("--check", action="store_true", help="run the gold queries and print counts")
    parser.add_argument("--schemas", type=Path, help="write the catalogues to this file instead")
    args = parser.parse_args()
    if args.schemas:
        write_schemas(args.schemas)
    elif args.check:
        print("\n".join(f"{name}: {round(value, 3)}" for name, value in check()._asdict().items()))
    else:
        build(args.outdir, args.db_id)


if __name__ == "__main__":
    main()
