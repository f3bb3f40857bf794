"""Running fits over worlds: draws shrunk or thinned, failures counted, and a stopped run that goes on."""

import numpy as np
import pytest

from bayeslink.simulation.calibration import DIAGNOSTIC, calibrate, overconfident, thinned
from bayeslink.simulation.ranks import envelope


def toy_world(seed: int) -> dict[str, float]:
    """One normal mean with a standard normal prior, seen once with standard normal noise."""
    rng = np.random.default_rng([10, seed])
    truth = rng.standard_normal()
    return {"truth": truth, "seen": truth + rng.standard_normal(), "seed": seed}


def truth_of(world):
    return {"a": np.array(world["truth"])}


class Exact:
    """The exact posterior N(seen / 2, 1 / 2), counting its calls; fails on some worlds, sits others out."""

    def __init__(self, failing=(), out=(), num_draws=31):
        self.failing, self.out, self.num_draws, self.calls = failing, out, num_draws, 0

    def __call__(self, world, seed):
        self.calls += 1
        if world["seed"] in self.failing:
            raise FloatingPointError("the mode ran away")
        if world["seed"] in self.out:
            return None
        rng = np.random.default_rng(seed)
        return {"a": world["seen"] / 2 + np.sqrt(0.5) * rng.standard_normal(self.num_draws)}


def test_an_exact_fit_passes_and_its_overconfident_twin_does_not():
    exact = Exact()
    fitters = {"exact": exact, "broken": lambda world, seed: overconfident(exact(world, seed), 0.5)}
    found = calibrate([toy_world(seed) for seed in range(150)], truth_of, fitters, seed=1, progress=False)
    assert found.failures == {"exact": {}, "broken": {}}
    inside = {name: envelope(ranks, np.random.default_rng(0)).inside["a"] for name, ranks in found.ranks.items()}
    assert inside == {"exact": True, "broken": False}


def test_failures_are_counted_and_leave_their_world_out():
    fitters = {"some": Exact(failing=(1, 3), out=(0,)), "all": Exact()}
    found = calibrate([toy_world(seed) for seed in range(5)], truth_of, fitters, progress=False)
    assert found.failures == {"some": {1: "the mode ran away", 3: "the mode ran away"}, "all": {}}
    assert {name: ranks.num_worlds for name, ranks in found.ranks.items()} == {"some": 2, "all": 5}
    # Both get a world's seed, so the worlds that both fitted have the same ranks.
    assert (found.ranks["some"].tables["a"] == found.ranks["all"].tables["a"][[2, 4]]).all()


def test_draws_that_are_not_finite_are_a_failure():
    def bad(world, seed):
        return {"a": np.full(31, np.inf if world["seed"] else 0.0)}

    found = calibrate([toy_world(seed) for seed in range(2)], truth_of, {"bad": bad}, progress=False)
    assert found.failures["bad"] == {1: "draws of a hold NaN or infinity"}


def test_a_fitter_without_draws_is_an_error_and_so_is_one_with_a_mistake():
    worlds = [toy_world(seed) for seed in range(2)]
    with pytest.raises(ValueError, match=r"fitter=none has draws for no world; failures: \['the mode ran away'"):
        calibrate(worlds, truth_of, {"none": Exact(failing=(0, 1))}, progress=False)
    with pytest.raises(ZeroDivisionError):
        calibrate(worlds, truth_of, {"mistaken": lambda world, seed: 1 / 0}, progress=False)


def test_a_stopped_run_goes_on_where_it_was(tmp_path):
    worlds = [toy_world(seed) for seed in range(6)]
    whole = calibrate(worlds, truth_of, {"a": Exact(failing=(2,)), "b": Exact(out=(5,))}, progress=False)

    class Stopping(Exact):
        def __call__(self, world, seed):
            if world["seed"] == 4:
                raise KeyboardInterrupt
            return super().__call__(world, seed)

    first = {"a": Exact(failing=(2,)), "b": Stopping()}
    with pytest.raises(KeyboardInterrupt):
        calibrate(worlds, truth_of, first, folder=tmp_path, progress=False)
    assert (first["a"].calls, first["b"].calls) == (5, 4)
    second = {"a": Exact(failing=(2,)), "b": Exact(out=(5,))}
    resumed = calibrate(worlds, truth_of, second, folder=tmp_path, progress=False)
    assert (second["a"].calls, second["b"].calls) == (1, 2)
    assert resumed.failures == whole.failures
    for name, ranks in whole.ranks.items():
        assert (resumed.ranks[name].tables["a"] == ranks.tables["a"]).all()
        assert resumed.ranks[name].tables["a"].dtype == np.int16
    # A world that was sat out leaves nothing behind, so that a later run may have it.
    assert sorted(path.name for path in (tmp_path / "b").iterdir()) == [f"{place:05d}.npz" for place in range(5)]
    assert not [path for path in tmp_path.rglob("*") if path.name.startswith(".")]


def test_progress_is_shown_unless_told_otherwise(capsys):
    calibrate([toy_world(0)], truth_of, {"exact": Exact()})
    assert "worlds x fitters" in capsys.readouterr().err


def test_shrunk_draws_keep_their_mean_and_lose_their_spread():
    rng = np.random.default_rng(0)
    draws = {"a": rng.standard_normal(50), "b": rng.standard_normal((50, 3))}
    shrunk = overconfident(draws, 0.6)
    for name, value in draws.items():
        np.testing.assert_allclose(shrunk[name].mean(axis=0), value.mean(axis=0), atol=1e-12)
        np.testing.assert_allclose(shrunk[name].std(axis=0), 0.6 * value.std(axis=0), rtol=1e-10)


def test_thinned_draws_are_evenly_spaced():
    assert thinned(np.arange(10), 4).tolist() == [0, 3, 6, 9]
    assert thinned(np.arange(8).reshape(4, 2), 4).tolist() == [[0, 1], [2, 3], [4, 5], [6, 7]]
    with pytest.raises(ValueError, match="num_draws=5 of 4 draws"):
        thinned(np.arange(4), 5)


def test_what_fits_say_of_themselves_is_kept_with_the_ranks(tmp_path):
    """Numbers under the prefix are not ranked, and survive a second run that only reads."""
    worlds = [0.1, -0.4, 0.3]

    def fitter(world: float, seed: int) -> dict[str, np.ndarray] | None:
        draws = np.random.default_rng(seed).normal(size=9)
        return None if world < 0 else {"x": draws, f"{DIAGNOSTIC}k": np.float64(world)}

    for again in (fitter, lambda world, seed: fitter(-1.0, seed)):
        found = calibrate(worlds, lambda world: {"x": np.array(world)}, {"one": again}, 0, tmp_path, progress=False)
        np.testing.assert_allclose(found.diagnostics["one"]["k"], [0.1, 0.3])
        assert set(found.ranks["one"].tables) == {"x"}
        assert found.ranks["one"].num_worlds == 2
