"""The command line: what it prints, and that each refusal is one sentence on stderr with status 2."""

import json
import logging
import os
import sqlite3
import subprocess
import sys
from contextlib import closing
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace

import pytest

from bayeslink import cli
from bayeslink.cli import common
from bayeslink.evidence import attention, embedding
from bayeslink.evidence.attention import AttentionHead
from bayeslink.inference.posterior import load_posteriors
from bayeslink.model.hierarchy import Variant
from bayeslink.schema.corpus import Corpus, Question, write_corpus
from bayeslink.schema.graph import Column, RawKey, Table, build_graph

QUESTION = "Which customers bought which products?"
SALES = """
CREATE TABLE customers (id INTEGER PRIMARY KEY, name TEXT);
CREATE TABLE products (id INTEGER PRIMARY KEY, name TEXT);
CREATE TABLE transactions (
    customer_id INTEGER REFERENCES customers (id), product_id INTEGER REFERENCES products (id));
"""


@pytest.fixture
def run(capsys, monkeypatch, tmp_path):
    """Runs the command line in this process; gives the status, stdout and stderr."""
    monkeypatch.setenv("BAYESLINK_CACHE", str(tmp_path / "cache"))

    def run(*arguments: object) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["bayeslink", *map(str, arguments)])
        with pytest.raises(SystemExit) as stop:
            cli.main()
        printed = capsys.readouterr()
        return stop.value.code, printed.out, printed.err

    return run


@pytest.fixture
def refused(run):
    """Runs the command line on input that must be refused; gives the sentence."""

    def refused(*arguments: object) -> str:
        status, out, err = run(*arguments)
        assert status == 2, out + err
        assert out == ""
        assert err.startswith("bayeslink: ")
        assert err.count("\n") == 1
        assert "Traceback" not in err
        return err.removeprefix("bayeslink: ").strip()

    return refused


@pytest.fixture
def sales(tmp_path) -> Path:
    path = tmp_path / "sales.sqlite"
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(SALES)
    return path


def write_toy_corpus(folder: Path, broken: bool = False) -> Path:
    """Two small databases of our own with gold; or one whose only query does not resolve."""
    schemas = {}
    for db_id in ("farm", "port"):
        tables = [
            Table(name, tuple(map(Column, columns)))
            for name, columns in (
                (f"{db_id}_workers", ("worker_id", "full_name")),
                (f"{db_id}_shifts", ("worker_id", "task_id", "day")),
                (f"{db_id}_tasks", ("task_id", "title")),
            )
        ]
        keys = [
            RawKey(f"{db_id}_shifts", ("worker_id",), f"{db_id}_workers", ("worker_id",)),
            RawKey(f"{db_id}_shifts", ("task_id",), f"{db_id}_tasks", ("task_id",)),
        ]
        schemas[db_id] = build_graph(db_id, tables, keys)
    asked = []
    for db_id in schemas:
        for number, (text, tables) in enumerate(
            (
                ("What are the names of the workers?", ["workers"]),
                ("Which worker did which task?", ["workers", "shifts", "tasks"]),
                ("How many tasks are there?", ["tasks"]),
                ("List the days of every shift", ["shifts"]),
                ("Which tasks were done on a day?", ["shifts", "tasks"]),
            )
        ):
            source = ", ".join(f"{db_id}_{table}" for table in tables)
            query = "SELECT FROM" if broken else f"SELECT * FROM {source}"
            asked.append(Question(f"{db_id}-{number}", db_id, text, None, query, "test"))
    write_corpus(Corpus(folder.name, schemas, tuple(asked)), folder)
    return folder


@pytest.fixture
def corpus(tmp_path) -> Path:
    return write_toy_corpus(tmp_path / "work")


def test_link_prints_the_table_the_cover_and_the_posterior(run, sales):
    status, out, err = run("link", sales, QUESTION, "--channels", "lexical")
    assert (status, err) == (0, "")
    assert "posterior  shipped lexical posterior, variant hierarchical" in out
    assert "evidence   token_overlap, bm25, hashed_cosine" in out
    assert "cover      " in out
    assert "holds every needed table with probability" in out
    assert "entropy" in out
    assert "verdict    answers" in out
    assert [line.split()[0] for line in out.splitlines()[6:9]] == ["customers", "products", "transactions"]


