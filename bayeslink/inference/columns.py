"""Which columns of a selected table are needed: independent Bernoulli variables given the table.

With S the selected tables and C the selected columns,

    P(S, C) = P(S) prod_{t in S} prod_{c of t} p_c^{[c in C]} (1 - p_c)^{[c not in C]},
    logit p_c = a + u_d + w . z_c,     w_k ~ N(0, scale^2),  a ~ N(0, 5^2),  u_d ~ N(0, sigma^2)

for the columns of selected tables; a table that is not selected has none. The columns of a table are normalised given
the table, so that P(S) is what it was without them, a wide table gains nothing by its width, and a selected table may
have no selected column, as for COUNT(*). Hence P(c in C) = P(t in S) p_c, exactly.

(a, w) given the data are approximated by a normal distribution around their mode, u integrated out by Laplace's method
(joint mode of a, w and u, whose Hessian gives the marginal covariance); sigma maximises the Laplace approximation of
the marginal likelihood. A new database draws u from its prior.
"""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int
from scipy.linalg import cho_factor, cho_solve
from scipy.optimize import minimize_scalar
from scipy.special import expit

from bayeslink.evidence.cache import replace_file

__all__ = ["ColumnPosterior", "ColumnRows", "databases_named", "fit_columns", "shipped_columns"]

INTERCEPT_SCALE = 5.0
"""Prior standard deviation of the intercept a, log-odds."""

SLOPE_SCALE = 1.0
"""Prior standard deviation of each slope on standardised predictors, log-odds."""

SIGMA_RANGE = (0.02, 3.0)
"""Bounds of sigma, log-odds."""

NEWTON_STEPS = 50
"""Newton steps after which a fit is refused; a count."""


def databases_named(keys: Iterable[tuple[str, str]]) -> list[str]:
    """Names of training databases for `ColumnPosterior.info`, as trees name theirs: "data set/db_id", sorted."""
    return sorted("/".join(key) for key in keys)


def shipped_columns(kind: str) -> Path:
    """File of the posterior of columns that the package carries.

    Args:
        kind: "lexical" or "embedding".

    Raises:
        ValueError: If the package carries none of that kind.
    """
    folder = Path(str(resources.files("bayeslink") / "posteriors"))
    path = folder / f"columns_{kind}.json"
    if not path.is_file():
        carried = " or ".join(sorted(file.stem.removeprefix("columns_") for file in folder.glob("columns_*.json")))
        raise ValueError(
            f"columns of kind {kind!r}: the package carries {carried or 'none'}; ask for channels of that kind"
        )
    return path


class ColumnRows(NamedTuple):
    """Columns of gold tables of one database's questions.

    Attributes:
        values: Predictors, raw.
        chosen: Whether the gold query reads the column.
    """

    values: Float[np.ndarray, "rows predictors"]
    chosen: Bool[np.ndarray, " rows"]


@dataclass(frozen=True)
class ColumnPosterior:
    """Normal approximation of (a, w), and sigma.

    Attributes:
        names: Name of each predictor.
        center: Mean of each over the training rows.
        scale: Its standard deviation there.
        mean: Posterior mean of a and w on standardised predictors.
        covariance: Their posterior covariance.
        sigma: Standard deviation of the databases' intercepts, log-odds.
        info: What it was fitted on.
    """

    names: tuple[str, ...]
    center: Float[np.ndarray, " predictors"]
    scale: Float[np.ndarray, " predictors"]
    mean: Float[np.ndarray, " parameters"]
    covariance: Float[np.ndarray, "parameters parameters"]
    sigma: float
    info: dict

    def given_table(
        self,
        names: Sequence[str],
        values: Float[np.ndarray, "questions columns predictors"],
        num_draws: int = 200,
        seed: int = 0,
    ) -> Float[np.ndarray, "questions columns"]:
        """P(c is needed | its table is), averaged over the posterior and over new databases' intercepts.

        Args:
            names: Name of each predictor.
            values: Predictors, raw.
            num_draws: Draws of (a, w, u); a count.
            seed: Their seed.

        Raises:
            ValueError: If the predictors are not those of the fit, in its order.
        """
        if tuple(names) != self.names or values.shape[2] != len(self.names):
            odd = sorted(set(names) ^ set(self.names)) or ["their order"]
            raise ValueError(f"predictors are not those that columns were fitted on ({odd[0]}); fit them again")
        rng = np.random.default_rng(seed)
        draws = rng.multivariate_normal(self.mean, self.covariance, num_draws, method="cholesky")
        intercepts = draws[:, 0] + self.sigma * rng.standard_normal(num_draws)
        ready = (values - self.center) / self.scale
        found = np.zeros(values.shape[:2])
        for intercept, slopes in zip(intercepts, draws[:, 1:], strict=True):
            found += expit(intercept + ready @ slopes)
        return found / num_draws

    def save(self, path: Path) -> None:
        """Write the posterior to a JSON file."""
        document = {name: getattr(self, name) for name in ("center", "scale", "mean", "covariance")}
        content = {name: value.tolist() for name, value in document.items()}
        content |= {"names": self.names, "sigma": self.sigma, "info": self.info}
        replace_file(path, lambda file: file.write(json.dumps(content).encode()))

    @classmethod
    def load(cls, path: Path) -> "ColumnPosterior":
        """A posterior from its file.

        Raises:
            ValueError: If the file is missing or is no posterior of columns.
        """
        try:
            found = json.loads(path.read_text())
            arrays = {
                name: np.array(found[name], dtype=np.float64) for name in ("center", "scale", "mean", "covariance")
            }
            size = len(found["names"])
            shapes = {"center": (size,), "scale": (size,), "mean": (size + 1,), "covariance": (size + 1, size + 1)}
            for name, shape in shapes.items():
                if arrays[name].shape != shape or not np.isfinite(arrays[name]).all():
                    raise ValueError(f"{name} of shape {arrays[name].shape} for {size} predictors")
            if not (arrays["scale"] > 0).all() or not 0 < float(found["sigma"]) < np.inf:
                raise ValueError("a scale is not positive")
            return cls(tuple(found["names"]), **arrays, sigma=float(found["sigma"]), info=found["info"])
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise ValueError(
                f"columns posterior {str(path)!r} cannot be read ({error}); fit it again with scripts/fit_columns.py"
            ) from error


