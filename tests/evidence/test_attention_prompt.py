import numpy as np
import pytest

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


def test_tables_can_be_written_in_another_order(shop):
    prompt = copying_prompt("?", shop, order=[1, 2, 0])
    assert lines(prompt) == ["name@concert", "year of show@concert", "name@singer", "age@singer"]
    assert prompt.owner.tolist() == [1, 1, 0, 0]
    with pytest.raises(ValueError, match=r"order=\[0, 0, 1\] is not a permutation"):
        copying_prompt("?", shop, order=[0, 0, 1])


def test_the_rationale_asks_for_no_copy(shop):
    text = copying_prompt("?", shop, instruction=Instruction.RATIONALE).text
    assert "Copy one" not in text
    assert "explain" in text


def test_a_schema_without_a_column_has_no_candidate():
    with pytest.raises(ValueError, match="bare has no column to choose from"):
        copying_prompt("?", SchemaGraph("bare", (Table("t", ()),)))


def test_tokens_of_a_candidate_are_those_that_overlap_its_characters():
    spans = np.array([[0, 4], [5, 9]])
    offsets = np.array([[0, 2], [2, 5], [5, 8], [8, 10], [10, 10]])
    assert pooling(spans, offsets, Pooling.SUM).tolist() == [[1, 1, 0, 0, 0], [0, 0, 1, 1, 0]]
    assert pooling(spans, offsets, Pooling.MEAN).tolist() == [[0.5, 0.5, 0, 0, 0], [0, 0, 0.5, 0.5, 0]]
    assert pooling(spans, offsets, Pooling.FIRST).tolist() == [[1, 0, 0, 0, 0], [0, 0, 1, 0, 0]]


def test_a_candidate_without_a_token_is_refused():
    with pytest.raises(ValueError, match="candidate 1 has no token"):
        pooling(np.array([[0, 2], [4, 6]]), np.array([[0, 3]]))
