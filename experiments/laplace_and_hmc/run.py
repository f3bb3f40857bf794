"""Joint mode, marginal Laplace, nested Laplace and NUTS side by side on the same data."""

import numpyro
from fits import FITS, fitted_posteriors

from bayeslink.evaluation.agreement import agreement, predictions, summaries
from bayeslink.evidence.store import evidence_home, load_evidence
from bayeslink.inference.nested import PARETO_LIMIT
from bayeslink.provenance import Experiment

CLAIM = (
    "The joint mode's sigmas are biased and the marginal Laplace fit understates the spread of the database "
    "effects; the nested fit agrees with NUTS at a fraction of its cost."
)


def main(arguments: list[str] | None = None) -> None:
    """Write table.csv, table.json and timings.json."""
    run = Experiment.from_command(__file__, arguments)
    config = run.config
    inputs = {f"data/evidence/{name}.npz": evidence_home() / f"{name}.npz" for name in config["data"]}
    if run.is_current(inputs, with_timings=True):
        return
    table, figures, checks, timings = [], {}, {}, {}
    for data in config["data"]:
        name = data.removesuffix("-dev").replace("-", "_")
        chosen = load_evidence(data, config["channels"])[: config["databases"]]
        evidences = [item.select_questions(range(min(item.num_questions, config["questions"]))) for item in chosen]
        fits, seconds, nuts = fitted_posteriors(evidences, config)
        found = {fit: (summaries(item), predictions(item, evidences)) for fit, item in fits.items()}
        for index, parameter in enumerate(found["nuts"][0].names):
            row: dict[str, object] = {"data": name, "parameter": parameter}
            for fit in FITS:
                row |= {
                    f"{fit}_mean": float(found[fit][0].mean[index]),
                    f"{fit}_sd": float(found[fit][0].deviation[index]),
                }
            table.append(row)
        near = {fit: agreement(found[fit], found["nuts"]) for fit in FITS if fit != "nuts"}
        for fit, distances in near.items():
            figures |= {f"{fit}_{part}_{name}": value for part, value in distances._asdict().items()}
        for fit in FITS:
            for site in ("sigma_alpha", "sigma_beta"):
                figures[f"{fit}_{site}_{name}"] = float(fits[fit].draws[site].mean())
            figures[f"{fit}_joint_log_score_{name}"] = found[fit][1][1]
        figures |= {
            f"nuts_rhat_worst_{name}": nuts.figures["r_hat"],
            f"nuts_ess_least_{name}": min(nuts.figures["ess_bulk"], nuts.figures["ess_tail"]),
            f"nuts_divergences_{name}": nuts.figures["divergences"],
            f"nuts_e_bfmi_{name}": nuts.figures["e_bfmi"],
        }
        figures |= {f"nested_{part}_{name}": value for part, value in fits["nested"].info.items()}
        timings |= {f"{fit}_s_{name}": value for fit, value in seconds.items()}
        for call in ("", "_with_compilation"):
            timings[f"nested_times_faster_than_nuts{call}_{name}"] = seconds["nuts"] / seconds[f"nested{call}"]
        checks |= {f"nuts_{check}_{name}": held for check, held in nuts.checks.items()}
        checks |= {
            f"laplace_population_within_0.1_sd_{name}": near["laplace"].population_z_worst < 0.1,
            f"nested_population_within_0.1_sd_{name}": near["nested"].population_z_worst < 0.1,
            f"nested_log_sigma_within_0.25_sd_{name}": near["nested"].log_sigma_z_worst < 0.25,
            f"nested_sd_ratio_median_within_5_percent_{name}": abs(near["nested"].sd_ratio_median - 1) < 0.05,
            f"nested_sd_ratio_worst_within_15_percent_{name}": abs(near["nested"].sd_ratio_worst - 1) < 0.15,
            f"nested_marginals_within_0.01_{name}": near["nested"].marginal_difference_worst < 0.01,
            f"nested_joint_score_within_0.003_{name}": abs(near["nested"].joint_difference) < 0.003,
            f"nested_pareto_k_below_0.7_{name}": fits["nested"].info["pareto_k"] < PARETO_LIMIT,
            f"joint_mode_log_sigma_off_by_1_sd_{name}": near["joint_mode"].log_sigma_z_worst > 1,
        }
    run.write(table, CLAIM, figures, checks, inputs, timings)


if __name__ == "__main__":
    numpyro.set_host_device_count(2)
    main()
