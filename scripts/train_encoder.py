"""Fine-tune MiniLM as a bi-encoder of questions and tables on Spider train and BIRD train, and rank the dev sets.

    python scripts/train_encoder.py --out FOLDER                 # checkpoints, log.jsonl and scores of the dev sets
    python scripts/train_encoder.py --out FOLDER/0 --fold 0      # without the databases of fold 0, then scored too
    python scripts/train_encoder.py --out FOLDER --steps 4 --questions 4    # a trial in a minute
    python scripts/train_encoder.py --out FOLDER --store         # of the three runs: the package's file, stored scores

The score is that of `bayeslink.evidence.encoder_model`. The loss is the cross-entropy of softmax(s score) over the
tables of the schema against the uniform distribution on the gold ones. A step is one database and a batch of its
questions, so each text of a schema is encoded once a step; half of the steps read the evidence sentence, half the
descriptions. The databases of Spider dev and BIRD dev and their twins are in no step. A run that was stopped goes on
from the last checkpoint in FOLDER. The stored scores of a training database come from the fold that left it out, so
that trees may learn from them; those of all others from the package's own encoder.
"""

import argparse
import json
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from torch.nn.functional import log_softmax
from tqdm import tqdm

from bayeslink.evaluation.ranking import all_gold_at_k, average_precision
from bayeslink.evidence.benchmark import question_text
from bayeslink.evidence.cache import replace_file
from bayeslink.evidence.encoder import ENCODER_FILE, table_texts
from bayeslink.evidence.encoder_model import BiEncoder, ternary_difference, with_difference
from bayeslink.evidence.store import (
    evidence_home,
    load_evidence,
    load_twins,
    save_arrays,
    save_evidence,
)
from bayeslink.provenance import sha256
from bayeslink.schema.corpus import Question, data_home, read_corpus
from bayeslink.schema.gold import resolve
from bayeslink.schema.graph import SchemaGraph
from bayeslink.schema.split import folds_by_database
from bayeslink.schema.words import split_words

TRAIN = (("spider", "train"), ("bird-train", None))
TESTS = {"spider-dev": ("spider", "dev", False), "bird-dev": ("bird", None, False)}
TESTS |= {"bird-dev-evidence": ("bird", None, True)}
HELD = {"spider-train": ("spider", "train", False), "bird-train": ("bird-train", None, False)}
HELD |= {"bird-train-evidence": ("bird-train", None, True)}
ALSO = {"spider-syn-dev": ("spider-syn", "dev", False), "spider-realistic": ("spider-realistic", None, False)}
FOLDS = 2
NAMES = ("encoder_columns", "encoder_descriptions")
MOST_TABLES = 16
"""Tables of a training step: the gold ones of its questions, and others drawn at random."""
MOST_COLUMNS = 16
"""Columns of a table in a training step, drawn at random; ranking reads them all."""


class Asked(NamedTuple):
    """A database's schema with its resolved questions."""

    graph: SchemaGraph
    questions: list[Question]
    gold: list[frozenset[int]]


