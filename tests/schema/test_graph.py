import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bayeslink.schema.graph import Column, Origin, RawKey, SchemaGraph, Table, build_graph


def table(name: str, *columns: str, key: tuple[str, ...] = (), schema: str | None = None) -> Table:
    flagged = tuple(Column(column, primary_key=column in key) for column in columns)
    return Table(name, flagged, schema=schema, key_columns=key)


PARENT = table("Parent", "x", "y", "z", key=("y", "x"))
CHILD = table("Child", "a", "b")


def joined_pairs(graph: SchemaGraph) -> set[frozenset[str]]:
    names = [name.casefold() for name in graph.table_names]
    return {frozenset((names[edge.first], names[edge.second])) for edge in graph.edges}


def test_one_edge_lists_every_key_of_its_pair():
    keys = [
        RawKey("Child", ("a",), "Parent", ("x",), origin=Origin.INFERRED),
        RawKey("Child", ("b",), "Parent", ("z",)),
    ]
    graph = build_graph("d", [PARENT, CHILD], keys)
    [edge] = graph.edges
    assert (edge.first, edge.second) == (0, 1)
    assert [key.columns for key in edge.keys] == [("a",), ("b",)]
    assert edge.origin is Origin.DECLARED
    assert graph.edge_array.tolist() == [[0, 1]]
    assert graph.edge_array.dtype == np.int64


def test_no_edges_keep_the_shape():
    assert build_graph("d", [CHILD]).edge_array.shape == (0, 2)


def test_self_key_is_kept_without_an_edge():
    graph = build_graph("d", [CHILD], [RawKey("child", ("a",), "CHILD", ("B",))])
    [key] = graph.foreign_keys
    assert key.is_self
    assert key.ref_columns == ("b",)
    assert graph.edges == ()


def test_implicit_reference_takes_the_primary_key_in_constraint_order():
    graph = build_graph("d", [PARENT, CHILD], [RawKey("Child", ("a", "b"), "Parent")])
    assert graph.foreign_keys[0].ref_columns == ("y", "x")


def test_primary_key_without_stated_order_is_that_of_the_columns():
    assert Table("t", (Column("p", primary_key=True), Column("q"), Column("r", primary_key=True))).primary_key == (
        "p",
        "r",
    )


@pytest.mark.parametrize(
    ("key", "reason"),
    [
        (RawKey("Nowhere", ("a",), "Parent", ("x",)), "table 'Nowhere' does not exist"),
        (RawKey("Child", ("a",), "Nowhere", ("x",)), "table 'Nowhere' does not exist"),
        (RawKey("Child", ("c",), "Parent", ("x",)), "column 'c' does not exist in 'Child'"),
        (RawKey("Child", ("a",), "Parent", ("w",)), "column 'w' does not exist in 'Parent'"),
        (RawKey("Parent", ("x",), "Child"), "has no primary key"),
        (RawKey("Child", ("a", "A"), "Parent", ("x", "y")), "names a column twice"),
        (RawKey("Child", ("a",), "Parent"), "1 column references 2"),
        (RawKey("Child", ("a",), "Parent", ("x",), ref_schema="other"), "does not exist"),
    ],
)
def test_unusable_key_is_dropped_with_its_reason(key: RawKey, reason: str):
    graph = build_graph("d", [PARENT, CHILD], [key])
    assert graph.foreign_keys == graph.edges == ()
    [sentence] = graph.dropped
    assert sentence.startswith("foreign key ")
    assert reason in sentence


def test_repeated_key_is_kept_once():
    keys = [RawKey("Child", ("a",), "Parent", ("x",)), RawKey("CHILD", ("A",), "parent", ("X",))]
    assert len(build_graph("d", [PARENT, CHILD], keys).foreign_keys) == 1


def test_same_table_twice_is_refused():
    with pytest.raises(ValueError, match="'child' repeats"):
        build_graph("d", [CHILD, table("child", "c")])


