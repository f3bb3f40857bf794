"""Every experiment at [quick] size: the same bytes twice, the contract's fields, and skipping what is unchanged."""

import csv
import importlib.util
import json
import math
import os
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType

import jax
import numpy as np
import pytest

from bayeslink.evidence.cache import cache_home
from bayeslink.inference import elimination
from bayeslink.provenance import sha256
from bayeslink.simulation.graphs import random_narrow_graph, random_sparse_graph
from bayeslink.simulation.timing import best_times, num_multiply_adds, power_law_slope

ROOT = Path(__file__).resolve().parents[1]
CLAIMS = sorted(path.parent.name for path in ROOT.glob("experiments/*/run.py"))
FIELDS = {"claim", "figures", "checks", "config", "seed", "versions", "source_hash", "inputs"}
TIMED = {"evidence_channels", "exact_cost", "laplace_and_hmc"}
EMPIRICAL = {
    "abstention",
    "access",
    "attention",
    "baselines",
    "bridge_tables",
    "clarification",
    "cover_levels",
    "cover_sets",
    "database_coupling",
    "density_sweep",
    "evidence_channels",
    "head_to_head",
    "joint_distribution",
    "laplace_and_hmc",
    "learning_curve",
    "model_comparison",
    "overconfidence",
    "placebo_graphs",
    "pooled_bird",
    "pooled_catalogue",
    "prior_scales",
    "rank_calibration",
    "recovery",
    "risk_coverage",
    "robustness",
    "simulation",
    "token_savings",
    "unseen_databases",
    "warehouses",
}
"""Experiments whose checks are findings about data: at quick size a miss is a result, in the others a fault."""
COST_FIGURES = {"spider_train_value_and_gradient_s", "growth_slope", "max_frontier_width", "graphs", "graphs_exact"}
QUICK = ["--quick", "--out"]


def load(path: Path) -> ModuleType:
    """A script as a module."""
    spec = importlib.util.spec_from_file_location(f"{path.parent.name}_{path.stem}", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], tuple[ModuleType, Path]]:
    """Each experiment's script and the folder of its first run, made when first asked for."""
    made: dict[str, tuple[ModuleType, Path]] = {}

    def result(name: str) -> tuple[ModuleType, Path]:
        if name not in made:
            folder = ROOT / "experiments" / name
            # What stands beside the script is on the path when it runs as a script.
            with pytest.MonkeyPatch.context() as patch:
                patch.syspath_prepend(str(folder))
                script = load(folder / "run.py")
            out = tmp_path_factory.mktemp(name)
            kept = jax.config.jax_compilation_cache_dir  # ty: ignore[unresolved-attribute]
            script.main([*QUICK, str(out)])
            jax.config.update("jax_compilation_cache_dir", kept)
            made[name] = script, out
        return made[name]

    return result


@pytest.fixture(scope="module", autouse=True)
def _own_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Nothing kept by earlier runs may stand in for what is tested; compiled programs may."""
    with pytest.MonkeyPatch.context() as patch:
        use_fresh_cache(patch, tmp_path_factory.mktemp("cache"))
        yield


def use_fresh_cache(patch: pytest.MonkeyPatch, folder: Path) -> None:
    """An empty cache folder, but for the compiled programs."""
    compiled = cache_home() / "compiled"
    compiled.mkdir(parents=True, exist_ok=True)
    (folder / "compiled").symlink_to(compiled.resolve())
    patch.setenv("BAYESLINK_CACHE", str(folder))


@pytest.fixture(autouse=True)
def _forget_compiled() -> Iterator[None]:
    """Drop compiled programs after each test: all experiments' together exceed a process's memory maps."""
    yield
    jax.clear_caches()


def test_there_are_experiments():
    assert {"exact_cost", "global_mode", "mean_shift", "stability_window"} | EMPIRICAL <= set(CLAIMS)


@pytest.mark.parametrize("name", CLAIMS)
def test_sidecar_has_the_contracts_fields_and_the_checks_of_algorithms_hold(name, results):
    _, out = results(name)
    sidecar = json.loads((out / "table.json").read_text())
    assert sidecar.keys() >= FIELDS
    assert sidecar["checks"]
    assert [check for check, held in sidecar["checks"].items() if not isinstance(held, bool)] == []
    if name not in EMPIRICAL:
        assert [check for check, held in sidecar["checks"].items() if not held] == []
    numbers = sidecar["figures"].items()
    assert [key for key, value in numbers if not isinstance(value, int | float) or not math.isfinite(value)] == []
    with (out / "table.csv").open(newline="") as file:
        assert list(csv.DictReader(file))
    assert (out / "timings.json").exists() == (name in TIMED)


@pytest.mark.parametrize("name", CLAIMS)
def test_second_run_skips_and_a_forced_one_has_the_same_bytes(name, results, tmp_path, monkeypatch):
    script, out = results(name)
    names = sorted(path.name for path in out.iterdir())
    first = (out / "table.csv").read_bytes()
    for path in out.iterdir():
        os.utime(path, (1, 1))
    script.main([*QUICK, str(out)])
    assert (out / "table.csv").stat().st_mtime > 1
    sidecar = (out / "table.json").read_bytes()
    # What the first run kept of its fits may not stand in for the second's.
    use_fresh_cache(monkeypatch, tmp_path)
    again = out.with_name(f"{out.name}-again")
    kept = jax.config.jax_compilation_cache_dir  # ty: ignore[unresolved-attribute]
    script.main([*QUICK, str(again), "--force"])
    jax.config.update("jax_compilation_cache_dir", kept)
    assert (again / "table.csv").read_bytes() == first
    assert (again / "table.json").read_bytes() == sidecar
    assert sorted(path.name for path in again.iterdir()) == names


def test_the_cost_run_names_its_timings_and_does_without_dwave(results):
    _, out = results("exact_cost")
    timings = json.loads((out / "timings.json").read_text())
    assert timings.keys() >= COST_FIGURES
    assert not any("dwave" in name for name in timings if name != "versions")
    absent = [row for row in timings["side_by_side"] if row["absent"]]
    assert {row["method"] for row in absent} == {"dwave"}
    assert timings["compile_warm_s"] > 0
    assert "data/evidence alone" in json.loads((out / "table.json").read_text())["graphs_from"]


def test_a_script_runs_on_its_own_with_the_same_bytes(results, tmp_path):
    _, out = results("stability_window")
    command = [sys.executable, str(ROOT / "experiments" / "stability_window" / "run.py"), *QUICK, str(tmp_path)]
    found = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False)
    assert found.returncode == 0, found.stderr
    assert (tmp_path / "table.csv").read_bytes() == (out / "table.csv").read_bytes()


@pytest.mark.parametrize("name", CLAIMS)
def test_figure_is_drawn_from_the_table_alone(name, results, tmp_path):
    _, out = results(name)
    folder = tmp_path / "elsewhere"
    shutil.copytree(out, folder)
    for suffix in ("one.pdf", "two.pdf"):
        script = load(ROOT / "experiments" / name / "draw.py")
        script.main(["--table", str(folder / "table.csv"), "--out", str(tmp_path / suffix)])
    first, second = ((tmp_path / suffix).read_bytes() for suffix in ("one.pdf", "two.pdf"))
    assert first == second
    assert len(first) > 1000


@pytest.mark.parametrize("name", CLAIMS)
def test_folder_is_complete_and_short(name):
    folder = ROOT / "experiments" / name
    assert "quick" in tomllib.loads((folder / "config.toml").read_text())
    assert len((folder / "run.py").read_text().splitlines()) <= 80
    readme = (folder / "README.md").read_text()
    assert "**Claim.**" in readme
    assert "refute" in readme


@pytest.mark.parametrize("name", CLAIMS)
def test_stored_result_is_whole(name):
    """What is committed has the contract's fields, and its table is the one that the sidecar means."""
    folder = ROOT / "experiments" / name
    sidecar = json.loads((folder / "table.json").read_text())
    assert sidecar.keys() >= FIELDS
    assert sha256(folder / "table.csv") == sidecar["table_sha256"]
    config = tomllib.loads((folder / "config.toml").read_text())
    assert sidecar["config"] == {name: value for name, value in config.items() if name not in {"quick", "full"}}


