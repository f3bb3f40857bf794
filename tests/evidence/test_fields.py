"""Channels of one field's words: by hand, against plain Python, and where there is little to read."""

import math
import time

import numpy as np
import pytest
from fields_cases import ASKED, assert_scores, bare, check_channel, check_silent, described, foreign, identities

from bayeslink.evidence.fields import BestColumn, Field, FieldBM25, FieldOverlap, Match, NameMatch, largest_of_tables
from bayeslink.evidence.lexical import BM25
from bayeslink.schema.graph import Column, Table, build_graph
from bayeslink.schema.words import content_words

CHANNELS = [
    *map(NameMatch, Match),
    *map(FieldOverlap, Field),
    *map(FieldBM25, Field),
    *map(BestColumn, (Field.COLUMNS, Field.DESCRIPTIONS)),
]


def named(channel) -> str:
    return channel.name


@pytest.mark.parametrize("channel", CHANNELS, ids=named)
def test_every_channel(channel):
    check_channel(channel)
    check_silent(channel, build_graph("blank", (Table("_", (Column("-"),)), Table("__", ())), ()))


def test_names_are_stable():
    assert [channel.name for channel in CHANNELS] == [
        *("name_share", "name_any", "name_full"),
        *("overlap_name", "overlap_columns", "overlap_descriptions", "overlap_comment"),
        *("bm25_name", "bm25_columns", "bm25_descriptions", "bm25_comment"),
        *("best_columns", "best_descriptions"),
    ]
    assert len(set(identities([*CHANNELS]))) == len(CHANNELS)
    assert FieldBM25(Field.NAME).identity != FieldBM25(Field.NAME, k1=1.2).identity


def test_each_channel_reads_its_own_field():
    """A word that stands in one field moves the channels of this field, and no other channel."""
    texts = {Field.NAME: "alpha", Field.COLUMNS: "bravo", Field.DESCRIPTIONS: "charlie", Field.COMMENT: "delta"}
    table = Table("alpha", (Column("bravo", description="charlie"),), description="delta")
    graph = build_graph("fields", (table, Table("other", (Column("thing"),))), ())
    for field, word in texts.items():
        for channel in CHANNELS:
            own = getattr(channel, "field", Field.NAME)
            assert channel.score([word], graph).any() == (own is field), (channel.name, word)


def test_name_matches_by_hand():
    tables = (
        Table("crew_members", ()),
        Table("tbl_emp", (), natural_name="staff roster"),
        Table("crew", (Column("member"),)),
        Table("_", ()),
    )
    graph = build_graph("names", tables, ())
    # The second name's words are tbl, emp, staff and roster; the question has one form of it whole.
    question = "Which crew is on the staff roster?"
    assert_scores(NameMatch(Match.SHARE), graph, question, [0.5, 0.5, 1, 0])
    assert_scores(NameMatch(Match.ANY), graph, question, [1, 1, 1, 0])
    assert_scores(NameMatch(Match.FULL), graph, question, [0, 1, 1, 0])
    assert_scores(NameMatch(Match.FULL), graph, "tbl_emp of crew members", [1, 1, 1, 0])


def idf(num_with: int, num: int) -> float:
    return math.log(1 + (num - num_with + 0.5) / (num_with + 0.5))


def test_overlap_by_hand():
    tables = (Table("a", (Column("price"), Column("day"))), Table("b", (Column("day"),)), Table("c", ()))
    graph = build_graph("overlap", tables, ())
    price, day = idf(1, 3), idf(2, 3)
    question = "price and price of the day, and an unknown word"
    assert_scores(FieldOverlap(Field.COLUMNS), graph, question, [1, day / (price + day), 0])


