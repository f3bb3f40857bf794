"""Scores, selections and graphs that a user brings, checked and put together by group and graph."""

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int

from bayeslink.evidence.channel import Evidence
from bayeslink.evidence.structure import covariates

__all__ = ["DATASET", "Part", "checked_labels", "checked_scores", "question_parts"]

DATASET = "graphs"
"""First part of the key of a group in a posterior."""


class Part(NamedTuple):
    """Questions of one group on one graph.

    Attributes:
        evidence: Their scores, not standardised, with their selections where these are known.
        questions: Their positions among all questions.
    """

    evidence: Evidence
    questions: Int[np.ndarray, " questions"]


def question_parts(X, groups, edges, y=None) -> list[Part]:
    """The questions by group and graph, in the order in which these first come.

    Args:
        X: Scores, axes questions, nodes, channels; or a sequence of arrays with axes nodes, channels.
        groups: The group of each question; one group where None.
        edges: Pairs of joined nodes: for all questions, by group, or for each question.
        y: 1 where a node is selected; None where it is unknown.

    Raises:
        ValueError: If shapes disagree, a score is not finite, a label is not 0 or 1, or a group has no edges.
    """
    scores = checked_scores(X)
    labels = None if y is None else checked_labels(y, scores)
    names = [""] * len(scores) if groups is None else [str(name) for name in np.asarray(groups).ravel()]
    if len(names) != len(scores):
        raise ValueError(f"groups names {len(names)} questions and X has {len(scores)}; give one group for each")
    graphs = _graphs(edges, names, [len(item) for item in scores])
    members: dict[tuple[str, int, bytes], list[int]] = {}
    for question, (name, graph, item) in enumerate(zip(names, graphs, scores, strict=True)):
        members.setdefault((name, len(item), graph.tobytes()), []).append(question)
    parts = []
    for (name, size, _), places in members.items():
        graph = graphs[places[0]]
        evidence = Evidence(
            DATASET,
            name,
            tuple(f"channel_{k}" for k in range(scores[0].shape[1])),
            np.stack([scores[place] for place in places]),
            graph,
            np.zeros(len(graph), dtype=np.int64),
            covariates(graph, size),
            None if labels is None else np.stack([labels[place] for place in places]),
        )
        parts.append(Part(evidence, np.array(places)))
    return parts


def checked_scores(X) -> list[Float[np.ndarray, "tables channels"]]:
    """The scores of each question, checked."""
    scores = [np.asarray(item, dtype=np.float64) for item in X]
    if not scores:
        raise ValueError("X is empty: give at least one question")
    if any(item.ndim != 2 or not item.size for item in scores):
        bad = next(item.shape for item in scores if item.ndim != 2 or not item.size)
        raise ValueError(f"X has a question of shape {bad}: axes nodes, channels are needed, none of length 0")
    if len({item.shape[1] for item in scores}) > 1:
        raise ValueError(f"X has questions of {sorted({item.shape[1] for item in scores})} channels; give all the same")
    if not all(np.isfinite(item).all() for item in scores):
        raise ValueError("X holds NaN or infinity: every channel must score every node; fill what is missing first")
    return scores


def checked_labels(y, X) -> list[Bool[np.ndarray, " tables"]]:
    """The selection of each question, checked against X."""
    labels, sizes = [np.asarray(item) for item in y], [len(item) for item in X]
    if [item.shape for item in labels] != [(size,) for size in sizes]:
        raise ValueError(
            f"y has {len(labels)} questions of {sum(item.size for item in labels)} nodes in all, X {len(sizes)} of "
            f"{sum(sizes)}; give one label for each node of each question"
        )
    if not all(np.isin(item, (0, 1)).all() for item in labels):
        bad = next(value for item in labels for value in item.tolist() if value not in (0, 1))
        raise ValueError(f"y holds {bad!r}: a label is 1 where the node is selected and 0 where it is not")
    return [item.astype(bool) for item in labels]


def _graphs(edges, names: list[str], sizes: list[int]) -> list[Int[np.ndarray, "edges 2"]]:
    """The edges of each question, each pair once and in order."""
    if isinstance(edges, Mapping):
        by_name = {str(name): pairs for name, pairs in edges.items()}
        if missing := sorted(set(names) - set(by_name)):
            raise ValueError(f"edges has no graph of group {missing[0]!r}; add it, () where nothing is joined")
        each = [by_name[name] for name in names]
    elif _is_one_graph(edges):
        each = [edges] * len(names)
    else:
        each = list(edges)
        if len(each) != len(names):
            raise ValueError(
                f"edges has graphs of {len(each)} questions and X has {len(names)}; give those of these questions as "
                "edges=, or a mapping from group to edges"
            )
    found: dict[tuple[int, int], np.ndarray] = {}
    for pairs, size in zip(each, sizes, strict=True):
        if (id(pairs), size) not in found:
            found[id(pairs), size] = _pairs(pairs, size)
    return [found[id(pairs), size] for pairs, size in zip(each, sizes, strict=True)]


def _is_one_graph(edges) -> bool:
    """Whether these are pairs of nodes, rather than a list of pairs for each question."""
    if isinstance(edges, np.ndarray) and edges.dtype != object:
        return edges.ndim < 3
    return all(np.ndim(item) == 1 and len(item) == 2 and np.ndim(item[0]) == 0 for item in edges)


def _pairs(edges, num_nodes: int) -> Int[np.ndarray, "edges 2"]:
    pairs = np.asarray(edges)
    if not pairs.size:
        return np.zeros((0, 2), dtype=np.int64)
    if pairs.ndim != 2 or pairs.shape[1] != 2 or not np.issubdtype(pairs.dtype, np.integer):
        raise ValueError(f"edges of shape {pairs.shape} and type {pairs.dtype}: pairs of node positions are needed")
    if ((pairs < 0) | (pairs >= num_nodes)).any():
        raise ValueError(f"edges name a node outside 0..{num_nodes - 1}; count nodes from 0, as in X")
    if (pairs[:, 0] == pairs[:, 1]).any():
        raise ValueError("edges join a node to itself; leave such pairs out")
    return np.unique(np.sort(pairs, axis=1), axis=0).astype(np.int64)
