"""How a selection arises: a density on subsets of a graph's nodes, up to its normaliser."""
