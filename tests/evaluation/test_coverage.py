"""Risk against coverage, against every order of the questions in plain Python and where it must be known."""

from itertools import pairwise, permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bayeslink.evaluation.comparison import clustered_bootstrap
from bayeslink.evaluation.coverage import (
    area_difference,
    area_interval,
    area_under_risk,
    clustered_band,
    least_area,
    risk_at,
    risk_band,
    risk_curve,
)

MISMATCH = (ValueError, TypeError)
"""TypeError comes first where the annotated shapes are checked at run time."""


def curve_by_hand(scores: list[float], losses: list[bool]) -> list[float]:
    """Mean risk at 1, ..., n answers over every order of the questions that respects the scores."""
    n = len(scores)
    orders = [o for o in permutations(range(n)) if all(scores[a] <= scores[b] for a, b in pairwise(o))]
    return [sum(sum(losses[q] for q in order[:k]) / k for order in orders) / len(orders) for k in range(1, n + 1)]


questions = st.lists(st.tuples(st.sampled_from([0.0, 0.5, 1.0, 2.0]), st.booleans()), min_size=1, max_size=6)


def arrays(pairs: list[tuple[float, bool]]) -> tuple[np.ndarray, np.ndarray]:
    return np.array([score for score, _ in pairs]), np.array([loss for _, loss in pairs])


@given(questions)
def test_ties_take_the_mean_over_their_orders(pairs):
    uncertainty, loss = arrays(pairs)
    by_hand = curve_by_hand(uncertainty.tolist(), loss.tolist())
    found = risk_curve(uncertainty, loss)
    assert found.risk == pytest.approx(by_hand, rel=1e-10)
    assert found.coverage == pytest.approx([(k + 1) / len(pairs) for k in range(len(pairs))])
    assert area_under_risk(uncertainty, loss) == pytest.approx(sum(by_hand) / len(by_hand), rel=1e-10)
    for k, risk in enumerate(by_hand, start=1):
        assert risk_at(uncertainty, loss, k / len(pairs)) == pytest.approx(risk, rel=1e-10)


@given(questions, st.randoms(use_true_random=False))
def test_order_of_the_questions_and_units_of_the_score_do_not_matter(pairs, random):
    again = random.sample(pairs, len(pairs))
    expected = risk_curve(*arrays(pairs)).risk
    assert risk_curve(*arrays(again)).risk == pytest.approx(expected, rel=1e-10)
    uncertainty, loss = arrays(pairs)
    assert risk_curve(np.exp(3 * uncertainty), loss).risk == pytest.approx(expected, rel=1e-10)
    assert least_area(loss) <= area_under_risk(uncertainty, loss) + 1e-12
    assert area_under_risk(1.0 - loss, loss) >= area_under_risk(uncertainty, loss) - 1e-12


def test_limits():
    loss = np.array([True, False, False, True, False])
    assert risk_curve(np.ones(5), loss).risk == pytest.approx([0.4] * 5)
    assert risk_curve(loss.astype(float), loss).risk == pytest.approx([0, 0, 0, 1 / 4, 2 / 5])
    assert least_area(loss) == pytest.approx((1 / 4 + 2 / 5) / 5)
    assert least_area(np.zeros(3, dtype=bool)) == 0
    assert risk_at(np.arange(5.0), loss, 1.0) == pytest.approx(0.4)


def test_share_is_rounded_up_to_whole_questions():
    loss = np.array([False, False, True, True])
    assert risk_at(np.arange(4.0), loss, 0.5) == 0.0
    assert risk_at(np.arange(4.0), loss, 0.51) == pytest.approx(1 / 3)
    assert risk_at(np.arange(4.0), loss, 0.01) == 0.0
    # 0.7 * 10 is 7.000000000000001 in floating point.
    assert risk_at(np.arange(10.0), np.arange(10) == 7, 0.7) == 0.0


