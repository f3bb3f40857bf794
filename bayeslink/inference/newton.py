"""Damped Newton steps to the modes of many small concave functions at once, one for each database."""

from collections.abc import Callable

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

__all__ = ["damped_newton"]

Terms = Callable[[Array], tuple[Array, Array, Array]]
"""point [databases coordinates] -> value [databases], gradient, and minus the Hessian, each database's own."""


def damped_newton(
    terms: Terms, start: Float[Array, "databases coordinates"], tolerance: float, max_steps: int
) -> tuple[Array, Array, Array, Array]:
    """Modes with the value, the gradient and the precision there.

    A step that lowers a database's value is not taken and the next is halved; on a strictly concave function
    that always reaches the mode. Whether it did within `max_steps` is told by the gradient.

    Args:
        terms: Value, gradient and precision at a point.
        start: Where to begin.
        tolerance: Largest gradient entry of any database at which to stop.
        max_steps: Most steps.
    """

    def unfinished(state: tuple) -> Array:
        _, _, gradient, _, _, count = state
        return (jnp.abs(gradient).max(initial=0.0) > tolerance) & (count < max_steps)

    def advance(state: tuple) -> tuple:
        point, value, gradient, precision, shrink, count = state
        step = jnp.linalg.solve(precision, gradient[..., None])[..., 0]
        proposal = point + shrink[:, None] * step
        new_value, new_gradient, new_precision = terms(proposal)
        better = new_value >= value - 1e-12 * (1 + jnp.abs(value))
        return (
            jnp.where(better[:, None], proposal, point),
            jnp.where(better, new_value, value),
            jnp.where(better[:, None], new_gradient, gradient),
            jnp.where(better[:, None, None], new_precision, precision),
            jnp.where(better, jnp.minimum(1.0, 2 * shrink), shrink / 2),
            count + 1,
        )

    state = (start, *terms(start), jnp.ones(start.shape[0]), 0)
    point, value, gradient, precision, _, _ = jax.lax.while_loop(unfinished, advance, state)
    return point, value, gradient, precision
