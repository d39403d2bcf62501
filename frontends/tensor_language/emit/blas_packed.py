"""`gemm` of known shape whose leading dimensions are known only when the kernel runs: tiles of a larger matrix.

    %a = subview %A[%i:16,%k:8] : memref<f32x16x8,strided<1,?>>

Operands with unknown leading dimensions are copied column by column to local memory, where they are packed, so that the
product is one of tensors of known shape. An output with an unknown leading dimension gets it from local memory:

    A' := A, B' := B;   P := op(A') op(B');   C := alpha P + beta C
"""

from __future__ import annotations

from functools import reduce
from typing import Final

from tlx.frontends.tensor_language.emit.addresses import address_of
from tlx.frontends.tensor_language.emit.blas_elements import Lanes, read
from tlx.frontends.tensor_language.emit.blas_epilogue import Epilogue, summed_in
from tlx.frontends.tensor_language.emit.blas_loops import each, finish, lanes_of
from tlx.frontends.tensor_language.emit.blas_tensors import emit_tensors
from tlx.frontends.tensor_language.emit.blas_terms import Factor, Terms
from tlx.frontends.tensor_language.emit.emitter import Emitter
from tlx.frontends.tensor_language.emit.values import Memref, memory_type
from tlx.frontends.tensor_language.types import LOCAL_ALIGNMENT, MemrefType, ScalarType
from tlx.ir.types import I64, ArrayType
from tlx.ir.values import ConstInt, Value, const_int

_MOST_BYTES: Final = 32 << 10  # of all copies: they lie on the stack
_SMALL: Final = 1 << 12  # multiplications that are sooner done than operands are copied


def fits_packed(epilogue: Epilogue, terms: Terms) -> bool:
    """Whether all extents of a product are known, first strides are 1, and copies are small and worth it."""
    memrefs = [epilogue.out, *(factor.memref for factor in terms.factors)]
    if not all(isinstance(v, ConstInt) for m in memrefs for v in (*m.shape, m.stride[0])):
        return False
    if any(_number(m.stride[0]) != 1 for m in memrefs) or epilogue.atomic or epilogue.type.kind == "complex":
        return False
    copied = sum(_count(m) * max(m.type.element.size, 4) for m in memrefs)
    assert terms.depth is not None
    return copied <= _MOST_BYTES and _count(epilogue.out) * _number(terms.depth) >= _SMALL


def emit_packed(e: Emitter, epilogue: Epilogue, terms: Terms) -> None:
    """Compute a product of packed copies."""
    packed = Terms(tuple(Factor(_packed(e, f.memref), f.modes) for f in terms.factors))
    if isinstance(epilogue.out.stride[1], ConstInt):
        emit_tensors(e, epilogue, packed)
        return
    type_ = summed_in(epilogue.type, [factor.memref.type.element for factor in terms.factors])
    product = _local(e, type_, epilogue.out.shape, "product")
    emit_tensors(e, Epilogue(product, type_, alpha=None, beta=None, reads=False, atomic=False), packed)
    finish_product(e, epilogue, product)


def finish_product(e: Emitter, epilogue: Epilogue, product: Memref) -> None:
    """`C := alpha * product + beta * C`, in one pass."""

    def body(indices: tuple[Value, ...], lanes: Lanes) -> None:
        finish(e, epilogue, read(e, product, indices, epilogue.type, lanes), indices, lanes)

    each(e, epilogue.out.shape, lanes_of(epilogue.type), body)


def _packed(e: Emitter, memref: Memref) -> Memref:
    """A copy without space between columns; the memref itself where its leading dimension is known."""
    if isinstance(memref.stride[1], ConstInt):
        return memref
    copy = _local(e, memref.type.element, memref.shape, "packed")
    rows, columns = memref.shape
    size = const_int(I64, _number(rows) * memref.type.element.size)
    with e.b.loop(0, columns, name="column") as loop:
        start = (const_int(I64, 0), loop.index)
        e.b.memcpy(address_of(e, copy, start), address_of(e, memref, start), size)
    return copy


def _local(e: Emitter, type_: ScalarType, shape: tuple[Value, ...], name: str) -> Memref:
    """A packed matrix on the stack."""
    memory = memory_type(type_)
    extents = [_number(extent) for extent in shape]
    packed = MemrefType.packed(type_, tuple(extents), "local")
    pointer = e.b.alloca(ArrayType(reduce(int.__mul__, extents), memory), name, LOCAL_ALIGNMENT)
    return Memref(packed, e.b.retype(pointer, memory), shape, (const_int(I64, 1), shape[0]), LOCAL_ALIGNMENT)


def _count(memref: Memref) -> int:
    return reduce(int.__mul__, map(_number, memref.shape))


def _number(value: Value) -> int:
    assert isinstance(value, ConstInt)
    return value.value
