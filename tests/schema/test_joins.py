"""Guessed keys: which pairs are candidates, that scores are probabilities, and how well declared keys are found."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.special import softmax

from bayeslink.schema.corpus import data_home, read_corpus
from bayeslink.schema.graph import Column, Origin, RawKey, SchemaGraph, Table, build_graph
from bayeslink.schema.joins import (
    FEATURES,
    Candidate,
    best_candidates,
    candidates,
    column_numbers,
    infer_keys,
    reference_probabilities,
    with_inferred_keys,
)


def table(name: str, *columns: str, key: str | None = None, kind: str = "INTEGER") -> Table:
    return Table(name, tuple(Column(column, kind, primary_key=column == key) for column in columns))


def found(graph: SchemaGraph, threshold: float | None = None) -> set[str]:
    keys = [item.key for item in infer_keys(graph, threshold)]
    return {f"{key.table}.{key.columns[0]} -> {key.ref_table}.{key.ref_columns[0]}" for key in keys}


def shop(**more: str) -> SchemaGraph:
    return build_graph(
        "shop",
        [
            table("customers", "id", "name", key="id"),
            table("orders", "id", "customer_id", "total", key="id"),
            table("OrderLines", "lineId", "orderId", "product_key", key="lineId"),
            table("products", "product_key", "title", key="product_key"),
        ],
    )


def test_singular_and_plural_snake_and_camel_case_and_keys_of_one_name():
    assert found(shop()) == {
        "orders.customer_id -> customers.id",
        "OrderLines.orderId -> orders.id",
        "OrderLines.product_key -> products.product_key",
    }


def test_a_role_before_the_name_and_a_number_after_it():
    graph = build_graph(
        "league",
        [
            table("team", "team_id", "city", key="team_id"),
            table("match", "match_id", "home_team_id", "team_id_2", "day", key="match_id"),
        ],
    )
    listed = {(item.column, item.ref_column) for item in candidates(graph)}
    assert listed == {(1, 0), (2, 0)}
    assert all(item.features[FEATURES.index("role")] == 1 for item in candidates(graph))


def test_no_candidate_where_nothing_agrees_and_none_for_views_or_itself():
    graph = build_graph("d", [table("a", "id", "x", key="id"), table("b", "id", "y", key="id")])
    assert infer_keys(graph) == []
    view = replace(table("v", "customer_id"), is_view=True)
    listed = candidates(build_graph("d", [table("customer", "id", "customer_id", key="id"), view]))
    assert listed == []


def test_without_primary_keys_names_alone_decide():
    tables = [
        replace(item, columns=tuple(replace(c, primary_key=False) for c in item.columns)) for item in shop().tables
    ]
    assert {"orders.customer_id -> customers.id", "OrderLines.product_key -> products.product_key"} <= found(
        build_graph("shop", tables)
    )


def test_probabilities_are_those_of_a_multinomial_logit_with_none():
    graph = shop()
    listed = candidates(graph)
    weights = np.random.default_rng(0).normal(size=len(FEATURES))
    got = reference_probabilities(weights, listed)
    for number in set(column_numbers(listed).tolist()):
        own = column_numbers(listed) == number
        utility = [0.0, *(np.array(item.features) @ weights for item, mine in zip(listed, own, strict=True) if mine)]
        np.testing.assert_allclose(got[own], softmax(utility)[1:], rtol=1e-10)


def test_huge_weights_do_not_overflow():
    got = reference_probabilities(np.full(len(FEATURES), 1e4), candidates(shop()))
    assert np.isfinite(got).all()
    assert (got <= 1).all()


def test_a_column_references_one_table_and_two_keys_never_point_at_each_other():
    tables = [table(name, "shared_code", "x") for name in "abcde"]
    keys = [item.key for item in infer_keys(build_graph("d", tables), 0.0)]
    assert len({(key.table, key.columns) for key in keys}) == len(keys)
    pairs = [frozenset((key.table, key.ref_table)) for key in keys]
    assert len(set(pairs)) == len(pairs)


def test_guessed_keys_are_marked_and_never_replace_a_stated_one():
    stated = [RawKey("orders", ("customer_id",), "customers", ("id",))]
    graph = build_graph("shop", shop().tables, stated)
    more = with_inferred_keys(graph)
    assert [key.origin for key in more.foreign_keys] == [Origin.DECLARED, Origin.INFERRED, Origin.INFERRED]
    assert len(more.edges) == 3
    assert with_inferred_keys(more) == more


@pytest.mark.parametrize("threshold", [-0.1, 1.5])
def test_a_threshold_is_a_probability(threshold):
    with pytest.raises(ValueError, match="threshold"):
        infer_keys(shop(), threshold)


def test_the_threshold_is_on_any_reference_of_a_column_and_the_best_one_is_kept():
    listed = [Candidate(0, 1, parent, 0, ()) for parent in (1, 2)] + [Candidate(1, 1, 2, 0, ())]
    probability = np.array([0.3, 0.4, 0.6])
    kept = [(score, item.table, item.ref_table) for score, item in best_candidates(listed, probability, 0.65)]
    assert kept == [(0.4, 0, 2)]
    assert best_candidates(listed, probability, 0.75) == []
    assert [item.table for _, item in best_candidates(listed, probability, 0.5)] == [1, 0]


def test_an_identifier_alone_is_no_role_and_a_first_column_may_be_a_key_where_none_is_stated():
    assert candidates(build_graph("d", [table("boats", "id", key="id"), table("visits", "day", "owner_id")])) == []
    listed = candidates(build_graph("d", [table("ports", "harbour", "size"), table("visits", "day", "harbour")]))
    assert [(item.table, item.column, item.ref_table, item.ref_column) for item in listed] == [(1, 1, 0, 0)]


def test_dropped_keys_stay_known_when_keys_are_guessed():
    graph = build_graph("shop", shop().tables, [RawKey("orders", ("customer_id",), "nowhere", ("id",))])
    assert len(graph.dropped) == 1
    assert with_inferred_keys(graph).dropped[:1] == graph.dropped


def test_a_higher_threshold_keeps_fewer():
    graph = shop()
    assert found(graph, 0.99) <= found(graph, 0.5) <= found(graph, 0.0)
    assert found(graph, 1.0) == set()


def test_declared_keys_of_databases_that_were_not_fitted_on_are_found():
    """A guard, not a result: experiments/warehouses reports the figures."""
    corpus = read_corpus(data_home() / "bird")
    right = guessed = there = 0
    for graph in corpus.schemas.values():
        bare = replace(graph, foreign_keys=(), edges=())
        pairs = {(edge.first, edge.second) for edge in with_inferred_keys(bare).edges}
        declared = {(edge.first, edge.second) for edge in graph.edges}
        right, guessed, there = right + len(pairs & declared), guessed + len(pairs), there + len(declared)
    assert right / guessed > 0.7
    assert right / there > 0.7
