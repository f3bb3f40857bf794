"""Names and values that the question has word by word."""

import math

import numpy as np
import pytest
from fields_cases import assert_scores, bare, check_channel, check_silent, described

from bayeslink.evidence.fields import Field
from bayeslink.evidence.phrases import PhraseMatch, ValueHint, phrase_index
from bayeslink.schema.graph import Column, Table, build_graph

VALUES = {
    ("ports", "country"): ("Norway", "New Zealand"),
    ("crew_members", "fullName"): ("Nora Norway", "Bergen"),
    ("ships", "shipName"): ("Bergen", "to", ""),
    ("elsewhere", "x"): ("Norway",),
}
CHANNELS = [PhraseMatch(Field.NAME), PhraseMatch(), PhraseMatch(count=True), ValueHint(VALUES)]


@pytest.mark.parametrize("channel", CHANNELS, ids=lambda channel: channel.name)
def test_every_channel(channel):
    check_channel(channel)
    check_silent(channel, build_graph("blank", (Table("_", (Column("-"),)), Table("__", ())), ()))


def test_names_and_identities():
    names = [channel.name for channel in CHANNELS]
    assert names == ["phrase_name", "phrase_columns", "phrase_count_columns", "value_hint"]
    assert ValueHint(VALUES).identity == ValueHint(dict(reversed(VALUES.items()))).identity
    assert ValueHint(VALUES).identity != ValueHint({**VALUES, ("ports", "country"): ("Norway",)}).identity
    with pytest.raises(ValueError, match="field='descriptions' holds no names to look for; use name or columns"):
        PhraseMatch(Field.DESCRIPTIONS)


def test_phrases_by_hand():
    tables = (
        Table("a", (Column("first_name"), Column("name"), Column("to"))),
        Table("b", (Column("name"), Column("fn", natural_name="first name of the child"))),
        Table("name_of_a", ()),
    )
    graph = build_graph("phrases", tables, ())
    # "to" is a function word; "name first" is not the order of a phrase.
    question = "Show the first name to all"
    assert_scores(PhraseMatch(), graph, question, [2, 1 / math.sqrt(2), 0])
    assert_scores(PhraseMatch(count=True), graph, question, [math.log(1 + 1 + 1 / 2), math.log(1 + 1 / 2), 0])
    assert_scores(PhraseMatch(), graph, "name first", [1 / math.sqrt(2), 1 / math.sqrt(2), 0])
    assert_scores(PhraseMatch(), graph, "first names of the children", [2, 5, 0])
    assert_scores(PhraseMatch(Field.NAME), graph, "the name of a ship", [0, 0, 3])


def test_a_name_counts_once_though_it_has_two_equal_forms():
    graph = build_graph("once", (Table("a", (Column("shipName", natural_name="ship name"),)),), ())
    assert_scores(PhraseMatch(count=True), graph, "ship name", [math.log(2)])


def test_values_by_hand():
    graph = described()
    scores = ValueHint(VALUES).score(["Did Nora Norway see Bergen?", "Is it far to new zealand", "norways"], graph)
    at = graph.table_names.index
    expected = np.zeros((3, 5))
    expected[0, [at("ports"), at("ships"), at("crew_members")]] = 1, 1 / math.sqrt(2), 2
    expected[1, at("ports")] = 2
    expected[2, at("ports")] = 1
    np.testing.assert_allclose(scores, expected, rtol=1e-12)


def test_values_are_those_of_the_named_column_without_regard_to_case():
    graph = build_graph("case", (Table("Ports", (Column("Country"),), schema="sea"), Table("x", (Column("Y"),))), ())
    assert ValueHint({("SEA.ports", "COUNTRY"): ("Norway",)}).score(["Norway"], graph).tolist() == [[1, 0]]
    assert not ValueHint({("ports", "country"): ("Norway",)}).score(["Norway"], graph).any()
    assert not ValueHint({}).score(["Norway"], graph).any()


def test_a_schema_without_columns_is_silent():
    for channel in CHANNELS[1:]:
        assert not channel.score(["ships and ports"], bare()).any()


def test_many_values_take_little_time():
    index = phrase_index([[f"value {i} of table {t}" for i in range(500)] for t in range(40)])
    found = index.longest(["Is value 7 of table 3 the same as value 8?"])
    assert np.flatnonzero(found[0]).tolist() == [3]
