"""Retrieval quality: public test sets in, measured figures with their uncertainty out, through the real pipeline."""
