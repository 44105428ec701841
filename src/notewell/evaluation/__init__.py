"""Measures retrieval quality on test sets, through the real pipeline."""
