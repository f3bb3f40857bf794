"""The joint mode: that it is one, and that its sigma is as wrong as MODEL.md section 4 says."""

import differences
import jax.numpy as jnp
import numpy as np
import oracles
import pytest
from numpyro.infer.util import potential_energy
from worlds import simulate

from bayeslink.inference import joint as module
from bayeslink.inference import packing
from bayeslink.inference.elimination import log_partition
from bayeslink.inference.fit import fit
from bayeslink.inference.joint import draw_joint, laplace_joint
from bayeslink.inference.laplace import laplace
from bayeslink.inference.packing import pack
from bayeslink.model.autologistic import Support
from bayeslink.model.hierarchy import Variant, hierarchical_model
from bayeslink.model.priors import Priors

FITTED = [Variant.INDEPENDENT, Variant.POOLED_COUPLING, Variant.HIERARCHICAL, Variant.UNPOOLED]


def named(point: np.ndarray, sites: tuple[str, ...]) -> dict[str, np.ndarray]:
    """Unconstrained sites and effects from all coordinates in one vector."""
    values, position = {}, 0
    for site in sites:
        size = 2 if site == "gamma" else 1
        values[site] = point[position : position + size] if site == "gamma" else point[position]
        position += size
    u, v = point[position:].reshape(-1, 2).T
    return values | {"u": u, "v": v}


def log_density(variant: Variant, world, sites: tuple[str, ...], point: np.ndarray) -> float:
    """The oracle's density with the Jacobian of log sigma."""
    values = named(point, sites)
    logs = [float(values[site]) for site in sites if site.startswith("sigma")]
    natural = {s: np.exp(values[s]) if s.startswith("sigma") else values[s] for s in sites}
    return oracles.log_density(variant.value, world, natural, values["u"], values["v"]) + sum(logs)


@pytest.mark.parametrize("variant", FITTED)
def test_mode_and_covariance_are_those_of_the_oracle_density(batch, world, variant: Variant):
    found = laplace_joint(batch, variant, Priors())
    mode = np.concatenate([found.mode, found.effects.reshape(-1)])
    objective = lambda point: log_density(variant, world, found.sites, point)  # noqa: E731
    assert found.log_density == pytest.approx(objective(mode), rel=1e-10)
    np.testing.assert_allclose(differences.gradient(objective, mode), 0, atol=1e-5)
    precision = np.linalg.inv(found.covariance)
    # The whole Hessian costs 16 d^2 brute-force densities; three random directions tell as much.
    for direction in np.random.default_rng(0).normal(size=(3, len(mode))):
        along = differences.hessian(lambda t, way=direction: objective(mode + t[0] * way), np.zeros(1))[0, 0]
        assert -along == pytest.approx(direction @ precision @ direction, rel=1e-6)


def test_density_is_the_numpyro_model(batch):
    found = laplace_joint(batch, Variant.HIERARCHICAL, Priors())
    values = named(np.concatenate([found.mode, found.effects.reshape(-1)]), found.sites)
    free = {site: jnp.asarray(value) for site, value in values.items()}
    arguments = (batch, Variant.HIERARCHICAL, Priors(), log_partition)
    assert -potential_energy(hierarchical_model, arguments, {}, free) == pytest.approx(found.log_density, rel=1e-10)


def test_draws_have_the_stated_mean_and_covariance(batch):
    found = laplace_joint(batch, Variant.HIERARCHICAL, Priors())
    phi, intercepts, couplings = draw_joint(found, Variant.HIERARCHICAL, Priors(), 4000, np.random.default_rng(0))
    u = (intercepts - phi[:, :1]) / np.exp(phi[:, 4:5])
    v = (couplings - phi[:, 3:4]) / np.exp(phi[:, 5:6])
    points = np.concatenate([phi, np.stack([u, v], axis=2).reshape(4000, -1)], axis=1)
    centre = np.concatenate([found.mode, found.effects.reshape(-1)])
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
        laplace_joint(batch, Variant.FIXED, Priors())
    monkeypatch.setattr(module, "MAX_STEPS", 1)
    with pytest.raises(FloatingPointError, match=r"variant=hierarchical: no joint mode in 1 steps.*use `laplace`"):
        laplace_joint(batch, Variant.HIERARCHICAL, Priors())


def test_an_indefinite_hessian_raises_in_a_sentence(batch, monkeypatch):
    exact = module._log_density

    def saddle(*arguments):
        value, gradient, hessian = exact(*arguments)
        return value, 0 * gradient, hessian.at[0, 0].set(1.0)

    monkeypatch.setattr(module, "_log_density", saddle)
    with pytest.raises(FloatingPointError, match=r"the Hessian at the joint mode is not negative definite"):
        laplace_joint(batch, Variant.INDEPENDENT, Priors(), Support.ALL)


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
        joint = laplace_joint(batch, Variant.HIERARCHICAL, Priors())
        marginal = laplace(batch, Variant.HIERARCHICAL, Priors())
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
