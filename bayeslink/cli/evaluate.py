"""The command `evaluate`: every variant's scores on labelled questions."""

from pathlib import Path
from typing import Annotated

import typer

from bayeslink.cli.common import at_terminal, print_json
from bayeslink.cli.inputs import fit_settings, read_questions, variants_named
from bayeslink.cli.options import Context, Forms, Json, Term, WithEvidence

__all__ = ["evaluate"]


def evaluate(
    data: Annotated[str | None, typer.Option(help="spider, bird or bird-train (stored evidence).")] = None,
    split: Annotated[str | None, typer.Option(help="Split of the data set.")] = None,
    corpus: Annotated[Path | None, typer.Option(help="Folder in the line format, in place of --data.")] = None,
    scheme: Annotated[
        str, typer.Option(help="in-sample, leave-one-database-out or transfer.")
    ] = "leave-one-database-out",
    posterior: Annotated[
        Path | None, typer.Option(help="For transfer: posterior file; the shipped one by default.")
    ] = None,
    channels: Annotated[
        str | None,
        typer.Option(help="lexical, embedding, rich, boosted, ..., or channel names by comma; embedding by default."),
    ] = None,
    model: Annotated[
        str | None, typer.Option(help="For channels with attention: folder of the language model's head.")
    ] = None,
    variant: Annotated[list[str] | None, typer.Option(help="Row of the table; may be repeated.")] = None,
    with_evidence: WithEvidence = False,
    keep_twins: Annotated[bool, typer.Option("--keep-twins", help="Leave twins in, for comparison.")] = False,
    support: Annotated[
        str | None, typer.Option(help="all or non-empty; all by default. Not for transfer, as the next two.")
    ] = None,
    coupling: Annotated[float | None, typer.Option(help="Coupling of the variant `fixed`; 0.6 by default.")] = None,
    draws: Annotated[int | None, typer.Option(help="Posterior draws; 200 by default.")] = None,
    seed: Annotated[int, typer.Option(help="Seed of the draws.")] = 0,
    context: Context = None,
    term: Term = None,
    forms: Forms = None,
    as_json: Json = False,
) -> None:
    """Score every variant on benchmark questions or on a corpus folder."""
    from bayeslink.evaluation.report import SCHEMES
    from bayeslink.evaluation.report import evaluate as evaluation
    from bayeslink.inference import keep_compiled
    from bayeslink.inference.posterior import load_posteriors, shipped_path
    from bayeslink.linker import available_kind

    keep_compiled()
    if scheme not in SCHEMES:
        raise ValueError(f"scheme={scheme!r}: use one of {', '.join(SCHEMES)}")
    if posterior is not None and scheme != "transfer":
        raise ValueError(f"posterior={str(posterior)!r}: it goes with --scheme transfer; {scheme} fits its own")
    if posterior is not None and channels is not None:
        raise ValueError(f"channels={channels!r}: the posterior {posterior} has its own; leave --channels out")
    settings = fit_settings(support, coupling, draws, seed, context, term, forms)
    if scheme == "transfer":
        for option, value in (
            ("support", support),
            ("coupling", coupling),
            ("draws", draws),
            ("context", context),
            ("term", term),
            ("forms", forms),
        ):
            if value is not None:
                raise ValueError(f"{option}={value}: under transfer the posterior has its own; leave --{option} out")
    posteriors, name = None, "fitted here"
    wanted = channels or "embedding"
    if scheme == "transfer":
        kind = channels or ("embedding" if corpus is None else available_kind())
        posteriors = load_posteriors(posterior or shipped_path(kind))
        name = str(posterior) if posterior else f"shipped {kind} posterior"
        wanted = ",".join(next(iter(posteriors.values())).channels)
    questions = read_questions([data] if data else None, split, corpus, wanted, with_evidence, model)
    document = evaluation(
        questions,
        scheme,
        posteriors,
        variants_named(variant),
        settings,
        keep_twins,
        progress=at_terminal(),
    )
    document["posterior"] = name
    if as_json:
        print_json(document)
        return
    note = " (fitted on these very questions: descriptive only)" if scheme == "in-sample" else ""
    print(f"data       {document['data']}, {scheme}{note}")
    print(
        f"n          {document['n_questions']} questions of {document['n_databases']} databases; left out: "
        f"{document['n_unresolved']} unresolved questions, {document['n_without_query']} without gold SQL"
    )
    if scheme == "transfer":
        print(
            f"twins      {document['n_twins_left_out']} databases not scored: they, or a twin, were trained on; "
            f"{document['n_twins_left_out_of_fit']} had been left out of the posterior's fit"
        )
    elif scheme == "leave-one-database-out":
        print(f"twins      {document['n_twins_left_out']} databases left out of the training of their twins")
    print(f"posterior  {name}; channels {', '.join(document['channels'])}; support {document['support']}\n")
    columns = ("map", "precision", "recall", "f1", "strict_recall", "exact_match", "mean_size", "ece", "brier",
               "mean_shift", "marginal_log_score", "joint_log_score")  # fmt: skip
    titles = (
        "mAP",
        "prec",
        "recall",
        "F1",
        "strict",
        "exact",
        "size",
        "ECE",
        "Brier",
        "shift",
        "marg.ls",
        "joint ls",
    )
    print(f"{'variant':<25}" + "".join(f"{title:>9}" for title in titles) + "   95% cover (size)")
    for row, scores in document["variants"].items():
        cells = "".join(f"{scores[column]:9.3f}" for column in columns)
        held = scores["cover"]["0.95"]
        print(f"{row:<25}{cells}   {held['coverage']:.3f} ({held['mean_size']:.2f})")
    gains = document["variants"].get("hierarchical", {}).get("joint_log_score_difference", {})
    for other, gain in gains.items():
        print(
            f"hierarchical over {other}: joint log score {gain['estimate']:+.4f} "
            f"[{gain['lower']:+.4f}, {gain['upper']:+.4f}] nats per question"
        )
    if gains:
        print("95 % intervals: databases, then gold queries, resampled")
