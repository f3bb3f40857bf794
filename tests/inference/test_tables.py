"""Table effects: derivatives against differences of the oracle, modes against quadrature, scales against the truth."""

import math
from dataclasses import replace

import differences
import jax.numpy as jnp
import numpy as np
import oracles
import pytest
from worlds import ISOLATED, PATH, STAR, draw_selections, edge_array, make_evidence, rich_world, simulate

from bayeslink.evidence.channel import Evidence
from bayeslink.inference import tables as module
from bayeslink.inference.laplace import Settings, inner_modes, laplace
from bayeslink.inference.packing import pack
from bayeslink.inference.population import pack_population, unpack_population
from bayeslink.inference.tables import TableScale, adjusted, database_modes, fit_table_effects, num_tables_of
from bayeslink.model.autologistic import Support
from bayeslink.model.hierarchy import Design, Terms, Variant
from bayeslink.model.priors import Priors

SITES = {
    "alpha": -0.3,
    "gamma": [0.7, -0.4],
    "beta": 0.5,
    "sigma_alpha": 0.6,
    "sigma_beta": 0.4,
    "kappa": [0.3, -0.5, 0.2],
    "lambda": [0.2, -0.3, 0.1],
    "delta": [0.4, -0.3],
    "sigma_scale": 0.3,
    "rho": -0.4,
}
SIGMA = 0.8


def settings_of(design: Design, support: Support = Support.ALL) -> Settings:
    return Settings(design, Priors(), support)


def point_of(design: Design) -> jnp.ndarray:
    return pack_population({site: jnp.array(SITES[site]) for site in design.sites}, design)


def paper(variant: Variant) -> Design:
    return Design(variant, Terms(), 2)


def log_likelihood(item: Evidence, variant: str, sites: dict, effects, tables, non_empty: bool = False) -> float:
    """The oracle's, with a channel for each table that is 1 there: its slope is the table's effect."""
    alpha, slopes, kinds = oracles.local_parameters(variant, sites, effects, item.covariates.tolist())
    coupling = [kinds[kind] if len(kinds) > 1 else kinds[0] for kind in item.edge_types.tolist()]
    units = np.eye(item.num_tables).tolist()
    values = [[[*row, *unit] for row, unit in zip(rows, units, strict=True)] for rows in item.values.tolist()]
    along = [*slopes, *sites.get("kappa", ()), *tables]
    return oracles.log_likelihood(values, item.gold.tolist(), item.edges.tolist(), alpha, along, coupling, non_empty)


@pytest.fixture(scope="module")
def rich():
    """Four databases of 3, 4, 4 and 5 tables with contexts and kinds of edges."""
    return rich_world()


@pytest.fixture(scope="module")
def rich_design(rich) -> Design:
    return Design.of(pack(rich), Variant.HIERARCHICAL, Terms(True, True, True, True))


def derivatives(batch, design: Design, effects: np.ndarray, tables: np.ndarray, support: Support):
    phi, settings = point_of(design), settings_of(design, support)
    local = settings.local(batch, phi, jnp.asarray(effects))
    found = module._derivatives(
        batch, local, jnp.asarray(tables), settings.directions(phi), jnp.asarray(SIGMA), support
    )
    return [np.asarray(part) for part in found]


@pytest.mark.parametrize("support", list(Support))
def test_derivatives_equal_differences_of_the_oracle(rich, rich_design, support: Support):
    """Listed and eliminated, in (effects, tau / sigma_table); padded tables have none and change nothing."""
    rng = np.random.default_rng(0)
    effects, tables = 0.5 * rng.normal(size=(4, 3)), 0.7 * rng.normal(size=(4, 5))
    listed, eliminated = pack(rich), pack(rich, max_listed=0)
    found = derivatives(listed, rich_design, effects, tables, support)
    for part, same in zip(found, derivatives(eliminated, rich_design, effects, tables, support), strict=True):
        np.testing.assert_allclose(part, same, rtol=1e-9, atol=1e-10)
    for d, item in enumerate(rich):
        size = item.num_tables

        def value(point: np.ndarray, item=item) -> float:
            numbers = [SIGMA * tau for tau in point[3:].tolist()]
            return log_likelihood(
                item, "hierarchical", SITES, point[:3].tolist(), numbers, support is Support.NON_EMPTY
            )

        point = np.concatenate([effects[d], tables[d, :size] / SIGMA])
        assert found[0][d] == pytest.approx(value(point), rel=1e-10)
        kept = np.arange(3 + size)
        # Fourth-order differences with step 1e-3 are good to about 1e-9.
        np.testing.assert_allclose(found[1][d, kept], differences.gradient(value, point), rtol=1e-6, atol=1e-7)
        assert (found[1][d, 3 + size :] == 0).all()
        assert (found[2][d, 3 + size :] == 0).all()
        if d < 2:  # The oracle's Hessian is slow for larger schemas, whose derivatives agree listed and eliminated.
            expected = differences.hessian(value, point)
            np.testing.assert_allclose(found[2][d][np.ix_(kept, kept)], expected, rtol=1e-5, atol=1e-6)
    tables[0, 3:] = 40.0
    for part, same in zip(derivatives(listed, rich_design, effects, tables, support), found, strict=True):
        np.testing.assert_allclose(part, same, rtol=1e-12, atol=1e-12)


