"""How much one question back to the user helps: exact matches before and after, by which table is asked about."""

from asking import rows_of

from bayeslink.evidence.kinds import default_channels
from bayeslink.evidence.store import evidence_home, stored_files
from bayeslink.inference import keep_compiled
from bayeslink.inference.posterior import shipped_path
from bayeslink.provenance import Experiment

CLAIM = (
    "One yes or no about the table that separates the most probable set from its rival makes the most probable set "
    "right for at least twenty questions in a hundred more, and more than asking about the most uncertain table."
)


def main(arguments: list[str] | None = None) -> None:
    """Write table.csv and table.json."""
    run = Experiment.from_command(__file__, arguments)
    config, home = run.config, evidence_home()
    inputs = {f"bayeslink/posteriors/{name}.nc": shipped_path(name) for name in config["lists"]}
    for name in config["lists"]:
        channels = tuple(channel.name for channel in default_channels(name))
        inputs |= {
            f"data/evidence/{path.relative_to(home)}": path
            for d in config["sets"]
            for path in stored_files(d, channels)
        }
    if run.is_current(inputs):
        return
    keep_compiled()
    table = list(rows_of(config))
    figures, checks = {}, {}
    for row in table:
        bench = row["data"].replace("-dev", "").replace("-", "_")
        lead = "" if row["variant"] == "hierarchical" else f"{row['variant']}_"
        lead = f"{'rich_' if row['list'] == 'boosted' else ''}{lead}"
        rule = {"rivals": "best", "entropy": "naive"}[row["rule"]]
        if row["asked"] == 0:
            figures[f"{lead}exact_match_before_{bench}"] = row["exact"]
            continue
        many = "question" if row["asked"] == 1 else f"{row['asked']}_questions"
        figures[f"{lead}exact_match_after_{rule}_{many}_{bench}"] = row["exact"]
        if row["asked"] == 1 and row["rule"] == "rivals":
            figures |= {f"{lead}gain_{bench}": row["gain"], f"{lead}over_naive_{bench}": row["over_entropy"]}
            figures[f"{lead}expected_exact_match_after_{bench}"] = row["expected"]
            if row["variant"] == "hierarchical":
                checks[f"{lead}twenty_points_{bench}"] = row["gain"] >= 0.2
                checks[f"{lead}twenty_points_interval_{bench}"] = row["gain_lower"] >= 0.2
                checks[f"{lead}more_than_naive_{bench}"] = row["over_entropy"] > 0
                checks[f"{lead}more_than_naive_interval_{bench}"] = row["over_entropy_lower"] > 0
    run.write(table, CLAIM, figures, checks, inputs)


if __name__ == "__main__":
    main()
