"""A calibrated joint posterior over the part of a database schema that a question needs."""
