"""Questions, variants and settings of a fit, from the options that name them."""

import math
from pathlib import Path
from typing import TYPE_CHECKING

from bayeslink.cli.common import at_terminal, member

if TYPE_CHECKING:
    from bayeslink.evaluation.questions import Questions
    from bayeslink.evaluation.schemes import FitSettings
    from bayeslink.model.hierarchy import Variant

__all__ = ["fit_settings", "read_questions", "variants_named"]


def read_questions(
    data: list[str] | None,
    split: str | None,
    corpus: Path | None,
    channels: str,
    with_evidence: bool,
    model: str | None = None,
) -> "Questions":
    """The labelled questions of `--data` or `--corpus`, with the evidence of `--channels`."""
    from bayeslink.evaluation.questions import corpus_questions, stored_questions, stored_set
    from bayeslink.linker import KINDS, channels_named, kind_channels
    from bayeslink.schema.corpus import read_corpus

    if (data is None) == (corpus is None):
        raise ValueError("data and corpus: give exactly one of --data and --corpus")
    names = kind_channels(channels, model) if channels in KINDS else tuple(channels.split(","))
    if model is not None:
        channels_named(names, model)
    if corpus is not None:
        sources = channels_named(names, model)
        texts = read_corpus(corpus, split=split)
        files = sorted(path for stem in ("questions", "schemas") for path in corpus.glob(f"{stem}.jsonl*"))
        return corpus_questions(texts, sources, with_evidence, at_terminal(), files)
    sets = [
        stored_set(name, split if name == "spider" or len(data or ()) == 1 else None, with_evidence)
        for name in data or ()
    ]
    return stored_questions(sets, names)


def variants_named(names: list[str] | None) -> "tuple[Variant, ...] | None":
    """The variants of `--variant`; None if none is named."""
    from bayeslink.model.hierarchy import Variant

    return tuple(member(Variant, "variant", name) for name in names) if names else None


def fit_settings(
    support: str | None,
    coupling: float | None,
    draws: int | None,
    seed: int,
    context: list[str] | None,
    term: list[str] | None,
    forms: list[str] | None,
) -> "FitSettings":
    """The settings of a fit; what is None keeps its default."""
    from bayeslink.evaluation.schemes import FitSettings
    from bayeslink.evidence.context import RECOMMENDED_CONTEXT, context_names
    from bayeslink.evidence.forms import FORMS, form_names
    from bayeslink.model.autologistic import Support
    from bayeslink.model.hierarchy import Terms

    asked = tuple(RECOMMENDED_CONTEXT if context == ["recommended"] else context or ())
    context_names(asked, ())
    wanted = FORMS if forms == ["all"] else tuple(forms or ())
    form_names(wanted, ())
    if unknown := [name for name in term or () if name not in Terms._fields]:
        raise ValueError(f"term={unknown}: use some of {', '.join(Terms._fields)}")
    settings = FitSettings(seed=seed, context=asked, terms=Terms(**dict.fromkeys(term or (), True)), forms=wanted)
    if support is not None:
        settings = settings._replace(support=member(Support, "support", support))
    if coupling is not None:
        if not math.isfinite(coupling):
            raise ValueError(f"coupling={coupling}: give a finite number of log-odds")
        settings = settings._replace(coupling=coupling)
    return settings if draws is None else settings._replace(num_draws=draws)
