"""The command line: parses arguments and calls; computes nothing.

Results go to stdout, progress and warnings to stderr. Exit status: 0 done; 2 refused input, with one
sentence; 1 a fault of ours.
"""

import logging
import os
import sys
from typing import Annotated

import typer

from bayeslink.cli import answer, calibrate, data, evaluate, execute, fit, link, report, schema, serve
from bayeslink.cli.common import say

__all__ = ["app", "main"]

app = typer.Typer(
    add_completion=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    help="Which tables of a database does a question need, and how sure is that?",
)
app.command()(link.link)
app.command()(report.report)
app.command()(schema.schema)
app.command()(answer.answer)
app.command()(serve.serve)
app.command()(execute.execute)
app.command()(fit.fit)
app.command()(evaluate.evaluate)
app.command()(calibrate.calibrate)
app.command()(data.data)


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
        say(f"bayeslink: {' '.join(sentence.split())}")
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


@app.callback(invoke_without_command=True)
def _version(
    version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False,
) -> None:
    if version:
        from bayeslink import __version__

        print(f"bayeslink {__version__}")
        raise typer.Exit


if __name__ == "__main__":
    main()
