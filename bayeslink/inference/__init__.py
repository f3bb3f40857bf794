"""What follows: exact selections given parameters, and approximate parameters given data.

float64 only: importing this package switches JAX to 64-bit arithmetic.
"""

from pathlib import Path

import jax

from bayeslink.evidence.cache import cache_home

__all__ = ["keep_compiled", "make_room"]

jax.config.update("jax_enable_x64", True)


def keep_compiled() -> None:
    """Keep compiled programs in the cache folder, so that a later process need not compile them again.

    A folder that was chosen before, by JAX's own setting, stays.
    """
    if jax.config.values["jax_compilation_cache_dir"] is not None:
        return
    jax.config.update("jax_compilation_cache_dir", str(cache_home() / "compiled"))
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.2)


def make_room() -> None:
    """Forget compiled programs when they hold more than half of the memory maps that the system allows.

    Every program takes some hundreds of maps and a long run compiles many; past the limit the compiler
    fails with "cannot allocate memory" however much there is. Does nothing where the counts cannot be read.
    """
    maps, limit = Path("/proc/self/maps"), Path("/proc/sys/vm/max_map_count")
    if not (maps.is_file() and limit.is_file()):
        return
    with maps.open("rb") as lines:
        held = sum(1 for _ in lines)
    if held > int(limit.read_text()) / 2:
        jax.clear_caches()
