import numpy as np
import pytest
from conftest import QUESTIONS, harbour

from bayeslink.evidence.columns import COLUMN_KINDS, FACTS, column_channels, column_evidence, column_graph, column_owner
from bayeslink.schema.graph import Column, RawKey, SchemaGraph, Table, build_graph

FORMS = ("", "below_own_", "below_all_")


def at(evidence, question: int, column: int, name: str) -> float:
    return float(evidence.values[question, column, evidence.names.index(name)])


def test_each_column_is_a_node_with_its_tables_name_beside_it(graph):
    nodes = column_graph(graph)
    assert nodes.num_tables == sum(len(table.columns) for table in graph.tables)
    assert nodes.tables[1].name == "shipName"
    assert nodes.tables[1].columns[0].name == "ships shipName"
    assert column_owner(graph).tolist()[:5] == [0, 0, 0, 0, 1]
    assert not nodes.edges


def test_natural_names_stand_beside_those_of_the_catalogue():
    """Where a table or column has none, its own name stands in; type and description stay the column's."""
    told = Column("gt", "real", natural_name="gross tonnage", description="of the hull")
    tables = (Table("shp", (told, Column("nm")), natural_name="ships"), Table("prt", (told, Column("nm"))))
    nodes = column_graph(SchemaGraph("natural", tables)).tables
    texts = [(column.name, column.natural_name) for node in nodes for column in node.columns]
    assert texts == [
        ("shp gt", "ships gross tonnage"),
        ("shp nm", "ships nm"),
        ("prt gt", "prt gross tonnage"),
        ("prt nm", "prt nm"),
    ]
    assert [node.natural_name for node in nodes] == ["gross tonnage", None] * 2
    assert (nodes[0].columns[0].type, nodes[0].columns[0].description) == ("real", "of the hull")
    alone = column_graph(SchemaGraph("natural", tables), beside=False).tables
    assert [node.columns for node in alone] == [(column,) for table in tables for column in table.columns]


def test_two_columns_of_one_name_are_two_nodes(graph):
    keys = [node.key for node in column_graph(graph).tables]
    assert len(set(keys)) == len(keys)


def test_the_column_that_is_asked_for_is_the_best(graph):
    evidence = column_evidence(["What is the gross tonnage of the ships?"], graph)
    owner = column_owner(graph)
    tonnage = 3
    assert graph.tables[0].columns[tonnage].name == "grossTonnage"
    assert at(evidence, 0, tonnage, "name_full") == 1.0
    assert at(evidence, 0, tonnage, "below_all_bm25_columns") == 0.0
    assert at(evidence, 0, tonnage, "below_own_hashed_cosine") == 0.0
    assert (evidence.values[0, :, evidence.names.index("below_own_name_share")] <= 0).all()
    assert len(owner) == evidence.values.shape[1]


def test_facts_are_the_catalogues(graph):
    evidence = column_evidence(QUESTIONS[:1], graph)
    home = [column.name for column in graph.tables[0].columns].index("homePortID")
    assert at(evidence, 0, home, "foreign_key") == 1.0
    assert at(evidence, 0, home, "referenced") == 0.0
    assert at(evidence, 0, 0, "referenced") == 1.0
    assert at(evidence, 0, home, "log_columns") == pytest.approx(np.log(4))
    assert evidence.names[-len(FACTS) :] == FACTS


def test_columns_move_with_their_tables():
    order = (3, 0, 4, 2, 1)
    plain, moved = (column_evidence(QUESTIONS[:3], harbour(places)) for places in ((0, 1, 2, 3, 4), order))
    owner, other = column_owner(harbour()), column_owner(harbour(order))
    for place, table in enumerate(order):
        assert np.allclose(moved.values[:, other == place], plain.values[:, owner == table], atol=1e-12)


def test_identifiers_and_types_are_the_columns_own():
    """The table's name beside a column is no identifier of its, and no date."""
    tables = (
        Table("ships", (Column("shipName"), Column("home_port"))),
        Table("race_dates", (Column("id", "int"), Column("winner", "text"))),
    )
    graph = SchemaGraph("identifiers", tables)
    asked = ["home_port = 3 refers to a port", "Show ships shipname, in 1999"]
    evidence = column_evidence(asked, graph)
    hint, date = (evidence.names.index(name) for name in ("identifier_hint", "literal_date"))
    assert evidence.values[0, :, hint].tolist() == [0.0, pytest.approx(np.log(2)), 0.0, 0.0]
    assert evidence.values[1, :, hint].tolist() == [pytest.approx(np.log(2)), 0.0, 0.0, 0.0]
    assert (evidence.values[1, :, date] == 0).all()


def test_a_schema_is_indexed_once(graph):
    from bayeslink.evidence import columns

    assert columns._BESIDE(graph) is columns._BESIDE(graph)
    assert columns.column_channels("lexical") is columns.column_channels("lexical")


def test_a_schema_without_columns_has_no_row():
    evidence = column_evidence(["who?"], SchemaGraph("bare", (Table("t", ()),)))
    assert evidence.values.shape == (1, 0, len(evidence.names))


def test_a_table_without_columns_between_others_is_passed_over():
    graph = SchemaGraph("gaps", (Table("a", (Column("x"),)), Table("b", ()), Table("c", (Column("x"), Column("y")))))
    evidence = column_evidence(["the x of c"], graph)
    assert evidence.owner.tolist() == [0, 2, 2]
    assert np.isfinite(evidence.values).all()


def test_attention_is_read_from_its_scores(graph, embeddings):
    count = len(column_owner(graph))
    scores = np.linspace(0.1, 1.0, count)[None]
    evidence = column_evidence(QUESTIONS[:1], graph, "attention", attention=scores)
    assert at(evidence, 0, count - 1, "attention") == pytest.approx(np.log(1.0 / scores.sum()), abs=1e-6)
    with pytest.raises(ValueError, match="head=None"):
        column_evidence(QUESTIONS[:1], graph, "attention")


