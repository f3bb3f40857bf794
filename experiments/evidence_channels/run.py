"""How well each channel, the trees that join them and the models fitted on either rank tables of unseen databases."""

from channel_times import timings
from evidence_rows import RICH, TEXT, alone, fitted, without
from shrinkage import shrunk

from bayeslink.evidence.kinds import TREES
from bayeslink.evidence.store import evidence_home, stored_files
from bayeslink.inference import keep_compiled
from bayeslink.inference.posterior import shipped_path
from bayeslink.provenance import Experiment

CLAIM = (
    "Cheap channels and a small text encoder, joined by trees that see the neighbours' evidence too, rank the tables "
    "of unseen databases above an attention linker of nine billion parameters on Spider dev and on BIRD dev with "
    "evidence strings, in milliseconds on a CPU."
)
TARGETS = {"map_spider": 0.985, "map_bird_names": 0.925, "map_bird": 0.955}
TARGETS |= {"map_bird_evidence_names": 0.9615, "map_bird_evidence": 0.970}
ATTNLINK = {"map_spider": 0.98, "map_bird_evidence_names": 0.9615, "map_bird_evidence": 0.9615}
LOG_SCORES = {"spider": -0.82, "bird_names": -2.15, "bird": -1.95, "bird_evidence": -1.85}


def main(arguments: list[str] | None = None) -> None:
    """Write table.csv, table.json and timings.json."""
    run = Experiment.from_command(__file__, arguments)
    config, home = run.config, evidence_home()
    every = (*RICH, *TEXT, *TREES, "token_overlap", "bm25")
    names = {*config["sets"], *config["train"], *config["tree_sets"]}
    inputs = {f"data/evidence/{path.relative_to(home)}": path for n in sorted(names) for path in stored_files(n, every)}
    inputs |= {f"data/evidence/{name}": home / name for name in ("twins.json", "fingerprints.npz")}
    shipped = [name for name, listed in config["fitted"].items() if listed == "shipped"]
    inputs |= {f"bayeslink/posteriors/{name}.nc": shipped_path(name) for name in shipped}
    if run.is_current(inputs, with_timings=True):
        return
    keep_compiled()
    table = [*alone(config), *fitted(config), *shrunk(config), *without(config)]
    figures, checks = {}, {}
    for row in table:
        bench = row["data"].replace("-dev", "").replace("-", "_")
        if row["part"] == "fitted":
            lead = "" if row["name"] == "learned" else f"{row['name']}_"
            scores = ("map", "all_gold_at_3", "joint_log_score", "ece")
            figures |= {f"{lead}{row['variant']}_{score}_{bench}": row[score] for score in scores}
            if row["variant"] == "hierarchical" and row["name"] in ("learned", "learned_names"):
                place = bench + "_names" * (row["name"] == "learned_names")
                figures[f"map_{place}"] = row["map"]
                if place in LOG_SCORES:
                    checks[f"joint_log_score_target_{place}"] = row["joint_log_score"] >= LOG_SCORES[place]
        elif row["part"] == "prior":
            figures |= {f"{row['name']}_{score}_{bench}": row[score] for score in ("map", "log_loss", "negligible")}
        elif row["part"] == "without":
            figures[f"map_without_{row['name']}_{bench}"] = row["map"]
        else:
            figures |= {f"{row['name']}_alone_{score}_{bench}": row[score] for score in ("map", "all_gold_at_3")}
    checks |= {f"target_{name}": figures[name] >= target for name, target in TARGETS.items() if name in figures}
    checks |= {f"above_attnlink_{name}": figures[name] > ATTNLINK[name] for name in ATTNLINK if name in figures}
    ranked = {(row["name"], row["data"]) for row in table if row["part"] in ("channel", "trees")}
    asked = {(name, data) for name in (*RICH, *TEXT, *TREES) for data in config["sets"]}
    checks["every_channel_and_the_trees_were_ranked"] = ranked == asked
    keys = ("part", "name", "data", "variant", "questions", "unresolved", "map", "map_lower", "map_upper")
    keys += ("all_gold_at_3", "all_gold_at_5", "joint_log_score", "ece", "exact_match")
    keys += ("change", "change_lower", "change_upper", "log_loss", "negligible")
    run.write(
        [dict.fromkeys(keys) | row for row in table], CLAIM, figures, checks, inputs, timings=timings(config["timed"])
    )


if __name__ == "__main__":
    main()
