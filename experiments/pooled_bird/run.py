"""Tables from all databases of BIRD dev at once, when the question does not say which database it is about."""

from bayeslink.evaluation.pools import folder_of, rows_of
from bayeslink.evidence.kinds import TREES_HOME
from bayeslink.evidence.peers import peers_home
from bayeslink.evidence.store import evidence_home
from bayeslink.inference import keep_compiled
from bayeslink.inference.posterior import shipped_path
from bayeslink.provenance import Experiment

CLAIM = (
    "With the database as a latent variable, whose score is fitted on other databases altogether, the most probable "
    "tables of a pool of 75 hold all gold tables more often than schemagate does at its own mean sizes."
)
COLUMNS = ("part", "pool", "name", "level", "asked_size", "mean_size", "capped", "questions", "value", "lower", "upper")
COLUMNS += ("peer_size", "peer_value", "only_ours", "only_peer", "p_value")


def main(arguments: list[str] | None = None) -> None:
    """Write table.csv and table.json."""
    run = Experiment.from_command(__file__, arguments)
    config = run.config
    kind, inputs = config["list"], {}
    for pool in config["pools"]:
        for folder in (folder_of(pool[name]) for name in ("corpus", "fit_corpus") if name in pool):
            inputs |= {f"{folder.name}/{path.name}": path for path in sorted(folder.glob("*.jsonl*"))}
        if "peer" in pool:
            inputs[f"data/peers/{pool['peer']}.npz"] = peers_home() / f"{pool['peer']}.npz"
            stored = f"boosted/bird-train{'-evidence' * pool['with_evidence']}.npz"
            inputs |= {f"data/evidence/{name}": evidence_home() / name for name in ("twins.json", stored)}
    inputs |= {f"bayeslink/posteriors/{kind}.nc": shipped_path(kind), f"trees/{kind}": TREES_HOME / f"{kind}.json.gz"}
    if run.is_current(inputs):
        return
    keep_compiled()
    table = [
        dict.fromkeys(COLUMNS) | {"pool": pool["name"]} | row
        for pool in config["pools"]
        for row in rows_of({**config, **pool})
    ]
    figures, checks = {}, {}
    for row in table:
        bench = row["pool"]
        if row["part"] == "score":
            figures[f"{row['name']}_{bench}"] = row["value"]
        elif row["part"] == "level":
            percent = round(100 * row["level"])
            figures |= {f"coverage_{percent}_{bench}": row["value"], f"mean_size_{percent}_{bench}": row["mean_size"]}
        elif row["part"] == "size":
            where = f"{row['asked_size']:g}_{bench}"
            figures |= {f"coverage_at_{where}": row["value"], f"mean_size_at_{where}": row["mean_size"]}
            most = row["asked_size"] if row["peer_size"] is None else row["peer_size"]
            checks[f"mean_size_at_most_the_peers_{where}"] = row["mean_size"] <= most
            if row["peer_value"] is not None:
                figures[f"peer_coverage_at_{where}"] = row["peer_value"]
                checks[f"more_than_schemagate_at_{where}"] = row["value"] > row["peer_value"]
    run.write(table, CLAIM, figures, checks, inputs)


if __name__ == "__main__":
    main()
