"""One small world that most tests share, so that JAX compiles each fit once."""

import pytest
from worlds import ISOLATED, PATH, STAR, simulate

from bayeslink.evidence.channel import Evidence
from bayeslink.inference.packing import pack
from bayeslink.model.batch import Batch


@pytest.fixture(scope="session")
def world() -> list[Evidence]:
    """Three databases of four tables with eight questions each; no gold selection is empty."""
    return simulate(3, 3, 8, shapes=(PATH, STAR, ISOLATED), non_empty=True)


@pytest.fixture(scope="session")
def batch(world: list[Evidence]) -> Batch:
    return pack(world)
