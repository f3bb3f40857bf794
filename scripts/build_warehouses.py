"""Build data/evidence/warehouses: Spider 2.0-lite, BEAVER and FIBEN as numbers, without text.

    python scripts/build_warehouses.py                      # all sets
    python scripts/build_warehouses.py --sets fiben beaver-dw

Reads the data home (`$BAYESLINK_DATA`). Table names lose their qualifiers to the schema, and dated or numbered tables
are one table, and glued names are cut into words (`schema.qualifiers`, `partitions`, `segmentation`). Each set is
stored twice: with the keys that are declared, and with those that `schema.joins` guesses beside them; the trees read
either graph. Annotated join keys of BEAVER are not read. Scores are kept in the package's cache, so that a run that was
stopped goes on. Beside the sets lie the estimated tokens of each table's DDL, for Spider dev and BIRD dev too. A second
run writes the same bytes. `--write FOLDER` writes the prepared corpora in the line format instead, for another system.
"""

import argparse
import json
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path

import numpy as np
import torch

from bayeslink.evidence.benchmark import corpus_evidence
from bayeslink.evidence.boosted import BoostedChannel
from bayeslink.evidence.cache import cache_home, checkout, replace_file
from bayeslink.evidence.channel import Evidence, compute_evidence
from bayeslink.evidence.hints import TableShape
from bayeslink.evidence.kinds import LEARNED, channels_named, default_channels, trees_base
from bayeslink.evidence.store import WAREHOUSE_SETS, save_evidence
from bayeslink.evidence.structure import covariates, edge_types
from bayeslink.grounding.ddl import ddl_tokens
from bayeslink.provenance import sha256
from bayeslink.schema.corpus import Corpus, data_home, read_corpus, write_corpus
from bayeslink.schema.joins import WEIGHTS_FILE, with_inferred_keys
from bayeslink.schema.linkable import linkable
from bayeslink.schema.qualifiers import split_qualifiers
from bayeslink.schema.split import find_twins

PLAIN = ("token_overlap", "bm25", "embedding_cosine", "hashed_cosine", "name_any")
TRAIN = ("spider", "bird-train")


def main() -> None:
    """Build the sets that are asked for, and the manifest of all that are there."""
    bases = [name for name in WAREHOUSE_SETS if not name.endswith("-inferred")]
    parser = argparse.ArgumentParser(description="Build the numeric arrays of the warehouses.")
    parser.add_argument("--sets", nargs="+", choices=bases, default=bases, help="sets to build; all by default")
    parser.add_argument("--write", type=Path, help="folder for the prepared corpora; nothing else is done")
    parser.add_argument("--tokens", action="store_true", help="only the tokens of the tables' DDL")
    options = parser.parse_args()
    out = (checkout() or cache_home()) / "data" / "evidence" / "warehouses"
    if options.tokens:
        write_tokens(out / "ddl_tokens.json")
        return
    if options.write:
        for name in options.sets:
            write_corpus(prepared(name), options.write / name)
        return
    torch.set_num_threads(1)
    out.mkdir(parents=True, exist_ok=True)
    path = out / "manifest.json"
    sets = json.loads(path.read_text())["sets"] if path.is_file() else {}
    for name in options.sets:
        corpus = prepared(name)
        evidences, resolution = corpus_evidence(
            corpus, channels_named(base_channels()), dataset=corpus.name, cache=cache_home(), progress=True
        )
        graphs = {
            name: corpus.schemas,
            f"{name}-inferred": {key: with_inferred_keys(graph) for key, graph in corpus.schemas.items()},
        }
        texts = {item.db_id: [] for item in evidences}
        for question in corpus.questions:
            if question.id in resolution.gold:
                texts[question.db_id].append(question.text)
        for stored, schemas in graphs.items():
            found = [on_graph(item, schemas[item.db_id], texts[item.db_id]) for item in evidences]
            save_evidence(out / f"{stored}.npz", found)
            sets[stored] = {
                "file": sha256(out / f"{stored}.npz"),
                "dataset": corpus.name,
                "n_questions": sum(item.num_questions for item in found),
                "n_unresolved": len(resolution.failures),
                "n_without_query": resolution.num_without_query,
                "unresolved": [identity for identity, _ in resolution.failures],
                "n_databases": len(found),
                "n_tables": sum(item.num_tables for item in found),
                "n_edges": sum(len(item.edges) for item in found),
                "twins_in_training": trained_twins(corpus, found),
                "ids": {item.db_id: asked(corpus, resolution.gold, item.db_id) for item in found},
            }
        write_manifest(path, sets)
    write_tokens(out / "ddl_tokens.json")


