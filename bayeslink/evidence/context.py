"""Covariates of the intercept: what is known of a question and its database before any table is looked at.

A database that no fit has seen starts from its size and shape, and a question from how strongly it
matches its schema as a whole (a question with a long hint matches every table a little). A covariate is
the same for every table of a question, so it moves the intercept and no table relative to another:

    a_t = alpha_d + kappa . w_q + gamma . z_t

The means and maxima are the between-group terms of a hierarchical regression (Mundlak 1978). The number of tables is
read up to `LARGEST_SIZE`: no fit has seen larger databases, and a straight line drawn on to hundreds of tables would
deny every one of them.
"""

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float

from bayeslink.evidence.structure import COVARIATES

__all__ = ["CONTEXTS", "LARGEST_SIZE", "RECOMMENDED_CONTEXT", "context_names", "context_values", "within_sizes"]

CONTEXTS = (*COVARIATES, "evidence_mean", "evidence_max")
"""What may be asked for: the database's covariates, and for every channel its mean and its maximum over tables."""

RECOMMENDED_CONTEXT = ("log_num_tables", "evidence_mean", "evidence_max")
"""What earned its place by the held-out joint log score; see `experiments/unseen_databases`."""


LARGEST_SIZE = 3.0
"""Largest standardised logarithm of the number of tables; the databases of our fits have at most 2.9."""


def context_names(asked: Sequence[str], channels: Sequence[str]) -> tuple[str, ...]:
    """Name of each covariate: the evidence's mean and maximum give one for every channel.

    Raises:
        ValueError: If a covariate is not one of `CONTEXTS`, or is asked for twice.
    """
    if unknown := [name for name in asked if name not in CONTEXTS]:
        raise ValueError(f"context={unknown}: use some of {', '.join(CONTEXTS)}")
    if len(set(asked)) < len(asked):
        raise ValueError(f"context={tuple(asked)} repeats a name; give each once")
    names: list[str] = []
    for name in asked:
        summary = name.removeprefix("evidence_")
        names += [name] if name in COVARIATES else [f"{summary}_{channel}" for channel in channels]
    return tuple(names)


def context_values(
    values: Float[np.ndarray, "questions tables channels"],
    covariates: Float[np.ndarray, " covariates"],
    asked: Sequence[str],
) -> Float[np.ndarray, "questions contexts"]:
    """The covariates of each question, in the order of `context_names`.

    Args:
        values: Standardised evidence.
        covariates: The database's `COVARIATES`.
        asked: Some of `CONTEXTS`.
    """
    columns = [np.zeros((len(values), 0))]
    for name in asked:
        if name in COVARIATES:
            columns.append(np.full((len(values), 1), covariates[COVARIATES.index(name)]))
        else:
            columns.append(values.mean(axis=1) if name == "evidence_mean" else values.max(axis=1))
    return np.concatenate(columns, axis=1)


def within_sizes(
    context: Float[np.ndarray, "questions contexts"], names: Sequence[str]
) -> Float[np.ndarray, "questions contexts"]:
    """Standardised covariates with the number of tables cut at `LARGEST_SIZE`.

    Args:
        context: Standardised covariates.
        names: Their names, as `context_names` gives them.
    """
    return np.where(np.array(names) == "log_num_tables", np.minimum(context, LARGEST_SIZE), context)


def moments(
    parts: Sequence[Float[np.ndarray, "_ columns"]],
) -> tuple[Float[np.ndarray, " columns"], Float[np.ndarray, " columns"]]:
    """Mean and standard deviation of each column; a constant column has scale 1."""
    rows = np.concatenate(parts)
    constant = np.ptp(rows, axis=0) == 0
    return np.where(constant, rows[0], rows.mean(axis=0)), np.where(constant, 1.0, rows.std(axis=0))
