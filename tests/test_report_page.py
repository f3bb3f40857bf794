"""The page of `bayeslink report` and the notebook's view: what they hold, and that no name in them ever runs."""

import html
import json
import os
import re
import shutil
import sqlite3
import subprocess
import sys
from collections import Counter
from contextlib import closing
from html.parser import HTMLParser
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pytest

from bayeslink import cli
from bayeslink.linker import SchemaLinker
from bayeslink.plots.pages import schema_svg
from bayeslink.report import report_page
from bayeslink.schema.graph import Column, Table, build_graph

RUNS = "document.title='owned'"
HOSTILE = (
    f"<script>{RUNS}</script>",
    f'"><img src=x onerror={RUNS}>',
    f"'><svg onload={RUNS}>",
    f"</text></svg><script>{RUNS}</script>",
    f"</title><script>{RUNS}</script>",
    f"]]><script>{RUNS}</script>",
    f"javascript:{RUNS}",
    "a & b &lt; c {{ 7 * 7 }} {% raw %}",
    "\u202eevil \u0007",
    f"<![CDATA[<script>{RUNS}</script>]]>",
    f"&#60;script&#62;{RUNS}&#60;/script&#62;",
    f"</style><script>{RUNS}</script><!--",
    f"`';-->\"><iframe srcdoc='<script>{RUNS}</script>'>",
    f"</pre></textarea><math><mtext><img src=x onerror={RUNS}>",
)


