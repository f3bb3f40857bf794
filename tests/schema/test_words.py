"""Words of identifiers and questions."""

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bayeslink.schema.words import STOP_WORDS, content_words, singular, split_words


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("customerIDs", "customer id"),
        ("customer_ids", "customer id"),
        ("the customers' IDs", "the customer id"),
        ("HTTPServer2Go", "http server 2 go"),
        ("SALES_ORDERS", "sale order"),
        ("log4jURLs", "log 4 j url"),
        ("The captain’s log", "the captain log"),
        ("K-12 (free)", "k 12 free"),
        ("Stra\u00dfe \uff21\uff22\u00b2", "strasse ab 2"),
        ("", ""),
        (" _-! ", ""),
    ],
)
def test_splitting(text: str, words: str):
    assert split_words(text) == words.split()


def test_chinese_gives_characters_and_bigrams():
    assert split_words("订单id数量") == ["订", "单", "订单", "id", "数", "量", "数量"]
    assert set(split_words("订单")) <= set(split_words("有多少订单"))


def test_combining_marks_break_no_word():
    assert len(split_words("हिन्दी")) == 1
    assert split_words(unicodedata.normalize("NFD", "café")) == split_words("café") == ["café"]
    assert split_words("İd") == ["id"]


@pytest.mark.parametrize(
    ("plural", "expected"),
    [
        ("customers", "customer"),
        ("categories", "category"),
        ("addresses", "address"),
        ("classes", "class"),
        ("boxes", "box"),
        ("branches", "branch"),
        ("houses", "house"),
        ("heroes", "hero"),
        ("movies", "movie"),
        ("ties", "tie"),
        ("people", "person"),
        ("statuses", "status"),
        ("ids", "id"),
    ],
)
def test_plurals_fold(plural: str, expected: str):
    assert singular(plural) == expected
    assert singular(expected) == expected


@pytest.mark.parametrize("word", ["status", "bus", "address", "analysis", "gas", "series", "class", "is"])
def test_singulars_in_s_stay(word: str):
    assert singular(word) == word


@given(st.text(max_size=40))
def test_words_hold_no_separator_and_split_no_further(text: str):
    for word in split_words(text):
        assert word
        assert not any(character.isspace() or character in "_-.,'" for character in word)


@given(st.text(alphabet=st.characters(codec="ascii"), max_size=30), st.text(max_size=30))
def test_text_on_two_sides_of_a_space_splits_alone(first: str, second: str):
    assert split_words(f"{first} {second}") == split_words(first) + split_words(second)


def test_content_words_are_the_rest():
    assert content_words("Which of the ships are in a port?") == ["ship", "port"]
    assert content_words("How many are there?") == []
    assert all(split_words(word) == [word] for word in STOP_WORDS)
