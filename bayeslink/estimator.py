"""SubgraphModel: the model for scores and graphs of one's own, with the methods of a scikit-learn estimator.

model = SubgraphModel(edges).fit(X, y, groups)
model.predict_proba(X_new, groups_new); model.cover(X_new, groups_new, level=0.9)

Nodes may be passages, entities or variables: a question selects some of them, and nodes that an edge joins tend to be
selected together. Questions of one group share an intercept and a coupling. The equations are those of `inference.fit`.
"""

import warnings
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TypeVar

import jax.numpy as jnp
import numpy as np
from jaxtyping import Float, Int
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from bayeslink.decision.covers import certified_cover
from bayeslink.evaluation.held_out import fresh_draws
from bayeslink.evidence.channel import Standardisation
from bayeslink.graph_questions import Part, checked_labels, question_parts
from bayeslink.inference.factored import FactoredDistribution
from bayeslink.inference.fit import FIXED_COUPLING, METHODS, fit_packed, pack_for
from bayeslink.inference.packing import pack
from bayeslink.inference.posterior import Posterior
from bayeslink.inference.predictive import SubgraphDistribution, predict
from bayeslink.model.autologistic import Support
from bayeslink.model.batch import Batch, DatabaseRows
from bayeslink.model.hierarchy import Variant
from bayeslink.model.priors import Priors

__all__ = ["SubgraphModel"]

Distribution = SubgraphDistribution | FactoredDistribution

_Member = TypeVar("_Member", Support, Variant)


class SubgraphModel(BaseEstimator):
    """Joint posterior over the nodes of a graph that a question selects.

    X holds a row of scores for each node of each question: an array with axes questions, nodes, channels, or a sequence
    of arrays with axes nodes, channels where graphs differ in size. y is 1 where a node is selected, with the axes of X
    less the last. What comes back has the form of what went in: one array, or a list with an array for each question.

    Attributes:
        edges: Pairs of joined nodes: one list for all questions, a mapping from group to list, or a sequence with a
            list for each question. A pair given twice counts once.
        variant: One of the variants' names in NOTATION.md.
        method: "laplace", "nested" or "nuts".
        support: "all" subsets, or the "non-empty" ones.
        coupling: The given coupling of the variant `fixed`, nats.
        priors: Prior scales; the defaults of `Priors` where None.
        forms: Forms of each channel beside its value, of `evidence.forms.FORMS`.
        num_draws: Number of posterior draws.
        random_state: Seed of the draws, a whole number.
        posterior_: What the fit found, a `Posterior`.
        coef_: Posterior mean of the slope of each channel, form by form, log-odds for a standard deviation of it.
        coupling_: Posterior mean of the population's coupling, nats.
        n_features_in_: Number of channels.
        classes_: 0 and 1.
    """

    def __init__(
        self,
        edges=(),
        *,
        variant: str = "hierarchical",
        method: str = "laplace",
        support: str = "all",
        coupling: float = FIXED_COUPLING,
        priors: Priors | None = None,
        forms: Sequence[str] = (),
        num_draws: int = 200,
        random_state: int = 0,
    ):
        self.edges = edges
        self.variant = variant
        self.method = method
        self.support = support
        self.coupling = coupling
        self.priors = priors
        self.forms = forms
        self.num_draws = num_draws
        self.random_state = random_state

    def fit(self, X, y, groups=None) -> "SubgraphModel":
        """Fit to questions whose selections are known.

        Args:
            X: Scores.
            y: 1 where a node is selected.
            groups: The group of each question; all in one group where None.

        Raises:
            ValueError: If shapes disagree, a score is not finite, a label is not 0 or 1, or a setting is unknown.
            FloatingPointError: If the fit does not converge.
        """
        variant = _member(Variant, "variant", self.variant)
        support = _member(Support, "support", self.support)
        if self.method not in METHODS:
            raise ValueError(f"method={self.method!r}: use one of {', '.join(METHODS)}")
        parts = question_parts(X, groups, self.edges, y)
        standardisation = Standardisation.fit([part.evidence for part in parts], forms=tuple(self.forms))
        ready = [standardisation.apply(part.evidence) for part in parts]
        keys = tuple(dict.fromkeys(item.key for item in ready))
        owner = np.array([keys.index(item.key) for item in ready])
        other = pack_for(self.method, ready)
        self.posterior_: Posterior = fit_packed(
            _by_group(pack(ready), owner),
            keys,
            standardisation,
            variant,
            self.priors or Priors(),
            support=support,
            coupling=float(self.coupling),
            num_draws=self.num_draws,
            seed=self.random_state,
            method=self.method,
            value_batch=None if other is None else _by_group(other, owner),
        )[0]
        if failed := [name for name, passed in self.posterior_.checks.items() if not passed]:
            warnings.warn(f"the fit failed its checks {failed}; do not rely on it", ConvergenceWarning, stacklevel=2)
        self.n_features_in_ = len(standardisation.channels)
        self.classes_ = np.array([0, 1])
        self.coef_ = self.posterior_.draws["gamma"].mean(axis=0)
        held = self.coupling if variant is Variant.FIXED else 0.0
        own = self.posterior_.draws.get("beta_d", np.array(held))
        self.coupling_ = float(self.posterior_.draws.get("beta", own).mean())
        return self

    def predict_proba(self, X, groups=None, *, edges=None):
        """Probability that each node is selected.

        A group of the fit has its own intercept and coupling; any other has the population's, with its spread.

        Args:
            X: Scores.
            groups: The group of each question; all in one group where None.
            edges: The graph, or graphs, of these questions; those of the constructor where None.

        Raises:
            sklearn.exceptions.NotFittedError: If `fit` was not called.
            ValueError: If shapes disagree with each other or with the fit, or a group has no edges.
        """
        return self._each(X, groups, edges, lambda item: item.marginals)

    def predict(self, X, groups=None, *, edges=None):
        """The most probable selection, 0 or 1 for each node; arguments as in `predict_proba`."""
        return self._each(X, groups, edges, lambda item: item.mode.astype(np.int64))

    def cover(self, X, groups=None, *, level: float = 0.95, edges=None):
        """The fewest nodes that hold all selected ones with probability `level` at least, 0 or 1 for each node.

        Args:
            X: Scores.
            groups: The group of each question.
            level: 1 - eps, in (0, 1].
            edges: As in `predict_proba`.

        Raises:
            ValueError: If `level` is outside (0, 1], and as in `predict_proba`.
        """
        return self._each(X, groups, edges, lambda item: certified_cover(item, level).selection.chosen.astype(np.int64))

    def score(self, X, y, groups=None, *, edges=None) -> float:
        """Share of questions whose most probable selection is exactly right: scikit-learn's score of many labels."""
        found, wanted = self.predict(X, groups, edges=edges), checked_labels(y, X)
        return float(np.mean([bool((one == other).all()) for one, other in zip(found, wanted, strict=True)]))

    def log_score(self, X, y, groups=None, *, edges=None) -> Float[np.ndarray, " questions"]:
        """Log probability of the right selection of each question, nats; a proper score of the whole distribution."""
        check_is_fitted(self)
        found = np.empty(len(X))
        for part in question_parts(X, groups, self._graphs(edges), y):
            log_probability = self._predict(part)[1]
            assert log_probability is not None
            found[part.questions] = log_probability
        return found

    def distribution(self, X, groups=None, *, edges=None) -> list[Distribution]:
        """The distribution over selections of each question; its axis questions has length 1."""
        check_is_fitted(self)
        found: list[Distribution | None] = [None] * len(X)
        for part in question_parts(X, groups, self._graphs(edges)):
            whole = self._predict(part)[0]
            for row, question in enumerate(part.questions):
                found[question] = _one(whole, row)
        return [item for item in found if item is not None]

    def sample(self, X, groups=None, *, num_samples: int = 1, random_state: int = 0, edges=None):
        """Selections drawn from the distribution of each question, 0 or 1; a leading axis samples.

        Exact where subsets are listed; on a larger graph drawn from the exact samples of the posterior's draws.

        Args:
            X: Scores.
            groups: The group of each question.
            num_samples: Number of samples.
            random_state: Seed.
            edges: As in `predict_proba`.

        Raises:
            ValueError: If `num_samples` is below 1, and as in `predict_proba`.
        """
        if num_samples < 1:
            raise ValueError(f"num_samples={num_samples}: ask for at least one sample")
        drawn = [
            _sampled(item, num_samples, np.random.default_rng([random_state, question]))
            for question, item in enumerate(self.distribution(X, groups, edges=edges))
        ]
        return np.stack(drawn, axis=1) if _is_array(X) else drawn

    def _each(self, X, groups, edges, read: Callable[[Distribution], np.ndarray]):
        """What is read off the distribution of each question, in the form of X."""
        check_is_fitted(self)
        found: list[np.ndarray] = [np.zeros(0)] * len(X)
        for part in question_parts(X, groups, self._graphs(edges)):
            for question, row in zip(part.questions, read(self._predict(part)[0]), strict=True):
                found[question] = row
        return np.stack(found) if _is_array(X) else found

    def _graphs(self, edges):
        return self.edges if edges is None else edges

    def _predict(self, part: Part) -> tuple[Distribution, Float[np.ndarray, " questions"] | None]:
        posterior = self.posterior_
        if part.evidence.values.shape[2] != self.n_features_in_:
            raise ValueError(
                f"X has {part.evidence.values.shape[2]} channels, the fit had {self.n_features_in_}; give the same ones"
            )
        ready = posterior.standardisation.apply(part.evidence)
        known = ready.key in posterior.databases
        draws = posterior.draws_for(ready) if known else fresh_draws(posterior, ready, self.random_state)
        return predict(ready, draws, posterior.support)


