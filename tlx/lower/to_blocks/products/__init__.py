"""Kernels of products: their plans, the stages of their operands, the units that multiply, and the epilogue."""
