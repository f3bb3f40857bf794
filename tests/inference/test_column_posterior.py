import numpy as np
import pytest
from scipy.special import expit

from bayeslink.inference.columns import ColumnPosterior, ColumnRows, fit_columns, shipped_columns

NAMES = ("first", "second")
TRUTH = np.array([-1.0, 1.5, -0.7])


def worlds(num_databases: int, rows: int, sigma: float, seed: int = 0) -> list[ColumnRows]:
    rng = np.random.default_rng(seed)
    found = []
    for _ in range(num_databases):
        values = rng.normal(3.0, 2.0, size=(rows, 2))
        logits = TRUTH[0] + sigma * rng.standard_normal() + (values - 3.0) / 2.0 @ TRUTH[1:]
        found.append(ColumnRows(values, rng.random(rows) < expit(logits)))
    return found


@pytest.fixture(scope="module")
def posterior() -> ColumnPosterior:
    return fit_columns(worlds(60, 100, 0.8), NAMES)


def test_the_truth_is_recovered(posterior):
    sd = np.sqrt(np.diag(posterior.covariance))
    # Centred predictors shift the intercept by nothing: their mean is that of the worlds, up to its own error.
    assert (np.abs(posterior.mean - TRUTH) < 4 * sd + 0.1).all()
    # 60 databases tell a standard deviation to about a tenth of itself.
    assert abs(np.log(posterior.sigma / 0.8)) < 0.4
    assert posterior.info == {"num_rows": 6000, "num_databases": 60}


def test_without_differences_sigma_is_small():
    assert fit_columns(worlds(60, 100, 0.0), NAMES).sigma < 0.25


def test_probabilities_of_new_databases_are_calibrated(posterior):
    gaps = []
    for rows in worlds(80, 200, 0.8, seed=1):
        gaps.append(rows.chosen - posterior.given_table(NAMES, rows.values[None])[0])
    error = np.array([gap.mean() for gap in gaps])
    assert abs(error.mean()) < 4 * error.std() / np.sqrt(len(error))


def test_the_mode_is_where_the_slope_is_zero(posterior):
    """The gradient of the log joint density, by finite differences of its plain definition."""
    databases = worlds(60, 100, 0.8)
    values = np.concatenate([rows.values for rows in databases])
    chosen = np.concatenate([rows.chosen for rows in databases])
    ready = (values - values.mean(axis=0)) / values.std(axis=0)
    intercepts = np.zeros(60)

    def log_density(point: np.ndarray) -> float:
        total = -0.5 * (point[0] / 5.0) ** 2 - 0.5 * (point[1:3] ** 2).sum()
        for place in range(60):
            own = slice(100 * place, 100 * (place + 1))
            p = expit(point[0] + point[3 + place] + ready[own] @ point[1:3])
            total += np.log(np.where(chosen[own], p, 1 - p)).sum() - 0.5 * (point[3 + place] / posterior.sigma) ** 2
        return float(total)

    # The intercepts are not kept: find them given the rest, then every slope must vanish.
    for place in range(60):
        own = slice(100 * place, 100 * (place + 1))
        for _ in range(50):
            p = expit(posterior.mean[0] + intercepts[place] + ready[own] @ posterior.mean[1:])
            slope = (chosen[own] - p).sum() - intercepts[place] / posterior.sigma**2
            intercepts[place] += slope / ((p * (1 - p)).sum() + 1 / posterior.sigma**2)
    point = np.concatenate([posterior.mean, intercepts])
    for place in range(3):
        step = np.zeros_like(point)
        step[place] = 1e-4
        slope = (log_density(point + step) - log_density(point - step)) / 2e-4
        assert abs(slope) < 1e-3 / np.sqrt(posterior.covariance[place, place]), place


def test_the_covariance_is_the_inverse_curvature_of_the_plain_density():
    """Without databases' own intercepts to speak of, against the Hessian of the plain log density by differences."""
    rows = worlds(1, 300, 0.0)[0]
    found = fit_columns([rows], NAMES)
    ready = (rows.values - found.center) / found.scale
    design = np.concatenate([np.ones((300, 1)), ready, np.ones((300, 1))], axis=1)
    precision = np.array([1 / 25, 1.0, 1.0, 1 / found.sigma**2])

    def log_density(point: np.ndarray) -> float:
        p = expit(design @ point)
        return float(np.log(np.where(rows.chosen, p, 1 - p)).sum() - 0.5 * (precision * point**2).sum())

    # Both intercepts have the same slope of the likelihood, so that at the mode they are as their prior variances.
    share = found.sigma**2 / 25
    point = np.array([found.mean[0], *found.mean[1:], found.mean[0] * share])
    step = 1e-3 * np.eye(4)
    hessian = (
        np.array(
            [
                [
                    log_density(point + a + b)
                    - log_density(point + a - b)
                    - log_density(point - a + b)
                    + log_density(point - a - b)
                    for b in step
                ]
                for a in step
            ]
        )
        / 4e-6
    )
    covariance = np.linalg.inv(-hessian)[:3, :3]
    np.testing.assert_allclose(found.covariance, covariance, rtol=2e-3, atol=1e-5)


