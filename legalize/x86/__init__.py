"""Targets for x86-64 (`avx2`, `avx512`, `amx`) and what they share: features by processor, and CPUID."""

from typing import Final

TRIPLES: Final = ("x86_64-linux-gnu", "i686-linux-gnu")
