"""The posteriors in the package: what they were fitted on, and that nothing held out is inside."""

import pytest

from bayeslink.evaluation.schemes import TABLE_VARIANTS
from bayeslink.evidence.kinds import default_channels
from bayeslink.evidence.store import load_evidence, load_fingerprints, load_twins, stored_files
from bayeslink.inference.posterior import load_posteriors, shipped_path
from bayeslink.provenance import sha256
from bayeslink.schema.split import twins_of


@pytest.fixture(scope="module", params=["lexical", "embedding", "boosted", "boosted_lexical", "learned"])
def shipped(request):
    return request.param, load_posteriors(shipped_path(request.param))


def test_every_variant_of_the_table_is_there(shipped):
    kind, posteriors = shipped
    assert set(posteriors) == set(TABLE_VARIANTS)
    for item in posteriors.values():
        assert item.channels == tuple(channel.name for channel in default_channels(kind))
        assert all(item.checks.values())
        assert item.checks


def test_no_dev_database_nor_a_twin_of_one_is_inside(shipped):
    held = {item.key for name in ("spider-dev", "bird-dev") for item in load_evidence(name)}
    twins, prints = load_twins(), load_fingerprints()
    for item in shipped[1].values():
        assert not held & set(item.databases)
        assert not {twin for key in held for twin in twins[key]} & set(item.databases)
        trained = dict(zip(item.databases, item.fingerprints, strict=True))
        assert not [key for key in held if twins_of(prints[key], trained)]


def test_they_were_fitted_on_the_stored_evidence(shipped):
    """All training databases of up to 30 tables that are no twins, from the very files that are here."""
    expected = {
        item.key for name in ("spider-train", "bird-train") for item in load_evidence(name) if item.num_tables <= 30
    }
    for item in shipped[1].values():
        assert set(item.databases) <= expected
        assert len(expected) - len(item.databases) == item.info["num_twins_left_out"]
        for name in ("spider-train", "bird-train"):
            (path,) = stored_files(name, item.channels)
            assert item.provenance[f"sha256 {name}.npz"] == sha256(path)
