"""Ranks and their envelope, on a toy whose posterior is known and whose pooled effects move together."""

import math

import numpy as np
import pytest

from bayeslink.simulation.calibration import overconfident
from bayeslink.simulation.ranks import Ranks, envelope, ranks_of

GROUPS, NOISE, SPREAD = 6, 2.0, 0.3
"""Means theta_d = m + SPREAD * normal with m ~ N(0, 1), seen with NOISE: the posterior knows little but m."""


def toy(rng: np.random.Generator, num_draws: int) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray]]:
    """Truth and exact posterior draws of a normal-normal model by its conjugate formula."""
    prior = np.ones((GROUPS + 1, GROUPS + 1)) + np.diag([0.0, *[SPREAD**2] * GROUPS])
    truth = rng.multivariate_normal(np.zeros(GROUPS + 1), prior)
    seen = truth[1:] + NOISE * rng.standard_normal(GROUPS)
    gain = prior[:, 1:] @ np.linalg.inv(prior[1:, 1:] + NOISE**2 * np.eye(GROUPS))
    draws = rng.multivariate_normal(gain @ seen, prior - gain @ prior[1:], size=num_draws)
    return {"m": np.asarray(truth[0]), "theta": truth[1:]}, {"m": draws[:, 0], "theta": draws[:, 1:]}


def toy_ranks(seed, num_worlds: int, num_draws: int, change=lambda draws: draws) -> Ranks:
    rng = np.random.default_rng(seed)
    worlds = []
    for _ in range(num_worlds):
        truth, draws = toy(rng, num_draws)
        worlds.append(ranks_of(truth, change(draws), rng))
    return Ranks.stack(worlds)


def test_ranks_count_the_others_below():
    rng = np.random.default_rng(0)
    truth = {"a": np.array(0.5), "b": np.array([2.0, -1.0])}
    draws = {"a": np.array([0.1, 0.9, 0.2]), "b": rng.standard_normal((3, 2)), "unused": np.zeros(3)}
    found = ranks_of(truth, draws, rng)
    assert found["a"].tolist() == [[2, 0, 3, 1]]
    assert found["a"].dtype == np.int16
    every = np.concatenate([truth["b"][None], draws["b"]])
    for entry in range(2):
        for place, value in enumerate(every[:, entry]):
            assert found["b"][entry, place] == sum(other < value for other in every[:, entry])
    ranks = Ranks.stack([found, found])
    assert (ranks.num_worlds, ranks.num_draws) == (2, 3)
    assert ranks.of_truth("a").tolist() == [[2], [2]]


def test_ties_are_broken_at_random():
    rng = np.random.default_rng(1)
    ranks = [int(ranks_of({"a": np.array(1.0)}, {"a": np.ones(4)}, rng)["a"][0, 0]) for _ in range(500)]
    counts = np.bincount(ranks, minlength=5)
    assert (np.abs(counts - 100) < 4 * math.sqrt(500 * 0.2 * 0.8)).all()


@pytest.mark.parametrize(
    ("draws", "error", "message"),
    [
        ({"b": np.zeros(3)}, ValueError, "no parameter 'a'"),
        ({"a": np.zeros((3, 2))}, ValueError, r"shape \(3, 2\) for a truth of shape \(\)"),
        ({"a": np.zeros(0)}, ValueError, "give 1 to 32767 draws"),
        ({"a": np.array([0.0, np.nan])}, FloatingPointError, "draws of a hold NaN"),
    ],
)
def test_draws_that_cannot_be_ranked_are_refused(draws, error, message):
    with pytest.raises(error, match=message):
        ranks_of({"a": np.array(0.0)}, draws, np.random.default_rng(0))


def test_worlds_that_do_not_fit_together_are_refused():
    rng = np.random.default_rng(0)
    one, two = (ranks_of({"a": np.array(0.0)}, {"a": np.zeros(length)}, rng) for length in (3, 4))
    with pytest.raises(ValueError, match="different parameters or numbers of draws"):
        Ranks.stack([one, two])
    with pytest.raises(ValueError, match="worlds is empty"):
        Ranks.stack([])


def test_exact_draws_are_inside_as_often_as_they_should_be():
    """Over seeded repetitions, within 4 standard errors of 95 % (a finite number of relabellings: at least 95 %)."""
    repetitions = 300
    inside = [
        all(envelope(toy_ranks([2, seed], 40, 31), np.random.default_rng(seed), num_replicates=199).inside.values())
        for seed in range(repetitions)
    ]
    assert abs(np.mean(inside) - 0.95) < 4 * math.sqrt(0.95 * 0.05 / repetitions)


