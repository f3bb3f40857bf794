"""The study's rows and findings against counts by hand, and its command line."""

import importlib.util
import sys
from pathlib import Path

import numpy as np
import pytest

from bayeslink.simulation.cells import Cell
from bayeslink.simulation.families import Family

FOLDER = Path(__file__).resolve().parents[2] / "experiments" / "simulation"
VARIANTS = ("truth", "independent", "fixed", "fixed_platt", "pooled", "pooled_coupling", "hierarchical")


def load(name: str):
    spec = importlib.util.spec_from_file_location(f"simulation_{name}", FOLDER / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def modules():
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(FOLDER))
        yield {name: load(name) for name in ("command", "grid", "rows", "simulation_findings")}
        for name in ("command", "grid", "rows", "simulation_findings"):
            sys.modules.pop(name, None)


def scores(**shifts: float) -> dict[str, np.ndarray]:
    """Four replicates around a mean shift for each variant; other scores 0, joint log scores by variant."""
    around = np.array([-0.01, 0.0, 0.0, 0.01])
    found = {}
    for place, variant in enumerate(VARIANTS):
        found[f"{variant}/mean_shift"] = shifts.get(variant, 0.0) + around
        for name in ("ece", "marginal_log_score", "recovered", "precision", "size"):
            found[f"{variant}/{name}"] = np.zeros(4)
        found[f"{variant}/joint_log_score"] = np.full(4, -2.0 + 0.1 * place)
        if variant != "truth":
            found[f"{variant}/converged"] = np.ones(4, dtype=bool)
            found[f"{variant}/alpha"] = np.arange(4.0)
    return found


def cell(coupling: float, spread: float = 0.0) -> Cell:
    return Cell(Family.STAR, 4, coupling, spread, 1.0)


def test_rows_have_means_intervals_and_paired_gains(modules):
    rows = list(modules["rows"].rows_of(cell(1.0), scores(fixed=0.3, pooled=0.2)))
    assert [row["variant"] for row in rows] == list(VARIANTS)
    by_variant = {row["variant"]: row for row in rows}
    fixed = by_variant["fixed"]
    assert fixed["mean_shift"] == pytest.approx(0.3)
    assert fixed["mean_shift_lower"] < 0.3 < fixed["mean_shift_upper"]
    assert fixed["gain_over_independent"] == pytest.approx(0.1)
    assert by_variant["hierarchical"]["gain_over_pooled_coupling_lower"] == pytest.approx(0.1)
    assert fixed["alpha"] == 1.5
    assert by_variant["truth"]["alpha"] is None
    flags = {name: (row["cell_shifted"], row["smaller"], row["holds_0"]) for name, row in by_variant.items()}
    assert flags["fixed"] == (1, 0, 0)
    assert flags["pooled"] == (1, 1, 0)
    assert flags["hierarchical"] == (1, 1, 1)
    assert len({tuple(row) for row in rows}) == 1


def test_replicates_that_did_not_converge_are_left_out_for_all(modules):
    found = scores()
    found["pooled/converged"][0] = False
    found["pooled/mean_shift"][0] = np.nan
    found["fixed/ece"][1] = np.inf
    rows = list(modules["rows"].rows_of(cell(0.0), found))
    assert {(row["replicates"], row["converged"]) for row in rows} == {(4, 2)}
    assert {row["alpha"] for row in rows} == {2.5, None}
    found["pooled/converged"][:] = False
    with pytest.raises(FloatingPointError, match="no replicate has all its fits converged"):
        list(modules["rows"].rows_of(cell(0.0), found))


def test_findings_count_cells(modules):
    grid = {
        cell(0.0): scores(),
        cell(1.0): scores(fixed=0.3),
        cell(1.0, 0.5): scores(fixed=0.3, hierarchical=0.1),
        cell(2.0, 0.5): scores(fixed=-0.2),
    }
    table = [row for one, found in grid.items() for row in modules["rows"].rows_of(one, found)]
    figures = modules["simulation_findings"].figures_of(table)
    assert (figures["cells"], figures["replicates"], figures["replicates_unconverged"]) == (4, 16, 0)
    assert (figures["cells_coupled"], figures["cells_with_shift"]) == (3, 2)
    assert figures["share_of_cells_with_shift"] == 0.5
    assert figures["share_of_uncoupled_cells_with_shift"] == 0.0
    assert figures["share_restored"] == figures["share_restored_hierarchical"] == 0.5
    assert figures["share_restored_pooled"] == 1.0
    assert figures["share_smaller_hierarchical"] == 1.0
    assert figures["share_hierarchical_better_than_pooled_coupling_sd_0.5"] == 1.0
    assert figures["gain_hierarchical_over_pooled_coupling_sd_0"] == pytest.approx(0.1)
    assert figures["joint_log_score_less_truths_fixed"] == pytest.approx(0.2)
    checks = modules["simulation_findings"].checks_of(table)
    assert not checks["shift_in_every_coupled_cell"]
    assert not checks["joint_fit_restores_nine_in_ten"]
    assert checks["joint_fit_shifts_less_in_every_shifted_cell"]
    assert checks["platt_below_pooled_jointly_in_every_shifted_cell"]
    assert checks["every_fit_converged"]
    assert all(isinstance(held, bool) for held in checks.values())


def test_every_cell_is_in_the_grid_once_and_has_all_its_replicates(modules):
    config = modules["command"].read_command(FOLDER / "run.py", []).run.config
    cells = modules["grid"].cells_of(config)
    assert len(cells) == len(set(cells))
    assert {one.family for one in cells} == set(Family)
    chunks = modules["grid"].chunks_of(config, cells)
    assert config["replicates"] >= 100
    numbers = {one: [] for one in cells}
    for chunk in chunks:
        numbers[chunk.cell] += range(chunk.first, chunk.first + chunk.count)
    assert all(sorted(found) == list(range(config["replicates"])) for found in numbers.values())
    sizes = [chunk.cell.num_tables for chunk in chunks]
    assert sizes == sorted(sizes)
    assert len(set(sizes)) == 3
    assert len({chunk.key("") for chunk in chunks}) == len(chunks)


def test_command_line_has_sizes_and_workers(modules, tmp_path):
    read = modules["command"].read_command
    default = read(FOLDER / "run.py", [])
    assert (default.jobs, default.dask, default.run.out) == (2, None, FOLDER)
    assert not {"full", "quick"} & set(default.run.config)
    full = read(FOLDER / "run.py", ["--full", "--dask", "tcp://host:8786", "--force"])
    assert (full.dask, full.run.force) == ("tcp://host:8786", True)
    assert full.run.out == FOLDER.parents[1] / "output" / "full" / "simulation"
    assert full.run.config["replicates"] > default.run.config["replicates"]
    assert len(modules["grid"].cells_of(full.run.config)) > len(modules["grid"].cells_of(default.run.config))
    assert "pooled_coupling" in full.run.config["joint"]
    quick = read(FOLDER / "run.py", ["--quick", f"--out={tmp_path}", "--jobs", "3"])
    assert (quick.jobs, quick.run.out) == (3, tmp_path)
    assert read(FOLDER / "run.py", ["--quick"]).jobs == 1
    with pytest.raises(SystemExit):
        read(FOLDER / "run.py", ["--quick", "--full"])
