"""What notebooks show: every value has a page that says what it holds and runs nothing, and most have a picture."""

from collections import Counter
from dataclasses import replace
from html.parser import HTMLParser

import numpy as np
import pytest

from bayeslink.decision.selection import Selection
from bayeslink.inference.factored import FactoredDistribution
from bayeslink.inference.posterior import DatabaseDraws
from bayeslink.inference.predictive import SubgraphDistribution, predict
from bayeslink.linker import SchemaLinker
from bayeslink.model.hierarchy import Variant
from bayeslink.plots import views
from bayeslink.plots.pages import render, schema_svg
from bayeslink.schema.graph import Column, RawKey, Table, build_graph
from tests.worlds import make_evidence

RUNS = "document.title='owned'"
HOSTILE = (
    f"<script>{RUNS}</script>",
    f"\"'><img src=x onerror={RUNS}>",
    f"</svg><svg onload={RUNS}>",
    f"]]><![CDATA[<script>{RUNS}</script>",
    f"javascript:{RUNS}",
    "a & b\x00\u202e\u200f{{ 7 * 7 }}",
)


class Elements(HTMLParser):
    """Counts elements and keeps attributes that run something."""

    def __init__(self, text):
        super().__init__()
        self.found, self.events = Counter(), []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.found[tag] += 1
        self.events += [name for name, value in attrs if name.startswith("on") or "javascript:" in (value or "")]


@pytest.fixture(scope="module")
def linker():
    """A hub that every hostile table references."""
    tables = [Table("customers", (Column("id"), Column("name")))]
    tables += [Table(name, (Column("id"), Column("customer"))) for name in HOSTILE]
    keys = [RawKey(name, ("customer",), "customers", ("id",)) for name in HOSTILE]
    graph = build_graph("<b>shop</b>\x00", tables, keys)
    return SchemaLinker.from_graph(graph, channels="lexical")


@pytest.fixture(scope="module")
def link(linker):
    return linker.link("Which customers? <script>x</script>")


@pytest.fixture(scope="module")
def large():
    """A chain of thirty tables, for two questions."""
    rng = np.random.default_rng(3)
    values = rng.standard_normal((2, 30, 1))
    edges = np.array([(node, node + 1) for node in range(29)])
    draws = DatabaseDraws(np.full(8, -2.0), np.ones((8, 1)), np.linspace(0.0, 1.0, 8))
    return predict(make_evidence(values, edges, None), draws)[0]


def hostile_posterior(linker):
    posterior = linker.posteriors[Variant.HIERARCHICAL]
    names = tuple(f"{name}{HOSTILE[0]}" for name in posterior.channels)
    return replace(posterior, standardisation=replace(posterior.standardisation, channels=names))


def shown(linker, link, large):
    selection = replace(link.cover, rule=HOSTILE[0])
    everything = {
        "linker": linker,
        "link": link,
        "distribution": link.distribution,
        "factored": large,
        "posterior": hostile_posterior(linker),
        "selection": selection,
    }
    return {name: value._repr_html_() for name, value in everything.items()}


@pytest.fixture(scope="module")
def pages(linker, link, large):
    return shown(linker, link, large)


@pytest.mark.parametrize("name", ["linker", "link", "distribution", "factored", "posterior", "selection"])
def test_no_name_becomes_markup(pages, name):
    seen = Elements(pages[name])
    pictures = int(name in ("linker", "link", "distribution", "factored"))
    assert (seen.found["svg"], seen.events) == (pictures, [])
    assert seen.found["script"] == seen.found["img"] == 0
    assert not set(pages[name]) & {"\x00", "\u202e", "\u200f"}
    assert seen.found["tr"] > 1


def test_the_check_finds_what_is_not_escaped(pages):
    unsafe = pages["link"].replace("&lt;", "<").replace("&gt;", ">").replace("&#34;", '"').replace("&#39;", "'")
    seen = Elements(unsafe)
    assert seen.found["script"]
    assert "onload" in Elements(unsafe.replace("<script>", "")).events


