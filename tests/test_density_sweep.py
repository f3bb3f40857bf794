"""The density sweep's own logic: nested graphs, outcomes by brute force, and an agreement that can fail."""

import importlib
import itertools
import math
from pathlib import Path
from types import ModuleType

import numpy as np
import oracles
import pytest

FOLDER = Path(__file__).resolve().parents[1] / "experiments" / "density_sweep"


@pytest.fixture(scope="module")
def densities() -> ModuleType:
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(FOLDER))
        return importlib.import_module("densities")


def world(densities: ModuleType, seed: int, num_tables: int = 4, num_questions: int = 6):
    rng = np.random.default_rng(seed)
    edges = np.array([[0, 1], [1, 2], [2, 3]])[: num_tables - 1]
    unary = rng.normal(0.0, 1.5, size=(num_questions, num_tables))
    gold = rng.random((num_questions, num_tables)) < 0.5
    gold[:, 0] |= ~gold.any(axis=1)
    return densities.Asked(("test", "d"), unary, gold, np.arange(num_questions), edges)


def test_graphs_are_nested_and_as_large_as_asked(densities):
    edges, wanted = np.array([[0, 1], [1, 2], [3, 1], [3, 4]]), (0.0, 0.4, 1.0, 1.5, 2.0, 9.0)
    graphs = densities.nested_graphs(edges, 5, wanted, np.random.default_rng(0))
    assert [len(graph) for graph in graphs] == [0, 2, 4, 6, 8, 10]
    sets = [{frozenset(pair) for pair in graph.tolist()} for graph in graphs]
    assert all(small <= large for small, large in itertools.pairwise(sets))
    assert [len(found) for found in sets] == [len(graph) for graph in graphs]
    own = {frozenset(pair) for pair in edges.tolist()}
    assert sets[1] <= own == sets[2]
    again = densities.nested_graphs(edges, 5, wanted, np.random.default_rng(0))
    assert all((one == two).all() for one, two in zip(graphs, again, strict=True))
    other = densities.nested_graphs(edges, 5, wanted, np.random.default_rng(1))
    assert any((one != two).any() for one, two in zip(graphs, other, strict=True))


@pytest.mark.parametrize("coupling", [0.0, 0.7, 2.5])
@pytest.mark.parametrize("seed", [0, 1])
def test_outcome_is_the_brute_force_one(densities, seed, coupling):
    asked = world(densities, seed)
    edges = np.array([[0, 1], [1, 2], [0, 3]])
    found = densities.Listed(asked).outcome(edges, coupling)
    for q, (unary, gold) in enumerate(zip(asked.unary.tolist(), asked.gold.tolist(), strict=True)):
        probabilities = oracles.distribution(unary, edges.tolist(), coupling)
        chosen = [p > 0.5 for p in oracles.marginals(probabilities)]
        weak = [y and a < 0 for a, y in zip(unary, gold, strict=True)]
        assert found.weak[q] == sum(weak)
        assert found.recovered[q] == sum(w and c for w, c in zip(weak, chosen, strict=True))
        assert found.wrong[q] == sum(c and not y for c, y in zip(chosen, gold, strict=True))
        assert found.exact[q] == (chosen == gold)
        own = oracles.energy(tuple(map(int, gold)), unary, edges.tolist(), coupling)
        others = {
            x: oracles.energy(x, unary, edges.tolist(), coupling) for x in probabilities if x != tuple(map(int, gold))
        }
        assert found.gap[q] == pytest.approx(own - max(others.values()), rel=1e-10, abs=1e-10)
        flips = [tuple(int(y) ^ (t == s) for s, y in enumerate(gold)) for t in range(4)]
        assert found.stable[q] == found.inside[q] == all(own > others[flip] for flip in flips)


def test_without_coupling_nothing_weak_is_recovered_and_graphs_do_not_matter(densities):
    listed = densities.Listed(world(densities, 3))
    bare, dense = listed.outcome(np.zeros((0, 2), dtype=int), 0.0), listed.outcome(np.array([[0, 1], [2, 3]]), 0.0)
    assert not bare.recovered.any()
    for one, two in zip(bare, dense, strict=True):
        np.testing.assert_array_equal(one, two)


def test_agreement_of_modes_can_fail_and_counts_ties(densities):
    asked = world(densities, 4)
    gap = densities.Listed(asked).outcome(asked.edges, 1.0).gap
    assert densities.mode_agreement(asked, asked.edges, 1.0, gap) == (6, 6, 0)
    assert densities.mode_agreement(asked, asked.edges, 1.0, -gap) == (0, 6, 0)
    assert densities.mode_agreement(asked, asked.edges, 1.0, 0 * gap) == (0, 0, 6)
    # Two distractors that support each other tie with gold at 2 mu / (d + k) = 2/3.
    unary = np.array([[2.0, 2.0, -1.0, -1.0]])
    gold = np.array([[True, True, False, False]])
    tied = densities.Asked(("test", "d"), unary, gold, np.zeros(1, dtype=int), np.array([[0, 2], [1, 3], [2, 3]]))
    gap = densities.Listed(tied).outcome(tied.edges, 2 / 3).gap
    assert math.isclose(gap[0], 0.0, abs_tol=1e-12)
    assert densities.mode_agreement(tied, tied.edges, 2 / 3, gap) == (0, 0, 1)


def test_a_large_schema_is_refused(densities):
    asked = densities.Asked(
        ("test", "d"),
        np.zeros((1, 16)),
        np.ones((1, 16), dtype=bool),
        np.zeros(1, dtype=int),
        np.zeros((0, 2), dtype=int),
    )
    with pytest.raises(ValueError, match="num_tables=16 > 15"):
        densities.Listed(asked)
