"""Brute force in plain Python loops: what the package's numbers are checked against.

Written from MODEL.md sections 1 to 4 and nothing else: `itertools`, `math.fsum`, no JAX, no vectorised
arithmetic. Selections are tuples of 0 and 1; couplings are lists, one per edge.
"""

import itertools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

Selection = tuple[int, ...]
Edges = Sequence[Sequence[int]]
Numbers = Sequence[float]


def subsets(num_tables: int) -> Iterator[Selection]:
    yield from itertools.product((0, 1), repeat=num_tables)


def per_edge(coupling: float | Numbers, edges: Edges) -> list[float]:
    """One value per edge from one value, or from as many."""
    values = [float(coupling)] * len(edges) if isinstance(coupling, int | float) else [float(b) for b in coupling]
    assert len(values) == len(edges)
    return values


def num_joined_pairs(selection: Selection, edges: Edges) -> int:
    return sum(1 for s, t in edges if selection[s] and selection[t])


def energy(selection: Selection, unary: Numbers, edges: Edges, coupling: float | Numbers) -> float:
    terms = [float(a) for a, x in zip(unary, selection, strict=True) if x]
    terms += [b for (s, t), b in zip(edges, per_edge(coupling, edges), strict=True) if selection[s] and selection[t]]
    return math.fsum(terms)


def log_sum_exp(values: Numbers) -> float:
    largest = max(values)
    return largest + math.log(math.fsum(math.exp(value - largest) for value in values))


def log_partition(unary: Numbers, edges: Edges, coupling: float | Numbers, non_empty: bool = False) -> float:
    return log_sum_exp([energy(x, unary, edges, coupling) for x in subsets(len(unary)) if any(x) or not non_empty])


def distribution(
    unary: Numbers, edges: Edges, coupling: float | Numbers, non_empty: bool = False
) -> dict[Selection, float]:
    """p(x) of every selection; the empty one has probability 0 under the non-empty support."""
    log_z = log_partition(unary, edges, coupling, non_empty)
    return {
        x: 0.0 if non_empty and not any(x) else math.exp(energy(x, unary, edges, coupling) - log_z)
        for x in subsets(len(unary))
    }


def pooled_distribution(
    pool: Sequence[tuple[Numbers, Edges, float | Numbers, float]],
) -> dict[tuple[int, Selection], float]:
    """P(d, x) of every non-empty selection of every database (unary, edges, coupling, score) of a pool."""
    logs = {
        (d, x): score + energy(x, unary, edges, coupling)
        for d, (unary, edges, coupling, score) in enumerate(pool)
        for x in subsets(len(unary))
        if any(x)
    }
    total = log_sum_exp(list(logs.values()))
    return {place: math.exp(value - total) for place, value in logs.items()}


def mixture(parts: Sequence[Mapping[Any, float]]) -> dict[Any, float]:
    """The average of distributions."""
    return {x: math.fsum(part[x] for part in parts) / len(parts) for x in parts[0]}


def expectation(probabilities: Mapping[Selection, float], statistic: Callable[[Selection], float]) -> float:
    return math.fsum(p * statistic(x) for x, p in probabilities.items())


def marginals(probabilities: Mapping[Selection, float]) -> list[float]:
    num_tables = len(next(iter(probabilities)))
    return [expectation(probabilities, lambda x, t=t: x[t]) for t in range(num_tables)]


def pair_marginals(probabilities: Mapping[Selection, float], edges: Edges) -> list[float]:
    return [expectation(probabilities, lambda x, s=s, t=t: x[s] * x[t]) for s, t in edges]


def expected_size(probabilities: Mapping[Selection, float]) -> float:
    """E[N]."""
    return expectation(probabilities, sum)


def expected_pairs(probabilities: Mapping[Selection, float], edges: Edges) -> float:
    """E[M]."""
    return expectation(probabilities, lambda x: num_joined_pairs(x, edges))


def variance_size(probabilities: Mapping[Selection, float]) -> float:
    """Var N."""
    mean = expected_size(probabilities)
    return expectation(probabilities, lambda x: (sum(x) - mean) ** 2)


def covariance_size_pairs(probabilities: Mapping[Selection, float], edges: Edges) -> float:
    """Cov(N, M)."""
    size, pairs = expected_size(probabilities), expected_pairs(probabilities, edges)
    return expectation(probabilities, lambda x: (sum(x) - size) * (num_joined_pairs(x, edges) - pairs))


