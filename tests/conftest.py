"""Warnings are errors and shapes are checked at run time; both are set in pyproject.toml.

The hook that checks shapes is pytest's `--jaxtyping-packages`, which stays on for the whole run.
"""

import bayeslink.inference  # noqa: F401  (switches JAX to float64)
