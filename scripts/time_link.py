"""Times a warm link on a small database, by kind of evidence; prints a table.

    python scripts/time_link.py DATABASE [KIND ...]      # default: every kind whose extras are installed

The database is an SQLite file, of 13 tables for the figures in docs/how-to/real-schemas.md. Each question is new to the
linker, so that nothing of it is cached. One process, the median of thirty; compare within one run.
"""

import statistics
import sys
import time

from bayeslink import SchemaLinker

QUESTIONS = (
    "Which customers bought which products?",
    "How many stores are there?",
    "Show the returns of each customer",
    "List suppliers of products by category",
    "What is the total of transactions per store?",
)


def main(database: str, kinds: list[str]) -> None:
    """Command line."""
    print(f"{'kind':<18}{'first, s':>10}{'warm, ms':>10}")
    for kind in kinds:
        start = time.perf_counter()
        linker = SchemaLinker.from_database(database, channels=kind)
        for question in QUESTIONS:
            linker.link(question)
        first = time.perf_counter() - start
        taken = []
        for number in range(6):
            for question in QUESTIONS:
                start = time.perf_counter()
                _ = linker.link(f"{question} {number}").tables
                taken.append(time.perf_counter() - start)
        print(f"{kind:<18}{first:>10.1f}{1e3 * statistics.median(taken):>10.1f}")


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:] or ["lexical", "boosted_lexical", "embedding", "learned"])
