"""Tensors in C and C++: `tlx.h` declares placeholder functions, and `RAISE` turns calls to them into tensor operations.

    typedef float m44 __attribute__((__vector_size__(64), __aligned__(4)));
    token = tensor_typeinfo(x, shape, layout, padding);      an int stands for the token
    y = TLX_CALL(m44, matmul, token, token);

clang compiles such a program like any other: the placeholders are undefined external functions. In the resulting LLVM
IR, tensors, shapes and tokens follow the C calling convention of the machine; raising undoes that. The header is
generated from the table of intrinsics; programs may also declare the placeholders themselves.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from tlx.ir.module import Module

MARKERS: Final = ("@tensor_", '@"\\01tensor_', "@_ZN3tlx")


def include_dir() -> Path:
    """The directory of `tlx.h`, for `clang -I`."""
    return Path(__file__).resolve().parent


def RAISE(module: Module) -> Module | None:  # noqa: N802 (front ends are discovered by this name)
    """The module with calls to placeholders turned into tensor operations, None if it has no such calls."""
    from tlx.frontends.c_header.raising import raise_module

    return raise_module(module)
