"""The command `report`: a page about one question, to look at and to hand on."""

from pathlib import Path
from typing import Annotated

import typer

from bayeslink.cli.answers import answered, check_answers
from bayeslink.cli.common import check_writable, policy_of, say, unwritable
from bayeslink.cli.options import InferKeys, PolicyFile, Principal

__all__ = ["report"]


def report(
    url: Annotated[str, typer.Argument(help="SQLAlchemy URL, or the path of an SQLite file; opened read-only.")],
    question: Annotated[str, typer.Argument(help="The question, in natural language.")],
    html: Annotated[Path, typer.Option(help="Page to write; it needs no other file and no network.")],
    evidence: Annotated[str | None, typer.Option(help="A hint read together with the question.")] = None,
    posterior: Annotated[Path | None, typer.Option(help="Posterior file; the shipped one by default.")] = None,
    channels: Annotated[str | None, typer.Option(help="Evidence; by default what is installed.")] = None,
    variant: Annotated[str | None, typer.Option(help="Variant of the posterior; hierarchical by default.")] = None,
    cover: Annotated[float, typer.Option(help="Level of the smallest cover.")] = 0.95,
    max_risk: Annotated[
        float | None, typer.Option(help="Ask when the most probable set is wrong with a larger probability.")
    ] = None,
    calibration: Annotated[
        Path | None, typer.Option(help="File of `bayeslink calibrate`: --cover is then a promise for new databases.")
    ] = None,
    needs: Annotated[list[str] | None, typer.Option(help="A table that is surely needed; may be repeated.")] = None,
    needs_not: Annotated[
        list[str] | None, typer.Option(help="A table that is surely not needed; may be repeated.")
    ] = None,
    model: Annotated[
        str | None,
        typer.Option(help="For channels with attention: folder of the language model's head; see evidence/attention."),
    ] = None,
    columns: Annotated[bool, typer.Option("--columns", help="Also the probability of each column.")] = False,
    max_tokens: Annotated[int | None, typer.Option(help="Tokens of the DDL at most.")] = None,
    schema: Annotated[
        list[str] | None, typer.Option(help="Database schema to read; may be repeated; '*' for all.")
    ] = None,
    policy: PolicyFile = None,
    principal: Principal = None,
    infer_keys: InferKeys = False,
    fold: Annotated[
        bool, typer.Option("--fold/--no-fold", help="One table for each family of dated or numbered ones.")
    ] = True,
) -> None:
    """A self-contained HTML page: picture, probabilities, why, the cover's DDL, and whether to ask."""
    from bayeslink.evidence.cache import replace_file
    from bayeslink.grounding.access import NOTICE
    from bayeslink.inference import keep_compiled
    from bayeslink.linker import SchemaLinker
    from bayeslink.report import report_page

    keep_compiled()
    check_writable(html, "html")
    allowed = policy_of(policy, principal, url, schema)
    linker = SchemaLinker.from_database(
        url,
        posterior=posterior,
        channels=channels,
        variant=variant,
        schemas=schema,
        model=model,
        policy=allowed,
        fold=fold,
        infer_keys=infer_keys,
    )
    check_answers(calibration, needs, needs_not)
    link = linker.link(question, evidence, cover, max_risk, calibration, columns or max_tokens is not None)
    partial = allowed is not None and not allowed.every_table
    text = report_page(answered(link, needs, needs_not), max_tokens, [NOTICE] if partial else [])
    try:
        replace_file(html, lambda file: file.write(text.encode()))
    except OSError as error:
        raise unwritable(html, error, "html") from error
    say(f"written    {html}")
