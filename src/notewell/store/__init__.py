"""Keeps documents, chunks, terms and vectors; `sqlite/` is the default engine."""
