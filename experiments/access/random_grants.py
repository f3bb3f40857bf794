"""The check on random schemas, grants and queries, by form of query."""

from collections.abc import Iterator, Mapping

import numpy as np
from shown_names import shown_names
from tqdm import tqdm

from bayeslink.grounding.access import visible
from bayeslink.simulation.authorizer import empty_database, sqlite_reads
from bayeslink.simulation.sql_worlds import COMMON_FORMS, RARE_FORMS, random_query, random_world

TRIES = 400
"""Worlds drawn until a query of a form is valid SQL."""


def random_rows(config: Mapping) -> Iterator[dict]:
    """One row a form."""
    forms = [("common", name, config["cases_common"]) for name in COMMON_FORMS]
    forms += [("rare", name, config["cases_rare"]) for name in RARE_FORMS]
    for number, (part, form, cases) in enumerate(tqdm(forms, unit="form")):
        row = {"part": part, "name": form} | dict.fromkeys(COUNTS, 0)
        for case in range(cases):
            counted(row, form, np.random.default_rng([config["seed"], number, case]))
        yield row


COUNTS = ("cases", "inside", "outside", "leaks", "refused_inside", "names_shown")


def counted(row: dict, form: str, rng: np.random.Generator) -> None:
    """Adds one case to a row."""
    for _ in range(TRIES):
        world = random_world(rng)
        query = random_query(form, world, rng)
        database = empty_database(world.graph)
        reads = sqlite_reads(database, query.sql)
        database.close()
        if reads is not None:
            break
    else:
        raise RuntimeError(f"form={form!r}: {TRIES} queries were no SQL; change the generator")
    inside = world.permits(reads | query.compared)
    seen = visible(world.graph, world.policy)
    answer = seen.check(query.sql)
    row["cases"] += 1
    row["inside" if inside else "outside"] += 1
    row["leaks"] += answer.allowed and not inside
    row["refused_inside"] += inside and not answer.allowed
    row["names_shown"] += shown_names(world.graph, seen, answer.reason, query.sql)
