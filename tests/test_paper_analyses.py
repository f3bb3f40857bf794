"""What the paper's analyses fit reads training questions alone, and agrees with the package."""

import sys
from pathlib import Path
from types import ModuleType
from typing import NamedTuple

import numpy as np
import pytest
from scipy.special import expit
from scipy.stats import spearmanr
from worlds import CYCLE, PATH, edge_array, make_evidence, simulate

from bayeslink.evaluation.held_out import FitSettings, fit_folds
from bayeslink.evidence.channel import Evidence
from bayeslink.model.hierarchy import Variant

EXPERIMENTS = Path(__file__).resolve().parents[1] / "experiments"


def load(experiment: str, name: str) -> ModuleType:
    """A module beside an experiment's script."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(EXPERIMENTS / experiment))
        module = __import__(name)
    sys.modules.pop(name)
    return module


class Said(NamedTuple):
    """Marginals of a database's questions, as a fit's predictions."""

    marginals: np.ndarray


class Item(NamedTuple):
    """What stands for a held-out part: its predictions are given, twice as sure with a coupling."""

    evidence: Evidence
    questions: np.ndarray
    log_odds: np.ndarray

    def predict(self, coupling: float | None = None) -> tuple[Said, None]:
        return Said(expit(self.log_odds * (1.0 if coupling is None else 2.0))), None


def calibrated(module: ModuleType, changed: int | None = None, coupling: float | None = None) -> list:
    """Two databases in two folds; `changed` makes two tables gold in all that this fold holds out."""
    rng = np.random.default_rng(0)
    items, wholes, folds = [], [], []
    for place, edges in enumerate((PATH, CYCLE)):
        log_odds = rng.normal(-0.5, 1.5, (20, 4))
        gold = rng.random(log_odds.shape) < expit(0.5 + 0.5 * log_odds)
        for fold in (0, 1):
            held = np.arange(fold, 20, 2)
            labels = gold.copy()
            if changed is not None:
                labels[changed::2, :2] = True
            whole = make_evidence(np.zeros((20, 4, 3)), edge_array(edges), labels, f"d{place}")
            items.append(Item(whole.select_questions(held), held, log_odds))
            wholes.append(whole)
            folds.append(fold)
    return module.calibrated(items, wholes, folds, coupling, [0.5, 0.9])


@pytest.mark.parametrize("fold", [0, 1])
def test_scaling_of_the_joint_does_not_see_the_labels_that_it_is_scored_on(fold):
    module = load("joint_distribution", "joint_rows")
    size = module.SCORES.index("size")
    plain, other = calibrated(module), calibrated(module, changed=fold)
    for place, (one, two) in enumerate(zip(plain, other, strict=True)):
        # The size of a collection depends on the scaled probabilities and on no label.
        same = np.array_equal(one.at_level[size], two.at_level[size])
        assert same == (place % 2 == fold)
    coupled = calibrated(module, coupling=0.6)
    # A line in the log-odds undoes a factor: the coupling is seen, and its fit takes it back.
    for one, two in zip(plain, coupled, strict=True):
        np.testing.assert_allclose(one.log_score, two.log_score, atol=1e-6)


def test_a_placebo_refit_on_the_real_graph_is_the_packages_fit():
    module = load("placebo_graphs", "placebo_refits")
    # An odd number: one fold trains on fewer questions than are packed, and the rest must count for nothing.
    world = simulate(3, 3, 25)
    refits = module.Refits({"num_draws": 400, "seed": 0, "num_folds": 2}, "test", module.Shape.of(world))
    for variant in (Variant.INDEPENDENT, Variant.HIERARCHICAL):
        found = refits._scores(world, variant)
        scores = [np.zeros(item.num_questions) for item in world]
        marginals = [np.zeros((item.num_questions, item.num_tables)) for item in world]
        names = [item.key for item in world]
        for held in fit_folds(world, variant, "known", FitSettings(num_draws=400), num_folds=2):
            place = names.index(held.evidence.key)
            distribution, log_score = held.predict()
            scores[place][held.questions] = log_score
            marginals[place][held.questions] = distribution.marginals
        np.testing.assert_allclose(found.log_score, np.concatenate(scores), atol=1e-5)
        for one, two in zip(found.marginals, marginals, strict=True):
            np.testing.assert_allclose(one, two, atol=1e-5)


def test_rank_correlation_of_each_draw_is_scipys():
    module = load("database_coupling", "couplings")
    rng = np.random.default_rng(1)
    draws, values = rng.normal(size=(5, 8)), np.array([1.0, 2.0, 2.0, 3.0, 0.0, 0.0, 5.0, 4.0])
    expected = [spearmanr(draw, values).statistic for draw in draws]
    np.testing.assert_allclose(module.spearman(draws, values), expected, atol=1e-12)
