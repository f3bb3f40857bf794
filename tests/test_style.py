"""Style as a test: ruff, ty, and what the repository may hold."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
LARGEST = 4 * 2**20
"""Bytes of a tracked file."""

# Folders of one person's machine; web addresses and container paths of a CI image are not among them.
MACHINE_PATH = re.compile(r"(?<![\w.:/$}])/(?:home|Users|root|work|tmp|mnt|scratch)/[\w.]|\b[A-Z]:\\\\?Users\\")


def run(*command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300, check=False)


def tool(name: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """A tool of the environment that runs the tests."""
    return run(str(Path(sys.executable).with_name(name)), *arguments)


def tracked() -> list[Path]:
    """Files that git tracks, and those that it would."""
    found = run("git", "ls-files", "-z", "--cached", "--others", "--exclude-standard")
    assert found.returncode == 0, found.stderr
    return [ROOT / name for name in found.stdout.split("\0") if name and (ROOT / name).is_file()]


@pytest.mark.parametrize(
    "command", [("ruff", "check", "."), ("ruff", "format", "--check", "."), ("ty", "check", "bayeslink")]
)
def test_tool_finds_nothing(command):
    found = tool(*command)
    assert found.returncode == 0, found.stdout + found.stderr


def test_no_path_of_a_machine_is_tracked():
    bad = []
    for path in tracked():
        try:
            text = path.read_text(encoding="utf-8")
        except UnicodeDecodeError:
            continue
        bad += [
            f"{path.relative_to(ROOT)}:{number}"
            for number, line in enumerate(text.splitlines(), start=1)
            if MACHINE_PATH.search(line) and path != Path(__file__)
        ]
    assert not bad


@pytest.mark.parametrize(
    "line", ["x = '/home/me/data'", "cd " + "/work" + "/main", r"C:\Users\me", "(/tmp/x.nc)", "/root/.venv"]
)
def test_a_path_of_a_machine_is_recognised(line):
    assert MACHINE_PATH.search(line)


@pytest.mark.parametrize("line", ["https://example.org/home/x", "data/work/x", "sqlite:///file", "$HOME/work/x"])
def test_other_texts_are_not_taken_for_one(line):
    assert not MACHINE_PATH.search(line)


def test_no_tracked_file_is_large():
    sizes = {path.relative_to(ROOT).as_posix(): path.stat().st_size for path in tracked()}
    assert {name: size for name, size in sizes.items() if size > LARGEST} == {}


def test_modules_state_what_they_offer():
    """Each module opens with a docstring and has `__all__`, and none is longer than its idea."""
    missing = []
    for path in sorted((ROOT / "bayeslink").rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        if not text.startswith('"""'):
            missing.append(f"{path.name}: docstring")
        if path.name not in ("__init__.py", "__main__.py") and "\n__all__ = [" not in text:
            missing.append(f"{path.name}: __all__")
    assert not missing
