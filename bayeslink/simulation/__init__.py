"""Worlds where the truth is known, and what exact inference costs on them."""
