"""Train AttnLink-S on Spider train, find AttnLink-U's head, and store the scores of both on databases they never saw.

    python scripts/train_attention.py train --out FOLDER               # hours; a second call goes on
    python scripts/train_attention.py train --out FOLDER --minutes 40  # stops in time; the checkpoint keeps the rest
    python scripts/train_attention.py pack --out FOLDER                # the adapter in a quarter of its size
    python scripts/train_attention.py heads --out FOLDER               # mean average precision of every head, untrained
    python scripts/train_attention.py score --out FOLDER               # scores of the sets by the packed adapter
    python scripts/train_attention.py score --out FOLDER --untrained   # and by the plain model at the best head
    python scripts/train_attention.py fit                              # posteriors of tables and columns on the scores
    python scripts/train_attention.py ablate --out FOLDER              # what rho, pooling, order and prompt matter

The databases of Spider train are dealt into tenths with their twins; those of Spider dev, BIRD dev and their twins are
in none. Seven tenths train the adapter, one tells when to stop, and two are kept for the posterior, which so meets
scores of databases that the adapter never saw (MODEL.md section 9, item 4). Scores are s_c of every column, one file a
set, as the channel and the columns read them.
"""

import argparse
import json
import shutil
from collections.abc import Iterator
from dataclasses import asdict, replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from tqdm import tqdm

from bayeslink.evaluation.questions import Questions
from bayeslink.evaluation.report import fit_posteriors
from bayeslink.evaluation.schemes import FitSettings
from bayeslink.evidence.attention import AttentionHead, find_head, head_model, score_candidates
from bayeslink.evidence.attention_databases import save_adapter_databases
from bayeslink.evidence.attention_model import load_language_model
from bayeslink.evidence.attention_prompt import Instruction, Level, Pooling, Prompt, copying_prompt
from bayeslink.evidence.attention_store import (
    ATTENTION_SETS,
    FIT_SETS,
    RESERVED_SET,
    joined_evidence,
    scored_places,
    stored_attention,
)
from bayeslink.evidence.attention_training import Example, TrainSettings, pack_adapter, ranking_precision, train
from bayeslink.evidence.benchmark import question_text
from bayeslink.evidence.cache import replace_file
from bayeslink.evidence.columns import column_evidence
from bayeslink.evidence.kinds import ATTENTION_HOME
from bayeslink.evidence.store import load_evidence, load_fingerprints, load_twins, save_arrays
from bayeslink.inference.columns import ColumnRows, databases_named, fit_columns
from bayeslink.inference.posterior import save_posteriors, shipped_path
from bayeslink.model.hierarchy import Terms, Variant
from bayeslink.schema.corpus import Question, data_home, read_corpus
from bayeslink.schema.gold import resolve
from bayeslink.schema.gold_columns import told_columns
from bayeslink.schema.graph import SchemaGraph
from bayeslink.schema.split import folds_by_database

FOLDS = 10
RESERVED = (0, 1)
"""Tenths kept for the posterior."""
STOPPING = (2,)
"""Tenths that tell when to stop."""


FITTED = (Variant.INDEPENDENT, Variant.INDEPENDENT_HIERARCHICAL, Variant.HIERARCHICAL)
"""Variants of the posterior on attention."""


class Asked(NamedTuple):
    """A database with its resolved questions and their gold."""

    key: tuple[str, str]
    graph: SchemaGraph
    questions: list[Question]
    examples: list[Example]


def databases(folder: str, split: str | None, with_evidence: bool = False) -> Iterator[Asked]:
    """Databases in the order of their ids, as the stored evidence has them.

    No gold columns where they cannot all be told, so that no loss and no score counts what is left of them.
    """
    corpus = read_corpus(data_home() / folder, split=split)
    gold = resolve(corpus).gold
    for db_id in sorted(corpus.schemas):
        graph = corpus.schemas[db_id]
        kept = [question for question in corpus.questions if question.db_id == db_id and question.id in gold]
        if kept:
            examples = [
                Example(
                    question_text(question, with_evidence),
                    graph,
                    gold[question.id],
                    told_columns(question.query, graph) or frozenset(),
                )
                for question in kept
            ]
            yield Asked((folder, db_id), graph, kept, examples)


