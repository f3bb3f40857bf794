"""The conformal level: its definition, its guarantee in simulated worlds, and where there is none."""

import numpy as np
import pytest

from bayeslink.decision.conformal import conformal_level, least_databases


def by_hand(required: list[float], databases: list[str], target: float) -> float:
    """The smallest level whose share, databases alike and the next one missing, reaches the target."""
    names = set(databases)
    for level in sorted(required):
        share = sum(
            np.mean([r <= level for r, d in zip(required, databases, strict=True) if d == name]) for name in names
        ) / (len(names) + 1)
        if share >= target - 1e-9:
            return level
    raise AssertionError


@pytest.mark.parametrize("target", [0.5, 0.7, 0.8])
def test_the_level_is_the_weighted_quantile(target):
    rng = np.random.default_rng(3)
    databases = [f"d{number}" for number in rng.integers(0, 9, 60)]
    required = rng.random(60).round(2)
    found = conformal_level(required, databases, target)
    assert found.level == pytest.approx(by_hand(required.tolist(), databases, target), abs=1e-11)
    assert found.level > by_hand(required.tolist(), databases, target)
    assert found.holds
    assert (found.num_databases, found.num_questions) == (len(set(databases)), 60)


@pytest.mark.parametrize(("target", "enough"), [(0.5, 1), (0.8, 4), (0.9, 9), (0.95, 19), (0.98, 49), (0.99, 99)])
def test_a_promise_needs_enough_databases(target, enough):
    assert least_databases(target) == enough
    rng = np.random.default_rng(0)
    for number, holds in ((enough, True), (enough - 1, False)):
        if number:
            found = conformal_level(rng.random(5 * number), [d for d in range(number) for _ in range(5)], target)
            assert found.holds is holds
            assert found.level <= 1.0


def test_the_promise_is_kept_where_questions_of_a_database_resemble_each_other():
    """New databases: covered at least as often as promised, and not by levels near 1."""
    target, rng = 0.8, np.random.default_rng(1)

    def world(number: int) -> tuple[np.ndarray, np.ndarray]:
        sizes = rng.integers(1, 30, number)
        centre = np.repeat(rng.normal(0, 1.5, number), sizes)
        owner = np.repeat(np.arange(number), sizes)
        return 1 / (1 + np.exp(-centre - rng.normal(0, 0.5, len(owner)))), owner

    held, levels, plain = [], [], []
    for _ in range(600):
        required, owner = world(12)
        fresh, _ = world(1)
        level = conformal_level(required, owner.tolist(), target).level
        held.append(float((fresh <= level).mean()))
        levels.append(level)
        plain.append(float((fresh <= np.quantile(required, target)).mean()))
    error = 3 * np.std(held) / np.sqrt(len(held))
    assert np.mean(held) >= target - error
    assert np.mean(held) <= 1 - 1 / 13 + error
    assert np.mean(levels) < 0.99
    assert np.mean(plain) < np.mean(held)


def test_levels_do_not_fall_as_targets_rise():
    rng = np.random.default_rng(5)
    for number in (1, 3, 10, 25):
        databases = [name for name in range(number) for _ in range(8)]
        required = rng.random(len(databases))
        found = [conformal_level(required, databases, target) for target in (0.3, 0.5, 0.8, 0.9, 0.95, 0.98)]
        levels = [item.level for item in found]
        assert levels == sorted(levels)
        for item in found:
            if not item.holds:
                assert item.level == pytest.approx(required.max(), abs=1e-11)


def test_databases_count_alike_however_many_questions_they_have():
    required = np.concatenate([np.full(1000, 0.1), np.full(10, 0.9)])
    databases = ["large"] * 1000 + ["small"] * 10
    assert conformal_level(required, databases, 0.4).level == pytest.approx(0.9, abs=1e-11)
    assert conformal_level(required, databases, 0.3).level == pytest.approx(0.1, abs=1e-11)


def test_bad_arguments_are_refused():
    with pytest.raises(ValueError, match=r"target=1\.0: a share above 0 and below 1"):
        conformal_level(np.array([0.5]), ["a"], 1.0)
    with pytest.raises(ValueError, match="required has 0 questions"):
        conformal_level(np.zeros(0), [], 0.9)
    with pytest.raises(ValueError, match="required has 1 questions, databases 2"):
        conformal_level(np.array([0.5]), ["a", "b"], 0.9)
    with pytest.raises(ValueError, match="levels between 0 and 1"):
        conformal_level(np.array([1.5]), ["a"], 0.5)
