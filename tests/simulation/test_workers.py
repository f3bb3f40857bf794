"""Workers of every kind: the same results, resuming, and a worker that is killed in the middle."""

import os
import signal
import time
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from bayeslink.simulation.workers import compute_all


def squares(task: int) -> dict[str, np.ndarray]:
    return {"square": np.array(task**2), "process": np.array(os.getpid())}


def deadly(folder: Path, times: int, task: int) -> dict[str, np.ndarray]:
    """Task 3 kills the process that computes it, as often as asked; every computation leaves a mark."""
    marks = len(list(folder.glob(f"{task}-*")))
    (folder / f"{task}-{marks}").touch()
    if task == 3 and marks < times:
        # A worker that dies takes the pool's unfinished tasks with it: the first three are to be done and kept.
        end = time.monotonic() + 60
        while sum(path.is_file() for path in paths(folder, 3)) < 3 and time.monotonic() < end:
            time.sleep(0.01)
        os.kill(os.getpid(), signal.SIGKILL)
    return squares(task)


def paths(folder: Path, count: int) -> list[Path]:
    return [folder / "results" / f"{place}.npz" for place in range(count)]


@pytest.fixture(scope="module")
def cluster():
    """A Dask cluster of two processes on this machine."""
    distributed = pytest.importorskip("distributed")
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None, host="127.0.0.1"
    ) as found:
        yield found.scheduler_address


def kinds(cluster: str) -> list[dict]:
    return [{"jobs": 1}, {"jobs": 2}, {"dask": cluster}]


def test_all_kinds_of_workers_give_the_studys_results_bit_by_bit(tmp_path, monkeypatch, cluster):
    # Imported here: the workers of the other tests, which import this file, start sooner without JAX.
    from bayeslink.evaluation import calibration
    from bayeslink.simulation.cells import Cell, Sizes
    from bayeslink.simulation.families import Family
    from bayeslink.simulation.study import Chunk, run_chunk

    # Workers that start now compile once and share what they compiled.
    monkeypatch.setenv("BAYESLINK_CACHE", str(tmp_path / "cache"))
    sizes = Sizes(2, 4, 2)
    cells = [Cell(Family.STAR, 3, beta, 0.5, 1.0) for beta in (0.0, 1.0)]
    chunks = [Chunk(cell, sizes, (), 0, first, 2) for cell in cells for first in (0, 2)]
    compute = partial(run_chunk, pair_scores={"ece": calibration.calibration_error})
    found = [
        compute_all(compute, chunks, paths(tmp_path / str(place), 4), progress=False, **kind)
        for place, kind in enumerate(kinds(cluster))
    ]
    for other in found[1:]:
        for one, two in zip(found[0], other, strict=True):
            assert one.keys() == two.keys()
            assert all(one[name].tobytes() == two[name].tobytes() for name in one)


def test_results_come_in_the_order_of_the_tasks_from_other_processes(tmp_path, cluster):
    for place, kind in enumerate(kinds(cluster)):
        found = compute_all(squares, range(6), paths(tmp_path / str(place), 6), progress=False, **kind)
        assert [int(result["square"]) for result in found] == [0, 1, 4, 9, 16, 25]
        processes = {int(result["process"]) for result in found}
        assert (os.getpid() in processes) == (kind == {"jobs": 1})


@pytest.mark.parametrize("kind", ["joblib", "dask"])
def test_a_killed_worker_loses_nothing(tmp_path, cluster, kind):
    compute = partial(deadly, tmp_path, 1)
    how = {"jobs": 2} if kind == "joblib" else {"dask": cluster}
    found = compute_all(compute, range(6), paths(tmp_path, 6), progress=False, **how)
    assert [int(result["square"]) for result in found] == [0, 1, 4, 9, 16, 25]
    assert (tmp_path / "3-1").exists()


def test_workers_that_keep_dying_end_the_run_and_keep_what_is_done(tmp_path):
    with pytest.raises(RuntimeError, match="workers died 3 times in a row with 1 tasks left"):
        compute_all(partial(deadly, tmp_path, 99), range(4), paths(tmp_path, 4), jobs=2, progress=False)
    assert [path.is_file() for path in paths(tmp_path, 4)] == [True, True, True, False]
    again = compute_all(partial(deadly, tmp_path, 0), range(4), paths(tmp_path, 4), progress=False)
    assert [int(result["square"]) for result in again] == [0, 1, 4, 9]
    assert len(list(tmp_path.glob("0-*"))) <= 3


def test_a_stopped_run_goes_on_with_what_is_missing(tmp_path, capsys):
    computed = []

    def stopping(last: int, task: int) -> dict[str, np.ndarray]:
        if task == last:
            raise KeyboardInterrupt
        computed.append(task)
        return squares(task)

    with pytest.raises(KeyboardInterrupt):
        compute_all(partial(stopping, 3), range(6), paths(tmp_path, 6))
    assert computed == [0, 1, 2]
    paths(tmp_path, 6)[1].unlink()
    found = compute_all(partial(stopping, -1), range(6), paths(tmp_path, 6))
    assert computed == [0, 1, 2, 1, 3, 4, 5]
    assert [int(result["square"]) for result in found] == [0, 1, 4, 9, 16, 25]
    assert not [path for path in tmp_path.rglob("*") if path.name.startswith(".")]
    error = capsys.readouterr()
    assert "chunks" in error.err
    assert not error.out


def test_a_task_that_fails_is_the_callers_to_know(tmp_path, cluster):
    for place, kind in enumerate(kinds(cluster)):
        with pytest.raises(ZeroDivisionError):
            compute_all(partial(divmod, 1), [0], paths(tmp_path / str(place), 1), progress=False, **kind)


def test_what_cannot_be_done_is_refused(tmp_path, monkeypatch):
    with pytest.raises(ValueError, match="paths: 1 different ones for 2 tasks"):
        compute_all(squares, range(2), [tmp_path / "one"] * 2)
    with pytest.raises(ValueError, match="jobs=0: give at least one process"):
        compute_all(squares, range(1), paths(tmp_path, 1), jobs=0)
    monkeypatch.setitem(__import__("sys").modules, "distributed", None)
    with pytest.raises(ModuleNotFoundError, match=r"install bayeslink\[dask\]"):
        compute_all(squares, range(1), paths(tmp_path, 1), dask="tcp://127.0.0.1:1", progress=False)
