"""Searches the index: reads the question, finds and scores chunks, and returns ranked hits with citations."""
