"""The posterior predictive of a schema too large to list: every draw exact by elimination, then averaged.

Marginals, pair marginals, P(gold inside S), the distribution of the size and log p(x) of a given subset average
exactly over draws. What needs all subsets at once (the mode, the k most probable subsets, entropy, connectedness)
is read off a pool: the mode of every draw and exact samples from every draw, each scored exactly under the mixture.
A subset outside the pool has at most the unexplored mass, so the mode is certain when it has more.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache, partial

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from bayeslink.inference import queries
from bayeslink.inference.elimination import Plan, forward_log, pad, plan, separator_gain, width_of
from bayeslink.inference.exports import DistributionExports
from bayeslink.inference.posterior import DatabaseDraws
from bayeslink.model.autologistic import Support, log_normaliser, unary_log_odds

__all__ = ["FactoredDistribution", "draws_gain", "padded_plan"]

SAMPLES_PER_DRAW = 10
"""Exact samples of each draw in the pool."""

TAIL = 1e-13
"""Probability of the sizes that `size_distribution` takes for impossible; like its rounding."""


def padded_plan(edges: Int[np.ndarray, "edges 2"], num_tables: int) -> tuple[Plan, int]:
    """A plan with rows, widths and slots rounded up, so that schemas of like size share compiled programs.

    Returns:
        The plan, and the number of tables that unaries must be padded to.
    """
    return _padded(tuple(map(tuple, np.asarray(edges).reshape(-1, 2).tolist())), num_tables)


@lru_cache(maxsize=32)
def _padded(edges: tuple[tuple[int, int], ...], num_tables: int) -> tuple[Plan, int]:
    exact = plan(np.array(edges, dtype=np.int64).reshape(-1, 2), num_tables)
    rows = max(16, 1 << (num_tables - 1).bit_length())
    slots = max(4, -(-exact.slot.shape[1] // 4) * 4)
    return pad(exact, rows, width_of(exact), slots, num_tables, rows), rows


def draws_gain(
    plan: Plan, coupling: Float[np.ndarray, " draws"] | Float[np.ndarray, "draws edges"]
) -> Float[Array, "steps states draws"]:
    """`separator_gain` of every posterior draw's coupling, one value or one per edge."""
    each = jnp.asarray(coupling)
    if each.ndim == 1:
        return separator_gain(plan, jnp.asarray(1.0)) * each
    return jax.vmap(lambda one: separator_gain(plan, one)[..., 0], out_axes=-1)(each)


