"""Evidence of a whole corpus: one `Evidence` per database, over the questions whose gold SQL resolves."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from tqdm import tqdm

from bayeslink.evidence.channel import Channel, Evidence, compute_evidence
from bayeslink.schema.corpus import Corpus, Question
from bayeslink.schema.gold import Resolution, group_key, resolve

__all__ = ["corpus_evidence", "question_text"]


def corpus_evidence(
    corpus: Corpus,
    channels: Sequence[Channel],
    *,
    dataset: str | None = None,
    with_evidence: bool = False,
    cache: Path | None = None,
    progress: bool = False,
) -> tuple[list[Evidence], Resolution]:
    """Evidence with gold and groups of each database that has a resolved question, and the resolution.

    Databases come in the order of their ids, their questions in the corpus's. Questions without
    resolved gold are left out of the arrays; the resolution counts them. Groups are numbered inside
    each database by first appearance.

    Args:
        corpus: The questions and schemas.
        channels: The sources of evidence.
        dataset: First part of the databases' keys; the corpus's name by default.
        with_evidence: Score the question followed by its evidence sentence, not the question alone.
        cache: Folder in which scores are kept; None keeps nothing.
        progress: Show a progress bar over databases.
    """
    resolution = resolve(corpus)
    by_database: dict[str, list[Question]] = {}
    for question in corpus.questions:
        if question.id in resolution.gold:
            by_database.setdefault(question.db_id, []).append(question)
    evidences = []
    for db_id in tqdm(sorted(by_database), desc=corpus.name, unit="database", disable=not progress):
        graph, questions = corpus.schemas[db_id], by_database[db_id]
        gold = np.zeros((len(questions), graph.num_tables), dtype=bool)
        numbers: dict[str, int] = {}
        group = np.zeros(len(questions), dtype=np.int64)
        for row, question in enumerate(questions):
            gold[row, sorted(resolution.gold[question.id])] = True
            group[row] = numbers.setdefault(group_key(question.query or "", graph.dialect), len(numbers))
        texts = [question_text(question, with_evidence) for question in questions]
        evidences.append(
            compute_evidence(
                graph, texts, channels, dataset=dataset or corpus.name, gold=gold, group=group, cache=cache
            )
        )
    return evidences, resolution


def question_text(question: Question, with_evidence: bool) -> str:
    """The text that channels read: the question, followed by its evidence sentence if asked and there."""
    if with_evidence and question.evidence:
        return f"{question.text} {question.evidence}"
    return question.text
