"""Covers of unseen databases, at their own levels and at the mean size of what schemagate returns."""

from peer_sizes import cover_rows

from bayeslink.evidence.peers import peers_home
from bayeslink.evidence.store import evidence_home, stored_files
from bayeslink.inference import keep_compiled
from bayeslink.inference.posterior import shipped_path
from bayeslink.provenance import Experiment

CLAIM = (
    "At the mean number of tables that schemagate returns, the smallest covers of the hierarchical posterior on "
    "learned evidence hold all gold tables of more questions, on databases that nothing was fitted on."
)
TARGETS = {
    ("spider", 3): 0.999,
    ("bird_names", 3): 0.951,
    ("bird_names", 5): 0.984,
    ("bird_evidence_names", 3): 0.962,
    ("bird_evidence_names", 5): 0.990,
}


def main(arguments: list[str] | None = None) -> None:
    """Write table.csv and table.json."""
    run = Experiment.from_command(__file__, arguments)
    config = run.config
    home, pairs = evidence_home(), config["pairs"]
    read = {
        path
        for pair in pairs
        for name in (pair["data"], *config["train"])
        for path in stored_files(name, [pair["list"], *config["plain"]])
    }
    inputs = {f"data/evidence/{path.relative_to(home)}": path for path in sorted(read)}
    stored = [name for pair in pairs for name in (pair["peer"], pair["peer"].replace("schemagate", "fused"))]
    inputs |= {f"data/peers/{name}.npz": peers_home() / f"{name}.npz" for name in stored}
    inputs |= {f"data/evidence/{name}": home / name for name in ("twins.json", "fingerprints.npz")}
    inputs |= {f"bayeslink/posteriors/{name}.nc": shipped_path(name) for name in config["shipped"]}
    if run.is_current(inputs):
        return
    keep_compiled()
    table = list(cover_rows(config))
    figures, checks = {}, {}
    for row in table:
        # The benchmark is the last part of a figure's name, with `_names` where descriptions are not read.
        bench = row["data"].replace("-dev", "").replace("-", "_")
        bench += "_names" if row["list"] == "learned_names" else ""
        lead = "" if row["variant"] == "hierarchical" else f"{row['variant']}_"
        if not row["peer"]:
            percent = round(100 * row["level"])
            figures |= {f"{lead}coverage_{percent}_{bench}": row["coverage"]}
            figures |= {f"{lead}mean_size_{percent}_{bench}": row["mean_size"]}
            continue
        if row["variant"] == "fused_retrieval":
            # Its own size at the same k, so its figures have other names.
            figures |= {f"fused_coverage_k{row['k']}_{bench}": row["coverage"]}
            figures |= {f"fused_size_k{row['k']}_{bench}": row["mean_size"]}
            continue
        figures |= {f"{lead}coverage_at_peer_size_k{row['k']}_{bench}": row["coverage"]}
        if row["variant"] == "hierarchical":
            figures |= {f"{name}_k{row['k']}_{bench}": row[name] for name in ("peer_size", "peer_coverage", "level")}
            checks[f"more_than_schemagate_k{row['k']}_{bench}"] = row["gain"] > 0
            checks[f"more_than_schemagate_interval_above_0_k{row['k']}_{bench}"] = row["gain_lower"] > 0
            if target := TARGETS.get((bench, row["k"])):
                checks[f"target_{target:g}_k{row['k']}_{bench}"] = row["coverage"] >= target
    run.write(table, CLAIM, figures, checks, inputs)


if __name__ == "__main__":
    main()
