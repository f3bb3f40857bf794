"""One logistic regression on every form of every channel, its slopes shrunk by a ridge or by a horseshoe prior.

Ridge: gamma_j ~ N(0, 1), the mode. Horseshoe (Carvalho, Polson & Scott 2010): gamma_j = tau lambda_j z_j with
z_j ~ N(0, 1), lambda_j ~ C+(0, 1), tau ~ C+(0, 1), the mean of a mean-field Gaussian posterior on log tau, log lambda_j
and z_j. Both on standardised predictors of the training databases.
"""

from collections.abc import Iterator, Mapping, Sequence

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
from evidence_rows import RICH, ranking, training_evidence
from numpyro.infer import SVI, Trace_ELBO
from numpyro.infer.autoguide import AutoNormal
from numpyro.optim import Adam
from sklearn.linear_model import LogisticRegression

from bayeslink.evidence.channel import Evidence, Standardisation
from bayeslink.evidence.store import load_evidence

FORMS = ("value", "below_best", "rank")


def shrunk(config: Mapping) -> Iterator[dict]:
    """The ranking of unseen databases under either prior, and the log loss of a table, nats."""
    training = [item.select_channels(RICH) for item in training_evidence(config)]
    standardisation = Standardisation.fit(training, (), FORMS)
    predictors, gold = pairs([standardisation.apply(item) for item in training])
    for name, fit in (("ridge", ridge), ("horseshoe", horseshoe)):
        intercept, slopes = fit(predictors, gold, config)
        for data in config["sets"]:
            evidences = load_evidence(data, RICH)
            scores = [intercept + standardisation.apply(item).values @ slopes for item in evidences]
            flat = np.concatenate([score.ravel() for score in scores])
            truth = np.concatenate([np.asarray(item.gold).ravel() for item in evidences])
            loss = float(np.logaddexp(0, np.where(truth, -flat, flat)).mean())
            small = float((np.abs(slopes) < config["negligible"]).mean())
            row = {"part": "prior", "name": name, "data": data, "log_loss": loss, "negligible": small}
            yield row | ranking(evidences, scores, config)


def pairs(evidences: Sequence[Evidence]) -> tuple[np.ndarray, np.ndarray]:
    """Predictors and gold of every (question, table) pair."""
    values = np.concatenate([item.values.reshape(-1, item.values.shape[2]) for item in evidences])
    return values, np.concatenate([np.asarray(item.gold).ravel() for item in evidences])


def ridge(predictors: np.ndarray, gold: np.ndarray, config: Mapping) -> tuple[float, np.ndarray]:
    """Intercept and slopes at the mode."""
    found = LogisticRegression(C=1.0, tol=1e-6, max_iter=2000).fit(predictors, gold)
    return float(found.intercept_[0]), found.coef_[0]


def horseshoe(predictors: np.ndarray, gold: np.ndarray, config: Mapping) -> tuple[float, np.ndarray]:
    """Intercept and slopes, posterior means."""
    given, truth = jnp.asarray(predictors), jnp.asarray(gold)

    def model() -> None:
        intercept = numpyro.sample("intercept", dist.Normal(0.0, 5.0))
        overall = numpyro.sample("tau", dist.HalfCauchy(1.0))
        with numpyro.plate("channels", given.shape[1]):
            local = numpyro.sample("lambda", dist.HalfCauchy(1.0))
            raw = numpyro.sample("z", dist.Normal(0.0, 1.0))
        slopes = numpyro.deterministic("gamma", overall * local * raw)
        numpyro.sample("gold", dist.Bernoulli(logits=intercept + given @ slopes), obs=truth)

    guide = AutoNormal(model)
    rate = Adam(lambda step: config["rate"] * 0.01 ** (step / config["steps"]))
    found = SVI(model, guide, rate, Trace_ELBO()).run(
        jax.random.key(config["seed"]), config["steps"], progress_bar=False
    )
    draws = guide.sample_posterior(
        jax.random.key(config["seed"] + 1), found.params, sample_shape=(config["prior_draws"],)
    )
    slopes = draws["tau"][:, None] * draws["lambda"] * draws["z"]
    return float(draws["intercept"].mean()), np.asarray(slopes.mean(axis=0))
