"""Learning curves on a new database: how predictions improve as its labelled questions arrive.

Each database's gold-SQL groups are cut once into a pool and a held-out half. For K = 0, 5, 10, ... the K
labelled questions are drawn from the pool anew for each replicate; the held-out half is the same for every K,
every replicate and every method. A question's score is its mean over replicates, so that paired differences
between methods resample databases and gold queries (`comparison`).
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float
from tqdm import tqdm

from bayeslink.decision.rules import joint_mode, threshold
from bayeslink.evaluation import calibration, recovery
from bayeslink.evaluation.comparison import Interval, clustered_bootstrap
from bayeslink.evidence.channel import Evidence
from bayeslink.inference.fit import fit_packed
from bayeslink.inference.packing import pack
from bayeslink.inference.posterior import Posterior
from bayeslink.inference.predictive import predict
from bayeslink.inference.update import update
from bayeslink.model.hierarchy import Variant
from bayeslink.model.priors import Priors
from bayeslink.schema.split import split_by_group

__all__ = ["CurvePoint", "Learner", "halves", "learner_of", "learning_curve", "paired", "unpooled_learner"]

Learner = Callable[[Evidence | None, int], Posterior | None]
"""(labelled evidence of the database or None, seed) -> posterior; None where the method has nothing to say."""


@dataclass(frozen=True)
class CurvePoint:
    """One method at one K.

    A replicate whose update did not converge is NaN on its database's questions.

    Attributes:
        method: The method.
        num_labelled: K.
        least_pool: Questions that a database's pool holds at least: 2 K, or K where no pool holds 2 K.
        databases: Database of each held-out question.
        groups: Number of each held-out question's gold SQL.
        log_scores: Joint log score, nats.
        exact: Whether the joint mode equals gold.
        strict: Whether gold is inside the tables above 1/2.
        risks: 1 - P(joint mode), the stated probability that it is wrong.
        ece: Calibration error, mean over replicates.
        mean_shift: Mean of p - y, mean over replicates.
        num_failed: Updates that did not converge.
        largest_gradient: Largest gradient entry at which an update stopped; 0 where nothing was updated.
        share_uneven: Share of updates whose weights over the population's draws have a Pareto k above 0.7.
    """

    method: str
    num_labelled: int
    least_pool: int
    databases: tuple
    groups: np.ndarray
    log_scores: Float[np.ndarray, "replicates questions"]
    exact: Float[np.ndarray, "replicates questions"]
    strict: Float[np.ndarray, "replicates questions"]
    risks: Float[np.ndarray, "replicates questions"]
    ece: float
    mean_shift: float
    num_failed: int
    largest_gradient: float
    share_uneven: float

    @property
    def log_score(self) -> Float[np.ndarray, " questions"]:
        """Joint log score of each question, mean over the replicates that converged."""
        return np.nanmean(self.log_scores, axis=0)


def halves(evidence: Evidence, rng: np.random.Generator) -> tuple[Evidence, Evidence]:
    """(pool, held-out half) of a database's questions, gold-SQL groups kept whole."""
    groups = np.arange(evidence.num_questions) if evidence.group is None else evidence.group
    first = split_by_group(groups.tolist(), 0.5, rng)
    return evidence.select_questions(first), evidence.select_questions(~first)


def learner_of(posterior: Posterior, learns: bool = True, num_draws: int | None = None) -> Learner:
    """A population posterior that is updated with the labelled questions, or stays as it is.

    Args:
        posterior: The posterior.
        learns: Whether it is updated.
        num_draws: Draws that are updated, evenly spaced ones; None updates all. Without questions all are used:
            fresh effects vary more than updated ones.
    """
    few = posterior if num_draws is None else posterior.thinned(num_draws)

    def learn(labelled: Evidence | None, seed: int) -> Posterior:
        return posterior if labelled is None or not learns else update(few, labelled, seed)

    return learn


def unpooled_learner(population: Posterior, priors: Priors = Priors(), num_draws: int = 64) -> Learner:
    """The database alone with wide priors, on the population's standardisation; silent without questions."""

    def learn(labelled: Evidence | None, seed: int) -> Posterior | None:
        if labelled is None:
            return None
        batch = pack([population.standardisation.apply(labelled)])
        keys = (labelled.key,)
        return fit_packed(
            batch, keys, population.standardisation, Variant.UNPOOLED, priors, num_draws=num_draws, seed=seed
        )[0]

    return learn


