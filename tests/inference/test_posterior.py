"""Posteriors: seen and unseen databases, and files that are whole or refused."""

import warnings
from dataclasses import fields, replace
from pathlib import Path

import numpy as np
import oracles
import pytest
import xarray as xr

from bayeslink.evidence.channel import Evidence, Standardisation, covariates
from bayeslink.inference.posterior import Posterior, load_posteriors, save_posteriors, shipped_path
from bayeslink.model.autologistic import Support
from bayeslink.model.hierarchy import Design, Terms, Variant

KEYS = (("spider", "ships"), ("bird", "a/b"), ("bird", "ports"))


def posterior(variant: Variant = Variant.HIERARCHICAL, num_draws: int = 6, **changes) -> Posterior:
    rng = np.random.default_rng(0)
    draws = {
        site: rng.normal(size=(num_draws, 2)) if site == "gamma" else np.exp(rng.normal(size=num_draws))
        for site in Design(variant, Terms(), 2).sites
    }
    structure = variant.structure
    if structure.intercept in ("partial", "own"):
        draws["alpha_d"] = rng.normal(size=(num_draws, 3))
    if structure.coupling in ("partial", "own"):
        draws["beta_d"] = rng.normal(size=(num_draws, 3))
    fields = {
        "coupling": 0.6 if variant is Variant.FIXED else None,
        "own_scale": 4.0,
        "checks": {"converged": True},
        "info": {"num_questions": 24, "log_marginal": -12.5},
        "provenance": {"commit": "abc"},
        "fingerprints": (
            np.array([1, 2**63 + 1], dtype=np.uint64),
            np.array([], dtype=np.uint64),
            np.array([7], np.uint64),
        ),
    } | changes
    standardisation = Standardisation(("tokens", "bm25"), np.array([0.1, -2.0]), np.array([1.5, 1.0]))
    return Posterior(variant, "laplace", Support.NON_EMPTY, standardisation, draws, KEYS, **fields)


def assert_same(found: Posterior, expected: Posterior) -> None:
    for name in ("variant", "method", "support", "databases", "coupling", "own_scale", "checks", "info", "provenance"):
        assert getattr(found, name) == getattr(expected, name), name
    assert found.channels == expected.channels
    assert found.standardisation.context_names == expected.standardisation.context_names
    for item in fields(Standardisation):
        one, other = (getattr(given.standardisation, item.name) for given in (found, expected))
        np.testing.assert_array_equal(one, other, err_msg=item.name)
    assert set(found.draws) == set(expected.draws)
    for site, value in expected.draws.items():
        np.testing.assert_array_equal(found.draws[site], value)
    assert len(found.fingerprints) == len(expected.fingerprints)
    for one, other in zip(found.fingerprints, expected.fingerprints, strict=True):
        assert one.dtype == other.dtype == np.uint64
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("variant", list(Variant))
def test_seen_database_has_its_own_draws(variant: Variant):
    item = posterior(variant)
    draws = item.seen(("bird", "a/b"))
    structure = variant.structure
    own = structure.intercept in ("partial", "own")
    np.testing.assert_array_equal(draws.intercept, item.draws["alpha_d"][:, 1] if own else item.draws["alpha"])
    expected = {"zero": 0.0, "given": 0.6, "pooled": item.draws.get("beta")}
    if structure.coupling in ("partial", "own"):
        np.testing.assert_array_equal(draws.coupling, item.draws["beta_d"][:, 1])
    else:
        np.testing.assert_array_equal(draws.coupling, np.broadcast_to(expected[structure.coupling], 6))
    np.testing.assert_array_equal(draws.slopes, item.draws["gamma"])


