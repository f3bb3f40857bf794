"""Foreign keys guessed from names, types and primary keys, for catalogues that declare none.

A candidate is an ordered pair of columns c of table A (the child) and k of another table B (the parent), where k is in
B's primary key, or could be an identifier (by its words, where the schema states no primary keys; by its words and
those of B's name, where it states some), and the words of c

    same       are those of k
    table_key  are those of B's name and then those of k, or of B's name alone and k is B's only primary key
    role       are these with others before them or a number after them: home_team_id, team_id_2 for team.id

Words are those of `schema.words`, so that number and spelling of names do not matter. A column references one of its
candidates or none, with the probabilities of a multinomial logit (McFadden 1974),

    P(c references k) = exp(w . x_ck) / (1 + sum_j exp(w . x_cj)),

x_ck the features of `FEATURES`, and w fitted on the declared keys of Spider train and BIRD train
(`scripts/fit_joins.py`), where half of the databases hid their primary keys: catalogues that declare no foreign keys
often declare no primary keys either. Where P(c references any) is large enough, its best candidate is kept.
"""

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int

from bayeslink.schema.graph import ForeignKey, Origin, RawKey, SchemaGraph, Table, build_graph, raw_key
from bayeslink.schema.words import split_words

__all__ = [
    "FEATURES",
    "Candidate",
    "InferredKey",
    "best_candidates",
    "candidates",
    "column_numbers",
    "infer_keys",
    "reference_probabilities",
    "with_inferred_keys",
]

WEIGHTS_FILE = Path(__file__).parent / "joins.json"
"""The weights w by name of feature."""

FEATURES = (
    "constant",
    "same",
    "table_key",
    "role",
    "child_is_key",
    "parent_is_key",
    "keys_unstated",
    "parent_is_first",
    "child_is_first",
    "table_in_parent_column",
    "table_in_child_table",
    "identifier",
    "log_tables_with_name",
    "same_type",
    "other_kind_of_type",
)
"""Names of the features of a candidate, in order.

Each is 1 where it holds, else 0, but for the logarithm of how many tables have a column of the child's name.
"""

_IDENTIFIERS = {"id", "key", "code", "no", "num", "number", "uuid", "guid", "nr", "ref", "fk", "pk", "abbr", "isbn"}
_NUMBERS = ("int", "num", "dec", "float", "double", "real", "serial", "money")
_TEXTS = ("char", "text", "string", "clob", "uuid", "enum", "name")


@dataclass(frozen=True)
class Candidate:
    """A pair of columns that could be a foreign key.

    Attributes:
        table: Position of the child.
        column: Position of its column.
        ref_table: Position of the parent.
        ref_column: Position of its column.
        features: Values of `FEATURES`.
    """

    table: int
    column: int
    ref_table: int
    ref_column: int
    features: tuple[float, ...]


@dataclass(frozen=True)
class InferredKey:
    """A guessed key of one column and its score.

    Attributes:
        key: The key, of origin `inferred`.
        score: P(the key would be declared), a probability.
    """

    key: RawKey
    score: float


def candidates(graph: SchemaGraph) -> list[Candidate]:
    """Every candidate of a schema, self keys and views left out, in the order of children and their columns."""
    columns = _Columns(graph)
    return [
        Candidate(child, place, *parent, columns.features(kind, (child, place), parent))
        for child, table in enumerate(graph.tables)
        for place in range(0 if table.is_view else len(table.columns))
        for kind, parent in columns.parents(child, place)
        if parent[0] != child
    ]


def reference_probabilities(
    weights: Float[np.ndarray, " features"], listed: Sequence[Candidate]
) -> Float[np.ndarray, " candidates"]:
    """P(c references k) of each candidate, those of one column following each other.

    Args:
        weights: w, in the order of `FEATURES`.
        listed: Candidates as `candidates` gives them.
    """
    if not listed:
        return np.zeros(0)
    utility = np.array([item.features for item in listed]) @ weights
    column = column_numbers(listed)
    # The largest utility of a column, or that of "none", is taken out, so that no exponential overflows.
    most = np.maximum.reduceat(utility, np.unique(column, return_index=True)[1]).clip(0)[column]
    shares = np.exp(utility - most)
    return shares / (np.exp(-most) + np.bincount(column, shares)[column])


