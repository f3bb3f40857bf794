"""Pages that are made when the site is built: the API, experiments, notation and the table of claims.

Each has one source elsewhere in the project, which the site repeats and nobody edits twice.
"""

import re
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.exceptions import PluginError
from mkdocs.plugins import event_priority
from mkdocs.structure.files import File, Files

ROOT = Path(__file__).resolve().parent.parent
LAYERS = {
    "": "What most users need",
    "schema": "Schema graphs from catalogues, corpora and SQL",
    "evidence": "What the question says about each table",
    "model": "Energy, hierarchy and priors",
    "inference": "Solvers, fits and predictions",
    "decision": "Sets of tables, and when to ask",
    "grounding": "DDL, access and SQL",
    "evaluation": "Scores and schemes",
    "baselines": "Other ways to choose tables",
    "theory": "The propositions as functions",
    "simulation": "Worlds with known truth",
    "plots": "Figures",
    "integrations": "Agents and other frameworks",
}
"""Folders of the package with a title each; a folder that is not there has no page."""


@event_priority(100)
def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages that are made."""
    notation = (ROOT / "NOTATION.md").read_text(encoding="utf-8")
    made = {"concepts/notation.md": notation, "claims.md": _claims((ROOT / "README.md").read_text(encoding="utf-8"))}
    made |= dict(_api(ROOT / "bayeslink")) | dict(_experiments(ROOT / "experiments"))
    for name, text in made.items():
        files.append(File.generated(config, name, content=text))
    for path in sorted((ROOT / "output" / "figures").glob("*.png")):
        files.append(File.generated(config, f"experiments/{path.name}", abs_src_path=str(path)))
    return files


def _claims(readme: str) -> str:
    found = re.search(r"<!-- claims -->\n(.*?)<!-- end of claims -->", readme, re.DOTALL)
    if found is None:
        raise PluginError("README.md has no table of claims")
    return (
        "# The paper's claims\n\nWhat the paper of the hierarchical model says, in our words, what we found, and "
        "whether the two agree. Every number is read from a stored table of [experiments](experiments/index.md).\n\n"
        f"{found[1]}"
    )


def _api(package: Path):
    """A page for each folder of the package, with every public module of it."""
    listed = []
    for folder, title in LAYERS.items():
        paths = sorted((package / folder).glob("*.py"))
        names = [path.stem for path in paths if not path.stem.startswith("_")]
        if not names:
            continue
        prefix = ".".join(filter(None, ("bayeslink", folder)))
        page = folder or "top"
        listed.append(f"- [`{prefix}`]({page}.md): {title}")
        yield f"api/{page}.md", f"# {title}\n\n" + "\n\n".join(f"::: {prefix}.{name}" for name in names) + "\n"
    yield "api/index.md", "# API\n\n" + "\n".join(listed) + "\n"


def _experiments(folder: Path):
    """A page for each experiment: its README, and its figure where it has been drawn."""
    listed = []
    for path in sorted(folder.glob("*/README.md")):
        name, text = path.parent.name, path.read_text(encoding="utf-8")
        drawn = (ROOT / "output" / "figures" / f"{name}.png").is_file()
        yield f"experiments/{name}.md", text + (f"\n![{name}]({name}.png)\n" if drawn else "")
        claim = re.search(r"\*\*Claim\.\*\*\s*(.+?)(?:\n\n|\Z)", text, re.DOTALL)
        listed.append(f"- [{name}]({name}.md)" + (f": {' '.join(claim[1].split())}" if claim else ""))
    head = "Each claim is one folder: what would refute it, the sizes, the script, the stored table."
    yield "experiments/index.md", f"# Experiments\n\n{head}\n\n" + "\n".join(listed) + "\n"