def test_link_prints_the_ddl_of_what_it_returns(run, refused, sales):
    link = ("link", sales, QUESTION, "--channels", "lexical")
    document = json.loads(run(*link, "--ddl", "--json")[1])
    assert {row["table"] for row in document["ddl"]["tables"]} == set(document["cover"]["tables"])
    assert document["ddl"]["text"].count("CREATE TABLE") == len(document["cover"]["tables"])
    assert "ddl" not in json.loads(run(*link, "--json")[1])
    printed = run(*link, "--max-tokens", document["ddl"]["tokens"] - 1)[1]
    assert "CREATE TABLE customers (" in printed
    assert "  -- ...\n);" in printed
    within = json.loads(run(*link, "--ddl", "--budget", 40, "--json")[1])
    assert {row["table"] for row in within["ddl"]["tables"]} == set(within["budget"]["tables"])
    assert within["ddl"]["tokens"] <= 40
    assert "max_tokens=3: " in refused(*link, "--max-tokens", 3)


def test_link_takes_answers_and_a_budget(run, sales):
    first = json.loads(run("link", sales, QUESTION, "--channels", "lexical", "--budget", 25, "--json")[1])
    assert first["clarify"]["table"] in {row["table"] for row in first["tables"]}
    assert first["answers"] == {}
    assert first["budget"]["tokens"] == 25
    assert 0 < first["budget"]["probability"] < 1
    told = ("--needs", "customers", "--needs-not", "transactions", "--budget", 25)
    status, out, _ = run("link", sales, QUESTION, "--channels", "lexical", *told)
    assert status == 0
    assert "lightest" not in out
    assert "tokens: holds every needed table" in run("link", sales, QUESTION, "--channels", "lexical", "--lightest")[1]
    assert "given      customers is needed, transactions is not needed" in out
    assert "the best within 25 tokens: holds every needed table with probability" in out
    second = json.loads(run("link", sales, QUESTION, "--channels", "lexical", *told, "--json")[1])
    probability = {row["table"]: row["probability"] for row in second["tables"]}
    assert probability["customers"] == pytest.approx(1)
    assert probability["transactions"] == pytest.approx(0)
    assert second["answers"] == {"customers": True, "transactions": False}


def test_calibrate_then_link_with_the_promise(run, sales, corpus, tmp_path):
    out = tmp_path / "levels.json"
    arguments = ("--corpus", corpus, "--channels", "lexical", "--target", 0.5, "--target", 0.9, "--out", out)
    status, printed, err = run("calibrate", *arguments)
    assert status == 0, err
    assert "no: that takes 9 databases" in printed
    assert "questions of 2 databases; 0 databases left out" in printed
    document = json.loads(run("calibrate", *arguments, "--json")[1])
    assert document == json.loads(out.read_text())
    assert [(level["target"], level["holds"]) for level in document["levels"]] == [(0.5, True), (0.9, False)]
    level = document["levels"][0]["level"]
    link = ("link", sales, QUESTION, "--channels", "lexical", "--cover", 0.5, "--calibration", out)
    found = json.loads(run(*link, "--json")[1])
    assert found["cover"]["level"] == level
    assert found["cover"]["promise"]["num_databases"] == 2
    printed = run(*link)[1]
    assert "calibrated on 10 questions of 2 databases:" in printed
    assert f"level {level:g} for 0.5 of questions on databases like them, promised" in printed


def test_refused_calibrations(refused, sales, corpus, tmp_path):
    out = ("--out", tmp_path / "levels.json")
    assert "target=1.5: a share above 0" in refused("calibrate", "--corpus", corpus, "--target", 1.5, *out)
    assert "variant='unpooled'" in refused(
        "calibrate", "--corpus", corpus, "--channels", "lexical", "--variant", "unpooled", *out
    )
    assert "give exactly one of --data" in refused("calibrate", "--channels", "lexical", *out)
    link = ("link", sales, QUESTION, "--channels", "lexical")
    assert "does not exist; give a file made with" in refused(*link, "--calibration", tmp_path / "none.json")
    both = ("--needs", "Products", "--needs-not", "products")
    assert "needs and needs-not: Products cannot be both" in refused(*link, *both)
    assert "needs='wharves' is not a table of sales; there are customers" in refused(*link, "--needs", "wharves")
    assert "needs-not='wharves' is not a table of sales" in refused(*link, "--needs-not", "wharves")
    assert "budget=-1: a finite number of DDL tokens" in refused(*link, "--budget", -1)
    assert "budget=inf: a finite number of DDL tokens" in refused(*link, "--budget", "inf")
    said = ("--calibration", tmp_path / "levels.json", "--needs", "products")
    assert "a promise is about questions of which nothing was said" in refused(*link, *said)
    assert "seed" in refused("calibrate", "--corpus", corpus, "--seed", -1, *out)


