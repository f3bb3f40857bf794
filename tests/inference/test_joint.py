"""The joint mode: that it is one, and that its sigma is as wrong as MODEL.md section 4 says."""

import differences
import jax.numpy as jnp
import numpy as np
import oracles
import pytest
from numpyro.infer.util import potential_energy
from worlds import rich_world, simulate

from bayeslink.inference import joint as module
from bayeslink.inference import packing
from bayeslink.inference.fit import fit
from bayeslink.inference.joint import JointFit, draw_joint, laplace_joint
from bayeslink.inference.laplace import laplace
from bayeslink.inference.packing import log_partition, pack
from bayeslink.inference.population import unpack_population
from bayeslink.model.autologistic import Support
from bayeslink.model.hierarchy import EFFECTS, Design, Terms, Variant, hierarchical_model
from bayeslink.model.priors import Priors

FITTED = [Variant.INDEPENDENT, Variant.POOLED_COUPLING, Variant.HIERARCHICAL, Variant.UNPOOLED]


def paper(variant: Variant) -> Design:
    """The paper's variant for two channels."""
    return Design(variant, Terms(), 2)


def coordinates(found: JointFit) -> np.ndarray:
    """All coordinates in one vector: phi, then each database's effects."""
    return np.concatenate([found.mode, found.effects[:, list(found.design.effects)].reshape(-1)])


def named(point: np.ndarray, design: Design, num_databases: int) -> dict[str, np.ndarray]:
    """Sites on their natural scale and all three effects from all coordinates in one vector."""
    values = {site: np.asarray(value) for site, value in unpack_population(jnp.array(point), design).items()}
    effects = np.zeros((num_databases, 3))
    effects[:, list(design.effects)] = point[design.size :].reshape(num_databases, -1)
    return values | dict(zip(EFFECTS, effects.T, strict=True))


def log_density(design: Design, world, point: np.ndarray) -> float:
    """The oracle's density with the Jacobians of log sigma and arctanh rho."""
    values = named(point, design, len(world))
    sites = {site: values[site].tolist() for site in design.sites}
    jacobian = sum(np.log(value) for site, value in sites.items() if site.startswith("sigma"))
    jacobian += np.log(1 - sites.get("rho", 0.0) ** 2)
    effects = [values[name] for name in EFFECTS]
    return oracles.log_density(design.variant.value, world, sites, *effects[:2], w=effects[2]) + jacobian


def assert_is_the_mode(found: JointFit, world) -> None:
    mode = coordinates(found)
    objective = lambda point: log_density(found.design, world, point)  # noqa: E731
    assert found.log_density == pytest.approx(objective(mode), rel=1e-10)
    np.testing.assert_allclose(differences.gradient(objective, mode), 0, atol=1e-5)
    precision = np.linalg.inv(found.covariance)
    # The whole Hessian costs 16 d^2 brute-force densities; three random directions tell as much.
    for direction in np.random.default_rng(0).normal(size=(3, len(mode))):
        along = differences.hessian(lambda t, way=direction: objective(mode + t[0] * way), np.zeros(1))[0, 0]
        assert -along == pytest.approx(direction @ precision @ direction, rel=1e-6)


@pytest.mark.parametrize("variant", FITTED)
def test_mode_and_covariance_are_those_of_the_oracle_density(batch, world, variant: Variant):
    assert_is_the_mode(laplace_joint(batch, paper(variant), Priors()), world)


def test_mode_and_covariance_with_all_terms_and_contexts():
    world = rich_world()
    batch = pack(world)
    design = Design.of(batch, Variant.HIERARCHICAL, Terms(True, True, True, True))
    assert_is_the_mode(laplace_joint(batch, design, Priors()), world)


def test_density_is_the_numpyro_model(batch):
    design = paper(Variant.HIERARCHICAL)
    found = laplace_joint(batch, design, Priors())
    values = named(coordinates(found), design, 3)
    free = {
        site: jnp.asarray(np.log(value) if site.startswith("sigma") else value)
        for site, value in values.items()
        if site != "w"
    }
    arguments = (batch, design, Priors(), log_partition)
    assert -potential_energy(hierarchical_model, arguments, {}, free) == pytest.approx(found.log_density, rel=1e-10)


