"""Packing: operands copied into panels, by the kernel, before a loop, or at compile time."""
