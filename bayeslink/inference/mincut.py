"""Selection given parameters: the mode for coupling >= 0, as a minimum s-t cut.

MODEL.md section 5; Greig, Porteous & Seheult 1989. With c_t = -a_t the mode minimises

    f(x) = sum_t c_t x_t - sum_{(s,t) in E} beta_st x_s x_t,    and    -beta x_s x_t = -beta x_s + beta x_s (1 - x_t),

so every pair is an arc of capacity beta_st, what remains of each table's weight is an arc from the source
(negative) or to the sink (positive), and the selected tables are the source's side of a cut of value
f(x) - f_0. The minimisers form a lattice: the smallest is what the source still reaches when the flow is
maximal, the largest is what no longer reaches the sink.

Floats are whole multiples of a power of two, so the flow is found in Python integers without any rounding:
the tolerance between flow and cut is zero, and two modes tie only if their scores are equal to the last bit.
"""

from collections.abc import Sequence
from fractions import Fraction
from typing import NamedTuple

import networkx as nx
import numpy as np
from jaxtyping import ArrayLike, Bool, Float, Int
from networkx.algorithms.flow import boykov_kolmogorov

__all__ = ["LARGEST", "MinimumCut", "minimise_cut", "mode"]

LARGEST = 1e300
"""Largest finite weight or coupling accepted, nats; their sums stay below the largest float."""

_SOURCE, _SINK = -1, -2


class MinimumCut(NamedTuple):
    """Minimum of f, its smallest and largest minimiser, and the certificate that it is the minimum.

    Attributes:
        minimal: The smallest minimiser, inside every other.
        maximal: The largest minimiser, around every other.
        value: Minimum of f, nats; infinite weights are left out.
        flow_value: Largest flow from source to sink, nats.
        cut_value: Cut of both minimisers, nats; equals `flow_value`, which proves that neither can be improved.
    """

    minimal: Bool[np.ndarray, " tables"]
    maximal: Bool[np.ndarray, " tables"]
    value: float
    flow_value: float
    cut_value: float

    @property
    def score(self) -> float:
        """Largest value of -f, nats: for `mode`, the energy of the mode."""
        return -self.value

    @property
    def is_unique(self) -> bool:
        """Whether there is one minimiser only."""
        return bool((self.minimal == self.maximal).all())


def mode(
    unary: Float[ArrayLike, " tables"], edges: Int[np.ndarray, "edges 2"], coupling: Float[ArrayLike, "*edges"]
) -> MinimumCut:
    """The most probable selections: the smallest, the largest, and their energy.

    Args:
        unary: Log-odds of each table if it had no neighbours; an infinite one forces its table in or out.
        edges: Node positions of each edge.
        coupling: Gain in nats when both tables of a pair are selected, >= 0, one value or one per edge.

    Raises:
        ValueError: As in `minimise_cut`.
    """
    return minimise_cut(-np.asarray(unary), edges, coupling)


def minimise_cut(
    weights: Float[ArrayLike, " tables"],
    edges: Int[np.ndarray, "edges 2"],
    coupling: Float[ArrayLike, "*edges"],
    forced_in: Sequence[int] = (),
    forced_out: Sequence[int] = (),
) -> MinimumCut:
    """Minimum of f(x) = sum_t c_t x_t - sum_e beta_e x_s x_t over the selections that obey the forced tables.

    Args:
        weights: c, nats; -inf forces a table in and +inf forces it out.
        edges: Node positions of each edge.
        coupling: beta >= 0, nats, one value or one per edge.
        forced_in: Tables that every minimiser holds.
        forced_out: Tables that no minimiser holds.

    Raises:
        ValueError: If an argument is not float64, not a number or too large; if a coupling is negative; if an edge
            or a forced table is not a table, an edge joins a table to itself, or a table is forced both ways.
        ArithmeticError: If the flow and the cut differ, so that the result would not be the minimum.
    """
    weight = np.asarray(weights)
    gain = _checked_coupling(coupling, len(edges))
    _check_weights(weight, edges)
    inside = {*map(int, forced_in), *np.flatnonzero(weight == -np.inf).tolist()}
    outside = {*map(int, forced_out), *np.flatnonzero(weight == np.inf).tolist()}
    _check_forced(inside, outside, len(weight))
    whole, denominator = _in_integers([*np.where(np.isfinite(weight), weight, 0.0).tolist(), *gain.tolist()])
    pairs = list(zip(np.asarray(edges).tolist(), whole[len(weight) :], strict=True))

    def value(chosen: set[int]) -> int:
        return sum(whole[t] for t in chosen) - sum(g for (s, t), g in pairs if s in chosen and t in chosen)

    network, offset = _network(whole[: len(weight)], pairs, inside, outside)
    residual = boykov_kolmogorov(network, _SOURCE, _SINK)
    flow = residual.graph["flow_value"]
    can_carry_more = nx.DiGraph()
    can_carry_more.add_nodes_from(residual)
    can_carry_more.add_edges_from((s, t) for s, t, arc in residual.edges(data=True) if arc["flow"] < arc["capacity"])
    reached = nx.descendants(can_carry_more, _SOURCE)
    reaching = nx.ancestors(can_carry_more, _SINK)
    minimal = inside | reached
    maximal = inside | (set(network) - reaching - {_SOURCE, _SINK})
    for chosen in (minimal, maximal):
        if value(chosen) - offset != flow or _SINK in reached:
            raise ArithmeticError(
                f"flow {flow} and cut {value(chosen) - offset} differ (unit 1/{denominator} nats): this is not the "
                "minimum; report the graph and use elimination"
            )
    rows = [np.isin(np.arange(len(weight)), list(chosen)) for chosen in (minimal, maximal)]
    numbers = [float(Fraction(v, denominator)) for v in (value(minimal), flow, value(maximal) - offset)]
    return MinimumCut(rows[0], rows[1], *numbers)


