"""A selection: which tables a rule returns for each question, and whether it would rather ask."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float

__all__ = ["Selection"]


@dataclass(frozen=True)
class Selection:
    """Tables chosen for each question.

    Attributes:
        chosen: True where the table is returned.
        abstained: True where the rule would rather ask.
        rule: Name of the rule with its setting.
        cover_probability: P(gold inside the chosen tables).
    """

    chosen: Bool[np.ndarray, "questions tables"]
    abstained: Bool[np.ndarray, " questions"]
    rule: str
    cover_probability: Float[np.ndarray, " questions"]

    @property
    def size(self) -> Float[np.ndarray, " questions"]:
        """Number of tables returned."""
        return self.chosen.sum(axis=1).astype(np.float64)