def barred() -> set[tuple[str, str]]:
    """Databases of the dev sets and their twins."""
    keys = {item.key for name in ("spider-dev", "bird-dev") for item in load_evidence(name)}
    twins = load_twins()
    return keys | {twin for key in keys for twin in twins[key]}


def tenths() -> dict[tuple[str, str], int]:
    """Tenth of each database of Spider train that is no database or twin of the dev sets."""
    left_out = barred()
    keys = [item.key for item in load_evidence("spider-train") if item.key not in left_out]
    fold = folds_by_database(keys, load_twins(), FOLDS, np.random.default_rng(0))
    return {key: int(fold[key]) for key in keys}


def main() -> None:
    """Do one of the three."""
    parser = argparse.ArgumentParser(description="Train, probe or score the attention of a language model.")
    parser.add_argument("task", choices=("train", "pack", "heads", "score", "fit", "ablate"))
    parser.add_argument("--out", type=Path, default=Path("output/attention"), help="folder of the run")
    parser.add_argument("--to", type=Path, help="pack, score, fit: where to write; the project's own folders")
    parser.add_argument("--model", default="smollm2")
    parser.add_argument("--layer", type=int, default=19)
    parser.add_argument("--head", type=int, default=0)
    parser.add_argument("--steps", type=int, default=2000)
    parser.add_argument("--batch", type=int, default=4)
    parser.add_argument("--rank", type=int, default=16)
    parser.add_argument("--rate", type=float, default=1e-3)
    parser.add_argument("--floor", type=float, default=0.25, help="rho")
    parser.add_argument("--instruction", default="copy", choices=list(Instruction))
    parser.add_argument("--longest", type=int, default=512)
    parser.add_argument("--minutes", type=float, default=1e9)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--sample", type=int, default=400, help="heads: questions")
    parser.add_argument("--untrained", action="store_true", help="score: the plain model at the best head")
    parser.add_argument("--every-nth", type=int, default=1, help="score: one question in so many")
    parser.add_argument("--most", type=int, help="score: questions of a database at most")
    parser.add_argument("--sets", nargs="+", default=list(ATTENTION_SETS), choices=list(ATTENTION_SETS))
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    options.out.mkdir(parents=True, exist_ok=True)
    tasks = {"train": run_training, "pack": run_pack, "heads": run_heads, "score": run_scores, "fit": run_fit}
    tasks["ablate"] = run_ablations
    tasks[options.task](options)


def run_training(options: argparse.Namespace) -> None:
    """AttnLink-S."""
    fold = tenths()
    found = [item for item in databases("spider", "train") if item.key in fold]
    own = [example for item in found if fold[item.key] not in RESERVED + STOPPING for example in item.examples]
    held = [example for item in found if fold[item.key] in STOPPING for example in item.examples]
    sample = np.random.default_rng(0).permutation(len(held))[:100]
    model = load_language_model(options.model)
    head = AttentionHead(
        options.model,
        model.revision,
        options.layer,
        options.head,
        instruction=Instruction(options.instruction),
        adapter="adapter",
    )
    settings = TrainSettings(
        rank=options.rank,
        alpha=2 * options.rank,
        rate=options.rate,
        batch=options.batch,
        steps=options.steps,
        floor=options.floor,
        longest=options.longest,
    )
    train(model, head, own, [held[place] for place in sample], options.out, settings, options.minutes, progress=True)
    head.save(options.out / "head.json")
    save_adapter_databases(options.out / "adapter", adapter_prints(fold))


def adapter_prints(fold: dict[tuple[str, str], int]) -> dict[tuple[str, str], np.ndarray]:
    """Fingerprints of the databases of all tenths but the reserved ones: those that train or tell when to stop."""
    prints = load_fingerprints()
    return {key: prints[key] for key in fold if fold[key] not in RESERVED}


