"""Queries that read what is withheld, and whether they pass; SQLite's authorizer says what each query reads."""

from random_grants import random_rows
from spider_roles import role_rows

from bayeslink.provenance import Experiment
from bayeslink.schema.corpus import data_home

CLAIM = (
    "No query that reads a withheld table or column passes the check, fewer than one in a hundred that read only what "
    "is granted are refused, and no withheld name stands in anything that is shown."
)


def rate(hits: int, cases: int) -> float:
    """A share; 1 of nothing, as nothing was missed."""
    return hits / cases if cases else 1.0


def main(arguments: list[str] | None = None) -> None:
    """Write table.csv and table.json."""
    run = Experiment.from_command(__file__, arguments)
    folder = data_home() / "spider"
    inputs = {f"data/spider/{name}": folder / name for name in ("questions.jsonl.gz", "schemas.jsonl.gz")}
    if run.is_current(inputs):
        return
    drawn = list(random_rows(run.config))
    spider = list(role_rows(folder, run.config))
    table = drawn + spider
    sums = {
        part: {
            name: sum(row[name] for row in rows) for name in ("cases", "inside", "outside", "leaks", "refused_inside")
        }
        for part, rows in {
            "drawn": drawn,
            "common": [row for row in drawn if row["part"] == "common"],
            "written": [row for row in spider if row["part"] == "spider, as written"],
            "spider": [row for row in spider if row["part"] == "spider"],
        }.items()
    }
    figures: dict[str, float | int] = {
        "cases": sums["drawn"]["cases"] + sums["spider"]["cases"],
        "leaks": sum(row["leaks"] for row in table),
        "names_shown": sum(row["names_shown"] for row in table),
        "random_cases": sums["drawn"]["cases"],
        "random_outside": sums["drawn"]["outside"],
        "false_refusals": sums["drawn"]["refused_inside"],
        "false_refusal_rate": 1
        - rate(sums["drawn"]["inside"] - sums["drawn"]["refused_inside"], sums["drawn"]["inside"]),
        "false_refusal_rate_common": 1
        - rate(sums["common"]["inside"] - sums["common"]["refused_inside"], sums["common"]["inside"]),
    }
    for part, suffix in (("spider", ""), ("written", "_as_written")):
        found = sums[part]
        refused = found["outside"] - found["leaks"]
        precision = rate(refused, refused + found["refused_inside"])
        recall = rate(refused, found["outside"])
        figures |= {f"refusal_precision{suffix}": precision, f"refusal_recall{suffix}": recall}
        figures |= {f"refusal_f1{suffix}": 2 * precision * recall / (precision + recall) if precision + recall else 0.0}
        figures |= {f"spider_cases{suffix}": found["cases"], f"spider_outside{suffix}": found["outside"]}
    checks = {
        "no_leak": figures["leaks"] == 0,
        "no_withheld_name_shown": figures["names_shown"] == 0,
        "false_refusals_below_1_percent": figures["false_refusal_rate"] < 0.01,
        "refusal_f1_above_0.984": figures["refusal_f1"] > 0.984,
    }
    run.write(table, CLAIM, figures, checks, inputs)


if __name__ == "__main__":
    main()