def test_unseen_database_gets_fresh_effects():
    """Never a plug-in at zero: the mean over many draws of (alpha_d - alpha) / sigma is 0, its sd 1."""
    item = posterior(num_draws=4000)
    draws = item.unseen(seed=1)
    u = (draws.intercept - item.draws["alpha"]) / item.draws["sigma_alpha"]
    v = (draws.coupling - item.draws["beta"]) / item.draws["sigma_beta"]
    for effects in (u, v):
        assert abs(effects.mean()) < 4 / np.sqrt(4000)
        assert abs(effects.std() - 1) < 4 / np.sqrt(2 * 4000)
    assert abs(np.corrcoef(u, v)[0, 1]) < 4 / np.sqrt(4000)
    np.testing.assert_array_equal(draws.intercept, item.unseen(seed=1).intercept)
    assert (draws.intercept != item.unseen(seed=2).intercept).all()
    many = item.unseen(seed=1, num_draws=2 * item.num_draws + 1)
    assert len(many.intercept) == len(many.coupling) == len(many.slopes) == 2 * item.num_draws + 1
    np.testing.assert_array_equal(many.slopes[: item.num_draws], many.slopes[item.num_draws : 2 * item.num_draws])
    assert len(np.unique(many.intercept)) == len(many.intercept)
    with pytest.raises(ValueError, match="num_draws=0: at least one draw"):
        item.unseen(num_draws=0)


@pytest.mark.parametrize(
    ("variant", "coupling"), [(Variant.INDEPENDENT, 0.0), (Variant.FIXED, 0.6), (Variant.POOLED, None)]
)
def test_unseen_without_effects_is_the_population(variant: Variant, coupling: float | None):
    item = posterior(variant)
    draws = item.unseen()
    np.testing.assert_array_equal(draws.intercept, item.draws["alpha"])
    np.testing.assert_array_equal(draws.coupling, item.draws["beta"] if coupling is None else np.full(6, coupling))


def test_seen_and_unseen_refusals():
    with pytest.raises(
        ValueError, match=r"database=\('bird', 'cars'\) was not in the fit of this posterior; use `unseen`"
    ):
        posterior().seen(("bird", "cars"))
    item = posterior()
    bare = replace(item, draws={site: item.draws[site] for site in Design(item.variant, Terms(), 2).sites})
    with pytest.raises(ValueError, match=r"holds no database effects; refit with them"):
        bare.seen(KEYS[0])
    bare.unseen()
    with pytest.raises(ValueError, match=r"variant=unpooled says nothing of an unseen database; use `hierarchical`"):
        posterior(Variant.UNPOOLED).unseen()


ALL_TERMS = Terms(True, True, True, True)
RICH = Design(Variant.HIERARCHICAL, ALL_TERMS, 2, 3, 3, 3)


def rich_posterior(num_draws: int = 6, design: Design = RICH, **held) -> Posterior:
    """A posterior with every term that the design has; named sites are held at a value."""
    rng = np.random.default_rng(2)
    draws = {}
    for site, size in design.sites.items():
        vector = site in ("gamma", "kappa", "lambda", "delta")
        draws[site] = 0.5 * rng.normal(size=(num_draws, size) if vector else num_draws)
        if site.startswith("sigma"):
            draws[site] = np.exp(draws[site])
        if site == "rho":
            draws[site] = np.tanh(draws[site])
        if site in held:
            draws[site] = np.full_like(draws[site], held[site])
    for place in design.effects:
        draws[("alpha_d", "beta_d", "scale_d")[place]] = rng.normal(size=(num_draws, 3))
    standardisation = Standardisation(
        ("tokens", "bm25"),
        np.array([0.1, -2.0]),
        np.array([1.5, 1.0]),
        ("log_num_tables", "evidence_max"),
        np.array([1.2, 0.4, 0.6]),
        np.array([0.5, 2.0, 1.5]),
        np.array([1.1, 1.4, 0.2]),
        np.array([0.6, 0.3, 0.1]),
    )
    return Posterior(design.variant, "laplace", Support.ALL, standardisation, draws, KEYS)


def standardised(item: Posterior) -> Evidence:
    """Evidence of one database with an edge of each kind and one more."""
    edges = np.array([[0, 1], [1, 2], [2, 3], [0, 2]])
    values = np.random.default_rng(1).normal(size=(2, 4, 2))
    kinds, numbers = np.array([2, 0, 1, 2]), covariates(edges, 4)
    return item.standardisation.apply(Evidence("spider", "ships", ("tokens", "bm25"), values, edges, kinds, numbers))


