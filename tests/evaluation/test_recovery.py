"""Set scores against hand-counted cases and plain Python."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from bayeslink.evaluation.recovery import exact_match, f1, precision, recall, strict_recall

CHOSEN = np.array([[1, 1, 0, 0], [0, 0, 0, 0], [1, 1, 1, 1], [0, 1, 0, 1]], dtype=bool)
GOLD = np.array([[1, 0, 1, 0], [1, 0, 0, 0], [0, 1, 1, 0], [0, 1, 0, 1]], dtype=bool)


def test_scores_of_a_hand_counted_case():
    assert precision(CHOSEN, GOLD).tolist() == [0.5, 0.0, 0.5, 1.0]
    assert recall(CHOSEN, GOLD).tolist() == [0.5, 0.0, 1.0, 1.0]
    assert strict_recall(CHOSEN, GOLD).tolist() == [0.0, 0.0, 1.0, 1.0]
    assert exact_match(CHOSEN, GOLD).tolist() == [0.0, 0.0, 0.0, 1.0]


def test_f1_is_the_harmonic_mean():
    assert f1(0.5, 1.0) == pytest.approx(2 / 3)
    assert f1(0.0, 0.0) == 0.0


sets = arrays(bool, st.shared(st.tuples(st.integers(1, 4), st.integers(1, 5)), key="shape"))


@given(sets, sets)
def test_scores_equal_plain_python(chosen, gold):
    gold[:, 0] = True
    for scores, expected in (
        (precision(chosen, gold), lambda c, g: len(c & g) / len(c) if c else 0.0),
        (recall(chosen, gold), lambda c, g: len(c & g) / len(g)),
        (strict_recall(chosen, gold), lambda c, g: float(g <= c)),
        (exact_match(chosen, gold), lambda c, g: float(g == c)),
    ):
        by_hand = [
            expected(set(np.flatnonzero(c).tolist()), set(np.flatnonzero(g).tolist()))
            for c, g in zip(chosen, gold, strict=True)
        ]
        np.testing.assert_allclose(scores, by_hand, rtol=1e-12)
