"""Keeps the index up to date with the files: the only write path."""
