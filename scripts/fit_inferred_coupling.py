"""Fit how much weaker the coupling of guessed keys is, and store it for the linker.

    python scripts/fit_inferred_coupling.py      # some minutes; from the stored evidence alone

On Spider train and BIRD train without twins of the dev sets, half of the databases with guessed keys in place of
theirs.
"""

import json
from pathlib import Path

import numpy as np

from bayeslink.evaluation.guessed_coupling import fit_with_guessed_keys
from bayeslink.evaluation.schemes import FitSettings
from bayeslink.evidence.cache import replace_file
from bayeslink.evidence.context import RECOMMENDED_CONTEXT
from bayeslink.evidence.store import evidence_home
from bayeslink.evidence.structure import EDGE_TYPES
from bayeslink.inference import keep_compiled

OUT = Path(__file__).parents[1] / "bayeslink" / "posteriors" / "inferred_coupling.json"


def main() -> None:
    """Fit and write."""
    keep_compiled()
    guessed = json.loads((evidence_home() / "warehouses" / "joins.json").read_text())["edges"]
    settings = FitSettings(num_draws=500, context=tuple(RECOMMENDED_CONTEXT))
    channels = ("token_overlap", "bm25", "embedding_cosine")
    posterior, shown = fit_with_guessed_keys(
        ("spider-train", "bird-train"), channels, guessed, settings, max_tables=30, progress=True
    )
    # Offsets are those of the kinds after the first.
    kind = EDGE_TYPES.index("inferred")
    offset = np.asarray(posterior.draws["delta"])[:, kind - 1]
    edges = sum(int((item.edge_types == kind).sum()) for item in shown)
    content = {"mean": float(offset.mean()), "sd": float(offset.std()), "guessed_edges": edges}
    content |= {"databases": len(posterior.databases), "checks": {k: bool(v) for k, v in posterior.checks.items()}}
    replace_file(OUT, lambda file: file.write(json.dumps(content, indent=1).encode() + b"\n"))
    print(content)


if __name__ == "__main__":
    main()
