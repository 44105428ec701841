"""The only read path: a query in, ranked and cited hits out."""
