"""Warnings are errors and shapes are checked at run time; both are set in pyproject.toml.

The hook that checks shapes is pytest's `--jaxtyping-packages`, which stays on for the whole run.
"""

import pytest

from bayeslink.inference import make_room  # switches JAX to float64


@pytest.fixture(autouse=True, scope="module")
def forget_programs():
    """Compiled programs of one test file do not add up with the next file's: a process has only so many maps."""
    yield
    make_room()