def _member(kind: type[_Member], argument: str, value: str) -> _Member:
    try:
        return kind(value)
    except ValueError as error:
        raise ValueError(f"{argument}={value!r}: use one of {', '.join(item.value for item in kind)}") from error


def _is_array(X) -> bool:
    return isinstance(X, np.ndarray) and X.dtype != object


def _by_group(batch: Batch, owner: Int[np.ndarray, " graphs"]) -> Batch:
    """A batch with one database for each graph, as one with one for each group: graphs of a group share its effects."""
    place = jnp.asarray(owner)
    num_groups = int(owner.max()) + 1
    first = np.array([np.flatnonzero(owner == group)[0] for group in range(num_groups)])
    return replace(
        batch,
        buckets=tuple(bucket._replace(database=place[bucket.database]) for bucket in batch.buckets),
        rows=DatabaseRows(batch.rows.covariates[first]),
        num_databases=num_groups,
    )


def _one(whole: Distribution, row: int) -> Distribution:
    """The distribution of one question."""
    if isinstance(whole, FactoredDistribution):
        return replace(whole, values=whole.values[row : row + 1])
    return replace(whole, probabilities=whole.probabilities[row : row + 1], prob_empty=whole.prob_empty[row : row + 1])


def _sampled(item: Distribution, num_samples: int, rng: np.random.Generator) -> Int[np.ndarray, "samples tables"]:
    if isinstance(item, FactoredDistribution):
        subsets, weights = item.weighted_samples()[0]
    else:
        subsets, weights = item.states, item.probabilities[0]
    return np.asarray(subsets)[rng.choice(len(weights), num_samples, p=weights / weights.sum())].astype(np.int64)
