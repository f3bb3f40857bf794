"""Which variant predicts best: leave-one-out, leave-one-database-out, and predictive checks of N and M."""

import numpy as np

from bayeslink.evaluation.criticism import PARETO_LIMIT, leave_one_database_out_table, leave_one_out, predictive_check
from bayeslink.evaluation.schemes import FitSettings, leave_one_database_out
from bayeslink.evidence.channel import Evidence
from bayeslink.evidence.store import evidence_home, load_evidence, load_twins
from bayeslink.inference import keep_compiled
from bayeslink.inference.fit import fit
from bayeslink.model.hierarchy import Variant
from bayeslink.provenance import Experiment

CLAIM = "Varying couplings predict known databases as well as any, unseen ones no worse, and reproduce N and M."


def rows_of(evidences: list[Evidence], config: dict) -> list[dict]:
    """Rows of one set: `loo` and `lodo` by variant, `ppc` by database."""
    rng, seed, draws = np.random.default_rng(config["seed"]), config["seed"], config["draws"]
    left_out, known = ([Variant(name) for name in config[names]] for names in ("left_out", "known"))
    fits = {variant: fit(evidences, variant, num_draws=draws, seed=seed) for variant in left_out + known}
    rows = [{"part": "loo"} | row._asdict() for row in leave_one_out(fits, evidences)]
    settings = FitSettings(num_draws=draws, seed=seed)
    predictions: dict[Variant, list] = {variant: [] for variant in left_out}
    for variant, _, item in leave_one_database_out(evidences, left_out, load_twins(), settings):
        predictions[variant].append(item)
    compared = leave_one_database_out_table(predictions, rng, config["resamples"])
    rows += [{"part": "lodo"} | row._asdict() for row in compared]
    for name in config["replicated"]:
        checked = predictive_check(fits[Variant(name)], evidences, rng, config["replicates"])
        rows += [{"part": "ppc", "variant": name} | row._asdict() for row in checked]
    return rows


def main(arguments: list[str] | None = None) -> None:
    """Write table.csv and table.json."""
    run = Experiment.from_command(__file__, arguments)
    config = dict(run.config)
    files = [f"{name}.npz" for name in config["sets"]] + ["twins.json"]
    inputs = {f"data/evidence/{name}": evidence_home() / name for name in files}
    if run.is_current(inputs):
        return
    keep_compiled()
    rows, figures, checks = [], {}, {}
    for name in config["sets"]:
        short, raw = name.split("-")[0], load_evidence(name, config["channels"])
        chosen = [item for item in raw if not config["databases"] or item.db_id in config["databases"]]
        evidences = [item.select_questions(range(min(config["questions"], item.num_questions))) for item in chosen]
        found = rows_of(evidences, config)
        rows += [{"set": short} | row for row in found]
        loo = {row["variant"]: row for row in found if row["part"] == "loo"}
        lodo = {row["variant"]: row for row in found if row["part"] == "lodo" and row["database"] == "all"}
        inside = {}
        for variant in config["replicated"]:
            mine = [row["inside"] for row in found if (row["part"], row["variant"]) == ("ppc", variant)]
            inside[variant] = float(np.mean(mine))
        figures |= {f"{key}_{short}": loo["hierarchical"][key] for key in ("questions", "databases")}
        for variant, row in loo.items():
            figures |= {f"elpd_loo_{variant}_{short}": row["elpd_loo"], f"worst_k_{variant}_{short}": row["worst_k"]}
        for variant, row in lodo.items():
            bounds = {f"lodo_difference_{variant}_{short}_{bound}": row[bound] for bound in ("lower", "upper")}
            figures |= {f"elpd_lodo_{variant}_{short}": row["elpd"]} | bounds
            figures[f"lodo_difference_{variant}_{short}"] = row["difference"]
        figures |= {f"ppc_share_inside_{variant}_{short}": share for variant, share in inside.items()}
        figures[f"ppc_share_inside_{short}"] = inside["hierarchical"]
        best = loo["hierarchical"]
        checks |= {
            f"pareto_k_is_good_{short}": best["worst_k"] <= PARETO_LIMIT,
            f"loo_within_two_errors_of_the_best_{short}": best["elpd_diff"] <= 2 * best["dse"],
            f"no_variant_better_left_out_{short}": all(row["upper"] >= 0 for row in lodo.values()),
            f"left_out_is_harder_than_loo_{short}": lodo["hierarchical"]["elpd"] < best["elpd_loo"],
            f"replicates_hold_the_data_{short}": inside["hierarchical"] >= max(0.9, *inside.values()),
        }
    columns = dict.fromkeys(name for row in rows for name in row)
    run.write([{name: row.get(name, "") for name in columns} for row in rows], CLAIM, figures, checks, inputs)


if __name__ == "__main__":
    main()
