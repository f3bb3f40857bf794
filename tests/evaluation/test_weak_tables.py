"""Weak tables and connectors against plain loops; matched sizes against every threshold."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bayeslink.evaluation.weak_tables import (
    matched_threshold,
    recovered,
    share_recovered,
    structural_connectors,
    weakly_signalled,
)

MISMATCH = (ValueError, TypeError)
"""TypeError comes first where the annotated shapes are checked at run time."""
EDGES = np.array([[0, 1], [1, 2], [3, 1], [2, 4]])


def drawn(seed: int, questions: int = 40, tables: int = 5) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Probabilities, gold and a selection."""
    rng = np.random.default_rng(seed)
    return rng.random((questions, tables)), rng.random((questions, tables)) < 0.6, rng.random((questions, tables)) < 0.5


def test_weak_tables_and_connectors_equal_plain_loops():
    probability, gold, chosen = drawn(0)
    weak = weakly_signalled(probability, gold)
    connectors = structural_connectors(weak, gold, EDGES)
    neighbours = {t: {b if a == t else a for a, b in EDGES.tolist() if t in (a, b)} for t in range(5)}
    counts = [0, 0, 0, 0]
    for q in range(len(gold)):
        for t in range(5):
            is_weak = bool(gold[q, t]) and probability[q, t] < 0.5
            joined = is_weak and sum(bool(gold[q, other]) for other in neighbours[t]) >= 2
            assert (weak[q, t], connectors[q, t]) == (is_weak, joined)
            counts[0] += is_weak
            counts[1] += is_weak and bool(chosen[q, t])
            counts[2] += joined
            counts[3] += joined and bool(chosen[q, t])
    assert min(counts) > 0
    assert recovered([chosen[:7], chosen[7:]], [weak[:7], weak[7:]], [connectors[:7], connectors[7:]]) == tuple(counts)


def test_junction_table_of_the_worked_example():
    """Customers and products are sure, transactions at 0.24 joins them: the one weak table, a connector."""
    gold = np.array([[True, True, True, False]])
    weak = weakly_signalled(np.array([[0.9, 0.24, 0.8, 0.1]]), gold)
    assert weak.tolist() == [[False, True, False, False]]
    assert structural_connectors(weak, gold, np.array([[0, 1], [1, 2], [1, 3]])).tolist() == weak.tolist()
    assert not structural_connectors(weak, gold, np.array([[0, 1], [1, 3]])).any()
    assert not structural_connectors(weak, gold, np.zeros((0, 2), dtype=np.int64)).any()


def test_independent_selector_recovers_none_at_its_own_threshold():
    probability, gold, _ = drawn(1)
    probability[0, 0], gold[0, 0] = 0.5, True
    weak = weakly_signalled(probability, gold)
    assert not weak[0, 0]
    found = recovered([probability > 0.5], [weak], [weak])
    assert (found.weak, found.weak_recovered) == (weak.sum(), 0)
    assert recovered([gold], [weak], [weak]).weak_recovered == weak.sum()


@given(
    st.lists(st.lists(st.sampled_from([0.0, 0.1, 0.2, 0.5, 0.9, 1.0]), min_size=6, max_size=6), min_size=1, max_size=4),
    st.floats(0, 3),
)
def test_matched_threshold_is_the_best_of_every_threshold(rows, size):
    """Six probabilities a database, as questions of three or two tables, with many ties."""
    marginals = [np.array(row).reshape(-1, 2 + place % 2) for place, row in enumerate(rows)]
    questions = sum(len(item) for item in marginals)
    largest = sum(map(len, rows)) / questions
    wanted = min(size, largest)
    found = matched_threshold(marginals, wanted)
    flat = [value for row in rows for value in row]
    options = [sum(value > cut for value in flat) for cut in [-1.0, *flat]]
    best = min(sorted(set(options)), key=lambda total: abs(total - wanted * questions))
    assert sum((item > found.threshold).sum() for item in marginals) == best
    assert found.mean_size == best / questions


def test_matched_threshold_without_ties_meets_every_whole_total():
    marginals = list(np.random.default_rng(0).random((3, 4, 5)))
    for total in range(61):
        found = matched_threshold(marginals, total / 12)
        assert sum((item > found.threshold).sum() for item in marginals) == total
        assert found.mean_size == total / 12
    one = np.array([[0.9, 0.4, 0.4, 0.1]])
    assert matched_threshold([one], 2.0) == (0.4, 1.0)
    assert matched_threshold([one], 0.0) == (0.9, 0.0)
    assert matched_threshold([one], 4.0) == (-np.inf, 4.0)


def test_share_and_its_interval():
    counts, weak = np.array([1, 0, 2, 0]), np.array([1, 1, 4, 0])
    rng = np.random.default_rng(0)
    found = share_recovered(counts, weak, ["a", "a", "b", "b"], np.arange(4), 2000, rng)
    assert found.estimate == 3 / 6
    # Both draws of "a", two groups each from {1/1, 0/1}: the shares 0 and 1 have 1/64 or more of the mass.
    assert found.lower == 0.0
    assert 0.5 < found.upper <= 1.0
    none = share_recovered(counts * 0, weak * 0, ["a", "a", "b", "b"], np.arange(4), 10, rng)
    assert none == (0.0, 0.0, 0.0)


def test_refusals():
    probability, gold, _ = drawn(2)
    with pytest.raises(MISMATCH):
        weakly_signalled(probability[:3], gold)
    with pytest.raises(ValueError, match="give probabilities, not log-odds"):
        weakly_signalled(probability - 1, gold)
    with pytest.raises(MISMATCH):
        structural_connectors(gold[:3], gold, EDGES)
    with pytest.raises(ValueError, match="2, 1 and 2 databases"):
        recovered([gold, gold], [gold], [gold, gold])
    with pytest.raises(ValueError, match="hold no question"):
        matched_threshold([], 1.0)
    for size in (-0.1, 5.1, float("nan")):
        with pytest.raises(ValueError, match="sizes from 0 to 5 can be had"):
            matched_threshold([probability], size)
