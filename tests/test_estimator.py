"""SubgraphModel: the package's own fit behind the methods of scikit-learn, on any graph."""

from dataclasses import replace

import numpy as np
import pytest
import sklearn
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.model_selection import GroupKFold, cross_val_score

import bayeslink.estimator
from bayeslink import SubgraphModel
from bayeslink.evaluation.held_out import fresh_draws
from bayeslink.inference import enumeration
from bayeslink.inference.fit import fit
from bayeslink.inference.predictive import predict
from bayeslink.model.priors import Priors
from tests.worlds import CYCLE, ISOLATED, PATH, STAR, simulate

SHAPES = {"db0": PATH, "db1": STAR, "db2": CYCLE, "db3": ISOLATED, "db4": PATH}


@pytest.fixture(scope="module")
def world():
    """Four groups to fit and a fifth to predict."""
    names = ("channel_0", "channel_1")
    return [replace(item, dataset="graphs", channels=names) for item in simulate(7, 5, 40)]


def stacked(world):
    values = np.concatenate([item.values for item in world])
    gold = np.concatenate([item.gold for item in world]).astype(int)
    return values, gold, np.repeat([item.db_id for item in world], [item.num_questions for item in world])


@pytest.fixture(scope="module")
def fitted(world):
    values, gold, groups = stacked(world[:4])
    return SubgraphModel(SHAPES).fit(values, gold, groups)


