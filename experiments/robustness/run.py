"""Spider dev asked in other words: synonyms of the schema's words, and questions that do not name columns."""

from itertools import product

from reworded import SCORES, alone, fitted, gains

from bayeslink.evidence.store import evidence_home, stored_files
from bayeslink.inference import keep_compiled
from bayeslink.inference.posterior import shipped_path
from bayeslink.provenance import Experiment

CLAIM = (
    "Where questions avoid the schema's words, trees lose less of their ranking than the overlap with names does, and "
    "the hierarchical posterior keeps its mean: it selects and covers with less confidence, not wrongly."
)


def main(arguments: list[str] | None = None) -> None:
    """Write table.csv and table.json."""
    run = Experiment.from_command(__file__, arguments)
    config, home = run.config, evidence_home()
    every = (*config["lists"], *config["channels"])
    inputs = {
        f"data/evidence/{path.relative_to(home)}": path for n in config["sets"] for path in stored_files(n, every)
    }
    pairs = [kind for pair in config["gains"] for kind in pair]
    for data in config["gain_sets"]:
        inputs |= {f"data/evidence/{path.relative_to(home)}": path for path in stored_files(data, pairs)}
    inputs |= {f"bayeslink/posteriors/{kind}.nc": shipped_path(kind) for kind in config["lists"]}
    if run.is_current(inputs):
        return
    keep_compiled()
    table = [row for data in config["sets"] for row in (*alone(data, config), *fitted(data, config))]
    figures, checks = {}, {}
    first = config["sets"][0]
    for row in table:
        bench = row["data"].removesuffix("-dev").replace("-", "_")
        figures |= {f"{row['name']}_{score}_{bench}": row[score] for score in SCORES if row[score] is not None}
        base = next(r for r in table if (r["name"], r["data"]) == (row["name"], first))
        row["map_drop"] = base["map"] - row["map"]
        figures |= {f"{row['name']}_map_drop_{bench}": row["map_drop"]} if row is not base else {}
        if row["part"] == "fitted":
            inside = row["shift_lower"] <= 0 <= row["shift_upper"]
            checks[f"{row['name']}_shift_interval_holds_0_{bench}"] = inside
    for data in config["sets"][1:]:
        drops = {row["name"]: row["map_drop"] for row in table if row["data"] == data}
        for kind, other in product(config["lists"], config["overlaps"]):
            name = f"{kind}_falls_less_than_{other}_{data.removesuffix('-dev').replace('-', '_')}"
            checks[name] = drops[kind] < drops[other]
    for row in (row for row in table if row["part"] == "fitted"):
        bench = row["data"].removesuffix("-dev").replace("-", "_")
        checks[f"{row['name']}_cover_holds_its_level_{bench}"] = row["coverage_95"] >= 0.95
    for row in (found := gains(config)):
        bench = row["data"].replace("-dev", "").replace("-", "_")
        figures[f"{row['name']}_{bench}"] = row["map"]
        checks[f"{row['name']}_beyond_its_interval_{bench}"] = row["map_lower"] > 0
    table += [row | {"map_drop": None} for row in found]
    run.write(table, CLAIM, figures, checks, inputs)


if __name__ == "__main__":
    main()