def test_a_link_shows_what_it_holds(link, pages):
    text = pages["link"]
    assert f"holds every needed table with probability {link.cover.cover_probability[0]:.3f}" in text
    assert f"{link.probabilities[0]:.3f}" in text
    assert "Would" in text
    assert "a &amp; b\ufffd\ufffd\ufffd{{ 7 * 7 }}" in text


def test_a_distribution_shows_the_first_question_and_says_so(large, pages):
    assert isinstance(large, FactoredDistribution)
    text = pages["factored"]
    assert "the first of 2 questions" in text
    assert "6 less probable tables not drawn" in text
    assert "6 less probable tables not listed" in text
    assert f"Entropy {large.entropy[0]:.2f} nats" in text
    assert f"{large.marginals[0].max():.3f}" in text


def test_an_empty_distribution_says_so():
    empty = SubgraphDistribution(np.zeros((0, 4)), np.zeros(0), np.zeros((0, 2), dtype=np.int64))
    assert "0 questions over 2 tables" in empty._repr_html_()


def test_a_posterior_shows_its_parameters_and_failed_checks(linker):
    posterior = linker.posteriors[Variant.HIERARCHICAL]
    frame = posterior.to_frame()
    assert frame.loc["beta", "mean"] == pytest.approx(posterior.draws["beta"].mean())
    assert frame.loc["gamma[bm25]", "sd"] == pytest.approx(posterior.draws["gamma"][:, 1].std(ddof=1))
    text = posterior._repr_html_()
    assert f"<td>{posterior.draws['beta'].mean():.2f}</td>" in text
    assert "Failed" not in text
    failing = replace(posterior, checks={"rhat": False})
    assert "Failed checks: rhat" in failing._repr_html_()
    assert "hierarchical, laplace, 200 draws, 196 databases" in repr(posterior)


def test_a_selection_shows_each_question():
    chosen = np.array([[True, False, True], [False, False, False]])
    selection = Selection(chosen, np.array([False, True]), "a rule", np.array([0.75, 0.5]))
    frame = selection.to_frame(["a", "b", "c"])
    assert frame["tables"].tolist() == [("a", "c"), ()]
    assert frame["size"].tolist() == [2, 0]
    assert frame["abstained"].tolist() == [False, True]
    text = selection._repr_html_()
    assert "<td>0, 2</td>" in text
    assert "no table" in text
    assert "0.750" in text
    many = Selection(np.ones((30, 1), dtype=bool), np.zeros(30, dtype=bool), "all", np.ones(30))
    assert "6 more questions" in many._repr_html_()


def test_a_linker_shows_and_gives_its_schema(linker, pages):
    frame = linker.to_frame().set_index("table")
    assert frame.loc["customers", "joined_to"] == HOSTILE
    assert frame["keys"].tolist() == [0] + [1] * len(HOSTILE)
    graph = linker.to_networkx()
    assert set(graph.nodes) == {"customers", *HOSTILE}
    assert graph.edges["customers", HOSTILE[0]]["keys"] == [f"{HOSTILE[0]}.customer = customers.id"]
    assert "7 tables, 6 foreign keys, 6 joined pairs" in pages["linker"]
    assert "2 columns" in pages["linker"]
    assert "7 tables, shipped lexical posterior" in repr(linker)


def test_a_link_as_a_graph_has_its_probabilities(link):
    graph = link.to_networkx()
    for place, name in enumerate(link.graph.table_names):
        node = graph.nodes[name]
        assert node["probability"] == link.probabilities[place]
        assert node["in_mode"] == (name in link.mode)
        assert node["in_cover"] == (name in link.tables)
    for edge, both, gain in zip(link.graph.edges, link.distribution.pair_marginals[0], link.coupling, strict=True):
        found = graph.edges[link.graph.table_names[edge.first], link.graph.table_names[edge.second]]
        assert (found["probability"], found["coupling"]) == (both, gain)
        assert len(found["keys"]) == 1


