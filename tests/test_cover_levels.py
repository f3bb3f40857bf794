"""The parts of experiments/cover_levels that decide what is compared: sets at a level, shares, sizes at a coverage."""

import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import numpy as np
import pytest

from bayeslink.inference.predictive import SubgraphDistribution

FOLDER = Path(__file__).resolve().parents[1] / "experiments" / "cover_levels"


@pytest.fixture(scope="module")
def parts():
    """The modules families and level_rows, under their own names while they are imported."""
    found = []
    for name in ("families", "level_rows"):
        spec = spec_from_file_location(name, FOLDER / f"{name}.py")
        module = module_from_spec(spec)
        sys.modules[name] = module
        spec.loader.exec_module(module)
        found.append(module)
    for name in ("families", "level_rows"):
        del sys.modules[name]
    return found


def family(parts, probability, holds):
    return parts[0].Family(np.array(probability), np.array(holds), np.zeros(len(probability)), {})


def test_the_set_of_a_level_is_the_first_that_reaches_it(parts):
    found = family(parts, [[0.1, 0.6, 0.9, 1.0], [0.7, 0.8, 0.8, 1.0]], [[False, False, True, True]] * 2)
    for level, sizes in ((0.05, [0, 0]), (0.6, [1, 0]), (0.75, [2, 1]), (0.95, [3, 3]), (1.0, [3, 3])):
        size, holds = found.at(level)
        assert size.tolist() == sizes
        assert holds.tolist() == [size > 1 for size in sizes]
    assert found.required.tolist() == [0.6, 0.8]


def test_a_family_that_never_reaches_a_level_gives_its_largest_set(parts):
    size, holds = family(parts, [[0.1, 0.2]], [[False, True]]).at(0.9)
    assert (size.tolist(), holds.tolist()) == ([1], [True])


def test_top_p_and_prefixes_by_hand(parts):
    probabilities = np.zeros((1, 8))
    probabilities[0, [1, 3, 4]] = 0.5, 0.3, 0.2
    distribution = SubgraphDistribution(probabilities, np.zeros(1), np.zeros((0, 2), dtype=np.int64))

    class Held:
        gold = np.array([[True, True, False]])

    row = parts[0].Row(Held(), distribution, np.zeros(1))
    # Marginals 0.8, 0.3 and 0.2, of sum 1.3; the order of the tables is theirs.
    np.testing.assert_allclose(parts[0].top_p(row).probability, [[0, 0.8 / 1.3, 1.1 / 1.3, 1.0]])
    found = parts[0].prefixes(row)
    np.testing.assert_allclose(found.probability, [[0.0, 0.5, 0.8, 1.0]])
    assert found.holds.tolist() == [[False, False, True, True]]


def test_a_size_at_a_coverage_is_the_smallest_that_the_comparator_needs(parts):
    rows = [
        {"coverage": coverage, "mean_size": size}
        for coverage, size in ((0.9, 3.0), (0.95, 5.0), (0.95, 4.0), (0.95, 4.5), (1.0, 8.0))
    ]
    size_at = parts[1].size_at
    assert size_at(rows, 0.95) == 4.0
    assert size_at(rows, 0.925) == pytest.approx(3.5)
    assert size_at(rows, 0.975) == pytest.approx(6.0)
    assert size_at(rows, 0.89) is None
    assert size_at(rows[:2], 0.99) is None


def test_the_share_below_is_of_the_negative_log_score(parts):
    assert parts[1].share_below(np.array([[-1.0, -2.0], [-0.5, -1.0]])) == pytest.approx(0.5)
