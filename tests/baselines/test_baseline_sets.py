"""The baselines' experiment: what is fitted reads training questions alone, and does what it says."""

import sys
from pathlib import Path

import numpy as np
import pytest
from scipy.special import expit
from worlds import CYCLE, PATH, edge_array, make_evidence

from bayeslink.evaluation.recovery import f1, precision, recall

FOLDER = Path(__file__).resolve().parents[2] / "experiments" / "baselines"
CONFIG = {
    "variants": ["independent", "hierarchical"],
    "starts": ["independent"],
    "most_tables": 3,
    "temperatures": [0.5, 2.0],
    "masses": [0.4, 0.8],
    "cuts": [0.2, 0.4, 0.6],
}


@pytest.fixture(scope="module")
def module():
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(FOLDER))
        import baseline_sets

        yield baseline_sets
    sys.modules.pop("baseline_sets")


def made_parts(module, seed: int = 0, changed: int | None = None) -> list:
    """Two databases in two folds; `changed` makes two tables gold in all that this fold holds out."""
    rng = np.random.default_rng(seed)
    parts = []
    for place, edges in enumerate((PATH, CYCLE)):
        truth = rng.normal(-0.5, 1.5, (20, 4))
        gold = rng.random(truth.shape) < expit(truth)
        values = truth[..., None] + rng.normal(size=(20, 4, 3))
        for fold in (0, 1):
            held = np.arange(fold, 20, 2)
            given = {name: expit(truth + rng.normal(0, 0.3, truth.shape) + 0.4) for name in CONFIG["variants"]}
            labels = gold.copy()
            if changed is not None:
                labels[changed::2, :2] = True
            whole = make_evidence(values, edge_array(edges), labels, name=f"d{place}")
            order = np.argsort(np.argsort(-given["independent"], axis=1), axis=1)
            parts.append(
                module.Part(
                    whole,
                    held,
                    fold,
                    given,
                    {"independent": [order <= k for k in range(3)]},
                    {name: given["independent" if name == "fixed" else name][held] for name in ("fixed", *given)},
                    dict.fromkeys(("fixed", *given), (given["hierarchical"] > 0.5)[held]),
                )
            )
    return sorted(parts, key=lambda part: part.fold)


@pytest.mark.parametrize("fold", [0, 1])
def test_labels_of_the_held_out_questions_have_no_say(module, fold):
    plain, other = made_parts(module), made_parts(module, changed=fold)
    first, second = module.choices_of(plain, CONFIG), module.choices_of(other, CONFIG)
    moved = set()
    for name in first:
        for part, one, two in zip(plain, first[name].sets, second[name].sets, strict=True):
            assert one.shape == part.gold[part.held].shape
            if part.fold == fold:
                np.testing.assert_array_equal(one, two)
            elif (one != two).any():
                moved.add(name)
    assert {"platt", "tuned_cut"} <= moved  # The other fold trains on them.


def test_the_best_way_on_the_training_questions_is_taken(module):
    parts = made_parts(module, seed=3)
    ways = {f"cut {cut:g}": [part.given["independent"] > cut for part in parts] for cut in CONFIG["cuts"]}
    found = module.tuned(ways, parts)
    for fold, text in enumerate(found.fitted.split("; ")):
        scores = {}
        for way, sets in ways.items():
            pairs = [
                (chosen[q : q + 1], part.gold[q : q + 1])
                for chosen, part in zip(sets, parts, strict=True)
                for q in range(20)
                if part.fold == fold and q not in part.held
            ]
            scores[way] = f1(*(float(np.mean([score(*pair)[0] for pair in pairs])) for score in (precision, recall)))
        assert text == max(scores, key=lambda way: scores[way])
    for place, (part, chosen) in enumerate(zip(parts, found.sets, strict=True)):
        way = found.fitted.split("; ")[part.fold]
        np.testing.assert_array_equal(chosen, ways[way][place][part.held])


def test_calibrated_picks_are_those_of_a_shifted_cut(module):
    parts = made_parts(module, seed=1)
    found = module.choices_of(parts, CONFIG)
    for part, independent, heated in zip(parts, found["independent"].sets, found["temperature"].sets, strict=True):
        np.testing.assert_array_equal(independent, part.given["independent"][part.held] > 0.5)
        np.testing.assert_array_equal(independent, heated)
    sizes = {name: sum(int(sets.sum()) for sets in choice.sets) for name, choice in found.items()}
    assert sizes["platt"] < sizes["independent"] <= sizes["shortest_path"] <= sizes["expansion"]
    assert sizes["independent"] <= sizes["steiner"] <= sizes["shortest_path"]
