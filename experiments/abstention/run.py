"""Whether the joint posterior knows which answers to hold back, against an independent model's marginals."""

from areas import Bootstrap, checks_of, figures_of, rows_for
from orders import asked, orderings

from bayeslink.evaluation.held_out import FitSettings, held_out
from bayeslink.evaluation.questions import stored_questions
from bayeslink.evidence.cache import cache_home
from bayeslink.evidence.store import evidence_home
from bayeslink.inference import keep_compiled
from bayeslink.model.hierarchy import Variant
from bayeslink.provenance import Experiment

CLAIM = (
    "Holding back the questions whose joint posterior is least sure leaves fewer wrong answers than holding back by "
    "the marginals of an independent model."
)


def main(arguments: list[str] | None = None) -> None:
    """Write table.csv and table.json."""
    run = Experiment.from_command(__file__, arguments)
    config = run.config
    inputs = {f"data/evidence/{name}.npz": evidence_home() / f"{name}.npz" for name in config["data"]}
    if run.is_current(inputs):
        return
    keep_compiled()
    variants = [Variant(name) for name in config["variants"]]
    table, figures, checks = [], {}, {}
    for data in config["data"]:
        bench = data.removesuffix("-dev")
        questions = stored_questions([data], config["channels"])
        evidences = [
            item for item in questions.evidences if not config["databases"] or item.db_id in config["databases"]
        ]
        found = held_out(
            evidences,
            variants,
            "known",
            FitSettings(num_draws=config["num_draws"], seed=config["seed"]),
            num_folds=config["num_folds"],
            folder=cache_home() / "held_out",
            progress=True,
        )
        items = [ordering for variant in variants for ordering in orderings(variant, found[variant])]
        bootstrap = Bootstrap(asked(found[variants[0]]), config["num_resamples"], config["seed"])
        rows = rows_for(items, config["coverage_steps"], bootstrap)
        table += [{"data": bench} | row for row in rows]
        figures |= {f"questions_{bench}": len(items[0].loss), f"unresolved_{bench}": questions.num_unresolved}
        figures |= {f"{name}_{bench}": value for name, value in figures_of(rows, items).items()}
        checks |= {f"{name}_{bench}": held for name, held in checks_of(rows).items()}
    run.write(table, CLAIM, figures, checks, inputs)


if __name__ == "__main__":
    main()