@pytest.mark.parametrize("field", list(Field))
def test_bm25_of_a_field_is_bm25_of_a_schema_with_this_field_alone(field: Field):
    graph = described()
    alone = []
    for table in graph.tables:
        texts = {
            Field.NAME: [table.name],
            Field.COLUMNS: [column.name for column in table.columns],
            Field.DESCRIPTIONS: [column.description or "" for column in table.columns],
            Field.COMMENT: [table.description or ""],
        }[field]
        alone.append(Table(f"{'_' * len(alone)}_", tuple(map(Column, texts))))
    expected = BM25().score(ASKED, build_graph("alone", alone, ()))
    np.testing.assert_allclose(FieldBM25(field).score(ASKED, graph), expected, rtol=1e-12)


def best_oracle(question: str, field: Field, graph) -> list[float]:
    def words(column):
        return set(content_words(column.name if field is Field.COLUMNS else column.description or ""))

    columns = [words(column) for table in graph.tables for column in table.columns]
    weight = {word: idf(sum(word in own for own in columns), len(columns)) for word in set().union(*columns)}
    asked, scores = set(content_words(question)), []
    for table in graph.tables:
        best = 0.0
        for own in map(words, table.columns):
            if own:
                best = max(best, sum(weight[w] for w in own & asked) ** 2 / sum(weight[w] for w in own))
        scores.append(best)
    return scores


@pytest.mark.parametrize("field", [Field.COLUMNS, Field.DESCRIPTIONS])
@pytest.mark.parametrize("graph", [described(), foreign()], ids=["harbour", "foreign"])
def test_best_column_is_the_equation(field: Field, graph):
    expected = [best_oracle(question, field, graph) for question in ASKED]
    np.testing.assert_allclose(BestColumn(field).score(ASKED, graph), expected, rtol=1e-10)


def test_a_whole_column_beats_a_part_of_a_longer_one():
    tables = (Table("a", (Column("wind_speed"),)), Table("b", (Column("wind_speed_of_the_last_storm"),)))
    scores = BestColumn(Field.COLUMNS).score(["wind speed"], build_graph("best", tables, ()))[0]
    assert scores[0] > scores[1] > 0


def test_words_that_are_not_ascii():
    graph = foreign()
    assert NameMatch(Match.FULL).score(["Wie ist die GRÖSSE?", "Größe", "Gruß"], graph)[:, 0].tolist() == [1, 1, 0]
    assert NameMatch(Match.SHARE).score(["船はどこ"], graph)[0].argmax() == 2
    assert BestColumn(Field.DESCRIPTIONS).score(["船の名"], graph)[0].argmax() == 2
    assert FieldBM25(Field.COLUMNS).score(["Maß"], graph)[0].argmax() == 0


def test_a_schema_without_columns_or_descriptions_is_silent():
    for channel in CHANNELS:
        field = getattr(channel, "field", Field.NAME)
        if field is not Field.NAME:
            assert not channel.score(ASKED, bare()).any(), channel.name


def test_largest_of_tables_without_columns_anywhere():
    values = np.array([[3.0, 1.0, 2.0]])
    starts = np.array([0, 0, 2, 2, 3, 3])
    assert largest_of_tables(values, starts).tolist() == [[0, 3, 0, 2, 0, 0]]
    assert largest_of_tables(np.zeros((2, 0)), np.array([0, 0])).tolist() == [[0, 0], [0, 0]]
    assert largest_of_tables(np.zeros((0, 3)), starts).shape == (0, 6)


def test_all_channels_together_take_little_time():
    """On a schema of 60 tables with 20 columns each."""
    tables = [
        Table(f"table_{t}", tuple(Column(f"word{t % 7}_thing{c}", description=f"thing {c} of it") for c in range(20)))
        for t in range(60)
    ]
    graph = build_graph("wide", tables, ())
    questions = ["Which thing 3 of word5 is the largest of table 7, and by how much?"]
    times = []
    for _ in range(10):
        start = time.perf_counter()
        for channel in CHANNELS:
            channel.score(questions, graph)
        times.append(time.perf_counter() - start)
    assert min(times) < 20e-3
