"""Evidence of a pool of databases: each database's own, and what tells databases apart.

A table model reads the evidence of one database, where a word's weight is that among its own tables. Which database a
question is about must be read on one scale for all, so the same channels are also scored on two other graphs:

    every table    all tables of the pool in one graph
    every database databases in place of tables, with the words of all their tables and columns as columns

The features of database d are then, for each channel of the first graph, the largest value and the log-sum-exp of the
values over the tables of d (`database_score.database_features`), the channels of the second at d itself, and the
log-odds that trees give the tables of d, again by maximum and log-sum-exp.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from jaxtyping import Float
from tqdm import tqdm

from bayeslink.evidence.channel import Channel, Evidence, compute_evidence
from bayeslink.schema.graph import Column, SchemaGraph, Table, build_graph

__all__ = ["PoolEvidence", "databases_graph", "pool_evidence", "tables_graph"]


class PoolEvidence(NamedTuple):
    """Evidence of every question for every database of a pool.

    Attributes:
        databases: Evidence of each database, all with the same questions, in the order of the pool.
        tables: Values of the channels of the graph of every table.
        whole: Values of the channels of the graph of every database.
    """

    databases: tuple[Evidence, ...]
    tables: Float[np.ndarray, "questions tables channels"]
    whole: Float[np.ndarray, "questions databases channels"]

    def parts(self, values: Float[np.ndarray, "questions tables channels"]) -> list[np.ndarray]:
        """Values of every table of the pool, cut into those of each database."""
        ends = np.cumsum([item.num_tables for item in self.databases])[:-1]
        return np.split(values, ends, axis=1)


def tables_graph(graphs: Mapping[str, SchemaGraph]) -> SchemaGraph:
    """All tables of the pool in one graph, database by database, without keys.

    Raises:
        ValueError: If there is no database.
    """
    tables = [
        Table(
            table.name,
            table.columns,
            f"{db_id}.{table.schema or ''}",
            table.natural_name,
            table.description,
            table.is_view,
            table.key_columns,
        )
        for db_id, graph in _some(graphs).items()
        for table in graph.tables
    ]
    return build_graph("every table", tables)


def databases_graph(graphs: Mapping[str, SchemaGraph]) -> SchemaGraph:
    """One table for each database, named like it, whose columns are its tables' and columns' names.

    Raises:
        ValueError: If there is no database.
    """
    tables = []
    for db_id, graph in _some(graphs).items():
        columns: dict[str, Column] = {}
        for table in graph.tables:
            columns.setdefault(table.name.casefold(), Column(table.name, "", table.natural_name, table.description))
            for column in table.columns:
                columns.setdefault(column.name.casefold(), Column(column.name, column.type, column.natural_name))
        tables.append(Table(db_id, tuple(columns.values())))
    return build_graph("every database", tables)


def pool_evidence(
    graphs: Mapping[str, SchemaGraph],
    questions: Sequence[str],
    channels: Sequence[Channel],
    pool_channels: Sequence[Channel],
    *,
    dataset: str = "live",
    cache: Path | None = None,
    progress: bool = False,
) -> PoolEvidence:
    """Evidence of every question for every database of a pool, raw.

    Args:
        graphs: Schema of each database, by its id.
        questions: Texts of the questions.
        channels: Channels of the table model.
        pool_channels: Channels that are scored on the graphs of every table and of every database.
        dataset: Data set of the databases, the first part of their keys.
        cache: Folder in which scores are kept; None keeps nothing.
        progress: Show a progress bar over databases.

    Raises:
        ValueError: If there is no database, or a channel gives a value that is not finite.
    """
    whole = compute_evidence(databases_graph(graphs), questions, pool_channels, cache=cache).values
    tables = compute_evidence(tables_graph(graphs), questions, pool_channels, cache=cache).values
    found = [
        compute_evidence(graph, questions, channels, dataset=dataset, cache=cache)
        for graph in tqdm(graphs.values(), desc="pool", unit="database", disable=not progress)
    ]
    return PoolEvidence(tuple(found), tables, whole)


def _some(graphs: Mapping[str, SchemaGraph]) -> Mapping[str, SchemaGraph]:
    if not graphs:
        raise ValueError("graphs hold no database; a pool needs at least one")
    return graphs
