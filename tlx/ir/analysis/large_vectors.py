"""Vectors too large for LLVM's code generator: what clang -O0 makes of big tensors."""

from __future__ import annotations

import re
from typing import Final

from tlx.ir.types import BFLOAT, DOUBLE, FLOAT, HALF, I1, I8, I16, I32, I64, Type, VectorType, bits_of, bytes_of

MAX_SSA_BYTES: Final = 1024
"""Vectors up to this size may be SSA values, for ordinary instructions that use them."""
_MAX_SSA_BFLOATS: Final = 32
"""Fewer of bfloat: LLVM takes them apart, one register an element. It takes minutes for some hundreds that live on in
another block (19, 22), and dies of 33 without optimisation where AVX512-BF16 is at hand (22)."""
ABI_ELEMENTS: Final = 4096
"""Where a signature asks for a vector by value there is no choice; LLVM's code generator copes up to this size."""

_ELEMENTS: Final[dict[str, Type]] = {
    str(type_): type_ for type_ in (I1, I8, I16, I32, I64, HALF, BFLOAT, FLOAT, DOUBLE)
}
_VECTOR: Final = re.compile(rf"<(\d+) x ({'|'.join(_ELEMENTS)})>")
_LARGE: Final = re.compile(
    r"<(?:409[7-9]|4[1-9]\d\d|[5-9]\d{3}|\d{5,}) x [a-z]"
    r"|<(?:25[7-9]|2[6-9]\d|[3-9]\d\d|\d{4,}) x bfloat>"
)


def has_large_vectors(text: str) -> bool:
    """Whether a text speaks of vectors of more than 4096 elements, or 256 of bfloat, so that it is for the lowering."""
    return _LARGE.search(text) is not None


def mentions_slow_vectors(text: str) -> bool:
    """Whether a text speaks of vectors that ordinary instructions may not compute with as SSA values."""
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
