"""Options that several commands share."""

from pathlib import Path
from typing import Annotated

import typer

__all__ = ["Context", "Forms", "InferKeys", "Json", "PolicyFile", "Principal", "Term", "WithEvidence"]

Json = Annotated[bool, typer.Option("--json", help="Print one JSON document on stdout and nothing else.")]
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
Principal = Annotated[
    str | None,
    typer.Option(help="Who asks: a principal of --policy, or else a role of the database, whose privileges are read."),
]
InferKeys = Annotated[
    bool, typer.Option("--infer-keys", help="Guess keys from names and types where no declared one joins two tables.")
]
