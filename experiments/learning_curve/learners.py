"""The methods of the learning curve, fitted on the training sets without twins of the dev databases."""

from collections.abc import Mapping
from dataclasses import replace

from bayeslink.evaluation.learning import Learner, learner_of, unpooled_learner
from bayeslink.evaluation.questions import stored_questions
from bayeslink.evaluation.report import fit_posteriors
from bayeslink.evaluation.schemes import FitSettings
from bayeslink.inference.update import table_scale, with_table_effects
from bayeslink.model.hierarchy import Terms, Variant


def learners_of(config: Mapping) -> tuple[dict[str, Learner], dict[str, float]]:
    """Methods by name, and the spreads of table effects that were found."""
    held = ("spider-dev", "bird-dev")
    questions = stored_questions(config["train"], config["channels"])
    small = [item for item in questions.evidences if item.num_tables <= config["max_tables"]]
    questions = replace(questions, evidences=tuple(small[: config["train_databases"]]))
    settings = FitSettings(num_draws=config["draws"], seed=config["seed"], context=tuple(config["context"]))
    with_slopes = settings._replace(terms=Terms(correlated=True, slope_scale=True))
    (pooled,) = fit_posteriors(questions, [Variant.POOLED], held, settings, effects=False)
    found = fit_posteriors(
        questions,
        [Variant.HIERARCHICAL, Variant.INDEPENDENT_HIERARCHICAL],
        held,
        with_slopes,
        effects=False,
        progress=True,
    )
    hierarchical, independent = found
    known = set(hierarchical.databases)
    training = [item for item in questions.evidences if item.key in known]
    scales = {item.variant.value: table_scale(item, training, config["search_steps"]) for item in found}
    few = config["updated_draws"]
    learners = {
        "pooled": learner_of(pooled, learns=False),
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
    return learners, figures