@pytest.mark.parametrize(
    "change",
    [
        lambda draws: overconfident(draws, 0.6),
        lambda draws: overconfident(draws, 2.0),
        lambda draws: {name: value + 0.5 * value.std() for name, value in draws.items()},
    ],
    ids=["over-confident", "under-confident", "biased"],
)
def test_wrong_draws_fall_out(change):
    for seed in range(5):
        found = envelope(toy_ranks([3, seed], 200, 63, change), np.random.default_rng(seed))
        assert found.statistic > found.critical
        assert not any(found.inside.values())
        assert found.share_inside == 0.0


def test_one_wrong_parameter_is_named():
    def change(draws):
        return draws | overconfident({"m": draws["m"]}, 0.4)

    found = envelope(toy_ranks(4, 100, 63, change), np.random.default_rng(0))
    assert found.inside == {"m": False, "theta": True}
    assert found.share_inside == 0.5


def test_pooled_effects_that_move_together_do_not_raise_false_alarms():
    """Bands that take pooled ranks for independent ones fail far too often on the same exact draws."""
    repetitions, false, naive = 200, 0, 0
    for seed in range(repetitions):
        ranks = toy_ranks([5, seed], 40, 31)
        pooled = Ranks({"theta": ranks.tables["theta"]})
        apart = Ranks({"theta": pooled.tables["theta"].reshape(-1, 1, 32)})
        rng = np.random.default_rng(seed)
        false += not envelope(pooled, rng, num_replicates=199).inside["theta"]
        naive += not envelope(apart, rng, num_replicates=199).inside["theta"]
    assert false / repetitions < 0.05 + 4 * math.sqrt(0.05 * 0.95 / repetitions)
    assert naive / repetitions > 0.3


def test_differences_and_bands_by_hand():
    ranks = toy_ranks(6, 12, 7)
    found = envelope(ranks, np.random.default_rng(0), num_replicates=99)
    assert found.points.tolist() == [k / 8 for k in range(1, 8)]
    of_truth = ranks.of_truth("theta")
    for k, z in enumerate(found.points):
        share = sum(int(rank) < 8 * z for rank in of_truth.ravel()) / of_truth.size
        assert found.difference["theta"][k] == pytest.approx(share - z, abs=1e-12)
        # One entry a world: the binomial standard deviation.
        assert found.half_width["m"][k] == pytest.approx(found.critical * math.sqrt(z * (1 - z) / 12), rel=1e-10)
        assert found.half_width["theta"][k] > found.critical * math.sqrt(z * (1 - z) / of_truth.size)
    gaps = [np.abs(found.difference[name]) / (found.half_width[name] / found.critical) for name in ("m", "theta")]
    assert found.statistic == pytest.approx(max(gap.max() for gap in gaps), rel=1e-10)
    rows = found.rows()
    assert len(rows) == 14
    assert rows[0] == {
        "parameter": "m",
        "point": 0.125,
        "difference": found.difference["m"][0],
        "half_width": found.half_width["m"][0],
    }


def test_the_standard_deviation_is_that_of_relabelling():
    ranks = toy_ranks(7, 15, 15)
    found = envelope(ranks, np.random.default_rng(0), num_replicates=99)
    rng = np.random.default_rng(1)
    table, shares = ranks.tables["theta"], []
    for _ in range(4000):
        chosen = table[np.arange(15), :, rng.integers(16, size=15)]
        shares.append([(chosen < 16 * z).mean() for z in found.points])
    ratio = np.std(shares, axis=0) / (found.half_width["theta"] / found.critical)
    # Relative standard error of a standard deviation: 1 / sqrt(2 * 4000).
    assert (np.abs(ratio - 1) < 4 / math.sqrt(8000)).all()


def test_points_are_fewer_than_the_ranks_where_draws_are_many():
    found = envelope(toy_ranks(8, 3, 255), np.random.default_rng(0), num_replicates=99, num_points=16)
    assert found.points.tolist() == [k / 16 for k in range(1, 16)]


def test_ranks_that_no_relabelling_changes_do_not_count():
    """Two entries of opposite sign: one of both is always below the middle, whatever is called the truth."""
    rng = np.random.default_rng(9)
    worlds = [
        ranks_of({"a": np.array([x, -x])}, {"a": np.stack([y := rng.standard_normal(7), -y], axis=1)}, rng)
        for x in rng.standard_normal(10)
    ]
    found = envelope(Ranks.stack(worlds), rng, num_replicates=99)
    assert found.half_width["a"][3] == 0
    assert found.difference["a"][3] == pytest.approx(0, abs=1e-12)
    assert np.isfinite(found.statistic)


def test_too_few_relabellings_are_refused():
    with pytest.raises(ValueError, match=r"num_replicates=18 are too few for level=0\.95"):
        envelope(toy_ranks(0, 2, 3), np.random.default_rng(0), num_replicates=18)
