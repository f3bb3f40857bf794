"""Calibrators against plain-Python likelihoods, what each can undo, and the product of marginals."""

import itertools
import math
from dataclasses import replace

import numpy as np
import oracles
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import expit, logit
from strategies import few
from worlds import simulate

from bayeslink.baselines.calibrators import (
    BetaBinomial,
    Platt,
    Temperature,
    as_its_fit_saw,
    fit_beta_binomial,
    fit_platt,
    fit_temperature,
    fold_numbers,
    log_odds_of,
    product_distribution,
)
from bayeslink.evaluation.held_out import FitSettings, fit_folds
from bayeslink.model.hierarchy import Variant

NO_EDGES = np.zeros((0, 2), dtype=np.int64)


def drawn_pairs(seed: int, size: int, shift: float = 0.0, scale: float = 1.0) -> tuple[np.ndarray, np.ndarray]:
    """Probabilities whose log-odds are shift + scale times the true ones, and outcomes of the true ones."""
    rng = np.random.default_rng(seed)
    truth = rng.normal(-1.0, 1.5, size)
    return expit(shift + scale * truth), rng.random(size) < expit(truth)


def log_likelihood(probability: np.ndarray, outcome: np.ndarray) -> float:
    return math.fsum(math.log(p if y else 1 - p) for p, y in zip(probability.tolist(), outcome.tolist(), strict=True))


@pytest.mark.parametrize("seed", range(4))
def test_fits_reach_the_greatest_likelihood_near_and_far(seed):
    probability, outcome = drawn_pairs(seed, 400, shift=0.7, scale=1.6)
    temperature, platt = fit_temperature(probability, outcome), fit_platt(probability, outcome)
    best = log_likelihood(temperature.apply(probability), outcome)
    for factor in (0.1, 0.9, 0.999, 1.001, 1.1, 10.0):
        other = Temperature(temperature.temperature * factor)
        assert log_likelihood(other.apply(probability), outcome) < best
    best = log_likelihood(platt.apply(probability), outcome)
    for step, slope in itertools.product((-0.5, -1e-3, 0.0, 1e-3, 0.5), repeat=2):
        other = Platt(platt.intercept + step, platt.slope + slope)
        assert log_likelihood(other.apply(probability), outcome) <= best
    # The score equations of a logistic regression: nothing left over, nor along the log-odds.
    left = platt.apply(probability) - outcome
    np.testing.assert_allclose([left.mean(), (left * logit(probability)).mean()], 0.0, atol=1e-9)


def test_apply_is_the_formula():
    probability = np.array([[0.2, 0.5], [0.9, 0.999]])
    for p, heated, shifted in zip(
        probability.ravel(),
        Temperature(2.0).apply(probability).ravel(),
        Platt(-0.5, 1.5).apply(probability).ravel(),
        strict=True,
    ):
        odds = math.log(p / (1 - p))
        assert heated == pytest.approx(1 / (1 + math.exp(-odds / 2)), rel=1e-12)
        assert shifted == pytest.approx(1 / (1 + math.exp(0.5 - 1.5 * odds)), rel=1e-12)
    np.testing.assert_allclose(Temperature(1.0).apply(probability), probability, rtol=1e-12)
    np.testing.assert_allclose(Platt(0.0, 1.0).apply(probability), probability, rtol=1e-12)


def test_platt_undoes_an_additive_shift_and_temperature_does_not():
    probability, outcome = drawn_pairs(0, 40_000, shift=1.5)
    found = fit_platt(probability, outcome)
    true = expit(logit(probability) - 1.5)
    weight = true * (1 - true)
    odds = logit(probability)
    information = np.array([[weight.sum(), (weight * odds).sum()], [(weight * odds).sum(), (weight * odds**2).sum()]])
    errors = np.sqrt(np.diag(np.linalg.inv(information)))
    assert abs(found.intercept + 1.5) < 4 * errors[0]
    assert abs(found.slope - 1.0) < 4 * errors[1]
    assert abs((found.apply(probability) - outcome).mean()) < 1e-8
    heated = fit_temperature(probability, outcome).apply(probability)
    sampling = 4 * math.sqrt((true * (1 - true)).mean() / len(true))
    assert (heated - outcome).mean() > 0.05 > sampling