def entropy(probabilities: Mapping[Selection, float]) -> float:
    return -math.fsum(p * math.log(p) for p in probabilities.values() if p > 0)


def size_distribution(probabilities: Mapping[Selection, float]) -> list[float]:
    num_tables = len(next(iter(probabilities)))
    return [expectation(probabilities, lambda x, n=n: float(sum(x) == n)) for n in range(num_tables + 1)]


def cover_probability(probabilities: Mapping[Selection, float], cover: Sequence[int]) -> float:
    """P(selection inside the cover)."""
    return expectation(probabilities, lambda x: float(all(c or not bit for bit, c in zip(x, cover, strict=True))))


def is_connected(selection: Selection, edges: Edges) -> bool:
    """Non-empty, and every selected table is reached from the first one inside the selection."""
    inside = {t for t, bit in enumerate(selection) if bit}
    if not inside:
        return False
    reached, waiting = set(), [min(inside)]
    while waiting:
        table = waiting.pop()
        reached.add(table)
        for s, t in edges:
            for here, there in ((s, t), (t, s)):
                if here == table and there in inside and there not in reached:
                    waiting.append(there)
    return reached == inside


def connected_probability(probabilities: Mapping[Selection, float], edges: Edges) -> float:
    return expectation(probabilities, lambda x: float(is_connected(x, edges)))


def mode_score(unary: Numbers, edges: Edges, coupling: float | Numbers) -> float:
    """Largest energy of any selection."""
    return max(energy(x, unary, edges, coupling) for x in subsets(len(unary)))


def modes(unary: Numbers, edges: Edges, coupling: float | Numbers, tolerance: float = 1e-12) -> list[Selection]:
    """All selections of the largest energy."""
    best = mode_score(unary, edges, coupling)
    return [x for x in subsets(len(unary)) if energy(x, unary, edges, coupling) >= best - tolerance]


def unary_log_odds(values: Sequence[Numbers], intercept: float, slopes: Numbers) -> list[float]:
    """Alpha + gamma . z_t of each table."""
    return [math.fsum([intercept, *(g * z for g, z in zip(slopes, row, strict=True))]) for row in values]


def log_likelihood(
    values: Sequence[Sequence[Numbers]],
    gold: Sequence[Sequence[int]],
    edges: Edges,
    intercept: float,
    slopes: Numbers,
    coupling: float | Numbers,
    non_empty: bool = False,
) -> float:
    """Sum over one database's questions of log p(y | z, G, theta_d)."""
    terms = []
    for rows, selection in zip(values, gold, strict=True):
        unary = unary_log_odds(rows, intercept, slopes)
        chosen = tuple(int(bit) for bit in selection)
        terms.append(energy(chosen, unary, edges, coupling) - log_partition(unary, edges, coupling, non_empty))
    return math.fsum(terms)


def log_normal(value: float, scale: float) -> float:
    return -0.5 * math.log(2 * math.pi) - math.log(scale) - value * value / (2 * scale * scale)


def log_half_normal(value: float, scale: float) -> float:
    assert value > 0
    return math.log(2) + log_normal(value, scale)


INTERCEPTS = {
    "independent": "pooled",
    "independent_hierarchical": "partial",
    "pooled": "pooled",
    "pooled_coupling": "partial",
    "hierarchical": "partial",
    "unpooled": "own",
}
COUPLINGS = {
    "independent": "zero",
    "independent_hierarchical": "zero",
    "pooled": "pooled",
    "pooled_coupling": "pooled",
    "hierarchical": "partial",
    "unpooled": "own",
}
SCALES = {
    "alpha": 2.0,
    "kappa": 1.0,
    "gamma": 1.0,
    "beta": 1.0,
    "lambda": 0.5,
    "delta": 0.5,
    "sigma_alpha": 1.0,
    "sigma_beta": 1.0,
    "sigma_scale": 0.5,
    "own": 5.0,
}
"""The default prior scales of MODEL.md section 3 and of the terms beyond the paper."""


def database_parameters(
    variant: str, sites: Mapping[str, float], u: float, v: float, scales: Mapping[str, float] = SCALES
) -> tuple[float, float]:
    """(alpha_d, beta_d), case by case."""
    alpha_d = {
        "pooled": lambda: sites["alpha"],
        "partial": lambda: sites["alpha"] + sites["sigma_alpha"] * u,
        "own": lambda: scales["own"] * u,
    }[INTERCEPTS[variant]]()
    beta_d = {
        "zero": lambda: 0.0,
        "pooled": lambda: sites["beta"],
        "partial": lambda: sites["beta"] + sites["sigma_beta"] * v,
        "own": lambda: scales["own"] * v,
    }[COUPLINGS[variant]]()
    return alpha_d, beta_d


