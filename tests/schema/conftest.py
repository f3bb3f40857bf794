"""The benchmark data, where it lies: skipped without it, but a failure on a machine that must have it."""

import os
from pathlib import Path

import pytest

from bayeslink.schema.corpus import Corpus, data_home, read_corpus


@pytest.fixture(scope="session")
def benchmark() -> Path:
    """Folder of the benchmark data sets."""
    try:
        return data_home()
    except ValueError as error:
        if os.environ.get("CI") == "true":
            pytest.fail(f"CI must have the benchmark data: {error}")
        pytest.skip(str(error))


@pytest.fixture(scope="session")
def corpora(benchmark: Path) -> dict[str, Corpus]:
    """The corpora that the twins and gold tables are counted on."""
    return {name: read_corpus(benchmark / name) for name in ("spider", "bird", "bird-train")}