def test_temperature_undoes_a_scale_and_keeps_what_exceeds_one_half():
    probability, outcome = drawn_pairs(1, 40_000, scale=2.0)
    found = fit_temperature(probability, outcome)
    odds = logit(probability)
    error = 1 / math.sqrt(float((expit(odds / 2) * (1 - expit(odds / 2)) * odds**2).sum()))
    assert abs(1 / found.temperature - 0.5) < 4 * error
    np.testing.assert_array_equal(found.apply(probability) > 0.5, probability > 0.5)


def test_probabilities_rounded_to_0_or_1_stay_finite():
    edge = np.array([0.0, 1.0, 0.5, 1e-300])
    np.testing.assert_allclose(log_odds_of(edge), [-53 * math.log(2), 53 * math.log(2), 0, -53 * math.log(2)])
    assert np.isfinite(Platt(1.0, 2.0).apply(edge)).all()
    probability, outcome = drawn_pairs(2, 200)
    found = fit_platt(np.append(probability, [0.0, 1.0]), np.append(outcome, [False, True]))
    assert math.isfinite(found.intercept)
    assert found.slope > 0


def test_calibrators_refuse_what_has_no_best_fit():
    half = np.array([0.2, 0.3, 0.7, 0.8])
    right = np.array([False, False, True, True])
    for fit in (fit_temperature, fit_platt):
        with pytest.raises(ValueError, match="outcome holds in 4 of 4 pairs"):
            fit(half, np.ones(4, dtype=bool))
        with pytest.raises(ValueError, match=r"outside \[0, 1\]"):
            fit(half + 0.5, right)
    with pytest.raises(ValueError, match="right side of 1/2 for every pair"):
        fit_temperature(half, right)
    with pytest.raises(ValueError, match="no temperature helps"):
        fit_temperature(half, np.array([True, True, False, True]))
    for outcome in (right, ~right):
        with pytest.raises(ValueError, match="separates the outcomes"):
            fit_platt(half, outcome)
    with pytest.raises(ValueError, match="the same for every pair"):
        fit_platt(np.full(4, 0.3), right)


def log_beta_binomial(votes: int, trials: int, a: float, b: float) -> float:
    """Log of the Beta-Binomial mass, by log-gamma."""

    def log_beta(x: float, y: float) -> float:
        return math.lgamma(x) + math.lgamma(y) - math.lgamma(x + y)

    return math.log(math.comb(trials, votes)) + log_beta(votes + a, trials - votes + b) - log_beta(a, b)


def youden(values: list[float], outcome: list[bool], cut: float) -> float:
    gold = [value >= cut for value, y in zip(values, outcome, strict=True) if y]
    rest = [value >= cut for value, y in zip(values, outcome, strict=True) if not y]
    return sum(gold) / len(gold) - sum(rest) / len(rest)


def voting_pairs(seed: int, size: int = 300) -> tuple[np.ndarray, np.ndarray]:
    """Three channels that follow gold, the first in few distinct values."""
    rng = np.random.default_rng(seed)
    outcome = rng.random(size) < 0.3
    values = rng.normal(size=(size, 3)) + outcome[:, None]
    values[:, 0] = np.round(values[:, 0])
    return values, outcome


