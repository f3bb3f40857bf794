"""Evidence of a pool: the two graphs over all databases, and what belongs to which database."""

import numpy as np
import pytest
from conftest import QUESTIONS, harbour

from bayeslink.evidence.channel import compute_evidence
from bayeslink.evidence.fields import Field, FieldBM25
from bayeslink.evidence.lexical import BM25, TokenOverlap
from bayeslink.evidence.pool import databases_graph, pool_evidence, tables_graph
from bayeslink.schema.graph import Column, Table, build_graph

SHOP = build_graph(
    "shop",
    [
        Table("ships", (Column("id"), Column("maker")), natural_name="model ships"),
        Table("orders", (Column("id"), Column("ship_id"), Column("price", description="in crowns")), schema="main"),
    ],
)
GRAPHS = {"harbour": harbour(), "shop": SHOP}


def test_every_table_is_there_once_database_by_database():
    graph = tables_graph(GRAPHS)
    assert [table.name for table in graph.tables] == [t.name for g in GRAPHS.values() for t in g.tables]
    assert graph.edges == ()
    assert [table.columns for table in graph.tables] == [t.columns for g in GRAPHS.values() for t in g.tables]
    assert graph.tables[5].natural_name == "model ships"


def test_every_database_is_a_table_of_all_its_words():
    graph = databases_graph(GRAPHS)
    assert [table.name for table in graph.tables] == ["harbour", "shop"]
    assert [column.name for column in graph.tables[1].columns] == ["ships", "id", "maker", "orders", "ship_id", "price"]
    scores = FieldBM25(Field.COLUMNS).score(["Which maker has the lowest price?", "wind speed"], graph)
    assert scores[0, 1] > scores[0, 0] == 0
    assert scores[1, 0] > scores[1, 1] == 0


def test_the_parts_are_the_databases_own():
    found = pool_evidence(GRAPHS, QUESTIONS, (TokenOverlap(),), (BM25(), TokenOverlap()), dataset="made")
    assert [item.key for item in found.databases] == [("made", "harbour"), ("made", "shop")]
    alone = compute_evidence(SHOP, QUESTIONS, (TokenOverlap(),))
    np.testing.assert_array_equal(found.databases[1].values, alone.values)
    assert found.tables.shape == (len(QUESTIONS), 7, 2)
    assert found.whole.shape == (len(QUESTIONS), 2, 2)
    first, second = found.parts(found.tables)
    np.testing.assert_array_equal(np.concatenate([first, second], axis=1), found.tables)
    assert second.shape[1] == 2
    # A word of several tables of the pool weighs less there than in the database where it is rare.
    ships = compute_evidence(SHOP, ["ships"], (BM25(),)).values[0, 0, 0]
    assert pool_evidence(GRAPHS, ["ships"], (), (BM25(),)).tables[0, 5, 0] != ships


def test_a_pool_needs_a_database():
    for build in (tables_graph, databases_graph):
        with pytest.raises(ValueError, match="graphs hold no database"):
            build({})
