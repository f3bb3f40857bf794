"""Posterior draws of the parameters, by name, with what they were fitted on; saved as NetCDF.

One file holds the posteriors of several variants, a group each, without pickle. Names of databases are
kept as keys (dataset, db_id); `fingerprints` recognise twins of a training database by hashed names.
"""

import json
import os
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib import resources
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
import xarray as xr
from jaxtyping import Float

from bayeslink.display import Drawn
from bayeslink.evidence.channel import COVARIATES, Evidence, Standardisation
from bayeslink.model.autologistic import Support
from bayeslink.model.hierarchy import Variant

__all__ = ["DatabaseDraws", "Posterior", "load_posteriors", "save_posteriors", "shipped_path"]

FORMATS = (2, 3)
"""Versions of the file layout; a file of another version is refused. The third differs in having forms of channels,
and is written only with them, so that a reader of the second refuses what it would misread."""
_AXES = {
    "gamma": ("draws", "channels"),
    "kappa": ("draws", "contexts"),
    "lambda": ("draws", "covariates"),
    "delta": ("draws", "further_edge_types"),
    "alpha_d": ("draws", "databases"),
    "beta_d": ("draws", "databases"),
    "scale_d": ("draws", "databases"),
    "tau": ("draws", "tables"),
}


class DatabaseDraws(NamedTuple):
    """Draws of one database's parameters, log-odds.

    Attributes:
        intercept: alpha_d; one column for each table where tables have effects of their own.
        slopes: s_d gamma, then kappa for the covariates that follow the channels in standardised evidence.
        coupling: beta_d; one column for each edge where kinds of edges are told apart.
    """

    intercept: Float[np.ndarray, " draws"] | Float[np.ndarray, "draws tables"]
    slopes: Float[np.ndarray, "draws channels"]
    coupling: Float[np.ndarray, " draws"] | Float[np.ndarray, "draws edges"]


