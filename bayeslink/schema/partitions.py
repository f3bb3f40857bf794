"""Families of dated or numbered tables as one node each.

A warehouse writes one table a day and reads them as a set: events_20201101 to events_20210131 are ninety-two entries
of the catalogue and one table to whoever asks. They differ by a date alone, which no evidence can weigh, so a family
becomes one node: its name has `*` where the members differ, its columns are those of all members, its `members` the
full names that it stands for. A family is

    at least `MIN_MEMBERS` tables of one schema whose names are equal but for one part, a date (20201101, 2020_11,
    2020-11-01, 2020_q1, 2020) or, where no date fits, a number, and of which each shares at least half of the
    columns that it or the commonest set of columns has.

A table belongs to one family, of those that fit it the one with the most members, dates first. Keys of members are
keys of the node; those between members of one family become self keys.
"""

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from bayeslink.schema.graph import Column, SchemaGraph, Table, build_graph, raw_key

__all__ = ["MIN_MEMBERS", "MIN_SHARED_COLUMNS", "fold_partitions"]

MIN_MEMBERS = 3
"""Fewest tables of a family; a count."""
MIN_SHARED_COLUMNS = 0.5
"""Least share of columns, of those of a member and the commonest set together, that both have."""

_YEAR = r"(?:19|20)\d{2}"
_MONTH, _DAY = r"(?:0[1-9]|1[0-2])", r"(?:0[1-9]|[12]\d|3[01])"
_DATE = re.compile(rf"(?<!\d){_YEAR}(?:[_-]?{_MONTH}(?:[_-]?{_DAY})?|[_-]?[qQ][1-4])?(?!\d)")
_NUMBER = re.compile(r"\d+")

Family = tuple[str, str]
"""Name of the schema, case-folded, and of the table with `*` for the part that varies."""


def fold_partitions(graph: SchemaGraph) -> SchemaGraph:
    """The schema with each family of dated or numbered tables as one node; the graph itself where there is none.

    A folded node stands where the first of its members stood. A name that some other table has already is not taken:
    that family stays as it is.
    """
    families = _families(graph.tables)
    if not families:
        return graph
    family_of = {place: family for family, places in families.items() for place in places}
    node_of: dict[int, Table] = {}
    tables: list[Table] = []
    for place, table in enumerate(graph.tables):
        family = family_of.get(place)
        if family is None:
            node_of[place] = table
            tables.append(table)
        elif place == families[family][0]:
            node = _node(family[1], [graph.tables[member] for member in families[family]])
            tables.append(node)
            node_of |= dict.fromkeys(families[family], node)
    keys = [raw_key(key, node_of[key.table], node_of[key.ref_table]) for key in graph.foreign_keys]
    folded = build_graph(graph.name, tables, keys, graph.dialect, graph.warnings)
    return replace(folded, dropped=(*graph.dropped, *folded.dropped))


def _families(tables: Sequence[Table]) -> dict[Family, list[int]]:
    """Places of the members of each family, in catalogue order."""
    taken: set[int] = set()
    found: dict[Family, list[int]] = {}
    names = {table.key for table in tables}
    for pattern in (_DATE, _NUMBER):
        groups: dict[Family, list[int]] = {}
        for place, table in enumerate(tables):
            # Views have rows of their own making, and a family folded before is not folded again.
            if place not in taken and not table.is_view and not table.members:
                for template in _templates(table.name, pattern):
                    groups.setdefault(((table.schema or "").casefold(), template), []).append(place)
        for family, places in sorted(groups.items(), key=lambda item: (-len(item[1]), item[0])):
            alike = _alike([place for place in places if place not in taken], tables)
            if len(alike) >= MIN_MEMBERS and (family[0], family[1].casefold()) not in names:
                found[family] = alike
                taken.update(alike)
    return found


def _templates(name: str, pattern: re.Pattern[str]) -> list[str]:
    """The name with `*` for each part that fits, one part at a time; none in the qualifier of a dotted name."""
    start = name.rfind(".") + 1
    fits = [match for match in pattern.finditer(name) if match.start() >= start]
    return [f"{name[: match.start()]}*{name[match.end() :]}" for match in fits]


def _alike(places: Sequence[int], tables: Sequence[Table]) -> list[int]:
    """The places whose tables share enough columns with the commonest set of columns among them."""
    columns = {place: frozenset(column.name.casefold() for column in tables[place].columns) for place in places}
    if not columns:
        return []
    counts = Counter(columns.values())
    common = max(counts, key=lambda own: (counts[own], len(own), sorted(own)))
    return [
        place for place, own in columns.items() if len(own & common) >= MIN_SHARED_COLUMNS * max(len(own | common), 1)
    ]


def _node(name: str, members: Sequence[Table]) -> Table:
    """One table for a family: columns of the widest member first, then those that only others have."""
    widest = max(members, key=lambda table: len(table.columns))
    columns: dict[str, Column] = {}
    for table in (widest, *members):
        for column in table.columns:
            columns.setdefault(column.name.casefold(), column)
    natural = next((table.natural_name for table in members if table.natural_name), None)
    return Table(
        name,
        tuple(columns.values()),
        widest.schema,
        natural_name=None if natural is None else " ".join(_NUMBER.sub(" ", natural).split()) or None,
        description=next((table.description for table in (widest, *members) if table.description), None),
        key_columns=widest.key_columns,
        members=tuple(table.full_name for table in members),
        partial=any(table.partial for table in members),
    )
