"""Words of identifiers and questions, in one spelling, so that the two can be compared.

`customerIDs`, `customer_ids` and "the customers' IDs" all hold the words `customer` and `id`. Text
is put in Unicode form NFKC; a word ends at white space, punctuation, an underscore, a change between
letters and digits, and at the humps of camelCase; it is then case-folded and, if an English plural,
made singular. A run of Chinese, Japanese or Korean characters has no marked words, so it gives its
single characters and their bigrams.
"""

import re
import unicodedata
from functools import lru_cache

__all__ = ["STOP_WORDS", "content_words", "singular", "split_words"]

_FUNCTION_WORDS = """
    a about above after all also am an and any are as at be been being below both but by can could did do
    done each either for from had has have having he her him his how i if in into is it its just
    let like many may me might more most much must my no nor not of off on only or other our out over own
    per please same shall she should so some such than that the their them then there these they this those
    through to too under until up upon us very was we were what when where whether which while who whom
    whose why will with within would you your s t
"""
STOP_WORDS = frozenset(_FUNCTION_WORDS.split())
"""English function words, already in the form that `split_words` gives."""

# A word, over the kinds of its characters: a plural acronym (IDs), an acronym before a capitalised
# word (HTTP in HTTPServer), a word with or without its capital, an acronym, a number, a CJK run.
_WORD = re.compile(r"U{2,}s(?![ls])|U+(?=U[ls])|U?[ls]+|U+|d+|c+")
_POSSESSIVE = re.compile(r"(?<=\w)['\N{RIGHT SINGLE QUOTATION MARK}]s\b", re.IGNORECASE)
_CJK = ("CJK", "HIRAGANA", "KATAKANA", "HANGUL")
_IRREGULAR = {
    "aliases": "alias",
    "analyses": "analysis",
    "biases": "bias",
    "bonuses": "bonus",
    "buses": "bus",
    "campuses": "campus",
    "canvases": "canvas",
    "censuses": "census",
    "children": "child",
    "crises": "crisis",
    "gases": "gas",
    "ids": "id",
    "indices": "index",
    "men": "man",
    "menus": "menu",
    "people": "person",
    "persons": "person",
    "quizzes": "quiz",
    "shoes": "shoe",
    "statuses": "status",
    "toes": "toe",
    "viruses": "virus",
    "women": "woman",
}
_ENDS_IN_IE = frozenset(("calorie", "cookie", "genie", "movie", "prairie", "rookie", "selfie", "zombie"))
_UNCHANGED = frozenset(("always", "gas", "lens", "news", "perhaps", "series", "species"))


def split_words(text: str) -> list[str]:
    """The words of an identifier or a sentence in order, repeats kept; none for text without any."""
    text = _POSSESSIVE.sub("", unicodedata.normalize("NFKC", text))
    if not text.isascii():
        text = _without_marks(text)
    kinds = "".join(map(_kind, text))
    words: list[str] = []
    for found in _WORD.finditer(kinds):
        word, kind = text[found.start() : found.end()], found.group()
        if kind[0] == "c":
            words += [*word, *(word[i : i + 2] for i in range(len(word) - 1))]
        elif kind.startswith("UU") and kind.endswith("s"):
            words.append(_without_marks(word[:-1].casefold()))
        else:
            words.append(singular(_without_marks(word.casefold())))
    return words


def content_words(text: str) -> list[str]:
    """The words of `split_words` without English function words."""
    return [word for word in split_words(text) if word not in STOP_WORDS]


@lru_cache(maxsize=65536)
def singular(word: str) -> str:
    """The singular of a case-folded English word by its ending; any other word as it is."""
    if word in _IRREGULAR:
        return _IRREGULAR[word]
    if len(word) <= 3 or not word.endswith("s") or word.endswith(("ss", "us", "is")) or word in _UNCHANGED:
        return word
    if word.endswith("ies") and word[:-1] not in _ENDS_IN_IE and len(word) > 4:
        return word[:-3] + "y"
    if word.endswith(("sses", "shes", "ches", "xes", "zzes", "oes")):
        return word[:-2]
    return word[:-1]


@lru_cache(maxsize=65536)
def _kind(character: str) -> str:
    """U a capital, s an s, l another letter, d a digit, c a character of a CJK run, else a space."""
    if character == "s":
        return "s"
    if character.isdigit():
        return "d"
    if not character.isalpha():
        return " "
    if not character.isascii() and unicodedata.name(character, "").startswith(_CJK):
        return "c"
    return "U" if character.isupper() else "l"


def _without_marks(text: str) -> str:
    """Text without the combining marks that NFKC leaves, which would otherwise break a word in two."""
    return text if text.isascii() else "".join(c for c in text if unicodedata.category(c) not in ("Mn", "Mc"))