def test_link_warns_of_dropped_keys_and_writes_the_picture(run, tmp_path):
    path = tmp_path / "x.sqlite"
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript("CREATE TABLE a (id INTEGER); CREATE TABLE b (z INTEGER REFERENCES gone (id));")
    picture = tmp_path / "x.png"
    status, out, err = run(
        "link", path, "every row of b", "--channels", "lexical", "--picture", picture, "--max-risk", "0"
    )
    assert status == 0
    assert err.startswith("warning: ")
    assert "gone" in err
    assert f"picture    {picture}" in out
    assert "verdict    would rather ask: " in out
    assert picture.read_bytes().startswith(b"\x89PNG")


def test_link_prints_a_long_or_strange_question_safely_and_whole_in_json(run, sales):
    question = f"Which customers\x1b[31m bought\n products\u202e? {'x' * 300}"
    asked = ["link", sales, question, "--channels", "lexical"]
    _, out, _ = run(*asked)
    shown = out.splitlines()[0].removeprefix("question   ")
    assert shown.startswith("Which customers\\x1b[31m bought\\n products\\u202e? xxx")
    assert shown.endswith("x...")
    assert shown.count("x") < 210
    assert json.loads(run(*asked, "--json")[1])["question"] == question
    assert common.one_line("Größe, 大きさ?") == "Größe, 大きさ?"
    assert common.one_line("x" * 200) == "x" * 200
    assert common.one_line("x" * 201) == "x" * 197 + "..."


def test_a_number_that_is_no_json_is_a_fault_of_ours():
    with pytest.raises(RuntimeError, match="not finite"):
        common.print_json({"ece": float("nan")})


def test_schema_prints_counts_and_edges(run, sales):
    status, out, err = run("schema", sales)
    assert (status, err) == (0, "")
    assert "foreign keys    2" in out
    assert "edge            customers - transactions (1 key, declared)" in out


def test_data_lists_the_stored_sets(run):
    status, out, _ = run("data")
    assert status == 0
    assert "bird-dev" in out
    assert "1534" in out


def test_fit_then_link_then_evaluate(run, sales, corpus, tmp_path):
    posterior = tmp_path / "new" / "work.nc"
    chosen = ["--variant", "independent", "--variant", "pooled"]
    fitting = ["fit", "--corpus", corpus, "--channels", "lexical", "--draws", "30", "--out", posterior]
    status, out, _ = run(*fitting, *chosen)
    assert status == 0
    assert "fitted     work: 10 questions of 2 databases" in out
    assert "None" not in out
    found = load_posteriors(posterior)
    assert list(found) == [Variant.INDEPENDENT, Variant.POOLED]
    assert found[Variant.POOLED].num_draws == 30
    assert found[Variant.POOLED].databases == (("work", "farm"), ("work", "port"))
    inputs = [name for name in found[Variant.POOLED].provenance if name.startswith("sha256")]
    assert inputs == ["sha256 questions.jsonl.gz", "sha256 schemas.jsonl.gz"]

    status, out, _ = run("link", sales, QUESTION, "--posterior", posterior, "--json")
    assert status == 0
    assert json.loads(out)["posterior"] == f"{posterior}, variant independent"

    # Its own training databases are no test of it, unless one insists.
    evaluating = ["evaluate", "--corpus", corpus, "--scheme", "transfer", "--posterior", posterior]
    status, out, err = run(*evaluating)
    assert (status, out) == (2, "")
    assert "no database is left to score, all are training databases or their twins" in err
    status, out, _ = run(*evaluating, "--keep-twins")
    assert status == 0
    assert "pooled" in out
    assert "hierarchical" not in out
    status, out, err = run(*evaluating, "--variant", "hierarchical")
    assert (status, out) == (2, "")
    assert "the posterior holds independent, pooled only" in err


