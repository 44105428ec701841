"""Keeps chunks, terms and vectors in step; the only place with SQL."""