def learning_curve(
    evidences: Sequence[Evidence],
    learners: Mapping[str, Learner],
    counts: Sequence[int],
    num_replicates: int,
    seed: int = 0,
    progress: bool = False,
) -> list[CurvePoint]:
    """Every method at every K, on the databases whose pool holds at least 2 K questions, or K where none does.

    Args:
        evidences: Raw evidence with gold of databases that no learner has seen.
        learners: Methods by name.
        counts: Numbers K of labelled questions.
        num_replicates: Draws of the K questions; K = 0 has one.
        seed: Seed of the halves, of the draws and of the updates.
        progress: Show a progress bar on stderr.

    Raises:
        FloatingPointError: If no update of a method with the same number of questions converged.
    """
    cut = {item.key: halves(item, np.random.default_rng([seed, place])) for place, item in enumerate(evidences)}
    cut = {key: parts for key, parts in cut.items() if parts[1].num_questions}
    places = {item.key: place for place, item in enumerate(evidences)}
    points = []
    with tqdm(total=len(counts) * len(cut), unit="database", disable=not progress) as bar:
        for count in counts:
            least = 2 * count if any(pool.num_questions >= 2 * count for pool, _ in cut.values()) else count
            rows: dict[str, list[_Rows]] = {name: [] for name in learners}
            for key, (pool, held) in cut.items():
                bar.update()
                if pool.num_questions < least:
                    continue
                found = {name: _Rows(held, []) for name in learners}
                for replicate in range(num_replicates if count else 1):
                    rng = np.random.default_rng([seed, places[key], count, replicate])
                    chosen = rng.choice(pool.num_questions, size=count, replace=False)
                    labelled = pool.select_questions(chosen) if count else None
                    # Fresh effects of one database are not another's.
                    own_seed = int(rng.integers(2**31))
                    for name, learn in learners.items():
                        try:
                            posterior = learn(labelled, own_seed)
                        except FloatingPointError:
                            found[name].scored.append(None)
                            continue
                        if posterior is not None:
                            found[name].scored.append(_score(posterior, held, labelled is not None, own_seed))
                for name, one in found.items():
                    if one.scored:
                        rows[name].append(one)
            for name, found_rows in rows.items():
                if found_rows and not any(item is not None for one in found_rows for item in one.scored):
                    raise FloatingPointError(
                        f"method {name}: none of its {sum(len(one.scored) for one in found_rows)} updates with "
                        f"{count} questions converged; check the evidence"
                    )
            points += [_point(name, count, least, found_rows) for name, found_rows in rows.items() if found_rows]
    return points


def paired(first: CurvePoint, second: CurvePoint, num_resamples: int, rng: np.random.Generator) -> Interval:
    """Mean joint log score of the first less the second's, nats per question, with its clustered interval.

    A replicate counts where both converged, a question where there is such a replicate.

    Raises:
        ValueError: If the two were not scored on the same questions.
    """
    if first.databases != second.databases or not np.array_equal(first.groups, second.groups):
        raise ValueError(
            f"{first.method} and {second.method} at K={first.num_labelled}: scored on different questions; "
            "compare methods on the same databases"
        )
    differences = first.log_scores - second.log_scores
    known = ~np.isnan(differences).all(axis=0)
    mean = np.nanmean(differences[:, known], axis=0)
    databases = [key for key, kept in zip(first.databases, known, strict=True) if kept]
    return clustered_bootstrap(mean, databases, first.groups[known], num_resamples, rng)


@dataclass(frozen=True)
class _Scored:
    """One posterior's predictions for a held-out half."""

    log_score: np.ndarray
    exact: np.ndarray
    strict: np.ndarray
    risk: np.ndarray
    marginals: np.ndarray
    gradient: float
    even: bool


@dataclass(frozen=True)
class _Rows:
    """A method's predictions for one database's held-out half, a replicate each; None where it did not converge."""

    held: Evidence
    scored: list[_Scored | None]


def _score(posterior: Posterior, held: Evidence, seen: bool, seed: int) -> _Scored:
    ready = posterior.standardisation.apply(held)
    draws = posterior.draws_for(ready, seed) if seen else posterior.unseen(seed, ready)
    distribution, log_score = predict(ready, draws, posterior.support)
    gold = np.asarray(held.gold)
    return _Scored(
        np.asarray(log_score),
        recovery.exact_match(joint_mode(distribution).chosen, gold).astype(float),
        recovery.strict_recall(threshold(distribution).chosen, gold).astype(float),
        1 - distribution.mode_probability,
        distribution.marginals,
        float(posterior.info.get("update_largest_gradient", 0.0)),
        posterior.checks.get("update_weights_even", True),
    )


def _point(name: str, count: int, least: int, rows: Sequence[_Rows]) -> CurvePoint:
    def scores(part: str) -> np.ndarray:
        return np.concatenate(
            [
                np.stack(
                    [
                        np.full(one.held.num_questions, np.nan) if item is None else getattr(item, part)
                        for item in one.scored
                    ]
                )
                for one in rows
            ],
            axis=1,
        )

    eces, shifts = [], []
    for replicate in range(len(rows[0].scored)):
        pairs = [(one.held, item) for one in rows if (item := one.scored[replicate]) is not None]
        if not pairs:
            continue
        probability = np.concatenate([item.marginals.ravel() for _, item in pairs])
        outcome = np.concatenate([np.asarray(held.gold).ravel() for held, _ in pairs]).astype(float)
        eces.append(calibration.calibration_error(probability, outcome))
        shifts.append(calibration.mean_shift(probability, outcome))
    every = [item for one in rows for item in one.scored]
    return CurvePoint(
        name,
        count,
        least,
        tuple(one.held.key for one in rows for _ in range(one.held.num_questions)),
        np.concatenate(
            [np.arange(one.held.num_questions) if one.held.group is None else one.held.group for one in rows]
        ),
        scores("log_score"),
        scores("exact"),
        scores("strict"),
        scores("risk"),
        float(np.mean(eces)),
        float(np.mean(shifts)),
        sum(item is None for item in every),
        max(item.gradient for item in every if item is not None),
        float(np.mean([not item.even for item in every if item is not None])),
    )
