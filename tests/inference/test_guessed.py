"""The offset of guessed edges: on them alone, in every draw, and what the package carries."""

import json

import numpy as np
import pytest

from bayeslink.inference import guessed
from bayeslink.inference.guessed import GuessedOffset, shipped_offset
from bayeslink.inference.posterior import DatabaseDraws


@pytest.mark.parametrize("by_edge", [False, True])
def test_guessed_edges_alone_are_moved(by_edge):
    rng = np.random.default_rng(0)
    coupling = rng.normal(size=(400, 3)) if by_edge else rng.normal(size=400)
    draws = DatabaseDraws(np.zeros(400), np.zeros((400, 1)), coupling)
    found = GuessedOffset(-0.5, 0.1).apply(draws, np.array([False, True, True])).coupling
    before = coupling if by_edge else np.repeat(coupling[:, None], 3, axis=1)
    moved = found - before
    np.testing.assert_array_equal(moved[:, 0], 0.0)
    np.testing.assert_allclose(moved[:, 1], moved[:, 2], atol=1e-12)
    assert moved[:, 1].mean() == pytest.approx(-0.5, abs=0.02)
    assert moved[:, 1].std() == pytest.approx(0.1, abs=0.01)


def test_the_package_carries_an_offset_that_weakens_guessed_edges():
    found = shipped_offset()
    assert -1.0 < found.mean < 0
    assert 0 < found.sd < 0.5


def test_a_broken_file_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(guessed.resources, "files", lambda _: tmp_path)
    with pytest.raises(ValueError, match="run scripts/fit_inferred_coupling"):
        shipped_offset()
    (tmp_path / "posteriors").mkdir()
    (tmp_path / "posteriors" / "inferred_coupling.json").write_text(json.dumps({"mean": 0.0}))
    with pytest.raises(ValueError, match="run scripts/fit_inferred_coupling"):
        shipped_offset()