@dataclass(frozen=True, repr=False)
class Posterior(Drawn):
    """Draws from the posterior of one variant.

    Attributes:
        variant: The variant.
        method: How the draws were made, "laplace" for instance.
        support: All subsets, or the non-empty ones; prediction uses the same.
        standardisation: Mean and scale of each channel on the training databases.
        draws: Population parameters by site, axes draws (and predictors for gamma); alpha_d and beta_d
            with axes draws, databases, where the database effects were drawn.
        databases: Keys (dataset, db_id) of the training databases.
        coupling: The given coupling of `fixed`, else None.
        own_scale: Scale of the wide prior of `unpooled`.
        checks: Named pass/fail checks of the fit.
        info: Numbers about the fit (questions, log marginal likelihood, seconds, ...).
        provenance: Texts about the fit (package versions, data, commit).
        fingerprints: Hashed column names of each database of the population fit, in the order of `trained`; a
            database that an update added has none.
        earlier: Keys of the databases of the population fit that an update started from.
    """

    variant: Variant
    method: str
    support: Support
    standardisation: Standardisation
    draws: Mapping[str, np.ndarray]
    databases: tuple[tuple[str, str], ...]
    coupling: float | None = None
    own_scale: float = 5.0
    checks: Mapping[str, bool] = field(default_factory=dict)
    info: Mapping[str, float | int] = field(default_factory=dict)
    provenance: Mapping[str, str] = field(default_factory=dict)
    fingerprints: tuple[np.ndarray, ...] = ()
    earlier: tuple[tuple[str, str], ...] = ()

    def __post_init__(self) -> None:
        for site, value in self.draws.items():
            if not np.isfinite(value).all():
                raise ValueError(f"draws of {site} hold NaN or infinity; refit the posterior")
        if self.coupling is not None and not np.isfinite(self.coupling):
            raise ValueError(f"coupling={self.coupling}: a finite number of nats is needed")

    @property
    def channels(self) -> tuple[str, ...]:
        """Names of the channels; gamma has one slope for each of `standardisation.predictors`."""
        return self.standardisation.channels

    @property
    def forms(self) -> tuple[str, ...]:
        """Forms of each channel that have a slope; the values alone where there is none."""
        return self.standardisation.forms

    @property
    def num_draws(self) -> int:
        """Number of draws."""
        return len(self.draws["gamma"])

    @property
    def trained(self) -> tuple[tuple[str, str], ...]:
        """Keys of all databases that the draws have learnt from: `earlier`, then `databases`."""
        return (*self.earlier, *self.databases)

    def thinned(self, num_draws: int) -> "Posterior":
        """The posterior with so many of its draws, evenly spaced.

        Raises:
            ValueError: If it does not have as many.
        """
        if not 1 <= num_draws <= self.num_draws:
            raise ValueError(f"num_draws={num_draws}: this posterior has {self.num_draws}; ask for 1 to as many")
        kept = np.arange(num_draws) * self.num_draws // num_draws
        return replace(self, draws={site: value[kept] for site, value in self.draws.items()})

    def seen(self, key: tuple[str, str], evidence: Evidence | None = None) -> DatabaseDraws:
        """Draws of a training database's own parameters.

        Args:
            key: The database.
            evidence: Its standardised evidence, needed where the coupling depends on covariates or edges.

        Raises:
            ValueError: If the database was not in the fit, or its effects were not drawn.
        """
        if key not in self.databases:
            raise ValueError(f"database={key} was not in the fit of this posterior; use `unseen`")
        place = self.databases.index(key)
        structure = self.variant.structure
        drawn: dict[str, np.ndarray] = {}
        for site, varies in (
            ("alpha_d", structure.intercept in ("partial", "own")),
            ("beta_d", structure.coupling in ("partial", "own")),
            ("scale_d", "sigma_scale" in self.draws),
        ):
            if varies and site not in self.draws:
                raise ValueError(f"database={key}: this posterior holds no database effects; refit with them")
            if varies:
                drawn[site] = self.draws[site][:, place]
        coupling = drawn["beta_d"] if "beta_d" in drawn else self._mean_coupling(evidence)
        intercept = drawn.get("alpha_d", self._pooled("alpha"))
        if "tau" in self.draws:
            num_tables = self.draws["tau"].shape[1]
            if evidence is not None and evidence.num_tables != num_tables:
                raise ValueError(
                    f"database={key}: this posterior holds effects of its {num_tables} tables and it now has "
                    f"{evidence.num_tables}; update the population posterior anew"
                )
            intercept = intercept[:, None] + self.draws["tau"]
        elif "sigma_table" in self.draws:
            raise ValueError(f"database={key}: this posterior holds no table effects of it; use `update`")
        return self._draws(intercept, drawn.get("scale_d", np.ones(self.num_draws)), coupling, evidence)

    def unseen(self, seed: int = 0, evidence: Evidence | None = None, num_draws: int | None = None) -> DatabaseDraws:
        """Draws for a database outside the fit: each draw gets fresh effects u, v, w ~ N(0, 1).

        Args:
            seed: Seed of the fresh effects.
            evidence: The database's standardised evidence, needed where the coupling depends on covariates
                or edges.
            num_draws: Number of draws, the population's taken in turn, each time with other fresh effects; None
                takes each once.

        Raises:
            ValueError: If the variant is `unpooled`, which says nothing of an unseen database, or the evidence
                is needed and missing.
        """
        if self.variant is Variant.UNPOOLED:
            raise ValueError("variant=unpooled says nothing of an unseen database; use `hierarchical`")
        if num_draws is not None:
            if num_draws < 1:
                raise ValueError(f"num_draws={num_draws}: at least one draw is needed")
            turns = np.arange(num_draws) % self.num_draws
            return replace(self, draws={site: value[turns] for site, value in self.draws.items()}).unseen(
                seed, evidence
            )
        rng = np.random.default_rng(seed)
        u, v, w = rng.standard_normal((3, self.num_draws))
        rho = self.draws.get("rho", 0.0)
        v = rho * u + np.sqrt(1 - rho**2) * v
        intercept = self._pooled("alpha") + self.draws.get("sigma_alpha", 0.0) * u
        if "sigma_table" in self.draws:
            num_tables = self._needed(evidence, "table effects").num_tables
            fresh = rng.standard_normal((self.num_draws, num_tables))
            intercept = intercept[:, None] + self.draws["sigma_table"][:, None] * fresh
        coupling = self._mean_coupling(evidence) + self.draws.get("sigma_beta", 0.0) * v
        return self._draws(intercept, 1 + self.draws.get("sigma_scale", 0.0) * w, coupling, evidence)

    def draws_for(self, evidence: Evidence, seed: int = 0) -> DatabaseDraws:
        """`seen` for a database whose own effects were drawn, by the fit or an update; `unseen` for any other.

        Args:
            evidence: The database's standardised evidence.
            seed: Seed of the fresh effects of an unseen database.
        """
        if evidence.key in self.databases and not {"alpha_d", "beta_d", "scale_d", "tau"}.isdisjoint(self.draws):
            return self.seen(evidence.key, evidence)
        return self.unseen(seed, evidence)

    def _draws(
        self, intercept: np.ndarray, scale: np.ndarray, coupling: np.ndarray, evidence: Evidence | None
    ) -> DatabaseDraws:
        slopes = scale[:, None] * self.draws["gamma"]
        if "kappa" in self.draws:
            slopes = np.concatenate([slopes, self.draws["kappa"]], axis=1)
        if "delta" in self.draws:
            kinds = self._needed(evidence, "delta").edge_types
            offsets = np.concatenate([np.zeros((self.num_draws, 1)), self.draws["delta"]], axis=1)
            coupling = coupling[:, None] + offsets[:, kinds]
        return DatabaseDraws(intercept, slopes, coupling)

    def _mean_coupling(self, evidence: Evidence | None) -> np.ndarray:
        coupling = self._pooled("beta")
        if "lambda" in self.draws:
            coupling = coupling + self.draws["lambda"] @ self._needed(evidence, "lambda").covariates
        return coupling

    def _needed(self, evidence: Evidence | None, site: str) -> Evidence:
        if evidence is None:
            raise ValueError(f"evidence=None: this posterior has {site}; give the database's standardised evidence")
        return evidence

    def _pooled(self, site: str) -> np.ndarray:
        if site in self.draws:
            return self.draws[site]
        held = self.coupling if site == "beta" and self.coupling is not None else 0.0
        return np.full(self.num_draws, held)

    def update(self, evidence: Evidence, seed: int = 0) -> "Posterior":
        """The posterior after the labelled questions of one database: see `inference.update.update`."""
        from bayeslink.inference.update import update

        return update(self, evidence, seed=seed)

    def to_dataset(self) -> xr.Dataset:
        """The draws as an xarray Dataset with named coordinates and every other field as attributes."""
        variables: dict[str, tuple[tuple[str, ...], np.ndarray]] = {
            site: (self._axes(site), np.asarray(value, dtype=np.float64)) for site, value in self.draws.items()
        }
        given = self.standardisation
        variables["standardisation_mean"] = (("channels",), given.mean)
        variables["standardisation_scale"] = (("channels",), given.scale)
        variables["context_mean"] = (("contexts",), given.context_mean)
        variables["context_scale"] = (("contexts",), given.context_scale)
        variables["covariate_mean"] = (("covariates",), given.covariate_mean)
        variables["covariate_scale"] = (("covariates",), given.covariate_scale)
        if given.forms:
            variables["form_mean"] = (("predictors",), given.form_mean)
            variables["form_scale"] = (("predictors",), given.form_scale)
        if self.fingerprints:
            variables["fingerprint"] = (("hashes",), np.concatenate(self.fingerprints).astype(np.uint64))
            sizes = np.array([len(item) for item in self.fingerprints], dtype=np.int64)
            variables["fingerprint_size"] = (("fingerprints",), sizes)
        return xr.Dataset(
            variables,
            coords={
                "channels": list(self.channels),
                "contexts": np.array(given.context_names, dtype=str),
                "covariates": list(COVARIATES),
                "databases": ["/".join(key) for key in self.databases],
                **self._predictors(),
            },
            attrs={
                "context": json.dumps(given.context),
                **({"forms": json.dumps(given.forms)} if given.forms else {}),
                "format": FORMATS[bool(given.forms)],
                "variant": self.variant.value,
                "method": self.method,
                "support": self.support.value,
                "coupling": np.nan if self.coupling is None else self.coupling,
                "own_scale": self.own_scale,
                "checks": json.dumps(dict(self.checks), sort_keys=True),
                "info": json.dumps(dict(self.info), sort_keys=True),
                "earlier": json.dumps(["/".join(key) for key in self.earlier]),
                "provenance": json.dumps(dict(self.provenance), sort_keys=True),
            },
        )

    @classmethod
    def from_dataset(cls, data: xr.Dataset, source: str = "dataset") -> "Posterior":
        """The posterior that `to_dataset` wrote.

        Raises:
            ValueError: If the layout is another version's or a field is missing.
        """
        if data.attrs.get("format") not in FORMATS:
            raise ValueError(
                f"posterior {source}: layout version {data.attrs.get('format')}, this package reads "
                f"{' and '.join(map(str, FORMATS))}; refit it"
            )
        try:
            channels = tuple(str(name) for name in data["channels"].values)
            keys = tuple(_key(str(name)) for name in data["databases"].values)
            sites = [name for name in data.data_vars if "draws" in data[name].dims]
            prints: tuple[np.ndarray, ...] = ()
            if "fingerprint" in data:
                cuts = np.cumsum(data["fingerprint_size"].values)[:-1]
                prints = tuple(np.split(data["fingerprint"].values.astype(np.uint64), cuts))
            coupling = float(data.attrs["coupling"])
            forms = tuple(json.loads(data.attrs.get("forms", "[]")))
            formed = (forms, data["form_mean"].values, data["form_scale"].values) if forms else ()
            return cls(
                Variant(data.attrs["variant"]),
                str(data.attrs["method"]),
                Support(data.attrs["support"]),
                Standardisation(
                    channels,
                    data["standardisation_mean"].values,
                    data["standardisation_scale"].values,
                    tuple(json.loads(data.attrs["context"])),
                    data["context_mean"].values,
                    data["context_scale"].values,
                    data["covariate_mean"].values,
                    data["covariate_scale"].values,
                    *formed,
                ),
                {str(name): data[name].values for name in sites},
                keys,
                None if np.isnan(coupling) else coupling,
                float(data.attrs["own_scale"]),
                json.loads(data.attrs["checks"]),
                json.loads(data.attrs["info"]),
                json.loads(data.attrs["provenance"]),
                prints,
                tuple(_key(name) for name in json.loads(data.attrs.get("earlier", "[]"))),
            )
        except KeyError as error:
            raise ValueError(f"posterior {source}: {error} is missing; refit it") from error

    def to_arviz(self):
        """The draws as ArviZ InferenceData with one chain and coordinates channels (or predictors) and databases."""
        import arviz as az

        posterior = {site: np.asarray(value)[None] for site, value in self.draws.items()}
        dims = {site: list(self._axes(site)[1:]) for site in _AXES if site in posterior}
        coords = {
            "channels": list(self.channels),
            "contexts": list(self.standardisation.context_names),
            "covariates": list(COVARIATES),
            "databases": ["/".join(key) for key in self.databases],
            **self._predictors(),
        }
        return az.from_dict(posterior=posterior, dims=dims, coords=coords)

    def to_frame(self) -> pd.DataFrame:
        """A row for each parameter, `gamma[bm25]` for instance: mean, sd and the bounds of the 90 % interval."""
        import arviz as az

        return pd.DataFrame(az.summary(self.to_arviz(), kind="stats", hdi_prob=0.9, round_to="none"))

    def __repr__(self) -> str:
        return f"Posterior({self.variant.value}, {self.method}, {self.num_draws} draws, {len(self.trained)} databases)"

    def _axes(self, site: str) -> tuple[str, ...]:
        """Axes of a site's draws: without forms, gamma's second is that of the channels."""
        return ("draws", "predictors") if site == "gamma" and self.forms else _AXES.get(site, ("draws",))

    def _predictors(self) -> dict[str, list[str]]:
        return {"predictors": list(self.standardisation.predictors)} if self.forms else {}