def write_tokens(path: Path) -> None:
    """Estimated tokens of the DDL of each table of each database."""
    corpora = {name: prepared(name) for name in WAREHOUSE_SETS if not name.endswith("-inferred")}
    corpora |= {
        "spider-dev": read_corpus(data_home() / "spider", split="dev"),
        "bird-dev": read_corpus(data_home() / "bird"),
    }
    tokens = {
        name: {key: ddl_tokens(graph).astype(int).tolist() for key, graph in sorted(corpus.schemas.items())}
        for name, corpus in corpora.items()
    }
    replace_file(path, lambda file: file.write((json.dumps(tokens, separators=(",", ":")) + "\n").encode()))


def base_channels() -> list[str]:
    """Names of the channels that the trees read, and of the plain retrievers."""
    names = [*trees_base("learned"), *PLAIN]
    return list(dict.fromkeys(names))


def prepared(name: str) -> Corpus:
    """The corpus of a set, names without qualifiers, partitions folded; of BEAVER one part."""
    corpus = read_corpus(data_home() / name.partition("-")[0] if name.startswith("beaver") else data_home() / name)
    if name.startswith("beaver"):
        wanted = [db_id for db_id in corpus.schemas if (db_id == "dw") == (name == "beaver-dw")]
        corpus = corpus.select(db_ids=wanted)
    folded = {key: linkable(split_qualifiers(graph)) for key, graph in corpus.schemas.items()}
    return replace(corpus, schemas=folded)


def asked(corpus: Corpus, gold: dict[str, frozenset[int]], db_id: str) -> list[str]:
    """Ids of a database's questions in the order of the stored rows."""
    return [item.id for item in corpus.questions if item.db_id == db_id and item.id in gold]


def on_graph(raw: Evidence, graph, texts: list[str]) -> Evidence:
    """The stored channels on a graph: the plain ones, and what the trees make of all on its edges."""
    edges = graph.edge_array
    shapes = [channel for channel in default_channels("rich_embedding") if isinstance(channel, TableShape)]
    fresh = compute_evidence(graph, texts, shapes)
    values = raw.values.copy()
    for place, channel in enumerate(fresh.channels):
        values[:, :, raw.channels.index(channel)] = fresh.values[:, :, place]
    here = replace(
        raw,
        values=values,
        edges=edges,
        edge_types=edge_types(graph),
        covariates=covariates(edges, graph.num_tables),
    )
    plain = here.select_channels(PLAIN)
    scores = []
    for kind in LEARNED:
        (channel,) = default_channels(kind)
        assert isinstance(channel, BoostedChannel)
        scores.append(channel.trees.score(here.select_channels(trees_base(kind))))
    return replace(plain, channels=(*PLAIN, *LEARNED), values=np.concatenate([plain.values, np.stack(scores, 2)], 2))


def trained_twins(corpus: Corpus, found: list[Evidence]) -> list[str]:
    """Databases with a twin among those that anything was trained on."""
    graphs = {(name, key): graph for name in TRAIN for key, graph in read_corpus(data_home() / name).schemas.items()}
    graphs |= {(corpus.name, item.db_id): corpus.schemas[item.db_id] for item in found}
    twins = find_twins(graphs)
    return [item.db_id for item in found if any(other in TRAIN for other, _ in twins[corpus.name, item.db_id])]


def write_manifest(path, sets: dict[str, dict]) -> None:
    """The manifest of all sets, in their order."""
    folders = sorted({entry["dataset"] for entry in sets.values()})
    inputs = [data_home() / name / f"{kind}.jsonl.gz" for name in folders for kind in ("questions", "schemas")]
    manifest = {
        "licences": {"spider2-lite": "MIT", "beaver": "MIT-style", "fiben": "Apache-2.0"},
        "inputs": {f"{item.parent.name}/{item.name}": sha256(item) for item in inputs},
        "sets": {name: sets[name] for name in WAREHOUSE_SETS if name in sets},
        "joins": sha256(WEIGHTS_FILE),
        "trees": {kind: sha256(default_channels(kind)[0].path) for kind in LEARNED},
        "versions": {name: version(name) for name in ("torch", "sentence-transformers", "lightgbm", "sqlglot")},
    }
    text = json.dumps(manifest, indent=1) + "\n"
    replace_file(path, lambda file: file.write(text.encode()))


if __name__ == "__main__":
    main()
