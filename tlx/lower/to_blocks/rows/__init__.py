"""Kernels whose results are rows: reductions, fused rows, and attention."""
