"""Every test runs in float64, with rank promotion refused, warnings as errors and shapes checked."""

from jaxtyping import install_import_hook

with install_import_hook("bayeslink", "beartype.beartype"):
    import bayeslink.inference  # noqa: F401
