"""The command line: parses arguments and calls; computes nothing.

Results go to stdout, progress and warnings to stderr. Exit status: 0 done; 2 refused input, with one
sentence; 1 a fault of ours.
"""

import json
import logging
import math
import os
import sys
import tempfile
import unicodedata
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeVar

import typer

if TYPE_CHECKING:
    from bayeslink.evaluation.questions import Questions
    from bayeslink.evaluation.schemes import FitSettings
    from bayeslink.model.hierarchy import Variant

__all__ = ["app", "main"]

app = typer.Typer(
    add_completion=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    help="Which tables of a database does a question need, and how sure is that?",
)

Json = Annotated[bool, typer.Option("--json", help="Print one JSON document on stdout and nothing else.")]
MAX_SHOWN = 200
"""Characters of a question that are printed; JSON has them all."""

MIN_GAIN = 0.05
"""Expected information below which no question is suggested, nats."""

LIKELY = 0.1
"""Probability, given its table, from which a column is printed; JSON has them all."""

_PICTURES = (".png", ".svg", ".pdf")
WithEvidence = Annotated[bool, typer.Option("--with-evidence", help="Read the evidence string with the question.")]

Context = Annotated[
    list[str] | None,
    typer.Option(help="Covariate of the intercept, or `recommended`; may be repeated; none is the paper's model."),
]

Forms = Annotated[
    list[str] | None,
    typer.Option(
        help="Form of each channel among the question's tables: value, below_best, above_mean, rank, or `all`; "
        "may be repeated; the value alone by default."
    ),
]

Term = Annotated[
    list[str] | None,
    typer.Option(help="correlated, slope_scale, edge_types or coupling_covariates; may be repeated."),
]


PolicyFile = Annotated[
    Path | None, typer.Option(help="JSON or TOML file of who may read what; all else is out of sight.")
]
Principal = Annotated[str | None, typer.Option(help="The principal of --policy who asks.")]
InferKeys = Annotated[
    bool, typer.Option("--infer-keys", help="Guess keys from names and types where no declared one joins two tables.")
]


def main() -> None:
    """Run the command line; refused input becomes one sentence on stderr and exit status 2."""
    # The level is the handler's: some libraries set their own logger to a lower one.
    handler = logging.StreamHandler()
    handler.setLevel(logging.WARNING)
    logging.basicConfig(format="%(message)s", handlers=[handler])
    try:
        status = app(sys.argv[1:] or ["--help"], prog_name="bayeslink", standalone_mode=False)
        sys.stdout.flush()
    except BrokenPipeError:
        # The reader of stdout has gone; the interpreter must not flush into the void once more at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)
    except Exception as error:
        sentence = _refusal(error)
        if sentence is None:
            raise
        _say(f"bayeslink: {' '.join(sentence.split())}")
        sys.exit(2)
    sys.exit(status if isinstance(status, int) else 0)


def _refusal(error: Exception) -> str | None:
    """What to tell the user of refused input; None for a fault of ours."""
    if isinstance(error, (ValueError, FloatingPointError, OSError)):
        return str(error)
    # Wrong arguments: typer raises the exceptions of its own copy of click, or click's, by its version.
    if (usage := getattr(error, "format_message", None)) is not None:
        return usage()
    if isinstance(error, ImportError):
        from bayeslink.evidence.embedding import MissingExtraError

        return str(error) if isinstance(error, MissingExtraError) else None
    return None


def _say(text: str) -> None:
    print(text, file=sys.stderr)


def _policy(path: Path | None, principal: str | None):
    if path is None and principal is None:
        return None
    if path is None or principal is None:
        raise ValueError(f"policy={path and str(path)!r}, principal={principal!r}: give both --policy and --principal")
    from bayeslink.grounding.access import read_policy

    return read_policy(path, principal)


def _notice() -> str:
    from bayeslink.grounding.access import NOTICE

    return NOTICE


@app.callback(invoke_without_command=True)
def _version(
    version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False,
) -> None:
    if version:
        from bayeslink import __version__

        print(f"bayeslink {__version__}")
        raise typer.Exit


@app.command()
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
    allowed = _policy(policy, principal)
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
        _say(f"note: {_notice()}")
    if linker.graph.num_tables > 1 and not linker.graph.edges:
        hint = "none could be guessed" if infer_keys else "--infer-keys guesses some from names"
        _say(f"warning: no foreign key joins two tables, so none lends another support; {hint}")
    if calibration is not None and (needs or needs_not):
        raise ValueError(
            f"calibration={str(calibration)!r}: a promise is about questions of which nothing was said; leave "
            "--calibration or --needs and --needs-not out"
        )
    # To leave columns out, it must be known which are needed.
    found = linker.link(question, evidence, cover, max_risk, calibration, columns or max_tokens is not None)
    wanted = {found.position(name, "needs"): name for name in needs or ()}
    barred = {found.position(name, "needs-not"): name for name in needs_not or ()}
    if both := [wanted[place] for place in wanted if place in barred]:
        raise ValueError(f"needs and needs-not: {', '.join(both)} cannot be both; name it in one of them")
    found = found.answer(dict.fromkeys(wanted.values(), True) | dict.fromkeys(barred.values(), False))
    within = None if budget is None else found.within(budget)
    for sentence in (*linker.graph.dropped, *linker.graph.warnings):
        _say(f"warning: {sentence}")
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
        _print_json(document)
        return
    print(f"question   {_shown(found.question)}")
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


