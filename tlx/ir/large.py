"""Vectors that LLVM's code generator takes minutes for, or dies of: what clang -O0 makes of big tensors."""

from __future__ import annotations

import re
from typing import Final

_LARGE: Final = re.compile(r"<(?:409[7-9]|4[1-9]\d\d|[5-9]\d{3}|\d{5,}) x [a-z]")


def has_large_vectors(text: str) -> bool:
    """Whether a text speaks of vectors of more than 4096 elements, so that it is for the lowering."""
    return _LARGE.search(text) is not None
