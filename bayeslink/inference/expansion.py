"""Exact derivatives of each database's log likelihood, to the order that a Laplace fit needs.

With theta_d = (alpha_d, gamma, beta_d), the log likelihood l_d is an exponential family's, so its
derivatives are (minus) sums of cumulants of the statistics (N, sum_t z_t x_t, M). The marginal
Laplace objective and its gradient and Hessian at one point need, exactly,

    l, dl, d2l           in all coordinates,
    dl_a,  d2l_a, d3l_a  with one index a among the random coordinates,
    d2l_ab, d3l_ab, d4l_ab  with two,

where the random coordinates are those that vary over databases (alpha_d, beta_d, or fewer). All come
from nested forward differentiation of one function, so no scan is ever run backwards.
"""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

__all__ = ["Expansion", "expand", "random_derivatives"]

DatabaseLikelihood = Callable[[Array, Array, Array], Array]
"""(alpha_d [databases], gamma [channels], beta_d [databases]) -> log likelihood [databases]."""


class Expansion(NamedTuple):
    """Second-order Taylor expansions in theta_d around one point, for each database.

    Rows of `value` are l, then dl_a for each random coordinate a, then d2l_ab for each pair a <= b.

    Attributes:
        value: Axes databases, rows.
        slope: First derivatives; axes databases, rows, coordinates.
        curvature: Second derivatives; axes databases, rows, coordinates, coordinates.
    """

    value: Array
    slope: Array
    curvature: Array

    def at(self, shift: Float[Array, "databases coordinates"]) -> Float[Array, "databases rows"]:
        """The expansions' values at theta_d + shift."""
        linear = jnp.einsum("drp,dp->dr", self.slope, shift)
        square = jnp.einsum("drpq,dp,dq->dr", self.curvature, shift, shift)
        return self.value + linear + 0.5 * square


def random_derivatives(
    likelihood: DatabaseLikelihood,
    intercept: Float[Array, " databases"],
    slopes: Float[Array, " channels"],
    coupling: Float[Array, " databases"],
    random: tuple[int, ...],
) -> Float[Array, "databases rows"]:
    """l_d, its gradient and its Hessian in the random coordinates, one row each (see `Expansion`).

    Args:
        likelihood: Log likelihood by database.
        intercept: alpha_d.
        slopes: gamma.
        coupling: beta_d.
        random: Coordinates that vary over databases: 0 for alpha_d, -1 for beta_d.
    """
    size = slopes.shape[0] + 2

    def moved(shift: Array) -> Array:
        return likelihood(intercept + shift[0], slopes + shift[1:-1], coupling + shift[-1])

    return _rows(moved, size, random)(jnp.zeros(size)).T


def expand(
    likelihood: DatabaseLikelihood,
    intercept: Float[Array, " databases"],
    slopes: Float[Array, " channels"],
    coupling: Float[Array, " databases"],
    random: tuple[int, ...],
    with_coupling: bool,
) -> Expansion:
    """Expansions of l_d and its random derivatives around (alpha_d, gamma, beta_d).

    Args:
        likelihood: Log likelihood by database.
        intercept: alpha_d.
        slopes: gamma.
        coupling: beta_d.
        random: Coordinates that vary over databases: 0 for alpha_d, -1 for beta_d.
        with_coupling: False leaves derivatives in beta_d at zero, for variants that hold it.
    """
    size = slopes.shape[0] + 2
    active = range(size if with_coupling else size - 1)
    pairs = [(i, j) for i in active for j in active if i <= j]

    def moved(shift: Array) -> Array:
        return likelihood(intercept + shift[0], slopes + shift[1:-1], coupling + shift[-1])

    rows = _rows(moved, size, random)
    basis = jnp.eye(size)
    first = basis[jnp.array([i for i, _ in pairs])]
    second = basis[jnp.array([j for _, j in pairs])]

    def along(direction: Array, other: Array) -> tuple[Array, Array, Array]:
        inner = lambda shift: jax.jvp(rows, (shift,), (direction,))  # noqa: E731
        (value, slope), (_, curvature) = jax.jvp(inner, (jnp.zeros(size),), (other,))
        return value, slope, curvature

    value, slope, curvature = jax.vmap(along)(first, second)
    slopes_by_row = jnp.zeros((*value.shape[1:], size))
    curvature_by_row = jnp.zeros((*value.shape[1:], size, size))
    for index, (i, j) in enumerate(pairs):
        slopes_by_row = slopes_by_row.at[..., i].set(slope[index])
        curvature_by_row = curvature_by_row.at[..., i, j].set(curvature[index])
        curvature_by_row = curvature_by_row.at[..., j, i].set(curvature[index])
    return Expansion(value[0].T, slopes_by_row.swapaxes(0, 1), curvature_by_row.swapaxes(0, 1))


def _rows(moved: Callable[[Array], Array], size: int, random: tuple[int, ...]) -> Callable[[Array], Array]:
    """The function shift -> rows of `Expansion`, axes rows and databases.

    One traced double derivative, mapped over the pairs of random coordinates: a third of the program that
    a loop over the pairs would compile.
    """
    pairs = [(a, b) for i, a in enumerate(random) for b in random[i:]]
    diagonal = [pairs.index((a, a)) for a in random]
    basis = jnp.eye(size)

    def along(shift: Array, direction: Array, other: Array) -> tuple[Array, Array, Array]:
        inner = lambda point: jax.jvp(moved, (point,), (direction,))  # noqa: E731
        (value, slope), (_, curvature) = jax.jvp(inner, (shift,), (other,))
        return value, slope, curvature

    def rows(shift: Array) -> Array:
        if not random:
            return moved(shift)[None]
        first = jnp.stack([basis[a] for a, _ in pairs])
        second = jnp.stack([basis[b] for _, b in pairs])
        value, slope, curvature = jax.vmap(along, in_axes=(None, 0, 0))(shift, first, second)
        return jnp.concatenate([value[:1], slope[jnp.array(diagonal)], curvature])

    return rows
