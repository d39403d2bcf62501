"""Measuring machine code: workloads, checks of their results, timing, calls without Python's overhead."""
