"""What a table costs a prompt: an estimate of the tokens of its DDL.

The text is `CREATE TABLE name (column type, ..., FOREIGN KEY (...) REFERENCES ...);`, and a token is taken as four
characters, the usual rule for English text and SQL under byte-pair encodings. It is an estimate by design: budgets
compare tables with each other, and a tokeniser would tie them to one model.
"""

from math import ceil

import numpy as np
from jaxtyping import Float

from bayeslink.schema.graph import SchemaGraph

__all__ = ["CHARACTERS_PER_TOKEN", "ddl_tokens"]

CHARACTERS_PER_TOKEN = 4
"""Characters of a token; a count."""


def ddl_tokens(graph: SchemaGraph) -> Float[np.ndarray, " tables"]:
    """Estimated tokens of each table's DDL; a count, at least 1."""
    keys: list[list[str]] = [[] for _ in graph.tables]
    for key in graph.foreign_keys:
        target = graph.tables[key.ref_table].full_name
        keys[key.table].append(f"FOREIGN KEY ({', '.join(key.columns)}) REFERENCES {target}")
    counts = []
    for table, own in zip(graph.tables, keys, strict=True):
        parts = [f"{column.name} {column.type}".strip() for column in table.columns] + own
        text = f"CREATE TABLE {table.full_name} ({', '.join(parts)});"
        counts.append(max(1, ceil(len(text) / CHARACTERS_PER_TOKEN)))
    return np.array(counts, dtype=np.float64)
