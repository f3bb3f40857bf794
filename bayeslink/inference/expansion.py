"""Exact derivatives of each question's log likelihood, to the order that a fit needs.

A question's own parameters are theta = (alpha_d + kappa . w_q, s_d gamma, beta_d), one coupling for each kind
of edge. Its log likelihood is an exponential family's in theta with statistics T = (N, sum_t z_t x_t, M), so

    l = theta . T(y) - log Z,   dl = T(y) - E T,   d2l = -Cov T,   d3l = -k3,   d4l = -k4,

with the cumulants k of T (third cumulants are central moments; k4 is the fourth less three products of
covariances). Where the subsets are listed, the cumulants are read off the list; where tables are eliminated,
they come from nested forward differentiation of log Z, block by block so that the work stays in the cache.
The two are each other's test.
"""

from collections.abc import Callable
from functools import partial
from itertools import combinations_with_replacement, permutations
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from bayeslink.inference.enumeration import StatePlan
from bayeslink.inference.packing import log_partition
from bayeslink.model.autologistic import Support, num_joined_pairs
from bayeslink.model.batch import (
    Batch,
    Bucket,
    LocalParameters,
    log_likelihood_of_block,
    question_intercepts,
)

__all__ = ["Expansion", "coordinates", "directional", "expand"]


class Expansion(NamedTuple):
    """Derivatives of each question's l at one point; padding holds zeros.

    Attributes:
        value: l, nats; axes questions.
        first: dl; axes questions, coordinates.
        second: d2l; axes questions, coordinates, coordinates.
        third: d3l, or None below order 3.
        fourth: d4l twice along two of the given directions; axes questions, directions, directions,
            coordinates, coordinates; None below order 4.
    """

    value: Array
    first: Array
    second: Array
    third: Array | None = None
    fourth: Array | None = None


def coordinates(local: LocalParameters, with_coupling: bool) -> Float[Array, "databases coordinates"]:
    """(alpha_d, s_d gamma, beta_d) of each database as one row, without beta_d where no coupling is estimated."""
    parts = [local.intercept[:, None], local.slopes] + ([local.coupling] if with_coupling else [])
    return jnp.concatenate(parts, axis=1)


def expand(
    batch: Batch,
    local: LocalParameters,
    directions: Float[Array, "directions coordinates"],
    with_coupling: bool,
    support: Support,
    order: int,
) -> Expansion:
    """Derivatives of every question's log likelihood, buckets and blocks after one another.

    Args:
        batch: The questions.
        local: Parameters of each database, where to expand.
        directions: Directions of theta for the fourth derivatives.
        with_coupling: Whether the couplings are among the coordinates.
        support: All subsets, or the non-empty ones.
        order: 2, 3 or 4.
    """
    basis = jnp.eye(coordinates(local, with_coupling).shape[1])
    return _by_block(batch, local, basis, directions, support, order)


def directional(
    batch: Batch, local: LocalParameters, directions: Float[Array, "directions coordinates"], support: Support
) -> Expansion:
    """L of every question with its first and second derivatives along the directions alone."""
    return _by_block(batch, local, directions, directions[:0], support, 2)


def _by_block(
    batch: Batch, local: LocalParameters, basis: Array, directions: Array, support: Support, order: int
) -> Expansion:
    found = []
    for bucket in batch.buckets:
        listed = isinstance(bucket.plan, StatePlan)
        one = partial(_from_list if listed else _from_elimination, basis=basis, directions=directions)
        rows = jax.lax.map(
            lambda row, one=one: one(*row, support=support, order=order),
            (
                bucket,
                question_intercepts(bucket, local),
                local.slopes[bucket.database],
                local.coupling[bucket.database],
            ),
        )
        found.append(jax.tree.map(lambda rows: rows.reshape(-1, *rows.shape[2:]), rows))
    return jax.tree.map(lambda *parts: jnp.concatenate(parts), *found)


