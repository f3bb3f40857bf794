"""All scores of one variant against a case worked by hand."""

from dataclasses import replace
from math import log

import numpy as np
import pytest

from bayeslink.evaluation.scores import COVER_LEVELS, predicted, score
from bayeslink.inference.predictive import SubgraphDistribution

# CONTRACT.md, the keys of one variant's scores, in its order.
SCORES = [
    "map", "precision", "recall", "f1", "strict_recall", "exact_match", "mean_size", "all_gold_at_3", "all_gold_at_5",
    "ece", "brier", "mean_shift", "marginal_log_score", "joint_log_score", "cover",
]  # fmt: skip


@pytest.fixture
def by_hand():
    """Two tables A and B, subsets in the order empty, A, B, AB; gold is A, then AB."""
    probabilities = np.array([[0.0, 0.85, 0.05, 0.10], [0.0, 0.2, 0.5, 0.3]])
    distribution = SubgraphDistribution(probabilities, np.zeros(2), np.array([[0, 1]]))
    gold = np.array([[True, False], [True, True]])
    return predicted(("toy", "x"), distribution, gold, np.log([0.85, 0.3]), np.array([4, 4]))


def test_keys_are_those_of_the_contract(by_hand):
    found = score([by_hand])
    assert list(found) == SCORES
    assert list(found["cover"]) == ["0.80", "0.90", "0.95", "0.98"]
    assert all(list(entry) == ["coverage", "mean_size"] for entry in found["cover"].values())


def test_values_of_the_case_worked_by_hand(by_hand):
    # Marginals (0.95, 0.15) and (0.5, 0.8): selected A, then B; modes A, then B.
    found = score([by_hand])
    covers = found.pop("cover")
    assert found == pytest.approx(
        {
            "map": 1.0,
            "precision": 1.0,
            "recall": (1 + 0.5) / 2,
            "f1": 2 * 0.75 / 1.75,
            "strict_recall": 0.5,
            "exact_match": 0.5,
            "mean_size": 1.0,
            "all_gold_at_3": 1.0,
            "all_gold_at_5": 1.0,
            "ece": (0.05 + 0.15 + 0.5 + 0.2) / 4,
            "brier": (0.05**2 + 0.15**2 + 0.5**2 + 0.2**2) / 4,
            "mean_shift": (-0.05 + 0.15 - 0.5 - 0.2) / 4,
            "marginal_log_score": (log(0.95) + log(0.85) + log(0.5) + log(0.8)) / 4,
            "joint_log_score": (log(0.85) + log(0.3)) / 2,
        },
        rel=1e-10,
    )
    # P(gold inside A) is 0.85 for the first question: A alone covers at 0.80, both tables are needed from 0.90 on.
    assert covers["0.80"] == {"coverage": 1.0, "mean_size": 1.5}
    assert all(covers[level] == {"coverage": 1.0, "mean_size": 2.0} for level in ("0.90", "0.95", "0.98"))


def test_a_cover_that_misses_gold_lowers_the_coverage(by_hand):
    missed = replace(by_hand, gold=np.array([[False, True], [True, True]]))
    assert score([missed])["cover"]["0.80"]["coverage"] == 0.5


def test_questions_count_once_and_pairs_are_pooled(by_hand):
    # A third question on a database of four tables that are all selected and all gold, with probability 0.9.
    ones = np.ones((1, 4), dtype=bool)
    large = replace(
        by_hand,
        key=("toy", "y"),
        gold=ones,
        marginals=np.full((1, 4), 0.9),
        selected=ones,
        mode=ones,
        log_score=np.array([log(0.7)]),
        covers=(ones,) * len(COVER_LEVELS),
        group=np.array([0]),
    )
    found = score([by_hand, large])
    assert found["recall"] == pytest.approx((1 + 0.5 + 1) / 3)
    assert found["mean_size"] == pytest.approx((1 + 1 + 4) / 3)
    assert found["all_gold_at_3"] == pytest.approx(2 / 3)
    assert found["mean_shift"] == pytest.approx((-0.6 - 4 * 0.1) / 8)
    assert found["joint_log_score"] == pytest.approx((log(0.85) + log(0.3) + log(0.7)) / 3)


def test_nothing_to_score_is_refused():
    with pytest.raises(ValueError, match="no question"):
        score([])


def test_without_groups_every_question_is_its_own():
    distribution = SubgraphDistribution(np.full((3, 2), 0.5), np.zeros(3), np.zeros((0, 2), dtype=np.int64))
    found = predicted(("toy", "x"), distribution, np.ones((3, 1), dtype=bool), np.zeros(3))
    assert found.group.tolist() == [0, 1, 2]
