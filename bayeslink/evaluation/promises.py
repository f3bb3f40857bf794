"""Conformal levels of a posterior's covers, from labelled databases that it has not seen, kept in a file.

The file is JSON: version, the posterior's name and SHA-256, its channels and variant, and for each target its level,
whether the promise of `decision.conformal` holds, and the numbers of databases and questions behind it.
"""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
from tqdm import tqdm

from bayeslink.decision.conformal import ConformalLevel, conformal_level
from bayeslink.decision.covers import required_level
from bayeslink.evaluation.held_out import fresh_draws
from bayeslink.evaluation.questions import Questions
from bayeslink.evaluation.report import known_databases
from bayeslink.evidence.cache import replace_file
from bayeslink.inference.posterior import Posterior
from bayeslink.inference.predictive import predict
from bayeslink.provenance import sha256

__all__ = ["VERSION", "Promises", "promises"]

VERSION = 1
"""Version of the file's layout."""


@dataclass(frozen=True)
class Promises:
    """Calibrated levels of one posterior.

    Attributes:
        posterior: Name of the posterior's file.
        posterior_hash: SHA-256 of that file: levels belong to one posterior.
        variant: Its variant.
        channels: Its channels.
        data: Name of the calibration questions.
        seed: Seed of the fresh effects.
        with_evidence: Whether its text is the question with its evidence sentence.
        databases: "data set/db_id" of the databases that calibrate.
        num_left_out: Databases left out because the posterior or a learned channel was trained on them or on a twin.
        num_unresolved: Questions left out because their gold SQL does not resolve.
        num_without_query: Questions left out because they have none.
        levels: One for each target, the smallest first.
    """

    posterior: str
    posterior_hash: str
    variant: str
    channels: tuple[str, ...]
    data: str
    seed: int
    with_evidence: bool
    databases: tuple[str, ...]
    num_left_out: int
    num_unresolved: int
    num_without_query: int
    levels: tuple[ConformalLevel, ...]

    def at(self, target: float) -> ConformalLevel:
        """The level for a target.

        Raises:
            ValueError: If there is none for it.
        """
        for level in self.levels:
            if abs(level.target - target) < 1e-9:
                return level
        there = ", ".join(f"{level.target:g}" for level in self.levels)
        raise ValueError(
            f"cover={target:g}: the calibration has levels for {there}; calibrate with --target {target:g} too"
        )

    def to_dict(self) -> dict:
        """The document of the file."""
        found = asdict(self) | {"levels": [level._asdict() for level in self.levels]}
        return {"version": VERSION, **found, "channels": list(self.channels), "databases": list(self.databases)}

    def save(self, path: Path) -> None:
        """Write the file, whole or not at all."""
        text = json.dumps(self.to_dict(), indent=2) + "\n"
        replace_file(path, lambda file: file.write(text.encode()))

    @classmethod
    def load(cls, path: Path) -> "Promises":
        """Levels that `save` wrote.

        Raises:
            ValueError: If the file is missing, or holds something else or another version.
        """
        if not path.is_file():
            state = "is a folder" if path.is_dir() else "does not exist"
            raise ValueError(f"calibration={str(path)!r} {state}; give a file made with `bayeslink calibrate --out`")
        try:
            stored = json.loads(path.read_text(encoding="utf-8"))
            version = stored.pop("version")
            levels = tuple(ConformalLevel(**level) for level in stored.pop("levels"))
            channels, databases = (tuple(stored.pop(name)) for name in ("channels", "databases"))
            found = cls(levels=levels, channels=channels, databases=databases, **stored)
            usable = all(0 <= level.level <= 1 and 0 < level.target < 1 for level in levels) and levels
        except (ValueError, KeyError, TypeError, AttributeError, UnicodeDecodeError) as error:
            raise ValueError(
                f"calibration={str(path)!r} is not a calibration file; make one with `bayeslink calibrate --out`"
            ) from error
        if version != VERSION or not usable:
            raise ValueError(
                f"calibration={str(path)!r} has layout version {version} or no usable level, this package reads "
                f"version {VERSION}; make it anew with `bayeslink calibrate --out`"
            )
        return found


def promises(
    questions: Questions,
    posterior: Posterior,
    path: Path,
    targets: Sequence[float],
    seed: int = 0,
    progress: bool = False,
) -> Promises:
    """Levels at which the posterior's covers hold gold for each target share of the questions of new databases.

    Every database meets the posterior as a new one does, with fresh effects. Databases that the posterior or a learned
    channel was trained on, and twins of them, are left out and counted. With a calibration `SchemaLinker.link` returns
    sets of the same kind, from as many draws with fresh effects.

    Args:
        questions: Labelled questions.
        posterior: The posterior; any variant but `unpooled`.
        path: Its file.
        targets: Shares of questions, in (0, 1).
        seed: Seed of the fresh effects.
        progress: Show a progress bar on stderr.

    Raises:
        ValueError: If no database is left, or a target is outside (0, 1).
    """
    known = {*known_databases(questions, {posterior.variant: posterior}), *questions.seen}
    kept = questions.without(known)
    if not kept.evidences:
        raise ValueError(
            f"data={questions.name!r}: no database is left to calibrate on, the posterior or a channel was trained on "
            "all of them or on their twins; give others"
        )
    required, databases = [], []
    for item in tqdm(kept.evidences, desc="calibrate", unit="database", disable=not progress):
        ready = posterior.standardisation.apply(item)
        distribution, _ = predict(ready, fresh_draws(posterior, ready, seed), posterior.support)
        required.append(required_level(distribution, np.asarray(item.gold)))
        databases += [item.key] * item.num_questions
    levels = [conformal_level(np.concatenate(required), databases, target) for target in sorted(set(targets))]
    return Promises(
        path.name,
        sha256(path),
        posterior.variant.value,
        posterior.channels,
        questions.name,
        seed,
        questions.with_evidence,
        tuple("/".join(item.key) for item in kept.evidences),
        len(known),
        questions.num_unresolved,
        questions.num_without_query,
        tuple(levels),
    )