def test_a_seen_database_with_all_terms_by_hand():
    item = rich_posterior()
    evidence = standardised(item)
    found = item.seen(("bird", "a/b"), evidence)
    for s in range(6):
        at = {site: np.asarray(value)[s].tolist() for site, value in item.draws.items()}
        assert found.intercept[s] == at["alpha_d"][1]
        slopes = [at["scale_d"][1] * g for g in at["gamma"]]
        np.testing.assert_allclose(found.slopes[s], [*slopes, *at["kappa"]], rtol=1e-12)
        kinds = [at["beta_d"][1] + offset for offset in (0.0, *at["delta"])]
        # lambda is inside beta_d already.
        np.testing.assert_allclose(found.coupling[s], [kinds[2], kinds[0], kinds[1], kinds[2]], rtol=1e-12)


def test_an_unseen_database_with_all_terms_by_hand():
    item = rich_posterior()
    evidence = standardised(item)
    found = item.unseen(5, evidence)
    effects = np.random.default_rng(5).standard_normal((3, 6))
    for s in range(6):
        sites = {site: np.asarray(value)[s].tolist() for site, value in item.draws.items()}
        numbers = effects[:, s].tolist()
        alpha, slopes, kinds = oracles.local_parameters("hierarchical", sites, numbers, evidence.covariates.tolist())
        np.testing.assert_allclose(found.intercept[s], alpha, rtol=1e-12)
        np.testing.assert_allclose(found.slopes[s], [*slopes, *sites["kappa"]], rtol=1e-12)
        np.testing.assert_allclose(found.coupling[s], [kinds[2], kinds[0], kinds[1], kinds[2]], rtol=1e-12)


def test_fresh_effects_have_the_correlation_and_the_spread():
    terms = Terms(correlated=True, slope_scale=True)
    item = rich_posterior(4000, Design(Variant.HIERARCHICAL, terms, 2), rho=-0.6, sigma_scale=0.3, gamma=1.0)
    draws = item.unseen(seed=1)
    u = (draws.intercept - item.draws["alpha"]) / item.draws["sigma_alpha"]
    v = (draws.coupling - item.draws["beta"]) / item.draws["sigma_beta"]
    w = (draws.slopes[:, 0] - 1) / 0.3
    for effects in (u, v, w):
        assert abs(effects.mean()) < 4 / np.sqrt(4000)
        assert abs(effects.std() - 1) < 4 / np.sqrt(2 * 4000)
    # The standard error of a correlation r is (1 - r^2) / sqrt(n).
    assert abs(np.corrcoef(u, v)[0, 1] + 0.6) < 4 * (1 - 0.6**2) / np.sqrt(4000)
    for effects in (u, v):
        assert abs(np.corrcoef(effects, w)[0, 1]) < 4 / np.sqrt(4000)


def test_a_pooled_coupling_takes_its_covariates_in_a_seen_database_too():
    item = rich_posterior(design=RICH._replace(variant=Variant.POOLED_COUPLING, terms=Terms(coupling_covariates=True)))
    evidence = standardised(item)
    expected = item.draws["beta"] + item.draws["lambda"] @ evidence.covariates
    for draws in (item.seen(KEYS[0], evidence), item.unseen(0, evidence)):
        np.testing.assert_allclose(draws.coupling, expected, rtol=1e-12)


def test_draws_for_a_database_are_its_own_where_they_were_drawn():
    item = rich_posterior()
    evidence = replace(standardised(item), dataset=KEYS[0][0], db_id=KEYS[0][1])
    other = replace(evidence, db_id="elsewhere")
    bare = replace(item, draws={site: value for site, value in item.draws.items() if not site.endswith("_d")})
    for holder, asked, expected in (
        (item, evidence, item.seen(KEYS[0], evidence)),
        (item, other, item.unseen(3, other)),
        (bare, evidence, bare.unseen(3, evidence)),
    ):
        for found, part in zip(holder.draws_for(asked, 3), expected, strict=True):
            np.testing.assert_array_equal(found, part)


