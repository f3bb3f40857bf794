"""The command `answer`: rows by a language model's SQL."""

from typing import Annotated

import typer

from bayeslink.cli.common import one_line, policy_of, print_json
from bayeslink.cli.options import Json, PolicyFile, Principal

__all__ = ["answer"]


def answer(
    url: Annotated[str, typer.Argument(help="SQLAlchemy URL, or the path of an SQLite file; opened read-only.")],
    question: Annotated[str, typer.Argument(help="The question, in natural language.")],
    endpoint: Annotated[str, typer.Option(help="Address of an OpenAI-compatible endpoint, such as http://host/v1.")],
    model: Annotated[str, typer.Option(help="Name of the language model there.")],
    evidence: Annotated[str | None, typer.Option(help="A hint read together with the question.")] = None,
    shown: Annotated[str, typer.Option(help="Tables the model sees: cover or whole.")] = "cover",
    cover: Annotated[float, typer.Option(help="Level of the cover.")] = 0.95,
    max_risk: Annotated[float | None, typer.Option(help="Refuse when the tables are wrong more probably.")] = None,
    max_tokens: Annotated[int | None, typer.Option(help="Tokens of the DDL at most.")] = None,
    channels: Annotated[str | None, typer.Option(help="Evidence; by default what is installed.")] = None,
    policy: PolicyFile = None,
    principal: Principal = None,
    max_rows: Annotated[int, typer.Option(help="Rows at most.")] = 1000,
    as_json: Json = False,
) -> None:
    """Rows that answer a question, by a language model's SQL, checked and run read-only; or why there are none."""
    from bayeslink.grounding.endpoint import Endpoint
    from bayeslink.pipeline import Shown
    from bayeslink.pipeline import answer as answered

    if shown not in set(Shown):
        raise ValueError(f"shown={shown!r}: use one of {', '.join(Shown)}")
    found = answered(
        url,
        question,
        Endpoint(endpoint, model),
        evidence=evidence,
        shown=Shown(shown),
        cover=cover,
        max_risk=max_risk,
        max_tokens=max_tokens,
        channels=channels,
        policy=policy_of(policy, principal, url),
        max_rows=max_rows,
    )
    if as_json:
        print_json(found.to_dict())
        return
    print(f"tables   {', '.join(found.tables) or 'none'}")
    print(f"sql      {found.sql or '-'}")
    if found.refusal is not None:
        print(f"refused  {found.refusal}: {found.reason}")
        return
    print(" | ".join(found.columns))
    for row in found.rows:
        print(" | ".join(one_line(str(cell)) for cell in row))
    if found.more:
        print(f"(the first {len(found.rows)} rows)")
