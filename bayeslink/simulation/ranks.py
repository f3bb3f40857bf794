"""Ranks of true parameters among their posterior draws, and the envelope in which they must lie.

Draw the truth from the prior, data given the truth, L draws from the posterior given the data: under an exact
posterior the truth and the draws are exchangeable, so the rank of any coordinate is uniform on 0..L (Talts,
Betancourt, Simpson, Vehtari & Gelman 2018). The share F_p(z) of the n ranks of parameter p below z (L + 1) is then
within a band of z, simultaneously (Saeilynoja, Buerkner & Vehtari 2022, for one independent sample):

    |F_p(z) - z| <= c s_p(z)   for all parameters p and points z,   with probability 95 %

Here databases' effects are pooled under one name, and the ranks of a world depend on each other. The exchangeability
itself supplies the reference: name one of the L + 1 vectors of every world the truth, the same for all its
parameters, and rank again. That keeps every dependence within a world, and the test is exact (a randomisation
test). c is the 95 % quantile of the largest standardised deviation over such relabellings. s_p is their own standard
deviation, summed over worlds w without simulation,

    s_p(z)^2 = sum_w Var_c #{entries of p in world w where vector c ranks below z (L + 1)} / n^2,

which is z (1 - z) / n for one entry a world and larger where pooled entries move together; the binomial value would
let pooled names alone decide c.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float, Int

__all__ = ["Envelope", "Ranks", "envelope", "ranks_of"]

MAX_DRAWS = np.iinfo(np.int16).max
NUM_POINTS = 32
NUM_REPLICATES = 2000


@dataclass(frozen=True)
class Ranks:
    """Ranks of the truth, and of every draw in its place, in every world.

    Attributes:
        tables: For each parameter the rank, 0 to L, of each of the L + 1 vectors of a world among the others, the
            truth first; the middle axis holds what is pooled under the name.
    """

    tables: Mapping[str, Int[np.ndarray, "worlds _ vectors"]]

    @classmethod
    def stack(cls, worlds: Sequence[Mapping[str, Int[np.ndarray, "_ vectors"]]]) -> "Ranks":
        """Ranks of several worlds, each from `ranks_of`.

        Raises:
            ValueError: If there is none, or names or numbers of draws differ.
        """
        if not worlds:
            raise ValueError("worlds is empty: no fit gave draws")
        first = {name: table.shape for name, table in worlds[0].items()}
        for world in worlds:
            if {name: table.shape for name, table in world.items()} != first:
                raise ValueError("worlds have different parameters or numbers of draws; thin all to the same number")
        return cls({name: np.stack([world[name] for world in worlds]) for name in first})

    @property
    def num_worlds(self) -> int:
        """Number of worlds."""
        return len(next(iter(self.tables.values())))

    @property
    def num_draws(self) -> int:
        """L, the number of draws of each world."""
        return next(iter(self.tables.values())).shape[2] - 1

    def of_truth(self, name: str) -> Int[np.ndarray, "worlds _"]:
        """Ranks of the truth among the draws, 0 to L."""
        return self.tables[name][:, :, 0]


def ranks_of(
    truth: Mapping[str, np.ndarray], draws: Mapping[str, np.ndarray], rng: np.random.Generator
) -> dict[str, Int[np.ndarray, "_ vectors"]]:
    """Ranks of the truth and of each draw among the others in one world, by parameter; ties broken at random.

    Args:
        truth: True parameters; what an array holds is pooled under its name.
        draws: Draws of at least these parameters, on a first axis.
        rng: Breaks ties.

    Raises:
        ValueError: If a parameter has no draws, shapes disagree, or there are more than `MAX_DRAWS` draws.
        FloatingPointError: If a value is NaN or infinite.
    """
    found = {}
    for name, value in truth.items():
        if name not in draws:
            raise ValueError(f"draws have no parameter {name!r}, only {sorted(draws)}")
        drawn = np.asarray(draws[name], dtype=np.float64)
        if drawn.shape[1:] != np.shape(value) or not 1 <= len(drawn) <= MAX_DRAWS:
            raise ValueError(
                f"draws of {name} have shape {drawn.shape} for a truth of shape {np.shape(value)}; give 1 to "
                f"{MAX_DRAWS} draws of that shape"
            )
        vectors = np.concatenate([np.asarray(value, dtype=np.float64)[None], drawn]).reshape(len(drawn) + 1, -1).T
        if not np.isfinite(vectors).all():
            raise FloatingPointError(f"draws of {name} hold NaN or infinity")
        order = np.lexsort((rng.random(vectors.shape), vectors), axis=-1)
        found[name] = np.argsort(order, axis=-1).astype(np.int16)
    return found


@dataclass(frozen=True)
class Envelope:
    """ECDF differences of all parameters with one simultaneous band.

    Attributes:
        points: z, shares of the L + 1 possible ranks.
        difference: F_p(z) - z of each parameter, a probability.
        half_width: c s_p(z) of each parameter.
        inside: Whether the parameter's difference is within its band at every point.
        statistic: Largest standardised deviation over all parameters and points.
        critical: c, its quantile over relabellings.
        num_worlds: Number of worlds.
    """

    points: Float[np.ndarray, " points"]
    difference: Mapping[str, Float[np.ndarray, " points"]]
    half_width: Mapping[str, Float[np.ndarray, " points"]]
    inside: Mapping[str, bool]
    statistic: float
    critical: float
    num_worlds: int

    @property
    def share_inside(self) -> float:
        """Share of the parameters inside the envelope."""
        return sum(self.inside.values()) / len(self.inside)

    def rows(self) -> list[dict[str, str | float]]:
        """One row for each parameter and point: parameter, point, difference, half_width."""
        return [
            {"parameter": name, "point": float(z), "difference": float(gap), "half_width": float(half)}
            for name, gaps in self.difference.items()
            for z, gap, half in zip(self.points, gaps, self.half_width[name], strict=True)
        ]


def envelope(
    ranks: Ranks,
    rng: np.random.Generator,
    level: float = 0.95,
    num_replicates: int = NUM_REPLICATES,
    num_points: int = NUM_POINTS,
) -> Envelope:
    """The simultaneous envelope of all parameters, and which of them lie inside.

    Args:
        ranks: Ranks of every world.
        rng: Source of the relabellings.
        level: Probability that all parameters are inside under an exact posterior.
        num_replicates: Number of relabellings.
        num_points: The ECDF is looked at where 1, 2, ... of so many equal parts of the ranks lie below.

    Raises:
        ValueError: If the relabellings are too few for the level.
    """
    order = math.ceil(level * (num_replicates + 1))
    if not 0 < order <= num_replicates:
        raise ValueError(f"num_replicates={num_replicates} are too few for level={level}; give more")
    total = ranks.num_draws + 1
    cuts = np.unique(np.arange(1, num_points) * total // num_points)
    cuts = cuts[cuts > 0]
    points = cuts / total
    chosen = rng.integers(total, size=(ranks.num_worlds, num_replicates))
    difference, spread, observed = {}, {}, {}
    largest = np.zeros(num_replicates)
    for name, table in ranks.tables.items():
        size = table.shape[0] * table.shape[1]
        counted, variance = np.zeros(len(cuts)), np.zeros(len(cuts))
        relabelled = np.zeros((num_replicates, len(cuts)))
        for world, picked in zip(table, chosen, strict=True):
            below = (world[:, :, None] < cuts).sum(axis=0)
            counted += below[0]
            variance += below.var(axis=0)
            relabelled += below[picked]
        difference[name], spread[name] = counted / size - points, np.sqrt(variance) / size
        observed[name] = float(_deviations(difference[name], spread[name]).max())
        largest = np.maximum(largest, _deviations(relabelled / size - points, spread[name]).max(axis=1))
    critical = float(np.sort(largest)[order - 1])
    return Envelope(
        points,
        difference,
        {name: critical * sd for name, sd in spread.items()},
        # Ranks are discrete: a deviation that equals the critical one is inside, whatever the last digit.
        {name: value <= critical * (1 + 1e-12) for name, value in observed.items()},
        max(observed.values()),
        critical,
        ranks.num_worlds,
    )


def _deviations(gap: Float[np.ndarray, "*replicates points"], spread: Float[np.ndarray, " points"]) -> np.ndarray:
    """Absolute deviations in standard deviations; where no relabelling changes the ECDF there is none."""
    varies: Bool[np.ndarray, " points"] = spread > 0
    return np.abs(gap) * varies / np.where(varies, spread, 1.0)