def test_the_draws_behind_a_link_are_inference_data(link):
    data = link.to_arviz().posterior
    np.testing.assert_array_equal(data["coupling"].values[0], link.draws.coupling)
    np.testing.assert_array_equal(data["slopes"].sel(predictors="bm25").values[0], link.draws.slopes[:, 1])
    assert data.attrs["question"] == link.question
    with pytest.raises(ValueError, match="ask the link without them"):
        link.answer({"customers": True}).to_arviz()
    with pytest.raises(ValueError, match=r"make it with SchemaLinker\.link"):
        replace(link, draws=None).to_arviz()


def test_a_distribution_as_a_table_and_a_graph(link, large):
    frame = large.to_frame()
    assert frame.shape == (60, 4)
    np.testing.assert_array_equal(frame["probability"].to_numpy().reshape(2, 30), large.marginals)
    np.testing.assert_array_equal(frame["in_mode"].to_numpy().reshape(2, 30), large.mode)
    graph = large.to_networkx(question=1)
    assert graph.nodes[4] == {"probability": large.marginals[1, 4], "in_mode": bool(large.mode[1, 4])}
    assert graph.edges[4, 5]["probability"] == large.pair_marginals[1, 4]
    named = link.distribution.to_networkx(link.graph.table_names)
    assert set(named.nodes) == set(link.graph.table_names)


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda item: item.to_frame(["a"]), "names has 1 for 30 tables; give one for each"),
        (lambda item: item.to_networkx(["a"] * 30), "names has one twice"),
        (lambda item: item.to_networkx(question=2), "question=2: there are 2; count them from 0"),
        (lambda item: item.plot(question=-1), "question=-1: there are 2; count them from 0"),
        (lambda item: item.plot("x.gif"), r"picture='x\.gif'"),
    ],
)
def test_what_cannot_be_shown_is_refused_in_a_sentence(large, call, sentence):
    with pytest.raises(ValueError, match=sentence):
        call(large)


def test_pictures_are_drawn_and_written(linker, link, large, tmp_path):
    texts = [text.get_text() for text in linker.plot(tmp_path / "linker.png").axes[0].texts]
    assert "customers\n2 columns" in texts
    figure = large.plot(tmp_path / "large.svg", question=1, title="a question")
    best = int(large.marginals[1].argmax())
    assert f"{best}\n{large.marginals[1, best]:.2f}" in [text.get_text() for text in figure.axes[0].texts]
    figure = linker.posteriors[Variant.HIERARCHICAL].plot(tmp_path / "posterior.png")
    assert "beta" in [label.get_text() for label in figure.axes[0].get_yticklabels()]
    link.distribution.plot(names=link.graph.table_names)
    assert {path.name for path in tmp_path.iterdir()} == {"linker.png", "large.svg", "posterior.png"}


def test_a_posterior_of_many_databases_draws_the_first_parameters(linker):
    posterior = linker.posteriors[Variant.HIERARCHICAL]
    draws = {**posterior.draws, "alpha_d": np.random.default_rng(0).standard_normal((200, len(posterior.databases)))}
    many = replace(posterior, draws=draws)
    assert "the first 60 of" in many.plot()._suptitle.get_text()
    assert "more parameters" in many._repr_html_()


def test_other_values_have_no_view():
    for show in (views.page, views.figure):
        with pytest.raises(TypeError, match="value is a int"):
            show(3)


def test_what_a_template_misses_is_an_error():
    with pytest.raises(Exception, match="'what' is undefined"):
        render("empty.html.j2")


def test_captions_stand_below_names():
    text = schema_svg(
        ["a", "b"], np.array([0.2, 0.9]), np.array([[0, 1]]), np.array([False, True]), captions=["<one>", "two"]
    )
    assert text.count("&lt;one&gt;</text>") == text.count("two</text>") == 1
    assert "0.90" not in text
