"""A selection: which tables a rule returns for each question, and whether it would rather ask."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from jaxtyping import Bool, Float

from bayeslink.display import Shown
from bayeslink.inference.exports import checked_names

__all__ = ["Selection"]


@dataclass(frozen=True)
class Selection(Shown):
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

    def to_frame(self, names: Sequence[str] | None = None) -> pd.DataFrame:
        """A row for each question: the tables chosen, their number, P(gold inside them), and whether it would ask.

        Args:
            names: Name of each table; its position by default.

        Raises:
            ValueError: If there are more or fewer names than tables.
        """
        named = checked_names(names, self.chosen.shape[1])
        return pd.DataFrame(
            {
                "tables": [tuple(named[table] for table in np.flatnonzero(row)) for row in self.chosen],
                "size": self.chosen.sum(axis=1),
                "cover_probability": self.cover_probability,
                "abstained": self.abstained,
            }
        )
