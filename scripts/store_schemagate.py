"""Store what `run_schemagate.py` wrote as arrays: places of the returned tables, or every table's score, without text.

    python scripts/store_schemagate.py spider-dev.jsonl bird-dev.jsonl ...      # into data/peers
    python scripts/store_schemagate.py scores/*.jsonl           # of runs with --scores: into data/evidence/schemagate
    python scripts/store_schemagate.py --prepared FOLDER --out data/peers/curves curves/*.jsonl     # at many k

Reads the data home (`$BAYESLINK_DATA`) to turn names of tables into positions; questions without resolved gold are
left out, as in the stored evidence, and counted. A second run writes the same bytes.
"""

import argparse
import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from bayeslink.evaluation.questions import stored_set
from bayeslink.evidence.cache import checkout, replace_file
from bayeslink.evidence.channel import Evidence
from bayeslink.evidence.peers import (
    CURVE_SETS,
    PEER_SETS,
    POOLED_RUNS,
    Returned,
    ReturnedFromPool,
    save_pooled,
    save_returned,
)
from bayeslink.evidence.store import SETS, evidence_home, load_evidence, save_evidence
from bayeslink.provenance import sha256
from bayeslink.schema.corpus import Corpus, data_home, read_corpus
from bayeslink.schema.gold import resolve


def main() -> None:
    """Store each run and the manifest."""
    parser = argparse.ArgumentParser(description="Store the tables that schemagate returned as arrays.")
    parser.add_argument("lines", type=Path, nargs="+", help="JSON lines of run_schemagate.py")
    parser.add_argument("--out", type=Path, help="folder to write; data/peers of the checkout by default")
    parser.add_argument("--prepared", type=Path, help="folder of the prepared corpora that runs with --prepared read")
    options = parser.parse_args()
    scored = {
        bool(json.loads(path.with_suffix(".meta.json").read_text())["settings"]["scores"]) for path in options.lines
    }
    if len(scored) > 1:
        parser.error("some runs are of --scores, others not; store them apart")
    peers = (checkout() or Path.cwd()) / "data" / "peers"
    out = options.out or (evidence_home() / "schemagate" if scored.pop() else peers)
    # Runs that are not stored again keep their entries.
    written = out / "manifest.json"
    runs = json.loads(written.read_text())["runs"] if written.is_file() else {}
    for path in options.lines:
        name, entry = store(path, out, options.prepared)
        runs[name] = entry
        print(f"{name}: {entry['n_questions']} questions, {entry['n_unresolved']} unresolved")
    known = (*PEER_SETS, *POOLED_RUNS, *SETS, *(name.removeprefix("curves/") for name in CURVE_SETS))
    manifest = {"licence": "CC BY-SA 4.0", "runs": {name: runs[name] for name in dict.fromkeys(known) if name in runs}}
    text = json.dumps(manifest, indent=2) + "\n"
    replace_file(written, lambda file: file.write(text.encode()))


