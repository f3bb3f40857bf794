"""Stored attention: s_c of every column for the questions of a benchmark, so that no analysis runs the model again.

A file of `data/attention` holds one set read by one model: an array [questions, columns] a database, columns in the
order of the catalogue, s_c as in `attention`, in single precision. "trained" is the adapter of the package, scored on
databases that it was neither trained on nor stopped by; "untrained" the plain model at the head that ranked best on a
calibration sample. Of some sets every n-th question of each database is there (`manifest.json`). Questions, schemas
and gold are read from the data home.
"""

import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int

from bayeslink.evidence.attention import EPSILON, Candidates, table_distribution
from bayeslink.evidence.benchmark import question_text
from bayeslink.evidence.channel import Evidence
from bayeslink.evidence.columns import column_owner
from bayeslink.evidence.store import DatabaseKey, load_evidence, stored_home
from bayeslink.schema.corpus import data_home, read_corpus
from bayeslink.schema.gold import resolve
from bayeslink.schema.gold_columns import told_columns
from bayeslink.schema.graph import SchemaGraph

__all__ = [
    "ATTENTION_SETS",
    "FIT_SETS",
    "RESERVED_SET",
    "AttentionScores",
    "attention_files",
    "attention_home",
    "joined_evidence",
    "scored_places",
    "stored_attention",
]

RESERVED_SET = "spider-reserved"
"""The tenths of Spider train that the adapter never saw: posteriors that read attention are fitted on them."""

FIT_SETS = (RESERVED_SET, "bird-train")
"""Sets that posteriors which read attention are fitted on; the adapter saw none of their databases."""

ATTENTION_SETS = {
    "spider-dev": ("spider", "dev", False),
    "bird-dev": ("bird", None, False),
    "bird-dev-evidence": ("bird", None, True),
    RESERVED_SET: ("spider", "train", False),
    "bird-train": ("bird-train", None, False),
}
"""Folder of the data home, split, and whether the evidence sentence is read, by set."""


class AttentionScores(NamedTuple):
    """Questions of one database that have stored attention.

    Attributes:
        key: The database.
        graph: Its schema.
        texts: The questions.
        places: Position of each among the database's resolved questions.
        scores: s_c by model, "trained" and "untrained".
        owner: Table of each column.
        gold: Whether the gold query reads the column; all False where its columns cannot all be told.
        told: Whether they can.
        tables: Whether it reads the table.
    """

    key: DatabaseKey
    graph: SchemaGraph
    texts: list[str]
    places: Int[np.ndarray, " questions"]
    scores: dict[str, Float[np.ndarray, "questions columns"]]
    owner: Int[np.ndarray, " columns"]
    gold: Bool[np.ndarray, "questions columns"]
    told: Bool[np.ndarray, " questions"]
    tables: Bool[np.ndarray, "questions tables"]

    def candidates(self, model: str) -> Candidates:
        """The scores of a model as those of candidates."""
        starts = np.searchsorted(self.owner, np.arange(self.graph.num_tables))
        return Candidates(self.scores[model], self.owner, np.arange(len(self.owner)) - starts[self.owner])


def attention_home() -> Path:
    """Folder of stored attention: `$BAYESLINK_ATTENTION`, else `data/attention` of a checkout.

    Raises:
        ValueError: If the folder is not there.
    """
    return stored_home("BAYESLINK_ATTENTION", "attention", "stored attention")


def attention_files(names: Sequence[str]) -> list[Path]:
    """Files of the sets, by both models, and the manifest.

    Raises:
        ValueError: If a set is not one of `ATTENTION_SETS`, or is not there by the trained model.
    """
    home = attention_home()
    if unknown := [name for name in names if name not in ATTENTION_SETS]:
        raise ValueError(f"name={unknown[0]!r}: use one of {', '.join(ATTENTION_SETS)}")
    found = [home / f"{model}-{name}.npz" for name in names for model in ("trained", "untrained")]
    missing = [path for path in found if path.name.startswith("trained") and not path.is_file()]
    if missing:
        raise ValueError(f"stored attention: {missing[0]} is not there; make it with scripts/train_attention.py score")
    return [*(path for path in found if path.is_file()), home / "manifest.json"]


