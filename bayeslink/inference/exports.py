"""Distributions over subsets for other libraries: pandas and networkx."""

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

import networkx as nx
import numpy as np
import pandas as pd
from jaxtyping import Bool, Float, Int

from bayeslink.display import Drawn

__all__ = ["DistributionExports", "checked_names"]


def checked_names(names: Sequence[str] | None, num_tables: int) -> tuple[str, ...]:
    """A name for each table; its position where there are none.

    Raises:
        ValueError: If there are more or fewer names than tables.
    """
    if names is None:
        return tuple(str(table) for table in range(num_tables))
    if len(names) != num_tables:
        raise ValueError(f"names has {len(names)} for {num_tables} tables; give one for each")
    return tuple(names)


@runtime_checkable
class Answers(Protocol):
    """What the exports read of a distribution."""

    @property
    def marginals(self) -> Float[np.ndarray, "questions tables"]:
        """Probability that each table is needed."""
        ...

    @property
    def mode(self) -> Bool[np.ndarray, "questions tables"]:
        """The most probable subset."""
        ...

    @property
    def pair_marginals(self) -> Float[np.ndarray, "questions edges"]:
        """Probability that both tables of each edge are needed."""
        ...

    @property
    def edges(self) -> Int[np.ndarray, "edges 2"]:
        """Node positions of each edge."""
        ...


class DistributionExports(Drawn):
    """What a distribution over subsets gives to other libraries."""

    def to_frame(self: Answers, names: Sequence[str] | None = None) -> pd.DataFrame:
        """A row for each question and table: its probability, and whether the most probable subset has it.

        Args:
            names: Name of each table; its position by default.

        Raises:
            ValueError: If there are more or fewer names than tables.
        """
        num_questions, num_tables = self.marginals.shape
        named = checked_names(names, num_tables)
        return pd.DataFrame(
            {
                "question": np.repeat(np.arange(num_questions), num_tables),
                "table": [*named] * num_questions,
                "probability": self.marginals.ravel(),
                "in_mode": self.mode.ravel(),
            }
        )

    def to_networkx(self: Answers, names: Sequence[str] | None = None, question: int = 0) -> nx.Graph:
        """The graph of one question: `probability` and `in_mode` of each node, `probability` of both ends of each edge.

        Args:
            names: Name of each table; its position, a number, by default.
            question: Its position.

        Raises:
            ValueError: If there are more or fewer names than tables, two tables have one name, or there is no such
                question.
        """
        num_questions, num_tables = self.marginals.shape
        if not 0 <= question < num_questions:
            raise ValueError(f"question={question}: there are {num_questions}; count them from 0")
        nodes = list(range(num_tables)) if names is None else list(checked_names(names, num_tables))
        if len(set(nodes)) < num_tables:
            raise ValueError("names has one twice, which would be one node; give each table its own")
        graph = nx.Graph()
        for node, probability, inside in zip(nodes, self.marginals[question], self.mode[question], strict=True):
            graph.add_node(node, probability=float(probability), in_mode=bool(inside))
        for (first, second), both in zip(self.edges.tolist(), self.pair_marginals[question], strict=True):
            graph.add_edge(nodes[first], nodes[second], probability=float(both))
        return graph