@dataclass(frozen=True)
class FactoredDistribution(DistributionExports):
    """Posterior predictive distribution over subsets of one large database's tables, for each question.

    Same answers as `SubgraphDistribution`, of which `exact` is True where they average exactly.

    Attributes:
        values: Standardised evidence.
        edges: Node positions of each edge.
        draws: Draws of the database's parameters.
        support: All subsets, or the non-empty ones.
        seed: Seed of the pool's samples.
        exact: True: each draw's distribution is exact.
        weights: Weight of each draw, which sums to 1 for each question; equal ones where None.
        held: 1 where a table is held in the selection, -1 where it is held out, 0 where it is free; free where None.
    """

    values: Float[np.ndarray, "questions tables channels"]
    edges: Int[np.ndarray, "edges 2"]
    draws: DatabaseDraws
    support: Support = Support.ALL
    seed: int = 0
    exact: bool = True
    weights: Float[np.ndarray, "questions draws"] | None = None
    held: Int[np.ndarray, "questions tables"] | None = None

    @property
    def num_tables(self) -> int:
        """Number of tables n."""
        return self.values.shape[1]

    @cached_property
    def _plan(self) -> tuple[Plan, int]:
        return padded_plan(self.edges, self.num_tables)

    @cached_property
    def _gain(self) -> Array:
        return draws_gain(self._plan[0], self.draws.coupling)

    @cached_property
    def _unaries(self) -> list[Float[Array, "tables draws"]]:
        """Unaries of every draw for each question, tables first, padded."""
        intercept, slopes = jnp.asarray(self.draws.intercept), jnp.asarray(self.draws.slopes)
        rows = self._plan[1]
        if intercept.ndim == 2:
            intercept = jnp.pad(intercept, ((0, 0), (0, rows - self.num_tables)))
        values = jnp.asarray(self.values)
        padded = jnp.pad(values, ((0, 0), (0, rows - self.num_tables), (0, 0)))
        free = [jax.vmap(unary_log_odds, in_axes=(None, 0, 0), out_axes=-1)(z, intercept, slopes) for z in padded]
        if self.held is None:
            return free
        held = jnp.pad(jnp.asarray(self.held), ((0, 0), (0, rows - self.num_tables)))[..., None]
        return [
            jnp.where(h > 0, queries.FORCED, jnp.where(h < 0, queries.CLAMPED, unary))
            for h, unary in zip(held, free, strict=True)
        ]

    @cached_property
    def _weights(self) -> Float[np.ndarray, "questions draws"]:
        num_draws = len(self.draws.slopes)
        return np.full((len(self.values), num_draws), 1 / num_draws) if self.weights is None else self.weights

    @cached_property
    def _answers(self) -> list[tuple[np.ndarray, ...]]:
        """(marginals, pair marginals, P(empty), log normalisers) of each question."""
        edges = jnp.zeros(len(self.edges))
        return [
            tuple(
                np.asarray(part)
                for part in _averages(u, edges, self._plan[0], self._gain, jnp.asarray(w), self.support)
            )
            for u, w in zip(self._unaries, self._weights, strict=True)
        ]

    @cached_property
    def marginals(self) -> Float[np.ndarray, "questions tables"]:
        """Probability that each table is needed."""
        return np.clip(np.stack([found[0][: self.num_tables] for found in self._answers]), 0.0, 1.0)

    @cached_property
    def pair_marginals(self) -> Float[np.ndarray, "questions edges"]:
        """Probability that both tables of each edge are needed."""
        return np.stack([found[1] for found in self._answers])

    @cached_property
    def prob_empty(self) -> Float[np.ndarray, " questions"]:
        """P(no table) of the all-subsets form."""
        return np.array([float(found[2]) for found in self._answers])

    @cached_property
    def expected_size(self) -> Float[np.ndarray, " questions"]:
        """E[N], the expected number of needed tables."""
        return self.marginals.sum(axis=1)

    @cached_property
    def size_distribution(self) -> Float[np.ndarray, "questions sizes"]:
        """P(N = 0), ..., P(N = n); 0 for sizes that are larger with a probability below `TAIL` in every draw."""
        rows = []
        for question, (unary, weight) in enumerate(zip(self._unaries, self._weights, strict=True)):
            most = self._largest_size(unary, question)
            sizes = np.zeros((self.num_tables + 1, unary.shape[1]))
            sizes[:most] = _sizes(unary, self._plan[0], self._gain, most)
            if self.support is Support.NON_EMPTY:
                sizes[0] = 0.0
                sizes = sizes / sizes.sum(axis=0)
            rows.append(sizes @ weight)
        return np.stack(rows)

    def _largest_size(self, unary: Float[Array, "tables draws"], question: int) -> int:
        """A number of sizes, 0 on, that hold all but `TAIL` of every draw: P(N >= m) <= E[exp(N)] exp(-m) (Chernoff).

        Rounded up to a power of two, so that questions share compiled programs.
        """
        log_moment = np.asarray(_log_z(unary + 1.0, self._plan[0], self._gain)) - self._answers[question][3]
        most = int(np.ceil(log_moment.max() - np.log(TAIL)))
        return min(1 << max(most - 1, 1).bit_length(), self.num_tables + 1)

    def log_probability_of(self, selections: Sequence[Bool[np.ndarray, "subsets tables"]]) -> list[np.ndarray]:
        """Log p(x) under the mixture, nats, of several subsets for each question."""
        return [self._scored(question, np.atleast_2d(chosen)) for question, chosen in enumerate(selections)]

    def _scored(self, question: int, chosen: Bool[np.ndarray, "subsets tables"]) -> np.ndarray:
        unary = np.asarray(self._unaries[question])[: self.num_tables]
        inside = chosen[:, self.edges[:, 0]] & chosen[:, self.edges[:, 1]]
        coupling = self.draws.coupling.reshape(len(self.draws.coupling), -1)
        energies = chosen @ unary + inside @ np.broadcast_to(coupling, (len(coupling), inside.shape[1])).T
        scores = energies - self._answers[question][3]
        if self.support is Support.NON_EMPTY:
            scores[~chosen.any(axis=1)] = -np.inf
        with np.errstate(divide="ignore"):
            return np.logaddexp.reduce(scores + np.log(self._weights[question]), axis=1)

    def probability_of(self, selection: Bool[np.ndarray, "questions tables"]) -> Float[np.ndarray, " questions"]:
        """Probability of one subset for each question."""
        return np.exp([float(found[0]) for found in self.log_probability_of(list(selection[:, None]))])

    @cached_property
    def _samples(self) -> list[Bool[np.ndarray, "subsets tables"]]:
        """Exact samples of the mixture for each question: `SAMPLES_PER_DRAW` of each draw."""
        key = jax.random.key(self.seed)
        return [
            self._sample(jax.random.fold_in(key, question), unary)[:, : self.num_tables]
            for question, unary in enumerate(self._unaries)
        ]

    def _sample(self, key: Array, unary: Array) -> Bool[np.ndarray, "subsets tables"]:
        found = np.array(_sampled(key, unary, self._plan[0], self._gain))
        if self.support is Support.NON_EMPTY:
            # Where the selection came out empty, draw from the conditional distribution instead: that is a mixture
            # of the same non-empty part, so the result has exactly the non-empty distribution.
            empty = ~found.any(axis=1)
            if empty.any():
                again = _sampled_not_empty(key, unary, self._plan[0], self._gain, self.num_tables)
                found[empty] = np.asarray(again)[empty]
        return found

    @cached_property
    def _pool(self) -> list[tuple[np.ndarray, np.ndarray]]:
        """Distinct subsets and their probabilities, most probable first, for each question."""
        pools = []
        for question, unary in enumerate(self._unaries):
            modes = np.asarray(_modes(unary, self._plan[0], self._gain)).T[:, : self.num_tables]
            found = np.concatenate([modes, self._samples[question]])
            # By their bits: the same order, an eighth of the bytes to sort.
            chosen = found[np.unique(np.packbits(found > 0, axis=1), axis=0, return_index=True)[1]]
            if self.support is Support.NON_EMPTY:
                chosen = chosen[chosen.any(axis=1)]
            probability = np.exp(self._scored(question, chosen))
            order = np.argsort(-probability, kind="stable")
            pools.append((chosen[order], probability[order]))
        return pools

    @cached_property
    def mode(self) -> Bool[np.ndarray, "questions tables"]:
        """The most probable subset found; certain where `mode_certain`."""
        return np.stack([chosen[0] for chosen, _ in self._pool])

    @cached_property
    def mode_probability(self) -> Float[np.ndarray, " questions"]:
        """Its probability, exact."""
        return np.array([float(probability[0]) for _, probability in self._pool])

    @cached_property
    def unexplored_mass(self) -> Float[np.ndarray, " questions"]:
        """Probability of all subsets outside the pool."""
        return np.array([max(0.0, 1.0 - float(probability.sum())) for _, probability in self._pool])

    @property
    def mode_certain(self) -> Bool[np.ndarray, " questions"]:
        """True where no subset outside the pool can be more probable than the mode."""
        return self.mode_probability >= self.unexplored_mass

    def top(
        self, k: int
    ) -> tuple[Bool[np.ndarray, "questions subsets tables"], Float[np.ndarray, "questions subsets"]]:
        """The k most probable subsets of the pool and their exact probabilities."""
        k = min(k, *(len(probability) for _, probability in self._pool))
        return np.stack([chosen[:k] for chosen, _ in self._pool]), np.stack([p[:k] for _, p in self._pool])

    def collection(self, level: float) -> list[Bool[np.ndarray, "subsets tables"]]:
        """The fewest subsets of the pool whose exact probabilities sum to `level`, for each question.

        With the highest masses first. It is the highest-mass collection of all subsets where its least
        probable member has at least `unexplored_mass`; it has the stated mass in any case.

        Raises:
            ValueError: If `level` is outside (0, 1], or the pool holds less mass than that.
        """
        if not 0 < level <= 1:
            raise ValueError(f"level={level}: a probability above 0 and at most 1 is needed")
        found = []
        for chosen, probability in self._pool:
            mass = np.cumsum(probability)
            if mass[-1] < level:
                raise ValueError(
                    f"level={level}: the subsets explored hold {mass[-1]:.3f}; ask for a lower level, "
                    "or for a cover, which needs no list"
                )
            found.append(chosen[: int((mass < level).sum()) + 1])
        return found

    @cached_property
    def _sampled_entropy(self) -> list[np.ndarray]:
        return [-self._scored(question, chosen) for question, chosen in enumerate(self._samples)]

    @property
    def entropy(self) -> Float[np.ndarray, " questions"]:
        """Entropy of the joint distribution, nats: mean of -log p over samples scored exactly."""
        return self._mean(self._sampled_entropy)

    @property
    def entropy_standard_error(self) -> Float[np.ndarray, " questions"]:
        """Monte Carlo standard error of `entropy`, nats; draws are the independent units."""
        return self._standard_error(self._sampled_entropy)

    @cached_property
    def _connected(self) -> list[np.ndarray]:
        return [np.array([float(_is_connected(x, self.edges)) for x in chosen]) for chosen in self._samples]

    @property
    def connected_probability(self) -> Float[np.ndarray, " questions"]:
        """Share of the samples that are non-empty and connected."""
        return self._mean(self._connected)

    @property
    def connected_standard_error(self) -> Float[np.ndarray, " questions"]:
        """Monte Carlo standard error of `connected_probability`."""
        return self._standard_error(self._connected)

    def _mean(self, sampled: Sequence[np.ndarray]) -> Float[np.ndarray, " questions"]:
        """Mean over the samples of each question, those of a draw with its weight."""
        return np.array([w @ _by_draw(found) for w, found in zip(self._weights, sampled, strict=True)])

    def _standard_error(self, sampled: Sequence[np.ndarray]) -> Float[np.ndarray, " questions"]:
        """Monte Carlo standard error of `_mean`; draws are the independent units; NaN where there is one."""
        errors = []
        for weight, found in zip(self._weights, sampled, strict=True):
            means, count = _by_draw(found), len(weight)
            squares = float(weight**2 @ (means - weight @ means) ** 2)
            errors.append(np.sqrt(squares * count / (count - 1)) if count > 1 else np.nan)
        return np.array(errors)

    def condition(
        self, table: Int[np.ndarray, " questions"], needed: Bool[np.ndarray, " questions"]
    ) -> "FactoredDistribution":
        """The distribution given that one table of each question is needed, or is not; exact given the draws.

        Each draw's distribution is conditioned, and draws are weighted by the probability that they gave the answer.

        Args:
            table: Position of the table.
            needed: Whether it is needed.

        Raises:
            ValueError: If an answer has probability 0.
        """
        rows = np.arange(len(self.values))
        held = np.zeros(self.values.shape[:2], dtype=np.int64) if self.held is None else self.held.copy()
        if (bad := held[rows, table] == np.where(needed, -1, 1)).any():
            raise ValueError(f"table={int(table[bad][0])}: it was answered otherwise before; leave this answer out")
        held[rows, table] = np.where(needed, 1, -1)
        found = replace(self, held=held)
        weights = []
        for question in rows.tolist():
            gone = np.asarray(self._unaries[question])[table[question]] - queries.FORCED if needed[question] else 0.0
            log = found._answers[question][3] - self._answers[question][3] + gone
            with np.errstate(divide="ignore"):
                log = log + np.log(self._weights[question])
            if not np.isfinite(log.max()):
                raise ValueError(f"table={int(table[question])}: this answer has probability 0; leave it out")
            weights.append(np.exp(log - np.logaddexp.reduce(log)))
        return replace(self, held=held, weights=np.stack(weights))

    def weighted_samples(self) -> list[tuple[Bool[np.ndarray, "subsets tables"], Float[np.ndarray, " subsets"]]]:
        """Exact samples of every draw and their weights, which sum to 1, for each question."""
        return [
            (chosen, np.repeat(weight / SAMPLES_PER_DRAW, SAMPLES_PER_DRAW))
            for chosen, weight in zip(self._samples, self._weights, strict=True)
        ]

    def explored(self, question: int) -> tuple[Bool[np.ndarray, "subsets tables"], Float[np.ndarray, " subsets"]]:
        """The pool of one question: distinct subsets and their exact probabilities, most probable first."""
        return self._pool[question]

    def coverage(self, question: int, chosen: Bool[np.ndarray, "sets tables"]) -> Float[np.ndarray, " sets"]:
        """P(gold inside S) of several sets S for one question, exact."""
        whole = jnp.asarray(self._answers[question][3])
        padded = np.pad(chosen, ((0, 0), (0, self._plan[1] - self.num_tables)))
        fixed = self._unaries[question], self._plan[0], self._gain, jnp.asarray(self._weights[question]), whole
        found = [float(_covered(jnp.asarray(inside), *fixed, self.support)) for inside in padded]
        return np.clip(found, 0.0, 1.0)

    def cover_probability(self, selection: Bool[np.ndarray, "questions tables"]) -> Float[np.ndarray, " questions"]:
        """P(gold inside S) for one S for each question, exact."""
        return np.array([float(self.coverage(q, chosen[None])[0]) for q, chosen in enumerate(selection)])