def scored_places(num_questions: int, every_nth: int, most: int | None) -> Int[np.ndarray, " questions"]:
    """Which of a database's resolved questions are scored: one in so many, and of the rest evenly no more than `most`.

    Args:
        num_questions: Resolved questions of the database.
        every_nth: One question in so many.
        most: Questions of one database at most; None for no limit.
    """
    step = every_nth if most is None else max(every_nth, -(-num_questions // most))
    return np.arange(num_questions)[::step]


def stored_attention(name: str) -> Iterator[AttentionScores]:
    """Every database of a set that has stored attention, in the order of their ids.

    Args:
        name: One of `ATTENTION_SETS`.

    Raises:
        ValueError: If the set or the data home is not there, or they hold other questions.
    """
    found: dict[str, dict[str, np.ndarray]] = {}
    *files, manifest = attention_files([name])
    folder, split, with_evidence = ATTENTION_SETS[name]
    for path in files:
        with np.load(path, allow_pickle=False) as file:
            found[path.name.split("-")[0]] = {key: file[key].astype(np.float64) for key in file.files}
    made = json.loads(manifest.read_text())
    step, most = made["every_nth"][name], made.get("most", {}).get(name)
    corpus = read_corpus(data_home() / folder, split=split)
    kept = tuple(question for question in corpus.questions if question.db_id in found["trained"])
    resolved = resolve(replace(corpus, questions=kept)).gold
    for db_id in sorted(found["trained"]):
        graph = corpus.schemas[db_id]
        own = [question for question in kept if question.db_id == db_id and question.id in resolved]
        places = scored_places(len(own), step, most)
        owner = column_owner(graph)
        starts = np.searchsorted(owner, np.arange(graph.num_tables))
        gold = np.zeros((len(places), len(owner)), dtype=bool)
        told = np.ones(len(places), dtype=bool)
        tables = np.zeros((len(places), graph.num_tables), dtype=bool)
        for row, place in enumerate(places):
            read = told_columns(own[place].query, graph)
            told[row] = read is not None
            gold[row, [starts[table] + column for table, column in read or ()]] = True
            tables[row, sorted(resolved[own[place].id])] = True
        scores = {model: arrays[db_id] for model, arrays in found.items() if db_id in arrays}
        if odd := [model for model, values in scores.items() if values.shape != gold.shape]:
            raise ValueError(
                f"stored attention of {db_id} ({odd[0]}) has the shape {scores[odd[0]].shape}, the data home "
                f"{gold.shape}; score {name} again"
            )
        texts = [question_text(own[place], with_evidence) for place in places]
        yield AttentionScores((folder, db_id), graph, texts, places, scores, owner, gold, told, tables)


def joined_evidence(name: str, items: Sequence[AttentionScores], channels: Sequence[str]) -> list[Evidence]:
    """Stored evidence of the same questions, with log pi_t of the trained model as the last channel, `attention`.

    Args:
        name: The set.
        items: Its stored attention.
        channels: Other channels, of `evidence.store`.

    Raises:
        ValueError: If stored evidence and stored attention hold other questions.
    """
    stored = {item.key: item for item in load_evidence("spider-train" if name == RESERVED_SET else name, channels)}
    joined = []
    for item in items:
        own = stored[item.key].select_questions(item.places)
        if own.gold is None or not np.array_equal(own.gold, item.tables):
            raise ValueError(f"stored evidence and attention of {item.key} hold other questions; score them again")
        share = np.log(table_distribution(item.candidates("trained"), own.num_tables) + EPSILON)
        values = np.concatenate([own.values, share[..., None]], axis=2)
        joined.append(replace(own, channels=(*own.channels, "attention"), values=values))
    return joined
