from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bayeslink.schema.graph import Column, SchemaGraph, Table, build_graph
from bayeslink.schema.split import (
    MIN_COLUMNS,
    are_twins,
    find_twins,
    fingerprint,
    folds_by_database,
    hashed_fingerprint,
    split_by_group,
    twin_share,
    twins_of,
)


def schema(**tables: str) -> SchemaGraph:
    return build_graph(
        "d", [Table(name, tuple(Column(column) for column in text.split())) for name, text in tables.items()]
    )


def wide(table: str, columns: range) -> SchemaGraph:
    return schema(**{table: " ".join(f"c{number}" for number in columns)})


def test_fingerprint_is_blind_to_spelling_and_schema():
    tables = [
        Table("p.d.driver_standings", (Column("Driver ID"), Column("größe"))),
        Table("Pets", (Column("id"),)),
    ]
    assert fingerprint(build_graph("d", tables)) == {
        "driverstanding.driverid",
        "driverstanding.grösse",
        "pet.id",
    }


def test_fingerprint_tells_tables_apart():
    assert fingerprint(schema(a="id name", b="id")) == {"a.id", "a.name", "b.id"}


def test_hashes_are_sorted_distinct_and_fixed_for_ever():
    found = hashed_fingerprint(schema(Pets="id name ID_"))
    assert found.dtype == np.uint64
    # BLAKE2b of "pet.name" and "pet.id", big-endian: a shipped posterior carries such numbers.
    assert found.tolist() == [11249827870607790127, 11793219953026740409]


names = st.frozensets(st.sampled_from([f"c{number}" for number in range(30)]))


@given(first=names, second=names)
def test_share_agrees_with_sets(first, second):
    graphs = [build_graph("d", [Table("t", tuple(Column(name) for name in side))]) for side in (first, second)]
    prints = [hashed_fingerprint(graph) for graph in graphs]
    smaller = min(len(first), len(second))
    expected = len(first & second) / smaller if smaller else 0.0
    assert twin_share(*prints) == twin_share(*prints[::-1]) == pytest.approx(expected, rel=1e-12)
    assert are_twins(*prints) == (smaller >= MIN_COLUMNS and 2 * len(first & second) > smaller)


@pytest.mark.parametrize(
    ("first", "second", "twins"),
    [
        (range(10), range(4, 40), True),  # 6 of 10
        (range(10), range(5, 40), False),  # exactly a half
        (range(9), range(40), False),  # all of it, but too few
        (range(10), range(40), True),
        (range(10), range(100, 140), False),
    ],
)
def test_twins_need_more_than_half_of_enough_columns(first: range, second: range, twins: bool):
    prints = [hashed_fingerprint(wide("t", side)) for side in (first, second)]
    assert are_twins(*prints) is twins
    assert are_twins(*prints[::-1]) is twins


def test_find_twins_is_symmetric_and_agrees_with_twins_of():
    graphs = {
        ("x", "a"): wide("t", range(20)),
        ("y", "a"): wide("T", range(5, 30)),
        ("y", "b"): wide("t", range(18, 40)),
        ("y", "other table"): wide("u", range(20)),
    }
    found = find_twins(graphs)
    assert found == {
        ("x", "a"): (("y", "a"),),
        ("y", "a"): (("x", "a"), ("y", "b")),
        ("y", "b"): (("y", "a"),),
        ("y", "other table"): (),
    }
    prints = {key: hashed_fingerprint(graph) for key, graph in graphs.items()}
    for key in graphs:
        others = {other: value for other, value in prints.items() if other != key}
        assert twins_of(prints[key], others) == found[key]


KEYS = [("x", str(number)) for number in range(12)]


def test_folds_keep_twins_and_twins_of_twins_together():
    # 0 - outside - 1 - 2: joined although the database between is not shared out itself.
    twins = {("x", "0"): (("z", "outside"),), ("z", "outside"): (("x", "1"),), ("x", "2"): (("x", "1"),)}
    for seed in range(20):
        folds = folds_by_database(KEYS, twins, 3, np.random.default_rng(seed))
        assert list(folds) == KEYS
        assert len({folds["x", "0"], folds["x", "1"], folds["x", "2"]}) == 1
        assert sorted(np.bincount(list(folds.values()))) == [4, 4, 4]


def test_folds_follow_the_generator():
    draws = [folds_by_database(KEYS, {}, 3, np.random.default_rng(seed)) for seed in (1, 1, 2)]
    assert draws[0] == draws[1] != draws[2]


def test_folds_refuse_what_cannot_be_shared_out():
    rng = np.random.default_rng(0)
    for num_folds, twins in ((1, {}), (13, {}), (12, {KEYS[0]: (KEYS[1],)})):
        with pytest.raises(ValueError, match=f"num_folds={num_folds}"):
            folds_by_database(KEYS, twins, num_folds, rng)
    with pytest.raises(ValueError, match="appears twice"):
        folds_by_database([*KEYS, KEYS[0]], {}, 2, rng)


@given(
    groups=st.lists(st.sampled_from("abcdef"), min_size=2).filter(lambda found: len(set(found)) > 1),
    share=st.floats(0.01, 0.99),
    seed=st.integers(0, 9),
)
def test_groups_stay_whole_and_neither_part_is_empty(groups, share, seed):
    first = split_by_group(groups, share, np.random.default_rng(seed))
    assert first.dtype == bool
    assert 0 < first.sum() < len(groups)
    assert not {g for g, inside in zip(groups, first, strict=True) if inside} & {
        g for g, inside in zip(groups, first, strict=True) if not inside
    }
    largest = max(groups.count(group) for group in set(groups))
    assert abs(first.sum() - share * len(groups)) <= largest


def test_share_is_met_when_groups_are_single_questions():
    first = split_by_group([str(number) for number in range(100)], 0.3, np.random.default_rng(0))
    assert first.sum() == 30
    assert not np.array_equal(first, split_by_group(list("abcdefghij") * 10, 0.3, np.random.default_rng(0)))


@pytest.mark.parametrize(("groups", "share"), [("ab", 0.0), ("ab", 1.0), ("ab", float("nan")), ("aa", 0.5), ("", 0.5)])
def test_impossible_splits_are_refused(groups: str, share: float):
    with pytest.raises(ValueError, match=r"share=|groups:"):
        split_by_group(list(groups), share, np.random.default_rng(0))


def test_known_twins_of_the_benchmarks_are_found(corpora):
    graphs = {(name, db_id): graph for name, corpus in corpora.items() for db_id, graph in corpus.schemas.items()}
    twins = find_twins(graphs)
    known = [
        (("bird", "formula_1"), ("spider", "formula_1")),
        (("bird", "european_football_2"), ("spider", "soccer_1")),
        (("spider", "world_1"), ("bird-train", "world")),
        (("spider", "sakila_1"), ("bird-train", "movie_3")),
        (("spider", "chinook_1"), ("spider", "store_1")),
    ]
    for first, second in known:
        assert second in twins[first]
    between = {frozenset(pair) for key in twins for pair in product([key], twins[key]) if pair[0][0] != pair[1][0]}
    assert between == {
        *map(frozenset, known[:4]),
        frozenset({("spider", "bike_1"), ("bird-train", "bike_share_1")}),
    }


def test_database_without_columns_has_no_twin():
    empty = hashed_fingerprint(build_graph("d", [Table("t", ())]))
    assert twin_share(empty, hashed_fingerprint(wide("t", range(20)))) == 0.0