def test_it_is_the_fit_of_the_package(world, fitted):
    own = fit(world[:4])
    assert fitted.posterior_.draws.keys() == own.draws.keys()
    for site, draws in own.draws.items():
        np.testing.assert_allclose(fitted.posterior_.draws[site], draws, rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(fitted.coef_, own.draws["gamma"].mean(axis=0), rtol=1e-6)
    assert fitted.coupling_ == pytest.approx(own.draws["beta"].mean(), rel=1e-6)
    assert (fitted.n_features_in_, fitted.classes_.tolist()) == (2, [0, 1])


def test_a_known_group_has_its_own_parameters_and_a_new_one_the_population(world, fitted):
    posterior = fitted.posterior_
    for item, name in ((world[1], "db1"), (world[4], "db4")):
        ready = posterior.standardisation.apply(item)
        draws = posterior.seen(("graphs", name), ready) if name == "db1" else fresh_draws(posterior, ready, 0)
        own, scores = predict(ready, draws)
        asked = (item.values, [name] * item.num_questions)
        np.testing.assert_allclose(fitted.predict_proba(*asked), own.marginals, rtol=1e-10)
        np.testing.assert_array_equal(fitted.predict(*asked), own.mode)
        found = fitted.log_score(item.values, item.gold, asked[1])
        np.testing.assert_allclose(found, scores, rtol=1e-10)
        assert fitted.score(item.values, item.gold, asked[1]) == (own.mode == item.gold).all(axis=1).mean()


def test_one_group_is_fitted_and_predicted_without_naming_it(world):
    item = world[0]
    model = SubgraphModel(PATH, variant="independent", num_draws=20).fit(item.values, item.gold)
    assert model.posterior_.databases == (("graphs", ""),)
    assert model.coupling_ == 0.0
    assert model.predict_proba(item.values).shape == item.gold.shape


def test_graphs_of_one_group_share_its_effects(world):
    """Half of the questions with their nodes renamed, and the graph with them: nothing else may change."""
    values, gold, groups = stacked(world[:4])
    order = np.array([2, 0, 3, 1])
    place = np.argsort(order)
    turned = np.arange(len(values)) % 2 == 1
    renamed = {name: [(int(place[a]), int(place[b])) for a, b in edges] for name, edges in SHAPES.items()}
    edges = [(renamed if turn else SHAPES)[name] for name, turn in zip(groups, turned, strict=True)]
    mixed = np.where(turned[:, None, None], values[:, order], values)
    labels = np.where(turned[:, None], gold[:, order], gold)
    plain = SubgraphModel(SHAPES).fit(values, gold, groups)
    model = SubgraphModel(edges).fit(mixed, labels, groups)
    assert model.posterior_.databases == plain.posterior_.databases
    for site, draws in plain.posterior_.draws.items():
        np.testing.assert_allclose(model.posterior_.draws[site], draws, rtol=1e-5, atol=1e-6)
    found, wanted = model.predict_proba(mixed, groups), plain.predict_proba(values, groups)
    np.testing.assert_allclose(found, np.where(turned[:, None], wanted[:, order], wanted), atol=1e-6)


def test_graphs_may_differ_in_size(world, fitted):
    """A node without an edge and with a fixed score changes nothing of the others, with no coupling to reach it."""
    values = world[0].values[:3]
    ragged = [values[0], np.concatenate([values[1], np.zeros((1, 2))]), values[2]]
    found = fitted.predict_proba(ragged, ["db0", "db0", "db1"], edges={"db0": PATH, "db1": STAR})
    assert [len(row) for row in found] == [4, 5, 4]
    plain = fitted.predict_proba(values, ["db0", "db0", "db1"])
    np.testing.assert_allclose(found[1][:4], plain[1], rtol=1e-10)
    np.testing.assert_allclose(found[2], plain[2], rtol=1e-10)
    assert [len(row) for row in fitted.predict(ragged, ["db0", "db0", "db1"])] == [4, 5, 4]


def test_a_distribution_for_each_question(world, fitted):
    values, gold, groups = stacked(world[:2])
    found = fitted.distribution(values[38:42], groups[38:42])
    assert [item.marginals.shape for item in found] == [(1, 4)] * 4
    np.testing.assert_allclose([item.marginals[0] for item in found], fitted.predict_proba(values, groups)[38:42])
    scores = fitted.log_score(values, gold, groups)[38:42]
    own = [np.log(item.probability_of(row[None] > 0)[0]) for item, row in zip(found, gold[38:42], strict=True)]
    np.testing.assert_allclose(own, scores, rtol=1e-8)


def test_a_cover_holds_what_it_says(world, fitted):
    values, _, groups = stacked(world[:1])
    cover = fitted.cover(values, groups, level=0.9)
    held = [
        item.cover_probability(row[None] > 0)[0]
        for item, row in zip(fitted.distribution(values, groups), cover, strict=True)
    ]
    assert min(held) >= 0.9 - 1e-12
    assert cover.sum() < cover.size


@pytest.mark.parametrize("num_nodes", [4, enumeration.MAX_TABLES + 2])
def test_samples_have_the_marginals(fitted, num_nodes):
    rng = np.random.default_rng(5)
    values = rng.standard_normal((2, num_nodes, 2))
    edges = [(node, node + 1) for node in range(num_nodes - 1)]
    drawn = fitted.sample(values, ["new", "db0"], num_samples=4000, edges=edges)
    assert drawn.shape == (4000, 2, num_nodes)
    wanted = fitted.predict_proba(values, ["new", "db0"], edges=edges)
    # Beyond listing, the samples are ten of each of 200 draws, in the worst case all alike; then drawn from again.
    error = np.sqrt(wanted * (1 - wanted) * (1 / 4000 + (num_nodes > 4) / 200))
    assert (np.abs(drawn.mean(axis=0) - wanted) < 4 * error).all()
    again = fitted.sample(values, ["new", "db0"], num_samples=4000, edges=edges)
    np.testing.assert_array_equal(drawn, again)


def test_scikit_learn_can_copy_and_search_it(world):
    model = SubgraphModel(np.array(PATH), variant="pooled", num_draws=50)
    copied = clone(model.set_params(num_draws=40))
    assert copied.get_params()["num_draws"] == 40
    np.testing.assert_array_equal(copied.edges, model.edges)
    values, gold, groups = stacked([world[0], world[4]])
    with sklearn.config_context(enable_metadata_routing=True):
        routed = copied.set_fit_request(groups=True).set_score_request(groups=True)
        found = cross_val_score(routed, values, gold, cv=GroupKFold(2), params={"groups": groups})
    own = SubgraphModel(PATH, variant="pooled", num_draws=40)
    held = [
        own.fit(values[groups == a], gold[groups == a], groups[groups == a]).score(
            values[groups == b], gold[groups == b], groups[groups == b]
        )
        for a, b in (("db0", "db4"), ("db4", "db0"))
    ]
    assert sorted(found) == pytest.approx(sorted(held))


def test_the_fixed_coupling_is_the_given_one(world):
    item = world[0]
    model = SubgraphModel(PATH, variant="fixed", coupling=0.8, num_draws=20).fit(item.values, item.gold)
    assert model.coupling_ == 0.8


def test_forms_and_priors_reach_the_fit(world):
    item, tight = world[0], Priors(slope_scale=1e-3)
    model = SubgraphModel(PATH, variant="independent", forms=("value", "rank"), priors=tight, num_draws=20)
    model.fit(item.values, item.gold)
    assert model.coef_.shape == (4,)
    assert (np.abs(model.coef_) < 0.01).all()
    assert model.n_features_in_ == 2


def test_a_pair_given_twice_counts_once(world, fitted):
    values, names = world[0].values[:3], ["db0"] * 3
    twice = fitted.predict_proba(values, names, edges=[(0, 1), (2, 1), (1, 0), (1, 2), (0, 1)])
    np.testing.assert_array_equal(twice, fitted.predict_proba(values, names, edges=[(0, 1), (1, 2)]))


def test_before_the_fit_every_method_says_so():
    values = np.zeros((1, 4, 2))
    for method in ("predict_proba", "predict", "cover", "sample", "distribution"):
        with pytest.raises(NotFittedError):
            getattr(SubgraphModel(PATH), method)(values)
    for method in ("score", "log_score"):
        with pytest.raises(NotFittedError):
            getattr(SubgraphModel(PATH), method)(values, np.zeros((1, 4)))


def test_a_fit_that_fails_its_checks_warns(world, monkeypatch):
    honest = bayeslink.estimator.fit_packed

    def failing(*arguments, **settings):
        posterior, found = honest(*arguments, **settings)
        return replace(posterior, checks={**posterior.checks, "pareto_k": False}), found

    monkeypatch.setattr(bayeslink.estimator, "fit_packed", failing)
    with pytest.warns(ConvergenceWarning, match="pareto_k"):
        SubgraphModel(PATH, variant="pooled", num_draws=5).fit(world[0].values, world[0].gold)


BAD = {
    "no question": ({"X": np.zeros((0, 4, 2)), "y": np.zeros((0, 4))}, "X is empty"),
    "two axes": ({"X": np.zeros((3, 4))}, r"shape \(4,\): axes nodes, channels"),
    "nan": ({"X": np.full((3, 4, 2), np.nan)}, "NaN or infinity"),
    "channels differ": ({"X": [np.zeros((4, 1)), np.zeros((4, 2)), np.zeros((4, 2))]}, r"\[1, 2\] channels"),
    "labels of another shape": ({"y": np.zeros((3, 5))}, "3 questions of 15 nodes in all, X 3 of 12"),
    "label 2": ({"y": np.full((3, 4), 2)}, "y holds 2: a label is 1"),
    "groups too few": ({"groups": ["a"]}, "groups names 1 questions and X has 3"),
    "node out of range": ({"edges": [(0, 4)]}, r"outside 0\.\.3"),
    "self edge": ({"edges": [(1, 1)]}, "joins? a node to itself"),
    "fractions": ({"edges": np.array([[0.5, 1.0]])}, "pairs of node positions"),
    "triples": ({"edges": np.array([[0, 1, 2]])}, "pairs of node positions"),
    "a graph too few": ({"edges": [[(0, 1)], []]}, "graphs of 2 questions and X has 3"),
    "group without a graph": ({"edges": {"a": []}, "groups": ["a", "a", "b"]}, "no graph of group 'b'"),
    "variant": ({"variant": "best"}, "variant='best': use one of independent"),
    "support": ({"support": "some"}, "support='some': use one of all, non-empty"),
    "method": ({"method": "map"}, "method='map': use one of laplace"),
}


@pytest.mark.parametrize("name", BAD)
def test_what_cannot_be_fitted_is_refused_in_a_sentence(name):
    given, sentence = BAD[name]
    settings = {"X": np.zeros((3, 4, 2)), "y": np.eye(3, 4), "groups": None, "edges": PATH} | given
    data = [settings.pop(argument) for argument in ("X", "y", "groups")]
    with pytest.raises(ValueError, match=sentence):
        SubgraphModel(settings.pop("edges"), **settings).fit(*data)


def test_what_cannot_be_predicted_is_refused_in_a_sentence(fitted):
    with pytest.raises(ValueError, match="X has 3 channels, the fit had 2"):
        fitted.predict(np.zeros((1, 4, 3)), ["db0"])
    with pytest.raises(ValueError, match="num_samples=0"):
        fitted.sample(np.zeros((1, 4, 2)), ["db0"], num_samples=0)
    with pytest.raises(ValueError, match="level=0"):
        fitted.cover(np.zeros((1, 4, 2)), ["db0"], level=0.0)
    with pytest.raises(ValueError, match="no graph of group 'new'"):
        fitted.predict(np.zeros((1, 4, 2)), ["new"])