def test_several_blocks_of_a_database_add_up():
    """40 questions are two blocks; their derivatives are those of the halves together."""
    item = simulate(7, 1, 40, shapes=(STAR,))[0]
    effects, tables = np.full((1, 3), 0.2), np.array([[0.3, -0.2, 0.5, 0.0]])
    parts = [pack([item.select_questions(chosen)]) for chosen in (np.arange(32), np.arange(32, 40), np.arange(40))]
    first, second, whole = (
        derivatives(part, paper(Variant.HIERARCHICAL), effects, tables, Support.ALL) for part in parts
    )
    for one, other, both in zip(first, second, whole, strict=True):
        np.testing.assert_allclose(one + other, both, rtol=1e-10, atol=1e-12)


def sites_of(design: Design) -> dict:
    return {site: SITES[site] for site in design.sites}


def modes(batch, design: Design, sigma: float, size: int | None = None, max_steps: int = 30):
    size = num_tables_of(batch) if size is None else size
    start = jnp.zeros((batch.num_databases, 3)), jnp.zeros((batch.num_databases, size))
    return database_modes(batch, point_of(design), jnp.asarray(sigma), *start, settings_of(design), max_steps)


def test_modes_are_those_of_the_oracle(rich, rich_design):
    """The oracle's log joint is flat in effects and table effects at the modes, and curved as stated."""
    for batch in (pack(rich), pack(rich, max_listed=0)):
        found = modes(batch, rich_design, SIGMA)
        assert float(found.gradient) < 1e-6
        for d, item in enumerate(rich):

            def joint(point: np.ndarray, item=item) -> float:
                numbers = [SIGMA * tau for tau in point[3:].tolist()]
                data = log_likelihood(item, "hierarchical", SITES, point[:3].tolist(), numbers)
                return data - float(point @ point) / 2

            tables = np.asarray(found.tables)[d]
            point = np.concatenate([np.asarray(found.effects)[d], tables[: item.num_tables] / SIGMA])
            np.testing.assert_allclose(differences.gradient(joint, point), 0, atol=1e-6)
            assert (tables[item.num_tables :] == 0).all()
        assert np.abs(found.tables).max() > 0.1
        expected = -differences.hessian(joint, point)
        np.testing.assert_allclose(found.precision[3], expected, rtol=1e-5, atol=1e-5)


@pytest.fixture(scope="module")
def tiny() -> Evidence:
    """One database of two joined tables with eight questions."""
    rng = np.random.default_rng(2)
    values, edges = rng.normal(size=(8, 2, 2)), edge_array([(0, 1)])
    return make_evidence(values, edges, draw_selections(rng, -0.3 + values @ [0.7, -0.4] + [1.0, -1.0], edges, 0.5))