def local_parameters(
    variant: str,
    sites: Mapping,
    effects: Numbers,
    covariates: Numbers,
    scales: Mapping[str, float] = SCALES,
) -> tuple[float, list[float], list[float]]:
    """(alpha_d, s_d gamma, beta_d of each kind of edge) with every term that has a site."""
    u, v, w = effects
    rho = float(sites.get("rho", 0.0))
    alpha_d, beta_d = database_parameters(variant, sites, u, rho * u + math.sqrt(1 - rho * rho) * v, scales)
    weight = 1 + float(sites.get("sigma_scale", 0.0)) * w
    if "lambda" in sites:
        beta_d += math.fsum(slope * value for slope, value in zip(sites["lambda"], covariates, strict=True))
    return alpha_d, [weight * g for g in sites["gamma"]], [beta_d + kind for kind in (0.0, *sites.get("delta", ()))]


def log_correlation(rho: float) -> float:
    """LKJ(2) density of one correlation: proportional to 1 - rho^2, which integrates to 4/3."""
    return math.log(0.75 * (1 - rho * rho))


def log_prior(variant: str, sites: Mapping, scales: Mapping[str, float] = SCALES) -> float:
    """Log prior density of the population parameters on their natural scale."""
    terms = [log_normal(float(g), scales["gamma"]) for g in sites["gamma"]]
    if INTERCEPTS[variant] != "own":
        terms.append(log_normal(float(sites["alpha"]), scales["alpha"]))
    if COUPLINGS[variant] in ("pooled", "partial"):
        terms.append(log_normal(float(sites["beta"]), scales["beta"]))
    if INTERCEPTS[variant] == "partial":
        terms.append(log_half_normal(float(sites["sigma_alpha"]), scales["sigma_alpha"]))
    if COUPLINGS[variant] == "partial":
        terms.append(log_half_normal(float(sites["sigma_beta"]), scales["sigma_beta"]))
    for site in ("kappa", "lambda", "delta"):
        terms += [log_normal(float(value), scales[site]) for value in sites.get(site, ())]
    if "sigma_scale" in sites:
        terms.append(log_half_normal(float(sites["sigma_scale"]), scales["sigma_scale"]))
    if "rho" in sites:
        terms.append(log_correlation(float(sites["rho"])))
    return math.fsum(terms)


def log_effects(variant: str, sites: Mapping, effects: Numbers) -> float:
    """Log density of the effects that the variant and its terms have."""
    u, v, w = effects
    terms = [log_normal(u, 1.0)] if INTERCEPTS[variant] in ("partial", "own") else []
    terms += [log_normal(v, 1.0)] if COUPLINGS[variant] in ("partial", "own") else []
    terms += [log_normal(w, 1.0)] if "sigma_scale" in sites else []
    return math.fsum(terms)


def log_likelihood_of_database(item, variant: str, sites: Mapping, effects: Numbers, scales=SCALES, non_empty=False):
    """Log p(D_d | theta_d) with every term that has a site; covariates of the intercept follow the channels."""
    alpha_d, slopes, kinds = local_parameters(variant, sites, effects, item.covariates.tolist(), scales)
    coupling = [kinds[kind] if len(kinds) > 1 else kinds[0] for kind in item.edge_types.tolist()]
    values, gold, edges = item.values.tolist(), item.gold.tolist(), item.edges.tolist()
    return log_likelihood(values, gold, edges, alpha_d, [*slopes, *sites.get("kappa", ())], coupling, non_empty)


def log_density(
    variant: str,
    world: Sequence,
    sites: Mapping,
    u: Numbers,
    v: Numbers,
    scales: Mapping[str, float] = SCALES,
    non_empty: bool = False,
    w: Numbers | None = None,
) -> float:
    """Log joint density of data, population parameters (natural scale) and the effects that there are.

    `world` holds evidence, standardised where sites ask for covariates.
    """
    terms = [log_prior(variant, sites, scales)]
    for item, *effects in zip(world, u, v, [0.0] * len(world) if w is None else w, strict=True):
        numbers = [float(value) for value in effects]
        terms.append(log_effects(variant, sites, numbers))
        terms.append(log_likelihood_of_database(item, variant, sites, numbers, scales, non_empty))
    return math.fsum(terms)
