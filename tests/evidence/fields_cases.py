"""Schemas for the channels of fields: the harbour with descriptions and types, and schemas that lack much."""

import numpy as np
from conftest import COLUMNS, KEYS, QUESTIONS

from bayeslink.evidence.channel import Channel
from bayeslink.schema.graph import Column, RawKey, SchemaGraph, Table, build_graph

DESCRIPTIONS = {
    "grossTonnage": "volume of the ship in tons",
    "berthFee": "price of one night in euros",
    "rank": "captain, mate or deck hand",
    "wind_speed": "knots, ten minutes' mean",
}
TYPES = {"grossTonnage": "REAL", "berthFee": "NUMERIC(8,2)", "arrivalDate": "DATE", "wind_speed": "INT"}
ORDER = (3, 1, 4, 0, 2)
ASKED = (
    *QUESTIONS,
    "berthFee = price; ships that paid more than 200 euros on 2020-03-14 in 'Bergen'",
    "Wie groß ist die Größe? 船の名前",
)


def described(order: tuple[int, ...] = (0, 1, 2, 3, 4)) -> SchemaGraph:
    """The harbour with its tables in the given order."""
    tables = []
    for name in (list(COLUMNS)[index] for index in order):
        columns = tuple(
            Column(column, TYPES.get(column, "TEXT"), description=DESCRIPTIONS.get(column)) for column in COLUMNS[name]
        )
        comment = "hourly readings of the meteorological office" if name == "weather" else None
        tables.append(Table(name, columns, description=comment))
    return build_graph("harbour", tables, [RawKey(t, (c,), r, (rc,)) for t, c, r, rc in KEYS])


def foreign() -> SchemaGraph:
    """Names that are not ASCII, one without any word, and a table without columns between two that have some."""
    tables = (
        Table("größe", (Column("maß_in_cm"), Column("n"))),
        Table("___", ()),
        Table("船", (Column("名前", description="船の名前"),)),
        Table("leer", ()),
    )
    return build_graph("foreign", tables, ())


def bare() -> SchemaGraph:
    """Two tables without columns."""
    return build_graph("bare", (Table("ships", ()), Table("ports", ())), ())


def check_channel(channel: Channel, atol: float = 0.0) -> None:
    """What holds for every channel: shape, equivariance, finite scores, one question scored as among others."""
    graph = described()
    scores = channel.score(ASKED, graph)
    assert scores.shape == (len(ASKED), 5)
    assert scores.dtype == np.float64
    assert np.isfinite(scores).all()
    moved = channel.score(ASKED, described(ORDER))
    np.testing.assert_allclose(moved, scores[:, ORDER], rtol=1e-12, atol=atol)
    alone = np.concatenate([channel.score([question], graph) for question in ASKED])
    np.testing.assert_allclose(alone, scores, rtol=1e-12, atol=atol)
    assert channel.score([], graph).shape == (0, 5)
    for poor in (bare(), foreign()):
        found = channel.score(ASKED, poor)
        assert found.shape == (len(ASKED), poor.num_tables)
        assert np.isfinite(found).all()


def check_silent(channel: Channel, graph: SchemaGraph, questions: tuple[str, ...] = ASKED) -> None:
    """A channel with nothing to read, or of a question without words, scores 0."""
    assert not channel.score(("", "   ", "?!"), described()).any()
    if questions:
        assert not channel.score(questions, graph).any()


def assert_scores(channel: Channel, graph: SchemaGraph, question: str, expected: list[float]) -> None:
    np.testing.assert_allclose(channel.score([question], graph)[0], expected, rtol=1e-12)


def identities(channels: list[Channel]) -> list[str]:
    names = [channel.name for channel in channels]
    assert len(set(names)) == len(names)
    return [channel.identity for channel in channels]