def _network(
    weight: Sequence[int], pairs: Sequence[tuple[list[int], int]], inside: set[int], outside: set[int]
) -> tuple[nx.DiGraph, int]:
    """The network of the free tables, and the value f_0 of f that a cut of zero stands for."""
    free = {t: weight[t] for t in range(len(weight)) if t not in inside and t not in outside}
    offset = sum(weight[t] for t in inside)
    network = nx.DiGraph()
    network.add_nodes_from([_SOURCE, _SINK, *free])
    for (first, second), gain in pairs:
        if first in outside or second in outside:
            continue
        if first in inside and second in inside:
            offset -= gain
        elif first in inside or second in inside:
            free[second if first in inside else first] -= gain
        else:
            free[first] -= gain
            known = network.get_edge_data(first, second, {"capacity": 0})["capacity"]
            network.add_edge(first, second, capacity=known + gain)
    for table, left in free.items():
        if left < 0:
            network.add_edge(_SOURCE, table, capacity=-left)
            offset += left
        else:
            network.add_edge(table, _SINK, capacity=left)
    return network, offset


def _in_integers(values: Sequence[float]) -> tuple[list[int], int]:
    """Numerators of the values over one common denominator, exactly."""
    ratios = [value.as_integer_ratio() for value in values]
    denominator = max((below for _, below in ratios), default=1)
    return [above * (denominator // below) for above, below in ratios], denominator


def _checked_coupling(coupling: Float[ArrayLike, "*edges"], num_edges: int) -> Float[np.ndarray, " edges"]:
    gain = np.asarray(coupling, dtype=np.float64)
    if gain.ndim > 1 or (gain.ndim == 1 and len(gain) != num_edges):
        raise ValueError(f"coupling has shape {gain.shape}: give one value or one for each of the {num_edges} edges")
    if (gain < 0).any():
        raise ValueError(f"coupling={gain.min()} < 0: the minimum cut needs coupling >= 0; use elimination")
    if not (gain <= LARGEST).all():
        raise ValueError(f"coupling={gain.max()}: finite values up to {LARGEST:g} are needed; rescale it")
    return np.broadcast_to(gain, num_edges)


def _check_weights(weight: np.ndarray, edges: np.ndarray) -> None:
    if weight.dtype != np.float64:
        raise ValueError(f"weights have dtype {weight.dtype}: inference is float64 only; convert them")
    wrong = np.isnan(weight) | (np.isfinite(weight) & (np.abs(weight) > LARGEST))
    if wrong.any():
        raise ValueError(f"weights hold {weight[wrong][0]}: give numbers up to {LARGEST:g}, or inf to force a table")
    if len(edges) and not (edges.min() >= 0 and edges.max() < len(weight)):
        raise ValueError(f"edges hold table {edges.max()} or {edges.min()}: there are {len(weight)}, counted from 0")
    if (edges[:, 0] == edges[:, 1]).any():
        raise ValueError("edges join a table to itself: leave self references out of the graph")


def _check_forced(inside: set[int], outside: set[int], num_tables: int) -> None:
    if inside & outside:
        raise ValueError(f"tables {sorted(inside & outside)} are forced in and out: choose one for each")
    unknown = [t for t in inside | outside if not 0 <= t < num_tables]
    if unknown:
        raise ValueError(f"forced tables {sorted(unknown)}: there are {num_tables}, counted from 0")