def test_table_effects_of_a_database_that_has_changed_are_refused():
    item = rich_posterior()
    num_tables = standardised(item).num_tables
    item = replace(item, draws=item.draws | {"tau": np.zeros((item.num_draws, num_tables + 1))})
    message = rf"effects of its {num_tables + 1} tables and it now has {num_tables}; update the population"
    with pytest.raises(ValueError, match=message):
        item.seen(KEYS[0], standardised(item))


def test_missing_evidence_is_refused():
    whole, kinds = rich_posterior(), rich_posterior(design=RICH._replace(terms=Terms(edge_types=True)))
    covaried = rich_posterior(design=RICH._replace(terms=Terms(coupling_covariates=True)))
    with pytest.raises(ValueError, match=r"evidence=None: this posterior has lambda; give the database's standardised"):
        whole.unseen()
    for site, ask in (("delta", kinds.unseen), ("lambda", covaried.unseen), ("delta", lambda: whole.seen(KEYS[0]))):
        with pytest.raises(ValueError, match=rf"evidence=None: this posterior has {site}"):
            ask()
    # The database's own coupling has its covariates in it.
    covaried.seen(KEYS[0])
    rich_posterior(design=RICH._replace(terms=Terms(True, True))).unseen()


def test_a_posterior_without_the_weights_of_seen_databases_refuses_them():
    item = rich_posterior()
    bare = replace(item, draws={site: value for site, value in item.draws.items() if site != "scale_d"})
    with pytest.raises(ValueError, match=r"holds no database effects; refit with them"):
        bare.seen(KEYS[0], standardised(item))


@pytest.mark.parametrize("terms", [ALL_TERMS, Terms(correlated=True), Terms(edge_types=True)])
def test_netcdf_round_trip_with_terms(tmp_path: Path, terms: Terms):
    items = [
        rich_posterior(design=RICH._replace(terms=terms, variant=variant))
        for variant in (Variant.HIERARCHICAL, Variant.POOLED_COUPLING, Variant.INDEPENDENT)
    ]
    save_posteriors(tmp_path / "a.nc", items)
    loaded = load_posteriors(tmp_path / "a.nc")
    for item in items:
        found = loaded[item.variant]
        assert_same(found, item)
        evidence = standardised(item)
        np.testing.assert_array_equal(standardised(found).values, evidence.values)
        for one, other in zip(found.unseen(3, evidence), item.unseen(3, evidence), strict=True):
            np.testing.assert_array_equal(one, other)


def test_netcdf_round_trip_of_every_variant(tmp_path: Path):
    path = tmp_path / "new" / "posteriors.nc"
    items = [posterior(variant) for variant in Variant]
    save_posteriors(path, items)
    loaded = load_posteriors(path)
    assert set(loaded) == set(Variant)
    for item in items:
        assert_same(loaded[item.variant], item)
    assert [entry.name for entry in path.parent.iterdir()] == ["posteriors.nc"]


def test_round_trip_without_fingerprints(tmp_path: Path):
    save_posteriors(tmp_path / "a.nc", [posterior(fingerprints=())])
    assert_same(load_posteriors(tmp_path / "a.nc")[Variant.HIERARCHICAL], posterior(fingerprints=()))


def test_file_is_hdf5_and_holds_no_pickle(tmp_path: Path):
    path = tmp_path / "a.nc"
    save_posteriors(path, [posterior()])
    assert path.read_bytes()[:8] == b"\x89HDF\r\n\x1a\n"
    for data in xr.open_groups(path, engine="h5netcdf").values():
        assert all(variable.dtype.kind in "fiuUTO" for variable in data.variables.values())
        for variable in data.variables.values():
            if variable.dtype.kind == "O":
                assert all(isinstance(entry, str) for entry in variable.values.tolist())
        assert all(isinstance(value, str | int | float | np.number) for value in data.attrs.values())
        data.close()


def test_a_missing_file_is_refused(tmp_path: Path):
    with pytest.raises(
        ValueError, match=r"posterior='.*none.nc' does not exist; give a file made with `bayeslink fit --out`"
    ):
        load_posteriors(tmp_path / "none.nc")


