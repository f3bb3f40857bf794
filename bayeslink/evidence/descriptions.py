"""Comments of a catalogue that say nothing, and descriptions that a model writes in their place.

A comment is boilerplate when its most informative word is one that most comments have. With n comments in the schema,
n_w of them with the word w,

    idf(w) = log(1 + (n - n_w + 1/2) / (n_w + 1/2))        (`lexical.inverse_frequency`)
    boilerplate(t)  when  max over words w of t's comment, its own words aside, of idf(w) < BOILERPLATE_MAX_IDF.

Words are the content words of `words`; runs of digits are none. A table's own words are those of its name and of its
columns' names: a comment that restates them tells nothing new, and one without any other word is boilerplate. In a
schema with one comment that comment has nothing to repeat, and idf does not condemn it.

Descriptions are written by a model that the user gives, for tables whose comment is missing or boilerplate and for no
other. They are kept on disk for each connection and model, `BAYESLINK_DESCRIBE=0` switches them off, a hint of the user
comes before every comment and is never described anew, and where a call fails the comment stays and the failure is
counted.
"""

import hashlib
import json
import logging
import os
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
from tqdm import tqdm

from bayeslink.evidence.cache import cache_home, graph_digest, replace_file
from bayeslink.evidence.chat import ChatError, ChatModel, Counts, Message, Tally, ask
from bayeslink.evidence.lexical import inverse_frequency
from bayeslink.schema.graph import SchemaGraph, Table
from bayeslink.schema.words import content_words

__all__ = ["BOILERPLATE_MAX_IDF", "DescriptionReport", "boilerplate", "describe_tables", "is_switched_off"]

BOILERPLATE_MAX_IDF = 0.5
"""Nats: a comment whose best word is below is boilerplate; such a word is in three comments of five, or more."""

MAX_DESCRIPTION = 400
"""Characters of a description; a longer reply is no sentence about a table."""

_SYSTEM = """You describe tables of a database for people who search for data.
Reply with one plain sentence of at most 30 words that says what a row of the table stands for and what questions it
answers, in words a user would use. Do not repeat the table's name, do not list its columns, write no code."""

_log = logging.getLogger(__name__)


class DescriptionReport(NamedTuple):
    """What became of the tables' comments; the first four are counts that add up to the number of tables.

    Attributes:
        hinted: Tables with the user's hint.
        kept: Tables whose comment says something.
        missing: Tables without a comment.
        boilerplate: Tables whose comment says nothing.
        from_cache: Descriptions that an earlier run had made; a count.
        counts: How the calls to the model went.
        switched_off: Whether `BAYESLINK_DESCRIBE=0` kept the model from being asked.
    """

    hinted: int
    kept: int
    missing: int
    boilerplate: int
    from_cache: int
    counts: Counts
    switched_off: bool


def boilerplate(graph: SchemaGraph) -> tuple[int, ...]:
    """Positions of the tables whose comment is boilerplate; a table without a comment is not among them."""
    prose = {place: _prose(table.description) for place, table in enumerate(graph.tables) if _said(table)}
    num_with = Counter(word for words in prose.values() for word in words)
    idf = dict(
        zip(num_with, inverse_frequency(np.array(list(num_with.values()), dtype=np.int64), len(prose)), strict=True)
    )
    found = []
    for place, words in prose.items():
        new = words - _own_words(graph.tables[place])
        if not new or (len(prose) > 1 and max(idf[word] for word in new) < BOILERPLATE_MAX_IDF):
            found.append(place)
    return tuple(found)


def is_switched_off() -> bool:
    """Whether the environment says `BAYESLINK_DESCRIBE=0`."""
    return os.environ.get("BAYESLINK_DESCRIBE", "").strip() == "0"


