"""Identifiers spelt out, literals against types, and the shape of tables."""

import math

import numpy as np
import pytest
from fields_cases import ASKED, assert_scores, bare, check_channel, check_silent, described, identities

from bayeslink.evidence.hints import IdentifierHint, Literal, LiteralType, Shape, TableShape
from bayeslink.schema.graph import Column, RawKey, Table, build_graph

CHANNELS = [IdentifierHint(), *map(LiteralType, Literal), *map(TableShape, Shape)]


@pytest.mark.parametrize("channel", CHANNELS, ids=lambda channel: channel.name)
def test_every_channel(channel):
    check_channel(channel)
    if not isinstance(channel, TableShape):
        check_silent(channel, bare())


def test_names():
    assert [channel.name for channel in CHANNELS] == [
        *("identifier_hint", "literal_number", "literal_date", "literal_text"),
        *("shape_columns", "shape_degree", "shape_references", "shape_keys"),
    ]
    assert len(set(identities([*CHANNELS]))) == len(CHANNELS)


def test_identifiers_by_hand():
    tables = (
        Table("a", (Column("order_id"), Column("rate"), Column("Free Meal (K-12)"))),
        Table("b", (Column("customer_order_id"), Column("Order_ID"), Column("a_b"))),
        Table("c", ()),
    )
    graph = build_graph("identifiers", tables, ())
    hint = IdentifierHint()
    assert_scores(hint, graph, "ratio of ORDER_ID to rate", [math.log(1.5), math.log(1.5), 0])
    # The shorter name inside the longer one is not spelt out; beside it, it is.
    assert_scores(hint, graph, "customer_order_id > 3", [0, math.log(2), 0])
    assert_scores(hint, graph, "customer_order_id = order_id", [math.log(1.5), math.log(2.5), 0])
    assert_scores(hint, graph, "share = free meal (k-12) / total", [math.log(2), 0, 0])
    # Ordinary words, short names and parts of words are none.
    assert_scores(hint, graph, "rate a_b xorder_id order_ids", [0, 0, 0])


@pytest.mark.parametrize("name", ["shipName", "ship_name", "ship name", "ship2", "größeMax", "a(b)c", "%free"])
def test_what_is_an_identifier(name: str):
    graph = build_graph("one", (Table("a", (Column(name),)), Table("b", ())), ())
    assert IdentifierHint().score([f"Is {name.upper()}, say, one?"], graph)[0].tolist() == [math.log(2), 0]


@pytest.mark.parametrize("name", ["ship", "Ship", "SHIP", "a_b", "größe"])
def test_what_is_none(name: str):
    graph = build_graph("one", (Table("a", (Column(name),)), Table("b", ())), ())
    assert not IdentifierHint().score([f"Is {name}, say, one?"], graph).any()


def test_literals_by_hand():
    columns = (Column("price", "REAL"), Column("day", "DATE"), Column("note", "TEXT"), Column("year", "INT"))
    graph = build_graph("literals", (Table("a", columns), Table("b", (Column("note", "TEXT"),)), Table("c", ())), ())
    for literal, question, share in (
        (Literal.NUMBER, "more than 20", [0.5, 0, 0]),
        (Literal.DATE, "in 1999", [0.5, 0, 0]),
        (Literal.TEXT, "called 'Bergen'", [0.25, 1, 0]),
    ):
        assert_scores(LiteralType(literal), graph, question, share)
        assert_scores(LiteralType(literal), graph, "none of them", [0, 0, 0])


@pytest.mark.parametrize(
    ("text", "kinds"),
    [
        ("20 or more", "number"),
        ("1,200.50", "number"),
        ("table2 and x.5", ""),
        ("since 1987", "number date"),
        ("on 3/14", "number date"),
        ("2020-03-14", "number date"),
        ("room 3021", "number"),
        ('named "Ada"', "text"),
        ("named “Ada”", "text"),
        ("‘Ada’", "text"),
        ("the ship's captain and the port's", ""),
        ("", ""),
    ],
)
def test_what_is_a_literal(text: str, kinds: str):
    assert [literal.value for literal in Literal if literal.is_in(text)] == kinds.split()


def test_shape_by_hand():
    tables = (
        Table("a", (Column("id"), Column("parent"))),
        Table("b", (Column("a_id"), Column("c_id"), Column("again"), Column("note"))),
        Table("c", (Column("id"),)),
        Table("d", ()),
    )
    keys = [
        RawKey("b", ("a_id",), "a", ("id",)),
        RawKey("b", ("again",), "a", ("id",)),
        RawKey("b", ("c_id",), "c", ("id",)),
        RawKey("a", ("parent",), "a", ("id",)),
    ]
    graph = build_graph("shape", tables, keys)
    for shape, expected in (
        (Shape.COLUMNS, np.log([2, 4, 1, 1])),
        (Shape.DEGREE, np.log([2, 3, 2, 1])),
        (Shape.REFERENCES, np.log([1, 3, 1, 1])),
        (Shape.KEYS, [1 / 2, 3 / 4, 0, 0]),
    ):
        scores = TableShape(shape).score(["", "anything"], graph)
        np.testing.assert_allclose(scores, [expected, expected], rtol=1e-12)


def test_the_shape_is_no_answer_to_a_question():
    for shape in Shape:
        scores = TableShape(shape).score(ASKED, described())
        assert (scores == scores[0]).all()
