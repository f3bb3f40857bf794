"""The command `calibrate`: levels that hold on new databases."""

from pathlib import Path
from typing import Annotated

import typer

from bayeslink.cli.common import at_terminal, check_writable, member, print_json
from bayeslink.cli.inputs import read_questions
from bayeslink.cli.options import Json, WithEvidence

__all__ = ["calibrate"]


def calibrate(
    out: Annotated[Path, typer.Option(help="Calibration file to write (JSON).")],
    data: Annotated[str | None, typer.Option(help="spider, bird or bird-train (stored evidence).")] = None,
    split: Annotated[str | None, typer.Option(help="Split of the data set.")] = None,
    corpus: Annotated[Path | None, typer.Option(help="Folder in the line format, in place of --data.")] = None,
    posterior: Annotated[Path | None, typer.Option(help="Posterior file; the shipped one by default.")] = None,
    channels: Annotated[str | None, typer.Option(help="Kind of the shipped posterior: embedding, lexical, ...")] = None,
    model: Annotated[
        str | None, typer.Option(help="For channels with attention: folder of the language model's head.")
    ] = None,
    variant: Annotated[str, typer.Option(help="Variant of the posterior.")] = "hierarchical",
    target: Annotated[
        list[float] | None, typer.Option(help="Share of questions to cover; may be repeated; 0.8, 0.9, 0.95 and 0.98.")
    ] = None,
    with_evidence: WithEvidence = False,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the draws.")] = 0,
    as_json: Json = False,
) -> None:
    """Levels at which covers hold for questions of new databases, from labelled databases the posterior never saw."""
    from bayeslink.decision.conformal import least_databases
    from bayeslink.evaluation.promises import promises
    from bayeslink.inference import keep_compiled
    from bayeslink.inference.posterior import load_posteriors, shipped_path
    from bayeslink.linker import available_kind
    from bayeslink.model.hierarchy import Variant

    keep_compiled()
    check_writable(out)
    if posterior is not None and channels is not None:
        raise ValueError(f"channels={channels!r}: the posterior {posterior} has its own; leave --channels out")
    targets = target or [0.8, 0.9, 0.95, 0.98]
    for share in targets:
        least_databases(share)
    path = posterior or shipped_path(channels or ("embedding" if corpus is None else available_kind()))
    held = load_posteriors(path)
    wanted = member(Variant, "variant", variant)
    if wanted not in held or wanted is Variant.UNPOOLED:
        there = ", ".join(item.value for item in held if item is not Variant.UNPOOLED)
        raise ValueError(f"variant={variant!r}: posterior {path} holds {there}")
    names = ",".join(held[wanted].channels)
    questions = read_questions([data] if data else None, split, corpus, names, with_evidence, model)
    found = promises(questions, held[wanted], path, targets, seed, at_terminal())
    found.save(out)
    if as_json:
        print_json(found.to_dict())
        return
    first = found.levels[0]
    print(f"posterior  {found.posterior}, variant {found.variant}; channels {', '.join(found.channels)}")
    print(f"data       {found.data}: {first.num_questions} questions of {first.num_databases} databases; "
          f"{found.num_left_out} databases left out: they, or a twin, were trained on")  # fmt: skip
    print(f"\n{'target':>7}{'level':>12}   promised for new databases")
    for level in found.levels:
        enough = least_databases(level.target)
        holds = "yes" if level.holds else f"no: that takes {enough} databases"
        print(f"{level.target:7g}{level.level:12.6f}   {holds}")
    print(f"\nwritten    {out}")
