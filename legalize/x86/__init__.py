"""Targets for x86-64 (`avx2`, `avx512`, `amx`) and what they share: features by processor, and CPUID."""
