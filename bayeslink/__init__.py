"""A calibrated joint posterior over the part of a database schema that a question needs.

The public names below are loaded when first used, so that importing the package is quick.
"""

import importlib
from importlib.metadata import version

__version__ = version("bayeslink")

_HOMES = {
    "Evidence": "bayeslink.evidence.channel",
    "Link": "bayeslink.linker",
    "Posterior": "bayeslink.inference.posterior",
    "Priors": "bayeslink.model.priors",
    "SchemaGraph": "bayeslink.schema.graph",
    "SchemaLinker": "bayeslink.linker",
    "Selection": "bayeslink.decision.selection",
    "SubgraphDistribution": "bayeslink.inference.predictive",
    "SubgraphModel": "bayeslink.estimator",
    "Support": "bayeslink.model.autologistic",
    "Variant": "bayeslink.model.hierarchy",
    "compute_evidence": "bayeslink.evidence.channel",
    "fit": "bayeslink.inference.fit",
    "gold_tables": "bayeslink.schema.gold",
    "load_evidence": "bayeslink.evidence.store",
    "load_posteriors": "bayeslink.inference.posterior",
    "predict": "bayeslink.inference.predictive",
    "read_bird": "bayeslink.schema.spider",
    "read_corpus": "bayeslink.schema.corpus",
    "read_database": "bayeslink.schema.database",
    "read_spider": "bayeslink.schema.spider",
    "save_posteriors": "bayeslink.inference.posterior",
    "smallest_cover": "bayeslink.decision.sets",
}

__all__ = ["__version__", *_HOMES]


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module 'bayeslink' has no attribute {name!r}")
    return getattr(importlib.import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)
