"""Meaning of x86 instructions in numpy: AMX tiles, AVX dot products, conversions and permutations."""
