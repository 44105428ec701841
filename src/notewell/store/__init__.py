"""Where documents, chunks, terms and vectors are kept; `sqlite` is the default engine and the only one with SQL."""