@app.command()
def schema(
    url: Annotated[str, typer.Argument(help="SQLAlchemy URL, or the path of an SQLite file; opened read-only.")],
    only: Annotated[
        list[str] | None, typer.Option("--schema", help="Database schema to read; may be repeated; '*' for all.")
    ] = None,
    policy: PolicyFile = None,
    principal: Principal = None,
    infer_keys: InferKeys = False,
    as_json: Json = False,
) -> None:
    """What was read of a database's catalogue: counts of tables, keys, edges, families and dropped keys."""
    from bayeslink.grounding.access import visible
    from bayeslink.inference.elimination import plan
    from bayeslink.schema.database import read_database
    from bayeslink.schema.graph import Origin
    from bayeslink.schema.joins import infer_keys as guessed
    from bayeslink.schema.linkable import linkable

    read = read_database(url, schemas=only)
    allowed = _policy(policy, principal)
    if allowed is not None:
        read = visible(read, allowed).graph
    graph = linkable(read, infer_keys=infer_keys)
    origins = [key.origin for key in graph.foreign_keys]
    guesses = [(guess.key, guess.score) for guess in guessed(graph)] if infer_keys else []
    document = {
        "database": graph.name,
        "tables": sum(not table.is_view for table in read.tables),
        "views": sum(table.is_view for table in read.tables),
        "foreign_keys": sum(origin is not Origin.VIEW for origin in origins),
        "inferred_keys": sum(origin is Origin.INFERRED for origin in origins),
        "self_keys": sum(key.is_self for key in graph.foreign_keys),
        "edges": len(graph.edges),
        "dropped_keys": len(graph.dropped),
        "frontier_width": int(plan(graph.edge_array, graph.num_tables, max_width=graph.num_tables).edge.shape[1]),
        "families": {table.full_name: list(table.members) for table in graph.tables if table.members},
        "inferred": [
            {
                "table": key.table,
                "columns": list(key.columns),
                "ref_table": key.ref_table,
                "ref_columns": list(key.ref_columns),
                "score": score,
            }
            for key, score in guesses
        ],
        "warnings": [*graph.dropped, *graph.warnings],
    }
    if as_json:
        _print_json(document)
        return
    for name, value in document.items():
        if name not in ("warnings", "families", "inferred"):
            print(f"{name.replace('_', ' '):<15} {value}")
    for name, members in document["families"].items():
        print(f"family          {name}: {len(members)} tables, {members[0]} to {members[-1]}")
    for key, score in guesses:
        pair = f"{key.table}({', '.join(key.columns)}) -> {key.ref_table}({', '.join(key.ref_columns)})"
        print(f"guess           {pair}, probability {score:.2f}")
    for sentence in document["warnings"]:
        print(f"warning         {sentence}")
    for edge in graph.edges:
        first, second = graph.table_names[edge.first], graph.table_names[edge.second]
        print(f"edge            {first} - {second} ({len(edge.keys)} key{'s' * (len(edge.keys) > 1)}, {edge.origin})")


@app.command()
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
        policy=_policy(policy, principal),
        max_rows=max_rows,
    )
    if as_json:
        _print_json(found.to_dict())
        return
    print(f"tables   {', '.join(found.tables) or 'none'}")
    print(f"sql      {found.sql or '-'}")
    if found.refusal is not None:
        print(f"refused  {found.refusal}: {found.reason}")
        return
    print(" | ".join(found.columns))
    for row in found.rows:
        print(" | ".join(_shown(str(cell)) for cell in row))
    if found.more:
        print(f"(the first {len(found.rows)} rows)")


@app.command()
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
        _print_json(document)
        return
    for name, value in document.items():
        print(f"{name.replace('_', ' '):<28} {value}")


@app.command()
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
    _check_writable(out)
    questions = _questions(
        data, split or ("train" if data == ["spider"] else None), corpus, channels, with_evidence, model
    )
    posteriors = fit_posteriors(
        questions,
        _variants(variant) or TABLE_VARIANTS,
        without_twins_of or (),
        settings=_settings(support, coupling, draws, seed, context, term, forms),
        effects=effects,
        max_tables=max_tables,
        progress=_at_terminal(),
        method=method,
    )
    try:
        save_posteriors(out, posteriors)
    except OSError as error:
        raise _unwritable(out, error) from error
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
            _say(
                f"warning: variant={item.variant.value}: the fit failed its checks {', '.join(failed)}; "
                "do not rely on it"
            )
    print(f"written    {out}")