def test_columns_that_differ_in_case_alone_are_told_apart():
    mixed = table("Mixed", "id", "ID")
    graph = build_graph("d", [mixed, CHILD], [RawKey("Child", ("a",), "Mixed", ("id",))])
    assert graph.foreign_keys[0].ref_columns == ("id",)


def test_schemas_separate_tables_of_one_name():
    graph = build_graph(
        "d",
        [table("t", "a", schema="one"), table("t", "a", schema="two"), table("u", "a", schema="one")],
        [RawKey("u", ("a",), "t", ("a",), schema="one"), RawKey("u", ("a",), "t", ("a",), "one", "two")],
    )
    assert graph.edge_array.tolist() == [[0, 2], [1, 2]]
    assert graph.find("T", schema="TWO") == 1
    assert graph.find("one.t") == 0
    assert graph.find("t") is None
    assert graph.find("U") == 2
    assert graph.find("v") is None


names = st.sampled_from(["alpha", "beta", "gamma", "delta"])
raw_keys = st.lists(st.tuples(names, st.sampled_from("pq"), names, st.sampled_from("pq")), max_size=8)


@given(keys=raw_keys, order=st.permutations(range(4)), data=st.data())
def test_edges_do_not_depend_on_the_order_of_tables_or_keys(keys, order, data):
    tables = [table(name, "p", "q") for name in ("alpha", "beta", "gamma", "delta")]
    stated = [RawKey(child, (column,), parent, (ref,)) for child, column, parent, ref in keys]
    shuffled = data.draw(st.permutations(stated))
    straight = build_graph("d", tables, stated)
    mixed = build_graph("d", [tables[index] for index in order], shuffled)
    assert joined_pairs(straight) == joined_pairs(mixed)
    assert len(straight.foreign_keys) == len(mixed.foreign_keys)
    oracle = {frozenset((child, parent)) for child, _, parent, _ in keys if child != parent}
    assert joined_pairs(straight) == oracle
    assert all(edge.first < edge.second for edge in mixed.edges)


@given(keys=raw_keys, upper=st.booleans())
def test_case_of_names_in_keys_is_without_effect(keys, upper):
    tables = [table(name, "p", "q") for name in ("Alpha", "bEta", "gamma", "DELTA")]
    recase = str.upper if upper else str.title
    plain = [RawKey(child, (column,), parent, (ref,)) for child, column, parent, ref in keys]
    cased = [RawKey(recase(c), (recase(x),), recase(p), (recase(y),)) for c, x, p, y in keys]
    assert build_graph("d", tables, plain) == build_graph("d", tables, cased)


def test_a_view_s_key_names_no_column_and_is_weaker_than_a_stated_one():
    view = Table("v", (Column("id"),), is_view=True, definition="SELECT id FROM t")
    other = Table("t", (Column("id", primary_key=True),))
    reads = RawKey("v", (), "t", origin=Origin.VIEW)
    graph = build_graph("d", [view, other], [reads])
    assert graph.dropped == ()
    assert [(edge.first, edge.second, edge.origin) for edge in graph.edges] == [(0, 1, Origin.VIEW)]
    stated = RawKey("v", ("id",), "t", ("id",), origin=Origin.USER)
    both = build_graph("d", [view, other], [reads, stated])
    assert [(len(edge.keys), edge.origin) for edge in both.edges] == [(2, Origin.USER)]
    guessed = build_graph("d", [view, other], [reads, RawKey("v", ("id",), "t", ("id",), origin=Origin.INFERRED)])
    assert guessed.edges[0].origin is Origin.VIEW


def test_a_view_s_key_to_a_table_out_of_sight_is_dropped():
    view = Table("v", (Column("id"),), is_view=True)
    graph = build_graph("d", [view], [RawKey("v", (), "gone", origin=Origin.VIEW)])
    assert not graph.edges
    assert "gone" in graph.dropped[0]
