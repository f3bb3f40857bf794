import numpy as np
import pytest
from conftest import QUESTIONS, harbour

from bayeslink.evidence.columns import COLUMN_KINDS, FACTS, column_channels, column_evidence, column_graph, column_owner
from bayeslink.schema.graph import Column, SchemaGraph, Table


def at(evidence, question: int, column: int, name: str) -> float:
    return float(evidence.values[question, column, evidence.names.index(name)])


def test_each_column_is_a_node_with_its_tables_name_beside_it(graph):
    nodes = column_graph(graph)
    assert nodes.num_tables == sum(len(table.columns) for table in graph.tables)
    assert nodes.tables[1].name == "shipName"
    assert nodes.tables[1].columns[0].name == "ships shipName"
    assert column_owner(graph).tolist()[:5] == [0, 0, 0, 0, 1]
    assert not nodes.edges


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


def test_an_unknown_kind_is_refused():
    with pytest.raises(ValueError, match=f"kind='all': use one of {', '.join(COLUMN_KINDS)}"):
        column_channels("all")
