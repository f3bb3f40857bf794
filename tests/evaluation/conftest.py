"""Tiny synthetic evidence and posteriors made by hand."""

from collections.abc import Callable

import numpy as np
import pytest

from bayeslink.evaluation.questions import Questions
from bayeslink.evidence.channel import Evidence, Standardisation, covariates
from bayeslink.inference.posterior import Posterior
from bayeslink.model.autologistic import Support
from bayeslink.model.hierarchy import Design, Terms, Variant

CHANNELS = ("one", "two")


def tiny_evidence(
    db_id: str, num_questions: int = 12, num_tables: int = 3, seed: int = 0, dataset: str = "toy"
) -> Evidence:
    """A chain of tables whose gold follows the first channel; shapes are few, so that little is compiled."""
    rng = np.random.default_rng([seed, num_tables])
    edges = np.array([(t, t + 1) for t in range(num_tables - 1)], dtype=np.int64).reshape(-1, 2)
    values = rng.normal(size=(num_questions, num_tables, 2)) + seed
    gold = values[..., 0] - seed + rng.normal(size=(num_questions, num_tables)) > 0.3
    gold[:, 0] |= ~gold.any(axis=1)
    return Evidence(
        dataset,
        db_id,
        CHANNELS,
        values,
        edges,
        np.zeros(len(edges), dtype=np.int64),
        covariates(edges, num_tables),
        gold,
        rng.integers(0, 5, num_questions),
    )


def made_posterior(variant: Variant = Variant.HIERARCHICAL, seed: int = 0, **fields) -> Posterior:
    """A posterior with 20 draws around sensible values; nothing is fitted."""
    rng = np.random.default_rng(seed)
    centre = {"alpha": -0.5, "gamma": 0.8, "beta": 0.4, "sigma_alpha": 0.3, "sigma_beta": 0.2}
    draws = {
        site: np.abs(rng.normal(centre[site], 0.05, (20, 2) if site == "gamma" else 20)) * np.sign(centre[site])
        for site in Design(variant, Terms(), 2).sites
    }
    fields.setdefault("coupling", 0.6 if variant is Variant.FIXED else None)
    return Posterior(
        variant,
        "made",
        Support.ALL,
        Standardisation(CHANNELS, np.zeros(2), np.ones(2)),
        draws,
        fields.pop("databases", ()),
        **fields,
    )


def as_questions(evidences: list[Evidence], twins: dict | None = None, prints: dict | None = None) -> Questions:
    """A set of questions; fingerprints are distinct unless given."""
    found = {item.key: np.arange(100 * i, 100 * i + 20, dtype=np.uint64) for i, item in enumerate(evidences)}
    return Questions("toy", tuple(evidences), 3, twins or {}, found | (prints or {}))


@pytest.fixture
def evidence() -> Callable[..., Evidence]:
    return tiny_evidence


@pytest.fixture
def posterior() -> Callable[..., Posterior]:
    return made_posterior


@pytest.fixture
def questions_of() -> Callable[..., Questions]:
    return as_questions
