"""Build the paper: `python paper/build.py` writes main.pdf, `--claims` writes the table of claims into README.md.

Every number comes from a stored result. `build/available.json` tells main.typ which experiments have one and which
figures are drawn; `build/claims.json` holds the claims of claims.toml with their numbers filled in and with what
their conditions say: yes if all hold, in part if some do, no if none, not yet run if a result is missing.
"""

import argparse
import json
import re
import sys
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent

COMPARISONS = {
    ">": lambda a, b: a > b,
    "<": lambda a, b: a < b,
    ">=": lambda a, b: a >= b,
    "<=": lambda a, b: a <= b,
}
PLACEHOLDER = re.compile(r"\{(\w+)\.([\w.]+):([^{}]+)\}")
NOT_RUN = "not yet run"
MARKS = "<!-- claims -->", "<!-- end of claims -->"

Results = Mapping[str, Mapping]
"""Sidecar, with timings among the figures, by experiment."""


class Claim(NamedTuple):
    """One row of the table.

    Attributes:
        reference: What the reference paper says.
        found: What the stored results say, numbers filled in.
        agrees: "yes", "in part", "no" or "not yet run".
        held: How many conditions hold.
        conditions: How many there are.
        analyses: Experiments that it rests on.
    """

    reference: str
    found: str
    agrees: str
    held: int
    conditions: int
    analyses: tuple[str, ...]


def stored_results(root: Path = ROOT) -> dict[str, dict]:
    """The sidecar of each experiment that has one; numbers of `timings.json` join its figures."""
    results = {}
    for path in sorted(root.glob("experiments/*/table.json")):
        sidecar = json.loads(path.read_text(encoding="utf-8"))
        timings = path.with_name("timings.json")
        timed = json.loads(timings.read_text(encoding="utf-8")) if timings.is_file() else {}
        numbers = {name: value for name, value in timed.items() if isinstance(value, int | float)}
        results[path.parent.name] = sidecar | {"figures": numbers | sidecar["figures"]}
    return results


def value_of(token: str, results: Results) -> float:
    """The number that a token names: EXPERIMENT.FIGURE, |EXPERIMENT.FIGURE| for its size, or a number itself.

    Raises:
        ValueError: If a stored result has no figure of that name.
    """
    if re.fullmatch(r"-?\d+(\.\d+)?", token):
        return float(token)
    if token.startswith("|") and token.endswith("|"):
        return abs(value_of(token[1:-1], results))
    experiment, _, name = token.partition(".")
    figures = results[experiment]["figures"]
    if name not in figures:
        raise ValueError(f"claims.toml: experiments/{experiment}/table.json has no figure {name}; correct the claim")
    return figures[name]


def holds(condition: str, results: Results) -> bool:
    """Whether a condition is met: EXPERIMENT.CHECK, or a comparison of two tokens.

    Raises:
        ValueError: If it is neither, or names a check or figure that is not stored.
    """
    parts = condition.split()
    if len(parts) == 3 and parts[1] in COMPARISONS:
        return bool(COMPARISONS[parts[1]](value_of(parts[0], results), value_of(parts[2], results)))
    experiment, _, name = condition.partition(".")
    if name not in results[experiment]["checks"]:
        raise ValueError(f"claims.toml: {condition!r} is no check of a stored result and no comparison")
    return bool(results[experiment]["checks"][name])


def filled(text: str, results: Results) -> str:
    """The text with each {EXPERIMENT.FIGURE:FORMAT} replaced by its number, minus signs as such."""

    def number(match: re.Match) -> str:
        experiment, name, spec = match.groups()
        return format(value_of(f"{experiment}.{name}", results), spec).replace("-", "−").replace("%", " %")

    return PLACEHOLDER.sub(number, text)


def claims(path: Path, results: Results) -> list[Claim]:
    """The claims with what the stored results say about them."""
    found = []
    for row in tomllib.loads(path.read_text(encoding="utf-8"))["claim"]:
        analyses = tuple(row["analyses"])
        missing = [name for name in analyses if name not in results]
        if missing:
            text, agrees, held = f"Not yet run: {', '.join(missing)}.", NOT_RUN, 0
        else:
            text = filled(" ".join(row["found"].split()), results)
            held = sum(holds(condition, results) for condition in row["conditions"])
            agrees = "no" if held == 0 else "yes" if held == len(row["conditions"]) else "in part"
        found.append(Claim(" ".join(row["reference"].split()), text, agrees, held, len(row["conditions"]), analyses))
    return found


def as_markdown(rows: list[Claim]) -> str:
    """The table as README shows it."""
    lines = ["| The reference's claim | What we found | Agrees? |", "| --- | --- | --- |"]
    lines += [f"| {row.reference} | {row.found} | {_verdict(row)} |".replace("\n", " ") for row in rows]
    return "\n".join(lines)


def _verdict(row: Claim) -> str:
    counts = f" ({row.held} of {row.conditions})" if row.agrees == "in part" else ""
    return f"**{row.agrees}**{counts}"


def into_readme(text: str, table: str) -> str:
    """README's text with the table between its two marks.

    Raises:
        ValueError: If the marks are missing.
    """
    before, start, rest = text.partition(MARKS[0])
    _, end, after = rest.partition(MARKS[1])
    if not end:
        raise ValueError(f"README.md has no place for the table of claims: put {MARKS[0]} and {MARKS[1]} around it")
    return f"{before}{start}\n{table}\n{end}{after}"


def write_if_changed(path: Path, document: object) -> None:
    """JSON, written only where it differs, so that nothing is rebuilt for nothing."""
    text = json.dumps(document, indent=1) + "\n"
    if not path.is_file() or path.read_text(encoding="utf-8") != text:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


def write_inputs(results: Results) -> None:
    """What main.typ reads beside the results themselves."""
    figures = [path.stem for path in sorted(HERE.glob("figures/*.pdf")) if path.stem in results]
    write_if_changed(HERE / "build" / "available.json", {"experiments": list(results), "figures": figures})
    rows = [
        row._asdict() | {"verdict": _verdict(row).replace("*", "")} for row in claims(HERE / "claims.toml", results)
    ]
    write_if_changed(HERE / "build" / "claims.json", rows)


def build(out: Path) -> None:
    """Write the PDF.

    Raises:
        ModuleNotFoundError: If the extra `paper` is not installed.
        ValueError: If the text asks for a number that a stored result lacks.
    """
    try:
        import typst
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError("typst is missing: pip install 'bayeslink[paper]'") from error
    write_inputs(stored_results())
    source, fonts = HERE / "main.typ", {"root": ROOT, "ignore_system_fonts": True}
    missing = json.loads(typst.query(source, "<missing>", field="value", **fonts))
    if missing:
        raise ValueError(f"main.typ asks for figures that are not stored: {', '.join(sorted(set(missing)))}")
    typst.compile(source, output=out, **fonts)


def main(arguments: list[str] | None = None) -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description="Build the paper.")
    parser.add_argument("--claims", action="store_true", help="write README's table of claims and stop")
    parser.add_argument("--out", type=Path, default=HERE / "main.pdf")
    asked = parser.parse_args(arguments)
    try:
        if asked.claims:
            readme = ROOT / "README.md"
            table = as_markdown(claims(HERE / "claims.toml", stored_results()))
            readme.write_text(into_readme(readme.read_text(encoding="utf-8"), table), encoding="utf-8")
        else:
            build(asked.out)
    except ValueError as error:
        sys.exit(str(error))


if __name__ == "__main__":
    main()
