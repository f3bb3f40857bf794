"""Exact inference costs little: widths, times and growth."""

import tempfile
from pathlib import Path

import numpy as np
import rivals

from bayeslink.evidence.store import evidence_home
from bayeslink.inference import keep_compiled
from bayeslink.provenance import Experiment, versions
from bayeslink.schema.corpus import data_home
from bayeslink.simulation import cost, timing
from bayeslink.simulation.graphs import random_narrow_graph, random_sparse_graph

CLAIM = "Selections on every benchmark's schema graph are exact, at a cost that grows linearly with the tables."


def main(arguments: list[str] | None = None) -> None:
    """Write table.csv, table.json and timings.json."""
    run = Experiment.from_command(__file__, arguments)
    config = run.config
    try:
        folders = {name: data_home() / name for name in config["corpora"]}
    except ValueError:
        folders = {}
    stored = [] if folders else config["stored"]
    files = {f"data/evidence/{name}.npz": evidence_home() / f"{name}.npz" for name in {*config["compiled"], *stored}}
    files |= {f"{name}/schemas.jsonl.gz": folder / "schemas.jsonl.gz" for name, folder in folders.items()}
    if run.is_current(files, with_timings=True):
        return
    seed, beta = config["seed"], config["coupling"]
    with tempfile.TemporaryDirectory() as cache:
        likelihood = cost.likelihood_cost(
            config["likelihood"], config["compiled"], seed, config["rounds"], Path(cache), config["databases"]
        )
    keep_compiled()

    def random_graph(kind: str, tables: int, edges: int) -> cost.Graph:
        rng = np.random.default_rng([seed, tables, edges])
        return cost.Graph("random", f"{kind}_{tables}_{edges}", random_sparse_graph(rng, tables, edges), tables)

    def narrow_graph(tables: int) -> cost.Graph:
        rng = np.random.default_rng([seed, tables])
        edges = random_narrow_graph(rng, tables, config["growth_width"], config["growth_kept"])
        return cost.Graph("random", f"narrow_{tables}", edges, tables)

    raced = [random_graph("sparse", *size) for size in config["dwave_sizes"]]
    listed = [random_graph("listed", n, n + 1) for n in config["listing_tables"]]
    grown = [narrow_graph(n) for n in config["growth_tables"]]
    parts = {"schema": cost.schema_graphs(folders, stored), "raced": raced, "listed": listed, "growth": grown}
    table, times = [], []
    for part, graphs in parts.items():
        for index, graph in enumerate(graphs):
            rng = np.random.default_rng([seed, index, graph.num_tables])
            unary = rng.normal(-1.0, 1.0, (config["questions"], graph.num_tables))
            table.append(cost.graph_row(part, graph, beta, unary))
            if part in ("raced", "listed"):
                others = {"dwave": (rivals.dwave, 10**6)} if config["dwave"] else {"dwave": (rivals.absent, 1)}
                if part == "listed":
                    others = {
                        "enumeration": (rivals.listing, 10**6),
                        "enumeration_blocked": (rivals.blocked_listing, 10**6),
                    }
                elif graph.num_tables <= config["pgmpy_most_tables"]:
                    others["pgmpy"] = (rivals.pgmpy, config["pgmpy_questions"])
                times += cost.side_by_side(graph, unary, beta, others, config["rounds"], config["budget_s"])
    growth = cost.growth(grown, config["growth_width"], config["questions"], beta, seed, config["rounds"])
    figures, checks = cost.table_figures(table)
    timed, met = cost.time_figures(times, growth, likelihood, figures)
    timings = timed | {"checks": met, "likelihood": likelihood, "side_by_side": times, "growth": growth}
    timings["peak_resident_bytes"] = timing.peak_memory()
    timings["versions"] = versions(["jax", "jaxlib", "dwave-samplers", "dimod", "pgmpy"])
    source = "benchmark data" if folders else f"data/evidence alone ({', '.join(stored)}): no benchmark data here"
    run.write(table, CLAIM, figures, checks, files, timings, graphs_from=source)


if __name__ == "__main__":
    main()
