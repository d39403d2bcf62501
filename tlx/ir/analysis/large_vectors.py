"""Vectors too large for LLVM's code generator, which clang -O0 uses for large tensors."""

from __future__ import annotations

import re
from typing import Final

from tlx.ir.types import BFLOAT, DOUBLE, FLOAT, HALF, I1, I8, I16, I32, I64, Type, VectorType, bits_of, bytes_of

MAX_SSA_BYTES: Final = 1024
"""Vectors up to this size may be SSA values, for ordinary instructions that use them."""
_MAX_SSA_BFLOATS: Final = 32
"""Vectors of bfloat are smaller: LLVM scalarises them, one register an element. It takes minutes for some hundreds of
elements that are live across blocks (19, 22), and crashes on 33 without optimisation with AVX512-BF16 (22)."""
ABI_ELEMENTS: Final = 4096
"""Vectors up to this size stay by value in signatures, which LLVM's code generator can handle."""

_ELEMENTS: Final[dict[str, Type]] = {
    str(type_): type_ for type_ in (I1, I8, I16, I32, I64, HALF, BFLOAT, FLOAT, DOUBLE)
}
_VECTOR: Final = re.compile(rf"<(\d+) x ({'|'.join(_ELEMENTS)})>")
_LARGE: Final = re.compile(
    r"<(?:409[7-9]|4[1-9]\d\d|[5-9]\d{3}|\d{5,}) x [a-z]"
    r"|<(?:25[7-9]|2[6-9]\d|[3-9]\d\d|\d{4,}) x bfloat>"
)


def has_large_vectors(text: str) -> bool:
    """Whether a text mentions vectors of more than 4096 elements, or 256 of bfloat, which need the lowering."""
    return _LARGE.search(text) is not None


def mentions_slow_vectors(text: str) -> bool:
    """Whether a text mentions vectors too large for SSA values of ordinary instructions."""
    return any(int(count) > max_ssa_elements(_ELEMENTS[name]) for count, name in set(_VECTOR.findall(text)))


def max_ssa_elements(element: Type) -> int:
    """Elements of the largest vector that ordinary instructions may compute with as an SSA value."""
    return _MAX_SSA_BFLOATS if element == BFLOAT else MAX_SSA_BYTES // bytes_of(element)


def exceeds_abi(type_: Type) -> bool:
    """Whether a type cannot be a parameter or a result."""
    return exceeds_register(type_) and isinstance(type_, VectorType) and type_.count > ABI_ELEMENTS


def size_in_bytes(type_: Type) -> int | None:
    """Bytes of a vector of numbers; None for every other type."""
    if not isinstance(type_, VectorType) or type_.scalable:
        return None
    try:
        return (bits_of(type_) + 7) // 8
    except ValueError:
        return None


def exceeds_register(type_: Type) -> bool:
    """Whether a vector is too large to be an SSA value."""
    size = size_in_bytes(type_)
    return size is not None and size > MAX_SSA_BYTES