@pytest.mark.parametrize("share", [0.0, 0.3, 0.9])
def test_a_truncated_file_is_refused(tmp_path: Path, share: float):
    path = tmp_path / "a.nc"
    save_posteriors(path, [posterior(), posterior(Variant.INDEPENDENT)])
    whole = path.read_bytes()
    path.write_bytes(whole[: int(share * len(whole))])
    with pytest.raises(ValueError, match=r"posterior='.*a.nc' is not a posterior file; make it with `bayeslink fit`"):
        load_posteriors(path)


def test_another_file_is_refused(tmp_path: Path):
    path = tmp_path / "a.nc"
    path.write_text("not a posterior")
    with pytest.raises(ValueError, match=r"is not a posterior file"):
        load_posteriors(path)
    xr.Dataset({"other": ("x", np.zeros(2))}).to_netcdf(path, engine="h5netcdf")
    with pytest.raises(ValueError, match=r"holds no posterior; make it with `bayeslink fit`"):
        load_posteriors(path)


def test_another_version_and_missing_fields_are_refused(tmp_path: Path):
    path = tmp_path / "a.nc"
    data = posterior().to_dataset()
    data.assign_attrs(format=99).to_netcdf(path, engine="h5netcdf", group="hierarchical")
    with pytest.raises(ValueError, match=r"layout version 99, this package reads 2 and 3; refit it"):
        load_posteriors(path)
    for lacking in (
        data.drop_vars("standardisation_mean"),
        data.drop_vars("context_scale"),
        data.drop_vars("covariate_mean"),
        data.drop_attrs(),
    ):
        path.unlink()
        lacking.to_netcdf(path, engine="h5netcdf", group="hierarchical")
        with pytest.raises(ValueError, match=r"a.nc: (.*is missing|layout version None.*); refit it"):
            load_posteriors(path)


def test_files_of_the_first_version_are_refused(tmp_path: Path):
    """They know no covariates."""
    path = tmp_path / "a.nc"
    names = ("context_mean", "context_scale", "covariate_mean", "covariate_scale")
    old = posterior().to_dataset().drop_vars([*names, "contexts", "covariates"])
    old.assign_attrs(format=1).to_netcdf(path, engine="h5netcdf", group="hierarchical")
    with pytest.raises(ValueError, match=r"a.nc: layout version 1, this package reads 2 and 3; refit it"):
        load_posteriors(path)


def test_a_failed_write_leaves_the_old_file(tmp_path: Path, monkeypatch):
    path = tmp_path / "a.nc"
    save_posteriors(path, [posterior()])
    before = path.read_bytes()
    written = xr.Dataset.to_netcdf
    calls = []

    def full_disk(self, *arguments, **keywords):
        calls.append(keywords["group"])
        if len(calls) == 2:
            raise OSError("no space left")
        return written(self, *arguments, **keywords)

    monkeypatch.setattr(xr.Dataset, "to_netcdf", full_disk)
    with pytest.raises(OSError, match="no space left"):
        save_posteriors(path, [posterior(Variant.POOLED), posterior(Variant.INDEPENDENT)])
    assert calls == ["pooled", "independent"]
    assert path.read_bytes() == before
    assert [entry.name for entry in tmp_path.iterdir()] == ["a.nc"]


def test_one_file_holds_different_variants(tmp_path: Path):
    with pytest.raises(ValueError, match=r"one file holds one or more different variants"):
        save_posteriors(tmp_path / "a.nc", [])
    with pytest.raises(ValueError, match=r"one file holds one or more different variants"):
        save_posteriors(tmp_path / "a.nc", [posterior(), posterior()])
    assert not list(tmp_path.iterdir())


FORMED = Standardisation(
    ("tokens", "bm25"),
    np.array([0.1, -2.0]),
    np.array([1.5, 1.0]),
    forms=("value", "rank"),
    form_mean=np.array([0.0, 0.0, 0.3, -0.2]),
    form_scale=np.array([1.0, 1.0, 0.7, 0.9]),
)


