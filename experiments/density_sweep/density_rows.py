"""Rows, figures and checks of one benchmark's sweep over densities and couplings."""

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import NamedTuple

import numpy as np
from densities import Listed, Outcome, asked_of, mode_agreement, nested_graphs

from bayeslink.evaluation.comparison import Interval, clustered_bootstrap
from bayeslink.evaluation.held_out import HeldOut
from bayeslink.theory.stability import stability_window


class _Graphs(NamedTuple):
    """One graph per database, and what happened on them."""

    number: int
    density: float
    edges: list[np.ndarray]
    outcomes: dict[float, Outcome]
    open_windows: np.ndarray


def joined(outcomes: Sequence[Outcome]) -> Outcome:
    """The questions of several databases, one after the other."""
    return Outcome(*(np.concatenate(arrays) for arrays in zip(*outcomes, strict=True)))


def named(value: float) -> str:
    """A number as part of a name."""
    return f"{value:g}".replace(".", "_")


class BenchmarkSweep:
    """Every density, graph and coupling on one benchmark.

    Attributes:
        rows: One for each graph and coupling; intervals for the schemas' own graphs.
    """

    def __init__(self, name: str, items: Sequence[HeldOut], config: Mapping) -> None:
        self._name, self._config = name, config
        self._asked = asked_of(items, config["questions"])
        self._listed = [Listed(item) for item in self._asked]
        self._databases = [item.key for item in self._asked for _ in item.gold]
        self._groups = np.concatenate([item.group for item in self._asked])
        self._rng = np.random.default_rng(config["seed"])
        self._graphs = [found for number in range(config["graphs"]) for found in self._sweep(number)]
        self.rows = [self._row(graphs, coupling) for graphs in self._graphs for coupling in config["couplings"]]

    def _sweep(self, number: int) -> list[_Graphs]:
        """The graphs of one pair of random orders; those of density 0 and 1 are the same for every pair."""
        densities = self._config["densities"]
        nested = [
            nested_graphs(
                item.edges, item.gold.shape[1], densities, np.random.default_rng([self._config["seed"], number, place])
            )
            for place, item in enumerate(self._asked)
        ]
        found = []
        for position, density in enumerate(densities):
            if number and density in (0.0, 1.0):
                continue
            edges = [graphs[position] for graphs in nested]
            pairs = list(zip(self._listed, edges, strict=True))
            outcomes = {
                beta: joined([listed.outcome(graph, beta) for listed, graph in pairs])
                for beta in {*self._config["couplings"], *self._mode_couplings(density)}
            }
            windows = [
                ~stability_window(item.unary, graph, item.gold).positive().is_empty
                for item, graph in zip(self._asked, edges, strict=True)
            ]
            found.append(_Graphs(number, density, edges, outcomes, np.concatenate(windows)))
        return found

    def _mode_couplings(self, density: float) -> list[float]:
        return self._config["mode_couplings"] if density == 1.0 else [self._config["mode_coupling_elsewhere"]]

    def _interval(self, top: np.ndarray, below: np.ndarray) -> Interval:
        """A ratio of two sums over questions."""
        return clustered_bootstrap(
            np.stack([top, below], axis=1).astype(float),
            self._databases,
            self._groups,
            self._config["resamples"],
            self._rng,
            lambda values: values[:, 0].sum() / max(values[:, 1].sum(), 1.0),
        )

    def _row(self, graphs: _Graphs, coupling: float) -> dict:
        found, each = graphs.outcomes[coupling], np.ones(len(self._databases))
        row = {"data": self._name, "density": graphs.density, "graph": graphs.number, "coupling": coupling}
        row |= {"edges": float(np.mean([len(edges) for edges in graphs.edges])), "questions": len(each)}
        row["window_share"] = float(graphs.open_windows.mean())
        shares = {
            "recovered": (found.recovered, found.weak),
            "wrong": (found.wrong, each),
            "exact": (found.exact, each),
            "stable": (found.stable, each),
            "mode": (found.gap > 0, each),
        }
        for name, (top, below) in shares.items():
            row[name] = float(top.sum() / max(below.sum(), 1.0))
            own = self._interval(top, below) if graphs.density == 1.0 else None
            row |= {f"{name}_lower": own and own.lower, f"{name}_upper": own and own.upper}
        return row

    @cached_property
    def _own(self) -> _Graphs:
        return next(graphs for graphs in self._graphs if graphs.density == 1.0)

    def figures(self) -> dict[str, float | int]:
        """Headline numbers, the benchmark's name last."""
        own = self._own
        weak = own.outcomes[0.0].weak > 0
        share = self._interval(own.open_windows, np.ones(len(weak)))
        found: dict[str, float | int] = {"questions": len(weak), "databases": len(self._asked)}
        found |= {"weak_tables": int(own.outcomes[0.0].weak.sum()), "weak_questions": int(weak.sum())}
        found |= {"window_share": share.estimate, "window_share_lower": share.lower, "window_share_upper": share.upper}
        found |= {"window_share_weak": float(own.open_windows[weak].mean())}
        found |= self._empty_windows() | self._agreements
        for row in self.rows:
            if row["density"] == 1.0 and row["coupling"] in (0.0, 1.0, 2.0, 3.0):
                at = named(row["coupling"])
                found |= {f"{name}_at_{at}": row[name] for name in ("recovered", "wrong", "exact", "stable", "mode")}
        exact = {beta: float(own.outcomes[beta].exact.mean()) for beta in self._config["couplings"]}
        found["best_coupling"] = max(exact, key=lambda beta: exact[beta])
        found["exact_at_best"] = max(exact.values())
        for density in self._config["densities"]:
            rows = [row for row in self.rows if (row["density"], row["coupling"]) == (density, 1.0)]
            for name in ("window_share", "recovered", "wrong"):
                short = name if name == "window_share" else f"{name}_at_1"
                found[f"{short}_density_{named(density)}"] = float(np.mean([row[name] for row in rows]))
        return {f"{name}_{self._name}": value for name, value in found.items()}

    def _empty_windows(self) -> dict[str, float]:
        """Shares of all questions without a window, by the first reason that applies."""
        counts = dict.fromkeys(("weak_alone", "distractor_above", "crossed"), 0)
        for item in self._asked:
            window = stability_window(item.unary, item.edges, item.gold).positive()
            alone = window.unsupported.any(axis=1)
            above = ~alone & (~item.gold & (item.unary >= 0)).any(axis=1)
            counts["weak_alone"] += int(alone.sum())
            counts["distractor_above"] += int(above.sum())
            counts["crossed"] += int((window.is_empty & ~alone & ~above).sum())
        return {f"no_window_{reason}": count / len(self._databases) for reason, count in counts.items()}

    @cached_property
    def _agreements(self) -> dict[str, float | int]:
        """The window against single flips everywhere, and Proposition 2 against the list of subsets."""
        every = [found for graphs in self._graphs for found in graphs.outcomes.values()]
        same = np.concatenate([found.inside == found.stable for found in every])
        totals = np.zeros(3, dtype=int)
        for graphs in self._graphs:
            for beta in self._mode_couplings(graphs.density) if graphs.number == 0 else []:
                gaps = np.split(graphs.outcomes[beta].gap, np.cumsum([len(item.gold) for item in self._asked])[:-1])
                for item, edges, gap in zip(self._asked, graphs.edges, gaps, strict=True):
                    totals += mode_agreement(item, edges, beta, gap)
        inside = [self._own.outcomes[beta] for beta in self._mode_couplings(1.0)]
        held = np.concatenate([(found.gap > 0)[found.inside] for found in inside])
        return {
            "window_agreement": float(same.mean()),
            "window_compared": len(same),
            "mode_agreement": float(totals[0] / totals[1]),
            "mode_compared": int(totals[1]),
            "mode_ties": int(totals[2]),
            "mode_share_inside_window": float(held.mean()) if len(held) else 0.0,
        }

    def checks(self) -> dict[str, bool]:
        """Theorems that must hold to the question, and the paper's finding."""
        couplings, densities = sorted(self._config["couplings"]), sorted(self._config["densities"])
        by_place = {(graphs.number, graphs.density): graphs.outcomes for graphs in self._graphs}

        def selected(number: int, density: float, coupling: float) -> np.ndarray:
            found = by_place[0 if density in (0.0, 1.0) else number, density][coupling]
            return np.stack([found.recovered, found.wrong])

        counts = np.array(
            [
                [[selected(number, density, beta) for beta in couplings] for density in densities]
                for number in range(self._config["graphs"])
            ]
        )
        figures = self._agreements
        exact = [float(self._own.outcomes[beta].exact.mean()) for beta in couplings]
        checks = {
            "window_agrees_with_single_flips": figures["window_agreement"] == 1.0,
            "proposition_2_agrees_with_exact_mode": figures["mode_agreement"] == 1.0,
            "selection_grows_with_coupling": (np.diff(counts, axis=2) >= 0).all(),
            "selection_grows_with_density": (np.diff(counts, axis=1) >= 0).all(),
            "nothing_weak_is_recovered_without_coupling": not counts[:, :, 0, 0].any(),
            "too_much_coupling_over_selects": exact[-1] < max(exact),
        }
        return {f"{name}_{self._name}": bool(held) for name, held in checks.items()}