@pytest.mark.parametrize(("sigma", "tolerance"), [(0.05, 1e-4), (0.8, 0.05)])
def test_log_marginal_equals_quadrature(tiny, sigma: float, tolerance: float):
    """No effects but the tables': 24 x 24 nodes of tau. The Laplace error vanishes with sigma."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(24)
    log_weights = np.log(weights / np.sqrt(2 * np.pi)).tolist()
    sites = sites_of(paper(Variant.POOLED))
    terms = [
        log_u + log_v + log_likelihood(tiny, "pooled", sites, (0.0,) * 3, [sigma * u, sigma * v])
        for u, log_u in zip(nodes.tolist(), log_weights, strict=True)
        for v, log_v in zip(nodes.tolist(), log_weights, strict=True)
    ]
    assert log_likelihood(tiny, "pooled", sites, (0.0,) * 3, [0.0, 0.0]) != pytest.approx(
        oracles.log_sum_exp(terms), abs=1e-4
    )
    found = modes(pack([tiny]), paper(Variant.POOLED), sigma)
    assert float(found.log_marginal[0]) == pytest.approx(oracles.log_sum_exp(terms), abs=tolerance)


@pytest.mark.parametrize("variant", [Variant.HIERARCHICAL, Variant.INDEPENDENT_HIERARCHICAL, Variant.UNPOOLED])
def test_without_tables_the_modes_are_those_without_table_effects(batch, variant: Variant):
    design = paper(variant)
    expected = inner_modes(batch, point_of(design), jnp.zeros((3, 3)), settings_of(design))
    log_marginal = expected.log_joint - 0.5 * jnp.linalg.slogdet(expected.precision)[1]
    none, little = modes(batch, design, SIGMA, size=0), modes(batch, design, 1e-5)
    assert none.tables.shape == (3, 0)
    np.testing.assert_allclose(none.effects, expected.effects, atol=1e-6)
    np.testing.assert_allclose(none.precision, expected.precision, rtol=1e-6)
    np.testing.assert_allclose(none.log_marginal, log_marginal, rtol=1e-8)
    np.testing.assert_allclose(little.log_marginal, log_marginal, atol=1e-7)
    np.testing.assert_allclose(little.tables, 0, atol=1e-8)


@pytest.mark.parametrize("variant", [Variant.POOLED, Variant.INDEPENDENT])
def test_without_any_effect_the_log_marginal_is_the_log_likelihood(batch, world, variant: Variant):
    found = modes(batch, paper(variant), SIGMA, size=0)
    expected = [log_likelihood(item, variant.value, sites_of(paper(variant)), (0.0,) * 3, [0.0] * 4) for item in world]
    np.testing.assert_allclose(found.log_marginal, expected, rtol=1e-10)
    assert float(found.gradient) == 0


def test_adjusted_moves_what_it_says(rich_design):
    settings = settings_of(rich_design)
    moved = unpack_population(
        adjusted(point_of(rich_design), jnp.array([0.2, -0.1, math.log(1.5)]), settings), rich_design
    )
    expected = SITES | {"alpha": -0.1, "beta": 0.4, "gamma": [1.05, -0.6], "kappa": [0.45, -0.75, 0.3]}
    for site, value in moved.items():
        np.testing.assert_allclose(value, expected[site], rtol=1e-10, err_msg=site)


def with_tables(sigma_table: float) -> list[Evidence]:
    """Eight databases of four tables with 30 questions, drawn with table effects of this spread."""
    rng = np.random.default_rng(6)
    world = []
    for d in range(8):
        edges = edge_array((PATH, STAR, ISOLATED)[d % 3])
        values = rng.normal(size=(30, 4, 2))
        unary = -0.7 + values @ [1.0, -0.5] + sigma_table * rng.normal(size=4)
        world.append(make_evidence(values, edges, draw_selections(rng, unary, edges, 0.6), f"db{d}"))
    return world


def fitted(sigma_table: float) -> TableScale:
    batch, design = pack(with_tables(sigma_table)), paper(Variant.POOLED)
    return fit_table_effects(batch, design, laplace(batch, design, Priors()).mode, Priors())


def test_a_known_spread_of_tables_is_found():
    """32 table effects tell a spread of 1 to within 1 / sqrt(64) = 1/8 at best; 4 of that are allowed."""
    found = fitted(1.0)
    assert 0.5 < found.sigma_table < 1.5
    assert found.log_marginal > found.log_marginal_without + 20
    assert found.slope_factor > 1  # Integrating over tables flattened the slopes of the fit without them.


def test_without_table_effects_the_spread_is_small():
    found = fitted(0.0)
    assert found.sigma_table < 0.3
    assert found.log_marginal < found.log_marginal_without + 3
    assert found.slope_factor == pytest.approx(1, abs=0.1)
    assert found.intercept_shift == pytest.approx(0, abs=0.1)


def test_no_convergence_raises_in_a_sentence(batch, monkeypatch):
    steps = module.database_modes
    monkeypatch.setattr(module, "database_modes", lambda *arguments: steps(*arguments, max_steps=0))
    design = paper(Variant.POOLED)
    with pytest.raises(FloatingPointError, match=r"table effects: a database does not converge in 30 steps"):
        fit_table_effects(batch, design, np.asarray(point_of(design)), Priors())


def test_a_search_that_does_not_end_raises_in_a_sentence(batch):
    design = paper(Variant.POOLED)
    with pytest.raises(FloatingPointError, match="table effects: no maximum in 7 evaluations; give max_steps"):
        fit_table_effects(batch, design, np.asarray(point_of(design)), Priors(), max_steps=7)


def test_a_variant_without_a_coupling_has_no_shift_of_it():
    batch, design = pack(with_tables(1.0)), paper(Variant.INDEPENDENT_HIERARCHICAL)
    found = fit_table_effects(batch, design, laplace(batch, design, Priors()).mode, Priors())
    assert found.coupling_shift == 0
    assert found.intercept_shift != 0
    assert found.log_marginal > found.log_marginal_without + 5


def test_few_steps_are_told_by_the_gradient(batch):
    design = paper(Variant.HIERARCHICAL)
    assert float(modes(batch, design, 1.0, max_steps=1).gradient) > 1e-4
    assert float(modes(batch, design, 1.0).gradient) < 1e-6


def test_num_tables_counts_the_widest_bucket(rich, world):
    assert num_tables_of(pack(rich)) == 5
    assert num_tables_of(pack([replace(world[0])])) == 4