def run_heads(options: argparse.Namespace) -> None:
    """AttnLink-U: every head on questions of BIRD train, on databases of at most 60 columns that are not barred."""
    model, left_out = load_language_model(options.model), barred()
    found = (item for item in databases("bird-train", None) if item.key not in left_out and num_columns(item) <= 60)
    pool = [example for item in found for example in item.examples if example.columns]
    chosen = [pool[place] for place in np.random.default_rng(0).permutation(len(pool))[: options.sample]]
    report = {}
    for level in Level:
        prompts, gold = gold_candidates(chosen, level)
        usable = [place for place, right in enumerate(gold) if right.any()]
        found = find_head(model, [prompts[i] for i in usable], [gold[i] for i in usable], progress=True)
        place = np.unravel_index(found.argmax(), found.shape)
        layer, head = model.layers[int(place[0])], int(place[1])
        report[level.value] = {"layer": layer, "head": head, "map": float(found.max()), "all": found.tolist()}
        AttentionHead(options.model, model.revision, layer, head, level).save(options.out / f"head_{level.value}.json")
    write_json(options.out / "heads.json", report)


def gold_candidates(examples: list[Example], level: Level) -> tuple[list[Prompt], list[np.ndarray]]:
    """Prompts and, of their candidates, which are gold."""
    prompts = [copying_prompt(item.question, item.graph, level) for item in examples]
    gold = [
        np.array(
            [
                (t in item.tables) if c < 0 else ((t, c) in item.columns)
                for t, c in zip(prompt.owner.tolist(), prompt.column.tolist(), strict=True)
            ],
            dtype=bool,
        )
        for item, prompt in zip(examples, prompts, strict=True)
    ]
    return prompts, gold


def num_columns(item: Asked) -> int:
    """Columns of a database; a count."""
    return sum(len(table.columns) for table in item.graph.tables)


def run_pack(options: argparse.Namespace) -> None:
    """The trained head with its packed adapter and the log of the run, as the package carries them."""
    home = options.to or ATTENTION_HOME
    head = AttentionHead.load(options.out / "head.json")
    worst = pack_adapter(Path(head.adapter), home / "adapter")
    replace(head, adapter="adapter").save(home / "head.json")
    save_adapter_databases(home / "adapter", adapter_prints(tenths()))
    shutil.copy(options.out / "log.jsonl", home / "log.jsonl")
    print(f"{home}: largest relative error of a layer {worst:.3f}")


def run_scores(options: argparse.Namespace) -> None:
    """s_c of every column for every question of the sets, and what they were made with."""
    home = options.to or Path("data/attention")
    head = AttentionHead.load(options.out / "head_column.json" if options.untrained else ATTENTION_HOME / "head.json")
    fold, twins = tenths(), load_twins()
    trained = set(adapter_prints(fold))
    seen = barred() | trained | {twin for key in trained for twin in twins[key]}
    manifest_path = home / "manifest.json"
    manifest = json.loads(manifest_path.read_text()) if manifest_path.is_file() else {}
    manifest |= {"licence": "CC BY-SA 4.0", "reserved": sorted("/".join(key) for key in fold if fold[key] in RESERVED)}
    label = "untrained" if options.untrained else "trained"
    manifest[label] = asdict(head) | {"adapter": head.adapter_digest, "digest": head.digest}
    for name in options.sets:
        folder, split, with_evidence = ATTENTION_SETS[name]
        arrays: dict[str, np.ndarray] = {}
        for item in tqdm(list(databases(folder, split, with_evidence)), desc=name, disable=None):
            if name == RESERVED_SET and fold.get(item.key) not in RESERVED:
                continue
            if name == "bird-train" and item.key in seen:
                continue
            places = scored_places(len(item.examples), options.every_nth, options.most)
            asked = [item.examples[place] for place in places]
            found = score_candidates(head, [example.question for example in asked], item.graph)
            arrays[item.key[1]] = found.scores.astype(np.float32)
        save_arrays(home / f"{label}-{name}.npz", arrays)
        if options.most is not None:
            manifest.setdefault("most", {})[name] = options.most
        steps = manifest.setdefault("every_nth", {})
        if steps.setdefault(name, options.every_nth) != options.every_nth:
            raise SystemExit(f"{name} was scored with --every-nth {steps[name]} before; use the same")
        write_json(manifest_path, manifest)


