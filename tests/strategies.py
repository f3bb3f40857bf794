"""Random graphs and parameters as plain NumPy data; package objects are built in the test bodies."""

from typing import NamedTuple

import numpy as np
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

few = settings(
    derandomize=True, deadline=None, max_examples=20, suppress_health_check=[HealthCheck.too_slow], database=None
)
"""The same 20 examples in every run; each new graph shape costs JAX a compilation."""


class Model(NamedTuple):
    """One graph with its parameters."""

    num_tables: int
    edges: np.ndarray
    unary: np.ndarray
    coupling: np.ndarray


@st.composite
def graphs(draw, min_tables: int = 1, max_tables: int = 8) -> tuple[int, np.ndarray]:
    """Number of tables and edges: trees, cycles, several components and isolated tables all occur."""
    num_tables = draw(st.integers(min_tables, max_tables))
    pairs = [(s, t) for s in range(num_tables) for t in range(s + 1, num_tables)]
    chosen = draw(st.lists(st.sampled_from(pairs), unique=True, max_size=2 * num_tables)) if pairs else []
    flipped = [(t, s) if draw(st.booleans()) else (s, t) for s, t in chosen]
    return num_tables, np.array(flipped, dtype=np.int64).reshape(-1, 2)


@st.composite
def models(draw, min_tables: int = 1, max_tables: int = 8, scale: float = 4.0, coupling_from: float = -3.0) -> Model:
    """A graph with log-odds in +-scale and one coupling per edge of either sign, up to 3."""
    num_tables, edges = draw(graphs(min_tables, max_tables))
    log_odds = st.floats(-scale, scale, allow_subnormal=False)
    gains = st.floats(coupling_from, 3.0, allow_subnormal=False)
    unary = draw(st.lists(log_odds, min_size=num_tables, max_size=num_tables))
    coupling = draw(st.lists(gains, min_size=len(edges), max_size=len(edges)))
    return Model(num_tables, edges, np.array(unary), np.array(coupling))