class Elements(HTMLParser):
    """Counts the elements of a page, and keeps its title and what runs on events."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.found, self.events, self.title, self._inside = Counter(), [], "", False
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.found[tag] += 1
        self.events += [name for name, value in attrs if name.startswith("on") or "javascript:" in (value or "")[:20]]
        self._inside = tag == "title" and not self.found["svg"]

    def handle_endtag(self, tag):
        self._inside = False

    def handle_data(self, data):
        self.title += data if self._inside else ""


def database(path: Path, names, question_table: str = "customers") -> Path:
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(f"CREATE TABLE {question_table} (id INTEGER PRIMARY KEY, name TEXT)")
        for number, name in enumerate(names):
            quoted = '"' + name.replace('"', '""') + '"'
            connection.execute(
                f"CREATE TABLE {quoted} (id INTEGER PRIMARY KEY, {quoted} TEXT, "
                f"customer_{number} INTEGER REFERENCES {question_table} (id))"
            )
        connection.commit()
    return path


@pytest.fixture(scope="module")
def hostile(tmp_path_factory) -> Path:
    return database(tmp_path_factory.mktemp("hostile") / "hostile.sqlite", HOSTILE)


@pytest.fixture(scope="module")
def page(hostile, tmp_path_factory) -> Path:
    """The page of a hostile question to a hostile database, as the command writes it."""
    out = tmp_path_factory.mktemp("page") / "out.html"
    asked = ["report", str(hostile), f"Which customers? <script>{RUNS}</script>", "--html", str(out), "--columns"]
    sys_argv, sys.argv = sys.argv, ["bayeslink", *asked, "--channels", "lexical"]
    try:
        with pytest.raises(SystemExit) as ended:
            cli.main()
    finally:
        sys.argv = sys_argv
    assert ended.value.code == 0
    return out


def browser() -> str:
    found = shutil.which("chromium") or shutil.which("google-chrome")
    if found is None:
        if os.environ.get("CI") == "true":
            pytest.fail("CI must have a browser (chromium)")
        pytest.skip("no browser on this machine")
    return found


def in_browser(page: Path, *options: str) -> subprocess.CompletedProcess:
    command = [browser(), "--headless", "--no-sandbox", "--disable-gpu", "--enable-logging=stderr", "--v=0", *options]
    return subprocess.run([*command, page.as_uri()], capture_output=True, text=True, timeout=120, check=False)


def test_no_name_becomes_markup(page):
    text = page.read_text(encoding="utf-8")
    seen = Elements(text)
    assert seen.found["script"] == seen.found["img"] == seen.found["iframe"] == seen.found["link"] == 0
    assert (seen.found["svg"], seen.events) == (2, [])
    assert seen.found["math"] == seen.found["textarea"] == 0
    assert seen.title == "bayeslink: hostile"
    assert "http" not in text.replace("http://www.w3.org/2000/svg", "")
    assert "{{ 7 * 7 }}" in text.replace("&#39;", "'")
    assert seen.found["rect"] == 2 * (len(HOSTILE) + 1)
    assert not set(text) & {"\u202e", "\u0007"}


def test_a_browser_runs_nothing_of_it_and_reports_no_error(page):
    found = in_browser(page, "--virtual-time-budget=2000", "--dump-dom")
    seen = Elements(found.stdout)
    assert seen.title == "bayeslink: hostile"
    assert seen.found["script"] == seen.found["img"] == 0
    assert [line for line in found.stderr.splitlines() if "CONSOLE" in line] == []


@pytest.mark.parametrize("width", [420, 1280])
def test_the_picture_is_seen(page, tmp_path, width):
    shot = tmp_path / "shot.png"
    in_browser(page, f"--window-size={width},1400", f"--screenshot={shot}")
    pixels = plt.imread(shot)[..., :3]
    assert pixels.shape[1] == width
    # Dark blue of a probable table, and the red of the cover's outline.
    blue = (np.abs(pixels - np.array([0.18, 0.5, 0.71])) < 0.12).all(axis=2)
    red = (pixels[..., 0] > 0.6) & (pixels[..., 1] < 0.35) & (pixels[..., 2] < 0.3)
    assert blue.sum() > 200
    assert red.sum() > 200


PROBE = """<script>
addEventListener("load", () => {
  const inside = document.querySelector("iframe").contentDocument, wide = inside.documentElement.clientWidth;
  const boxes = [...inside.querySelectorAll("svg text")].map(node => node.getBoundingClientRect());
  const seen = boxes.filter(box => box.width);
  const beyond = seen.filter(box => box.left < 0 || box.right > wide).length;
  const low = Math.min(...seen.map(box => box.height)), scrolls = inside.documentElement.scrollWidth > wide;
  document.querySelector("output").textContent = JSON.stringify({wide, texts: seen.length, beyond, low, scrolls});
});
</script>"""


@pytest.mark.parametrize("width", [400, 1280])
def test_no_text_of_the_picture_lies_outside_the_window(page, tmp_path, width):
    """In a frame of that width, for a window cannot be so narrow."""
    wrapper = tmp_path / "frame.html"
    inner = html.escape(page.read_text(encoding="utf-8"))
    frame = f'<iframe style="width: {width}px; height: 900px; border: 0" srcdoc="{inner}"></iframe>'
    wrapper.write_text(f"<meta charset=utf-8><output></output>{frame}{PROBE}", encoding="utf-8")
    dom = in_browser(wrapper, "--window-size=1400,1000", "--virtual-time-budget=4000", "--dump-dom").stdout
    found = re.search(r"<output>(\{.*?\})</output>", dom)
    assert found is not None, dom[:500]
    seen = json.loads(found[1])
    # A name and a probability of each table, of one of the two pictures.
    assert seen["texts"] == 2 * (len(HOSTILE) + 1)
    assert (seen["beyond"], seen["scrolls"]) == (0, False)
    # Pixels of a line of text, as small as can be read.
    assert seen["low"] >= 9
    assert width - 20 <= seen["wide"] <= width


def test_a_probe_of_a_picture_too_wide_finds_it(page, tmp_path):
    wide = tmp_path / "wide.html"
    wide.write_text(page.read_text(encoding="utf-8").replace("width:100%", "min-width:2000px"), encoding="utf-8")
    with pytest.raises(AssertionError):
        test_no_text_of_the_picture_lies_outside_the_window(wide, tmp_path, 400)


def test_a_null_byte_is_shown_as_what_it_is_not():
    """No SQLite file has such a name; other sources may."""
    tables = [Table("a\x00<b>", (Column("id"),)), Table("\u2066orders\ud800", (Column("id\x00"),))]
    link = SchemaLinker.from_graph(build_graph("x\x00", tables), channels="lexical").link(
        "Which orders?\x00", columns=True
    )
    for text in (report_page(link), link._repr_html_()):
        assert "\x00" not in text
        assert "a\ufffd&lt;b&gt;" in text
        text.encode()


def test_the_notebooks_view_escapes_too(hostile):
    found = SchemaLinker.from_database(str(hostile), channels="lexical").link("Which customers?")
    seen = Elements(found._repr_html_())
    assert seen.found["script"] == seen.found["img"] == 0
    assert (seen.found["svg"], seen.events) == (1, [])


def test_a_browser_runs_nothing_of_what_notebooks_show(hostile, tmp_path):
    linker = SchemaLinker.from_database(str(hostile), channels="lexical")
    link = linker.link(f"Which customers? <script>{RUNS}</script>")
    values = (linker, link, link.distribution, link.cover, linker.posteriors[linker.variant])
    shown = "".join(value._repr_html_() for value in values)
    wrapper = tmp_path / "cells.html"
    wrapper.write_text(f"<!DOCTYPE html><meta charset=utf-8><title>cells</title>{shown}", encoding="utf-8")
    found = in_browser(wrapper, "--virtual-time-budget=2000", "--dump-dom")
    seen = Elements(found.stdout)
    assert seen.title == "cells"
    assert seen.found["script"] == seen.found["img"] == seen.found["iframe"] == 0
    assert seen.found["svg"] == 3
    assert [line for line in found.stderr.splitlines() if "CONSOLE" in line] == []


def test_a_large_schema_shows_the_neighbourhood_and_says_what_it_leaves_out(tmp_path):
    path = database(tmp_path / "large.sqlite", [f"table_{number}" for number in range(120)])
    found = SchemaLinker.from_database(str(path), channels="lexical").link("Which customers?")
    text = report_page(found)
    assert Elements(text).found["rect"] == 2 * 24
    assert Elements(text).found["details"] == 1
    assert text.count('<td class="why">') == 121
    assert "97 less probable tables not shown" in text


def test_an_empty_schema_has_an_empty_picture():
    none = np.zeros(0)
    assert "<rect" not in schema_svg([], none, np.zeros((0, 2), dtype=np.int64), np.zeros(0, dtype=bool))


@pytest.mark.parametrize("out", ["nowhere/x/out.html", "."])
def test_a_page_that_cannot_be_written_is_refused(hostile, tmp_path, monkeypatch, capsys, out):
    target = tmp_path / out if out == "." else Path("/proc") / out
    monkeypatch.setattr(sys, "argv", ["bayeslink", "report", str(hostile), "Which customers?", "--html", str(target)])
    with pytest.raises(SystemExit) as ended:
        cli.main()
    assert ended.value.code == 2
    assert "html" in capsys.readouterr().err


def run(monkeypatch, capsys, *arguments) -> tuple[int, str]:
    """Exit status and stderr of the command."""
    monkeypatch.setattr(sys, "argv", ["bayeslink", "report", *map(str, arguments), "--channels", "lexical"])
    with pytest.raises(SystemExit) as ended:
        cli.main()
    assert isinstance(ended.value.code, int)
    return ended.value.code, capsys.readouterr().err


@pytest.fixture
def small(tmp_path) -> Path:
    return database(tmp_path / "small.sqlite", ["orders", "secrets"])


def test_what_is_known_of_tables_is_taken_and_said(small, tmp_path, monkeypatch, capsys):
    out = tmp_path / "out.html"
    asked = (small, "Which orders?", "--html", out, "--needs", "customers", "--needs-not", "secrets")
    assert run(monkeypatch, capsys, *asked)[0] == 0
    text = out.read_text(encoding="utf-8")
    assert "given that customers is needed; given that secrets is not needed" in text
    assert "1.000" in text
    code, said = run(monkeypatch, capsys, *asked, "--needs", "secrets")
    assert code == 2
    assert "needs and needs-not: secrets cannot be both" in said
    code, said = run(monkeypatch, capsys, *asked, "--calibration", tmp_path / "none.json")
    assert code == 2
    assert "a promise is about questions of which nothing was said" in said


def test_a_page_of_a_partial_view_says_so_and_names_nothing_else(small, tmp_path, monkeypatch, capsys):
    out, policy = tmp_path / "out.html", tmp_path / "policy.json"
    granted = {"customers": ["id", "name"], "orders": ["id", "customer_0"]}
    policy.write_text(json.dumps({"principals": {"clerk": {"tables": granted}}}))
    asked = (small, "Which orders or secrets?", "--html", out, "--policy", policy, "--principal", "clerk")
    assert run(monkeypatch, capsys, *asked)[0] == 0
    text = out.read_text(encoding="utf-8")
    assert "You see only the part of this database that you may read" in text
    assert "secrets" not in text.replace("orders or secrets?", "")
    assert Elements(text).found["rect"] == 2 * 2


def test_families_are_folded_or_not(tmp_path, monkeypatch, capsys):
    out = tmp_path / "out.html"
    path = database(tmp_path / "dated.sqlite", [])
    with closing(sqlite3.connect(path)) as connection:
        for day in range(1, 7):
            connection.execute(f"CREATE TABLE events_2024010{day} (id INTEGER PRIMARY KEY, what TEXT)")
        connection.commit()
    for asked, count in (("--fold", 2), ("--no-fold", 7)):
        assert run(monkeypatch, capsys, path, "Which customers?", "--html", out, asked)[0] == 0
        assert Elements(out.read_text(encoding="utf-8")).found["rect"] == 2 * count


def test_a_variant_and_a_refused_question(small, tmp_path, monkeypatch, capsys):
    out = tmp_path / "out.html"
    assert run(monkeypatch, capsys, small, "Which orders?", "--html", out, "--variant", "independent")[0] == 0
    assert "variant independent" in out.read_text(encoding="utf-8")
    code, said = run(monkeypatch, capsys, small, "?", "--html", tmp_path / "other.html")
    assert code == 2
    assert "has no content word" in said
    assert not (tmp_path / "other.html").exists()
