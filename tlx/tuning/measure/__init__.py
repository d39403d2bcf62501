"""Measuring machine code: workloads, checks of their results, clocks, calls without Python."""
