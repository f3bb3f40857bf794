"""Boilerplate by its definition, and descriptions that fill only what is empty, are kept, and never hide a failure."""

import json
import math

import pytest
from chat_server import Raw, chat_server
from hypothesis import given, settings
from hypothesis import strategies as st

from bayeslink.evidence.chat import Counts
from bayeslink.evidence.descriptions import (
    BOILERPLATE_MAX_IDF,
    DescriptionReport,
    boilerplate,
    describe_tables,
    is_switched_off,
)
from bayeslink.grounding.endpoint import Endpoint
from bayeslink.schema.graph import Column, RawKey, SchemaGraph, Table, build_graph
from bayeslink.schema.words import content_words

TEXT = "Each row is a parcel that a customer waits for."


@pytest.fixture(autouse=True)
def environment(monkeypatch, tmp_path):
    monkeypatch.delenv("BAYESLINK_DESCRIBE", raising=False)
    monkeypatch.setenv("BAYESLINK_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")


def catalogue(*comments: str | None, name: str = "x") -> SchemaGraph:
    """One table for each comment: thing_001 with the column code_001, and so on."""
    tables = [
        Table(f"thing_{place:03}", (Column(f"code_{place:03}"),), description=comment)
        for place, comment in enumerate(comments)
    ]
    return build_graph(name, tables)


ONE_VOICE = [f"Holds crm thing code records {place:03}" for place in range(9)]
MIXED = catalogue(*ONE_VOICE, "Refunds granted to customers abroad", None)


class Scribe:
    """A model that counts what it is asked."""

    def __init__(self, *replies: str) -> None:
        self.replies, self.seen = list(replies), []

    def __call__(self, messages):
        self.seen.append("\n".join(message["content"] for message in messages))
        return self.replies[min(len(self.seen), len(self.replies)) - 1]


def comments(graph: SchemaGraph) -> list[str | None]:
    return [table.description for table in graph.tables]


def test_comments_in_one_voice_are_boilerplate_and_one_in_another_is_not():
    assert boilerplate(MIXED) == tuple(range(9))


def test_the_tables_own_words_and_digits_do_not_count():
    own = [Table("refunds", (Column("granted_to"),), description="Holds crm records: refunds granted 4711")]
    graph = build_graph("x", [*own, *MIXED.tables[:9]])
    assert 0 in boilerplate(graph)
    # The same words are news in the comment of another table.
    other = [Table("abc", (Column("def"),), description="Holds crm records: refunds granted 4711")]
    assert 0 not in boilerplate(build_graph("x", [*other, *MIXED.tables[:9]]))


def test_few_comments():
    assert boilerplate(catalogue(None, "  ", "")) == ()
    assert boilerplate(catalogue("Parcels that wait")) == ()
    assert boilerplate(catalogue("The thing and its code.", None)) == (0,)
    assert boilerplate(catalogue("Parcels that wait", "Letters that wait")) == ()
    assert boilerplate(catalogue("Parcels that wait", "parcel, waiting: Parcels, waits")) == (0,)
    assert boilerplate(build_graph("none", [])) == ()


WORDS = st.lists(st.sampled_from(["red", "blue", "green", "thing", "7", "the"]), max_size=4)


@settings(max_examples=60, deadline=None, derandomize=True)
@given(st.lists(st.one_of(st.none(), WORDS), max_size=8))
def test_boilerplate_is_the_definition_in_plain_python(drawn):
    graph = catalogue(*(None if words is None else " ".join(words) for words in drawn))
    said = {i: set(content_words(t.description)) - {"7"} for i, t in enumerate(graph.tables) if t.description}
    expected = []
    for place, words in said.items():
        best = -1.0
        for word in words - {"thing"}:
            num_with = sum(word in other for other in said.values())
            best = max(best, math.log(1 + (len(said) - num_with + 0.5) / (num_with + 0.5)) if len(said) > 1 else 9.0)
        if best < BOILERPLATE_MAX_IDF:
            expected.append(place)
    assert boilerplate(graph) == tuple(expected)


def test_missing_and_boilerplate_comments_are_filled_and_no_other():
    scribe = Scribe(TEXT)
    graph, report = describe_tables(MIXED, scribe, "small")
    assert comments(graph) == [TEXT] * 9 + [MIXED.tables[9].description, TEXT]
    assert report == DescriptionReport(0, 1, 1, 9, 0, Counts(10, 10, {}), False)
    assert len(scribe.seen) == 10
    assert (graph.foreign_keys, graph.edges, graph.name) == (MIXED.foreign_keys, MIXED.edges, MIXED.name)


def test_a_second_run_asks_nothing_and_another_model_or_connection_does():
    first, _ = describe_tables(MIXED, Scribe(TEXT), "small")
    scribe = Scribe("Something else entirely.")
    again, report = describe_tables(MIXED, scribe, "small")
    assert (again, scribe.seen) == (first, [])
    assert (report.from_cache, report.counts) == (10, Counts())
    describe_tables(MIXED, scribe, "large")
    assert len(scribe.seen) == 10
    describe_tables(catalogue(*comments(MIXED), name="y"), scribe, "small")
    assert len(scribe.seen) == 20
    describe_tables(catalogue(*comments(MIXED), "A new table"), scribe, "small")
    assert len(scribe.seen) == 30


