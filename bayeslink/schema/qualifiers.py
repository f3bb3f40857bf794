"""Qualifiers of dotted table names as the tables' schemas.

Catalogues of warehouses list tables by full name, `project.dataset.table`. What says what a table holds is its last
part; the parts before it are its schema, alike for many tables, and no evidence about one of them.
"""

from dataclasses import replace

from bayeslink.schema.graph import SchemaGraph, build_graph, raw_key

__all__ = ["split_qualifiers"]


def split_qualifiers(graph: SchemaGraph) -> SchemaGraph:
    """The schema with every table's qualifiers as its schema; full names, and the order of tables, stay as they are.

    A table that has a schema already keeps its name.
    """
    tables = []
    for table in graph.tables:
        qualifier, _, name = table.name.rpartition(".")
        split = table.schema is None and qualifier and name
        tables.append(replace(table, schema=qualifier, name=name) if split else table)
    keys = [raw_key(key, tables[key.table], tables[key.ref_table]) for key in graph.foreign_keys]
    same = build_graph(graph.name, tables, keys, graph.dialect, graph.warnings)
    return replace(same, dropped=(*graph.dropped, *same.dropped))
