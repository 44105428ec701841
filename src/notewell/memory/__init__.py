"""`Memory` and what it offers."""