def main() -> None:
    """Train from the last checkpoint on, rank the dev sets, and log both."""
    parser = argparse.ArgumentParser(description="Fine-tune MiniLM on questions and tables.")
    parser.add_argument("--out", type=Path, required=True, help="folder of checkpoints, log and scores")
    parser.add_argument("--steps", type=int, default=800, help="training steps")
    parser.add_argument("--questions", type=int, default=32, help="questions of a step")
    parser.add_argument("--rate", type=float, default=5e-5, help="largest learning rate")
    parser.add_argument("--minutes", type=float, default=1e9, help="stop after so many minutes; a second run goes on")
    parser.add_argument("--every", type=int, default=25, help="steps between checkpoints")
    parser.add_argument("--fold", type=int, choices=range(FOLDS), help="fold of the training databases to leave out")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--store", action="store_true", help="write the package's file and the stored scores")
    options = parser.parse_args()
    if options.store:
        store(options.out, options.seed)
        return
    options.out.mkdir(parents=True, exist_ok=True)
    torch.manual_seed(options.seed)
    encoder = BiEncoder()
    plain = [parameter for parameter in encoder.parameters() if parameter.ndim == 0]
    weights = [parameter for parameter in encoder.parameters() if parameter.ndim > 0]
    optimizer = torch.optim.AdamW([{"params": weights, "lr": 1.0}, {"params": plain, "lr": 100.0}], weight_decay=0.01)
    warm = max(1, options.steps // 20)
    rates = torch.optim.lr_scheduler.LambdaLR(
        optimizer,
        lambda step: options.rate * min((step + 1) / warm, max(0.0, (options.steps - step) / (options.steps - warm))),
    )
    kept, begun, run = options.out / "checkpoint.pt", 0, run_of(options)
    if kept.is_file():
        state = torch.load(kept, weights_only=True)
        if state.get("run") != run:
            raise SystemExit(f"{kept} is of the run {state.get('run')}, asked for is {run}; name another folder")
        begun = state["step"]
        encoder.load_state_dict(state["encoder"])
        optimizer.load_state_dict(state["optimizer"])
        rates.load_state_dict(state["rates"])
    databases = training()
    held = set()
    if options.fold is not None:
        fold = folds_of(databases, options.seed)
        held = {key for key, _ in databases if fold[key] == options.fold}
    kept_databases = [item for key, item in databases if key not in held]
    steps = list(planned(kept_databases, options.steps, options.questions, np.random.default_rng(options.seed)))
    started, losses = time.perf_counter(), []
    for number, (asked, rows, with_evidence, described, seed) in enumerate(steps[begun:], start=begun + 1):
        loss = step_loss(encoder, asked, rows, with_evidence, described, np.random.default_rng(seed))
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(encoder.parameters(), 1.0)
        optimizer.step()
        rates.step()
        losses.append(loss.item())
        spent = time.perf_counter() - started
        stop = spent > 60 * options.minutes
        if number % options.every == 0 or number == options.steps or stop:
            state = {"step": number, "encoder": encoder.state_dict(), "optimizer": optimizer.state_dict()}
            torch.save(state | {"rates": rates.state_dict(), "run": run}, kept.with_suffix(".new"))
            kept.with_suffix(".new").replace(kept)
            log(options.out, {"step": number, "loss": float(np.mean(losses[-options.every :])), "seconds": spent})
        if stop:
            break
    for name, asked in (HELD | TESTS if held else TESTS).items():
        log(options.out, ranked(encoder, name, asked, held if name in HELD else set(), options.out))


def run_of(options: argparse.Namespace) -> dict[str, int | float | None]:
    """What makes a run what it is; a checkpoint of another is refused."""
    return {name: getattr(options, name) for name in ("fold", "seed", "steps", "questions", "rate")}


def folds_of(databases: Sequence[tuple[tuple[str, str], Asked]], seed: int) -> dict[tuple[str, str], int]:
    """Fold of each training database."""
    return folds_by_database([key for key, _ in databases], load_twins(), FOLDS, np.random.default_rng(seed))


def store(out: Path, seed: int) -> None:
    """The package's file from the run in `out`, and scores of every stored set, cross-fitted by `out/0` and `out/1`."""
    encoders, files = {}, {}
    for name, folder in ((None, out), *((number, out / str(number)) for number in range(FOLDS))):
        encoder = BiEncoder()
        state = torch.load(folder / "checkpoint.pt", weights_only=True)
        if (state.get("run") or {}).get("fold", "unknown") != name or state["run"]["seed"] != seed:
            raise SystemExit(f"{folder} holds the run {state.get('run')}, and not that of fold {name}, seed {seed}")
        encoder.load_state_dict(state["encoder"])
        difference = ternary_difference(encoder)
        if name is None:
            save_arrays(ENCODER_FILE, difference)
        encoders[name] = with_difference(difference)
    fold = folds_of(training(), seed)
    home = evidence_home() / "encoder"
    for name, (folder, split, with_evidence) in {**HELD, **TESTS, **ALSO}.items():
        plain = {item.db_id: item for item in load_evidence(name, ("name_any",))}
        scored = []
        for item in tqdm(list(asked_of(folder, split)), desc=name, disable=None):
            own = plain[item.graph.name]
            encoder = encoders[fold.get(own.key) if name in HELD else None]
            texts = [question_text(question, with_evidence) for question in item.questions]
            scored.append(replace(own, channels=NAMES, values=both(encoder, item.graph, texts)))
        save_evidence(home / f"{name}.npz", scored)
        files[f"{name}.npz"] = sha256(home / f"{name}.npz")
    manifest = {
        "licence": "CC BY-SA 4.0",
        "encoder": sha256(ENCODER_FILE),
        "folds": {"/".join(key): number for key, number in sorted(fold.items())},
        "runs": {
            str(path.relative_to(out)): json.loads("[" + ",".join(path.read_text().splitlines()) + "]")
            for path in sorted(out.glob("**/log.jsonl"))
        },
        "files": files,
    }
    text = json.dumps(manifest, indent=1) + "\n"
    replace_file(home / "manifest.json", lambda file: file.write(text.encode()))


@torch.inference_mode()
def both(encoder: BiEncoder, graph: SchemaGraph, texts: Sequence[str]) -> np.ndarray:
    """Scores [questions, tables, 2] without and with descriptions; 0 for a question without words."""
    asked = encoder.questions(texts)
    found = []
    for described in (False, True):
        tables = [table_texts(table, described) for table in graph.tables]
        found.append(encoder.scores(asked, tables, *encoder.texts(tables)).double().numpy())
    scores = np.stack(found, axis=-1)
    scores[[not split_words(text) for text in texts]] = 0.0
    return scores


def log(out: Path, line: dict) -> None:
    """One line more of the log."""
    with (out / "log.jsonl").open("a") as file:
        file.write(json.dumps(line) + "\n")
    print(line, flush=True)


def asked_of(folder: str, split: str | None) -> Iterator[Asked]:
    """Databases in the order of their ids, as the stored evidence has them."""
    corpus = read_corpus(data_home() / folder, split=split)
    gold = resolve(corpus).gold
    for db_id in sorted(corpus.schemas):
        questions = [question for question in corpus.questions if question.db_id == db_id and question.id in gold]
        if questions:
            yield Asked(corpus.schemas[db_id], questions, [gold[question.id] for question in questions])


def training() -> list[tuple[tuple[str, str], Asked]]:
    """Every training database but the twins of those of the dev sets."""
    barred = {item.key for name in ("spider-dev", "bird-dev") for item in load_evidence(name)}
    twins = load_twins()
    barred |= {twin for key in barred for twin in twins[key]}
    return [
        ((folder, item.graph.name), item)
        for folder, split in TRAIN
        for item in asked_of(folder, split)
        if (folder, item.graph.name) not in barred
    ]


def planned(
    databases: Sequence[Asked], num_steps: int, size: int, rng: np.random.Generator
) -> Iterator[tuple[Asked, list[int], bool, bool, int]]:
    """Database, questions, with evidence, with descriptions and seed of each step; every question once an epoch."""
    done = 0
    while done < num_steps:
        batches = []
        for item in databases:
            order = rng.permutation(len(item.questions)).tolist()
            batches += [(item, order[start : start + size]) for start in range(0, len(order), size)]
        for place in rng.permutation(len(batches)).tolist():
            if done == num_steps:
                return
            item, rows = batches[place]
            yield item, rows, bool(rng.random() < 0.5), bool(rng.random() < 0.5), int(rng.integers(2**31))
            done += 1


def step_loss(
    encoder: BiEncoder, asked: Asked, rows: list[int], with_evidence: bool, described: bool, rng: np.random.Generator
) -> torch.Tensor:
    """The loss above of one step."""
    needed = sorted({table for row in rows for table in asked.gold[row]})
    others = [table for table in range(asked.graph.num_tables) if table not in needed]
    drawn = rng.permutation(others)[: max(0, MOST_TABLES - len(needed))].tolist()
    tables = [*needed, *map(int, drawn)]
    texts = []
    for table in tables:
        name, columns = table_texts(asked.graph.tables[table], described)
        kept = rng.permutation(len(columns))[:MOST_COLUMNS]
        texts.append((name, [columns[place] for place in kept]))
    questions = [question_text(asked.questions[row], with_evidence) for row in rows]
    wanted = torch.tensor([[float(table in asked.gold[row]) for table in tables] for row in rows])
    wanted = wanted / wanted.sum(1, keepdim=True)
    scores = torch.exp(encoder.scale) * encoder(questions, texts)
    return -(wanted * log_softmax(scores, dim=1)).sum(1).mean()


@torch.no_grad()
def ranked(encoder: BiEncoder, name: str, asked: tuple, held: set[tuple[str, str]], out: Path) -> dict:
    """Mean average precision and all gold among three of one set, or the held databases in it; scores are written."""
    folder, split, with_evidence = asked
    encoder.eval()
    scores, stored = [], [item for item in load_evidence(name) if not held or item.key in held]
    for item in asked_of(folder, split):
        if held and (folder, item.graph.name) not in held:
            continue
        texts = [table_texts(table, described=True) for table in item.graph.tables]
        questions = [question_text(question, with_evidence) for question in item.questions]
        scores.append(encoder(questions, texts).double().numpy())
    np.savez_compressed(out / f"{name}.npz", **{item.db_id: s for item, s in zip(stored, scores, strict=True)})
    precision = np.concatenate([average_precision(s, item.gold) for item, s in zip(stored, scores, strict=True)])
    first = np.concatenate([all_gold_at_k(s, item.gold, 3) for item, s in zip(stored, scores, strict=True)])
    encoder.train()
    return {"set": name, "map": float(precision.mean()), "all_gold_at_3": float(first.mean()), "n": len(first)}


if __name__ == "__main__":
    main()