@pytest.mark.parametrize("seed", range(3))
def test_cuts_and_beta_are_the_best_of_a_search(seed):
    values, outcome = voting_pairs(seed)
    found = fit_beta_binomial(values, outcome)
    for column, cut in zip(values.T.tolist(), found.cuts.tolist(), strict=True):
        each = {other: youden(column, outcome.tolist(), other) for other in column}
        best = max(each.values())
        assert each[cut] == pytest.approx(best, abs=1e-12)
        assert cut == max(other for other, value in each.items() if value > best - 1e-12)
    votes = [sum(v >= c for v, c in zip(row, found.cuts.tolist(), strict=True)) for row in values.tolist()]
    np.testing.assert_array_equal(found.votes(values), votes)

    def likelihood(a: float, b: float) -> float:
        return math.fsum(log_beta_binomial(v, 3, a, b) for v in votes)

    best = likelihood(found.a, found.b)
    for first, second in itertools.product((0.3, 0.95, 1.0, 1.05, 3.0), repeat=2):
        assert likelihood(found.a * first, found.b * second) <= best + 1e-7 * abs(best)
    expected = [(found.a + v) / (found.a + found.b + 3) for v in votes]
    np.testing.assert_allclose(found.apply(values), expected, rtol=1e-12)
    np.testing.assert_allclose(found.apply(values.reshape(30, 10, 3)).ravel(), expected, rtol=1e-12)


def test_votes_do_not_depend_on_the_unit():
    values, outcome = voting_pairs(5)
    other = (values - [1.0, 2.0, 3.0]) * [0.5, 2.0, 4.0]
    first, second = fit_beta_binomial(values, outcome), fit_beta_binomial(other, outcome)
    np.testing.assert_array_equal(first.votes(values), second.votes(other))
    np.testing.assert_allclose(first.apply(values), second.apply(other), rtol=1e-12)


def test_true_beta_is_found_again():
    rng = np.random.default_rng(6)
    share = rng.beta(2.0, 4.0, 20_000)
    votes = rng.binomial(4, share)
    # Channels that are 1 for the voters; gold is every pair with a vote, so each channel's best cut is 1.
    values = np.argsort(rng.random((len(votes), 4)), axis=1) < votes[:, None]
    found = fit_beta_binomial(values.astype(float), votes > 0)
    np.testing.assert_array_equal(found.cuts, 1.0)
    # 2.5 % of a and 2.0 % of b are a little over one standard error each, from 400 replicates.
    assert found.a == pytest.approx(2.0, rel=0.1)
    assert found.b == pytest.approx(4.0, rel=0.1)


def test_credibility_states_votes_and_platt_turns_it_into_gold():
    values, outcome = voting_pairs(7, 3000)
    found = fit_beta_binomial(values, outcome)
    credibility = found.apply(values)
    assert credibility.mean() == pytest.approx(found.votes(values).mean() / 3, abs=0.02)
    assert abs(credibility.mean() - outcome.mean()) > 0.05
    assert fit_platt(credibility, outcome).apply(credibility).mean() == pytest.approx(outcome.mean(), abs=1e-8)


def test_alike_votes_meet_the_bound_and_useless_channels_are_refused():
    rng = np.random.default_rng(8)
    values, outcome = rng.normal(size=(50, 2)), np.arange(50) < 10
    steady = BetaBinomial(np.array([0.0, np.inf]), 1.0, 1.0)
    np.testing.assert_array_equal(steady.votes(values), values[:, 0] >= 0)
    mixed = np.column_stack([outcome, ~outcome, outcome, ~outcome]).astype(float)
    found = fit_beta_binomial(np.where(outcome[:, None], [2.0, 1.0, 1.0, 0.0], [1.0, 1.0, 0.0, 0.0]), outcome)
    np.testing.assert_array_equal(found.cuts, [2.0, np.inf, 1.0, np.inf])
    assert fit_beta_binomial(mixed, outcome).votes(mixed).tolist() == (2 * outcome).tolist()
    with pytest.raises(ValueError, match="none of 2 channels is larger"):
        fit_beta_binomial(np.column_stack([~outcome, np.zeros(50)]).astype(float), outcome)
    with pytest.raises(ValueError, match="outcome holds in 0 of 50 pairs"):
        fit_beta_binomial(values, np.zeros(50, dtype=bool))