def _key(name: str) -> tuple[str, str]:
    dataset, _, db_id = name.partition("/")
    return dataset, db_id


def shipped_path(kind: str) -> Path:
    """File of the population posteriors that the package carries.

    Args:
        kind: One of `evidence.kinds.KINDS`, such as "lexical" (needs nothing but the package) or "embedding" (the
            extra `embeddings`).

    Raises:
        ValueError: If the package carries none of that kind.
    """
    folder = Path(str(resources.files("bayeslink") / "posteriors"))
    path = folder / f"{kind}.nc"
    if not path.is_file():
        carried = " or ".join(sorted((file.stem for file in folder.glob("*.nc")), reverse=True))
        raise ValueError(
            f"channels={kind!r}: the package carries no such posterior; use {carried}, or give one made with "
            "`bayeslink fit`"
        )
    return path


def save_posteriors(path: Path | str, posteriors: Sequence[Posterior]) -> None:
    """Write posteriors to one NetCDF file, a group for each variant; the file appears whole or not at all.

    Raises:
        ValueError: If there is none or two have the same variant.
    """
    names = [item.variant.value for item in posteriors]
    if not names or len(set(names)) < len(names):
        raise ValueError(f"posteriors of variants {names}: one file holds one or more different variants")
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=path.name, suffix=".tmp")
    os.close(handle)
    os.chmod(temporary, 0o644)
    try:
        for index, item in enumerate(posteriors):
            data = item.to_dataset()
            encoding = {name: {"zlib": True, "complevel": 6} for name in data.data_vars}
            data.to_netcdf(
                temporary,
                mode="w" if index == 0 else "a",
                group=item.variant.value,
                engine="h5netcdf",
                encoding=encoding,
            )
        with open(temporary, "rb") as written:
            os.fsync(written.fileno())
        os.replace(temporary, path)
    finally:
        Path(temporary).unlink(missing_ok=True)


def load_posteriors(path: Path | str) -> dict[Variant, Posterior]:
    """Posteriors of every variant in a file that `save_posteriors` wrote.

    Raises:
        ValueError: If the file is missing, is not such a file, or has another layout version.
    """
    path = Path(path)
    if not path.is_file():
        state = "is a folder" if path.is_dir() else "does not exist"
        raise ValueError(f"posterior={str(path)!r} {state}; give a file made with `bayeslink fit --out`")
    try:
        tree = xr.open_groups(path, engine="h5netcdf")
    except (OSError, ValueError, KeyError) as error:
        raise ValueError(f"posterior={str(path)!r} is not a posterior file; make it with `bayeslink fit`") from error
    found: dict[Variant, Posterior] = {}
    try:
        for group, data in tree.items():
            if group != "/":
                item = Posterior.from_dataset(data.load(), str(path))
                found[item.variant] = item
    finally:
        for data in tree.values():
            data.close()
    if not found:
        raise ValueError(f"posterior={str(path)!r} holds no posterior; make it with `bayeslink fit`")
    return found