def test_draws_have_the_stated_mean_and_covariance(batch):
    found = laplace_joint(batch, paper(Variant.HIERARCHICAL), Priors())
    phi, effects = draw_joint(found, 4000, np.random.default_rng(0))
    assert (effects[:, :, 2] == 0).all()
    points = np.concatenate([phi, effects[:, :, :2].reshape(4000, -1)], axis=1)
    centre = coordinates(found)
    sizes = np.diag(found.covariance)
    assert (np.abs(points.mean(axis=0) - centre) < 4 * np.sqrt(sizes / 4000)).all()
    errors = np.sqrt((np.outer(sizes, sizes) + found.covariance**2) / 4000)
    assert (np.abs(np.cov(points.T) - found.covariance) < 4 * errors).all()


def test_a_posterior_by_the_joint_mode(world):
    posterior = fit(world, Variant.HIERARCHICAL, num_draws=5, method="laplace_joint")
    assert posterior.method == "laplace_joint"
    assert posterior.draws["alpha_d"].shape == posterior.draws["beta_d"].shape == (5, 3)
    assert "log_density" in posterior.info
    again = fit(world, Variant.HIERARCHICAL, num_draws=5, method="laplace_joint")
    np.testing.assert_array_equal(posterior.draws["alpha_d"], again.draws["alpha_d"])
    fixed = fit(world, Variant.FIXED, num_draws=5, method="laplace_joint", coupling=0.4)
    assert (fixed.coupling, set(fixed.draws)) == (0.4, {"alpha", "gamma"})
    population = fit(world, Variant.HIERARCHICAL, num_draws=5, method="laplace_joint", effects=False)
    assert "alpha_d" not in population.draws


def test_refusals(batch, monkeypatch):
    with pytest.raises(ValueError, match=r"variant=fixed is not fitted"):
        laplace_joint(batch, paper(Variant.FIXED), Priors())
    monkeypatch.setattr(module, "MAX_STEPS", 1)
    with pytest.raises(FloatingPointError, match=r"variant=hierarchical: no joint mode in 1 steps.*use `laplace`"):
        laplace_joint(batch, paper(Variant.HIERARCHICAL), Priors())


def test_an_indefinite_hessian_raises_in_a_sentence(batch, monkeypatch):
    exact = module._log_density

    def saddle(*arguments):
        value, gradient, hessian = exact(*arguments)
        return value, 0 * gradient, hessian.at[0, 0].set(1.0)

    monkeypatch.setattr(module, "_log_density", saddle)
    with pytest.raises(FloatingPointError, match=r"the Hessian at the joint mode is not negative definite"):
        laplace_joint(batch, paper(Variant.INDEPENDENT), Priors(), Support.ALL)


TRUE = np.array([0.65, 0.5])


@pytest.mark.slow
def test_joint_sigma_grows_with_the_number_of_databases_and_the_marginal_one_does_not(monkeypatch):
    """True sigma_alpha 0.65 and sigma_beta 0.5; databases of four tables with eight questions each."""
    monkeypatch.setattr(packing, "BLOCK", 8)
    figures = {}
    whole = pack(simulate(1, 140, 8, sigma_alpha=TRUE[0], sigma_beta=TRUE[1]))
    for num_databases in (60, 140):
        # Leaving databases out keeps the shapes, so that nothing is compiled twice.
        batch = whole.without(range(num_databases, 140))
        joint = laplace_joint(batch, paper(Variant.HIERARCHICAL), Priors())
        marginal = laplace(batch, paper(Variant.HIERARCHICAL), Priors())
        error = np.sqrt(np.diag(marginal.covariance)[-2:])
        figures[num_databases] = np.exp(joint.mode[-2:]), np.exp(marginal.mode[-2:]), error
        print(
            f"\n{num_databases} databases, (sigma_alpha, sigma_beta): true {TRUE}, "
            f"joint {figures[num_databases][0].round(2)}, marginal {figures[num_databases][1].round(2)}, "
            f"sd of log sigma {error.round(2)}"
        )
    for joint_sigma, marginal_sigma, error in figures.values():
        assert (joint_sigma > 2).all()
        # 3 standard deviations: this is one simulated world with a fixed seed, not a Monte Carlo mean.
        assert (np.abs(np.log(marginal_sigma / TRUE)) < 3 * error).all()
        assert (np.abs(marginal_sigma - TRUE) < 0.25).all()
    assert (figures[140][0] > 1.15 * figures[60][0]).all()
