"""A second look at the best candidates: a query and texts come in, one score a text goes out."""
