"""The methods of a learning curve, fitted on the training sets without the twins of the dev databases."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from bayeslink.evaluation.learning import Learner, learner_of, unpooled_learner
from bayeslink.evaluation.questions import stored_questions
from bayeslink.evaluation.report import fit_posteriors
from bayeslink.evaluation.schemes import FitSettings
from bayeslink.inference.update import table_scale, with_table_effects
from bayeslink.model.hierarchy import Terms, Variant

__all__ = ["Population", "population_learners"]

HELD = ("spider-dev", "bird-dev")
"""Sets whose databases, and their twins, no method is fitted on."""

WITH_TABLES = (Variant.HIERARCHICAL, Variant.INDEPENDENT_HIERARCHICAL)


class Population(NamedTuple):
    """Methods by name, and what their fits found.

    Attributes:
        learners: Methods by name.
        figures: Number of training databases, and the spread of table effects of each variant that has them.
    """

    learners: dict[str, Learner]
    figures: dict[str, float]


def population_learners(config: Mapping, still: Sequence[Variant] = (Variant.POOLED,)) -> Population:
    """Methods on one set of training databases: updated with table effects, updated without, alone, and still ones.

    Args:
        config: train and channels (stored sets and channels), context, draws and seed (of the fits), max_tables and
            train_databases (largest schema and number of databases of the training sets), updated_draws (draws that an
            update uses) and search_steps (of the search for the spread of table effects).
        still: Variants that labelled questions do not change.
    """
    questions = stored_questions(config["train"], config["channels"])
    small = [item for item in questions.evidences if item.num_tables <= config["max_tables"]]
    questions = replace(questions, evidences=tuple(small[: config["train_databases"]]))
    settings = FitSettings(num_draws=config["draws"], seed=config["seed"], context=tuple(config["context"]))
    with_slopes = settings._replace(terms=Terms(correlated=True, slope_scale=True))
    unchanged = fit_posteriors(questions, still, HELD, settings, effects=False)
    found = fit_posteriors(questions, WITH_TABLES, HELD, with_slopes, effects=False, progress=True)
    hierarchical, independent = found
    known = set(hierarchical.databases)
    training = [item for item in questions.evidences if item.key in known]
    scales = {item.variant.value: table_scale(item, training, config["search_steps"]) for item in found}
    few = config["updated_draws"]
    learners = {item.variant.value: learner_of(item, learns=False) for item in unchanged}
    learners |= {
        "hierarchical": learner_of(hierarchical, num_draws=few),
        "hierarchical_tables": learner_of(with_table_effects(hierarchical, scales["hierarchical"]), num_draws=few),
        "independent_hierarchical_tables": learner_of(
            with_table_effects(independent, scales["independent_hierarchical"]), num_draws=few
        ),
        "unpooled": unpooled_learner(hierarchical, num_draws=few),
    }
    figures: dict[str, float] = {"train_databases": len(training)}
    for item in found:
        figures[f"inner_gradient_{item.variant.value}"] = float(item.info["inner_gradient"])
    for name, scale in scales.items():
        figures |= {
            f"sigma_table_{name}": scale.sigma_table,
            f"table_effects_gain_in_log_marginal_{name}": scale.log_marginal - scale.log_marginal_without,
        }
    return Population(learners, figures)
