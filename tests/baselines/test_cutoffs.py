"""Cut-offs against plain Python, their limits, and their ties."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import few

from bayeslink.baselines.cutoffs import top_p


def shortest_prefix(scores: list[float], mass: float, temperature: float) -> set[int]:
    """Best table first, of ties the first, until their softmax mass reaches the wanted one."""
    largest = max(scores)
    weights = [math.exp((score - largest) / temperature) for score in scores]
    order = sorted(range(len(scores)), key=lambda table: (-scores[table], table))
    chosen: set[int] = set()
    while order and math.fsum(weights[t] for t in chosen) / math.fsum(weights) < mass * (1 - 1e-12):
        chosen.add(order.pop(0))
    return chosen


@few
@given(
    st.lists(st.lists(st.floats(-5, 5), min_size=4, max_size=4), min_size=1, max_size=5),
    st.floats(0.05, 1.0),
    st.floats(0.1, 5.0),
)
def test_top_p_is_the_shortest_prefix_with_the_mass(scores, mass, temperature):
    found = top_p(np.array(scores), mass, temperature)
    for row, chosen in zip(scores, found, strict=True):
        assert set(np.flatnonzero(chosen).tolist()) == shortest_prefix(row, mass, temperature)


def test_top_p_has_its_limits():
    scores = np.array([[3.0, 1.0, 2.0, 0.0]])
    assert top_p(scores, 1e-9).tolist() == [[True, False, False, False]]
    assert top_p(scores, 1.0).all()
    assert top_p(scores, 0.9, 0.01).sum() == 1
    assert top_p(scores, 0.7, 1e9).tolist() == [[True, True, True, False]]
    assert top_p(np.zeros((0, 3)), 0.5).shape == (0, 3)
    sizes = [int(top_p(scores, mass, heat).sum()) for heat in (0.5, 1.0, 2.0) for mass in (0.5, 0.8, 0.95)]
    assert sizes == [1, 1, 2, 1, 2, 3, 2, 3, 4]


def test_equal_scores_fall_to_the_first_table():
    assert top_p(np.array([[1.0, 1.0, 1.0, 1.0]]), 0.5).tolist() == [[True, True, False, False]]
    assert top_p(np.array([[0.0, 1.0, 1.0]]), 0.1).tolist() == [[False, True, False]]


@pytest.mark.parametrize("mass", [0.0, -0.1, 1.1, float("nan")])
def test_top_p_refuses_a_mass_that_is_no_probability(mass):
    with pytest.raises(ValueError, match="mass="):
        top_p(np.zeros((1, 2)), mass)


@pytest.mark.parametrize("temperature", [0.0, -1.0, float("inf"), float("nan")])
def test_top_p_refuses_a_temperature_that_is_not_positive(temperature):
    with pytest.raises(ValueError, match="temperature="):
        top_p(np.zeros((1, 2)), 0.5, temperature)
