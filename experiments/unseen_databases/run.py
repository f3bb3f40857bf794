"""What an unseen database may start from: covariates of the intercept, and each further term of the hierarchy."""

from unseen import rows_of

from bayeslink.evidence.store import evidence_home
from bayeslink.inference import keep_compiled
from bayeslink.inference.posterior import shipped_path
from bayeslink.provenance import Experiment, sha256

CLAIM = (
    "A database that no fit has seen is calibrated when its intercept starts from the number of tables and from "
    "how strongly each question matches its schema; the coupling then pays."
)


def main(arguments: list[str] | None = None) -> None:
    """Write table.csv and table.json."""
    run = Experiment.from_command(__file__, arguments)
    config = run.config
    names = {*config["transfer"], *(data for setting in config["settings"].values() for data in setting["sets"])}
    names |= {data for refit in config["refits"].values() for data in refit["train"]}
    files = [*(f"{name}.npz" for name in sorted(names)), "fingerprints.npz", "twins.json"]
    inputs = {f"data/evidence/{name}": evidence_home() / name for name in files}
    inputs["bayeslink/posteriors/embedding.nc"] = shipped_path("embedding")
    if run.is_current(inputs):
        return
    keep_compiled()
    hashes = {name: sha256(path) for name, path in sorted(inputs.items())}
    table = rows_of(config, [run.source, hashes], run.force)
    figures = {}
    for row in table:
        lead = "" if row["setting"] == "main" else f"{row['setting']}_"
        name = row["data"].replace("-dev", "").replace("-", "_")
        for score in ("ece", "mean_shift", "joint_log_score", "map"):
            figures[f"{lead}{row['scheme']}_{row['variant']}_{score}_{name}"] = row[score]

    def rows(setting: str, scheme: str, variant: str = "hierarchical") -> list[dict]:
        wanted = setting, scheme, variant
        return [row for row in table if (row["setting"], row["scheme"], row["variant"]) == wanted]

    checks = {
        f"{scheme}_shift_interval_holds_0": all(
            row["shift_lower"] <= 0 <= row["shift_upper"]
            for row in rows("main", scheme)
            if row["data"] != "bird-dev-evidence"
        )
        for scheme in ("lodo", "transfer")
    }
    for scheme in ("lodo", "transfer"):
        found = [row for row in rows("main", scheme) if row["data"] != "bird-dev-evidence"]
        checks[f"{scheme}_ece_at_most_0.04"] = all(row["ece"] <= 0.04 for row in found)
        for other in ("independent_hierarchical", "pooled", "pooled_coupling"):
            known = [row for row in found if row[f"gain_over_{other}"] is not None]
            checks[f"{scheme}_better_than_{other}"] = bool(known) and all(
                row[f"gain_over_{other}"] > 0 for row in known
            )
    checks["lodo_covariates_pay"] = all(
        new["joint_log_score"] > old["joint_log_score"]
        for new, old in zip(rows("main", "lodo"), rows("plain", "lodo"), strict=True)
    )
    checks["no_setting_clearly_better_than_main"] = all(
        row["gain_over_main_lower"] is None or row["gain_over_main_lower"] <= 0
        for row in table
        if row["variant"] == "hierarchical" and row["setting"] != "main"
    )
    run.write(table, CLAIM, figures, checks, inputs)


if __name__ == "__main__":
    main()
