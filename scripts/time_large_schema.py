"""Times a schema of 1,200 tables on a PostgreSQL server: reflection, first link, next links, peak memory; as JSON.

    python scripts/time_large_schema.py postgresql://postgres@localhost/large --create

With --create the schema is made first, in a database that must be empty: 1,200 commented tables in families of one
hub and its details, about 1,150 keys, all from a seed. Without, whatever schema is there is timed.
"""

import argparse
import json
import random
import re
import resource
import statistics
import time

import sqlalchemy
from sqlalchemy.pool import NullPool

from bayeslink.linker import SchemaLinker, available_kind
from bayeslink.schema.database import read_database

NUM_TABLES = 1_200
NUM_KEYS = 1_150
FAMILY = 12
SUBJECTS = re.findall(
    r"\w+",
    """customer purchase product invoice payment shipment supplier warehouse employee department project ticket account
    contract campaign store vehicle route patient doctor course student loan policy claim asset device sensor recipe
    menu booking flight hotel player match league book author article region country budget ledger audit""",
)
DETAILS = ["history", "status", "item", "address", "note", "type", "event", "rate", "document", "contact", "review"]
QUESTIONS = (
    "Which customers placed an order last month?",
    "Total payment by invoice status",
    "How many shipments left each warehouse?",
    "List employees of the department with the largest budget",
    "Average claim per policy and region",
    "Which suppliers deliver product items with bad reviews?",
    "Students enrolled in a course without a document",
    "Flights and hotels of the same booking",
    "Loans whose account has no contact address",
    "Sensors of devices with an event today",
)


def main() -> None:
    """Prints the times of one server's schema."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("url", help="SQLAlchemy URL of a PostgreSQL database")
    parser.add_argument("--create", action="store_true", help="make the schema first")
    parser.add_argument("--channels", action="append", help="kind of channels; may be repeated")
    parser.add_argument("--rounds", type=int, default=3, help="times that each question is linked after the first")
    arguments = parser.parse_args()
    if arguments.create:
        create(arguments.url)
    kinds = arguments.channels or list(dict.fromkeys(("lexical", available_kind())))
    result = {"schema": {}, "links": {}}
    for kind in kinds:
        start = time.perf_counter()
        graph = read_database(arguments.url)
        reflected = time.perf_counter()
        linker = SchemaLinker.from_graph(graph, channels=kind)
        link = linker.link(QUESTIONS[0])
        first = time.perf_counter()
        times = [seconds(linker, question) for _ in range(arguments.rounds) for question in QUESTIONS[1:]]
        result["schema"] = {"tables": graph.num_tables, "keys": len(graph.foreign_keys), "edges": len(graph.edges)}
        result["links"][kind] = {
            "reflection_s": reflected - start,
            "first_link_s": first - reflected,
            "next_link_median_ms": 1e3 * statistics.median(times),
            "next_link_p95_ms": 1e3 * statistics.quantiles(times, n=20)[-1],
            "next_link_max_ms": 1e3 * max(times),
            "approximation": link.approximation,
        }
    result["peak_memory_mib"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(json.dumps(result, indent=1))


def seconds(linker: SchemaLinker, question: str) -> float:
    """Wall time of one link, seconds."""
    start = time.perf_counter()
    linker.link(question)
    return time.perf_counter() - start


def create(url: str) -> None:
    """Makes the schema, each hub with its details, and keys to earlier hubs up to the number wanted."""
    draw = random.Random(0)
    names = [name(place) for place in range(NUM_TABLES)]
    hubs = list(range(0, NUM_TABLES, FAMILY))
    keys = [(place, place - place % FAMILY) for place in range(NUM_TABLES) if place % FAMILY]
    while len(keys) < NUM_KEYS:
        child, parent = draw.sample(hubs, 2)
        if child > parent and (child, parent) not in keys:
            keys.append((child, parent))
    statements = []
    for place, table in enumerate(names):
        references = [parent for child, parent in keys if child == place]
        columns = ["id int PRIMARY KEY", "name varchar(80)", "created_at timestamp", "amount numeric(12, 2)"]
        columns += [f"{names[parent]}_id int REFERENCES {names[parent]}" for parent in references]
        statements.append(f"CREATE TABLE {table} ({', '.join(columns)})")
        statements.append(f"COMMENT ON TABLE {table} IS 'One row for each {table.replace('_', ' ')}'")
        statements.append(f"COMMENT ON COLUMN {table}.amount IS 'Amount of the {table.replace('_', ' ')} in euro'")
    engine = sqlalchemy.create_engine(url.replace("postgresql://", "postgresql+psycopg://"), poolclass=NullPool)
    with engine.begin() as connection:
        for statement in statements:
            connection.exec_driver_sql(statement)


def name(place: int) -> str:
    """Name of a table: that of its family, with the detail where it is one, numbered where the words run out."""
    family, detail = divmod(place, FAMILY)
    first, second = SUBJECTS[family % len(SUBJECTS)], family // len(SUBJECTS)
    hub = first if second == 0 else f"{SUBJECTS[(family * 7 + second) % len(SUBJECTS)]}_{first}_{second}"
    return f"{hub}_{DETAILS[detail - 1]}" if detail else hub


if __name__ == "__main__":
    main()
