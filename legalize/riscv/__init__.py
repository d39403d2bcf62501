"""Targets for RISC-V, and the meaning of their instructions."""

from typing import Final

TRIPLES: Final = ("riscv64-linux-gnu",)
