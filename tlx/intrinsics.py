"""THE table: each `llvm.tensor.*` intrinsic once. Everything else is derived from it.

Verifier, builder methods, canonical names and declarations, the evaluator, the C header and the reference pages read
`INTRINSICS`; adding an intrinsic is adding one entry here (and one lowering rule).
"""

from __future__ import annotations
