"""Benchmarks: `python -m tests.bench` (what `make bench` runs), `... roundtrip`, `... compile`.

All of them print a table and bound their own time; none of them is run by the tests.
"""