def column_numbers(listed: Sequence[Candidate]) -> Int[np.ndarray, " candidates"]:
    """Number of the child's column of each candidate, from 0 by first appearance."""
    numbers: dict[tuple[int, int], int] = {}
    return np.array([numbers.setdefault((item.table, item.column), len(numbers)) for item in listed], dtype=np.int64)


def infer_keys(graph: SchemaGraph, threshold: float | None = None) -> list[InferredKey]:
    """Guessed keys of a schema, most certain first; keys that the schema states have no influence.

    Args:
        graph: The schema.
        threshold: Least P(the column references any), a probability; by default the one of the best F1 on the
            databases that the weights were fitted on, each scored without itself.

    Raises:
        ValueError: If the threshold is not a probability.
    """
    stored = _stored()
    least = stored.threshold if threshold is None else threshold
    if not 0 <= least <= 1:
        raise ValueError(f"threshold={threshold}: a probability between 0 and 1 is needed")
    listed = candidates(graph)
    found = best_candidates(listed, reference_probabilities(stored.weights, listed), least)
    return [InferredKey(_key(graph, item), score) for score, item in found]


def best_candidates(
    listed: Sequence[Candidate], probability: Float[np.ndarray, " candidates"], threshold: float
) -> list[tuple[float, Candidate]]:
    """The best candidate of each column that references any with at least this probability; most certain first."""
    column = column_numbers(listed)
    any_of = np.bincount(column, probability) if listed else np.zeros(0)
    best: dict[int, tuple[float, Candidate]] = {}
    for number, score, item in zip(column.tolist(), probability.tolist(), listed, strict=True):
        if any_of[number] >= threshold and (number not in best or score > best[number][0]):
            best[number] = score, item
    found = sorted(best.values(), key=lambda pair: (-pair[0], pair[1].table, pair[1].column))
    return _one_direction(found)


def with_inferred_keys(graph: SchemaGraph, threshold: float | None = None) -> SchemaGraph:
    """The schema with guessed keys added, of origin `inferred`, where they join two tables that no key joins yet.

    Args:
        graph: The schema.
        threshold: As in `infer_keys`.

    Raises:
        ValueError: If the threshold is not a probability.
    """
    joined = {(edge.first, edge.second) for edge in graph.edges}
    stated = [raw_key(key, graph.tables[key.table], graph.tables[key.ref_table]) for key in graph.foreign_keys]
    place = {table.key: position for position, table in enumerate(graph.tables)}
    new = [
        found.key
        for found in infer_keys(graph, threshold)
        if tuple(sorted((place[found.key.child_key], place[found.key.parent_key]))) not in joined
    ]
    more = build_graph(graph.name, graph.tables, [*stated, *new], graph.dialect, graph.warnings)
    return replace(more, dropped=(*graph.dropped, *more.dropped))