def store(path: Path, out: Path, prepared: Path | None) -> tuple[str, dict[str, object]]:
    """Write one run's arrays; its name and its entry in the manifest."""
    meta = json.loads(path.with_suffix(".meta.json").read_text())
    settings, lines = meta["settings"], [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    if sha256(path) != meta["lines"]:
        raise SystemExit(f"{path}: not the lines that its .meta.json describes; run it again")
    home = data_home()
    if settings.get("prepared"):
        if prepared is None:
            raise SystemExit(f"{path} is of a prepared corpus; name its folder with --prepared")
        home = prepared
    if changed := [name for name, digest in meta["inputs"].items() if sha256(home / name) != digest]:
        raise SystemExit(f"{path}: {', '.join(changed)} changed since the run; run it again")
    corpus = read_corpus(home / settings["data"], split=settings["split"])
    if settings.get("prepared"):
        asked = tuple(question for question in corpus.questions if question.query is not None)
        corpus = replace(corpus, questions=asked)
    resolution = resolve(corpus)
    answers = {line["id"]: line["tables"] for line in lines}
    missing = [question.id for question in corpus.questions if question.id not in answers]
    if missing or len(answers) != len(lines):
        raise SystemExit(f"{path}: {len(missing)} questions unanswered, {len(lines) - len(answers)} repeated")
    entry = {
        "n_questions": len(resolution.gold),
        "n_unresolved": resolution.num_questions - len(resolution.gold),
        **{field: meta[field] for field in ("versions", "settings", "inputs", "lines")},
    }
    is_prepared = settings.get("prepared", False)
    with_evidence = settings["text"] != "question"
    base = settings["data"] if is_prepared else stored_set(settings["data"], settings["split"], with_evidence)
    if settings["scores"]:
        name = base
        save_evidence(out / f"{name}.npz", scores(name, corpus, resolution.gold, answers))
        return name, {"file": sha256(out / f"{name}.npz")} | entry
    if settings["pooled"]:
        name = f"schemagate-{base}-pooled"
        save_pooled(out / f"{name}.npz", pooled(corpus, resolution.gold, answers, settings["k"]))
        return name, {"file": sha256(out / f"{name}.npz")} | entry
    runs: dict[int, list[Returned]] = {k: [] for k in settings["k"]}
    for db_id in sorted({question.db_id for question in corpus.questions}):
        graph = corpus.schemas[db_id]
        asked = [item.id for item in corpus.questions if item.db_id == db_id and item.id in resolution.gold]
        if not asked:
            continue
        for k, found in runs.items():
            place = np.zeros((len(asked), graph.num_tables), dtype=np.int64)
            for row, question in enumerate(asked):
                for number, (owner, table) in enumerate(answers[question][str(k)], start=1):
                    position = graph.find(table, None if owner == db_id else owner)
                    if position is None or (owner != db_id and not is_prepared):
                        raise SystemExit(f"{path}: question {question} got {owner}.{table}, which {db_id} lacks")
                    place[row, position] = number
            found.append(Returned(corpus.name, db_id, place))
    name = f"schemagate-{base}{'-descriptions' if settings['descriptions'] else ''}"
    save_returned(out / f"{name}.npz", runs)
    return name, {"file": sha256(out / f"{name}.npz")} | entry


def scores(
    name: str, corpus: Corpus, gold: Mapping[str, frozenset[int]], answers: Mapping[str, dict]
) -> list[Evidence]:
    """The set's evidence with the peer's score as its one channel, 0 for a table that it does not rank."""
    found = []
    for item in load_evidence(name):
        graph = corpus.schemas[item.db_id]
        asked = [question.id for question in corpus.questions if question.db_id == item.db_id and question.id in gold]
        if len(asked) != item.num_questions:
            raise SystemExit(f"{name}: {item.db_id} has {len(asked)} questions here and {item.num_questions} stored")
        values = np.zeros((len(asked), item.num_tables, 1))
        for row, question in enumerate(asked):
            for owner, table, score in answers[question][str(graph.num_tables)]:
                position = graph.find(table)
                if owner != item.db_id or position is None:
                    raise SystemExit(f"{name}: question {question} got {owner}.{table}, which {item.db_id} lacks")
                values[row, position, 0] = score
        found.append(replace(item, channels=("schemagate",), values=values))
    return found


def pooled(
    corpus: Corpus, gold: Mapping[str, frozenset[int]], answers: Mapping[str, dict], ks: Sequence[int]
) -> dict[int, ReturnedFromPool]:
    """For each question with resolved gold, in order: how many tables came back, and whether all gold ones did."""
    asked = [question for question in corpus.questions if question.id in gold]
    found = {}
    for k in ks:
        returned = [{(owner, table.casefold()) for owner, table in answers[item.id][str(k)]} for item in asked]
        needed = [
            {(item.db_id, corpus.schemas[item.db_id].tables[place].name.casefold()) for place in gold[item.id]}
            for item in asked
        ]
        holds = [want <= have for want, have in zip(needed, returned, strict=True)]
        found[k] = ReturnedFromPool(np.array([len(have) for have in returned]), np.array(holds))
    return found


if __name__ == "__main__":
    main()
