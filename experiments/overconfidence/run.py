"""Whether a coupling at a fixed intercept makes marginals overconfident, and what takes that back."""

from findings import checks_of, figures_of, rows_for

from bayeslink.evaluation.questions import stored_questions
from bayeslink.evidence.store import evidence_home
from bayeslink.inference import keep_compiled
from bayeslink.provenance import Experiment

CLAIM = (
    "A coupling at a fixed intercept selects too many tables and makes marginals overconfident; temperature scaling "
    "leaves the shift, Platt scaling takes it away, and so does fitting intercept and coupling together."
)


def main(arguments: list[str] | None = None) -> None:
    """Write table.csv and table.json."""
    run = Experiment.from_command(__file__, arguments)
    config = run.config
    home = evidence_home()
    inputs = {f"data/evidence/{name}": home / name for name in ("twins.json", *(f"{n}.npz" for n in config["data"]))}
    if run.is_current(inputs):
        return
    keep_compiled()
    table, figures, checks = [], {}, {}
    for data in config["data"]:
        bench = data.removesuffix("-dev")
        questions = stored_questions([data], config["channels"])
        figures |= {f"unresolved_{bench}": questions.num_unresolved}
        evidences = [
            item for item in questions.evidences if not config["databases"] or item.db_id in config["databases"]
        ]
        for scheme in config["schemes"]:
            rows, sound = rows_for(evidences, scheme, config)
            table += [{"data": bench, "scheme": scheme} | row for row in rows]
            lead = "" if scheme == "known" else f"{scheme}_"
            figures |= {f"{lead}{name}_{bench}": value for name, value in figures_of(rows).items()}
            checks |= {f"{lead}{name}_{bench}": held for name, held in {**sound, **checks_of(rows)}.items()}
    run.write(table, CLAIM, figures, checks, inputs)


if __name__ == "__main__":
    main()
