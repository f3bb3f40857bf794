"""Many independent tasks computed by this process, by joblib's workers or by a Dask cluster, with the same results.

A task is a value that can be pickled, its result a mapping of arrays. A result is written whole to its own file as
soon as it arrives, so a run that was stopped goes on where it was. A worker that dies takes nothing with it: what it
had not handed over is computed again. Which worker computes a task, and when, must not matter to the function.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TypeVar

import numpy as np
from joblib import Parallel, delayed
from joblib.externals.loky import get_reusable_executor
from joblib.externals.loky.process_executor import BrokenProcessPool
from tqdm import tqdm

from bayeslink.evidence.cache import replace_file

__all__ = ["compute_all"]

MAX_BREAKDOWNS = 3
"""Times in a row that workers may die without any task finished before the run gives up."""

Task = TypeVar("Task")
Result = Mapping[str, np.ndarray]
Compute = Callable[[Task], Result]


def compute_all(
    compute: Compute[Task],
    tasks: Sequence[Task],
    paths: Sequence[Path],
    jobs: int = 1,
    dask: str | None = None,
    progress: bool = True,
) -> list[dict[str, np.ndarray]]:
    """The result of every task, in the order of the tasks.

    Args:
        compute: The function; the workers import it, so it must be a module's own, or a `partial` of one.
        tasks: Its arguments.
        paths: For each task the file that keeps its result; one that is there is read and not computed.
        jobs: Number of processes; 1 computes in this one.
        dask: Address of a Dask scheduler, whose workers then do the work and need the package installed.
        progress: Show a progress bar on standard error.

    Raises:
        ValueError: If there is not one path for each task, or `jobs` is not positive.
        RuntimeError: If workers die over and over.
    """
    if len(tasks) != len(paths) or len(set(paths)) != len(paths):
        raise ValueError(f"paths: {len(set(paths))} different ones for {len(tasks)} tasks; give one for each")
    if jobs < 1:
        raise ValueError(f"jobs={jobs}: give at least one process")
    missing = [place for place, path in enumerate(paths) if not path.is_file()]
    ask = partial(_in_order, compute) if jobs == 1 else partial(_by_joblib, compute, jobs)
    arriving = _by_dask(compute, dask, tasks, missing) if dask else ask(tasks, missing)
    with tqdm(total=len(tasks), initial=len(tasks) - len(missing), desc="chunks", disable=not progress) as bar:
        for place, result in arriving:
            replace_file(paths[place], lambda file, kept=result: np.savez(file, allow_pickle=False, **kept))
            bar.update()
    results = []
    for path in paths:
        with np.load(path, allow_pickle=False) as entry:
            results.append(dict(entry))
    return results


def _numbered(compute: Compute[Task], place: int, task: Task) -> tuple[int, Result]:
    return place, compute(task)


def _in_order(compute: Compute[Task], tasks: Sequence[Task], missing: Sequence[int]) -> Iterator[tuple[int, Result]]:
    return (_numbered(compute, place, tasks[place]) for place in missing)


def _by_joblib(
    compute: Compute[Task], jobs: int, tasks: Sequence[Task], missing: Sequence[int]
) -> Iterator[tuple[int, Result]]:
    left, breakdowns = list(missing), 0
    try:
        while left:
            pool = Parallel(n_jobs=jobs, batch_size=1, max_nbytes=None, return_as="generator_unordered")
            try:
                for place, result in pool(delayed(_numbered)(compute, place, tasks[place]) for place in left):
                    # A copy of what is left is being iterated over by the pool.
                    left = [other for other in left if other != place]
                    breakdowns = 0
                    yield place, result
            except BrokenProcessPool as error:
                breakdowns += 1
                if breakdowns == MAX_BREAKDOWNS:
                    raise RuntimeError(
                        f"workers died {breakdowns} times in a row with {len(left)} tasks left: give them more "
                        "memory, or use fewer jobs"
                    ) from error
    finally:
        # Otherwise idle workers stay for some minutes.
        get_reusable_executor().shutdown(wait=True)


def _by_dask(
    compute: Compute[Task], address: str, tasks: Sequence[Task], missing: Sequence[int]
) -> Iterator[tuple[int, Result]]:
    try:
        from distributed import Client, as_completed
    except ImportError as error:
        raise ModuleNotFoundError(f"dask={address!r} needs the package distributed: install bayeslink[dask]") from error
    with Client(address) as client:
        asked = [client.submit(_numbered, compute, place, tasks[place], pure=False) for place in missing]
        # The scheduler gives a dead worker's tasks to others by itself.
        for future in as_completed(asked):
            yield future.result()
            future.release()
