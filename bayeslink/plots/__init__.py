"""Figures: a table or a distribution in, axes out."""
