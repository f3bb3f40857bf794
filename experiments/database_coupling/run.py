"""How far the graph is to be trusted in each database: its coupling with an interval, under the hierarchy and alone."""

from couplings import checks_of, figures_of, fitted, rows_for

from bayeslink.evaluation.questions import stored_questions
from bayeslink.evidence.store import evidence_home
from bayeslink.inference import keep_compiled
from bayeslink.provenance import Experiment

CLAIM = (
    "The coupling differs between databases; the hierarchy reports each one with its uncertainty and draws those "
    "that the questions say little of towards the common one."
)


def main(arguments: list[str] | None = None) -> None:
    """Write table.csv and table.json."""
    run = Experiment.from_command(__file__, arguments)
    config = run.config
    inputs = {f"data/evidence/{name}.npz": evidence_home() / f"{name}.npz" for name in config["data"]}
    if run.is_current(inputs):
        return
    keep_compiled()
    table, figures, checks = [], {}, {}
    for data in config["data"]:
        bench = data.removesuffix("-dev")
        questions = stored_questions([data], config["channels"])
        evidences = [
            item for item in questions.evidences if not config["databases"] or item.db_id in config["databases"]
        ]
        fits = fitted(evidences, config)
        rows = rows_for(fits, evidences)
        table += [{"data": bench} | row for row in rows]
        counts = {
            "questions": sum(item.num_questions for item in evidences),
            "unresolved": questions.num_unresolved,
            "databases": len(evidences),
        }
        found = figures_of(rows, fits)
        figures |= {f"{name}_{bench}": value for name, value in {**counts, **found}.items()}
        held = checks_of(rows, fits, found, config["least_sigma"])
        checks |= {f"{name}_{bench}": bool(value) for name, value in held.items()}
    run.write(table, CLAIM, figures, checks, inputs)


if __name__ == "__main__":
    main()
