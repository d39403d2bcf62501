"""Benchmarks of TLX itself: `python -m tests.bench compile`, `... roundtrip`, `... parse`, `... tensor_language`.

All of them print a table and bound their own time; none of them is run by the tests. `tlx bench` measures the code
that TLX generates.
"""
