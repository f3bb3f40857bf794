"""What follows: exact selections given parameters, and approximate parameters given data.

float64 only: importing this package switches JAX to 64-bit arithmetic.
"""

import jax

from bayeslink.evidence.cache import cache_home

__all__ = ["keep_compiled"]

jax.config.update("jax_enable_x64", True)


def keep_compiled() -> None:
    """Keep compiled programs in the cache folder, so that a later process need not compile them again.

    A folder that was chosen before, by JAX's own setting, stays.
    """
    if jax.config.values["jax_compilation_cache_dir"] is not None:
        return
    jax.config.update("jax_compilation_cache_dir", str(cache_home() / "compiled"))
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.2)
