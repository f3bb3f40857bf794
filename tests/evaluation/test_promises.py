"""Calibrated levels of a posterior: what they are computed from, their file, and what is left out."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from bayeslink.decision.sets import smallest_cover
from bayeslink.evaluation.held_out import fresh_draws
from bayeslink.evaluation.promises import Promises, promises
from bayeslink.evaluation.questions import stored_questions
from bayeslink.inference.posterior import load_posteriors, shipped_path
from bayeslink.inference.predictive import predict
from bayeslink.model.hierarchy import Variant

PATH = shipped_path("lexical")


@pytest.fixture(scope="module")
def posterior():
    return load_posteriors(PATH)[Variant.HIERARCHICAL]


@pytest.fixture(scope="module")
def questions(posterior):
    found = stored_questions(["spider-dev"], posterior.channels)
    small = sorted(found.evidences, key=lambda item: (item.num_tables, item.num_questions))[:6]
    return replace(
        found, evidences=tuple(item.select_questions(np.arange(min(6, item.num_questions))) for item in small)
    )


@pytest.fixture(scope="module")
def found(questions, posterior):
    return promises(questions, posterior, PATH, [0.8, 0.5, 0.95])


def test_covers_above_the_level_hold_as_many_calibration_questions_as_promised(found, questions, posterior):
    assert [level.target for level in found.levels] == [0.5, 0.8, 0.95]
    assert [level.holds for level in found.levels] == [True, True, False]
    for level in found.levels:
        shares = []
        for item in questions.evidences:
            ready = posterior.standardisation.apply(item)
            distribution, _ = predict(ready, fresh_draws(posterior, ready, 0), posterior.support)
            chosen = smallest_cover(distribution, level.level).chosen
            shares.append(float((~(item.gold & ~chosen).any(axis=1)).mean()))
        share = sum(shares) / (len(shares) + level.holds)
        assert share >= level.target - 1e-9
        assert level.num_databases == len(questions.evidences)


def test_the_file_comes_back_whole(found, tmp_path):
    path = tmp_path / "levels.json"
    found.save(path)
    first = path.read_bytes()
    again = Promises.load(path)
    assert again == found
    again.save(path)
    assert path.read_bytes() == first
    assert again.at(0.8) == found.levels[1]
    with pytest.raises(ValueError, match=r"cover=0\.9: the calibration has levels for 0\.5, 0\.8, 0\.95"):
        again.at(0.9)


def test_databases_of_the_training_are_left_out_and_counted(questions, posterior):
    training = stored_questions(["spider-train"], posterior.channels)
    known = next(item for item in training.evidences if item.key in posterior.trained)
    mixed = replace(
        questions,
        evidences=(known, *questions.evidences),
        fingerprints=questions.fingerprints | {known.key: training.fingerprints[known.key]},
    )
    found = promises(mixed, posterior, PATH, [0.5])
    assert found.num_left_out == 1
    assert found.levels[0].num_databases == len(questions.evidences)
    with pytest.raises(ValueError, match="no database is left to calibrate on"):
        promises(replace(mixed, evidences=(known,)), posterior, PATH, [0.5])


@pytest.mark.parametrize(
    "content",
    [b"", b"nonsense", b"[]", b"{}", b"\xff\xfe", b'{"version": 1, "levels": []}', b'{"version": 1, "levels": [1]}'],
)
def test_a_file_that_is_no_calibration_is_refused(tmp_path, content):
    path = tmp_path / "levels.json"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=r"calibration='.*levels.json' is not a calibration file"):
        Promises.load(path)


def test_another_version_a_missing_file_and_a_folder_are_refused(found, tmp_path):
    path = tmp_path / "levels.json"
    path.write_text(json.dumps(found.to_dict() | {"version": 9}))
    with pytest.raises(ValueError, match="has layout version 9 or no usable level, this package reads version 1"):
        Promises.load(path)
    broken = found.to_dict()
    broken["levels"][0]["level"] = 7.0
    path.write_text(json.dumps(broken))
    with pytest.raises(ValueError, match="no usable level"):
        Promises.load(path)
    with pytest.raises(ValueError, match="does not exist; give a file made with"):
        Promises.load(tmp_path / "none.json")
    with pytest.raises(ValueError, match="is a folder"):
        Promises.load(Path(tmp_path))
