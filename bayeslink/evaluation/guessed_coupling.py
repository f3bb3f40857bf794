"""A fit in which guessed keys have a coupling of their own: every other training database has its keys guessed.

The offset of guessed edges from declared ones is learned where both can be had: on databases whose declared keys are
hidden from half of them. `scripts/fit_inferred_coupling.py` stores it for the linker, `experiments/warehouses` reports
it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from bayeslink.evaluation.questions import stored_questions
from bayeslink.evaluation.report import fit_posteriors
from bayeslink.evaluation.schemes import FitSettings
from bayeslink.evidence.channel import Evidence
from bayeslink.evidence.structure import EDGE_TYPES, covariates
from bayeslink.inference.posterior import Posterior
from bayeslink.model.hierarchy import Terms, Variant

__all__ = ["fit_with_guessed_keys"]


def fit_with_guessed_keys(
    sets: Sequence[str],
    channels: Sequence[str],
    guessed: Mapping[str, Mapping[str, Sequence[Sequence[int]]]],
    settings: FitSettings,
    max_tables: int,
    databases: int | None = None,
    progress: bool = False,
) -> tuple[Posterior, list[Evidence]]:
    """The hierarchical posterior with kinds of edges, and the evidence with the edges that it was fitted on.

    Args:
        sets: Names of stored sets; twins of Spider dev and BIRD dev are left out of the fit.
        channels: Names of stored channels.
        guessed: Guessed edges by data set and database, as `scripts/measure_joins.py` stores them.
        settings: Settings of the fit; its terms get kinds of edges and correlated effects.
        max_tables: Leave out databases with more tables.
        databases: The first so many databases; all of them by default.
        progress: Show a progress bar.
    """
    training = stored_questions(sets, channels)
    shown = []
    for place, item in enumerate(training.evidences[:databases]):
        edges = np.array(guessed[item.dataset][item.db_id], dtype=np.int64).reshape(-1, 2)
        kinds = np.full(len(edges), EDGE_TYPES.index("inferred"), dtype=np.int64)
        other = replace(item, edges=edges, edge_types=kinds, covariates=covariates(edges, item.num_tables))
        shown.append(other if place % 2 else item)
    found = fit_posteriors(
        replace(training, evidences=tuple(shown)),
        [Variant.HIERARCHICAL],
        ("spider-dev", "bird-dev"),
        settings._replace(terms=Terms(correlated=True, edge_types=True)),
        effects=False,
        max_tables=max_tables,
        progress=progress,
    )
    return found[0], shown
