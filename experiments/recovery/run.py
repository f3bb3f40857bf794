"""Weakly-signalled tables that each variant recovers, at its own threshold and at one mean set size."""

from weak_recovery import COMPARATORS, VARIANTS, scheme_rows

from bayeslink.evidence.store import evidence_home
from bayeslink.inference import keep_compiled
from bayeslink.provenance import Experiment

CLAIM = (
    "At one mean set size the coupling recovers more weakly-signalled tables than any selector that does not see the "
    "graph, structural connectors above all, and is no less precise."
)


def main(arguments: list[str] | None = None) -> None:
    """Write table.csv and table.json."""
    run = Experiment.from_command(__file__, arguments)
    config = run.config
    home = evidence_home()
    inputs = {f"data/evidence/{name}.npz": home / f"{name}.npz" for name in config["data"]}
    inputs["data/evidence/twins.json"] = home / "twins.json"
    if run.is_current(inputs):
        return
    keep_compiled()
    table = [
        row for scheme in config["schemes"] for data in config["data"] for row in scheme_rows(data, scheme, config)
    ]
    figures: dict[str, float | int] = {}
    for row in table:
        lead = "" if row["scheme"] == "known" else f"{row['scheme']}_"
        own = "own_" if row["rule"] == "own" else ""
        name = row["data"].removesuffix("-dev")
        if row["tables"] == "weak":
            figures[f"{lead}weak_tables_{name}"] = row["count"]
            figures[f"{lead}{own}recovered_{row['variant']}_{name}"] = row["recovered"]
            figures[f"{lead}{own}precision_{row['variant']}_{name}"] = row["precision"]
            figures[f"{lead}{own}size_{row['variant']}_{name}"] = row["mean_size"]
            if row["variant"] == "hierarchical":
                figures[f"{lead}matched_size_{name}"] = row["mean_size"]
        elif row["tables"] == "connectors":
            figures[f"{lead}connectors_{name}"] = row["count"]
            figures[f"{lead}{own}connectors_recovered_{row['variant']}_{name}"] = row["recovered"]

    def matched(variant: str, tables: str = "weak") -> list[dict]:
        wanted = "known", "matched", variant, tables
        return [row for row in table if (row["scheme"], row["rule"], row["variant"], row["tables"]) == wanted]

    checks = {
        "independent_recovers_none_at_its_own_threshold": not any(
            row["recovered"] for row in table if (row["variant"], row["rule"]) == ("independent", "own")
        ),
        "sizes_agree_within_0.01": all(
            abs(row["mean_size"] - other["mean_size"]) <= 0.01
            for variant in VARIANTS
            for row, other in zip(matched(variant), matched("hierarchical"), strict=True)
        ),
        "gain_over_independent_hierarchical_is_larger_for_connectors": all(
            connectors["difference"] > rest["difference"]
            for connectors, rest in zip(
                matched("independent_hierarchical", "connectors"),
                matched("independent_hierarchical", "rest"),
                strict=True,
            )
        ),
    }
    for other in COMPARATORS:
        rows = matched(other)
        checks[f"recovers_more_than_{other}"] = all(row["difference"] > 0 for row in rows)
        checks[f"recovers_more_than_{other}_interval_above_0"] = all(row["difference_lower"] > 0 for row in rows)
        checks[f"no_less_precise_than_{other}"] = all(
            ours["precision"] >= row["precision"] for ours, row in zip(matched("hierarchical"), rows, strict=True)
        )
    run.write(table, CLAIM, figures, checks, inputs)


if __name__ == "__main__":
    main()
