"""Covers at nominal levels on unseen databases: what they hold, how large they are, and what a promise costs."""

from families import left_out, transferred
from level_rows import from_the_others, from_training, set_rows, size_at

from bayeslink.evidence.store import evidence_home, load_evidence, stored_files
from bayeslink.inference import keep_compiled
from bayeslink.provenance import Experiment

CLAIM = (
    "Covers of the hierarchical posterior hold all needed tables as often as they say on databases never seen, and are "
    "no larger than conformal sets of the same coverage on independent models; its joint log score is at least 15 % "
    "above that of schemagate's own scores, calibrated on the same databases."
)


def main(arguments: list[str] | None = None) -> None:
    """Write table.csv and table.json."""
    run = Experiment.from_command(__file__, arguments)
    config, home = run.config, evidence_home()
    names = dict.fromkeys((*config["train"], *config["transfer"], *config["left_out"]))
    channels = (*config["channels"], "schemagate")
    inputs = {f"data/evidence/{p.relative_to(home)}": p for n in names for p in stored_files(n, channels)}
    inputs |= {f"data/evidence/{name}": home / name for name in ("twins.json", "fingerprints.npz")}
    if run.is_current(inputs):
        return
    keep_compiled()
    table = []
    training, tests = transferred(config)
    for data, families in tests.items():
        evidences = [item for item in load_evidence(data) if item.key in families["hierarchical"]]
        levels = from_training(training, evidences, config)
        table += [{"scheme": "transfer", "data": data} | row for row in set_rows(evidences, families, levels, config)]
    for data in config["left_out"]:
        families = left_out(data, config)
        evidences = [item for item in load_evidence(data) if item.key in families["hierarchical"]]
        levels = from_the_others(families, config)
        table += [{"scheme": "left_out", "data": data} | row for row in set_rows(evidences, families, levels, config)]
    figures, checks = {}, {}
    for row in table:
        bench = row["data"].replace("-dev", "").replace("-", "_")
        name = f"rich_{row['scheme']}_{row['method']}"
        if row["part"] == "score":
            figures |= {f"{name}_joint_log_score_{bench}": row["joint_log_score"]}
            if row["method"] == "schemagate":
                figures[f"{name}_nll_below_{bench}"] = row["nll_below"]
                checks[f"{name}_nll_15_percent_below_{bench}"] = row["nll_below"] >= 0.15
                checks[f"{name}_nll_15_percent_below_with_interval_{bench}"] = row["nll_below_lower"] >= 0.15
        if row["part"] not in ("own", "conformal", "collection"):
            continue
        name = name if row["part"] == "own" else f"{name}_{row['part']}"
        percent = round(100 * row["level"])
        figures |= {f"{name}_{score}_{percent}_{bench}": row[score] for score in ("coverage", "mean_size")}
        if row["method"] == "hierarchical" and row["part"] != "collection":
            checks[f"{name}_interval_reaches_{percent}_{bench}"] = row["coverage_upper"] >= row["level"]
            checks[f"{name}_within_2_points_of_{percent}_{bench}"] = row["coverage"] >= row["level"] - 0.02
            for other in [*config["variants"][1:], "hierarchical_prefix"]:
                same = {"scheme": row["scheme"], "data": row["data"], "part": "curve", "method": other}
                size = size_at([item for item in table if same.items() <= item.items()], row["coverage"])
                if size is not None:
                    figures[f"{name}_size_less_{other}_{percent}_{bench}"] = row["mean_size"] - size
                    checks[f"{name}_no_larger_than_{other}_{percent}_{bench}"] = row["mean_size"] <= size
    keys = dict.fromkeys(key for row in table for key in row)
    run.write([dict.fromkeys(keys) | row for row in table], CLAIM, figures, checks, inputs)


if __name__ == "__main__":
    main()
