"""Texts in, unit vectors out: the local model, its cache and the choice of an embedder."""