def test_fit_with_covariates_terms_and_the_nested_method(run, sales, corpus, tmp_path):
    posterior = tmp_path / "rich.nc"
    status, out, err = run(
        *["fit", "--corpus", corpus, "--channels", "lexical", "--draws", "30", "--out", posterior],
        *["--variant", "pooled", "--context", "recommended", "--term", "edge_types", "--method", "nested"],
    )
    assert status == 0, err
    found = load_posteriors(posterior)[Variant.POOLED]
    assert found.method == "nested"
    assert found.standardisation.context == ("log_num_tables", "evidence_mean", "evidence_max")
    assert found.draws["kappa"].shape == (30, 7)
    assert found.draws["delta"].shape == (30, 2)
    assert found.info["pareto_k"] < 0.7
    status, out, _ = run("link", sales, QUESTION, "--posterior", posterior, "--json")
    assert status == 0
    assert json.loads(out)["channels"] == ["token_overlap", "bm25", "hashed_cosine"]


def test_fit_and_evaluate_with_rich_channels_and_forms(run, sales, corpus, tmp_path):
    posterior = tmp_path / "rich.nc"
    status, out, err = run(
        *["fit", "--corpus", corpus, "--channels", "rich", "--draws", "20", "--out", posterior],
        *["--variant", "independent", "--forms", "value", "--forms", "rank"],
    )
    assert status == 0, err
    assert "shape_keys, hashed_cosine; forms value, rank; support all" in out
    found = load_posteriors(posterior)[Variant.INDEPENDENT]
    assert found.forms == ("value", "rank")
    assert found.draws["gamma"].shape == (20, 44)
    status, out, err = run("link", sales, QUESTION, "--posterior", posterior, "--channels", "rich", "--json")
    assert status == 0, err
    assert len(json.loads(out)["channels"]) == 22
    over = ["evaluate", "--corpus", corpus, "--variant", "independent", "--json"]
    status, out, err = run(*over, "--scheme", "transfer", "--posterior", posterior, "--keep-twins")
    assert status == 0, err
    assert json.loads(out)["forms"] == ["value", "rank"]
    status, out, err = run(*over, "--scheme", "in-sample", "--channels", "bm25,name_full", "--forms", "all")
    assert status == 0, err
    assert json.loads(out)["forms"] == ["value", "below_best", "above_mean", "rank"]
    assert json.loads(out)["channels"] == ["bm25", "name_full"]


def test_evaluate_prints_counts_a_row_per_variant_and_the_comparison(run, corpus):
    status, out, err = run("evaluate", "--corpus", corpus, "--scheme", "transfer", "--channels", "lexical")
    assert (status, err) == (0, "")
    assert "n          10 questions of 2 databases; left out: 0 unresolved questions, 0 without gold SQL\n" in out
    assert "twins      0 databases not scored: they, or a twin, were trained on; " in out
    assert "had been left out of the posterior's fit" in out
    assert "shipped lexical posterior" in out
    for variant in ("independent", "fixed", "pooled_coupling", "hierarchical"):
        assert f"\n{variant} " in out
    assert "hierarchical over pooled_coupling: joint log score" in out


def test_in_sample_is_called_descriptive(run, corpus):
    arguments = ["--scheme", "in-sample", "--channels", "lexical", "--variant", "independent", "--draws", "10"]
    status, out, _ = run("evaluate", "--corpus", corpus, *arguments)
    assert status == 0
    assert "descriptive only" in out
    status, out, _ = run("evaluate", "--corpus", corpus, *arguments, "--support", "non-empty", "--json")
    assert json.loads(out)["support"] == "non-empty"


def test_help_is_shown_without_arguments(run):
    status, out, _ = run()
    assert status == 0
    assert out.startswith("Usage: bayeslink")
    assert run("link", "--help")[0] == 0


