"""Calibration after the fact, and the Beta-Binomial credibility of votes (MODEL.md sections 7 and 8).

temperature     logit p' = (logit p) / T                                    (Guo et al. 2017)
Platt           logit p' = a + b logit p                                    (Platt 1999)
credibility     E[p_t | v_t] = (a + v_t) / (a + b + K),   v_t ~ Binomial(K, p_t),   p_t ~ Beta(a, b)

T, and a with b of Platt, maximise the Bernoulli likelihood of gold over training pairs (question, table): gold is
the outcome that they calibrate. Neither leaves a joint over subsets; `product_distribution` takes the calibrated
marginals as independent.

Credibility has two fits. Each of the K channels votes for a table whose value is at or above the channel's cut: the
value with the largest (share of gold pairs at or above) - (share of other pairs at or above) in training, the
largest such value where several tie; a channel that separates nothing never votes. The Beta's a and b then maximise
the likelihood of the training pairs' vote counts. So gold enters through the cuts alone, and what the credibility
is calibrated to is the vote of one more such channel, not gold; give it to `fit_platt` for a probability of gold.
A cut may be fitted and applied on raw or on standardised values alike, as long as it is one of them throughout.
"""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from jaxtyping import Bool, Float, Int
from scipy.optimize import minimize
from scipy.special import expit, log_expit, logit
from scipy.stats import betabinom
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_curve

from bayeslink.evidence.channel import Evidence, Standardisation
from bayeslink.inference.enumeration import MAX_TABLES
from bayeslink.inference.predictive import SubgraphDistribution

__all__ = [
    "BetaBinomial",
    "Platt",
    "Temperature",
    "as_its_fit_saw",
    "fit_beta_binomial",
    "fit_platt",
    "fit_temperature",
    "fold_numbers",
    "log_odds_of",
    "product_distribution",
]

_EDGE = 2.0**-53
"""No probability under finite log-odds is 0 or 1, but it may round to either; this much inside stands for it."""

_CONCENTRATION = (1e-2, 1e4)
"""Range of a + b; votes that vary less than a Binomial's have no finite optimum and meet the upper end."""
Held = tuple[tuple[str, str], Int[np.ndarray, "_"]]
"""A database's key and the positions of its held-out questions."""


@dataclass(frozen=True)
class Temperature:
    """Log-odds divided by a temperature: 1/2 stays 1/2, so no additive shift can be undone."""

    temperature: float

    def apply(self, probability: Float[np.ndarray, "*pairs"]) -> Float[np.ndarray, "*pairs"]:
        """Calibrated probabilities."""
        return expit(log_odds_of(probability) / self.temperature)


@dataclass(frozen=True)
class Platt:
    """A line in the log-odds: undoes an additive shift of every marginal."""

    intercept: float
    slope: float

    def apply(self, probability: Float[np.ndarray, "*pairs"]) -> Float[np.ndarray, "*pairs"]:
        """Calibrated probabilities."""
        return expit(self.intercept + self.slope * log_odds_of(probability))


@dataclass(frozen=True)
class BetaBinomial:
    """Credibility of a table from the votes of its channels.

    Attributes:
        cuts: Value at or above which each channel votes, in the unit of the values; infinite if it never does.
        a: First parameter of the Beta, prior votes for.
        b: Second parameter of the Beta, prior votes against.
    """

    cuts: Float[np.ndarray, " channels"]
    a: float
    b: float

    def votes(self, values: Float[np.ndarray, "*pairs channels"]) -> Int[np.ndarray, "*pairs"]:
        """Number of channels that vote for each table."""
        return (values >= self.cuts).sum(axis=-1)

    def apply(self, values: Float[np.ndarray, "*pairs channels"]) -> Float[np.ndarray, "*pairs"]:
        """Posterior mean of the probability that a channel votes for the table."""
        return (self.a + self.votes(values)) / (self.a + self.b + len(self.cuts))


def fit_temperature(probability: Float[np.ndarray, " pairs"], outcome: Bool[np.ndarray, " pairs"]) -> Temperature:
    """The temperature of greatest likelihood.

    Args:
        probability: Given probability of each training pair.
        outcome: True where the table is gold.

    Raises:
        ValueError: If there is no finite positive optimum: one outcome only, gold on one side of 1/2 and the rest
            on the other, or gold no more probable than the rest.
    """
    _check_outcomes(outcome, len(probability))
    log_odds = log_odds_of(probability)
    if (log_odds[outcome] >= 0).all() and (log_odds[~outcome] <= 0).all():
        raise ValueError("probability is on the right side of 1/2 for every pair: no temperature is best; give more")
    slope = float(_logistic(log_odds, outcome, intercept=False).coef_[0, 0])
    if slope <= 0:
        raise ValueError(f"probability is no larger where outcome holds (slope {slope:.3g}); no temperature helps")
    return Temperature(1 / slope)


def fit_platt(probability: Float[np.ndarray, " pairs"], outcome: Bool[np.ndarray, " pairs"]) -> Platt:
    """The intercept and slope of greatest likelihood; arguments as `fit_temperature`.

    Raises:
        ValueError: If there is no finite optimum: one outcome only, equal probabilities, or a probability that
            separates the outcomes.
    """
    _check_outcomes(outcome, len(probability))
    log_odds = log_odds_of(probability)
    if np.ptp(log_odds) == 0:
        raise ValueError("probability is the same for every pair: its slope is unknown; give pairs that differ")
    gold, rest = log_odds[outcome], log_odds[~outcome]
    if gold.min() >= rest.max() or rest.min() >= gold.max():
        raise ValueError("probability separates the outcomes: no slope is best; give more training pairs")
    found = _logistic(log_odds, outcome, intercept=True)
    return Platt(float(found.intercept_[0]), float(found.coef_[0, 0]))


