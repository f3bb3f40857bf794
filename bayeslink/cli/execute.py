"""The command `execute`: execution accuracy on a corpus."""

from pathlib import Path
from typing import Annotated

import typer

from bayeslink.cli.common import print_json
from bayeslink.cli.options import Json, WithEvidence

__all__ = ["execute"]


def execute(
    corpus: Annotated[Path, typer.Option(help="Folder of questions with gold SQL in the line format.")],
    databases: Annotated[Path, typer.Option(help="Folder of SQLite files, DB_ID/DB_ID.sqlite or DB_ID.sqlite.")],
    endpoint: Annotated[str, typer.Option(help="Address of an OpenAI-compatible endpoint, such as http://host/v1.")],
    model: Annotated[str, typer.Option(help="Name of the language model there.")],
    split: Annotated[str | None, typer.Option(help="Only this split of the corpus.")] = None,
    shown: Annotated[str, typer.Option(help="Tables the model sees: cover or whole.")] = "cover",
    cover: Annotated[float, typer.Option(help="Level of the cover.")] = 0.95,
    channels: Annotated[str | None, typer.Option(help="Evidence; by default what is installed.")] = None,
    out: Annotated[Path | None, typer.Option(help="JSON lines to write, and to go on from after a stop.")] = None,
    with_evidence: WithEvidence = False,
    as_json: Json = False,
) -> None:
    """Execution accuracy of a language model on a corpus, every question in the denominator."""
    from bayeslink.evaluation.execution import database_files
    from bayeslink.grounding.endpoint import Endpoint
    from bayeslink.pipeline import Shown
    from bayeslink.pipeline import execute as executed
    from bayeslink.schema.corpus import read_corpus

    if shown not in set(Shown):
        raise ValueError(f"shown={shown!r}: use one of {', '.join(Shown)}")
    asked = read_corpus(corpus, split=split)
    found = executed(
        asked,
        database_files(asked, databases),
        Endpoint(endpoint, model),
        model_name=model,
        shown=Shown(shown),
        cover=cover,
        with_evidence=with_evidence,
        channels=channels,
        out=out,
        progress=True,
    )
    document = found.to_dict()
    if as_json:
        print_json(document)
        return
    for name, value in document.items():
        print(f"{name.replace('_', ' '):<28} {value}")