def write_json(path: Path, content: dict) -> None:
    """A JSON file, whole or not at all."""
    text = json.dumps(content, indent=1).encode()
    replace_file(path, lambda file: file.write(text))


def run_fit(options: argparse.Namespace) -> None:
    """The posteriors of tables and of columns that read attention, on the tenths kept for them."""
    home = options.to or shipped_path("lexical").parent
    rows, names, evidences, told = [], (), [], []
    for name in FIT_SETS:
        items = list(stored_attention(name))
        evidences += joined_evidence(name, items, ("token_overlap", "bm25", "embedding_cosine"))
        for item in tqdm(items, desc=f"columns {name}", disable=None):
            found = column_evidence(item.texts, item.graph, "attention", attention=item.scores["trained"])
            kept = item.tables[:, item.owner] & item.told[:, None]
            names = found.names
            rows.append(ColumnRows(found.values[kept], item.gold[kept]))
            told.append(item.told)
    counts = {"num_questions": int(sum(found.sum() for found in told))}
    counts["num_left_out"] = sum(map(len, told)) - counts["num_questions"]
    fit_columns(rows, names, counts | {"databases": databases_named(item.key for item in evidences)}).save(
        home / "columns_attention.json"
    )
    questions = Questions("+".join(FIT_SETS), tuple(evidences), 0, load_twins(), load_fingerprints())
    settings = FitSettings(context=("log_num_tables", "evidence_mean", "evidence_max"))
    settings = settings._replace(terms=Terms(correlated=True))
    posteriors = fit_posteriors(questions, FITTED, (), settings, effects=False, progress=True, max_tables=30)
    save_posteriors(home / "attention.nc", posteriors)


def run_ablations(options: argparse.Namespace) -> None:
    """How the packed adapter ranks when it is read otherwise, and how adapters do that a short run made with each rho.

    On every n-th question of Spider dev that reads a column; what is done is kept, and a second call goes on.
    """
    path = (options.to or Path("data/attention")) / "ablations.json"
    report = json.loads(path.read_text()) if path.is_file() else {}
    pool = [example for item in databases("spider", "dev") for example in item.examples if example.columns]
    sample = pool[:: options.every_nth]
    report["questions"] = len(sample)
    head = AttentionHead.load(ATTENTION_HOME / "head.json")
    read = {f"pooling_{kind.value}": (replace(head, pooling=kind), None) for kind in Pooling}
    read |= {f"instruction_{kind.value}": (replace(head, instruction=kind), None) for kind in Instruction}
    read |= {f"shuffle_{number}": (head, number) for number in range(8)}
    for name, (own, number) in tqdm([item for item in read.items() if item[0] not in report], desc="read"):
        shuffle = None if number is None else np.random.default_rng(number)
        report[name] = ranking_precision(head_model(head), own, sample, shuffle)
        write_json(path, report)
    if "heads" not in report:
        prompts, gold = gold_candidates(sample, head.level)
        found = find_head(head_model(head), prompts, gold, head.pooling, range(head.layer + 1), progress=True)
        report["heads"] = found.tolist()
        write_json(path, report)
    for floor in (0.0, 0.25, 1.0):
        if f"floor_{floor:g}" not in report:
            run = argparse.Namespace(**vars(options) | {"floor": floor, "out": options.out / f"floor_{floor:g}"})
            run_training(run)
            own = AttentionHead.load(run.out / "head.json")
            report[f"floor_{floor:g}"] = ranking_precision(head_model(own), own, sample) | {"steps": options.steps}
            write_json(path, report)


if __name__ == "__main__":
    main()
