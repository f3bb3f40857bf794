"""Execute the notebooks' sources and write them as .ipynb: `python notebooks/build.py [SOURCE ...] [--out FOLDER]`."""

import argparse
from pathlib import Path

HERE = Path(__file__).resolve().parent
SECONDS = 600
"""Longest that one cell may take."""


def sources() -> list[Path]:
    """The notebooks, in the jupytext percent format; their names begin with a number."""
    return sorted(HERE.glob("[0-9]*.py"))


def build(source: Path, out: Path) -> Path:
    """Execute one notebook and write it with its outputs.

    Raises:
        ModuleNotFoundError: If the extra `paper` is not installed.
        nbclient.exceptions.CellExecutionError: If a cell fails.
    """
    try:
        import jupytext
        from nbclient import NotebookClient
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(f"{error.name} is missing: pip install 'bayeslink[paper]'") from error
    notebook = jupytext.read(source)
    folder = {"metadata": {"path": str(source.parent)}}
    NotebookClient(notebook, timeout=SECONDS, kernel_name="python3", resources=folder).execute()
    out.mkdir(parents=True, exist_ok=True)
    path = out / f"{source.stem}.ipynb"
    jupytext.write(notebook, path)
    return path


def main(arguments: list[str] | None = None) -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description="Execute the notebooks.")
    parser.add_argument("source", nargs="*", type=Path, default=sources(), help="default: all")
    parser.add_argument("--out", type=Path, default=HERE, help="folder of the .ipynb files")
    asked = parser.parse_args(arguments)
    for source in asked.source:
        print(build(source, asked.out))


if __name__ == "__main__":
    main()