def test_whole_databases_are_standardised_as_their_fit_does():
    world = [replace(item, group=np.arange(item.num_questions) // 2) for item in simulate(5, 3, 8, non_empty=True)]
    items = list(fit_folds(world, Variant.INDEPENDENT, "known", FitSettings(num_draws=5), num_folds=2))
    folds = fold_numbers([item.evidence.key for item in items], [item.key for item in world])
    found = as_its_fit_saw(world, [(item.evidence.key, item.questions) for item in items], folds)
    assert folds == [0, 0, 0, 1, 1, 1]
    for whole, item in zip(found, items, strict=True):
        assert whole.num_questions == 8
        np.testing.assert_allclose(whole.values[item.questions], item.evidence.values, rtol=1e-10, atol=1e-12)
    # By hand: the mean of the first channel over all pairs that the first fold does not hold out.
    out = {item.evidence.key: item.questions.tolist() for item in items[:3]}
    kept = [row[0] for w in world for q in range(8) if q not in out[w.key] for row in w.values[q].tolist()]
    mean = math.fsum(kept) / len(kept)
    scale = math.sqrt(math.fsum((value - mean) ** 2 for value in kept) / len(kept))
    assert found[0].values[0, 0, 0] == pytest.approx((world[0].values[0, 0, 0] - mean) / scale, rel=1e-10)
    with pytest.raises(ValueError, match="of which there is no evidence"):
        as_its_fit_saw(world, [(("other", "one"), np.array([0]))], [0])


def test_a_fold_begins_where_the_databases_start_again():
    assert fold_numbers(list("abcacbc"), "abc") == [0, 0, 0, 1, 1, 2, 2]
    assert fold_numbers(list("aaa"), "a") == [0, 1, 2]
    # A database that the first fold lacks does not cut a later one in two.
    assert fold_numbers(list("acabc"), "abc") == [0, 0, 1, 1, 1]
    assert fold_numbers([], "abc") == []


@few
@given(st.lists(st.floats(0.0, 1.0), min_size=1, max_size=6), st.integers(0, 63))
def test_product_is_the_independent_joint(marginals, code):
    num_tables = len(marginals)
    gold = tuple((code >> table) & 1 for table in range(num_tables))
    distribution, score = product_distribution(
        np.array([marginals]), NO_EDGES, np.array([gold], dtype=bool).reshape(1, num_tables)
    )
    for place, probability in enumerate(distribution.probabilities[0]):
        subset = [(place >> table) & 1 for table in range(num_tables)]
        expected = math.prod(p if bit else 1 - p for p, bit in zip(marginals, subset, strict=True))
        assert probability == pytest.approx(expected, rel=1e-10, abs=1e-14)
    np.testing.assert_allclose(distribution.marginals[0], marginals, atol=1e-12)
    inside = [min(max(p, 2.0**-53), 1 - 2.0**-53) for p in marginals]
    expected = math.fsum(math.log(p if bit else 1 - p) for p, bit in zip(inside, gold, strict=True))
    assert score[0] == pytest.approx(expected, rel=1e-10)
    assert math.isfinite(score[0])


def test_product_is_the_model_without_coupling_and_refuses_a_large_schema():
    unary = [-1.0, 0.3, 2.0]
    exact = oracles.distribution(unary, [(0, 1)], 0.0)
    found, score = product_distribution(expit(np.array([unary])), np.array([[0, 1]]), np.array([[True, False, True]]))
    for selection, probability in exact.items():
        place = sum(bit << table for table, bit in enumerate(selection))
        assert found.probabilities[0, place] == pytest.approx(probability, rel=1e-10)
    assert found.prob_empty[0] == pytest.approx(exact[0, 0, 0], rel=1e-10)
    assert score[0] == pytest.approx(math.log(exact[1, 0, 1]), rel=1e-10)
    with pytest.raises(ValueError, match="marginals of 16 tables"):
        product_distribution(np.full((1, 16), 0.5), NO_EDGES, np.zeros((1, 16), dtype=bool))
