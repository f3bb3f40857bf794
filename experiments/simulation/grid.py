"""The grid of cells, their replicates in chunks, and the scores of each cell."""

from collections.abc import Mapping, Sequence
from functools import partial
from itertools import product

import numpy as np

from bayeslink.evaluation import calibration
from bayeslink.evidence.cache import cache_home
from bayeslink.evidence.store import load_evidence
from bayeslink.model.hierarchy import Variant
from bayeslink.simulation.cells import Cell, Sizes
from bayeslink.simulation.families import Family, real_graphs
from bayeslink.simulation.study import Chunk, run_chunk
from bayeslink.simulation.workers import compute_all

PAIR_SCORES = {
    "mean_shift": calibration.mean_shift,
    "ece": calibration.calibration_error,
    "marginal_log_score": calibration.marginal_log_score,
}


def cells_of(config: Mapping) -> list[Cell]:
    """The cells of every part of the grid, each once, in order."""
    evidences = [item for name in config["graphs_from"] for item in load_evidence(name)]
    names = ("families", "num_tables", "coupling", "coupling_sd", "strength", "intercept_sd")
    cells: dict[Cell, None] = {}
    for part in config["grid"]:
        for family, tables, coupling, spread, strength, intercept_sd in product(*(part[name] for name in names)):
            graphs = real_graphs(evidences, tables) if family == Family.REAL else ()
            values = Family(family), tables, coupling, spread, strength, config["share"], intercept_sd, graphs
            cells[Cell(*values)] = None
    return list(cells)


def chunks_of(config: Mapping, cells: Sequence[Cell]) -> list[Chunk]:
    """Chunks of every cell, one number of tables after another: a worker that keeps the programs of several grows by
    more memory than joblib lets it, is started anew, and compiles them again.
    """
    sizes = Sizes(config["databases"], config["questions"], config["draws"])
    joint = tuple(Variant(variant) for variant in config["joint"])
    chunks = [
        Chunk(cell, sizes, joint, config["seed"], first, min(config["chunk"], config["replicates"] - first))
        for cell in cells
        for first in range(0, config["replicates"], config["chunk"])
    ]
    return sorted(chunks, key=lambda chunk: chunk.cell.num_tables)


def scores_by_cell(
    cells: Sequence[Cell], chunks: Sequence[Chunk], source: str, jobs: int, dask: str | None
) -> dict[Cell, dict[str, np.ndarray]]:
    """Scores of every replicate of each cell; chunks that the cache folder has are not computed again."""
    paths = [cache_home() / "simulation" / f"{chunk.key(source)}.npz" for chunk in chunks]
    results = compute_all(partial(run_chunk, pair_scores=PAIR_SCORES), chunks, paths, jobs, dask)
    parts: dict[Cell, dict[int, dict[str, np.ndarray]]] = {cell: {} for cell in cells}
    for chunk, result in zip(chunks, results, strict=True):
        parts[chunk.cell][chunk.first] = result
    return {cell: _joined([found[first] for first in sorted(found)]) for cell, found in parts.items()}


def _joined(parts: Sequence[Mapping[str, np.ndarray]]) -> dict[str, np.ndarray]:
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
