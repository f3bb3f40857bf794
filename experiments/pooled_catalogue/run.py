"""Tables from all databases of Spider at once, when the question does not say which database it is about."""

from bayeslink.evaluation.pools import folder_of, rows_of
from bayeslink.evidence.kinds import TREES_HOME
from bayeslink.evidence.peers import POOLED_RUN, peers_home
from bayeslink.evidence.store import evidence_home
from bayeslink.inference import keep_compiled
from bayeslink.inference.posterior import shipped_path
from bayeslink.provenance import Experiment

CLAIM = (
    "With the database as a latent variable, the most probable tables of a pool of 876 hold all gold tables more often "
    "than fused retrieval does at its own mean sizes."
)
TARGETS = {16.9: 0.97}
COLUMNS = ("part", "name", "level", "asked_size", "mean_size", "capped", "questions", "value", "lower", "upper")
COLUMNS += ("peer_size", "peer_value", "only_ours", "only_peer", "p_value")


def main(arguments: list[str] | None = None) -> None:
    """Write table.csv and table.json."""
    run = Experiment.from_command(__file__, arguments)
    config = run.config
    folder, kind = folder_of(config["corpus"]), config["list"]
    inputs = {f"{folder.name}/{path.name}": path for path in sorted(folder.glob("*.jsonl*"))}
    inputs |= {f"bayeslink/posteriors/{kind}.nc": shipped_path(kind), f"trees/{kind}": TREES_HOME / f"{kind}.json.gz"}
    if config["corpus"] == "spider":
        stored = ("twins.json", "boosted/spider-train.npz")
        inputs |= {f"data/evidence/{name}": evidence_home() / name for name in stored}
        inputs |= {f"data/peers/{POOLED_RUN}.npz": peers_home() / f"{POOLED_RUN}.npz"}
    if run.is_current(inputs):
        return
    keep_compiled()
    table = [dict.fromkeys(COLUMNS) | row for row in rows_of(config)]
    figures, checks = {}, {}
    for row in table:
        if row["part"] == "score":
            figures[row["name"]] = row["value"]
        elif row["part"] == "level":
            percent = round(100 * row["level"])
            figures |= {f"coverage_{percent}": row["value"], f"mean_size_{percent}": row["mean_size"]}
        elif row["part"] == "size":
            size = f"{row['asked_size']:g}"
            figures |= {f"coverage_at_{size}": row["value"], f"mean_size_at_{size}": row["mean_size"]}
            most = row["asked_size"] if row["peer_size"] is None else row["peer_size"]
            checks[f"mean_size_at_most_the_peers_{size}"] = row["mean_size"] <= most
            if row["peer_value"] is not None:
                figures[f"peer_coverage_at_{size}"] = row["peer_value"]
                checks[f"more_than_schemagate_at_{size}"] = row["value"] > row["peer_value"]
            if target := TARGETS.get(row["asked_size"]):
                checks[f"target_{target:g}_at_{size}"] = row["value"] >= target
    run.write(table, CLAIM, figures, checks, inputs)


if __name__ == "__main__":
    main()
