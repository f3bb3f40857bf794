"""Where a result comes from: package versions, commit and hashes of its inputs; and whether it is still current.

An experiment depends on its config, its data and its source: the script and every module of the package, or
beside the script, that it imports, directly or not. If none of them changed since the sidecar was written, the
result stands and the run is skipped. Versions and the commit are recorded but not compared.
"""

import argparse
import ast
import csv
import hashlib
import json
import subprocess
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

__all__ = ["Experiment", "commit", "provenance", "sha256", "source_files", "source_hash", "versions"]

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


def source_files(script: Path) -> dict[str, Path]:
    """The script, and every module of this package or beside the script that it imports, directly or not.

    Import statements are followed without running anything, those inside functions too.

    Returns:
        Files by name: `bayeslink/...` for the package, the file's own name beside the script.
    """
    package = Path(__file__).parent
    found: dict[str, Path] = {}
    waiting = [script.resolve()]
    while waiting:
        path = waiting.pop()
        name = path.relative_to(package.parent).as_posix() if path.is_relative_to(package) else path.name
        if name not in found:
            found[name] = path
            waiting += [file for module in _imported(path) for file in _files(module, package, script.resolve().parent)]
    return dict(sorted(found.items()))


def source_hash(script: Path) -> str:
    """One hash of `source_files`, names and contents, hexadecimal."""
    lines = "".join(f"{name} {sha256(path)}\n" for name, path in source_files(script).items())
    return hashlib.sha256(lines.encode()).hexdigest()


def _imported(path: Path) -> list[str]:
    """Dotted names of the modules that a file may import."""
    names: list[str] = []
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names += [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
    return names


def _files(module: str, package: Path, beside: Path) -> list[Path]:
    """Files that importing a module runs, its parents' included; empty for other packages."""
    parts = module.split(".")
    base = package.parent if parts[0] == package.name else beside
    stems = [base.joinpath(*parts[: count + 1]) for count in range(len(parts))]
    return [file for stem in stems for file in (stem.with_suffix(".py"), stem / "__init__.py") if file.is_file()]


@dataclass(frozen=True)
class Experiment:
    """One run of an experiment: what it depends on and where its result goes.

    Attributes:
        script: The experiment's `run.py`.
        config: Its sizes and seeds, those of `[quick]` in their place for a quick run.
        out: Folder of `table.csv`, the sidecar `table.json` and, where there are any, `timings.json`.
        force: Run even if nothing changed.
        source: Hash of the source as it was when the run began.
    """

    script: Path
    config: Mapping[str, object]
    out: Path
    force: bool
    source: str

    @classmethod
    def from_command(cls, script: str | Path, arguments: Sequence[str] | None = None) -> "Experiment":
        """The run that a command line asks for: `--config FILE --out FOLDER --quick --force`.

        A quick run writes to `output/quick/NAME` of the checkout unless told otherwise, never over a result.
        """
        script = Path(script).resolve()
        parser = argparse.ArgumentParser(prog=f"{script.parent.name}/{script.name}")
        parser.add_argument("--config", type=Path, default=script.with_name("config.toml"), help="sizes and seeds")
        parser.add_argument("--out", type=Path, help="folder of the result; beside the script by default")
        parser.add_argument("--quick", action="store_true", help="the config's [quick] sizes")
        parser.add_argument("--force", action="store_true", help="run even if nothing changed")
        asked = parser.parse_args(arguments)
        config = tomllib.loads(asked.config.read_text(encoding="utf-8"))
        quick = config.pop("quick", {})
        default = script.parents[2] / "output" / "quick" / script.parent.name if asked.quick else script.parent
        return cls(
            script, config | quick if asked.quick else config, asked.out or default, asked.force, source_hash(script)
        )

    def is_current(self, inputs: Mapping[str, Path], with_timings: bool = False) -> bool:
        """Whether the stored result has this config, this data and this source; touches the table if so.

        Args:
            inputs: Files of data by the name under which the sidecar lists them.
            with_timings: Whether `timings.json` belongs to the result.
        """
        table, sidecar = self.out / "table.csv", self.out / "table.json"
        files = [table, sidecar] + [self.out / "timings.json"] * with_timings
        if self.force or not all(file.is_file() for file in files):
            return False
        stored = json.loads(sidecar.read_text(encoding="utf-8"))
        wanted = {**self._depends_on(inputs), "table_sha256": sha256(table)}
        if any(stored.get(name) != value for name, value in wanted.items()):
            return False
        # The sidecar before the table: what is made from either is made again once at most.
        sidecar.touch()
        table.touch()
        return True

    def write(
        self,
        table: Sequence[Mapping[str, object]],
        claim: str,
        figures: Mapping[str, float | int],
        checks: Mapping[str, bool],
        inputs: Mapping[str, Path],
        timings: Mapping[str, object] | None = None,
        **more: object,
    ) -> None:
        """Write the table, its sidecar and its timings.

        Args:
            table: Rows, all with the same columns; floats are rounded to 10 digits.
            claim: What the experiment shows, one sentence.
            figures: Numbers that the paper reads.
            checks: Whether each named condition held.
            inputs: As in `is_current`.
            timings: All that differs from run to run.
            **more: Further fields of the sidecar.
        """
        self.out.mkdir(parents=True, exist_ok=True)
        with (self.out / "table.csv").open("w", encoding="utf-8", newline="") as file:
            writer = csv.DictWriter(file, list(table[0]), lineterminator="\n")
            writer.writeheader()
            writer.writerows({name: _rounded(value) for name, value in row.items()} for row in table)
        sidecar: dict[str, object] = {"claim": claim, "figures": dict(figures), "checks": dict(checks)}
        sidecar |= self._depends_on(inputs) | more | {"seed": self.config.get("seed"), "versions": versions()}
        sidecar |= {"commit": commit(), "table_sha256": sha256(self.out / "table.csv")}
        documents = {"table.json": sidecar} | ({} if timings is None else {"timings.json": dict(timings)})
        for name, document in documents.items():
            (self.out / name).write_text(json.dumps(document, indent=1, allow_nan=False) + "\n", encoding="utf-8")

    def _depends_on(self, inputs: Mapping[str, Path]) -> dict[str, object]:
        hashes = {name: sha256(path) for name, path in sorted(inputs.items())}
        return {"config": dict(self.config), "source_hash": self.source, "inputs": hashes}


def _rounded(value: object) -> object:
    return f"{value:.10g}" if isinstance(value, float) else value
