"""A schema for other libraries: pandas and networkx."""

import networkx as nx
import pandas as pd

from bayeslink.schema.graph import ForeignKey, SchemaGraph

__all__ = ["schema_frame", "schema_networkx"]


def schema_networkx(graph: SchemaGraph) -> nx.Graph:
    """The schema graph by full table names; each edge has its `keys`, as texts "a.x = b.y"."""
    names = graph.table_names
    found = nx.Graph(name=graph.name)
    found.add_nodes_from(names)
    for edge in graph.edges:
        found.add_edge(names[edge.first], names[edge.second], keys=[_text(graph, key) for key in edge.keys])
    return found


def schema_frame(graph: SchemaGraph) -> pd.DataFrame:
    """A row for each table: its name, the numbers of its columns and own keys, and the tables it is joined to."""
    joined: list[list[str]] = [[] for _ in graph.tables]
    for edge in graph.edges:
        joined[edge.first].append(graph.table_names[edge.second])
        joined[edge.second].append(graph.table_names[edge.first])
    return pd.DataFrame(
        {
            "table": list(graph.table_names),
            "columns": [len(table.columns) for table in graph.tables],
            "keys": [sum(key.table == place for key in graph.foreign_keys) for place in range(graph.num_tables)],
            "joined_to": [tuple(names) for names in joined],
        }
    )


def _text(graph: SchemaGraph, key: ForeignKey) -> str:
    own, other = graph.table_names[key.table], graph.table_names[key.ref_table]
    if not key.columns:
        return f"{own} reads {other}"
    pairs = zip(key.columns, key.ref_columns, strict=True)
    return ", ".join(f"{own}.{column} = {other}.{ref_column}" for column, ref_column in pairs)
