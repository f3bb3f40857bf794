"""Simulation-based calibration: fits over many worlds whose parameters are known, and the ranks that they give.

Draw the truth from the prior, data given the truth, draws from each fit given the data (Talts, Betancourt, Simpson,
Vehtari & Gelman 2018); `ranks` says in which envelope the ranks of the truth must lie. A fit that fails is counted
and its world left out for it. That does no harm to the null: under an exact posterior the truth is exchangeable with
the draws whatever the data. Draws of a Markov chain must be thinned until they are close to independent.
"""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple, TypeVar

import numpy as np
from tqdm import tqdm

from bayeslink.evidence.cache import replace_file
from bayeslink.simulation.ranks import Ranks, ranks_of

__all__ = ["DIAGNOSTIC", "Calibration", "calibrate", "overconfident", "thinned"]

Simulated = TypeVar("Simulated")


class Calibration(NamedTuple):
    """Ranks by fitter, and what failed.

    Attributes:
        ranks: Ranks by fitter, over the worlds that it fitted.
        failures: For each fitter the message of each world in which it failed.
        diagnostics: For each fitter what its fits say of themselves, by name, over the worlds that it fitted.
    """

    ranks: dict[str, Ranks]
    failures: dict[str, dict[int, str]]
    diagnostics: dict[str, dict[str, np.ndarray]]


DIAGNOSTIC = "diagnostic "
"""What a fitter returns under a name that begins so is a number about the fit, not draws."""


def calibrate(
    worlds: Sequence[Simulated],
    truth_of: Callable[[Simulated], Mapping[str, np.ndarray]],
    fitters: Mapping[str, Callable[[Simulated, int], Mapping[str, np.ndarray] | None]],
    seed: int = 0,
    folder: Path | None = None,
    progress: bool = True,
) -> Calibration:
    """Fit every world by every fitter and rank the truth among the draws.

    Args:
        worlds: The worlds.
        truth_of: True parameters of a world.
        fitters: From a world and a seed, which depends on the world only, to draws by parameter. None sits the
            world out; a FloatingPointError is a failure, counted, and leaves the world out for that fitter. Names
            that begin with `DIAGNOSTIC` hold single numbers about the fit.
        seed: Seed of the fits and of the breaking of ties.
        folder: Where the ranks of each fitter and world are kept, so that a run that was stopped goes on; whoever
            calls names it by all that the results depend on.
        progress: Show a progress bar.

    Raises:
        ValueError: If a fitter has draws for no world.
    """
    ranked: dict[str, list[dict[str, np.ndarray]]] = {name: [] for name in fitters}
    failures: dict[str, dict[int, str]] = {name: {} for name in fitters}
    told: dict[str, list[dict[str, float]]] = {name: [] for name in fitters}
    with tqdm(total=len(worlds) * len(fitters), desc="worlds x fitters", disable=not progress) as bar:
        for place, world in enumerate(worlds):
            for name, fitter in fitters.items():
                bar.set_postfix_str(name, refresh=False)
                path = None if folder is None else folder / name / f"{place:05d}.npz"
                stored = _load(path)
                if stored is None:
                    stored = _ranked(world, truth_of, fitter, seed, place)
                    _keep(path, stored)
                if "failure" in stored:
                    failures[name][place] = str(stored["failure"])
                elif stored:
                    said = {key: stored.pop(key) for key in list(stored) if key.startswith(DIAGNOSTIC)}
                    told[name].append({key.removeprefix(DIAGNOSTIC): float(value) for key, value in said.items()})
                    ranked[name].append(stored)
                bar.update()
    for name, found in ranked.items():
        if not found:
            raise ValueError(f"fitter={name} has draws for no world; failures: {sorted(set(failures[name].values()))}")
    diagnostics = {
        name: {key: np.array([item[key] for item in found]) for key in found[0]} for name, found in told.items()
    }
    return Calibration({name: Ranks.stack(found) for name, found in ranked.items()}, failures, diagnostics)


def _ranked(
    world: Simulated,
    truth_of: Callable[[Simulated], Mapping[str, np.ndarray]],
    fitter: Callable[[Simulated, int], Mapping[str, np.ndarray] | None],
    seed: int,
    place: int,
) -> dict[str, np.ndarray]:
    """Ranks of one world; the message under "failure" where the fit failed; nothing where it sat out."""
    rng = np.random.default_rng([seed, place])
    try:
        draws = fitter(world, int(rng.integers(2**31)))
        if draws is None:
            return {}
        said = {name: np.asarray(value) for name, value in draws.items() if name.startswith(DIAGNOSTIC)}
        return ranks_of(truth_of(world), draws, rng) | said
    except FloatingPointError as error:
        return {"failure": np.array(str(error))}


def _load(path: Path | None) -> dict[str, np.ndarray] | None:
    if path is None or not path.is_file():
        return None
    with np.load(path, allow_pickle=False) as entry:
        return dict(entry)


def _keep(path: Path | None, stored: Mapping[str, np.ndarray]) -> None:
    if path is not None and stored:
        replace_file(path, lambda file: np.savez_compressed(file, allow_pickle=False, **stored))


def overconfident(draws: Mapping[str, np.ndarray], factor: float) -> dict[str, np.ndarray]:
    """The draws shrunk around their mean by a factor: a fit known to be wrong, on which calibration must fail."""
    means = {name: np.mean(value, axis=0) for name, value in draws.items()}
    return {name: means[name] + factor * (np.asarray(value) - means[name]) for name, value in draws.items()}


def thinned(draws: np.ndarray, num_draws: int) -> np.ndarray:
    """So many draws, evenly spaced along the first axis.

    Raises:
        ValueError: If there are fewer.
    """
    if len(draws) < num_draws:
        raise ValueError(f"num_draws={num_draws} of {len(draws)} draws: make more")
    return draws[np.linspace(0, len(draws) - 1, num_draws).round().astype(int)]
