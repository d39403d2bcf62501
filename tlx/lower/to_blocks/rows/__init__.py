"""Kernels whose results are rows: reductions and fused rows."""