def _from_list(
    block: Bucket,
    intercept: Array,
    slopes: Array,
    coupling: Array,
    basis: Array,
    directions: Array,
    support: Support,
    order: int,
) -> Expansion:
    """Cumulants of the statistics from the list of subsets."""
    states = block.plan.states  # ty: ignore[missing-attribute]
    statistics = _statistics(block, states, coupling.shape[0])
    gold = _statistics(block, block.gold, coupling.shape[0], per_question=True)
    point = jnp.concatenate(
        [
            intercept[:, None],
            jnp.broadcast_to(slopes, (len(intercept), len(slopes))),
            jnp.broadcast_to(coupling, (len(intercept), len(coupling))),
        ],
        axis=1,
    )
    energies = jnp.einsum("qsp,qp->qs", statistics, point)
    possible = (states * (1 - block.is_table)).sum(axis=1) == 0
    if support is Support.NON_EMPTY:
        possible &= states.sum(axis=1) > 0
    energies = jnp.where(possible, energies, -jnp.inf)
    log_z = jax.nn.logsumexp(energies, axis=1)
    probability = jnp.exp(energies - log_z[:, None])
    weight = block.weight
    value = weight * (jnp.einsum("qp,qp->q", gold, point) - log_z)
    along = basis.shape[1]  # Couplings that are held are no coordinates.
    mean = jnp.einsum("qs,qsp->qp", probability, statistics)
    centred = (statistics - mean[:, None])[..., :along]
    first = jnp.einsum("q,qp,rp->qr", weight, (gold - mean)[:, :along], basis)
    turned = jnp.einsum("qsp,rp->qsr", centred, basis)
    size = len(basis)
    rows, columns = np.triu_indices(size)
    products = turned[..., rows] * turned[..., columns]
    weighted = (weight[:, None] * probability)[..., None]
    covariance = _symmetric(jnp.einsum("qs,qsp->qp", weighted[..., 0], products), size)
    if order == 2:
        return Expansion(value, first, -covariance)
    skew = jnp.einsum("qsa,qsp->qap", weighted * turned, products)
    third = -_symmetric(skew, size)
    if order == 3:
        return Expansion(value, first, -covariance, third)
    chosen = jnp.einsum("qsp,rp->qsr", centred, directions)
    i, j = np.triu_indices(len(directions))
    fourth = jnp.einsum("qsa,qsp->qap", weighted * chosen[..., i] * chosen[..., j], products)
    fourth = _symmetric(_symmetric(jnp.moveaxis(fourth, 1, 2), len(directions)), size, axis=1)
    fourth = jnp.moveaxis(fourth, (1, 2), (3, 4))
    mixed = jnp.einsum("qpr,ar->qpa", covariance, directions)
    both = jnp.einsum("qpa,bp->qab", mixed, directions)
    products_of_two = (
        jnp.einsum("qab,qpr->qabpr", both, covariance)
        + jnp.einsum("qpa,qrb->qabpr", mixed, mixed)
        + jnp.einsum("qpb,qra->qabpr", mixed, mixed)
    )
    return Expansion(value, first, -covariance, third, products_of_two - fourth)


def _statistics(
    block: Bucket, selection: Array, num_types: int, per_question: bool = False
) -> Float[Array, "questions *states coordinates"]:
    """T of each listed subset, or of one selection per question (then without the axis states)."""
    pairs = num_joined_pairs(selection, block.edges) * block.is_edge
    kinds = jax.nn.one_hot(block.edge_type, num_types) if num_types > 1 else jnp.ones((pairs.shape[-1], 1))
    shared = jnp.concatenate([selection.sum(axis=-1, keepdims=True), pairs @ kinds], axis=-1)
    if per_question:
        matched = jnp.einsum("qt,qtk->qk", selection, block.values)
        return jnp.concatenate([shared[:, :1], matched, shared[:, 1:]], axis=-1)
    matched = jnp.einsum("st,qtk->qsk", selection, block.values)
    shared = jnp.broadcast_to(shared, (matched.shape[0], *shared.shape))
    return jnp.concatenate([shared[..., :1], matched, shared[..., 1:]], axis=-1)


