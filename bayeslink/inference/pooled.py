"""Selection from a pool of databases when the question does not say which one it is about.

Exactly one database has a non-empty selection. With H_d the energy of database d (`autologistic`), Z_d the sum of
exp H_d over all subsets of its tables, Z_d[S] the same with the tables outside S held out (`pool_member`), and r_d a
score of the database as a whole (`database_score`),

    P(d, x | q)        = exp( r_d + H_d(x) ) / sum_d' exp(r_d') (Z_d' - 1)        for x non-empty in d
    P(d | q)           = exp(r_d) (Z_d - 1) / sum_d' exp(r_d') (Z_d' - 1)
    P(t | q)           = P(d(t) | q) P(x_t = 1 | x non-empty in d(t))
    P(x inside S | q)  = sum_d exp(r_d) (Z_d[S] - 1) / sum_d' exp(r_d') (Z_d' - 1).

Databases are separate components of one graph, so each Z_d is exact by elimination, and every number here is that
of each posterior draw averaged over draws. The tables of a pool are counted through, database by database.
"""

from dataclasses import dataclass
from functools import cached_property

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from bayeslink.inference import enumeration
from bayeslink.inference.pool_member import PoolMember
from bayeslink.model.autologistic import energy

__all__ = ["PoolMember", "PooledDistribution"]


@dataclass(frozen=True)
class PooledDistribution:
    """Distribution over the databases of a pool and the non-empty subsets of their tables, for each question.

    Attributes:
        members: The databases, with as many draws and questions each.
        exact: True: no approximation given the draws.

    Raises:
        ValueError: If there is no database, or their draws or questions differ in number.
    """

    members: tuple[PoolMember, ...]
    exact: bool = True

    def __post_init__(self) -> None:
        shapes = {member.unary.shape[:2] for member in self.members}
        if len(shapes) != 1:
            raise ValueError(f"members have (draws, questions) {sorted(shapes)}; give databases with equally many")

    @cached_property
    def database_of(self) -> Int[np.ndarray, " tables"]:
        """Place of each table's database among the members."""
        return np.repeat(np.arange(len(self.members)), [member.num_tables for member in self.members])

    @property
    def num_tables(self) -> int:
        """Number of tables in the pool."""
        return len(self.database_of)

    @cached_property
    def log_total(self) -> Float[np.ndarray, "draws questions"]:
        """Log of the sum over databases of exp(r_d) (Z_d - 1), nats.

        Raises:
            ValueError: If for some question no database has any mass.
        """
        total = np.logaddexp.reduce([member.score + member.log_normalisers for member in self.members], axis=0)
        if not np.isfinite(total).all():
            question = int(np.argwhere(~np.isfinite(total))[0][1])
            raise ValueError(f"unary of question {question} leaves every database empty; give larger log-odds")
        return total

    def log_weight(self, database: int) -> Float[np.ndarray, "draws questions"]:
        """Log P(d | q) of one database for every draw."""
        member = self.members[database]
        return member.score + member.log_normalisers - self.log_total

    @cached_property
    def database_probability(self) -> Float[np.ndarray, "questions databases"]:
        """P(d | q)."""
        return np.stack([np.exp(self.log_weight(d)).mean(axis=0) for d in range(len(self.members))], axis=1)

    @cached_property
    def marginals(self) -> Float[np.ndarray, "questions tables"]:
        """P(t | q): the table's database is the right one and the table is needed."""
        parts = [member.weighted_marginals(np.exp(self.log_weight(d))) for d, member in enumerate(self.members)]
        return np.clip(np.concatenate(parts).T / len(self.log_total), 0.0, 1.0)

    @property
    def ranking(self) -> Int[np.ndarray, "questions tables"]:
        """All tables of the pool, the most probable first."""
        return np.argsort(-self.marginals, axis=1, kind="stable")

    @property
    def expected_size(self) -> Float[np.ndarray, " questions"]:
        """Expected number of needed tables."""
        return self.marginals.sum(axis=1)

    def log_probability_of(self, selection: Bool[np.ndarray, "questions tables"]) -> Float[np.ndarray, " questions"]:
        """Log probability, nats, that the needed tables are just these, for one set for each question.

        Raises:
            ValueError: If a set is empty or has tables of several databases.
        """
        touched = np.stack([selection[:, self.database_of == d].any(axis=1) for d in range(len(self.members))], axis=1)
        if (wrong := touched.sum(axis=1) != 1).any():
            question = int(np.flatnonzero(wrong)[0])
            raise ValueError(
                f"selection of question {question} touches {int(touched[question].sum())} databases; give tables of one"
            )
        scores = -self.log_total
        for d, member in enumerate(self.members):
            rows = np.flatnonzero(touched[:, d])
            if len(rows):
                chosen = jnp.asarray(selection[np.ix_(rows, self.database_of == d)], dtype=jnp.float64)
                found = _energies(chosen, member.unary[:, rows], member.edges, member.coupling)
                scores[:, rows] += np.broadcast_to(member.score, scores.shape)[:, rows] + np.asarray(found)
        return np.logaddexp.reduce(scores, axis=0) - np.log(len(scores))

    def coverage(
        self, database: int, inside: Bool[np.ndarray, "sets tables"], questions: Int[np.ndarray, " sets"]
    ) -> Float[np.ndarray, " sets"]:
        """P(the needed tables are in one database and inside S) of sets S of its tables, each for one question."""
        member = self.members[database]
        score = np.broadcast_to(member.score, self.log_total.shape)[:, questions]
        return np.exp(score + member.log_mass(inside, questions) - self.log_total[:, questions]).mean(axis=0)

    def cover_probability(self, selection: Bool[np.ndarray, "questions tables"]) -> Float[np.ndarray, " questions"]:
        """P(every needed table is in S) for one S for each question."""
        every = np.arange(len(selection))
        parts = [self.coverage(d, selection[:, self.database_of == d], every) for d in range(len(self.members))]
        return np.clip(np.sum(parts, axis=0), 0.0, 1.0)

    def subset_probabilities(self, database: int, question: int) -> Float[np.ndarray, " states"]:
        """P(d, x | q) of every subset x of one database's tables, in the order of `enumeration.states`.

        Raises:
            ValueError: If it has too many tables to list their subsets.
        """
        member = self.members[database]
        plan = enumeration.plan(member.edges, member.num_tables)
        weights = np.exp(self.log_weight(database)[:, question])
        return np.asarray(_subsets(member.unary[:, question], weights, plan, member.coupling)) / len(weights)


@jax.jit
def _energies(selection: Array, unary: Array, edges: Array, coupling: Array) -> Array:
    """Energy of each question's selection, by draw and question."""
    return jax.vmap(energy, in_axes=(None, 0, None, 0))(selection, unary, edges, coupling)


@jax.jit
def _subsets(unary: Array, weights: Array, plan: enumeration.StatePlan, coupling: Array) -> Array:
    """Sum over draws of a weight times the probability of each subset given that it is not empty."""

    def add(total: Array, draw: tuple[Array, Array, Array]) -> tuple[Array, None]:
        a, weight, beta = draw
        log_probs = enumeration.log_probabilities(a, plan, beta).at[0].set(-jnp.inf)
        return total + weight * jax.nn.softmax(log_probs), None

    return jax.lax.scan(add, jnp.zeros(plan.states.shape[0]), (unary, weights, coupling))[0]
