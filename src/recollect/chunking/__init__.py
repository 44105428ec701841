"""Documents in, chunks with exact line spans out; pure."""