def _symmetric(packed: Array, size: int, axis: int = -1) -> Array:
    """Symmetric matrices from their upper triangles along an axis, which becomes two."""
    place = np.zeros((size, size), dtype=int)
    place[np.triu_indices(size)] = np.arange(size * (size + 1) // 2)
    place = np.maximum(place, place.T)
    taken = jnp.take(packed, place.reshape(-1), axis=axis)
    axis %= packed.ndim
    return taken.reshape(*packed.shape[:axis], size, size, *packed.shape[axis + 1 :])


def _from_elimination(
    block: Bucket,
    intercept: Array,
    slopes: Array,
    coupling: Array,
    basis: Array,
    directions: Array,
    support: Support,
    order: int,
) -> Expansion:
    """The same by nested forward differentiation of the eliminated log Z."""
    num_slopes = slopes.shape[0]

    def moved(shift: Array) -> Array:
        pair = coupling + shift[1 + num_slopes :] if shift.shape[0] > 1 + num_slopes else coupling
        along = slopes + shift[1 : 1 + num_slopes]
        return log_likelihood_of_block(block, intercept + shift[0], along, pair, log_partition, support)

    size, along = basis.shape
    third = fourth = None
    if order >= 3:
        triples = np.array(list(combinations_with_replacement(range(size), 3)))
        value, first, second, thirds = _nested(moved, along, [basis[triples[:, k]] for k in range(3)])
        third = _filled(thirds, triples, size)
        pairs = np.array([tuple(triple[:2]) for triple in triples])
        first = jnp.stack([first[int(np.flatnonzero(triples[:, 0] == a)[0])] for a in range(size)], axis=-1)
    else:
        pairs = np.array(list(combinations_with_replacement(range(size), 2)))
        value, first, second = _nested(moved, along, [basis[pairs[:, k]] for k in range(2)])
        first = jnp.stack([first[int(np.flatnonzero(pairs[:, 0] == a)[0])] for a in range(size)], axis=-1)
    kept = [
        int(np.flatnonzero((pairs == pair).all(axis=1))[0]) for pair in combinations_with_replacement(range(size), 2)
    ]
    second = _symmetric(jnp.moveaxis(second[np.array(kept)], 0, -1), size)
    if order >= 4:
        i, j = np.triu_indices(len(directions))
        p, q = np.triu_indices(size)
        chosen = [(a, b, c, d) for a, b in zip(i, j, strict=True) for c, d in zip(p, q, strict=True)]
        a, b, c, d = np.array(chosen).T if chosen else np.zeros((4, 0), dtype=int)
        *_, packed = _nested(moved, along, [directions[a], directions[b], basis[c], basis[d]])
        packed = jnp.moveaxis(packed, 0, -1).reshape(packed.shape[1], len(i), len(p))
        fourth = _symmetric(_symmetric(jnp.moveaxis(packed, 1, 2), len(directions)), size, axis=1)
        fourth = jnp.moveaxis(fourth, (1, 2), (3, 4))
    return Expansion(value[0], first, second, third, fourth)


def _nested(function: Callable[[Array], Array], size: int, directions: list[Array]) -> list[Array]:
    """[f, D_1 f, D_2 D_1 f, ...] at 0, mapped over rows of the directions: axes rows, questions."""

    def along(*row: Array) -> tuple[Array, ...]:
        derivative = function
        for direction in row:
            derivative = _differentiated(derivative, direction)
        return tuple(jax.tree.leaves(derivative(jnp.zeros(size))))

    leaves = jax.vmap(along)(*directions)
    # Leaf k of the nested pairs (f, df), (d f, d df), ... : the all-differentiated prefix has index 2^m - 1.
    return [leaves[2**m - 1] for m in range(len(directions) + 1)]


def _differentiated(function: Callable, direction: Array) -> Callable:
    return lambda point: jax.jvp(function, (point,), (direction,))


def _filled(values: Array, triples: np.ndarray, size: int) -> Array:
    """A symmetric third-order tensor from its distinct entries; axes questions, then three."""
    place = np.zeros((size,) * 3, dtype=int)
    for index, triple in enumerate(triples):
        for order in permutations(triple):
            place[order] = index
    return jnp.moveaxis(values[place.reshape(-1)], 0, -1).reshape(values.shape[1], *place.shape)
