"""Train the boosted trees on Spider train and BIRD train, and score every stored set with them.

    python scripts/train_boosted.py              # trees of cheap channels, into the package and data/evidence/boosted
    python scripts/train_boosted.py --learned    # trees that read the text channel too, and data/evidence/learned
    python scripts/train_boosted.py --rounds 20 --out FOLDER --trees FOLDER

Reads data/evidence/rich, and data/evidence/encoder for the second. The databases of Spider dev and BIRD dev and their
twins are in no training set. Training databases are scored by trees fitted on other databases, the others by trees
fitted on all training databases.
"""

import argparse
import json
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path

import numpy as np

from bayeslink.evidence.boosted import cross_fitted
from bayeslink.evidence.cache import replace_file
from bayeslink.evidence.channel import Evidence
from bayeslink.evidence.kinds import BOOSTED, LEARNED, TREES_HOME, trees_base
from bayeslink.evidence.store import ROBUSTNESS_SETS, SETS, evidence_home, load_evidence, load_twins, save_evidence
from bayeslink.evidence.trees import TreeSettings
from bayeslink.provenance import sha256
from bayeslink.schema.split import folds_by_database

TRAIN = ("spider-train", "bird-train", "bird-train-evidence")


def main() -> None:
    """Write the trees, the scores of every stored set and a manifest."""
    parser = argparse.ArgumentParser(description="Train the boosted trees and score every stored set.")
    parser.add_argument("--out", type=Path, help="folder of the scores; data/evidence/boosted by default")
    parser.add_argument("--trees", type=Path, default=TREES_HOME, help="folder of the trees; the package's by default")
    parser.add_argument("--rounds", type=int, default=TreeSettings().rounds, help="trees of each stage")
    parser.add_argument("--learned", action="store_true", help="the trees that read the learned text channel")
    options = parser.parse_args()
    kinds, family = (LEARNED, "learned") if options.learned else (BOOSTED, "boosted")
    out = options.out or evidence_home() / family
    settings = TreeSettings(rounds=options.rounds)
    names = (*SETS, *ROBUSTNESS_SETS)
    scores: dict[str, list[list[np.ndarray]]] = {name: [] for name in names}
    twins = load_twins()
    barred = {item.key for name in ("spider-dev", "bird-dev") for item in load_evidence(name)}
    barred |= {twin for key in barred for twin in twins[key]}
    for kind in kinds:
        stored = {name: load_evidence(name, trees_base(kind)) for name in names}
        training = [item for name in TRAIN for item in stored[name] if item.key not in barred]
        keys = sorted({item.key for item in training})
        fold = folds_by_database(keys, twins, settings.folds, np.random.default_rng(settings.seed))
        trees, found = cross_fitted(training, fold, settings, progress=True)
        trees.save(options.trees / f"{kind}.json.gz")
        cross = iter(found)
        for name in names:
            held = name in TRAIN
            scores[name].append(
                [next(cross) if held and item.key not in barred else trees.score(item) for item in stored[name]]
            )
    for name in names:
        save_evidence(
            out / f"{name}.npz",
            [scored(kinds, *parts) for parts in zip(load_evidence(name, ("name_any",)), *scores[name], strict=True)],
        )
    read = [
        path for part in ("rich", "encoder")[: 1 + options.learned] for path in (evidence_home() / part).glob("*.npz")
    ]
    manifest = {
        "licence": "CC BY-SA 4.0",
        "settings": settings._asdict(),
        "training": sorted(map("/".join, keys)),
        "inputs": {
            f"{path.parent.name}/{path.name}" if options.learned else path.name: sha256(path) for path in sorted(read)
        },
        "files": {f"{name}.npz": sha256(out / f"{name}.npz") for name in names},
        "trees": {kind: sha256(options.trees / f"{kind}.json.gz") for kind in kinds},
        "versions": {package: version(package) for package in ("lightgbm", "numpy")},
    }
    text = json.dumps(manifest, indent=2) + "\n"
    replace_file(out / "manifest.json", lambda file: file.write(text.encode()))


def scored(kinds: tuple[str, ...], evidence: Evidence, *scores: np.ndarray) -> Evidence:
    """A database's evidence with the scores of each list of trees in place of its channels."""
    return replace(evidence, channels=kinds, values=np.stack(scores, axis=2))


if __name__ == "__main__":
    main()