class _Columns:
    """Words of every column and table of a schema, and where each sequence of words stands."""

    def __init__(self, graph: SchemaGraph) -> None:
        self.tables = graph.tables
        self.names = [tuple(split_words(table.name)) for table in graph.tables]
        self.words = [[tuple(split_words(column.name)) for column in table.columns] for table in graph.tables]
        self.keys = [_only_key(table) for table in graph.tables]
        self.stated = any(table.primary_key for table in graph.tables)
        spread = [set(words) for words in self.words]
        self.tables_with = Counter(words for own in spread for words in own)
        # A parent answers to the words of its key column, to these after its own name's, and to its name alone.
        self.answers: dict[tuple[str, ...], list[tuple[str, tuple[int, int]]]] = {}
        for ref, own in enumerate(self.words):
            if graph.tables[ref].is_view:
                continue
            for other, words in enumerate(own):
                if self._may_be_key(ref, other):
                    self._answer(words, "same", (ref, other))
                    if words[: len(self.names[ref])] != self.names[ref]:
                        self._answer((*self.names[ref], *words), "table_key", (ref, other))
                if other == self.keys[ref]:
                    self._answer(self.names[ref], "table_key", (ref, other))

    def _answer(self, words: tuple[str, ...], kind: str, place: tuple[int, int]) -> None:
        if words:
            self.answers.setdefault(words, []).append((kind, place))

    def _may_be_key(self, table: int, column: int) -> bool:
        words = set(self.words[table][column])
        named = bool(_IDENTIFIERS & words)
        if self.stated:
            return self.tables[table].columns[column].primary_key or (named and bool(words & set(self.names[table])))
        return named or column == 0

    def parents(self, child: int, column: int) -> list[tuple[str, tuple[int, int]]]:
        """Kind and place of each column that this one could reference, the closest kind of each place."""
        words = self.words[child][column]
        found: dict[tuple[int, int], str] = {}
        for kind, place in self.answers.get(words, []):
            found.setdefault(place, kind)
        bare = words[:-1] if words and words[-1].isdigit() else words
        for start in range(bare == words, len(bare)):
            # One word such as `id` ends too many names to say anything.
            ends = bare[start:]
            if len(ends) > 1 or ends[0] not in _IDENTIFIERS:
                for _, place in self.answers.get(ends, []):
                    found.setdefault(place, "role")
        return [(kind, place) for place, kind in found.items()]

    def features(self, kind: str, child: tuple[int, int], parent: tuple[int, int]) -> tuple[float, ...]:
        """Values of `FEATURES`."""
        words, parent_words = self.words[child[0]][child[1]], self.words[parent[0]][parent[1]]
        name = set(self.names[parent[0]])
        types = [self.tables[table].columns[column].type.casefold() for table, column in (child, parent)]
        return (
            1.0,
            float(kind == "same"),
            float(kind == "table_key"),
            float(kind == "role"),
            float(self.keys[child[0]] == child[1]),
            float(self.keys[parent[0]] == parent[1]),
            float(not self.stated),
            float(parent[1] == 0),
            float(child[1] == 0),
            float(bool(name & set(parent_words))),
            float(bool(name & set(self.names[child[0]]))),
            float(bool(_IDENTIFIERS & set(words))),
            float(np.log(self.tables_with[words])),
            float(types[0] == types[1] != ""),
            float(len({_kind(name) for name in types} - {""}) == 2),
        )


def _only_key(table: Table) -> int | None:
    """Position of the one column of the table's primary key; None where there is none or more."""
    if len(table.primary_key) != 1:
        return None
    wanted = table.primary_key[0].casefold()
    return next((place for place, column in enumerate(table.columns) if column.name.casefold() == wanted), None)


def _kind(type_name: str) -> str:
    """Of a case-folded type: `text`, `number`, or nothing for any other."""
    return "text" if any(word in type_name for word in _TEXTS) else "number" if type_name.startswith(_NUMBERS) else ""


class _Stored(NamedTuple):
    weights: Float[np.ndarray, " features"]
    threshold: float


@cache
def _stored() -> _Stored:
    stored = json.loads(WEIGHTS_FILE.read_text())
    return _Stored(np.array([stored["weights"][name] for name in FEATURES]), stored["threshold"])


def _one_direction(found: Sequence[tuple[float, Candidate]]) -> list[tuple[float, Candidate]]:
    """Of two keys that reference each other's columns, the more certain one."""
    kept: list[tuple[float, Candidate]] = []
    pairs: set[frozenset[tuple[int, int]]] = set()
    for score, item in found:
        pair = frozenset(((item.table, item.column), (item.ref_table, item.ref_column)))
        if pair not in pairs:
            pairs.add(pair)
            kept.append((score, item))
    return kept


def _key(graph: SchemaGraph, item: Candidate) -> RawKey:
    child, parent = graph.tables[item.table], graph.tables[item.ref_table]
    column, ref_column = child.columns[item.column].name, parent.columns[item.ref_column].name
    found = ForeignKey(item.table, (column,), item.ref_table, (ref_column,), Origin.INFERRED)
    return raw_key(found, child, parent)