def test_refused_databases(refused, tmp_path):
    assert "no such file" in refused("link", tmp_path / "missing.sqlite", QUESTION)
    (tmp_path / "text.sqlite").write_text("not a database, but long enough to be looked at " * 40)
    assert "cannot be read" in refused("link", tmp_path / "text.sqlite", QUESTION)
    assert "not a file" in refused("schema", f"sqlite:///{tmp_path / 'none.sqlite'}")
    assert not (tmp_path / "none.sqlite").exists()
    with closing(sqlite3.connect(tmp_path / "bare.sqlite")) as connection:
        connection.execute("VACUUM")
    assert "there are no tables" in refused("link", tmp_path / "bare.sqlite", QUESTION)
    assert "there are no tables" in refused("schema", tmp_path / "bare.sqlite", "--json")
    assert "dialect 'nosuch'" in refused("link", "nosuch://host/db", QUESTION)
    assert "not a file" in refused("link", tmp_path, QUESTION)


def test_a_database_server_without_driver_or_answer_is_refused(refused):
    sentence = refused("link", "postgresql://user:hunter2@localhost:1/db", QUESTION)
    installed = find_spec("psycopg") or find_spec("psycopg2")
    assert ("cannot be read" if installed else "is not installed; pip install it") in sentence
    assert "hunter2" not in sentence


def test_refused_questions(refused, sales):
    for question in ("", "  ", "which of the", "\n\n"):
        assert "no content word" in refused("link", sales, question, "--channels", "lexical")


def test_a_refusal_is_one_sentence_even_where_there_are_warnings(refused, tmp_path):
    path = tmp_path / "x.sqlite"
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript("CREATE TABLE b (z INTEGER REFERENCES gone (id));")
    assert "no content word" in refused("link", path, "which?", "--channels", "lexical")


def test_refused_options_of_link(refused, sales, tmp_path):
    asked = ["link", sales, QUESTION, "--channels", "lexical"]
    assert "cover=1.5" in refused(*asked, "--cover", "1.5")
    assert "max_risk=2" in refused(*asked, "--max-risk", "2")
    assert "ends in .png, .svg or .pdf" in refused(*asked, "--picture", tmp_path / "x.gif")
    assert "use one of lexical, embedding" in refused("link", sales, QUESTION, "--channels", "magic")
    assert "--cover" in refused(*asked, "--cover", "much")


def test_refused_options_of_fit(refused, corpus, tmp_path):
    asked = ["fit", "--corpus", corpus, "--channels", "lexical", "--out", tmp_path / "x.nc"]
    assert "context=['size']: use some of log_num_tables" in refused(*asked, "--context", "size")
    assert "term=['slopes']: use some of correlated, slope_scale" in refused(*asked, "--term", "slopes")
    assert "method='em' is not one of" in refused(*asked, "--method", "em")
    over = ["evaluate", "--corpus", corpus, "--scheme", "transfer", "--channels", "lexical"]
    assert "leave --context out" in refused(*over, "--context", "recommended")
    assert "leave --term out" in refused(*over, "--term", "correlated")
    assert "leave --forms out" in refused(*over, "--forms", "rank")
    assert "forms=['best']: use some of value, below_best" in refused(*asked, "--forms", "best")
    assert "forms=('rank', 'rank') repeats a form" in refused(*asked, "--forms", "rank", "--forms", "rank")


def test_refused_posteriors(refused, sales, corpus, tmp_path):
    broken = tmp_path / "broken.nc"
    broken.write_bytes(b"\x89HDF\r\n\x1a\n" + bytes(200))
    assert "not a posterior file" in refused("link", sales, QUESTION, "--posterior", broken)
    broken.write_bytes(b"")
    assert "not a posterior file" in refused("link", sales, QUESTION, "--posterior", broken)
    assert "does not exist" in refused("link", sales, QUESTION, "--posterior", tmp_path / "none.nc")
    over = ["evaluate", "--corpus", corpus]
    assert "does not exist" in refused(*over, "--scheme", "transfer", "--posterior", tmp_path / "none.nc")
    assert "goes with --scheme transfer" in refused(*over, "--scheme", "in-sample", "--posterior", broken)
    assert "leave --channels out" in refused(
        *over, "--scheme", "transfer", "--posterior", broken, "--channels", "lexical"
    )
    for kind in ("bm25", "rich", "rich_embedding"):
        assert "carries no such posterior" in refused(*over, "--scheme", "transfer", "--channels", kind)
    assert "carries no such posterior" in refused("link", sales, QUESTION, "--channels", "rich")