def data(n: int = 60) -> tuple[np.ndarray, np.ndarray, list[str], np.ndarray]:
    rng = np.random.default_rng(0)
    uncertainty = rng.random(n).round(1)
    return uncertainty, rng.random(n) < uncertainty, [f"d{q // 20}" for q in range(n)], np.arange(n) // 2


def test_intervals_are_those_of_the_clustered_bootstrap():
    uncertainty, loss, databases, groups = data()

    def by_hand(drawn: np.ndarray) -> float:
        ordered = sorted(drawn.tolist())
        expected = [np.mean([bad for other, bad in ordered if other == score]) for score, _ in ordered]
        return float(np.mean([np.mean(expected[:k]) for k in range(1, len(ordered) + 1)]))

    values = np.stack([uncertainty, loss], axis=1)
    wanted = clustered_bootstrap(values, databases, groups, 20, np.random.default_rng(1), by_hand)
    found = area_interval(uncertainty, loss, databases, groups, 20, np.random.default_rng(1))
    assert found == pytest.approx(wanted, rel=1e-10)
    assert found.estimate == pytest.approx(area_under_risk(uncertainty, loss))


def test_difference_is_paired():
    uncertainty, loss, databases, groups = data()
    blind, more = np.zeros(len(loss)), loss | (np.arange(len(loss)) % 5 == 0)
    setting = databases, groups, 200
    found = area_difference((uncertainty, loss), (blind, more), *setting, np.random.default_rng(2))
    assert found.estimate == pytest.approx(area_under_risk(uncertainty, loss) - more.mean())
    assert found.upper < 0
    turned = area_difference((blind, more), (uncertainty, loss), *setting, np.random.default_rng(2))
    assert turned == pytest.approx((-found.estimate, -found.upper, -found.lower))
    # The same method twice differs by nothing in any resample.
    assert area_difference((blind, loss), (blind, loss), *setting, np.random.default_rng(2)) == (0, 0, 0)


def test_band_of_the_risk_is_the_interval_at_each_coverage():
    uncertainty, loss, databases, groups = data()
    coverages = [0.1, 0.8, 1.0]
    found = risk_band(uncertainty, loss, coverages, databases, groups, 100, np.random.default_rng(3))
    for place, coverage in enumerate(coverages):
        alone = clustered_bootstrap(
            np.stack([uncertainty, loss], axis=1),
            databases,
            groups,
            100,
            np.random.default_rng(3),
            lambda drawn, c=coverage: risk_at(drawn[:, 0], drawn[:, 1] > 0.5, c),
        )
        assert [part[place] for part in found] == pytest.approx(alone)


def test_band_leaves_out_resamples_without_a_value():
    values = np.array([0.0, 1.0, 2.0, 3.0])

    def curve(drawn: np.ndarray) -> np.ndarray:
        return np.array([drawn.mean(), drawn.mean() if (drawn == 3).any() else np.nan, np.nan])

    found = clustered_band(values, ["a"] * 4, np.arange(4), 50, np.random.default_rng(4), curve)
    assert found.estimate[:2].tolist() == [1.5, 1.5]
    assert found.lower[1] > found.lower[0]
    assert np.isnan([found.estimate[2], found.lower[2], found.upper[2]]).all()
    assert np.isfinite(found.upper[:2]).all()


def test_refusals():
    rng, loss = np.random.default_rng(0), np.zeros(2, dtype=bool)
    with pytest.raises(ValueError, match="at least one"):
        risk_curve(np.zeros(0), np.zeros(0, dtype=bool))
    with pytest.raises(ValueError, match="holds NaN"):
        risk_curve(np.array([0.0, np.nan]), loss)
    with pytest.raises(MISMATCH):
        risk_curve(np.zeros(3), loss)
    for coverage in (0.0, 1.1, -0.5, float("nan")):
        with pytest.raises(ValueError, match="above 0 and at most 1"):
            risk_at(np.zeros(2), loss, coverage)
    with pytest.raises(MISMATCH):
        area_difference((np.zeros(2), loss), (np.zeros(3), np.zeros(3, dtype=bool)), ["a"] * 2, np.arange(2), 5, rng)
