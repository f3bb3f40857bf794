"""What exact inference costs: seconds, multiply-adds and bytes.

Times are the best of several rounds; methods that are compared take turns within each round, each turn of the
same least length and averaged over, so that other load on the machine falls on all of them alike. The arithmetic
floor of log Z counts, for each question and each table eliminated with a separator S, 2^(|S|+1) multiply-adds:
one for each state of S and the table.
"""

import functools
import resource
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental.compilation_cache import compilation_cache
from jaxtyping import Array, Float

from bayeslink.inference.decomposition import Plan
from bayeslink.inference.elimination import Arithmetic, log_partition

__all__ = [
    "CompileTimes",
    "best_times",
    "compile_times",
    "log_partition_and_marginals",
    "multiply_add_rate",
    "num_multiply_adds",
    "peak_memory",
    "power_law_slope",
    "temporary_bytes",
]

TURN = 0.02
"""Least length of one method's turn, seconds."""


class CompileTimes(NamedTuple):
    """Seconds to trace and compile, with an empty cache on disk and with a filled one.

    Processor seconds sum over threads and leave out waiting for other load.
    """

    cold: float
    cold_processor: float
    warm: float
    warm_processor: float


@functools.partial(jax.jit, static_argnames="arithmetic")
def log_partition_and_marginals(
    unary: Float[Array, "questions tables"],
    plan: Plan,
    coupling: Float[Array, "*edges"],
    arithmetic: Arithmetic = Arithmetic.LOG,
) -> tuple[Float[Array, " questions"], Float[Array, "questions tables"]]:
    """Log Z, nats, and all marginals of each question, by one value-and-gradient call."""

    def total(a: Array) -> tuple[Array, Array]:
        log_z = log_partition(a, plan, coupling, arithmetic)
        return log_z.sum(), log_z

    gradient, log_z = jax.grad(total, has_aux=True)(unary)
    return log_z, gradient


def best_times(calls: Mapping[str, Callable[[], object]], rounds: int, budget_s: float) -> dict[str, float]:
    """Seconds of each call, averaged over a turn: the best of up to `rounds` rounds in which all take turns.

    Args:
        calls: What is timed; JAX results are waited for. A first call of each, untimed, compiles.
        rounds: Rounds at most.
        budget_s: A call that has taken this long in all sits out further rounds.
    """
    best, spent = dict.fromkeys(calls, np.inf), dict.fromkeys(calls, 0.0)
    for call in calls.values():
        jax.block_until_ready(call())
    for _ in range(rounds):
        for name, call in calls.items():
            if spent[name] < budget_s:
                start, count, taken = time.perf_counter(), 0, 0.0
                while taken < TURN:
                    jax.block_until_ready(call())
                    count, taken = count + 1, time.perf_counter() - start
                best[name], spent[name] = min(best[name], taken / count), spent[name] + taken
    return best


def compile_times(function: Callable[..., object], arguments: Sequence[object], folder: Path) -> CompileTimes:
    """Time to trace and compile a function, first with an empty cache on disk, then from that cache.

    Args:
        function: What is compiled.
        arguments: Arguments that give the shapes.
        folder: An empty folder for the cache; the setting in use is restored.
    """
    names = (
        "jax_compilation_cache_dir",
        "jax_persistent_cache_min_compile_time_secs",
        "jax_persistent_cache_min_entry_size_bytes",
    )
    before = {name: getattr(jax.config, name) for name in names}
    taken = []
    try:
        for name, value in zip(names, (str(folder), 0.0, -1), strict=True):
            jax.config.update(name, value)
        for _ in range(2):
            compilation_cache.reset_cache()
            jax.clear_caches()
            start, processor = time.perf_counter(), time.process_time()
            jax.jit(function).lower(*arguments).compile()
            taken += [time.perf_counter() - start, time.process_time() - processor]
    finally:
        for name, value in before.items():
            jax.config.update(name, value)
        compilation_cache.reset_cache()
    return CompileTimes(*taken)


def num_multiply_adds(plan: Plan) -> int:
    """Multiply-adds of one log Z at the least, for a plan that is not padded."""
    sizes = (np.asarray(plan.separator) < len(plan.table)).sum(axis=1)
    return int((2 ** (sizes + 1)).sum())


def multiply_add_rate(rounds: int = 20) -> float:
    """Float64 multiply-adds per second of compiled elementwise code whose data stay in registers."""
    depth, passes, size = 32, 200, 2048

    @jax.jit
    def chain(x: Array, factor: Array, added: Array) -> Array:
        def step(_: Array, held: Array) -> Array:
            for _link in range(depth):
                held = held * factor + added
            return held

        return jax.lax.fori_loop(0, passes, step, x)

    arguments = jnp.linspace(0.0, 1.0, size), jnp.asarray(0.9), jnp.asarray(0.1)
    best = best_times({"chain": lambda: chain(*arguments)}, rounds, budget_s=5.0)["chain"]
    return depth * passes * size / best


def power_law_slope(sizes: Float[np.ndarray, " draws"], values: Float[np.ndarray, " draws"]) -> float:
    """Least-squares slope of log values against log sizes."""
    return float(np.polyfit(np.log(sizes), np.log(values), 1)[0])


def peak_memory() -> int:
    """Largest resident memory of this process so far, bytes."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    # Linux counts kilobytes, macOS bytes.
    return int(peak) * (1 if sys.platform == "darwin" else 1024)


def temporary_bytes(compiled: jax.stages.Compiled) -> int:
    """Memory that a compiled program holds beside its arguments and results, bytes; 0 where the backend is silent."""
    memory = compiled.memory_analysis()
    return 0 if memory is None else int(memory.temp_size_in_bytes)
