"""Attention of a small language model: as a ranking of tables and columns, and as a channel of the posterior."""

from attention_rows import ablation_rows, rows_of

from bayeslink.evidence.attention_store import ATTENTION_SETS, FIT_SETS, RESERVED_SET, attention_files, attention_home
from bayeslink.evidence.store import evidence_home, stored_files
from bayeslink.inference import keep_compiled
from bayeslink.inference.columns import shipped_columns
from bayeslink.inference.posterior import shipped_path
from bayeslink.provenance import Experiment
from bayeslink.schema.corpus import data_home

CLAIM = (
    "Attention of a language model of 135 million parameters, supervised, ranks tables and columns of unseen databases "
    "above sentence embeddings, and adds to what the posterior knows from cheap channels."
)
COLUMNS = ("part", "name", "data", "temperature", "mass", "value", "lower", "upper", "questions")
TARGETS = {"table_map_s_spider": 0.965, "column_map_s_spider": 0.85}
PARTS = {"tables": "table_map", "columns": "column_map"}
PLAIN = {"paper_hierarchical_joint_log_score": "joint_log_score", "paper_hierarchical_map": "map"}


def main(arguments: list[str] | None = None) -> None:
    """Write table.csv and table.json."""
    run = Experiment.from_command(__file__, arguments)
    config = run.config
    names, home = [*config["sets"], *FIT_SETS], evidence_home()
    stored = [*attention_files(names), attention_home() / "ablations.json"]
    inputs = {f"data/attention/{path.name}": path for path in stored}
    for name in names:
        source = "spider-train" if name == RESERVED_SET else name
        for path in stored_files(source, sorted({c for own in config["lists"].values() for c in own})):
            inputs[f"data/evidence/{path.relative_to(home)}"] = path
        folder = data_home() / ATTENTION_SETS[name][0]
        inputs |= {f"{folder.name}/{path.name}": path for path in sorted(folder.glob("*.jsonl*"))}
    inputs |= {f"bayeslink/posteriors/columns_{kind}.json": shipped_columns(kind) for kind in config["columns"]}
    inputs |= {f"bayeslink/posteriors/{config['tables']}.nc": shipped_path(config["tables"])}
    if run.is_current(inputs):
        return
    keep_compiled()
    table = [dict.fromkeys(COLUMNS) | row for row in (*rows_of(config), *ablation_rows())]
    figures, checks = {}, {}
    for row in table:
        bench = row["data"].removesuffix("-dev").replace("-dev-", "_").replace("-", "_")
        if row["part"] in PARTS:
            figures[f"{PARTS[row['part']]}_{row['name']}_{bench}"] = row["value"]
        elif row["part"] in ("with", "without"):
            figures[f"{PLAIN.get(row['name'], row['name'])}_{row['part']}_{bench}"] = row["value"]
        elif row["part"] == "gain":
            figures[f"gain_{row['name']}_{bench}"] = row["value"]
            checks[f"attention_adds_{row['name']}_{bench}"] = row["lower"] > 0
        elif row["part"] == "ablation":
            figures[f"ablation_{row['name']}_{bench}"] = row["value"]
        elif row["part"] == "calibration":
            figures[f"columns_{row['name']}_{bench}"] = row["value"]
    for name, target in TARGETS.items():
        checks[f"{name}_above_{target:g}"] = figures[name] > target
    for row in (row for row in table if row["part"] in PARTS and row["name"] == "s"):
        rivals = [r for r in table if (r["part"], r["data"], r["name"]) == (row["part"], row["data"], "minilm")]
        for rival in rivals:
            bench = row["data"].removesuffix("-dev").replace("-dev-", "_").replace("-", "_")
            checks[f"{PARTS[row['part']]}_s_above_minilm_{bench}"] = row["value"] > rival["value"]
    run.write(table, CLAIM, figures, checks, inputs)


if __name__ == "__main__":
    main()
