"""Derivatives by central differences of fourth order, for checking exact ones."""

from collections.abc import Callable

import numpy as np

__all__ = ["gradient", "hessian"]


def gradient(function: Callable[[np.ndarray], float | np.ndarray], point: np.ndarray, step: float = 1e-3) -> np.ndarray:
    """Derivatives of a scalar or of an array, one leading row for each coordinate."""
    rows = []
    for direction in step * np.eye(len(point)):
        near = np.asarray(function(point + direction)) - np.asarray(function(point - direction))
        far = np.asarray(function(point + 2 * direction)) - np.asarray(function(point - 2 * direction))
        rows.append((8 * near - far) / (12 * step))
    return np.stack(rows)


def hessian(function: Callable[[np.ndarray], float], point: np.ndarray, step: float = 3e-3) -> np.ndarray:
    return gradient(lambda x: gradient(function, x, step), point, step)