class Given:
    """A channel with one score for each node, whatever the schema is."""

    def __init__(self, name: str, values: list[list[float]]):
        self.name, self.identity, self.values = name, f"given {name}", np.array(values)

    def score(self, questions, graph):
        assert graph.num_tables == self.values.shape[1]
        return self.values


def test_forms_are_below_the_best_of_the_own_table_and_of_the_whole_schema(monkeypatch):
    """By hand: three columns, a table without any, two columns; two channels and two questions."""
    from bayeslink.evidence import columns

    first = Given("first", [[1.0, 4.0, 2.0, 3.0, 0.0], [-1.0, -3.0, -2.0, 5.0, 7.0]])
    second = Given("second", [[0.0, 0.0, 6.0, 9.0, 9.0], [2.0, 2.0, 2.0, 1.0, 0.5]])
    monkeypatch.setattr(columns, "column_channels", lambda kind: (first, second))
    names = ("abc", "", "de")
    graph = SchemaGraph("forms", tuple(Table(f"t{n}", tuple(map(Column, own))) for n, own in enumerate(names)))
    evidence = column_evidence(["one?", "two?"], graph)
    assert evidence.owner.tolist() == [0, 0, 0, 2, 2]
    expected = {
        "first": first.values.tolist(),
        "below_own_first": [[-3.0, 0.0, -2.0, 0.0, -3.0], [0.0, -2.0, -1.0, -2.0, 0.0]],
        "below_all_first": [[-3.0, 0.0, -2.0, -1.0, -4.0], [-8.0, -10.0, -9.0, -2.0, 0.0]],
        "second": second.values.tolist(),
        "below_own_second": [[-6.0, -6.0, 0.0, 0.0, 0.0], [0.0, 0.0, 0.0, 0.0, -0.5]],
        "below_all_second": [[-9.0, -9.0, -3.0, 0.0, 0.0], [0.0, 0.0, 0.0, -1.0, -1.5]],
    }
    assert evidence.names == (*expected, *FACTS)
    for place, (name, values) in enumerate(expected.items()):
        assert evidence.values[:, :, place].tolist() == values, name


def test_forms_of_every_channel_are_the_plain_ones(graph):
    evidence = column_evidence(QUESTIONS, graph)
    for name in (channel.name for channel in column_channels("lexical")):
        raw, own, whole = (evidence.values[..., evidence.names.index(f"{form}{name}")] for form in FORMS)
        for question in range(len(QUESTIONS)):
            for column, table in enumerate(evidence.owner):
                rivals = [raw[question, c] for c in range(len(evidence.owner)) if evidence.owner[c] == table]
                assert own[question, column] == raw[question, column] - max(rivals)
                assert whole[question, column] == raw[question, column] - max(raw[question])


def test_every_fact_by_hand():
    """A composite key, a key that refers to a table further on, names in another case, and a table without a key."""
    lines = Table("lines", tuple(map(Column, ("Order_ID", "no", "item"))), key_columns=("order_id", "NO"))
    items = Table("items", (Column("id"), Column("label")), key_columns=("id",))
    notes = Table("notes", (Column("id"),))
    graph = build_graph("facts", [lines, items, notes], [RawKey("lines", ("ITEM",), "items", ("ID",))])
    evidence = column_evidence(["what?"], graph)
    facts = evidence.values[0, :, [evidence.names.index(name) for name in FACTS]].T
    three, two = np.log(3), np.log(2)
    by_hand = [[1, 0, 0, three], [1, 0, 0, three], [0, 1, 0, three], [1, 0, 1, two], [0, 0, 0, two], [0, 0, 0, 0]]
    assert facts.tolist() == by_hand


def test_attention_is_read_at_the_head_that_is_given(graph, embeddings, monkeypatch):
    from bayeslink.evidence import columns
    from bayeslink.evidence.attention import EPSILON, AttentionHead, Candidates

    count = len(column_owner(graph))
    scores, read = np.random.default_rng(0).random((2, count)) ** 3, []

    def score(head, questions, given):
        read.append((head.layer, list(questions), given is graph))
        return Candidates(scores, column_owner(graph), np.zeros(count, dtype=np.int64))

    monkeypatch.setattr(columns, "score_candidates", score)
    evidence = column_evidence(QUESTIONS[:2], graph, "attention", head=AttentionHead("tiny", layer=7))
    assert read == [(7, list(QUESTIONS[:2]), True)]
    share = np.log((scores + EPSILON) / (scores + EPSILON).sum(axis=1, keepdims=True) + EPSILON)
    np.testing.assert_allclose(evidence.values[..., evidence.names.index("attention")], share, rtol=1e-10)
    best = np.array([[row[evidence.owner == table].max() for table in evidence.owner] for row in share])
    found = (evidence.values[..., evidence.names.index(f"below_{form}_attention")] for form in ("own", "all"))
    for values, rival in zip(found, (best, share.max(axis=1, keepdims=True)), strict=True):
        np.testing.assert_allclose(values, share - rival, rtol=1e-10)


def test_kinds_have_their_channels():
    lexical, embedding, attention = ([channel.name for channel in column_channels(kind)] for kind in COLUMN_KINDS)
    assert embedding == attention
    assert embedding[: len(lexical)] == lexical
    assert any("cosine" in name for name in embedding[len(lexical) :])


def test_an_unknown_kind_is_refused():
    with pytest.raises(ValueError, match=f"kind='all': use one of {', '.join(COLUMN_KINDS)}"):
        column_channels("all")
