"""The command `link`: tables, probabilities, a cover and its DDL."""

from pathlib import Path
from typing import Annotated

import typer

from bayeslink.cli.answers import answered, check_answers
from bayeslink.cli.common import one_line, policy_of, print_json, say
from bayeslink.cli.options import InferKeys, Json, PolicyFile, Principal

__all__ = ["link"]

MIN_GAIN = 0.05
"""Expected information below which no question is suggested, nats."""

LIKELY = 0.1
"""Probability, given its table, from which a column is printed; JSON has them all."""

_PICTURES = (".png", ".svg", ".pdf")


def _notice() -> str:
    from bayeslink.grounding.access import NOTICE

    return NOTICE


def link(
    url: Annotated[str, typer.Argument(help="SQLAlchemy URL, or the path of an SQLite file; opened read-only.")],
    question: Annotated[str, typer.Argument(help="The question, in natural language.")],
    evidence: Annotated[str | None, typer.Option(help="A hint read together with the question.")] = None,
    posterior: Annotated[Path | None, typer.Option(help="Posterior file; the shipped one by default.")] = None,
    channels: Annotated[
        str | None,
        typer.Option(help="lexical, embedding, boosted, boosted_lexical, rich, ...; by default what is installed."),
    ] = None,
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
    columns: Annotated[
        bool, typer.Option("--columns", help="Also the probability of each column, by lexical or embedding evidence.")
    ] = False,
    lightest: Annotated[
        bool, typer.Option("--lightest", help="Also the set of fewest DDL tokens at the cover's level.")
    ] = False,
    budget: Annotated[
        float | None, typer.Option(help="Tokens of DDL: also the best set of tables within so many.")
    ] = None,
    ddl: Annotated[
        bool, typer.Option("--ddl", help="Also the DDL of the cover, or of the set of --budget or --lightest.")
    ] = False,
    max_tokens: Annotated[
        int | None, typer.Option(help="Tokens of that DDL at most: columns that are needed least are left out.")
    ] = None,
    schema: Annotated[
        list[str] | None, typer.Option(help="Database schema to read; may be repeated; '*' for all.")
    ] = None,
    policy: PolicyFile = None,
    principal: Principal = None,
    infer_keys: InferKeys = False,
    fold: Annotated[
        bool, typer.Option("--fold/--no-fold", help="One table for each family of dated or numbered ones.")
    ] = True,
    picture: Annotated[Path | None, typer.Option(help="Write the schema graph (.png, .svg, .pdf).")] = None,
    as_json: Json = False,
) -> None:
    """The tables that a question needs, their probabilities, and a set that holds them all."""
    from bayeslink.inference import keep_compiled
    from bayeslink.linker import SchemaLinker

    keep_compiled()
    if picture is not None and picture.suffix not in _PICTURES:
        raise ValueError(f"picture={str(picture)!r}: use a file name that ends in .png, .svg or .pdf")
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
    if allowed is not None and not allowed.every_table:
        say(f"note: {_notice()}")
    if linker.graph.num_tables > 1 and not linker.graph.edges:
        hint = "none could be guessed" if infer_keys else "--infer-keys guesses some from names"
        say(f"warning: no foreign key joins two tables, so none lends another support; {hint}")
    check_answers(calibration, needs, needs_not)
    # To leave columns out, it must be known which are needed.
    found = linker.link(question, evidence, cover, max_risk, calibration, columns or max_tokens is not None)
    found = answered(found, needs, needs_not)
    within = None if budget is None else found.within(budget)
    for sentence in (*linker.graph.dropped, *linker.graph.warnings, *found.warnings):
        say(f"warning: {sentence}")
    if picture is not None:
        found.plot(picture)
    document = found.to_dict()
    if budget is not None and within is not None:
        document["budget"] = {"tokens": budget, "tables": list(within[0]), "probability": within[1]}
    fewest = found.lightest() if lightest else None
    if fewest is not None:
        document["lightest"] = dict(zip(("tables", "tokens", "probability"), fewest, strict=True))
    pruned = None
    if ddl or max_tokens is not None:
        shown = found.tables if within is None and fewest is None else (within or fewest or ((),))[0]
        pruned = found.ddl(shown, max_tokens)
        document["ddl"] = pruned.to_dict()
    if as_json:
        print_json(document)
        return
    print(f"question   {one_line(found.question)}")
    size, pairs = found.graph.num_tables, len(found.graph.edges)
    print(f"database   {found.graph.name}: {size} table{'s' * (size != 1)}, {pairs} joined pair{'s' * (pairs != 1)}")
    print(f"posterior  {found.posterior}")
    print(f"evidence   {', '.join(found.channels)}\n")
    width = max(len(row["table"]) for row in document["tables"])
    print(f"{'table':<{width}}  probability  independent  cover  mode  why (log-odds)")
    for row in document["tables"]:
        alone = "     -" if row["independent_probability"] is None else f"{row['independent_probability']:6.3f}"
        print(
            f"{row['table']:<{width}}  {row['probability']:11.3f}  {alone:>11}  "
            f"{'yes' if row['in_cover'] else '':<5}  {'yes' if row['in_mode'] else '':<4}  {row['why']}"
        )
    chosen = document["cover"]
    print(f"\ncover      {', '.join(chosen['tables']) or 'no table'}")
    print(f"           holds every needed table with probability {chosen['probability']:.3f} (asked: {cover:g})")
    if chosen["fewest"] < len(chosen["tables"]):
        print(f"           no cover has fewer than {chosen['fewest']} tables; whether one is smaller than this is open")
    if found.promise is not None:
        made, stated = found.promise, "promised" if found.promise.holds else "not promised: too few databases"
        print(f"           calibrated on {made.num_questions} questions of {made.num_databases} databases:")
        print(f"           level {chosen['level']:g} for {made.target:g} of questions on databases like them, {stated}")
    if within is not None:
        print(f"budget     {', '.join(within[0]) or 'no table'}")
        print(
            f"           the best within {budget:g} tokens: holds every needed table with probability {within[1]:.3f}"
        )
    if fewest is not None:
        print(f"lightest   {', '.join(fewest[0]) or 'no table'}")
        print(f"           {fewest[1]:g} tokens: holds every needed table with probability {fewest[2]:.3f}")
    for table, row in _likely_columns(document).items():
        print(f"columns    {table}: {row}")
    if found.column_evidence is not None:
        print(f"           by {found.column_evidence} evidence of each column")
    best = document["mode"]
    print(f"mode       {', '.join(best['tables']) or 'no table'} (probability {best['probability']:.3f})")
    if not best["tables"]:
        second = next(((tables, p) for tables, p in found.top(2) if tables), None)
        if second is not None:
            print(f"           most probable set with a table: {', '.join(second[0])} (probability {second[1]:.3f})")
    print(f"entropy    {document['entropy_nats']:.2f} nats, expected size {document['expected_size']:.2f}")
    if found.approximation:
        print(f"note       {found.approximation}")
    if found.answers:
        said = ", ".join(f"{name} is {'needed' if value else 'not needed'}" for name, value in found.answers.items())
        print(f"given      {said}")
    asked = document["clarify"]
    if asked["gain_nats"] > MIN_GAIN:
        print(f"could ask  does this need {asked['table']}? (probability {asked['probability']:.2f})")
        print(f"           mode right with probability {asked['exact_before']:.2f}, then {asked['exact_after']:.2f}")
    print(f"verdict    {'would rather ask: ' + document['reason'] if document['abstain'] else 'answers'}")
    if picture is not None:
        print(f"picture    {picture}")
    if pruned is not None:
        print(f"ddl        {pruned.tokens} tokens, estimated\n\n{pruned.text}")


def _likely_columns(document: dict) -> dict[str, str]:
    """For each table of the cover, its columns that are likely where it is needed, with that probability."""
    found = {table: [] for table in document["cover"]["tables"]} if document["columns"] is not None else {}
    for row in document["columns"] or ():
        if row["table"] in found and row["probability_given_table"] >= LIKELY:
            found[row["table"]].append(f"{row['column']} {row['probability_given_table']:.2f}")
    return {table: ", ".join(parts) or "none likely" for table, parts in found.items()}