def formed_posterior() -> Posterior:
    """A posterior with a slope for each of two forms of two channels."""
    item = posterior(Variant.POOLED)
    draws = {**item.draws, "gamma": np.random.default_rng(4).normal(size=(6, 4))}
    return replace(item, standardisation=FORMED, draws=draws)


def test_forms_survive_a_file(tmp_path: Path):
    path = tmp_path / "a.nc"
    save_posteriors(path, [formed_posterior(), posterior(Variant.INDEPENDENT)])
    found = load_posteriors(path)
    assert_same(found[Variant.POOLED], formed_posterior())
    assert found[Variant.POOLED].forms == ("value", "rank")
    assert found[Variant.POOLED].standardisation.predictors == ("tokens", "bm25", "rank_tokens", "rank_bm25")
    assert_same(found[Variant.INDEPENDENT], posterior(Variant.INDEPENDENT))
    assert found[Variant.INDEPENDENT].forms == ()
    data = formed_posterior().to_dataset()
    assert data["gamma"].dims == ("draws", "predictors")
    assert data.attrs["format"] == 3
    data.drop_vars("form_scale").to_netcdf(path, engine="h5netcdf", group="pooled")
    with pytest.raises(ValueError, match=r"form_scale.* is missing; refit it"):
        load_posteriors(path)


def test_a_file_without_forms_is_what_it_was_before_there_were_any():
    """Neither a variable nor an attribute is new, so that files of either age read alike."""
    data = posterior().to_dataset()
    assert data.attrs["format"] == 2
    assert data["gamma"].dims == ("draws", "channels")
    assert not [name for name in (*data.variables, *data.attrs) if "form_" in str(name) or name == "forms"]
    assert "predictors" not in data.coords


@pytest.mark.parametrize("kind", ["lexical", "embedding"])
def test_shipped_files_are_of_before_there_were_forms(kind: str):
    for item in load_posteriors(shipped_path(kind)).values():
        assert item.forms == ()
        assert item.standardisation.predictors == item.channels
        assert item.to_dataset().attrs["format"] == 2


def test_arviz_coordinates_with_forms():
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", category=FutureWarning, message=r"\s*ArviZ is undergoing")
        data = formed_posterior().to_arviz().posterior
    assert data["gamma"].dims == ("chain", "draw", "predictors")
    assert data["predictors"].values.tolist() == ["tokens", "bm25", "rank_tokens", "rank_bm25"]


def test_arviz_coordinates():
    with warnings.catch_warnings():
        # Until pyproject says so: arviz announces its own rewrite at import.
        warnings.filterwarnings("ignore", category=FutureWarning, message=r"\s*ArviZ is undergoing")
        data = posterior().to_arviz().posterior
    assert dict(data.sizes) == {"chain": 1, "draw": 6, "channels": 2, "databases": 3}
    assert data["channels"].values.tolist() == ["tokens", "bm25"]
    assert data["databases"].values.tolist() == ["spider/ships", "bird/a/b", "bird/ports"]
    assert data["gamma"].dims == ("chain", "draw", "channels")
    assert data["alpha_d"].dims == ("chain", "draw", "databases")
    np.testing.assert_array_equal(data["beta_d"].values[0], posterior().draws["beta_d"])


def test_arviz_coordinates_with_all_terms():
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", category=FutureWarning, message=r"\s*ArviZ is undergoing")
        data = rich_posterior().to_arviz().posterior
    assert data["kappa"].dims == ("chain", "draw", "contexts")
    assert data["contexts"].values.tolist() == ["log_num_tables", "max_tokens", "max_bm25"]
    assert data["lambda"].dims == ("chain", "draw", "covariates")
    assert data["covariates"].values.tolist() == ["log_num_tables", "mean_degree", "isolated_share"]
    assert data["scale_d"].dims == ("chain", "draw", "databases")
    assert data["delta"].shape == (1, 6, 2)


def test_an_unknown_shipped_posterior_is_refused():
    with pytest.raises(
        ValueError, match=r"channels='other': the package carries no such posterior; use lexical or learned or emb"
    ):
        shipped_path("other")
