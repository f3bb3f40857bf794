"""Glued names: which schemas count as glued, what is cut, and that other names stay as they are."""

import pytest

from bayeslink.schema.graph import Column, Table, build_graph
from bayeslink.schema.linkable import linkable
from bayeslink.schema.segmentation import with_natural_names


def natural(*names: str, **known: str) -> list[str | None]:
    tables = [Table(name, (Column("id"),), natural_name=known.get(name)) for name in names]
    return [table.natural_name for table in with_natural_names(build_graph("d", tables)).tables]


def test_runs_of_letters_without_marks_are_cut_into_words():
    found = natural("ACCOUNTSPAYABLEDETAILS", "EMAILADDRESS", "trip_emailaddress_x")
    assert found == ["accounts payable details", "email address", "trip email address x"]


def test_short_words_and_marked_names_stay_in_a_glued_schema():
    assert natural("ACCOUNTSPAYABLEDETAILS", "customer_id", "CustomerOrders", "ASSET", "goodwill") == [
        "accounts payable details",
        None,
        None,
        None,
        None,
    ]


@pytest.mark.parametrize(
    "names",
    [
        ("customers", "order_items", "emailaddress"),  # nothing longer than a word
        ("telecommunications", "orders"),  # one long word
        ("产品信息表格数据产品信息表格数据", "naïve"),
    ],
)
def test_a_schema_without_long_glued_names_is_left_alone(names):
    graph = build_graph("d", [Table(name, (Column("id"),)) for name in names])
    assert with_natural_names(graph) is graph


def test_natural_names_that_are_there_are_kept():
    assert natural("ACCOUNTSPAYABLEDETAILS", ACCOUNTSPAYABLEDETAILS="what we owe") == ["what we owe"]


def test_columns_are_read_too_and_a_second_pass_changes_nothing():
    graph = build_graph("d", [Table("t", (Column("ACCUMULATEDOTHERINCOME"), Column("id")))])
    once = with_natural_names(graph)
    assert [column.natural_name for column in once.tables[0].columns] == ["accumulated other income", None]
    assert with_natural_names(once) == once


def test_a_linkable_schema_is_folded_joined_and_cut():
    tables = [Table(f"sales_{year}", (Column("customer_id"), Column("total"))) for year in (2020, 2021, 2022)]
    tables.append(Table("customers", (Column("id", primary_key=True), Column("ACCUMULATEDOTHERINCOME"))))
    graph = build_graph("d", tables)
    plain = linkable(graph)
    assert (plain.table_names, len(plain.edges)) == (("sales_*", "customers"), 0)
    assert plain.tables[1].columns[1].natural_name == "accumulated other income"
    assert len(linkable(graph, infer_keys=True).edges) == 1
    assert linkable(graph, fold=False).num_tables == 4
