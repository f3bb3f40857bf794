"""The paper: verdicts are computed, numbers come from stored results alone, and the PDF builds from them."""

import importlib.util
import json
import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PAPER = ROOT / "paper"
_spec = importlib.util.spec_from_file_location("build_paper", PAPER / "build.py")
assert _spec is not None
assert _spec.loader is not None
paper = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(paper)

RESULTS = {"one": {"figures": {"a": 2.0, "b_0.1": -0.25, "n": 1534}, "checks": {"held": True, "missed": False}}}


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ("one.held", True),
        ("one.missed", False),
        ("one.a > 1.5", True),
        ("one.a <= 1.5", False),
        ("one.b_0.1 < 0", True),
        ("|one.b_0.1| >= 0.25", True),
        ("one.a > one.n", False),
        ("|one.b_0.1| > |one.a|", False),
    ],
)
def test_conditions(condition, expected):
    assert paper.holds(condition, RESULTS) is expected


@pytest.mark.parametrize(
    ("condition", "message"),
    [("one.gone", "no check of a stored result"), ("one.gone > 1", "no figure gone"), ("one.a ~ 1", "no check")],
)
def test_a_condition_on_what_is_not_stored_is_refused(condition, message):
    with pytest.raises(ValueError, match=message):
        paper.holds(condition, RESULTS)


def test_numbers_are_filled_in():
    text = "{one.a:.2f} of {one.n:,} ({one.b_0.1:+.1%})"
    assert paper.filled(text, RESULTS) == "2.00 of 1,534 (−25.0 %)"
    with pytest.raises(ValueError, match="no figure gone"):
        paper.filled("{one.gone:.2f}", RESULTS)


def claim(conditions: list[str], analyses: list[str]) -> str:
    return f'[[claim]]\nreference = "r"\nfound = "{{one.a:.0f}}"\nanalyses = {analyses}\nconditions = {conditions}\n'


@pytest.mark.parametrize(
    ("conditions", "agrees", "held"),
    [
        (["one.held", "one.a > 0"], "yes", 2),
        (["one.held", "one.missed"], "in part", 1),
        (["one.missed"], "no", 0),
    ],
)
def test_verdicts(tmp_path, conditions, agrees, held):
    path = tmp_path / "claims.toml"
    path.write_text(claim(conditions, ["one"]))
    (found,) = paper.claims(path, RESULTS)
    assert (found.found, found.agrees, found.held, found.conditions) == ("2", agrees, held, len(conditions))
    counts = f" ({held} of {len(conditions)})" if agrees == "in part" else ""
    assert paper.as_markdown([found]).splitlines()[-1] == f"| r | 2 | **{agrees}**{counts} |"


def test_a_claim_without_its_result_says_so(tmp_path):
    path = tmp_path / "claims.toml"
    path.write_text(claim(["one.held"], ["one", "two"]))
    (found,) = paper.claims(path, RESULTS)
    assert (found.agrees, found.found) == ("not yet run", "Not yet run: two.")


def test_each_claim_rests_on_its_own_analyses():
    rows = tomllib.loads((PAPER / "claims.toml").read_text())["claim"]
    known = {path.parent.name for path in ROOT.glob("experiments/*/run.py")}
    for row in rows:
        text = " ".join([*row["conditions"], *re.findall(r"\{([^}]*)\}", row["found"])])
        assert set(re.findall(r"\b([a-z]\w+)\.[a-z]", text)) == set(row["analyses"]), row["reference"]
        assert row["conditions"]
        assert set(row["analyses"]) <= known | {"simulation", "database_coupling"}
    assert len({row["reference"] for row in rows}) == len(rows) > 15


def test_claims_of_stored_results_find_their_numbers():
    found = paper.claims(PAPER / "claims.toml", paper.stored_results())
    assert {row.agrees for row in found} <= {"yes", "in part", "no", "not yet run"}
    assert any(row.agrees == "yes" for row in found)


def test_readme_has_the_table_of_the_stored_results():
    """If not: `python paper/build.py --claims`."""
    text = (ROOT / "README.md").read_text()
    table = paper.as_markdown(paper.claims(PAPER / "claims.toml", paper.stored_results()))
    assert paper.into_readme(text, table) == text
    assert paper.into_readme(text, "gone") != text
    with pytest.raises(ValueError, match="no place for the table"):
        paper.into_readme("# bayeslink", table)


def test_no_number_is_typed_into_the_text():
    """Decimals and percentages in the text itself; those of the mathematics and the protocol are listed."""
    text = (PAPER / "main.typ").read_text().partition("---- text")[2].partition("#bibliography")[0]
    text = re.sub(r"//.*|\"[^\"\n]*\"|digits: \d|\d+(\.\d+)?(pt|em|cm|fr)|<[^>\n]*>|rgb\([^)]*\)", "", text)
    assert re.findall(r"\d+\.\d+", text) == []
    assert set(re.findall(r"\d+ %", text)) <= {"95 %", "80 %"}


def test_every_reference_is_known_and_used():
    text, known = (PAPER / "main.typ").read_text(), (PAPER / "references.bib").read_text()
    keys = re.findall(r"@\w+\{(\w+),", known)
    assert len(keys) == len(set(keys))
    assert [key for key in keys if f"@{key}" not in text] == []


def test_pdf_builds_from_the_stored_results(tmp_path):
    pytest.importorskip("typst", reason="extra `paper`")
    paper.build(tmp_path / "main.pdf")
    assert (tmp_path / "main.pdf").read_bytes().startswith(b"%PDF")
    available = json.loads((PAPER / "build" / "available.json").read_text())
    assert set(available["experiments"]) == set(paper.stored_results())
    paper.build(tmp_path / "again.pdf")
    assert (tmp_path / "again.pdf").read_bytes() == (tmp_path / "main.pdf").read_bytes()


def test_a_number_that_is_not_stored_is_refused(tmp_path, monkeypatch):
    typst = pytest.importorskip("typst", reason="extra `paper`")
    monkeypatch.setattr(typst, "query", lambda *_, **__: '["recovery.gone"]')
    with pytest.raises(ValueError, match=r"not stored: recovery\.gone"):
        paper.build(tmp_path / "main.pdf")
    assert not (tmp_path / "main.pdf").exists()


def test_inputs_are_written_only_when_they_change(tmp_path):
    path = tmp_path / "build" / "x.json"
    paper.write_if_changed(path, [1])
    before = path.stat().st_mtime_ns
    paper.write_if_changed(path, [1])
    assert path.stat().st_mtime_ns == before
    paper.write_if_changed(path, [2])
    assert json.loads(path.read_text()) == [2]
