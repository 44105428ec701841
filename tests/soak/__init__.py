"""Long runs that the test suite holds in short: `python -m tests.soak --help`."""