def _by_draw(values: Float[np.ndarray, " samples"]) -> Float[np.ndarray, " draws"]:
    return values.reshape(-1, SAMPLES_PER_DRAW).mean(axis=1)


def _is_connected(selection: Bool[np.ndarray, " tables"], edges: Int[np.ndarray, "edges 2"]) -> bool:
    left = set(np.flatnonzero(selection).tolist())
    if not left:
        return False
    joined: dict[int, list[int]] = {table: [] for table in left}
    for first, second in edges[selection[edges[:, 0]] & selection[edges[:, 1]]].tolist():
        joined[first].append(second)
        joined[second].append(first)
    stack = [left.pop()]
    while stack:
        near = left.intersection(joined[stack.pop()])
        left -= near
        stack.extend(near)
    return not left


@partial(jax.jit, static_argnames="support")
def _averages(
    unary: Array, no_coupling: Array, plan: Plan, gain: Array, weight: Array, support: Support
) -> tuple[Array, Array, Array, Array]:
    def mean_normaliser(shift: Array, coupling: Array) -> tuple[Array, tuple[Array, Array]]:
        log_z = forward_log(unary + shift[:, None], plan, gain + separator_gain(plan, coupling))
        normaliser = log_normaliser(log_z, support)
        return weight @ normaliser, (log_z, normaliser)

    slopes, (log_z, normaliser) = jax.grad(mean_normaliser, argnums=(0, 1), has_aux=True)(
        jnp.zeros(unary.shape[0]), no_coupling
    )
    return slopes[0], slopes[1], weight @ jnp.exp(-log_z), normaliser


