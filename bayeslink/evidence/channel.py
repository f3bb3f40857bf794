"""What the question says about each table: channels, the evidence they give, and its standardisation.

A channel gives one number per table, z of MODEL.md section 1. `Evidence` holds the numbers of all
questions of one database with its graph, and no names: it is all that the steps from `model` on see.
Standardised evidence is

    z = (value - mean) / scale,

with the mean and the standard deviation of each channel over all (question, table) pairs of the
training databases. Where forms are asked for (`forms`), they are computed from z and standardised in the same way.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Protocol, runtime_checkable

import numpy as np
from jaxtyping import Bool, Float, Int
from tqdm import tqdm

from bayeslink.evidence.cache import cache_home, cached_scores
from bayeslink.evidence.context import context_names, context_values, moments, within_sizes
from bayeslink.evidence.forms import form_names, form_values
from bayeslink.evidence.structure import COVARIATES, covariates, edge_types
from bayeslink.schema.graph import SchemaGraph

__all__ = [
    "COVARIATES",
    "Channel",
    "Evidence",
    "Standardisation",
    "cache_home",
    "compute_evidence",
    "covariates",
    "edge_types",
]


@runtime_checkable
class Channel(Protocol):
    """One source of evidence."""

    @property
    def name(self) -> str:
        """Name of the channel, as in `Evidence.channels`."""
        ...

    @property
    def identity(self) -> str:
        """A text that differs whenever the scores would: name, version of the definition, settings.

        A channel may also have `complete`, False where its last scores are not to be kept in a cache.
        """
        ...

    def score(self, questions: Sequence[str], graph: SchemaGraph) -> Float[np.ndarray, "questions tables"]:
        """Finite scores of each table for each question, more meaning a better match."""
        ...


@dataclass(frozen=True)
class Evidence:
    """Evidence of one database, keyed (dataset, db_id).

    Attributes:
        dataset: Data set of the database, or "live".
        db_id: The database.
        channels: Name of each channel.
        values: Scores of each channel, in its own unit, or standardised.
        edges: Node positions of each edge.
        edge_types: Kind of each edge; see `structure.edge_types`.
        covariates: The database's `COVARIATES`.
        gold: True where the gold SQL reads the table; None where it is unknown. A row without any
            table is possible in simulations only: every benchmark query reads a table.
        group: Questions with one number have the same gold SQL; None where it is unknown.
        num_contexts: Number of trailing channels that are covariates of the intercept, the same for every
            table (see `context`); raw evidence has none.

    Raises:
        ValueError: If shapes disagree, a value is not finite, a channel repeats, an edge is out of
            range or joins a table to itself.
    """

    dataset: str
    db_id: str
    channels: tuple[str, ...]
    values: Float[np.ndarray, "questions tables channels"]
    edges: Int[np.ndarray, "edges 2"]
    edge_types: Int[np.ndarray, " edges"]
    covariates: Float[np.ndarray, " covariates"]
    gold: Bool[np.ndarray, "questions tables"] | None = None
    group: Int[np.ndarray, " questions"] | None = None
    num_contexts: int = 0

    def __post_init__(self) -> None:
        where = f"evidence of {self.dataset}/{self.db_id}"
        if self.values.ndim != 3 or self.values.shape[2] != len(self.channels):
            raise ValueError(f"{where}: values of shape {self.values.shape} for channels {self.channels}")
        if len(set(self.channels)) < len(self.channels):
            raise ValueError(f"{where}: channels={self.channels} repeat a name; give each channel once")
        if not np.isfinite(self.values).all():
            raise ValueError(f"{where}: values hold NaN or infinity; a channel must score every table")
        if self.edges.ndim != 2 or self.edges.shape[1] != 2 or self.edge_types.shape != self.edges.shape[:1]:
            raise ValueError(f"{where}: edges {self.edges.shape}, edge_types {self.edge_types.shape} disagree")
        if ((self.edges < 0) | (self.edges >= self.num_tables)).any():
            raise ValueError(f"{where}: edges name a table outside 0..{self.num_tables - 1}")
        if (self.edges[:, 0] == self.edges[:, 1]).any():
            raise ValueError(f"{where}: edges join a table to itself; leave self keys out")
        if self.covariates.shape != (len(COVARIATES),) or not np.isfinite(self.covariates).all():
            raise ValueError(f"{where}: covariates={self.covariates} are not the finite {COVARIATES}")
        if self.gold is not None and self.gold.shape != self.values.shape[:2]:
            raise ValueError(f"{where}: gold of shape {self.gold.shape} for values {self.values.shape}")
        if not 0 <= self.num_contexts <= len(self.channels):
            raise ValueError(f"{where}: num_contexts={self.num_contexts} for channels {self.channels}")
        trailing = self.values[:, :, len(self.channels) - self.num_contexts :]
        if not (trailing == trailing[:, :1]).all():
            raise ValueError(f"{where}: its last {self.num_contexts} channels vary over tables; they are no covariates")
        if self.group is not None and self.group.shape != self.values.shape[:1]:
            raise ValueError(f"{where}: group of shape {self.group.shape} for values {self.values.shape}")

    @property
    def key(self) -> tuple[str, str]:
        """(dataset, db_id)."""
        return self.dataset, self.db_id

    @property
    def num_tables(self) -> int:
        """Number of tables n."""
        return self.values.shape[1]

    @property
    def num_questions(self) -> int:
        """Number of questions."""
        return self.values.shape[0]

    def select_channels(self, names: Sequence[str]) -> "Evidence":
        """The same evidence with these channels in this order.

        Raises:
            ValueError: If a channel is not there, or covariates of the intercept follow the channels.
        """
        if self.num_contexts:
            raise ValueError(f"evidence of {self.key} holds covariates of the intercept; select before standardising")
        if missing := [name for name in names if name not in self.channels]:
            raise ValueError(f"channels {missing} are not among {self.channels} of {self.key}")
        places = [self.channels.index(name) for name in names]
        return replace(self, channels=tuple(names), values=self.values[:, :, places])

    def select_questions(
        self, indices: Int[np.ndarray, " chosen"] | Bool[np.ndarray, " questions"] | Sequence[int]
    ) -> "Evidence":
        """The same evidence with these questions, by position or by mark, in this order."""
        chosen = np.asarray(indices)
        if chosen.dtype != bool:
            chosen = chosen.astype(np.int64)
        return replace(
            self,
            values=self.values[chosen],
            gold=None if self.gold is None else self.gold[chosen],
            group=None if self.group is None else self.group[chosen],
        )


@dataclass(frozen=True)
class Standardisation:
    """Mean and scale of each channel and of each covariate, from training databases only.

    Attributes:
        channels: Names of the channels.
        mean: Mean of each channel over (question, table) pairs.
        scale: Standard deviation of each channel.
        context: Covariates of the intercept that are asked for, some of `context.CONTEXTS`.
        context_mean: Mean of each covariate of the intercept over questions.
        context_scale: Its standard deviation.
        covariate_mean: Mean of each of the databases' `COVARIATES` over databases.
        covariate_scale: Its standard deviation.
        forms: Forms of each channel that are asked for, some of `forms.FORMS`; the values alone where there is none.
        form_mean: Mean of each predictor over (question, table) pairs, 0 for a value; empty without forms.
        form_scale: Its standard deviation, 1 for a value; empty without forms.
    """

    channels: tuple[str, ...]
    mean: Float[np.ndarray, " channels"]
    scale: Float[np.ndarray, " channels"]
    context: tuple[str, ...] = ()
    context_mean: Float[np.ndarray, " contexts"] = field(default_factory=lambda: np.zeros(0))
    context_scale: Float[np.ndarray, " contexts"] = field(default_factory=lambda: np.ones(0))
    covariate_mean: Float[np.ndarray, " covariates"] = field(default_factory=lambda: np.zeros(len(COVARIATES)))
    covariate_scale: Float[np.ndarray, " covariates"] = field(default_factory=lambda: np.ones(len(COVARIATES)))
    forms: tuple[str, ...] = ()
    form_mean: Float[np.ndarray, " predictors"] = field(default_factory=lambda: np.zeros(0))
    form_scale: Float[np.ndarray, " predictors"] = field(default_factory=lambda: np.ones(0))

    @property
    def predictors(self) -> tuple[str, ...]:
        """Name of each predictor that varies over tables, in the order of gamma: see `forms.form_names`."""
        return form_names(self.forms, self.channels)

    @property
    def context_names(self) -> tuple[str, ...]:
        """Name of each covariate of the intercept."""
        return context_names(self.context, self.channels)

    @classmethod
    def fit(
        cls, evidences: Sequence[Evidence], context: Sequence[str] = (), forms: Sequence[str] = ()
    ) -> "Standardisation":
        """Mean and standard deviation of each channel, and of each of its forms, over all (question, table) pairs.

        A constant channel gets scale 1: its centred value is 0 on the training data under any
        scale, and 1 keeps it finite elsewhere.

        Args:
            evidences: Evidence of the training databases.
            context: Covariates of the intercept, some of `context.CONTEXTS`.
            forms: Forms of each channel, some of `forms.FORMS`; the values alone by default.

        Raises:
            ValueError: If there is no pair, two databases have different channels, or a covariate or form is unknown.
        """
        if not evidences or not sum(evidence.values[..., 0].size for evidence in evidences):
            raise ValueError("evidences hold no question; a standardisation needs training evidence")
        channels = evidences[0].channels
        context_names(context, channels)
        form_names(forms, channels)
        for evidence in evidences:
            _check_channels(evidence, channels)
        mean, scale = moments([evidence.values.reshape(-1, len(channels)) for evidence in evidences])
        found = cls(channels, mean, scale, tuple(context), forms=tuple(forms))
        asked = [context_values((item.values - mean) / scale, item.covariates, context) for item in evidences]
        return replace(
            found,
            **dict(zip(("form_mean", "form_scale"), found._form_moments(evidences), strict=True)),
            **dict(zip(("context_mean", "context_scale"), moments(asked), strict=True)),
            **dict(
                zip(
                    ("covariate_mean", "covariate_scale"),
                    moments([item.covariates[None] for item in evidences]),
                    strict=True,
                )
            ),
        )

    def apply(self, evidence: Evidence) -> Evidence:
        """The evidence standardised, the covariates of the intercept after its channels.

        Raises:
            ValueError: If its channels are not those of the standardisation, in the same order.
        """
        _check_channels(evidence, self.channels)
        values = (evidence.values - self.mean) / self.scale
        context = context_values(values, evidence.covariates, self.context)
        if self.forms:
            values = (form_values(values, self.forms) - self.form_mean) / self.form_scale
        context = within_sizes((context - self.context_mean) / self.context_scale, self.context_names)
        wide = np.broadcast_to(context[:, None, :], (*values.shape[:2], context.shape[1]))
        return replace(
            evidence,
            channels=(*self.predictors, *self.context_names),
            values=np.concatenate([values, wide], axis=2),
            covariates=(evidence.covariates - self.covariate_mean) / self.covariate_scale,
            num_contexts=context.shape[1],
        )

    def by_channel(self, parts: Float[np.ndarray, "tables predictors"]) -> Float[np.ndarray, "tables channels"]:
        """What each channel adds, over all its forms, of what each predictor adds."""
        return parts.reshape(len(parts), -1, len(self.channels)).sum(axis=1)

    def _form_moments(
        self, evidences: Sequence[Evidence]
    ) -> tuple[Float[np.ndarray, " predictors"], Float[np.ndarray, " predictors"]]:
        if not self.forms:
            return np.zeros(0), np.ones(0)
        num_predictors = len(self.predictors)
        formed = [form_values((item.values - self.mean) / self.scale, self.forms) for item in evidences]
        mean, scale = moments([values.reshape(-1, num_predictors) for values in formed])
        # A value is standardised already; doing it again would change its last digits.
        is_value = np.repeat([form == "value" for form in self.forms], len(self.channels))
        return np.where(is_value, 0.0, mean), np.where(is_value, 1.0, scale)


def compute_evidence(
    graph: SchemaGraph,
    questions: Sequence[str],
    channels: Sequence[Channel],
    *,
    dataset: str = "live",
    gold: Bool[np.ndarray, "questions tables"] | None = None,
    group: Int[np.ndarray, " questions"] | None = None,
    cache: Path | None = None,
    progress: bool = False,
) -> Evidence:
    """Evidence of one database's questions, not standardised.

    Args:
        graph: Schema of the database.
        questions: Texts of the questions.
        channels: The sources of evidence.
        dataset: Data set of the database, the first part of its key.
        gold: Gold tables of each question.
        group: Number of each question's gold SQL.
        cache: Folder in which scores are kept, such as `cache_home()`; None keeps nothing.
        progress: Show a progress bar over channels.

    Raises:
        ValueError: If a channel gives a value that is not finite, or shapes disagree.
    """
    scores = []
    for channel in tqdm(channels, desc=f"{dataset}/{graph.name}", disable=not progress, leave=False):
        if cache is None:
            scores.append(channel.score(questions, graph))
        else:
            compute = partial(channel.score, questions, graph)
            # A channel that asks a model has scores that a failed call has left its mark on; they are not kept.
            complete = lambda c=channel: getattr(c, "complete", True)  # noqa: E731
            scores.append(cached_scores(cache, channel.identity, graph, questions, compute, complete))
    shape = (len(questions), graph.num_tables, 0)
    return Evidence(
        dataset,
        graph.name,
        tuple(channel.name for channel in channels),
        np.stack(scores, axis=-1) if scores else np.zeros(shape),
        graph.edge_array,
        edge_types(graph),
        covariates(graph.edge_array, graph.num_tables),
        gold,
        group,
    )


def _check_channels(evidence: Evidence, channels: tuple[str, ...]) -> None:
    if evidence.channels != channels:
        raise ValueError(
            f"channels {evidence.channels} of {evidence.dataset}/{evidence.db_id} are not {channels}; "
            "select the same channels in the same order"
        )
