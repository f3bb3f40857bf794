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
from bayeslink.evaluation.comparison import Interval, paired_difference
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

    Attributes:
        method: The method.
        num_labelled: K.
        databases: Database of each held-out question.
        groups: Number of each held-out question's gold SQL.
        log_score: Joint log score, nats; mean over replicates, axes questions.
        exact: Share of replicates in which the joint mode equals gold.
        strict: Share of replicates in which gold is inside the tables above 1/2.
        ece: Calibration error, mean over replicates.
        mean_shift: Mean of p - y, mean over replicates.
        num_failed: Updates that did not converge, left out.
    """

    method: str
    num_labelled: int
    databases: tuple
    groups: np.ndarray
    log_score: Float[np.ndarray, " questions"]
    exact: Float[np.ndarray, " questions"]
    strict: Float[np.ndarray, " questions"]
    ece: float
    mean_shift: float
    num_failed: int


def halves(evidence: Evidence, rng: np.random.Generator) -> tuple[Evidence, Evidence]:
    """(pool, held-out half) of a database's questions, gold-SQL groups kept whole."""
    groups = np.arange(evidence.num_questions) if evidence.group is None else evidence.group
    first = split_by_group(groups.tolist(), 0.5, rng)
    return evidence.select_questions(first), evidence.select_questions(~first)


def learner_of(posterior: Posterior, learns: bool = True) -> Learner:
    """A population posterior that is updated with the labelled questions, or stays as it is."""

    def learn(labelled: Evidence | None, seed: int) -> Posterior:
        return posterior if labelled is None or not learns else update(posterior, labelled, seed)

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
    """Every method at every K, on the databases whose pool holds at least 2 K questions.

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
    points = []
    with tqdm(total=len(counts) * len(cut), unit="database", disable=not progress) as bar:
        for count in counts:
            rows: dict[str, list[list[_Scored]]] = {name: [] for name in learners}
            failed = dict.fromkeys(learners, 0)
            for place, (pool, held) in enumerate(cut.values()):
                bar.update()
                if pool.num_questions < 2 * count or not held.num_questions:
                    continue
                found: dict[str, list[_Scored]] = {name: [] for name in learners}
                for replicate in range(num_replicates if count else 1):
                    rng = np.random.default_rng([seed, place, count, replicate])
                    chosen = rng.choice(pool.num_questions, size=count, replace=False)
                    labelled = pool.select_questions(chosen) if count else None
                    for name, learn in learners.items():
                        try:
                            posterior = learn(labelled, replicate)
                        except FloatingPointError:
                            failed[name] += 1
                            continue
                        if posterior is not None:
                            found[name].append(_score(posterior, held, labelled is not None, replicate))
                for name, scored in found.items():
                    if scored:
                        rows[name].append(scored)
            for name, number in failed.items():
                if number and not rows[name]:
                    raise FloatingPointError(
                        f"method {name}: none of its {number} updates with {count} questions converged; "
                        "check the evidence"
                    )
            points += [_point(name, count, rows[name], failed[name]) for name in learners if rows[name]]
    return points


def paired(first: CurvePoint, second: CurvePoint, num_resamples: int, rng: np.random.Generator) -> Interval:
    """Mean joint log score of the first less the second's, nats per question, with its clustered interval.

    Raises:
        ValueError: If the two were not scored on the same questions.
    """
    if first.databases != second.databases or not np.array_equal(first.groups, second.groups):
        raise ValueError(
            f"{first.method} and {second.method} at K={first.num_labelled}: scored on different questions; "
            "compare methods on the same databases"
        )
    return paired_difference(first.log_score, second.log_score, list(first.databases), first.groups, num_resamples, rng)


@dataclass(frozen=True)
class _Scored:
    """One posterior's predictions for a held-out half."""

    evidence: Evidence
    log_score: np.ndarray
    exact: np.ndarray
    strict: np.ndarray
    marginals: np.ndarray


def _score(posterior: Posterior, held: Evidence, seen: bool, seed: int) -> _Scored:
    ready = posterior.standardisation.apply(held)
    draws = posterior.draws_for(ready, seed) if seen else posterior.unseen(seed, ready)
    distribution, log_score = predict(ready, draws, posterior.support)
    gold = np.asarray(held.gold)
    return _Scored(
        held,
        np.asarray(log_score),
        recovery.exact_match(joint_mode(distribution).chosen, gold).astype(float),
        recovery.strict_recall(threshold(distribution).chosen, gold).astype(float),
        distribution.marginals,
    )


def _point(name: str, count: int, rows: list[list[_Scored]], failed: int) -> CurvePoint:
    def mean(part: str) -> np.ndarray:
        return np.concatenate([np.mean([getattr(item, part) for item in scored], axis=0) for scored in rows])

    # A failed update leaves its database with fewer replicates; the others fill the common number.
    eces, shifts = [], []
    for replicate in range(max(len(scored) for scored in rows)):
        chosen = [scored[replicate % len(scored)] for scored in rows]
        probability = np.concatenate([item.marginals.ravel() for item in chosen])
        outcome = np.concatenate([np.asarray(item.evidence.gold).ravel() for item in chosen]).astype(float)
        eces.append(calibration.calibration_error(probability, outcome))
        shifts.append(calibration.mean_shift(probability, outcome))
    held = [scored[0].evidence for scored in rows]
    return CurvePoint(
        name,
        count,
        tuple(item.key for item in held for _ in range(item.num_questions)),
        np.concatenate([np.arange(item.num_questions) if item.group is None else item.group for item in held]),
        mean("log_score"),
        mean("exact"),
        mean("strict"),
        float(np.mean(eces)),
        float(np.mean(shifts)),
        failed,
    )