@partial(jax.jit, static_argnames="support")
def _covered(
    inside: Array, unary: Array, plan: Plan, gain: Array, weight: Array, normaliser: Array, support: Support
) -> Array:
    clamped = forward_log(jnp.where(inside[:, None], unary, queries.CLAMPED), plan, gain)
    # The empty set lies inside every S; under the non-empty support it leaves both numerator and denominator.
    return weight @ jnp.exp(log_normaliser(clamped, support) - normaliser)


_log_z = jax.jit(forward_log)
_modes = jax.jit(lambda unary, plan, gain: queries.mode(unary, plan, gain)[0])
_sizes = jax.jit(queries.size_distribution, static_argnames="num_sizes")


@jax.jit
def _sampled(key: Array, unary: Array, plan: Plan, gain: Array) -> Array:
    """Samples of every draw, `SAMPLES_PER_DRAW` each, draw by draw, all-subsets support; axes samples, tables."""
    return queries.sample(key, unary, plan, gain, SAMPLES_PER_DRAW).T


@partial(jax.jit, static_argnames="num_tables")
def _sampled_not_empty(key: Array, unary: Array, plan: Plan, gain: Array, num_tables: int) -> Array:
    """As `_sampled` for the non-empty support: the first selected table, then the rest given it.

    P(t is the first) = (Z_t - Z_{t+1}) / (Z - 1), with Z_t that of the tables from t on, the others held out.
    """
    many = jnp.repeat(unary, SAMPLES_PER_DRAW, axis=1)
    gains = jnp.repeat(gain, SAMPLES_PER_DRAW, axis=2)
    place = jnp.arange(unary.shape[0])

    def log_z(first: Array) -> Array:
        return forward_log(jnp.where((place < first)[:, None], queries.CLAMPED, unary), plan, gain)

    above_one = jax.lax.map(lambda first: jnp.expm1(log_z(first)), jnp.arange(num_tables + 1))
    weights = jnp.repeat(above_one[:-1] - above_one[1:], SAMPLES_PER_DRAW, axis=1)
    choice, rest = jax.random.split(key)
    first = jax.random.categorical(choice, jnp.log(jnp.maximum(weights, 0.0)), axis=0)
    held_out = place[:, None] < first[None, :]
    forced = place[:, None] == first[None, :]
    return queries.sample(
        rest, jnp.where(held_out, queries.CLAMPED, jnp.where(forced, queries.FORCED, many)), plan, gains
    ).T