def test_a_table_may_have_no_needed_column(posterior):
    """As for COUNT(*): nothing makes the columns of a needed table add up to one."""
    given = posterior.given_table(NAMES, np.full((1, 3, 2), [9.0, 9.0]) * [-1, 1])[0]
    assert np.prod(1 - given) > 0.9


def test_a_posterior_is_the_same_after_saving(posterior, tmp_path):
    posterior.save(tmp_path / "columns.json")
    again = ColumnPosterior.load(tmp_path / "columns.json")
    values = np.random.default_rng(0).normal(size=(2, 5, 2))
    assert np.array_equal(again.given_table(NAMES, values), posterior.given_table(NAMES, values))


@pytest.mark.parametrize("content", ["", "[]", "{}", '{"names": ["a"], "center": [0], "scale": [1], "mean": [0]}'])
def test_a_file_that_is_no_posterior_is_refused(tmp_path, content):
    path = tmp_path / "columns.json"
    path.write_text(content)
    with pytest.raises(ValueError, match=r"columns posterior .* cannot be read"):
        ColumnPosterior.load(path)
    with pytest.raises(ValueError, match="cannot be read"):
        ColumnPosterior.load(tmp_path / "missing.json")


@pytest.mark.parametrize("names", [("second", "first"), ("first",), ("first", "other")])
def test_other_predictors_are_refused(posterior, names):
    with pytest.raises(ValueError, match="predictors are not those that columns were fitted on"):
        posterior.given_table(names, np.zeros((1, 1, len(names))))


@pytest.mark.parametrize("share", [0.0, 1.0])
def test_columns_that_are_all_read_or_never_are_refused(share):
    rows = ColumnRows(np.ones((5, 2)), np.full(5, share > 0))
    with pytest.raises(ValueError, match="columns that a gold query reads and columns that none reads"):
        fit_columns([rows], NAMES)
    with pytest.raises(ValueError, match="are needed"):
        fit_columns([], NAMES)


def test_a_constant_and_a_repeated_predictor_do_no_harm():
    rows = [item._replace(values=item.values[:, [0, 0, 0]] * [1, 1, 0]) for item in worlds(5, 80, 0.3)]
    found = fit_columns(rows, ("a", "a again", "constant"))
    assert np.isfinite(found.mean).all()
    assert found.mean[1] == pytest.approx(found.mean[2], abs=1e-6)
    assert found.mean[3] == pytest.approx(0.0, abs=1e-9)


def test_a_predictor_that_differs_by_rounding_alone_is_constant():
    """Its standard deviation is not 0, and nothing may be divided by it."""
    values = np.tile([[1.0], [np.nextafter(1.0, 2.0)]], (50, 1))
    rows = [item._replace(values=values) for item in worlds(3, 100, 0.3)]
    found = fit_columns(rows, ("constant",))
    assert found.scale.tolist() == [1.0]
    assert found.mean[1] == pytest.approx(0.0, abs=1e-9)


def test_separable_columns_have_a_finite_fit():
    values = np.linspace(-1, 1, 40)[:, None]
    found = fit_columns([ColumnRows(values, values[:, 0] > 0)], ("only",))
    assert 0.5 < found.mean[1] < 20


@pytest.mark.parametrize(("kind", "least"), [("lexical", 150), ("embedding", 150), ("attention", 20)])
def test_the_package_carries_posteriors_of_columns(kind, least):
    from bayeslink.evidence.columns import column_channels

    found = ColumnPosterior.load(shipped_columns(kind))
    assert len(found.names) == 3 * (len(column_channels(kind)) + (kind == "attention")) + 4
    assert found.info["num_databases"] > least
    with pytest.raises(ValueError, match="columns of kind 'none'"):
        shipped_columns("none")
