"""Guessed edges have a weaker coupling than declared ones: their offset, for posteriors that know one coupling only.

    beta_de = beta_d + delta      for an edge e that is guessed,   delta ~ N(mean, sd^2)

with mean and sd of the posterior of delta in a fit that saw both kinds (`evaluation.guessed_coupling`). A posterior
that was fitted with kinds of edges has its own delta and needs none of this.
"""

import json
from dataclasses import dataclass
from importlib import resources
from pathlib import Path

import numpy as np
from jaxtyping import Bool

from bayeslink.inference.posterior import DatabaseDraws

__all__ = ["GuessedOffset", "shipped_offset"]


@dataclass(frozen=True)
class GuessedOffset:
    """Coupling of guessed edges less that of declared ones, nats.

    Attributes:
        mean: Posterior mean.
        sd: Posterior standard deviation.
    """

    mean: float
    sd: float

    def apply(self, draws: DatabaseDraws, guessed: Bool[np.ndarray, " edges"], seed: int = 0) -> DatabaseDraws:
        """The draws with a coupling for each edge, that of guessed ones moved by a draw of the offset.

        Args:
            draws: Draws of a database's parameters.
            guessed: Which edges are guessed.
            seed: Seed of the offset's draws.
        """
        coupling = np.asarray(draws.coupling)
        each = np.broadcast_to(coupling[:, None] if coupling.ndim == 1 else coupling, (len(coupling), len(guessed)))
        offset = self.mean + self.sd * np.random.default_rng(seed).standard_normal(len(coupling))
        return draws._replace(coupling=each + offset[:, None] * guessed)


def shipped_offset() -> GuessedOffset:
    """The offset that the package carries, from Spider train and BIRD train.

    Raises:
        ValueError: If its file is missing or broken.
    """
    path = Path(str(resources.files("bayeslink") / "posteriors" / "inferred_coupling.json"))
    try:
        found = json.loads(path.read_text())
        return GuessedOffset(float(found["mean"]), float(found["sd"]))
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ValueError(f"{path} cannot be read ({error}); run scripts/fit_inferred_coupling.py") from error
