"""Stage 3: tile operations become target instructions; nothing of `llvm.tensor.*` is left."""

from __future__ import annotations

from tlx.lower.legalize.driver import legalize

__all__ = ["legalize"]
