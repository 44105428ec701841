"""Speed, memory and disk of notewell beside other ways to keep the same notes; run it with `python -m benchmarks`."""
