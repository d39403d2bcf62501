"""Vectors of known length as scalable vectors, and back: intrinsics of SVE exist on scalable types only.

In a function with `vscale_range`, LLVM's backend knows that both are the same register, and converts by nothing:

    %x = call <vscale x 16 x i8> @llvm.experimental.vector.insert.nxv16i8.v32i8(..., <32 x i8> %bytes, i64 0)

LLVM 15 renamed `llvm.experimental.vector.insert`; later versions still read the old name.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tlx.ir.types import BFLOAT, FLOAT, HALF, I8, I32, I64, Type, VectorType, bits_of
from tlx.ir.values import Keyword, const_int

if TYPE_CHECKING:
    from tlx.ir.builder import Builder
    from tlx.ir.values import Value

GRANULE_BYTES: Final = 16
"""Lengths are multiples of it; `vscale` is their number."""
_MANGLED: Final[dict[Type, str]] = {FLOAT: "f32", BFLOAT: "bf16", HALF: "f16", I32: "i32", I8: "i8"}


def scalable(element: Type) -> VectorType:
    """The type of registers of an element type."""
    return VectorType(GRANULE_BYTES * 8 // bits_of(element), element, scalable=True)


def mangled(type_: VectorType) -> str:
    """How names of intrinsics spell a vector."""
    return f"{'nx' if type_.scalable else ''}v{type_.count}{_MANGLED[type_.element]}"


def to_scalable(b: Builder, value: Value, element: Type) -> Value:
    """A register as a scalable vector of an element type; bfloat by way of words, not of memory (LLVM 19)."""
    assert isinstance(value.type, VectorType)
    whole = value.type.count * bits_of(value.type.element)
    if element == BFLOAT and whole > GRANULE_BYTES * 8:
        return b.cast("bitcast", to_scalable(b, value, I32), scalable(BFLOAT))
    fixed, to = VectorType(whole // bits_of(element), element), scalable(element)
    args = [Keyword(to, "undef"), b.cast("bitcast", value, fixed), const_int(I64, 0)]
    name = f"llvm.experimental.vector.insert.{mangled(to)}.{mangled(fixed)}"
    return b.call_named(name, to, args, "scalable").value


def from_scalable(b: Builder, value: Value, fixed: VectorType) -> Value:
    """A scalable vector as a vector of known length."""
    assert isinstance(value.type, VectorType)
    name = f"llvm.experimental.vector.extract.{mangled(fixed)}.{mangled(value.type)}"
    return b.call_named(name, fixed, [value, const_int(I64, 0)], "fixed").value
