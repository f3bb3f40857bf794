"""The reranked channel: its ranks by hand, replies of a chat model, and failures that change nothing but the count."""

import logging

import numpy as np
import pytest
from chat_server import Raw, chat_server
from hypothesis import given, settings
from hypothesis import strategies as st

from bayeslink.evidence.channel import Channel, compute_evidence
from bayeslink.evidence.chat import Counts
from bayeslink.evidence.lexical import BM25
from bayeslink.evidence.reranked import ChatReranker, RerankedTables
from bayeslink.grounding.endpoint import Endpoint
from bayeslink.schema.graph import Column, SchemaGraph, Table, build_graph

QUESTION = "Which ship came to the port in bad weather?"


class Fixed:
    """A base channel with the same scores for every question."""

    name = "fixed"
    identity = "fixed/1"

    def __init__(self, *scores: float) -> None:
        self.scores = scores

    def score(self, questions, graph):
        return np.tile(np.array(self.scores, dtype=np.float64), (len(questions), 1))


def tables(num: int) -> SchemaGraph:
    made = [Table(f"t{place}", (Column(f"c{place}"),), description=f"about\n{place}") for place in range(num)]
    return build_graph("x", made)


def ranks(scores: np.ndarray) -> list[float]:
    return [round(1 / score, 9) for score in scores]


def replying(text: str, num: int = 5, **arguments) -> RerankedTables:
    return RerankedTables(ChatReranker(lambda messages: text), "m", Fixed(*range(num, 0, -1)), **arguments)


def test_it_is_a_channel_whose_identity_names_the_model_and_the_base():
    channel = RerankedTables(lambda question, tables: [0.0] * len(tables), "big", BM25())
    assert isinstance(channel, Channel)
    assert channel.name == "reranked"
    assert channel.identity == f"reranked/1 model=big tables=20 of {BM25().identity}"


@pytest.mark.parametrize(
    ("reply", "expected"),
    [
        ("[3, 1]", [2, 3, 1, 4.5, 4.5]),
        ('["t2", "T0"]', [2, 3, 1, 4.5, 4.5]),
        ('["t2", 1]', [2, 3, 1, 4.5, 4.5]),
        ("```json\n[3, 1]\n```", [2, 3, 1, 4.5, 4.5]),
        ("[4, 3, 2, 1]", [4, 3, 2, 1, 5]),
    ],
)
def test_listed_tables_come_first_and_the_others_stay_in_the_order_of_the_base(reply, expected):
    channel = RerankedTables(ChatReranker(lambda messages: reply), "m", Fixed(4.0, 3.0, 2.0, 1.0, 1.0), 5)
    assert ranks(channel.score([QUESTION], tables(5))[0]) == expected
    assert channel.counts == Counts(1, 1, {})


def test_tables_that_were_not_shown_stay_behind():
    channel = replying("[2]", num_tables=2)
    assert ranks(channel.score([QUESTION], tables(5))[0]) == [2, 1, 3, 4, 5]
    tied = RerankedTables(lambda question, shown: [0.0, 0.0], "m", Fixed(1.0, 1.0, 1.0, 0.0), 2)
    assert ranks(tied.score([QUESTION], tables(4))[0]) == [1.5, 1.5, 3, 4]


@pytest.mark.parametrize(
    ("reply", "reason"),
    [
        ("I like t2 best", "a reply that is not JSON"),
        ("Sure: [1, 2]", "a reply that is not JSON"),
        ('{"tables": [1]}', "a reply that is no list of tables"),
        ("[]", "a reply that is no list of tables"),
        ("[0]", "a reply with a table that was not shown"),
        ("[6]", "a reply with a table that was not shown"),
        ('["secrets", 1]', "a reply with a table that was not shown"),
        ("[true]", "a reply with a table that was not shown"),
        ("[1.0]", "a reply with a table that was not shown"),
        ("[[1]]", "a reply with a table that was not shown"),
        ('[2, "t1"]', "a reply that lists a table twice"),
        ("", "malformed"),
    ],
)
def test_a_nonsensical_reply_leaves_the_order_and_is_counted(reply, reason, caplog):
    channel = replying(reply)
    assert ranks(channel.score([QUESTION, QUESTION], tables(5))[0]) == [1, 2, 3, 4, 5]
    assert channel.counts == Counts(2, 0, {reason: 2})
    assert f"2 of 2 questions keep the order of fixed; so far 2 asked, 0 answered, 2 failed (2 {reason})" in caplog.text