def fit_beta_binomial(values: Float[np.ndarray, "pairs channels"], outcome: Bool[np.ndarray, " pairs"]) -> BetaBinomial:
    """Cuts from gold, then a and b from the votes, as the module says.

    Args:
        values: Value of each channel for each training pair.
        outcome: True where the table is gold.

    Raises:
        ValueError: If there is one outcome only, or no channel tells the outcomes apart.
    """
    _check_outcomes(outcome, len(values))
    cuts = np.array([_best_cut(column, outcome) for column in values.T])
    if not np.isfinite(cuts).any():
        raise ValueError(f"values: none of {len(cuts)} channels is larger where outcome holds; there are no votes")
    num_channels = len(cuts)
    counts = np.bincount((values >= cuts).sum(axis=1), minlength=num_channels + 1)
    share = float(counts @ np.arange(num_channels + 1)) / (counts.sum() * num_channels)

    def cost(point: np.ndarray) -> float:
        mean, total = expit(point[0]), np.exp(point[1])
        log_pmf = betabinom.logpmf(np.arange(num_channels + 1), num_channels, mean * total, (1 - mean) * total)
        return -float(counts @ log_pmf) / counts.sum()

    bounds = [(-12.0, 12.0), tuple(np.log(_CONCENTRATION))]
    found = minimize(cost, [logit(share), 0.0], method="L-BFGS-B", bounds=bounds, options={"ftol": 1e-14})
    mean, total = expit(found.x[0]), np.exp(found.x[1])
    return BetaBinomial(cuts, float(mean * total), float((1 - mean) * total))


def log_odds_of(probability: Float[np.ndarray, "*pairs"]) -> Float[np.ndarray, "*pairs"]:
    """Finite log-odds of probabilities, those rounded to 0 or 1 taken as the nearest inside.

    Raises:
        ValueError: If a value is outside [0, 1].
    """
    if not ((probability >= 0) & (probability <= 1)).all():
        raise ValueError("probability holds a value outside [0, 1]; give probabilities")
    return logit(np.clip(probability, _EDGE, 1 - _EDGE))


def fold_numbers(keys: Sequence[Hashable], order: Sequence[Hashable]) -> list[int]:
    """Fold of each part: a new fold begins where a part's database does not come after the last one in the order."""
    places = [list(order).index(key) for key in keys]
    starts = [here <= before for before, here in pairwise(places)]
    return np.cumsum([0, *starts]).tolist()[: len(places)]


def as_its_fit_saw(evidences: Sequence[Evidence], held: Sequence[Held], folds: Sequence[int]) -> list[Evidence]:
    """For each part all questions of its database, standardised as the fit that holds the part out does.

    The part's other questions trained that fit, and what it predicts for them is what a calibrator may be fitted
    on. Held-out predictions of other folds are not: their fits have seen this fold's labels, and their errors, which
    the calibrator would take away, point the other way. `evidences` is raw, one per database.

    Raises:
        ValueError: If a part names a database that is not there.
    """
    raw = {item.key: item for item in evidences}
    if missing := {key for key, _ in held} - raw.keys():
        raise ValueError(f"held names {sorted(missing)}, of which there is no evidence; give every database")
    found = {}
    for fold in set(folds):
        barred = {key: questions for (key, questions), own in zip(held, folds, strict=True) if own == fold}
        every = [(item, np.setdiff1d(np.arange(item.num_questions), barred.get(item.key, []))) for item in evidences]
        found[fold] = Standardisation.fit([item.select_questions(kept) for item, kept in every if len(kept)])
    return [found[fold].apply(raw[key]) for (key, _), fold in zip(held, folds, strict=True)]


def product_distribution(
    marginals: Float[np.ndarray, "questions tables"],
    edges: Int[np.ndarray, "edges 2"],
    gold: Bool[np.ndarray, "questions tables"],
) -> tuple[SubgraphDistribution, Float[np.ndarray, " questions"]]:
    """The joint that takes marginals as independent, over all subsets, and the log probability of gold, nats.

    Raises:
        ValueError: If there are too many tables to list their subsets.
    """
    num_tables = marginals.shape[1]
    if num_tables > MAX_TABLES:
        raise ValueError(f"marginals of {num_tables} tables: at most {MAX_TABLES} can be listed; score gold alone")
    log_odds = log_odds_of(marginals)
    log_yes, log_no = log_expit(log_odds), log_expit(-log_odds)
    log_probs = np.zeros((len(marginals), 1))
    for table in range(num_tables):  # The last table is the highest binary digit of a subset's place.
        log_probs = np.hstack([log_probs + log_no[:, [table]], log_probs + log_yes[:, [table]]])
    probabilities = np.exp(log_probs)
    score = np.where(gold, log_yes, log_no).sum(axis=1)
    return SubgraphDistribution(probabilities, probabilities[:, 0], edges), score


def _check_outcomes(outcome: np.ndarray, num_pairs: int) -> None:
    if len(outcome) != num_pairs or outcome.all() or not outcome.any():
        raise ValueError(f"outcome holds in {outcome.sum()} of {num_pairs} pairs; give pairs of both kinds")


def _logistic(log_odds: np.ndarray, outcome: np.ndarray, intercept: bool) -> LogisticRegression:
    solver = LogisticRegression(C=np.inf, fit_intercept=intercept, solver="newton-cholesky", tol=1e-10, max_iter=200)
    return solver.fit(log_odds[:, None], outcome)


def _best_cut(values: np.ndarray, outcome: np.ndarray) -> float:
    """The cut of largest Youden index; infinite where no cut has a positive one."""
    others, gold, cuts = roc_curve(outcome, values)
    return float(cuts[np.argmax(gold - others)])
