"""Every prior scale times 1/2, 1, 2 and 4: what moves and what does not."""

import numpy as np

from bayeslink.evaluation.agreement import predictions
from bayeslink.evaluation.schemes import FitSettings, leave_one_database_out
from bayeslink.evidence.store import evidence_home, load_evidence, load_twins
from bayeslink.inference import keep_compiled
from bayeslink.inference.fit import fit
from bayeslink.model.hierarchy import Variant
from bayeslink.model.priors import Priors
from bayeslink.provenance import Experiment

CLAIM = (
    "Between half and four times the default prior scales, predictions hardly move; the spreads of few databases do."
)
SITES = ("alpha", "beta", "sigma_alpha", "sigma_beta")


def main(arguments: list[str] | None = None) -> None:
    """Write table.csv and table.json."""
    run = Experiment.from_command(__file__, arguments)
    config = run.config
    files = [*(f"{name}.npz" for name in config["data"]), "twins.json"]
    inputs = {f"data/evidence/{name}": evidence_home() / name for name in files}
    if run.is_current(inputs):
        return
    keep_compiled()
    table, figures, checks = [], {}, {}
    for data in config["data"]:
        name = data.removesuffix("-dev").replace("-", "_")
        evidences = load_evidence(data, config["channels"])[: config["databases"]]
        base, rows = None, []
        for factor in sorted(config["factors"], key=lambda value: value != 1.0):
            priors = Priors().scaled(factor)
            posterior = fit(evidences, Variant.HIERARCHICAL, priors, num_draws=config["draws"], seed=config["seed"])
            marginals, score = predictions(posterior, evidences)
            couplings = posterior.draws["beta_d"].mean(axis=0)
            base = base or (marginals, score, couplings)
            change = np.concatenate([np.abs(a - b).ravel() for a, b in zip(marginals, base[0], strict=True)])
            row = {"data": name, "factor": factor, "joint_log_score": score, "joint_change": score - base[1]}
            row |= {"marginal_change_mean": float(change.mean()), "marginal_change_worst": float(change.max())}
            row["coupling_change_worst"] = float(np.abs(couplings - base[2]).max())
            for site in SITES:
                row |= {
                    f"{site}_mean": float(posterior.draws[site].mean()),
                    f"{site}_sd": float(posterior.draws[site].std()),
                }
            row["unseen_joint_log_score"] = None
            if data in config["leave_one_out"]:
                settings = FitSettings(priors=priors, num_draws=config["draws"], seed=config["seed"])
                folds = leave_one_database_out(evidences, [Variant.HIERARCHICAL], load_twins(), settings)
                row["unseen_joint_log_score"] = float(np.concatenate([item.log_score for *_, item in folds]).mean())
            rows.append(row)
            label = f"{factor:g}".replace(".", "_")
            for part in ("joint_change", "marginal_change_worst", "coupling_change_worst", "sigma_beta_mean"):
                figures[f"{part}_{label}_{name}"] = row[part]
        table += rows
        others = [row for row in rows if row["factor"] != 1.0]
        checks |= {
            f"marginals_move_by_less_than_0.05_{name}": max(row["marginal_change_worst"] for row in others) < 0.05,
            f"joint_score_moves_by_less_than_0.02_{name}": max(abs(row["joint_change"]) for row in others) < 0.02,
        }
    run.write(table, CLAIM, figures, checks, inputs)


if __name__ == "__main__":
    main()
