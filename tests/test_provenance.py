"""Versions, commit and hashes of a result."""

import hashlib
import json
import os
import subprocess
from importlib.metadata import version
from pathlib import Path

import pytest

from bayeslink import provenance as module
from bayeslink.provenance import Experiment, commit, provenance, sha256, source_files, versions

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


@pytest.fixture
def script(tmp_path):
    """A script with a module beside it, a module of the package, and a config."""
    folder = tmp_path / "experiments" / "claim"
    folder.mkdir(parents=True)
    (folder / "run.py").write_text("import json\nimport near\nfrom bayeslink.model import priors\n")
    (folder / "near.py").write_text("def late():\n    from bayeslink.schema.words import split\n")
    (folder / "far.py").write_text("")
    (folder / "config.toml").write_text("seed = 3\nsize = 10\n[quick]\nsize = 2\n")
    return folder / "run.py"


def stored(script, tmp_path, arguments=(), **more):
    data = tmp_path / "data.txt"
    if not data.exists():
        data.write_text("1")
    run = Experiment.from_command(script, list(arguments))
    if not run.is_current({"data.txt": data}, **more):
        run.write([{"a": 1 / 3, "b": "x"}], "claim", {"f": 1.0}, {"c": True}, {"data.txt": data}, {"s": 0.5})
        return True
    return False


def test_source_is_what_the_script_imports_and_no_more(script):
    found = source_files(script)
    assert {"run.py", "near.py", "bayeslink/__init__.py", "bayeslink/model/__init__.py"} <= found.keys()
    assert {"bayeslink/model/priors.py", "bayeslink/schema/words.py"} <= found.keys()
    assert not {"far.py", "bayeslink/cli/__init__.py", "bayeslink/schema/spider.py"} & found.keys()


def test_a_result_is_skipped_until_something_changes(script, tmp_path):
    assert stored(script, tmp_path)
    table = script.with_name("table.csv")
    os.utime(table, (1, 1))
    assert not stored(script, tmp_path)
    assert table.stat().st_mtime > 1
    script.with_name("far.py").write_text("x = 1\n")
    assert not stored(script, tmp_path)
    assert stored(script, tmp_path, ["--force"])
    changes = {
        script: "import near\n",
        script.with_name("near.py"): "x = 1\n",
        script.with_name("config.toml"): "seed = 4\n",
        tmp_path / "data.txt": "2",
        table: "a,b\n0,x\n",
    }
    for path, text in changes.items():
        assert not stored(script, tmp_path)
        path.write_text(text)
        assert stored(script, tmp_path), path
    script.with_name("timings.json").unlink()
    assert not stored(script, tmp_path)
    assert stored(script, tmp_path, with_timings=True)


def test_a_quick_run_has_its_sizes_and_its_folder(script, tmp_path):
    assert stored(script, tmp_path, ["--quick"])
    out = tmp_path / "output" / "quick" / "claim"
    sidecar = json.loads((out / "table.json").read_text())
    assert sidecar["config"] == {"seed": 3, "size": 2}
    assert (sidecar["seed"], sidecar["claim"], sidecar["checks"]) == (3, "claim", {"c": True})
    assert sidecar["inputs"] == {"data.txt": sha256(tmp_path / "data.txt")}
    assert (out / "table.csv").read_text() == "a,b\n0.3333333333,x\n"
    assert not script.with_name("table.csv").exists()
