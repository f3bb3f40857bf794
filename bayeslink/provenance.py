"""Where a result comes from: package versions, commit and hashes of its inputs."""

import hashlib
import subprocess
from collections.abc import Iterable
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

__all__ = ["commit", "provenance", "sha256", "versions"]

_PACKAGES = ("bayeslink", "jax", "numpyro", "numpy", "scipy", "scikit-learn", "bm25s", "sqlglot")


def versions(packages: Iterable[str] = _PACKAGES) -> dict[str, str]:
    """Installed version of each package; "not installed" where it is missing."""
    found = {}
    for name in packages:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = "not installed"
    return found


def sha256(path: Path) -> str:
    """Hash of a file's bytes, hexadecimal."""
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while chunk := file.read(2**20):
            digest.update(chunk)
    return digest.hexdigest()


def commit() -> str:
    """Commit of the checkout that holds the package, or "unknown" outside one.

    A package installed inside another project's checkout has an unknown commit, not that project's.
    """
    root = Path(__file__).parents[1]
    if not (root / ".git").exists():
        return "unknown"
    try:
        found = subprocess.run(
            ["git", "rev-parse", "HEAD"],
            cwd=root,
            capture_output=True,
            text=True,
            check=True,
            timeout=10,
        )
    except (OSError, subprocess.SubprocessError):
        return "unknown"
    return found.stdout.strip()


def provenance(inputs: Iterable[Path] = ()) -> dict[str, str]:
    """Versions, commit and input hashes as one flat record of texts."""
    record = {f"version {name}": found for name, found in versions().items()}
    record["commit"] = commit()
    record.update({f"sha256 {path.name}": sha256(path) for path in inputs})
    return record
