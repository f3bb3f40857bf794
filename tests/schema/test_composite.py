import pytest

from bayeslink.schema.composite import composite_keys
from bayeslink.schema.graph import Column, Origin, RawKey, Table

TABLES = [
    Table("p", (Column("x", primary_key=True), Column("y", primary_key=True), Column("z"))),
    Table("c", (Column("a"), Column("b"), Column("d"))),
    Table("single", (Column("id", primary_key=True),)),
]


def line(column: str, ref_column: str, parent: str = "p", origin: Origin = Origin.DECLARED) -> RawKey:
    return RawKey("c", (column,), parent, (ref_column,), origin=origin)


def columns_of(lines: list[RawKey]) -> list[tuple[str, ...]]:
    return [key.columns for key in composite_keys(TABLES, lines)]


def test_lines_that_make_up_the_primary_key_are_one_key_in_their_order():
    [key] = composite_keys(TABLES, [line("a", "Y", "P"), line("b", "x")])
    assert (key.columns, key.ref_columns) == (("a", "b"), ("Y", "x"))


def test_two_composite_keys_between_one_pair():
    lines = [line("a", "x"), line("b", "y"), line("b", "x"), line("d", "y")]
    assert columns_of(lines) == [("a", "b"), ("b", "d")]


@pytest.mark.parametrize(
    "lines",
    [
        [line("a", "x"), line("a", "y")],  # one column cannot be both
        [line("a", "x"), line("b", "x")],  # two keys to half of the primary key
        [line("a", "x"), line("b", "z")],  # not the primary key
        [line("a", "x")],  # half of it
        [line("a", "x"), line("a", "id", "single"), line("b", "y")],  # not consecutive
        [line("a", "x"), line("b", "y", origin=Origin.INFERRED)],  # one guessed, one declared
        [line("a", "id", "single"), line("b", "id", "single")],  # a primary key of one column
        [line("a", "x", "unknown"), line("b", "y", "unknown")],
    ],
)
def test_other_lines_stay_keys_of_their_own(lines: list[RawKey]):
    assert composite_keys(TABLES, lines) == lines


def test_keys_that_are_already_composite_pass_through():
    whole = RawKey("c", ("a", "b"), "p", ("x", "y"))
    assert composite_keys(TABLES, [whole, line("d", "x")]) == [whole, line("d", "x")]
