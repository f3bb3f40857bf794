"""The notebooks run from their sources, are short, and every code cell ends in something to see."""

import ast
import importlib.util
import json
from pathlib import Path

import pandas as pd
import pytest
from matplotlib.figure import Figure

from bayeslink.linker import Link

jupytext = pytest.importorskip("jupytext", reason="extra `paper`")

ROOT = Path(__file__).resolve().parents[1]
SOURCES = sorted(ROOT.glob("notebooks/[0-9]*.py"))
NAMES = ["01_worked_example", "02_from_sql_to_gold", "03_reading_the_posterior", "04_your_own_graph"]


def code(cell) -> str:
    """A cell's Python, without magics."""
    return "\n".join("" if line.startswith("%") else line for line in cell.source.splitlines())


def run(source: Path) -> list[object]:
    """What each code cell ends in, the cells run in order in one namespace."""
    seen, names = [], {"__name__": "__main__"}
    for number, cell in enumerate(jupytext.read(source).cells):
        if cell.cell_type == "code":
            tree, where = ast.parse(code(cell)), f"{source.name} cell {number}"
            last = tree.body.pop()
            assert isinstance(last, ast.Expr), f"{where} ends in no expression"
            exec(compile(tree, where, "exec"), names)
            seen.append(eval(compile(ast.Expression(last.value), where, "eval"), names))
    return seen


def test_there_are_four():
    assert [source.stem for source in SOURCES] == NAMES


@pytest.mark.parametrize("source", SOURCES, ids=lambda source: source.stem)
def test_is_short_and_begins_with_a_title(source):
    cells = jupytext.read(source).cells
    assert len(cells) <= 15
    assert cells[0].cell_type == "markdown"
    assert cells[0].source.startswith("# ")


@pytest.mark.parametrize("source", SOURCES, ids=lambda source: source.stem)
def test_every_code_cell_ends_in_something_to_see(source, tmp_path, monkeypatch):
    monkeypatch.chdir(ROOT / "notebooks")
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    seen = run(source)
    assert len(seen) >= 5
    for number, value in enumerate(seen):
        if isinstance(value, Figure):
            value.savefig(tmp_path / "figure.png")
        elif isinstance(value, pd.io.formats.style.Styler):
            assert "<table" in value.to_html()
        elif isinstance(value, pd.DataFrame):
            assert len(value)
        else:
            assert isinstance(value, Link), f"code cell {number} shows a {type(value).__name__}"
            assert "<table" in value._repr_html_()


def test_a_cell_that_ends_in_nothing_is_found(tmp_path):
    source = tmp_path / "silent.py"
    source.write_text("# %%\nx = 1\n")
    with pytest.raises(AssertionError, match="ends in no expression"):
        run(source)


@pytest.mark.slow
def test_build_writes_the_executed_notebook(tmp_path):
    """In a kernel of its own, from a small source that draws, as the notebooks do."""
    pytest.importorskip("nbclient", reason="extra `paper`")
    spec = importlib.util.spec_from_file_location("build_notebooks", ROOT / "notebooks" / "build.py")
    assert spec is not None
    assert spec.loader is not None
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    assert script.sources() == SOURCES
    source = tmp_path / "small.py"
    lines = [
        "# %%",
        "# %matplotlib inline",
        "from bayeslink.plots.style import new_figure",
        "figure = new_figure(2, 2)",
        "axes = figure.subplots()",
    ]
    source.write_text("\n".join([*lines, "figure", "# %%", "1 + 1", ""]))
    script.main([str(source), "--out", str(tmp_path / "built")])
    cells = json.loads((tmp_path / "built" / "small.ipynb").read_text())["cells"]
    first, second = (cell["outputs"][-1]["data"] for cell in cells if cell["cell_type"] == "code")
    assert "image/png" in first
    assert second["text/plain"] == ["2"]
