"""Suffixes of overloaded intrinsics: `<16 x float>` is `v16f32`, a pointer `p0` (typed pointers: `p0v16f32`)."""

from __future__ import annotations

from typing import Final

from tlx.ir.types import ArrayType, FloatType, IntType, PointerType, StructType, Type, VectorType

_FLOATS: Final = {
    "half": "f16",
    "bfloat": "bf16",
    "float": "f32",
    "double": "f64",
    "x86_fp80": "f80",
    "fp128": "f128",
    "ppc_fp128": "ppcf128",
}


def mangle(type_: Type) -> str:
    """LLVM's suffix for a type, without the dot in front.

    Raises:
        ValueError: LLVM has no suffix for the type.
    """
    if isinstance(type_, IntType):
        return f"i{type_.bits}"
    if isinstance(type_, FloatType):
        return _FLOATS[type_.name]
    if isinstance(type_, VectorType):
        return f"{'nx' if type_.scalable else ''}v{type_.count}{mangle(type_.element)}"
    if isinstance(type_, PointerType):
        return f"p{type_.addrspace}{mangle(type_.pointee) if type_.pointee is not None else ''}"
    if isinstance(type_, ArrayType):
        return f"a{type_.count}{mangle(type_.element)}"
    if isinstance(type_, StructType):
        return f"sl_{''.join(mangle(e) for e in type_.elements)}s"
    msg = f"no intrinsic suffix for type {type_}"
    raise ValueError(msg)


def mangled(name: str, types: list[Type]) -> str:
    """An intrinsic's full name: `llvm.fma` and `<4 x float>` give `llvm.fma.v4f32`."""
    return ".".join([name, *(mangle(t) for t in types)])
