"""The command line of the study: sizes, and who computes."""

import argparse
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from bayeslink.provenance import Experiment


class Command(NamedTuple):
    """What was asked for.

    Attributes:
        run: The run; its config has the sizes of `[full]` where they were asked for.
        jobs: Number of processes.
        dask: Address of a Dask scheduler, or none.
    """

    run: Experiment
    jobs: int
    dask: str | None


def read_command(script: str | Path, arguments: Sequence[str] | None = None) -> Command:
    """Read `--full --jobs N --dask ADDRESS` and leave the rest to `Experiment`.

    A full run writes to `output/full/NAME` of the checkout unless told otherwise, never over the default result.
    """
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    parser.add_argument("--full", action="store_true", help="the config's [full] sizes, for a cluster")
    parser.add_argument("--jobs", type=int, help="number of processes; 2 by default, 1 for a quick run")
    parser.add_argument("--dask", metavar="ADDRESS", help="scheduler of a Dask cluster that does the work")
    parser.add_argument("--quick", action="store_true")
    asked, rest = parser.parse_known_args(arguments)
    if asked.full and asked.quick:
        parser.error("--full and --quick are two sizes: give one")
    run = Experiment.from_command(script, [*rest, *["--quick"] * asked.quick])
    config = {name: value for name, value in run.config.items() if name != "full"}
    if asked.full:
        config |= run.config["full"]
        if run.out == run.script.parent:
            run = replace(run, out=run.script.parents[2] / "output" / "full" / run.script.parent.name)
    # A quick run takes less time than a second process takes to compile its programs.
    jobs = asked.jobs if asked.jobs is not None else 1 if asked.quick else 2
    return Command(replace(run, config=config), jobs, asked.dask)
