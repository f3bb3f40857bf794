"""Files of one JSON object per line, gzipped or plain, whose every error names file and line."""

import gzip
import json
import os
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

__all__ = ["Record", "read_lines", "write_lines"]


class Record(NamedTuple):
    """A JSON object and the place that it came from, read field by field with checks.

    Every method raises ValueError, naming file, line and field, where the value is of another kind.
    """

    where: str
    data: dict[str, object]

    def error(self, problem: str) -> ValueError:
        """The error to raise for a problem of this object."""
        return ValueError(f"{self.where}: {problem}")

    def text(self, field: str, may_be_empty: bool = False) -> str:
        """A string that must be there and, unless allowed, not be empty."""
        value = self.data.get(field)
        if isinstance(value, str) and (value or may_be_empty):
            return value
        if field not in self.data:
            raise self.error(f"field {field!r} is missing; add it")
        raise self.error(f"field {field!r} is {_short(value)}; make it a non-empty string")

    def maybe_text(self, field: str) -> str | None:
        """A string, or None where it is null or missing."""
        value = self.data.get(field)
        if value is None or isinstance(value, str):
            return value
        raise self.error(f"field {field!r} is {_short(value)}; make it a string or null")

    def maybe_number(self, field: str) -> int | None:
        """An integer, or None where it is null or missing."""
        value = self.data.get(field)
        if value is None or (isinstance(value, int) and not isinstance(value, bool)):
            return value
        raise self.error(f"field {field!r} is {_short(value)}; make it an integer or null")

    def flag(self, field: str) -> bool:
        """A boolean, False where it is missing."""
        value = self.data.get(field, False)
        if isinstance(value, bool):
            return value
        raise self.error(f"field {field!r} is {_short(value)}; make it true or false")

    def texts(self, field: str) -> tuple[str, ...]:
        """A list of strings, empty where it is missing."""
        value = self.data.get(field, [])
        if isinstance(value, list):
            found = tuple(item for item in value if isinstance(item, str))
            if len(found) == len(value):
                return found
        raise self.error(f"field {field!r} is {_short(value)}; make it a list of strings")

    def records(self, field: str) -> "list[Record]":
        """A list of objects that must be there; it may be empty."""
        if field not in self.data:
            raise self.error(f"field {field!r} is missing; add it, [] where there is none")
        value = self.data[field]
        if isinstance(value, list) and all(isinstance(item, dict) for item in value):
            return [Record(self.where, item) for item in value]
        raise self.error(f"field {field!r} is {_short(value)}; make it a list of objects")


def read_lines(folder: Path, stem: str) -> Iterator[Record]:
    """The objects of `stem.jsonl.gz` or `stem.jsonl` in a folder; blank lines are skipped.

    Raises:
        ValueError: If neither or both files are there, or a line cannot be read.
    """
    found = [path for path in (folder / f"{stem}.jsonl.gz", folder / f"{stem}.jsonl") if path.is_file()]
    if not found:
        raise ValueError(f"{folder / stem}.jsonl.gz: no such file (nor .jsonl); check the folder")
    if len(found) == 2:
        raise ValueError(f"{found[0]}: {found[1].name} lies beside it; remove one of the two")
    opener = gzip.open if found[0].suffix == ".gz" else open
    number = 0
    try:
        with opener(found[0], "rt", encoding="utf-8") as stream:
            for number, line in enumerate(stream, start=1):
                if line.strip():
                    yield _record(f"{found[0]}, line {number}", line)
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise ValueError(
            f"{found[0]}, after line {number}: the gzip data is broken ({error}); fetch the file again"
        ) from error
    except UnicodeDecodeError as error:
        raise ValueError(f"{found[0]}, after line {number}: not UTF-8; save the file as UTF-8") from error


def write_lines(folder: Path, stem: str, lines: Iterable[dict[str, object]]) -> None:
    """Write `stem.jsonl.gz`, the same bytes for the same lines; an old file stays until the new one is whole.

    Raises:
        ValueError: If a plain `stem.jsonl` is there, which would make the folder ambiguous.
    """
    if (folder / f"{stem}.jsonl").exists():
        raise ValueError(f"{folder / stem}.jsonl: would lie beside the new {stem}.jsonl.gz; remove it first")
    target = folder / f"{stem}.jsonl.gz"
    partial = folder / f".{stem}.jsonl.gz.{os.getpid()}"
    try:
        with partial.open("wb") as raw, gzip.GzipFile("", "wb", fileobj=raw, mtime=0) as stream:
            for line in lines:
                stream.write(json.dumps(line, ensure_ascii=False).encode() + b"\n")
        partial.replace(target)
    finally:
        partial.unlink(missing_ok=True)


def _record(where: str, line: str) -> Record:
    try:
        data = json.loads(line)
    except ValueError as error:
        raise ValueError(f"{where}: not JSON ({error}); repair or remove the line") from error
    if not isinstance(data, dict):
        raise ValueError(f"{where}: {_short(data)} is not an object; write one JSON object per line")
    return Record(where, data)


def _short(value: object) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 40 else text[:37] + "..."
