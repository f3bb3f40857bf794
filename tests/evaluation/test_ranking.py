"""Expected scores under ties against the average over every order of the tied tables."""

from itertools import pairwise, permutations

import numpy as np
import pytest

from bayeslink.evaluation.ranking import all_gold_at_k, average_precision


def orders(scores):
    """Every ranking that the scores allow, each equally likely: all permutations that sort them."""
    tables = range(len(scores))
    return [order for order in permutations(tables) if all(scores[a] >= scores[b] for a, b in pairwise(order))]


def precision_of(order, gold):
    hits, total = 0, 0.0
    for place, table in enumerate(order, start=1):
        if gold[table]:
            hits += 1
            total += hits / place
    return total / hits


def random_cases():
    rng = np.random.default_rng(5)
    for num_tables in (1, 2, 4, 6):
        for levels in (1, 2, 3, 50):
            gold = rng.random(num_tables) < 0.5
            gold[rng.integers(num_tables)] = True
            yield rng.integers(0, levels, num_tables).astype(float), gold


CASES = list(random_cases())


@pytest.mark.parametrize(("scores", "gold"), CASES)
def test_average_precision_is_the_mean_over_all_orders(scores, gold):
    expected = np.mean([precision_of(order, gold) for order in orders(scores)])
    assert average_precision(scores[None], gold[None])[0] == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("k", [1, 2, 3, 5, 9])
@pytest.mark.parametrize(("scores", "gold"), CASES)
def test_all_gold_at_k_is_the_share_of_orders(scores, gold, k):
    wanted = set(np.flatnonzero(gold).tolist())
    expected = np.mean([wanted <= set(order[:k]) for order in orders(scores)])
    assert all_gold_at_k(scores[None], gold[None], k)[0] == pytest.approx(expected, rel=1e-12)


def test_scores_a_rounding_apart_are_tied():
    scores, gold = np.array([[0.5, 0.5 + 1e-15]]), np.array([[True, False]])
    assert average_precision(scores, gold)[0] == pytest.approx(0.75)
    assert all_gold_at_k(scores, gold, 1)[0] == pytest.approx(0.5)


def test_each_question_is_ranked_by_itself():
    scores = np.array([[0.9, 0.1, 0.5], [0.1, 0.9, 0.5]])
    gold = np.array([[True, False, False], [True, False, False]])
    assert average_precision(scores, gold).tolist() == pytest.approx([1.0, 1 / 3])
    assert all_gold_at_k(scores, gold, 2).tolist() == [1.0, 0.0]