def parts(edges: np.ndarray, num_tables: int) -> int:
    """Number of connected components."""
    of = list(range(num_tables))
    for first, second in edges.tolist():
        of = [of[first] if part == of[second] else part for part in of]
    return len(set(of))


@pytest.mark.parametrize(("num_tables", "num_edges"), [(1, 0), (2, 1), (9, 8), (20, 29), (5, 10)])
def test_sparse_graph_is_connected_with_as_many_edges_as_asked(num_tables, num_edges):
    edges = random_sparse_graph(np.random.default_rng(0), num_tables, num_edges)
    assert edges.shape == (num_edges, 2)
    assert len({frozenset(pair) for pair in edges.tolist()}) == num_edges
    assert (edges[:, 0] < edges[:, 1]).all()
    assert parts(edges, num_tables) == 1


@pytest.mark.parametrize("width", [1, 2, 3])
@pytest.mark.parametrize("kept", [0.0, 0.3, 1.0])
def test_narrow_graph_is_connected_and_no_wider_than_asked(width, kept):
    edges = random_narrow_graph(np.random.default_rng(1), 40, width, kept)
    assert parts(edges, 40) == 1
    full = width * 40 - width * (width + 1) // 2
    assert len(edges) == {0.0: 39, 1.0: full}.get(kept, len(edges))
    networkx = pytest.importorskip("networkx")
    found, _ = networkx.algorithms.approximation.treewidth_min_fill_in(networkx.Graph(edges.tolist()))
    assert found <= width + (0.0 < kept < 1.0)  # Min-fill may miss the optimum by one on partial k-trees.
    if kept == 1.0:
        assert elimination.width_of(elimination.plan(edges, 40)) == width


def test_graphs_that_cannot_be_are_refused():
    rng = np.random.default_rng(0)
    for num_edges in (3, 11):
        with pytest.raises(ValueError, match="a connected graph has from 4 to 10"):
            random_sparse_graph(rng, 5, num_edges)
    for width in (0, 5):
        with pytest.raises(ValueError, match="give a width from 1 to 4"):
            random_narrow_graph(rng, 5, width, 0.5)


def test_multiply_adds_are_counted_by_hand():
    path = elimination.plan(np.array([[0, 1], [1, 2]]), 3)
    assert num_multiply_adds(path) == 4 + 4 + 2
    assert num_multiply_adds(elimination.plan(np.zeros((0, 2), dtype=np.int64), 4)) == 4 * 2


def test_slope_and_turns():
    sizes = np.array([1.0, 10.0, 100.0])
    assert power_law_slope(sizes, 3 * sizes**1.5) == pytest.approx(1.5)
    calls = {"a": 0, "b": 0}

    def call(name: str) -> None:
        calls[name] += 1

    best = best_times({name: lambda name=name: call(name) for name in calls}, rounds=3, budget_s=1.0)
    assert all(0 < seconds < 0.01 for seconds in best.values())
    assert min(calls.values()) > 3
