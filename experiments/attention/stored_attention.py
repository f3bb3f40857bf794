"""Stored attention on the columns of each question's schema, with the gold columns from the data home."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np

from bayeslink.evidence.benchmark import question_text
from bayeslink.evidence.cache import checkout
from bayeslink.evidence.columns import column_owner
from bayeslink.schema.corpus import data_home, read_corpus
from bayeslink.schema.gold import resolve
from bayeslink.schema.gold_columns import gold_columns
from bayeslink.schema.graph import SchemaGraph

SOURCES = {"spider-dev": ("spider", "dev", False), "bird-dev": ("bird", None, False)}
SOURCES |= {"bird-dev-evidence": ("bird", None, True), "spider-reserved": ("spider", "train", False)}


class Columns(NamedTuple):
    """Questions of one database that have stored attention.

    Attributes:
        key: The database.
        graph: Its schema.
        texts: The questions.
        places: Position of each among the database's resolved questions.
        attention: s_c by model, "trained" and "untrained".
        owner: Table of each column.
        gold: Whether the gold query reads the column.
        tables: Whether it reads the table.
    """

    key: tuple[str, str]
    graph: SchemaGraph
    texts: list[str]
    places: np.ndarray
    attention: dict[str, np.ndarray]
    owner: np.ndarray
    gold: np.ndarray
    tables: np.ndarray


def attention_home() -> Path:
    """Folder of the stored attention of a checkout."""
    root = checkout()
    if root is None or not (root / "data" / "attention").is_dir():
        raise ValueError("data/attention is not there; run this from a checkout of the project")
    return root / "data" / "attention"


def attention_files(names: list[str]) -> list[Path]:
    """Files of the sets, by both models."""
    home = attention_home()
    found = [home / f"{model}-{name}.npz" for name in names for model in ("trained", "untrained")]
    return [path for path in found if path.is_file()]


def stored_columns(name: str) -> Iterator[Columns]:
    """Every database of a set that has stored attention, in the order of their ids."""
    folder, split, with_evidence = SOURCES[name]
    arrays = {}
    for path in attention_files([name]):
        with np.load(path, allow_pickle=False) as file:
            arrays[path.name.split("-")[0]] = {key: file[key].astype(np.float64) for key in file.files}
    step = json.loads((attention_home() / "manifest.json").read_text())["every_nth"][name]
    corpus = read_corpus(data_home() / folder, split=split)
    resolved = resolve(corpus).gold
    for db_id in sorted(arrays["trained"]):
        graph = corpus.schemas[db_id]
        own = [question for question in corpus.questions if question.db_id == db_id and question.id in resolved]
        places = np.arange(len(own))[::step]
        owner = column_owner(graph)
        starts = np.searchsorted(owner, np.arange(graph.num_tables))
        gold = np.zeros((len(places), len(owner)), dtype=bool)
        tables = np.zeros((len(places), graph.num_tables), dtype=bool)
        for row, place in enumerate(places):
            read = gold_columns(own[place].query or "", graph).columns
            gold[row, [starts[table] + column for table, column in read]] = True
            tables[row, sorted(resolved[own[place].id])] = True
        texts = [question_text(own[place], with_evidence) for place in places]
        attention = {model: found[db_id] for model, found in arrays.items() if db_id in found}
        yield Columns((folder, db_id), graph, texts, places, attention, owner, gold, tables)
