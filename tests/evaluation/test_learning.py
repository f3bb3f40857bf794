"""Learning curves: what is held out, what is given to a learner, and how scores are averaged."""

import itertools
from dataclasses import replace

import numpy as np
import pytest

from bayeslink.evaluation import learning as module
from bayeslink.evaluation.learning import CurvePoint, halves, learner_of, learning_curve, paired, unpooled_learner
from bayeslink.evidence.channel import Evidence
from bayeslink.inference.posterior import Posterior
from bayeslink.inference.predictive import predict
from bayeslink.model.hierarchy import Variant


@pytest.fixture
def world(evidence) -> list[Evidence]:
    """Three databases; the last has too few questions for the larger K. Each question's number is its mark."""
    found = []
    for place, number in enumerate((24, 20, 8)):
        item = evidence(f"db{place}", num_questions=number, seed=place)
        found.append(replace(item, group=np.arange(number) // 2))
    return found


class Recorder:
    """A learner that keeps what it was given and answers with one posterior."""

    def __init__(self, posterior: Posterior | None):
        self.posterior, self.given = posterior, []

    def __call__(self, labelled: Evidence | None, seed: int) -> Posterior | None:
        self.given.append((labelled, seed))
        return self.posterior


def rows_of(item: Evidence) -> set[bytes]:
    return {row.tobytes() for row in item.values}


def test_halves_keep_groups_whole(world):
    pool, held = halves(world[0], np.random.default_rng(0))
    assert pool.num_questions + held.num_questions == 24
    assert not set(pool.group) & set(held.group)
    assert rows_of(pool) | rows_of(held) == rows_of(world[0])
    assert 8 <= pool.num_questions <= 16
    alone, rest = halves(replace(world[0], group=None), np.random.default_rng(0))
    assert alone.num_questions + rest.num_questions == 24
    assert alone.num_questions


def test_learners_are_given_the_pool_alone_and_scored_on_the_rest(world, posterior):
    """No leak: what a learner is given is never held out, for any K, replicate or method."""
    first, second = Recorder(posterior()), Recorder(posterior(Variant.POOLED))
    points = learning_curve(world, {"one": first, "two": second}, [0, 2, 4], 3)
    assert [(point.method, point.num_labelled) for point in points] == [
        (name, count) for count in (0, 2, 4) for name in ("one", "two")
    ]
    cut = {item.key: halves(item, np.random.default_rng([0, place])) for place, item in enumerate(world)}
    assert len(first.given) == 3 + 3 * len(eligible(cut, 2)) + 3 * len(eligible(cut, 4))
    for labelled, _ in first.given:
        if labelled is not None:
            pool, held = cut[labelled.key]
            assert rows_of(labelled) <= rows_of(pool)
            assert not rows_of(labelled) & rows_of(held)
            assert not set(labelled.group) & set(held.group)
            assert len(rows_of(labelled)) == labelled.num_questions in (2, 4)
    for (mine, seed), (theirs, same) in zip(first.given, second.given, strict=True):
        assert seed == same
        assert (mine is None) == (theirs is None)
        if mine is not None:
            np.testing.assert_array_equal(mine.values, theirs.values)
    # Replicates draw anew.
    drawn = [labelled for labelled, _ in first.given if labelled is not None and labelled.num_questions == 4]
    assert (drawn[0].values != drawn[1].values).any()


def eligible(cut: dict, count: int) -> list:
    return [key for key, (pool, _) in cut.items() if pool.num_questions >= 2 * count]


def test_the_held_out_half_is_the_same_for_every_count_and_method(world, posterior):
    """A method that does not learn scores the same at every K, question by question, on the databases they share."""
    learners = {
        "still": learner_of(posterior(Variant.POOLED), learns=False),
        "same": Recorder(posterior(Variant.POOLED)),
    }
    points = learning_curve(world, learners, [0, 2, 4], 2)
    by_place = {(point.method, point.num_labelled): point for point in points}
    for count in (0, 2, 4):
        still, same = by_place["still", count], by_place["same", count]
        assert still.databases == same.databases
        np.testing.assert_array_equal(still.groups, same.groups)
        np.testing.assert_array_equal(still.log_score, same.log_score)
    whole, last = by_place["still", 0], by_place["still", 4]
    kept = np.isin([key[1] for key in whole.databases], [key[1] for key in last.databases])
    np.testing.assert_allclose(last.log_score, whole.log_score[kept], rtol=1e-12)
    np.testing.assert_array_equal(last.groups, whole.groups[kept])


def test_databases_with_a_pool_below_twice_the_count_are_left_out(world, posterior):
    recorder = Recorder(posterior(Variant.POOLED))
    points = learning_curve(world, {"one": recorder}, [0, 4, 40], 1)
    assert [(point.num_labelled, point.least_pool) for point in points] == [(0, 0), (4, 8)]
    assert {key[1] for key in points[0].databases} == {"db0", "db1", "db2"}
    cut = {item.key: halves(item, np.random.default_rng([0, place])) for place, item in enumerate(world)}
    assert set(points[1].databases) == set(eligible(cut, 4))
    assert ("toy", "db2") not in points[1].databases


def test_where_no_pool_is_twice_the_count_one_as_large_as_the_count_will_do(world, posterior):
    cut = {item.key: halves(item, np.random.default_rng([0, place])) for place, item in enumerate(world)}
    largest = max(pool.num_questions for pool, _ in cut.values())
    (point,) = learning_curve(world, {"one": Recorder(posterior(Variant.POOLED))}, [largest], 1)
    assert point.least_pool == point.num_labelled == largest
    assert set(point.databases) == {key for key, (pool, _) in cut.items() if pool.num_questions == largest}


def test_each_database_and_replicate_has_a_seed_of_its_own(world, posterior):
    recorder = Recorder(posterior(Variant.POOLED))
    learning_curve(world, {"one": recorder}, [0, 2], 3)
    seeds = [seed for _, seed in recorder.given]
    assert len(set(seeds)) == len(seeds) == 12


def test_fewer_draws_are_updated_than_meet_a_database_without_questions(world, posterior):
    item = posterior()
    learn = learner_of(item, num_draws=8)
    assert learn(None, 0) is item
    assert learn(world[0].select_questions([0, 1]), 0).num_draws == 8
    kept = item.thinned(8)
    np.testing.assert_array_equal(kept.draws["gamma"], item.draws["gamma"][np.arange(8) * item.num_draws // 8])
    with pytest.raises(ValueError, match="num_draws=21: this posterior has 20"):
        item.thinned(21)


def test_what_updates_say_of_themselves_is_passed_on(world, posterior):
    """Largest gradient and share of uneven weights over the replicates of real updates, and of made ones."""
    item = posterior()
    real, *_ = learning_curve(world[:1], {"one": learner_of(item)}, [2], 2)
    assert 0 < real.largest_gradient < 1e-3
    made = itertools.cycle(
        [
            replace(item, checks={"update_weights_even": False}, info={"update_largest_gradient": 0.5}),
            replace(item, checks={"update_weights_even": True}, info={"update_largest_gradient": 0.25}),
        ]
    )
    (point,) = learning_curve(world[:1], {"one": lambda labelled, seed: next(made)}, [0], 2)
    assert (point.largest_gradient, point.share_uneven) == (0.5, 1.0)  # K = 0 has one replicate.


def test_scores_are_those_of_the_held_out_questions(world, posterior):
    item = posterior(Variant.POOLED)
    (point,) = learning_curve(world[:1], {"one": Recorder(item)}, [0], 5)
    _, held = halves(world[0], np.random.default_rng([0, 0]))
    distribution, expected = predict(held, item.unseen(0), item.support)
    assert point.log_scores.shape == (1, held.num_questions)
    np.testing.assert_allclose(point.log_score, expected, rtol=1e-12)
    mode = distribution.mode
    np.testing.assert_array_equal(point.exact[0], (mode == held.gold).all(axis=1))
    covered = (distribution.marginals > 0.5) | ~held.gold
    np.testing.assert_array_equal(point.strict[0], covered.all(axis=1))
    assert (point.largest_gradient, point.share_uneven) == (0, 0)
    assert point.mean_shift == pytest.approx((distribution.marginals - held.gold).mean())
    assert 0 <= point.ece <= 1
    assert point.num_failed == 0
    assert point.databases == (("toy", "db0"),) * held.num_questions


def test_replicates_are_averaged(world, posterior):
    """Two posteriors by turns: each question's score is the mean of the two."""
    first, second = posterior(Variant.POOLED), posterior(Variant.INDEPENDENT, seed=3)
    turns = itertools.cycle((first, second))
    alternating = lambda labelled, seed: next(turns)  # noqa: E731
    learners = {"both": alternating, "first": Recorder(first), "second": Recorder(second)}
    both, one, other = learning_curve(world, learners, [2], 2)
    for part in ("log_scores", "exact", "strict"):
        np.testing.assert_array_equal(getattr(both, part)[0], getattr(one, part)[0])
        assert (getattr(one, part)[0] == getattr(one, part)[1]).all()
    np.testing.assert_allclose(both.log_score, (one.log_score + other.log_score) / 2)
    assert both.ece == pytest.approx((one.ece + other.ece) / 2)
    assert both.mean_shift == pytest.approx((one.mean_shift + other.mean_shift) / 2)


def test_failures_are_counted_and_the_silent_say_nothing(world, posterior):
    item = posterior(Variant.POOLED)

    asked = itertools.count(-2)  # Two databases without questions, then three replicates of each.

    def fragile(labelled: Evidence | None, seed: int) -> Posterior:
        if next(asked) % 3 == 1 and labelled is not None:
            raise FloatingPointError("no convergence")
        return item

    def quiet(labelled: Evidence | None, seed: int) -> Posterior | None:
        return None if labelled is None else item

    learners = {"fragile": fragile, "quiet": quiet, "whole": Recorder(item)}
    points = {(p.method, p.num_labelled): p for p in learning_curve(world[:2], learners, [0, 2], 3)}
    assert ("quiet", 0) not in points
    assert ("quiet", 2) in points
    assert points["fragile", 0].num_failed == 0
    assert points["fragile", 2].num_failed == 2  # One replicate of three, in two databases.
    np.testing.assert_allclose(points["fragile", 2].log_score, points["whole", 2].log_score)
    assert points["whole", 2].num_failed == points["quiet", 2].num_failed == 0
    assert np.isnan(points["fragile", 2].log_scores[1]).all()
    assert not np.isnan(points["fragile", 2].log_scores[[0, 2]]).any()


def test_a_method_that_never_converges_is_an_error(world, posterior):
    def hopeless(labelled: Evidence | None, seed: int) -> Posterior:
        if labelled is not None:
            raise FloatingPointError("no convergence")
        return posterior(Variant.POOLED)

    with pytest.raises(FloatingPointError, match="method hopeless: none of its 6 updates with 2 questions converged"):
        learning_curve(world[:2], {"hopeless": hopeless}, [0, 2], 3)


def test_other_errors_are_not_swallowed(world, posterior):
    def broken(labelled: Evidence | None, seed: int) -> Posterior:
        raise ValueError("a mistake")

    with pytest.raises(ValueError, match="a mistake"):
        learning_curve(world[:1], {"one": broken}, [0], 1)


def test_seeds_repeat_and_differ(world, posterior):
    def curve(seed: int) -> CurvePoint:
        return learning_curve(world, {"one": Recorder(posterior(Variant.POOLED))}, [2], 2, seed)[0]

    np.testing.assert_array_equal(curve(0).log_score, curve(0).log_score)
    assert curve(0).log_score.shape != curve(1).log_score.shape or (curve(0).log_score != curve(1).log_score).any()


def test_identical_methods_differ_by_exactly_nothing(world, posterior):
    item = posterior(Variant.POOLED)
    learners = {"one": Recorder(item), "two": Recorder(item), "worse": Recorder(posterior(Variant.INDEPENDENT, seed=1))}
    one, two, worse = learning_curve(world, learners, [2], 2)
    found = paired(one, two, 200, np.random.default_rng(0))
    assert (found.estimate, found.lower, found.upper) == (0.0, 0.0, 0.0)
    other = paired(one, worse, 200, np.random.default_rng(0))
    assert other.estimate == pytest.approx((one.log_score - worse.log_score).mean())
    assert other.lower < other.estimate < other.upper


def test_pairs_count_the_replicates_that_both_methods_have(world, posterior):
    """Replicates of one method alone would differ by which questions were drawn, not by the method."""
    item = posterior(Variant.POOLED)
    (point,) = learning_curve(world[:2], {"one": Recorder(item)}, [2], 2)
    rng = np.random.default_rng(0)
    scores = rng.normal(size=point.log_scores.shape)
    one = replace(point, log_scores=scores)
    holes = scores + np.array([[1.0], [5.0]])
    holes[1] = np.nan
    found = paired(one, replace(point, log_scores=holes), 100, np.random.default_rng(0))
    assert found == pytest.approx((-1.0, -1.0, -1.0))
    nowhere = holes.copy()
    nowhere[:, 0] = np.nan  # A question of which one method has no replicate counts for neither.
    assert paired(one, replace(point, log_scores=nowhere), 100, np.random.default_rng(0)) == pytest.approx((-1,) * 3)


def test_methods_scored_on_different_questions_are_not_paired(world, posterior):
    item = posterior()
    (one,) = learning_curve(world[:1], {"one": Recorder(item)}, [2], 1)
    (two,) = learning_curve(world[:2], {"two": Recorder(item)}, [2], 1)
    with pytest.raises(ValueError, match=r"one and two at K=2: scored on different questions"):
        paired(one, two, 100, np.random.default_rng(0))


def test_an_updated_posterior_is_used_as_that_of_a_seen_database(world, posterior, monkeypatch):
    """The learner updates with labels alone; its own draws of the database predict, not fresh ones."""
    item, called = posterior(), []
    kept = module.update
    monkeypatch.setattr(module, "update", lambda *arguments: called.append(arguments) or kept(*arguments))
    learn = learner_of(item)
    assert learn(None, 0) is item
    assert not called
    assert learner_of(item, learns=False)(world[0], 0) is item
    assert not called
    found = learn(world[0].select_questions([0, 1]), 7)
    assert called[0][2] == 7
    assert found.databases == (world[0].key,)
    scored = module._score(found, world[0], True, 0)
    _, expected = predict(world[0], found.seen(world[0].key), found.support)
    np.testing.assert_allclose(scored.log_score, expected, rtol=1e-12)
    fresh = module._score(found, world[0], False, 0)
    assert np.abs(fresh.log_score - scored.log_score).max() > 1e-3


def test_labels_help_an_unpooled_and_an_updated_database(evidence, posterior):
    """On a database whose tables are needed far more often than the population says, labels raise the score."""
    rng = np.random.default_rng(0)
    item = evidence("odd", num_questions=60)
    gold = rng.random(item.gold.shape) < 0.9
    gold[:, 0] = True
    item = replace(item, gold=gold, group=np.arange(60))
    population = posterior()
    population = replace(population, draws=dict(population.draws) | {"sigma_alpha": np.full(20, 1.0)})
    learners = {"updated": learner_of(population), "still": learner_of(population, learns=False)}
    learners["alone"] = unpooled_learner(population, num_draws=32)
    points = {(p.method, p.num_labelled): p for p in learning_curve([item], learners, [0, 10], 2)}
    assert ("alone", 0) not in points
    none = points["updated", 0].log_score.mean()
    assert none == pytest.approx(points["still", 0].log_score.mean())
    assert points["updated", 10].log_score.mean() > none + 0.1
    assert points["alone", 10].log_score.mean() > none + 0.1
    assert abs(points["updated", 10].mean_shift) < abs(points["updated", 0].mean_shift)
    assert points["still", 10].log_score.mean() < points["updated", 10].log_score.mean()
