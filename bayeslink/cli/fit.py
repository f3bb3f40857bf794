"""The command `fit`: a posterior from labelled questions."""

import os
from pathlib import Path
from typing import Annotated

import typer

from bayeslink.cli.common import at_terminal, check_writable, say, unwritable
from bayeslink.cli.inputs import fit_settings, read_questions, variants_named
from bayeslink.cli.options import Context, Forms, Term, WithEvidence

__all__ = ["fit"]


def fit(
    out: Annotated[Path, typer.Option(help="Posterior file to write (NetCDF).")],
    data: Annotated[
        list[str] | None, typer.Option(help="spider, bird or bird-train; may be repeated (stored evidence).")
    ] = None,
    split: Annotated[str | None, typer.Option(help="Split of spider: train or dev.")] = None,
    corpus: Annotated[Path | None, typer.Option(help="Folder in the line format, in place of --data.")] = None,
    channels: Annotated[
        str, typer.Option(help="lexical, embedding, rich, rich_embedding, boosted, ..., or channel names by comma.")
    ] = "embedding",
    model: Annotated[
        str | None, typer.Option(help="For channels with attention: folder of the language model's head.")
    ] = None,
    variant: Annotated[
        list[str] | None, typer.Option(help="Variant to fit; may be repeated; all of the table by default.")
    ] = None,
    without_twins_of: Annotated[
        list[str] | None, typer.Option(help="Stored set whose twins are left out; may be repeated.")
    ] = None,
    with_evidence: WithEvidence = False,
    support: Annotated[str, typer.Option(help="all or non-empty.")] = "all",
    coupling: Annotated[float, typer.Option(help="Coupling of the variant `fixed`.")] = 0.6,
    draws: Annotated[int, typer.Option(help="Posterior draws.")] = 200,
    seed: Annotated[int, typer.Option(help="Seed of the draws.")] = 0,
    effects: Annotated[
        bool, typer.Option("--effects/--no-effects", help="Draw the training databases' own parameters too.")
    ] = True,
    max_tables: Annotated[int | None, typer.Option(help="Leave out databases with more tables.")] = None,
    method: Annotated[str, typer.Option(help="laplace, nested, nuts or laplace_joint.")] = "laplace",
    context: Context = None,
    term: Term = None,
    forms: Forms = None,
) -> None:
    """Fit the posterior on stored benchmark evidence or on a corpus folder."""
    from bayeslink.evaluation.report import fit_posteriors
    from bayeslink.evaluation.schemes import TABLE_VARIANTS
    from bayeslink.inference import keep_compiled
    from bayeslink.inference.posterior import save_posteriors

    if method == "nuts":
        # Before JAX looks for devices: chains run side by side as far as there are cores.
        import numpyro

        numpyro.set_host_device_count(os.cpu_count() or 1)
    keep_compiled()
    check_writable(out)
    questions = read_questions(
        data, split or ("train" if data == ["spider"] else None), corpus, channels, with_evidence, model
    )
    posteriors = fit_posteriors(
        questions,
        variants_named(variant) or TABLE_VARIANTS,
        without_twins_of or (),
        settings=fit_settings(support, coupling, draws, seed, context, term, forms),
        effects=effects,
        max_tables=max_tables,
        progress=at_terminal(),
        method=method,
    )
    try:
        save_posteriors(out, posteriors)
    except OSError as error:
        raise unwritable(out, error) from error
    first = posteriors[0]
    print(
        f"fitted     {questions.name}: {first.info['num_questions']:.0f} questions of {len(first.databases)} databases"
    )
    large = (
        "" if max_tables is None else f"{first.info['num_too_large']} databases with more than {max_tables} tables, "
    )
    print(
        f"left out   {first.info['num_twins_left_out']} twins of held-out databases, {large}"
        f"{questions.num_unresolved} unresolved questions, {questions.num_without_query} questions without gold SQL"
    )
    shown = f"; forms {', '.join(first.forms)}" if first.forms else ""
    print(f"channels   {', '.join(first.channels)}{shown}; support {first.support.value}")
    for item in posteriors:
        means = {
            site: item.draws[site] for site in ("alpha", "beta", "sigma_alpha", "sigma_beta") if site in item.draws
        }
        summary = ", ".join(f"{site} {value.mean():.3f} (sd {value.std():.3f})" for site, value in means.items())
        print(f"{item.variant.value:<25} {summary}; {item.info['seconds']:.1f} s")
        if failed := [check for check, held in item.checks.items() if not held]:
            say(
                f"warning: variant={item.variant.value}: the fit failed its checks {', '.join(failed)}; "
                "do not rely on it"
            )
    print(f"written    {out}")