def test_hints_come_first_and_are_never_described():
    scribe = Scribe(TEXT)
    hints = {"THING_000": "Parcels", "thing_009": "Refunds", "thing_010": "Returns"}
    graph, report = describe_tables(MIXED, scribe, "small", hints=hints)
    assert comments(graph) == ["Parcels", *[TEXT] * 8, "Refunds", "Returns"]
    assert report == DescriptionReport(3, 0, 0, 8, 0, Counts(8, 8, {}), False)
    assert not any("thing_000" in said or "thing_010" in said for said in scribe.seen)


def test_the_environment_switches_the_model_off(monkeypatch):
    monkeypatch.setenv("BAYESLINK_DESCRIBE", "0")
    scribe = Scribe(TEXT)
    graph, report = describe_tables(MIXED, scribe, "small", hints={"thing_000": "Parcels"})
    assert is_switched_off()
    assert scribe.seen == []
    assert comments(graph) == ["Parcels", *comments(MIXED)[1:]]
    assert report == DescriptionReport(1, 1, 1, 8, 0, Counts(), True)
    monkeypatch.setenv("BAYESLINK_DESCRIBE", "1")
    assert not is_switched_off()


@pytest.mark.parametrize("reply", ["```sql\nSELECT 1\n```", "x y " * 200, "12 34.", "of the"])
def test_a_reply_that_is_no_sentence_keeps_the_comment_and_is_counted(reply, caplog):
    graph, report = describe_tables(MIXED, Scribe(reply), "small")
    assert graph == MIXED
    assert report.counts == Counts(10, 0, {"a reply that is no sentence": 10})
    assert "10 asked, 0 answered, 10 failed" in caplog.text


def test_an_endpoint_that_fails_keeps_the_comment_and_is_asked_again_in_the_next_run(caplog):
    graph = catalogue(None, None, None, "Refunds granted abroad")
    with chat_server([TEXT, Raw("{}", 500), Raw("{}", delay_s=1), f'"{TEXT}"\n']) as server:
        model = Endpoint(server.url, "small", timeout=0.3, max_retries=0)
        first, report = describe_tables(graph, model, "small")
        assert comments(first) == [TEXT, None, None, "Refunds granted abroad"]
        assert report.counts == Counts(3, 1, {"error": 1, "timeout": 1})
        assert "descriptions by small: 3 asked, 1 answered, 2 failed" in caplog.text
        second, report = describe_tables(graph, model, "small")
        assert comments(second) == [TEXT, TEXT, TEXT, "Refunds granted abroad"]
        assert (report.from_cache, report.counts) == (1, Counts(2, 2, {}))
        model.close()


def test_what_was_written_is_kept_when_the_run_is_broken_off(tmp_path):
    def stops(messages):
        if "thing_001" in messages[1]["content"]:
            raise KeyboardInterrupt
        return TEXT

    graph = catalogue(None, None)
    with pytest.raises(KeyboardInterrupt):
        describe_tables(graph, stops, "small", folder=tmp_path)
    assert describe_tables(graph, Scribe(TEXT), "small", folder=tmp_path)[1].from_cache == 1


@pytest.mark.parametrize("content", ["{cut", "[]", '{"thing_000": 3}'])
def test_a_corrupt_file_is_made_again_with_a_warning(tmp_path, caplog, content):
    graph = catalogue(None)
    describe_tables(graph, Scribe(TEXT), "small", folder=tmp_path)
    (path,) = (tmp_path / "descriptions").iterdir()
    assert json.loads(path.read_text(encoding="utf-8")) == {"thing_000": TEXT}
    path.write_text(content, encoding="utf-8")
    assert comments(describe_tables(graph, Scribe(TEXT), "small", folder=tmp_path)[0]) == [TEXT]
    assert "are corrupt and made again" in caplog.text
    assert json.loads(path.read_text(encoding="utf-8")) == {"thing_000": TEXT}


def test_the_prompt_shows_the_table_its_keys_and_nothing_out_of_scope():
    tables = [
        Table(
            "visits", (Column("id", "INTEGER", description="number\nof it"), Column("port")), definition="secret_one"
        ),
        Table("ports", (Column("id", primary_key=True),), description="Where ships lie"),
        Table("crews", (Column("id"),), description="People aboard"),
    ]
    keys = [RawKey("visits", ("port",), "ports", ("id",)), RawKey("visits", ("id",), "hidden", ("id",))]
    scribe = Scribe(TEXT)
    describe_tables(build_graph("x", tables, keys), scribe, "small")
    (said,) = scribe.seen
    assert said.endswith("Table visits\nColumns:\n- id INTEGER: number of it\n- port\nKey: visits refers to ports")
    assert not any(word in said for word in ("secret", "hidden", "crews"))


@pytest.mark.parametrize("hints", [{"nothing": "x"}, {"thing_000": " "}, {"thing_000": "a", "THING_000": "b"}])
def test_hints_that_fit_nothing_are_refused(hints):
    with pytest.raises(ValueError, match="is blank or names no table of x, or one twice; correct it"):
        describe_tables(MIXED, Scribe(TEXT), "small", hints=hints)