@pytest.mark.parametrize(
    ("given_scores", "reason"),
    [
        ([1.0], "not one score a table"),
        ([1.0, float("nan"), 1.0], "scores that are not finite"),
        (["a", "b", "c"], "scores that are no numbers"),
    ],
)
def test_scores_of_a_callable_that_are_none_are_counted(given_scores, reason):
    channel = RerankedTables(lambda question, shown: given_scores, "m", Fixed(3.0, 2.0, 1.0))
    assert ranks(channel.score([QUESTION], tables(3))[0]) == [1, 2, 3]
    assert channel.counts.failures == {reason: 1}


def test_an_error_of_a_callable_is_counted_by_its_type():
    def broken(question, shown):
        raise KeyError("sk-secret")

    channel = RerankedTables(broken, "m", Fixed(1.0, 2.0, 3.0))
    assert ranks(channel.score([QUESTION], tables(3))[0]) == [3, 2, 1]
    assert str(channel.counts) == "1 asked, 0 answered, 1 failed (1 KeyError)"


def test_an_endpoint_reranks_and_its_failures_are_counted_by_kind(graph, monkeypatch, caplog):
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    caplog.set_level(logging.WARNING)
    replies = ['["crew_members"]', Raw("{}", 500), Raw("{}", delay_s=1), "[1, 1]"]
    with chat_server(replies) as server:
        model = Endpoint(server.url, "small", timeout=0.3, max_retries=0)
        channel = RerankedTables(ChatReranker(model), "small", BM25())
        scores = channel.score([QUESTION] * 4, graph)
        model.close()
    plain = RerankedTables(lambda question, shown: [0.0] * len(shown), "none", BM25()).score([QUESTION], graph)[0]
    assert scores[0].argmax() == graph.table_names.index("crew_members")
    assert not np.array_equal(scores[0], plain)
    assert all(np.array_equal(row, plain) for row in scores[1:])
    assert channel.counts == Counts(4, 1, {"error": 1, "timeout": 1, "a reply that lists a table twice": 1})
    assert len(caplog.records) == 1


def test_the_prompt_shows_the_tables_of_the_graph_and_nothing_else():
    seen = []

    def model(messages):
        seen.extend(messages)
        return "[1]"

    RerankedTables(ChatReranker(model), "m", Fixed(3.0, 2.0, 1.0), 2).score(["What\nabout 0?"], tables(3))
    assert seen[1]["content"] == "Question: What about 0?\n\nTables:\n1. t0 (c0): about 0\n2. t1 (c1): about 1"


def test_a_batch_with_a_failure_is_not_kept_in_the_cache(tmp_path):
    replies = iter(["nonsense", "[2]", "[3]"])
    graph = tables(3)
    channel = RerankedTables(ChatReranker(lambda messages: next(replies)), "m", Fixed(3.0, 2.0, 1.0))

    def computed() -> list[float]:
        return ranks(compute_evidence(graph, [QUESTION], [channel], cache=tmp_path).values[0, :, 0])

    assert computed() == [1, 2, 3]
    assert computed() == [2, 1, 3]
    assert computed() == [2, 1, 3]
    assert channel.counts == Counts(2, 1, {"a reply that is not JSON": 1})


def test_little_to_rank_is_no_call():
    def never(question, shown):
        raise AssertionError

    channel = RerankedTables(never, "m", Fixed(3.0))
    assert channel.score([QUESTION], tables(1)).tolist() == [[1.0]]
    assert channel.score([], tables(1)).shape == (0, 1)
    assert channel.counts == Counts()


def test_settings_that_make_no_sense_are_refused():
    with pytest.raises(ValueError, match="num_tables=1, model_name='m': rerank at least 2 tables"):
        RerankedTables(lambda question, shown: [], "m", BM25(), 1)
    with pytest.raises(ValueError, match="model_name='': rerank"):
        RerankedTables(lambda question, shown: [], "", BM25())


@settings(max_examples=100, deadline=None, derandomize=True)
@given(st.data())
def test_ranks_are_those_of_a_sort_in_plain_python(data):
    num = data.draw(st.integers(2, 8))
    top = data.draw(st.integers(2, 8))
    base = data.draw(st.lists(st.integers(0, 3).map(float), min_size=num, max_size=num))
    shown = sorted(range(num), key=lambda table: -base[table])[:top]
    made = data.draw(st.lists(st.integers(0, 2).map(float), min_size=len(shown), max_size=len(shown)))
    score = dict(zip(shown, made, strict=True))
    key = [(table not in score, -score.get(table, 0.0), -base[table]) for table in range(num)]
    expected = [sum(k < own for k in key) + (1 + sum(k == own for k in key)) / 2 for own in key]
    channel = RerankedTables(lambda question, tables: made, "m", Fixed(*base), top)
    assert ranks(channel.score([QUESTION], tables(num))[0]) == expected
