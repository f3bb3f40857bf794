"""Families of dated or numbered tables: what is folded, what is not, and that gold finds them."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bayeslink.schema.gold import gold_tables
from bayeslink.schema.graph import Column, Origin, RawKey, Table, build_graph
from bayeslink.schema.partitions import MIN_MEMBERS, fold_partitions
from bayeslink.schema.qualifiers import split_qualifiers

COLUMNS = (Column("id", "INTEGER"), Column("day", "DATE"), Column("total", "REAL"))


def graph(names, columns=COLUMNS, keys=(), **more):
    return build_graph("d", [Table(name, columns, **more) for name in names], keys, "bigquery")


@pytest.mark.parametrize(
    ("members", "name"),
    [
        (["events_20201101", "events_20201102", "events_20210131"], "events_*"),
        (["sales_2020_01", "sales_2020_02", "sales_2021_12"], "sales_*"),
        (["sales_2020-01-31", "sales_2020-02-01", "sales_2021-12-24"], "sales_*"),
        (["1990_q1", "1990_q2", "2001_Q4"], "*"),
        (["gsod1929", "gsod1930", "gsod2014"], "gsod*"),
        (["zip_2011_5yr", "zip_2012_5yr", "zip_2013_5yr"], "zip_*_5yr"),
        (["chr1", "chr2", "chr22"], "chr*"),
    ],
)
def test_a_family_is_one_node_that_knows_its_members(members, name):
    folded = fold_partitions(graph([members[0], "other", *members[1:]]))
    assert folded.table_names == (name, "other")
    assert folded.tables[0].members == tuple(members)
    assert [column.name for column in folded.tables[0].columns] == ["id", "day", "total"]


@pytest.mark.parametrize(
    "names",
    [
        ["events_20201101", "events_20201102"],  # too few
        ["address1", "street2", "city3"],  # names differ otherwise
        ["a", "b", "c", "customers"],
        ["v1.t", "v2.t", "v3.t"],  # the part that varies is the schema
    ],
)
def test_what_is_no_family_stays(names):
    plain = graph(names)
    assert fold_partitions(plain) is plain


def test_tables_with_other_columns_are_not_members():
    tables = [Table(f"log_{year}", COLUMNS) for year in (2019, 2020, 2021)]
    tables.append(Table("log_2022", tuple(Column(f"x{number}") for number in range(9))))
    folded = fold_partitions(build_graph("d", tables))
    assert folded.table_names == ("log_*", "log_2022")


@pytest.mark.parametrize(("columns", "is_member"), [("abcd", True), ("abcde", False), ("ac", False)])
def test_a_member_shares_at_least_half_of_the_columns(columns, is_member):
    tables = [Table(f"log_{year}", (Column("a"), Column("b"))) for year in (2019, 2020, 2021)]
    tables.append(Table("log_2022", tuple(map(Column, columns))))
    folded = fold_partitions(build_graph("d", tables))
    assert folded.table_names == (("log_*",) if is_member else ("log_*", "log_2022"))


def test_a_family_is_not_folded_again():
    folded = fold_partitions(graph([f"area_{year}_{span}yr" for year in (2010, 2011, 2012) for span in (1, 3, 5)]))
    assert folded.num_tables == 3
    assert fold_partitions(folded) is folded


def test_dates_come_before_numbers():
    # As numbers the four tables of 2019 would be the largest family.
    names = [f"s{number}_{year}" for number in (1, 2) for year in (2019, 2020, 2021)] + ["s3_2019", "s4_2019"]
    assert fold_partitions(graph(names)).table_names == ("s1_*", "s2_*", "s3_2019", "s4_2019")


def test_a_family_with_one_partial_member_is_partial_and_dropped_keys_stay_known():
    tables = [replace(Table(f"log_{year}", COLUMNS), partial=year == 2020) for year in (2019, 2020, 2021)]
    before = build_graph("d", tables, [RawKey("log_2019", ("id",), "nowhere", ("id",))])
    folded = fold_partitions(before)
    assert folded.tables[0].partial
    assert len(before.dropped) == 1
    assert folded.dropped == before.dropped


def test_a_dotted_name_with_a_schema_stays_and_dropped_keys_stay_known():
    before = build_graph(
        "d", [Table("a.b", COLUMNS, "s"), Table("x.c", COLUMNS)], [RawKey("x.c", ("id",), "nowhere", ("id",))]
    )
    split = split_qualifiers(before)
    assert [(table.schema, table.name) for table in split.tables] == [("s", "a.b"), ("x", "c")]
    assert len(before.dropped) == 1
    assert split.dropped == before.dropped


def test_a_column_that_came_later_is_shown():
    tables = [Table(f"log_{year}", COLUMNS) for year in (2019, 2020)]
    tables.append(Table("log_2021", (*COLUMNS, Column("added"))))
    assert [column.name for column in fold_partitions(build_graph("d", tables)).tables[0].columns][-1] == "added"


def test_columns_stand_as_in_the_widest_member():
    members = {"log_2019": "ab", "log_2020": "ab", "log_2021": "cba"}
    tables = [Table(name, tuple(map(Column, own))) for name, own in members.items()]
    folded = fold_partitions(build_graph("d", tables))
    assert [column.name for column in folded.tables[0].columns] == ["c", "b", "a"]


def test_one_part_varies_and_the_larger_family_wins():
    names = [f"cbsa_{year}_{span}yr" for year in (2010, 2011, 2012, 2013) for span in (1, 3, 5)]
    folded = fold_partitions(graph(names))
    assert sorted(folded.table_names) == ["cbsa_*_1yr", "cbsa_*_3yr", "cbsa_*_5yr"]
    numbered = fold_partitions(graph([f"part_{first}_{second}" for first in (1, 2, 3, 4) for second in (5, 6, 7)]))
    assert sorted(numbered.table_names) == ["part_*_5", "part_*_6", "part_*_7"]


def test_views_taken_names_and_other_schemas_are_left_alone():
    assert fold_partitions(graph(["v_2019", "v_2020", "v_2021"], is_view=True)).num_tables == 3
    assert fold_partitions(graph(["t_*", "t_2019", "t_2020", "t_2021"])).num_tables == 4
    tables = [Table(f"t_{year}", COLUMNS, f"s{year % 2}") for year in range(2016, 2022)]
    assert fold_partitions(build_graph("d", tables)).table_names == ("s0.t_*", "s1.t_*")


def test_keys_of_members_are_keys_of_the_node():
    names = ["days", "log_2019", "log_2020", "log_2021"]
    keys = [RawKey(name, ("day",), "days", ("day",)) for name in names[1:]]
    keys.append(RawKey("log_2020", ("id",), "log_2019", ("id",), origin=Origin.USER))
    folded = fold_partitions(graph(names, keys=keys))
    assert [(key.table, key.ref_table, key.is_self) for key in folded.foreign_keys] == [(1, 0, False), (1, 1, True)]
    assert len(folded.edges) == 1


@pytest.mark.parametrize(
    "query",
    [
        "SELECT total FROM `p.d.events_20210101`",
        "SELECT total FROM `p.d.events_*` WHERE _TABLE_SUFFIX > '2021'",
        "SELECT total FROM `p.d.events_2021*`",
        "SELECT total FROM d.events_20210102",
    ],
)
def test_gold_that_reads_a_member_or_a_wildcard_is_the_family(query):
    names = ["p.d.other", *(f"p.d.events_2021010{day}" for day in (1, 2, 3))]
    assert gold_tables(query, fold_partitions(split_qualifiers(graph(names)))) == {1}


def test_qualifiers_become_the_schema_and_full_names_stay():
    keys = [RawKey("p.d.a", ("id",), "q.b", ("id",))]
    split = split_qualifiers(graph(["p.d.a", "q.b", "c"], keys=keys))
    assert split.table_names == ("p.d.a", "q.b", "c")
    assert [(table.schema, table.name) for table in split.tables] == [("p.d", "a"), ("q", "b"), (None, "c")]
    assert len(split.edges) == 1
    assert split_qualifiers(split) == split


@given(years=st.lists(st.integers(1990, 2030), min_size=0, max_size=8, unique=True), rest=st.integers(0, 3))
def test_every_table_stands_in_one_node(years, rest):
    names = [f"t_{year}" for year in years] + [f"other{'x' * number}" for number in range(rest)]
    if not names:
        return
    folded = fold_partitions(graph(names))
    held = [name for table in folded.tables for name in (table.members or (table.full_name,))]
    assert sorted(held) == sorted(names)
    assert (len(years) >= MIN_MEMBERS) == (folded.num_tables < len(names))
    assert fold_partitions(folded) is folded
