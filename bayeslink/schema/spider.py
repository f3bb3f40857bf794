"""Corpora from the official files of Spider (Yu et al. 2018) and BIRD (Li et al. 2023).

Both describe databases in the `tables.json` layout: parallel lists of columns, each with the number
of its table, keys by column number, column 0 the wildcard `*`. BIRD adds a CSV file of column
descriptions per table, beside its databases.
"""

import csv
import io
import json
from collections.abc import Mapping
from pathlib import Path
from typing import TypedDict, cast

from bayeslink.schema.composite import composite_keys
from bayeslink.schema.corpus import Corpus, Question
from bayeslink.schema.graph import Column, RawKey, SchemaGraph, Table, build_graph
from bayeslink.schema.lines import Record

__all__ = ["read_bird", "read_spider"]

Descriptions = Mapping[tuple[str, str], tuple[str | None, str | None]]
"""(natural name, description) by case-folded (table, column)."""


class _Entry(TypedDict):
    """One database of a tables.json file; the fields that are read."""

    table_names_original: list[str]
    table_names: list[str]
    column_names_original: list[tuple[int, str]]
    column_names: list[tuple[int, str]]
    column_types: list[str]
    primary_keys: list[int | list[int]]
    foreign_keys: list[tuple[int | list[int], int | list[int]]]


def read_spider(folder: str | Path) -> Corpus:
    """Spider as distributed: `tables.json` with `train_spider.json`, `train_others.json`, `dev.json`.

    Each question file found is one split: `train`, `train_others` and `dev`.

    Raises:
        ValueError: If `tables.json` or every question file is missing, or an entry is broken.
    """
    folder = Path(folder)
    schemas = _schemas(folder, ["tables.json"])
    files = {"train_spider.json": "train", "train_others.json": "train_others", "dev.json": "dev"}
    return Corpus("spider", schemas, _questions(folder, "spider", files, "query"))


def read_bird(folder: str | Path) -> Corpus:
    """BIRD as distributed: `dev.json` with `dev_tables.json`, `train.json` with `train_tables.json`, or both.

    Descriptions are read from `{dev,train}_databases/DB/database_description/TABLE.csv` where these
    exist: the natural name is `column_name`, the description joins `column_description` and
    `value_description`.

    Raises:
        ValueError: If every tables or question file is missing, or an entry is broken.
    """
    folder = Path(folder)
    schemas = _schemas(folder, ["dev_tables.json", "train_tables.json"])
    files = {"train.json": "train", "dev.json": "dev"}
    return Corpus("bird", schemas, _questions(folder, "bird", files, "SQL"))


def _schemas(folder: Path, files: list[str]) -> dict[str, SchemaGraph]:
    found = [folder / file for file in files if (folder / file).is_file()]
    if not found:
        raise ValueError(f"{folder}: holds none of {files}; give the folder of the official files")
    schemas: dict[str, SchemaGraph] = {}
    for path in found:
        databases = folder / path.name.replace("_tables.json", "_databases")
        for record in _entries(path):
            db_id = record.text("db_id")
            if db_id in schemas:
                raise record.error(f"database {db_id!r} appears twice; keep one entry per db_id")
            schemas[db_id] = _schema(record, _descriptions(databases / db_id / "database_description"))
    return schemas


def _questions(folder: Path, name: str, files: Mapping[str, str], sql: str) -> tuple[Question, ...]:
    found = {folder / file: split for file, split in files.items() if (folder / file).is_file()}
    if not found:
        raise ValueError(f"{folder}: holds none of {list(files)}; give the folder of the official files")
    questions = []
    for path, split in found.items():
        for index, record in enumerate(_entries(path)):
            number = record.maybe_number("question_id")
            questions.append(
                Question(
                    f"{name}-{split}-{index if number is None else number}",
                    record.text("db_id"),
                    record.text("question"),
                    record.maybe_text("evidence") or None,
                    record.text(sql),
                    split,
                    record.maybe_text("difficulty"),
                )
            )
    return tuple(questions)


def _entries(path: Path) -> list[Record]:
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise ValueError(f"{path}: not JSON ({error}); fetch the file again") from error
    if not isinstance(data, list) or not all(isinstance(entry, dict) for entry in data):
        raise ValueError(f"{path}: not a list of objects; give the official file")
    return [Record(f"{path}, entry {number}", entry) for number, entry in enumerate(data)]


def _schema(record: Record, descriptions: Descriptions) -> SchemaGraph:
    try:
        tables, keys = _tables_and_keys(cast(_Entry, record.data), descriptions)
    except (KeyError, IndexError, TypeError, ValueError) as error:
        raise record.error(f"not in the tables.json layout ({error!r}); give the official file") from error
    if not tables:
        raise record.error("the database has no tables; remove the entry")
    try:
        return build_graph(record.text("db_id"), tables, composite_keys(tables, keys))
    except ValueError as error:
        raise record.error(str(error)) from error


def _tables_and_keys(entry: _Entry, descriptions: Descriptions) -> tuple[list[Table], list[RawKey]]:
    names = entry["table_names_original"]
    columns = entry["column_names_original"]
    primary = [number for key in entry["primary_keys"] for number in _numbers(key)]
    members: list[list[Column]] = [[] for _ in names]
    listing = zip(columns, entry["column_names"], entry["column_types"], strict=True)
    for number, ((table, name), (_, natural), kind) in enumerate(listing):
        if table >= 0:  # -1 is the wildcard's
            stated, description = descriptions.get((names[table].casefold(), name.casefold()), (None, None))
            members[table].append(Column(name, kind, stated or natural, description, number in primary))
    tables = [
        Table(
            name,
            tuple(members[index]),
            natural_name=natural,
            key_columns=tuple(columns[number][1] for number in primary if columns[number][0] == index),
        )
        for index, (name, natural) in enumerate(zip(names, entry["table_names"], strict=True))
    ]
    keys = [
        RawKey(
            names[columns[_numbers(child)[0]][0]],
            tuple(columns[number][1] for number in _numbers(child)),
            names[columns[_numbers(parent)[0]][0]],
            tuple(columns[number][1] for number in _numbers(parent)),
        )
        for child, parent in entry["foreign_keys"]
    ]
    return tables, keys


def _numbers(key: int | list[int]) -> list[int]:
    return key if isinstance(key, list) else [key]


def _descriptions(folder: Path) -> dict[tuple[str, str], tuple[str | None, str | None]]:
    found: dict[tuple[str, str], tuple[str | None, str | None]] = {}
    for path in sorted(folder.glob("*.csv")):
        for row in csv.DictReader(io.StringIO(_decoded(path), newline="")):
            cells = {(name or "").strip().casefold(): (row[name] or "") for name in row if name is not None}
            column = cells.get("original_column_name", "").strip()
            natural = " ".join(cells.get("column_name", "").split())
            texts = [" ".join(cells.get(f"{kind}_description", "").split()) for kind in ("column", "value")]
            description = "; ".join(text for text in dict.fromkeys(texts) if text)
            found[path.stem.casefold(), column.casefold()] = (natural or None, description or None)
    return found


def _decoded(path: Path) -> str:
    data = path.read_bytes()
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:  # BIRD's files are UTF-8 or Latin-1, and Latin-1 decodes any bytes
        return data.decode("latin-1")
