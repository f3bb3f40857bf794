"""What covers save of a prompt's tokens, and what that costs in questions that miss a table."""

from savings import saving_rows

from bayeslink.evidence.store import evidence_home, stored_files
from bayeslink.inference import keep_compiled
from bayeslink.inference.posterior import shipped_path
from bayeslink.provenance import Experiment

CLAIM = (
    "Covers of the posterior send a small part of the tokens of the whole schema, the smaller the larger the schema, "
    "and hold all gold tables as often as their level says."
)
LARGE = 10
SAVED = 0.8


def main(arguments: list[str] | None = None) -> None:
    """Write table.csv and table.json."""
    run = Experiment.from_command(__file__, arguments)
    config, home = run.config, evidence_home()
    read = {path for item in config["sets"] for path in stored_files(item["data"], [config["list"]])}
    inputs = {f"data/evidence/{path.relative_to(home)}": path for path in sorted(read)}
    inputs["data/evidence/warehouses/ddl_tokens.json"] = home / "warehouses" / "ddl_tokens.json"
    inputs[f"bayeslink/posteriors/{config['list']}.nc"] = shipped_path(config["list"])
    if run.is_current(inputs):
        return
    keep_compiled()
    table = list(saving_rows(config))
    figures, checks = {}, {}
    for row in table:
        name = f"{round(100 * row['level'])}_{row['set']}"
        for figure in ("coverage", "tokens_sent", "saved_of_all_tokens", "saved_median_database"):
            figures[f"{figure}_{name}"] = row[figure]
        figures[f"tokens_whole_{row['set']}"] = row["tokens_whole"]
        checks[f"level_inside_interval_{name}"] = row["coverage_lower"] <= row["level"] <= row["coverage_upper"]
        checks[f"covers_at_least_its_level_{name}"] = row["coverage"] >= row["level"]
        if row["median_tables"] > LARGE:
            checks[f"saves_most_tokens_{name}"] = row["saved_of_all_tokens"] > SAVED
    run.write(table, CLAIM, figures, checks, inputs)


if __name__ == "__main__":
    main()
