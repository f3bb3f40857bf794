"""Versions, commit and hashes of a result."""

import hashlib
import subprocess
from importlib.metadata import version
from pathlib import Path

from bayeslink import provenance as module
from bayeslink.provenance import commit, provenance, sha256, versions

ROOT = Path(__file__).resolve().parents[1]


def test_versions_are_the_installed_ones():
    assert versions(["numpy", "no-such-package"]) == {"numpy": version("numpy"), "no-such-package": "not installed"}
    assert {"bayeslink", "jax", "numpyro", "sqlglot"} <= versions().keys()
    assert "not installed" not in versions().values()


def test_hash_of_a_file_of_several_pieces(tmp_path):
    content = bytes(range(256)) * 10_000
    (tmp_path / "x").write_bytes(content)
    assert sha256(tmp_path / "x") == hashlib.sha256(content).hexdigest()


def test_commit_is_that_of_the_checkout():
    asked = ["git", "rev-parse", "HEAD"]
    head = subprocess.run(asked, cwd=ROOT, capture_output=True, text=True, check=False).stdout.strip()
    assert commit() == (head or "unknown")


def test_the_commit_of_an_enclosing_project_is_not_taken(tmp_path, monkeypatch):
    """The package installed in an environment inside another project's checkout."""
    for asked in (
        ["init", "-q"],
        ["-c", "user.name=a", "-c", "user.email=a@b.c", "commit", "-q", "--allow-empty", "-m", "x"],
    ):
        subprocess.run(["git", *asked], cwd=tmp_path, check=True, capture_output=True)
    installed = tmp_path / "site-packages" / "bayeslink"
    installed.mkdir(parents=True)
    monkeypatch.setattr(module, "__file__", str(installed / "provenance.py"))
    assert commit() == "unknown"


def test_commit_is_unknown_without_git(monkeypatch):
    monkeypatch.setenv("PATH", "")
    assert commit() == "unknown"


def test_record_is_flat_text(tmp_path):
    (tmp_path / "questions.jsonl").write_bytes(b"x")
    record = provenance([tmp_path / "questions.jsonl"])
    assert record["sha256 questions.jsonl"] == hashlib.sha256(b"x").hexdigest()
    assert record["version numpy"] == version("numpy")
    assert record["commit"] == commit()
    assert all(isinstance(value, str) for value in record.values())
