"""Targets for RISC-V, and the meaning of their instructions."""