def describe_tables(
    graph: SchemaGraph,
    model: ChatModel,
    model_name: str,
    *,
    hints: Mapping[str, str] | None = None,
    folder: Path | None = None,
    progress: bool = False,
) -> tuple[SchemaGraph, DescriptionReport]:
    """The graph with a description for each table whose comment is missing or boilerplate, and what was done.

    The model is shown one table at a time, with its columns and the tables of this graph that it has keys with.

    Args:
        graph: The part of the schema that the model may see.
        model: A callable from messages to a text, such as `grounding.endpoint.Endpoint`.
        model_name: Its name, which keeps its descriptions apart from those of others.
        hints: The user's own descriptions, by name of the table.
        folder: Where descriptions are kept; `cache_home()` by default.
        progress: Show a progress bar.

    Raises:
        ValueError: If a hint names no table or two tables, or is blank.
    """
    hinted = _hinted(graph, hints or {})
    # What is boilerplate is a matter of the catalogue's own comments, so that hints do not change it.
    empty = [place for place in boilerplate(graph) if place not in hinted]
    missing = [place for place, table in enumerate(graph.tables) if not _said(table) and place not in hinted]
    wanted, off, tally = sorted([*empty, *missing]), is_switched_off(), Tally()
    found: dict[int, str] = {}
    num_cached = 0
    if wanted and not off:
        path = _cache_file(graph, model_name, folder)
        stored = _stored(path)
        names = graph.table_names
        found = {place: stored[names[place]] for place in wanted if names[place] in stored}
        num_cached = len(found)
        try:
            asked = [place for place in wanted if place not in found]
            for place in tqdm(asked, desc=f"descriptions of {graph.name}", disable=not progress):
                if (text := _described(graph, place, model, tally)) is not None:
                    found[place] = text
        finally:  # what was paid for is kept also when the run is broken off
            if len(found) > num_cached:
                texts = stored | {names[place]: text for place, text in found.items()}
                replace_file(path, lambda file: file.write(json.dumps(texts, ensure_ascii=False).encode()))
    if tally.counts.num_failed:
        _log.warning("descriptions by %s: %s; the comments of those tables stay", model_name, tally.counts)
    texts = found | hinted
    tables = tuple(
        replace(table, description=texts[place]) if place in texts else table
        for place, table in enumerate(graph.tables)
    )
    kept = graph.num_tables - len(hinted) - len(wanted)
    report = DescriptionReport(len(hinted), kept, len(missing), len(empty), num_cached, tally.counts, off)
    return replace(graph, tables=tables), report


def _prose(text: str | None) -> set[str]:
    return {word for word in content_words(text or "") if not word.isdigit()}


def _own_words(table: Table) -> set[str]:
    names = [table.name, table.natural_name or ""]
    names += [name for column in table.columns for name in (column.name, column.natural_name or "")]
    return {word for name in names for word in content_words(name)}


def _said(table: Table) -> bool:
    return bool((table.description or "").strip())


def _hinted(graph: SchemaGraph, hints: Mapping[str, str]) -> dict[int, str]:
    found: dict[int, str] = {}
    for name, text in hints.items():
        place = graph.find(name)
        if place is None or place in found or not text.strip():
            raise ValueError(f"hints[{name!r}] is blank or names no table of {graph.name}, or one twice; correct it")
        found[place] = text
    return found


def _described(graph: SchemaGraph, place: int, model: ChatModel, tally: Tally) -> str | None:
    """What the model says of a table; None, and counted, where that is no description."""
    try:
        text = " ".join(ask(model, _prompt(graph, place)).split()).strip("\"' ")
    except ChatError as error:
        tally.fail(error.kind.value)
        return None
    if not _prose(text) or len(text) > MAX_DESCRIPTION or "```" in text:
        tally.fail("a reply that is no sentence")
        return None
    tally.answer()
    return text


def _prompt(graph: SchemaGraph, place: int) -> list[Message]:
    table = graph.tables[place]
    lines = [f"{'View' if table.is_view else 'Table'} {table.full_name}", "Columns:"]
    for column in table.columns:
        said = " ".join((column.description or "").split())
        lines.append(f"- {column.name} {column.type}".rstrip() + (f": {said}" if said else ""))
    for key in graph.foreign_keys:
        if place in (key.table, key.ref_table):
            lines.append(f"Key: {graph.table_names[key.table]} refers to {graph.table_names[key.ref_table]}")
    return [{"role": "system", "content": _SYSTEM}, {"role": "user", "content": "\n".join(lines)}]


def _cache_file(graph: SchemaGraph, model_name: str, folder: Path | None) -> Path:
    parts = ["descriptions/1", graph.name, graph.dialect, graph_digest(graph), model_name]
    key = hashlib.sha256(json.dumps(parts).encode()).hexdigest()
    return (cache_home() if folder is None else folder) / "descriptions" / f"{key}.json"


def _stored(path: Path) -> dict[str, str]:
    """Descriptions by table that a file holds; none, and a warning, where it cannot be read."""
    if not path.is_file():
        return {}
    try:
        found: object = json.loads(path.read_bytes())
        reason = "it holds no texts by table"
    except (OSError, ValueError) as error:
        found, reason = None, str(error)
    if isinstance(found, dict):
        texts = {name: text for name, text in found.items() if isinstance(name, str) and isinstance(text, str)}
        if len(texts) == len(found):
            return texts
    _log.warning("descriptions in %s are corrupt and made again: %s", path, reason)
    return {}