def test_a_missing_extra_is_named(refused, sales, monkeypatch):
    monkeypatch.setitem(sys.modules, "sentence_transformers", None)
    embedding._model.cache_clear()
    try:
        sentence = refused("link", sales, QUESTION, "--channels", "embedding")
    finally:
        embedding._model.cache_clear()
    assert "pip install 'bayeslink[embeddings]'" in sentence


def test_another_import_error_is_our_fault(run, monkeypatch, sales):
    monkeypatch.setitem(sys.modules, "bayeslink.linker", None)
    monkeypatch.setattr(sys, "argv", ["bayeslink", "link", str(sales), QUESTION])
    with pytest.raises(ImportError):
        cli.main()


def test_refused_questions_to_score(refused, corpus, tmp_path):
    both = ["--corpus", corpus, "--data", "bird"]
    assert "exactly one of --data and --corpus" in refused("evaluate")
    assert "exactly one of --data and --corpus" in refused("evaluate", *both)
    assert "exactly one of --data and --corpus" in refused("fit", "--out", tmp_path / "x.nc")
    assert "no such stored set" in refused("evaluate", "--data", "imdb")
    assert "no such stored set" in refused("evaluate", "--data", "bird", "--split", "train")
    assert "scheme='holdout'" in refused("evaluate", "--data", "bird", "--scheme", "holdout")
    assert "variant='best'" in refused("evaluate", "--data", "bird", "--variant", "best")
    assert "support='half'" in refused("evaluate", "--data", "bird", "--support", "half")
    assert "channels ['smell']" in refused("evaluate", "--data", "bird", "--channels", "smell")
    assert "no such file" in refused("evaluate", "--corpus", tmp_path / "none", "--channels", "lexical")
    assert "no such file" in refused("evaluate", "--corpus", tmp_path / "none", "--scheme", "transfer")
    assert "is not in corpus" in refused("evaluate", "--corpus", corpus, "--split", "dev", "--channels", "lexical")
    hopeless = write_toy_corpus(tmp_path / "hopeless", broken=True)
    assert "nothing to score" in refused("evaluate", "--corpus", hopeless, "--channels", "lexical")
    assert "unpooled says nothing" in refused(
        "evaluate", "--corpus", corpus, "--channels", "lexical", "--variant", "unpooled"
    )


def test_refused_fits(refused, corpus, tmp_path):
    fitting = ["fit", "--corpus", corpus, "--channels", "lexical"]
    assert "is a folder" in refused(*fitting, "--out", tmp_path)
    assert "num_draws=0" in refused(*fitting, "--out", tmp_path / "x.nc", "--draws", "0")
    assert "no database is left" in refused(*fitting, "--out", tmp_path / "x.nc", "--max-tables", "2")
    assert "coupling=nan" in refused(*fitting, "--out", tmp_path / "x.nc", "--coupling", "nan")
    assert "share a database" in refused("fit", "--data", "bird", "--data", "bird", "--out", tmp_path / "x.nc")
    assert not (tmp_path / "x.nc").exists()


