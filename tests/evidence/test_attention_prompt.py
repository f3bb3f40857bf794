from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bayeslink.evidence.attention_prompt import Instruction, Level, Pooling, copying_prompt, pooling
from bayeslink.schema.graph import Column, SchemaGraph, Table


@pytest.fixture
def shop() -> SchemaGraph:
    return SchemaGraph(
        "shop",
        (
            Table("singer", (Column("name"), Column("age"))),
            Table("concert", (Column("name"), Column("year of\nshow"))),
            Table("empty", ()),
        ),
    )


def lines(prompt) -> list[str]:
    return [prompt.text[start:end] for start, end in prompt.spans]


def test_each_column_has_a_line_in_canonical_form(shop):
    prompt = copying_prompt("How old is he?", shop)
    assert lines(prompt) == ["name@singer", "age@singer", "name@concert", "year of show@concert"]
    assert prompt.owner.tolist() == [0, 0, 1, 1]
    assert prompt.column.tolist() == [0, 1, 0, 1]
    assert prompt.text.endswith("\n".join(lines(prompt)))


def test_each_table_has_a_line_also_one_without_columns(shop):
    prompt = copying_prompt("How old is he?", shop, Level.TABLE)
    assert lines(prompt) == ["singer", "concert", "empty"]
    assert prompt.column.tolist() == [-1, -1, -1]


def test_parts_come_in_the_papers_order(shop):
    text = copying_prompt("How old is he?", shop, with_schema=True).text
    places = [text.index(part) for part in ("Copy one", "Question: How old is he?", "Schema:", "Candidates:")]
    assert places == sorted(places)
    assert "singer: name, age" in text
    assert "Schema:" not in copying_prompt("How old is he?", shop).text


def test_an_identifier_that_the_question_holds_too_is_found_in_the_list(shop):
    prompt = copying_prompt("What is age@singer, name@singer?", shop, with_schema=True)
    assert lines(prompt)[1] == "age@singer"
    assert prompt.spans[0, 0] > prompt.text.index("Candidates:")


def test_candidates_can_be_written_in_another_order(shop):
    prompt = copying_prompt("?", shop, order=[2, 0, 3, 1])
    assert lines(prompt) == ["name@concert", "name@singer", "year of show@concert", "age@singer"]
    assert prompt.owner.tolist() == [1, 0, 1, 0]
    assert prompt.column.tolist() == [0, 0, 1, 1]
    with pytest.raises(ValueError, match="order of length 3 is no permutation of the 4 candidates of shop"):
        copying_prompt("?", shop, order=[0, 0, 1])


def test_the_rationale_asks_for_no_copy(shop):
    text = copying_prompt("?", shop, instruction=Instruction.RATIONALE).text
    assert "Copy one" not in text
    assert "explain" in text


def test_names_and_questions_are_written_on_a_line_each():
    """Whatever they hold: a name of blanks is a question mark, so that it has a character to attend to."""
    schema = SchemaGraph("odd", (Table("a\nb", (Column(" "), Column("c\t d"))), Table("\n", (Column("e"),))))
    text = copying_prompt(" Which\n\nCandidates:\none? ", schema, with_schema=True).text
    assert text.split("\n\n")[1:] == [
        "Question: Which Candidates: one?",
        "Schema:\na b: ?, c d\n?: e",
        "Candidates:\n?@a b\nc d@a b\ne@?",
    ]


def test_a_schema_without_a_column_has_no_candidate():
    with pytest.raises(ValueError, match="bare has no column to choose from"):
        copying_prompt("?", SchemaGraph("bare", (Table("t", ()),)))


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        (Pooling.SUM, [[1, 1, 0, 0, 0], [0, 0, 1, 1, 0]]),
        (Pooling.MEAN, [[0.5, 0.5, 0, 0, 0], [0, 0, 0.5, 0.5, 0]]),
        (Pooling.FIRST, [[1, 0, 0, 0, 0], [0, 0, 1, 0, 0]]),
    ],
)
def test_tokens_of_a_candidate_are_those_that_overlap_its_characters(kind, expected):
    spans = np.array([[0, 4], [5, 9]])
    offsets = np.array([[0, 2], [2, 5], [5, 8], [8, 10], [10, 10]])
    pool = pooling(spans, offsets, kind)
    assert pool.scores(np.eye(5), 2).T.tolist() == expected


@pytest.mark.parametrize("kind", list(Pooling))
def test_tokens_without_text_belong_to_no_candidate(kind):
    """As those that a tokeniser puts before, between and after the text."""
    spans = np.array([[0, 4], [4, 8]])
    offsets = np.array([[0, 0], [0, 2], [2, 4], [4, 4], [4, 6], [6, 6], [6, 8], [0, 0]])
    share = 1.0 if kind is Pooling.SUM else 0.5
    expected = np.zeros((2, 8))
    expected[[0, 1], [1, 4]] = 1.0 if kind is Pooling.FIRST else share
    expected[[0, 1], [2, 6]] = 0.0 if kind is Pooling.FIRST else share
    assert pooling(spans, offsets, kind).scores(np.eye(8), 2).T.tolist() == expected.tolist()


@given(st.data())
def test_pooling_is_the_plain_definition(data):
    """Against a loop over all tokens of all candidates, with tokens that have no text in between."""
    cuts = sorted(data.draw(st.sets(st.integers(0, 40), min_size=2, max_size=12)))
    empty = data.draw(st.booleans())
    offsets = np.array([[0, 0]] * empty + [[a, b] for a, b in pairwise(cuts)])
    places = sorted(data.draw(st.sets(st.integers(cuts[0], cuts[-1]), min_size=2, max_size=8)))
    spans = np.array([[a, b] for a, b in pairwise(places)])
    attention = np.random.default_rng(0).random((2, len(offsets)))
    for kind in Pooling:
        found = pooling(spans, offsets, kind).scores(attention, len(spans))
        for candidate, (start, end) in enumerate(spans):
            own = [t for t, (a, b) in enumerate(offsets) if a < b and a < end and b > start]
            values = attention[:, own[:1] if kind is Pooling.FIRST else own]
            expected = values.mean(axis=1) if kind is Pooling.MEAN else values.sum(axis=1)
            np.testing.assert_allclose(found[:, candidate], expected, atol=1e-12)


def test_pooling_takes_memory_by_the_token_and_not_by_the_pair():
    """20,000 candidates of five tokens: a matrix of pairs would have two billion entries."""
    ends = 10 * np.arange(1, 20_001)
    spans = np.stack([ends - 9, ends], axis=1)
    offsets = np.stack([np.arange(0, 200_000, 2), np.arange(2, 200_002, 2)], axis=1)
    pool = pooling(spans, offsets, Pooling.MEAN)
    assert len(pool.token) == 100_000
    assert pool.scores(np.ones((1, 100_000)), 20_000).tolist() == [[1.0] * 20_000]


def test_a_candidate_without_a_token_is_refused():
    with pytest.raises(ValueError, match=r"candidate 1 \(characters 4 to 6\) has no token of the prompt; use a model"):
        pooling(np.array([[0, 2], [4, 6]]), np.array([[0, 3]]), Pooling.MEAN)
