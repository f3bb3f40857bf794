"""Composite foreign keys from sources that list every key column by column.

Spider, BIRD and the project's line format write (a, b) -> p(x, y) as two lines, a -> p.x and
b -> p.y, which read alone would be two keys. The two are one key exactly when together they
reference the whole composite primary key of p; that is what is looked for here.
"""

from collections.abc import Sequence
from dataclasses import replace

from bayeslink.schema.graph import RawKey, Table

__all__ = ["composite_keys"]


def composite_keys(tables: Sequence[Table], lines: Sequence[RawKey]) -> list[RawKey]:
    """Foreign keys of a column-by-column listing, composite ones put back together.

    Consecutive lines between the same ordered pair of tables are one key when their columns are
    distinct and their referenced columns are together exactly the parent's primary key of two or
    more columns. Every other line is its own key. The order of the keys is that of the lines.

    Args:
        tables: The tables, whose primary keys decide.
        lines: One key of one column per line; a line with more columns is passed through.
    """
    primary = {table.key: frozenset(name.casefold() for name in table.primary_key) for table in tables}
    keys: list[RawKey] = []
    start = 0
    while start < len(lines):
        wanted = primary.get(lines[start].parent_key, frozenset())
        block = lines[start : start + len(wanted)]
        if len(wanted) >= 2 and _is_one_key(block, wanted):
            keys.append(
                replace(
                    block[0],
                    columns=tuple(line.columns[0] for line in block),
                    ref_columns=tuple(line.ref_columns[0] for line in block),
                )
            )
            start += len(block)
        else:
            keys.append(lines[start])
            start += 1
    return keys


def _is_one_key(block: Sequence[RawKey], primary: frozenset[str]) -> bool:
    if any(len(line.columns) != 1 or len(line.ref_columns) != 1 for line in block):
        return False
    sides = {(line.child_key, line.parent_key, line.origin) for line in block}
    columns = {line.columns[0].casefold() for line in block}
    ref_columns = {line.ref_columns[0].casefold() for line in block}
    return len(sides) == 1 and len(columns) == len(block) == len(primary) and ref_columns == primary
