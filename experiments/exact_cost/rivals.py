"""Other programs that give log Z and all marginals of one graph; each is absent where it is not installed."""

import importlib.util
import warnings
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np

Answer = tuple[np.ndarray, np.ndarray]
"""Log Z [questions] and marginals [questions tables]."""

CHUNK = 10
"""Questions listed at once; 2^18 states of 10 questions are 21 MB."""

BLOCK = 2**11
"""States in a block; those of 100 questions are 1.6 MB."""


def listing(unary: np.ndarray, edges: np.ndarray, coupling: float) -> Callable[[], Answer]:
    """Enumeration as in `inference.enumeration`, without its limit: all 2^n energies of some questions at once."""
    num_questions, num_tables = unary.shape
    states = jnp.asarray((np.arange(2**num_tables)[:, None] >> np.arange(num_tables)) & 1, dtype=jnp.float64)
    pairs = coupling * (states[:, edges[:, 0]] * states[:, edges[:, 1]]).sum(axis=1)

    @jax.jit
    def answer(unary: jax.Array, states: jax.Array, pairs: jax.Array) -> tuple[jax.Array, jax.Array]:
        energies = unary @ states.T + pairs
        log_z = jax.nn.logsumexp(energies, axis=1)
        return log_z, jnp.exp(energies - log_z[:, None]) @ states

    def run() -> Answer:
        chunks = [answer(unary[i : i + CHUNK], states, pairs) for i in range(0, num_questions, CHUNK)]
        log_z, marginals = (np.concatenate([np.asarray(part) for part in parts]) for parts in zip(*chunks, strict=True))
        return log_z, marginals

    return run


def blocked_listing(unary: np.ndarray, edges: np.ndarray, coupling: float) -> Callable[[], object]:
    """Enumeration at its best: states in blocks that stay in the processor's cache, one running sum."""
    num_tables = unary.shape[1]
    states = ((np.arange(2**num_tables)[:, None] >> np.arange(num_tables)) & 1).astype(np.float64)
    pairs = coupling * (states[:, edges[:, 0]] * states[:, edges[:, 1]]).sum(axis=1)
    count = max(1, len(states) // BLOCK)
    blocks = jnp.asarray(states.reshape(count, -1, num_tables)), jnp.asarray(pairs.reshape(count, -1))

    @jax.jit
    def answer(unary: jax.Array, states: jax.Array, pairs: jax.Array) -> tuple[jax.Array, jax.Array]:
        def step(held: tuple[jax.Array, ...], block: tuple[jax.Array, jax.Array]) -> tuple[tuple[jax.Array, ...], None]:
            largest, total, taken = held
            energies = unary @ block[0].T + block[1]
            top = jnp.maximum(largest, energies.max(axis=1))
            weights, old = jnp.exp(energies - top[:, None]), jnp.exp(largest - top)
            return (top, total * old + weights.sum(axis=1), taken * old[:, None] + weights @ block[0]), None

        start = jnp.full(len(unary), -jnp.inf), jnp.zeros(len(unary)), jnp.zeros_like(unary)
        (top, total, taken), _ = jax.lax.scan(step, start, (states, pairs))
        return top + jnp.log(total), taken / total[:, None]

    batch = jnp.asarray(unary)
    return lambda: answer(batch, *blocks)


def dwave(unary: np.ndarray, edges: np.ndarray, coupling: float) -> Callable[[], Answer] | None:
    """TreeDecompositionSampler of dwave-samplers (C++, min-fill order), one call a question; None if absent.

    Its models are built before the clock starts.
    """
    if importlib.util.find_spec("dwave") is None or importlib.util.find_spec("dwave.samplers") is None:
        return None
    import dimod
    from dwave.samplers import TreeDecompositionSampler

    pairs = {(int(s), int(t)): -coupling for s, t in edges}
    models = [dimod.BinaryQuadraticModel(dict(enumerate(-row)), pairs, 0.0, dimod.BINARY) for row in unary]
    sampler, tables = TreeDecompositionSampler(), range(unary.shape[1])

    def run() -> Answer:
        found = [sampler.sample(model, num_reads=1, beta=1.0, marginals=True, seed=1).info for model in models]
        log_z = np.array([info["log_partition_function"] for info in found])
        return log_z, np.array([[info["variable_marginals"][t] for t in tables] for info in found])

    return run


def pgmpy(unary: np.ndarray, edges: np.ndarray, coupling: float) -> Callable[[], Answer] | None:
    """Calibrated junction tree of pgmpy (Python), one a question; None if absent.

    Its models are built before the clock starts; its junction tree is part of the answer.
    """
    if importlib.util.find_spec("pgmpy") is None:
        return None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from pgmpy.factors.discrete import DiscreteFactor
        from pgmpy.inference import BeliefPropagation
        from pgmpy.models import DiscreteMarkovNetwork

    def model(row: np.ndarray) -> object:
        network = DiscreteMarkovNetwork()
        network.add_nodes_from(range(len(row)))
        network.add_edges_from(edges.tolist())
        for t, a in enumerate(row):
            network.add_factors(DiscreteFactor([t], [2], [1.0, np.exp(a)]))
        for s, t in edges.tolist():
            network.add_factors(DiscreteFactor([s, t], [2, 2], [1.0, 1.0, 1.0, np.exp(coupling)]))
        return network

    models = [model(row) for row in unary]

    def one(network: object) -> tuple[float, list[float]]:
        tree = BeliefPropagation(network)
        tree.calibrate()
        beliefs = tree.get_clique_beliefs()
        total = float(next(iter(beliefs.values())).values.sum())
        marginal = {}
        for clique, belief in beliefs.items():
            for t in set(clique) - marginal.keys():
                marginal[t] = float(belief.marginalize([v for v in clique if v != t], inplace=False).values[1])
        return np.log(total), [marginal[t] / total for t in range(unary.shape[1])]

    def run() -> Answer:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = [one(network) for network in models]
        return np.array([log_z for log_z, _ in found]), np.array([row for _, row in found])

    return run


def absent(unary: np.ndarray, edges: np.ndarray, coupling: float) -> None:
    """A program that is left out and recorded as absent."""
    return None
