"""Speed, memory and disk of recollect beside other ways to keep the same notes; run it with `python -m benchmarks`."""