def fit_columns(databases: Sequence[ColumnRows], names: Sequence[str], info: dict | None = None) -> ColumnPosterior:
    """The posterior of columns from the columns of gold tables.

    Args:
        databases: Rows of each training database.
        names: Name of each predictor.
        info: What it is fitted on, for the record.

    Raises:
        ValueError: If there is no row of a column that is read and one that is not, or a fit does not converge.
    """
    kept = [rows for rows in databases if len(rows.chosen)]
    values = np.concatenate([rows.values for rows in kept]) if kept else np.zeros((0, len(names)))
    chosen = np.concatenate([rows.chosen for rows in kept]) if kept else np.zeros(0, dtype=bool)
    if not chosen.any() or chosen.all():
        raise ValueError("databases: columns that a gold query reads and columns that none reads are needed")
    center, scale = values.mean(axis=0), values.std(axis=0)
    scale = np.where(scale > 1e-12, scale, 1.0)
    design = np.concatenate([np.ones((len(values), 1)), (values - center) / scale], axis=1)
    owner = np.repeat(np.arange(len(kept)), [len(rows.chosen) for rows in kept])
    start = np.zeros(design.shape[1] + len(kept))
    found: dict[float, _Mode] = {}

    def negative_evidence(log_sigma: float) -> float:
        nonlocal start
        mode = _mode(design, owner, chosen, float(np.exp(log_sigma)), start)
        start = mode.parameters
        found[log_sigma] = mode
        return -mode.evidence

    best = minimize_scalar(
        negative_evidence, bounds=tuple(np.log(SIGMA_RANGE)), method="bounded", options={"xatol": 0.02}
    )
    mode = found[min(found, key=lambda item: -found[item].evidence)]
    size = design.shape[1]
    return ColumnPosterior(
        tuple(names),
        center,
        scale,
        mode.parameters[:size],
        mode.covariance,
        float(np.exp(best.x)),
        {**(info or {}), "num_rows": len(chosen), "num_databases": len(kept)},
    )


class _Mode(NamedTuple):
    """Joint mode of (a, w, u), marginal covariance of (a, w), Laplace approximation of log P(data | sigma)."""

    parameters: Float[np.ndarray, " parameters"]
    covariance: Float[np.ndarray, "fixed fixed"]
    evidence: float


def _mode(
    design: Float[np.ndarray, "rows fixed"],
    owner: Int[np.ndarray, " rows"],
    chosen: Bool[np.ndarray, " rows"],
    sigma: float,
    start: Float[np.ndarray, " parameters"],
) -> _Mode:
    size, num_databases = design.shape[1], int(owner.max()) + 1
    precision = np.full(size + num_databases, 1 / SLOPE_SCALE**2)
    precision[0], precision[size:] = 1 / INTERCEPT_SCALE**2, 1 / sigma**2
    parameters, value = start.copy(), -np.inf
    sign = np.where(chosen, 1.0, -1.0)

    def objective(point: np.ndarray) -> float:
        margin = sign * (design @ point[:size] + point[size:][owner])
        return float(-np.logaddexp(0.0, -margin).sum() - 0.5 * (precision * point**2).sum())

    for _ in range(NEWTON_STEPS):
        p = expit(design @ parameters[:size] + parameters[size:][owner])
        gradient = np.concatenate([design.T @ (chosen - p), np.bincount(owner, chosen - p, num_databases)])
        gradient -= precision * parameters
        hessian = _hessian(design, owner, p * (1 - p), precision)
        factor = cho_factor(hessian)
        step = cho_solve(factor, gradient)
        value = objective(parameters)
        length = 1.0
        while objective(parameters + length * step) < value and length > 1e-8:
            length /= 2
        parameters = parameters + length * step
        if np.abs(gradient @ step) < 1e-9 * max(1.0, abs(value)):
            break
    else:
        raise ValueError(f"columns: the fit did not converge in {NEWTON_STEPS} Newton steps; use fewer predictors")
    p = expit(design @ parameters[:size] + parameters[size:][owner])
    hessian = _hessian(design, owner, p * (1 - p), precision)
    covariance = np.linalg.inv(hessian)[:size, :size]
    evidence = objective(parameters) + 0.5 * np.log(precision).sum() - 0.5 * np.linalg.slogdet(hessian)[1]
    return _Mode(parameters, (covariance + covariance.T) / 2, float(evidence))


def _hessian(design, owner, weight, precision) -> np.ndarray:
    """Negative Hessian of the log posterior of (a, w, u)."""
    size = design.shape[1]
    weighted = design * weight[:, None]
    hessian = np.diag(precision)
    hessian[:size, :size] += weighted.T @ design
    cross = np.stack([np.bincount(owner, column, len(precision) - size) for column in weighted.T])
    hessian[:size, size:] += cross
    hessian[size:, :size] += cross.T
    places = np.arange(size, len(precision))
    hessian[places, places] += np.bincount(owner, weight, len(precision) - size)
    return hessian