def test_a_file_that_cannot_be_written_is_refused_by_its_own_name(refused, corpus, tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    out = tmp_path / "file" / "x.nc"
    fitting = ["fit", "--corpus", corpus, "--channels", "lexical", "--variant", "independent", "--draws", "5"]
    sentence = f"out={str(out)!r} cannot be written (Not a directory); give a file in a folder that can be written to"
    assert refused(*fitting, "--out", out) == sentence

    def deny(path, posteriors):
        raise PermissionError(13, "Permission denied", f"{path}abc.tmp")

    monkeypatch.setattr("bayeslink.inference.posterior.save_posteriors", deny)
    out = tmp_path / "x.nc"
    assert f"out={str(out)!r} cannot be written (Permission denied)" in refused(*fitting, "--out", out)
    assert ".tmp" not in refused(*fitting, "--out", out)


@pytest.mark.parametrize(("option", "value"), [("support", "all"), ("draws", "200"), ("coupling", "0.6")])
def test_what_a_posterior_settles_cannot_be_asked_of_transfer(refused, option, value):
    asked = ["evaluate", "--data", "bird", "--scheme", "transfer", f"--{option}", value]
    assert refused(*asked) == f"{option}={value}: under transfer the posterior has its own; leave --{option} out"


def test_wrong_arguments_are_one_sentence_too(refused):
    assert "No such command" in refused("lnik")
    assert "Missing argument" in refused("link")
    assert "--nope" in refused("schema", "x", "--nope")
    assert "Missing option" in refused("fit")


def test_debug_messages_of_libraries_stay_off_stderr(sales, tmp_path):
    environment = os.environ | {"BAYESLINK_CACHE": str(tmp_path)}
    asked = [sys.executable, "-m", "bayeslink", "link", str(sales), QUESTION, "--channels", "lexical", "--json"]
    found = subprocess.run(asked, capture_output=True, text=True, env=environment, timeout=120, check=False)
    assert found.returncode == 0, found.stderr
    assert found.stderr == ""
    assert json.loads(found.stdout)["database"] == "sales"


def test_status_of_a_refusal_in_a_process_of_its_own(tmp_path):
    asked = [sys.executable, "-m", "bayeslink", "link", str(tmp_path / "no.sqlite"), QUESTION]
    found = subprocess.run(asked, capture_output=True, text=True, timeout=120, check=False)
    assert (found.returncode, found.stdout) == (2, "")
    assert found.stderr.startswith("bayeslink: ")
    assert found.stderr.count("\n") == 1


def test_a_reader_that_stops_early_is_no_error():
    script = "import sys; from bayeslink import cli; sys.argv = ['bayeslink', 'data']; cli.main()"
    with subprocess.Popen(
        [sys.executable, "-c", script], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        process.stdout.close()
        error = process.stderr.read()
        assert process.wait(timeout=120) == 1
    assert error == ""


@pytest.fixture(autouse=True)
def quiet_root_logger():
    """The command line sets up logging once per process; each test gets the handlers back as they were."""
    root = logging.getLogger()
    before = list(root.handlers)
    yield
    root.handlers[:] = before


def test_version_is_printed(run):
    status, out, err = run("--version")
    assert (status, err) == (0, "")
    assert out.startswith("bayeslink ")


def test_columns_are_listed_under_their_tables(run, sales):
    status, out, err = run("link", sales, "What are the names of the products?", "--channels", "lexical", "--columns")
    assert status == 0, err
    line = next(line for line in out.splitlines() if line.startswith("columns    products:"))
    assert "name 0." in line


@pytest.mark.parametrize("model", ["nowhere", "a/b/c", "."])
def test_a_model_without_a_head_is_refused(refused, sales, model):
    said = refused("link", sales, QUESTION, "--channels", "attention", "--model", model)
    assert f"model='{model}' is no folder with head.json" in said


def test_a_model_of_ones_own_needs_a_posterior_of_ones_own(refused, sales, tmp_path, monkeypatch):
    # The check of types asks for a channel's identity, which needs the weights.
    monkeypatch.setattr(attention, "language_model", lambda *_: SimpleNamespace(revision="0"))
    AttentionHead("smollm2", layer=3).save(tmp_path / "head.json")
    said = refused("link", sales, QUESTION, "--channels", "attention", "--model", tmp_path)
    assert "fit one with `bayeslink fit --channels attention --model" in said


def test_a_model_for_channels_that_read_none_is_refused(refused, sales, tmp_path):
    AttentionHead("smollm2", layer=3).save(tmp_path / "head.json")
    said = refused("link", sales, QUESTION, "--channels", "lexical", "--model", tmp_path)
    assert "channels lexical read no language model" in said


POLICY = {
    "principals": {
        "clerk": {"tables": {"customers": ["id"], "transactions": "*"}},
        "owner": {"tables": {"*": "*"}},
    }
}


@pytest.fixture
def guarded(tmp_path) -> tuple[Path, Path]:
    """A database and a policy for it."""
    database, policy = tmp_path / "sales.sqlite", tmp_path / "policy.json"
    with closing(sqlite3.connect(database)) as connection:
        connection.executescript(SALES + "INSERT INTO customers VALUES (1, 'Ada'), (2, 'Bo');")
    policy.write_text(json.dumps(POLICY))
    return database, policy


def test_a_principal_sees_nothing_of_what_is_withheld(run, guarded):
    database, policy = guarded
    asked = ("link", database, QUESTION, "--channels", "lexical", "--ddl", "--policy", policy, "--principal")
    status, out, err = run(*asked, "clerk")
    assert status == 0, err
    assert "note: " in err
    body = out.split("\n", 1)[1].casefold()  # the first line repeats the question
    assert "customers" in body
    assert "product" not in body.replace("product_id", "")
    assert "name" not in body.split("ddl ")[1]
    status, out, err = run(*asked, "owner")
    assert (status, "note: " in err) == (0, False)
    assert "products" in out.split("\n", 1)[1]


def test_a_policy_and_its_principal_go_together(refused, guarded):
    database, policy = guarded
    said = refused("link", database, QUESTION, "--channels", "lexical", "--policy", policy)
    assert "name who asks with --principal" in said
    said = refused("link", database, QUESTION, "--channels", "lexical", "--principal", "clerk")
    assert "no privileges" in said
    said = refused("schema", database, "--policy", policy, "--principal", "nobody")
    assert "nobody" in said


def test_a_schema_without_keys_is_warned_about_and_keys_can_be_guessed(run, tmp_path):
    database = tmp_path / "bare.sqlite"
    with closing(sqlite3.connect(database)) as connection:
        connection.executescript(
            "CREATE TABLE customers (id INTEGER PRIMARY KEY, name TEXT);"
            "CREATE TABLE orders (id INTEGER PRIMARY KEY, customer_id INTEGER);"
        )
    _, _, err = run("link", database, QUESTION, "--channels", "lexical")
    assert "--infer-keys" in err
    status, out, err = run("link", database, QUESTION, "--channels", "lexical", "--infer-keys")
    assert (status, "--infer-keys" in err) == (0, False)
    assert "1 joined pair" in out
    _, out, _ = run("schema", database, "--infer-keys")
    assert "orders(customer_id) -> customers(id)" in out


def test_an_endpoint_answers_and_a_refusal_says_why(run, guarded):
    from chat_server import chat_server

    database, policy = guarded
    with chat_server(["```sql\nSELECT COUNT(*) FROM customers\n```"]) as server:
        asked = ("answer", database, "How many customers?", "--endpoint", server.url, "--model", "stub")
        status, out, err = run(*asked, "--channels", "lexical", "--shown", "whole")
        assert status == 0, err
        assert out.rstrip().endswith("2")
    with chat_server(["```sql\nSELECT name FROM customers\n```"]) as server:
        asked = ("answer", database, "Who buys?", "--endpoint", server.url, "--model", "stub", "--shown", "whole")
        status, out, err = run(*asked, "--channels", "lexical", "--policy", policy, "--principal", "clerk", "--json")
        assert status == 0, err
        found = json.loads(out)
        assert (found["refusal"], found["rows"]) == ("not_allowed", [])
        assert "CREATE TABLE customers" in server.said()
        assert "name TEXT" not in server.said()


def test_execution_accuracy_of_a_stub(run, tmp_path):
    from chat_server import chat_server

    table = Table("t", (Column("a", "INTEGER"),))
    questions = (Question("1", "d", "Which values of a are there in t?", query="SELECT a FROM t"),)
    write_corpus(Corpus("c", {"d": build_graph("d", [table])}, questions), tmp_path / "corpus")
    with closing(sqlite3.connect(tmp_path / "d.sqlite")) as connection:
        connection.executescript("CREATE TABLE t (a INTEGER); INSERT INTO t VALUES (1), (2);")
    with chat_server(["```sql\nSELECT a FROM t ORDER BY a DESC\n```"]) as server:
        status, out, err = run(
            *("execute", "--corpus", tmp_path / "corpus", "--databases", tmp_path, "--endpoint", server.url),
            *("--model", "stub", "--channels", "lexical", "--shown", "whole", "--json"),
        )
    assert status == 0, err
    assert json.loads(out)["execution_accuracy"] == 1.0


def test_how_much_the_model_is_shown_is_one_of_two(refused, guarded):
    asked = ("answer", guarded[0], QUESTION, "--endpoint", "http://localhost:1/v1", "--model", "m", "--shown", "half")
    assert "shown='half'" in refused(*asked)