@app.command()
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
    settings = _settings(support, coupling, draws, seed, context, term, forms)
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
    questions = _questions([data] if data else None, split, corpus, wanted, with_evidence, model)
    document = evaluation(
        questions,
        scheme,
        posteriors,
        _variants(variant),
        settings,
        keep_twins,
        progress=_at_terminal(),
    )
    document["posterior"] = name
    if as_json:
        _print_json(document)
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


@app.command()
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
    _check_writable(out)
    if posterior is not None and channels is not None:
        raise ValueError(f"channels={channels!r}: the posterior {posterior} has its own; leave --channels out")
    targets = target or [0.8, 0.9, 0.95, 0.98]
    for share in targets:
        least_databases(share)
    path = posterior or shipped_path(channels or ("embedding" if corpus is None else available_kind()))
    held = load_posteriors(path)
    wanted = _member(Variant, "variant", variant)
    if wanted not in held or wanted is Variant.UNPOOLED:
        there = ", ".join(item.value for item in held if item is not Variant.UNPOOLED)
        raise ValueError(f"variant={variant!r}: posterior {path} holds {there}")
    names = ",".join(held[wanted].channels)
    questions = _questions([data] if data else None, split, corpus, names, with_evidence, model)
    found = promises(questions, held[wanted], path, targets, seed, _at_terminal())
    found.save(out)
    if as_json:
        _print_json(found.to_dict())
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


@app.command()
def data(as_json: Json = False) -> None:
    """The stored evidence sets and the folder of the benchmark texts."""
    from bayeslink.evidence.store import evidence_home
    from bayeslink.schema.corpus import data_home

    manifest = json.loads((evidence_home() / "manifest.json").read_text())["sets"]
    try:
        home = str(data_home())
    except ValueError as error:
        home = f"none ({error})"
    if as_json:
        _print_json({"sets": manifest, "data_home": home})
        return
    print(f"{'set':<22}{'questions':>10}{'unresolved':>12}{'databases':>11}")
    for name, entry in manifest.items():
        print(f"{name:<22}{entry['n_questions']:>10}{entry['n_unresolved']:>12}{entry['n_databases']:>11}")
    print(f"texts: {home}")


def _questions(
    data: list[str] | None,
    split: str | None,
    corpus: Path | None,
    channels: str,
    with_evidence: bool,
    model: str | None = None,
) -> "Questions":
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
        return corpus_questions(texts, sources, with_evidence, _at_terminal(), files)
    sets = [
        stored_set(name, split if name == "spider" or len(data or ()) == 1 else None, with_evidence)
        for name in data or ()
    ]
    return stored_questions(sets, names)


def _variants(names: list[str] | None) -> "tuple[Variant, ...] | None":
    from bayeslink.model.hierarchy import Variant

    return tuple(_member(Variant, "variant", name) for name in names) if names else None


def _settings(
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
        settings = settings._replace(support=_member(Support, "support", support))
    if coupling is not None:
        if not math.isfinite(coupling):
            raise ValueError(f"coupling={coupling}: give a finite number of log-odds")
        settings = settings._replace(coupling=coupling)
    return settings if draws is None else settings._replace(num_draws=draws)


def _print_json(document: dict) -> None:
    try:
        text = json.dumps(document, ensure_ascii=False, allow_nan=False)
    except ValueError as error:
        # A fault of ours, not refused input.
        raise RuntimeError("the document holds a number that is not finite") from error
    print(text)


def _shown(question: str) -> str:
    """The question on one line of a terminal: shortened, its control and format characters escaped."""
    short = question if len(question) <= MAX_SHOWN else f"{question[: MAX_SHOWN - 3]}..."
    hidden = ("Cc", "Cf", "Cs", "Zl", "Zp")
    return "".join(
        char.encode("unicode_escape").decode() if unicodedata.category(char) in hidden else char for char in short
    )


def _check_writable(out: Path) -> None:
    """Refuses a file that cannot be written, before anything is fitted."""
    if out.is_dir():
        raise ValueError(f"out={str(out)!r} is a folder; give the name of a file")
    try:
        folder = next(parent for parent in out.absolute().parents if parent.exists())
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise _unwritable(out, error) from error


def _unwritable(out: Path, error: OSError) -> ValueError:
    # Not the error's own text, which names a temporary file.
    reason = error.strerror or type(error).__name__
    return ValueError(f"out={str(out)!r} cannot be written ({reason}); give a file in a folder that can be written to")


_Member = TypeVar("_Member", bound=StrEnum)


def _member(kind: type[_Member], argument: str, name: str) -> _Member:
    try:
        return kind(name)
    except ValueError:
        raise ValueError(f"{argument}={name!r}: use one of {', '.join(kind)}") from None


def _at_terminal() -> bool:
    """True where stderr is read by a person, who wants to see progress."""
    return sys.stderr.isatty()


if __name__ == "__main__":
    main()
