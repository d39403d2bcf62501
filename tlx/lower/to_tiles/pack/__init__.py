"""Packing: operands copied into panels, by the kernel, in front of a loop, or when the program is compiled."""
