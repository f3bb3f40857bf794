"""A schema as questions are linked to it: partitions folded, keys guessed where asked for, glued names in words."""

from bayeslink.schema.graph import SchemaGraph
from bayeslink.schema.joins import with_inferred_keys
from bayeslink.schema.partitions import fold_partitions
from bayeslink.schema.segmentation import with_natural_names

__all__ = ["linkable"]


def linkable(graph: SchemaGraph, *, fold: bool = True, infer_keys: bool = False) -> SchemaGraph:
    """The schema with what evidence and model need of it.

    Args:
        graph: The schema as it was read.
        fold: One table for each family of dated or numbered ones (`partitions`).
        infer_keys: Add guessed keys between tables that no key joins (`joins`).
    """
    folded = fold_partitions(graph) if fold else graph
    return with_natural_names(with_inferred_keys(folded) if infer_keys else folded)
