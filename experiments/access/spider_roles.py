"""The answer-or-refuse protocol: roles over Spider dev, the gold SQL as the query, refusal as the positive class."""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np
from random_grants import COUNTS
from shown_names import shown_names
from tqdm import tqdm

from bayeslink.grounding.access import Policy, visible
from bayeslink.schema.corpus import read_corpus
from bayeslink.schema.graph import SchemaGraph
from bayeslink.simulation.authorizer import empty_database, sqlite_reads
from bayeslink.simulation.sql_worlds import World


def role_rows(folder: Path, config: Mapping) -> Iterator[dict]:
    """One row a role: as the gold SQL is written, and with its strings in single quotes."""
    corpus = read_corpus(folder, split="dev")
    ids = sorted(corpus.schemas)[: config["databases"]]
    questions = [question for question in corpus.questions if question.db_id in ids and question.query]
    questions = questions[: config["questions"]]
    parts = ("spider, as written", "spider")
    rows = {
        (part, role): {"part": part, "name": role} | dict.fromkeys(COUNTS, 0)
        for part in parts
        for role in config["roles"]
    }
    for number, db_id in enumerate(tqdm(ids, unit="database")):
        graph = corpus.schemas[db_id]
        database = empty_database(graph)
        own = [question.query or "" for question in questions if question.db_id == db_id]
        found = [(query, sqlite_reads(database, query)) for query in own]
        database.close()
        for place, role in enumerate(config["roles"]):
            policy = role_policy(role, graph, np.random.default_rng([config["seed"], number, place]))
            world, seen = World(graph, policy), visible(graph, policy)
            for query, reads in found:
                if reads is None:
                    raise ValueError(f"gold SQL of {db_id!r} does not run on its schema: {query}")
                for part in parts:
                    row = rows[part, role]
                    text = query if part == parts[0] else with_strings(query, graph)
                    answer = seen.check(text)
                    inside = world.permits(reads)
                    row["cases"] += 1
                    row["inside" if inside else "outside"] += 1
                    row["leaks"] += answer.allowed and not inside
                    row["refused_inside"] += inside and not answer.allowed
                    row["names_shown"] += shown_names(graph, seen, answer.reason, text)
    yield from rows.values()


def role_policy(role: str, graph: SchemaGraph, rng: np.random.Generator) -> Policy:
    """Grants of a role: all; all tables without a quarter of their columns; half of the tables; half of one table."""
    if role == "all":
        return Policy(role, every_table=False, tables={table.key: None for table in graph.tables})
    if role == "tables":
        kept = [table.key for table in graph.tables if rng.random() < 0.5]
        return Policy(role, dict.fromkeys(kept or [graph.tables[0].key]))
    if role not in ("columns", "least"):
        raise ValueError(f"role={role!r} is unknown; use all, columns, tables or least")
    tables = graph.tables if role == "columns" else (graph.tables[int(rng.integers(graph.num_tables))],)
    share = 0.75 if role == "columns" else 0.5
    grants = {}
    for table in tables:
        names = [column.name for column in table.columns]
        kept = [name for name in names if rng.random() < share]
        grants[table.key] = frozenset(kept or names[:1])
    return Policy(role, grants)


def with_strings(query: str, graph: SchemaGraph) -> str:
    """The query with single quotes around words in double quotes that no column of the database has."""
    names = {column.name.casefold() for table in graph.tables for column in table.columns}

    def single(match: re.Match[str]) -> str:
        word = match.group(1)
        return match.group(0) if word is None or word.casefold() in names else "'" + word.replace("'", "''") + "'"

    # What stands in single quotes already is passed over whole.
    return re.sub(r"'(?:[^']|'')*'|\"([^\"]*)\"", single, query)
