"""`gemm` whose extents or leading dimensions are known only at run time.

If all extents are known and some leading dimensions are not, the operands are tiles of larger matrices:

    %a = subview %A[%i:16,%k:8] : memref<f32x16x8,strided<1,?>>

Operands with an unknown leading dimension are packed column by column into local memory, so that the product is one of
tensors of known shape. An output with an unknown leading dimension is updated from a product in local memory:

    A' := A, B' := B;   P := op(A') op(B');   C := alpha P + beta C

If extents are unknown, the operands are dynamic tensors:

    if 1 <= M, N, K and all numbers fit i32 and there are at least `_SMALL` multiplications:
        P^T = op(B)^T op(A)^T       on <vscale x 1 x T>, see docs/dynamic_shapes.md
        C := alpha P + beta C       a loop
    else:
        loops

`C += op(A) op(B)` and `C := op(A) op(B)` need neither P nor the loop if C has the type of the sums. For fewer than
`_SMALL` multiplications loops are faster than packing into blocks.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import contextmanager
from functools import reduce
from typing import Final

from tlx.frontends.tensor_language.emit.blas.loops import (
    Lanes,
    emit_loops,
    for_each_index,
    lanes_of,
    read_element,
    write_result,
)
from tlx.frontends.tensor_language.emit.blas.tensors import (
    LARGEST,
    Epilogue,
    Factor,
    Terms,
    accumulator_type,
    cast_elements,
    emit_tensors,
)
from tlx.frontends.tensor_language.emit.emitter import Emitter, Memref, memory_type, register_type, tensor_element
from tlx.frontends.tensor_language.emit.masks import all_of, if_else, trap_if_null
from tlx.frontends.tensor_language.emit.memory import address_of
from tlx.frontends.tensor_language.emit.numbers import from_i64, is_int
from tlx.frontends.tensor_language.operations.blas import K
from tlx.frontends.tensor_language.types import LOCAL_ALIGNMENT, MemrefType, ScalarType
from tlx.ir.types import I8, I32, I64, VOID, ArrayType, FloatType, IntType, Type, VectorType
from tlx.ir.values import ConstInt, Local, Value, const_int

_MOST_BYTES: Final = 32 << 10  # of all packed operands, which are on the stack
_SMALL_COPIED: Final = 1 << 12  # multiplications below which packing does not pay off


def fits_packed(epilogue: Epilogue, terms: Terms) -> bool:
    """Whether all extents of a product are known, first strides are 1, and packing pays off."""
    memrefs = [epilogue.out, *(factor.memref for factor in terms.factors)]
    if not all(isinstance(v, ConstInt) for m in memrefs for v in (*m.shape, m.stride[0])):
        return False
    if any(_number(m.stride[0]) != 1 for m in memrefs) or epilogue.atomic or epilogue.type.kind == "complex":
        return False
    copied = sum(_count(m) * max(m.type.element.size, 4) for m in memrefs)
    assert terms.depth is not None
    return copied <= _MOST_BYTES and _count(epilogue.out) * _number(terms.depth) >= _SMALL_COPIED


def emit_packed(e: Emitter, epilogue: Epilogue, terms: Terms) -> None:
    """Compute a product of packed copies."""
    packed = Terms(tuple(Factor(_packed(e, f.memref), f.modes) for f in terms.factors))
    if isinstance(epilogue.out.stride[1], ConstInt):
        emit_tensors(e, epilogue, packed)
        return
    type_ = accumulator_type(epilogue.type, [factor.memref.type.element for factor in terms.factors])
    product = _local(e, type_, epilogue.out.shape, "product")
    emit_tensors(e, Epilogue(product, type_, alpha=None, beta=None, reads=False, atomic=False), packed)
    finish_product(e, epilogue, product)


def finish_product(e: Emitter, epilogue: Epilogue, product: Memref) -> None:
    """`C := alpha * product + beta * C`, in one pass."""

    def body(indices: tuple[Value, ...], lanes: Lanes) -> None:
        write_result(e, epilogue, read_element(e, product, indices, epilogue.type, lanes), indices, lanes)

    for_each_index(e, epilogue.out.shape, lanes_of(epilogue.type), body)


def _packed(e: Emitter, memref: Memref) -> Memref:
    """A packed copy; the memref itself if its leading dimension is known."""
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


_SMALL: Final = 1 << 14
_MOST: Final = 1 << 20  # upper bound of a factor in the comparison with `_SMALL`, so that the product does not overflow


def emit_dynamic(e: Emitter, epilogue: Epilogue, terms: Terms) -> None:
    """Compute a product of matrices; by loops where tensors do not fit."""
    factors = (*terms.factors, Factor(epilogue.out, (0, 1)))
    unit = all(is_int(f.memref.stride[0], 1) for f in factors)
    numbers = [number for f in factors for number in (*f.memref.shape, f.memref.stride[1])]
    is_huge = any(isinstance(number, ConstInt) and number.value > LARGEST for number in numbers)
    if not unit or is_huge or epilogue.atomic or epilogue.type.kind == "complex":
        emit_loops(e, epilogue, terms)
        return
    if fits_packed(epilogue, terms):
        emit_packed(e, epilogue, terms)
        return
    products = _multiplications(e, epilogue.out, terms)
    if isinstance(products, ConstInt) and products.value < _SMALL:
        emit_loops(e, epilogue, terms)
        return
    condition = _is_fit(e, epilogue.out, terms, products)
    if_else(e, condition, lambda: _emit(e, epilogue, terms), lambda: emit_loops(e, epilogue, terms))


def _multiplications(e: Emitter, out: Memref, terms: Terms) -> Value:
    """`M * N * K`, or another number greater than `_SMALL`; none of them is negative."""
    assert terms.depth is not None
    return reduce(e.b.mul, [e.b.umin(size, const_int(I64, _MOST)) for size in (*out.shape, terms.depth)])


def _is_fit(e: Emitter, out: Memref, terms: Terms, products: Value) -> Value:
    """Whether extents and pitches are valid for tensors, and the product is large."""
    assert terms.depth is not None
    sizes = [*out.shape, terms.depth]
    pitches = [memref.stride[1] for memref in (out, *(f.memref for f in terms.factors))]
    conditions: list[Value] = [e.b.icmp("sge", size, 1) for size in sizes]
    conditions += [e.b.icmp("ule", number, LARGEST) for number in (*sizes, *pitches)]
    conditions.append(e.b.icmp("uge", out.stride[1], out.shape[0]))
    conditions.append(e.b.icmp("uge", products, _SMALL))
    return all_of(e, conditions)


def _emit(e: Emitter, epilogue: Epilogue, terms: Terms) -> None:
    a, b = terms.factors
    out = epilogue.out
    type_ = accumulator_type(epilogue.type, [a.memref.type.element, b.memref.type.element])
    sums = register_type(type_)
    lhs, rhs = _operand(e, b, (1, K), sums), _operand(e, a, (K, 0), sums)
    is_plain = epilogue.alpha is None and tensor_element(out.type.element) == sums
    if is_plain and epilogue.reads and epilogue.beta is None:
        acc = e.b.dynamic_load(out.pointer, sums, _numbers(e, out.shape[::-1]), (0, 1), _pitches(e, out))
        _store(e, e.b.mma("smma", acc, lhs, rhs, _handle(sums)), out)
    elif is_plain and not epilogue.reads:
        _store(e, e.b.matmul(lhs, rhs, _handle(sums)), out)
    else:
        with _temporary(e, type_, out.shape) as product:
            _store(e, e.b.matmul(lhs, rhs, _handle(sums)), product)
            finish_product(e, epilogue, product)


def _store(e: Emitter, product: Value, to: Memref) -> None:
    element = tensor_element(to.type.element)
    token = e.b.dynamic_typeinfo(product, _numbers(e, to.shape[::-1]), (0, 1))
    e.b.dynamic_store(to.pointer, element, token, _pitches(e, to))


@contextmanager
def _temporary(e: Emitter, type_: ScalarType, shape: tuple[Value, ...]) -> Generator[Memref]:
    """Heap memory for a packed matrix, freed at the end; traps if the allocation fails."""
    rows, columns = shape
    size = e.b.mul(e.b.mul(rows, columns), const_int(I64, type_.size))
    pointer = e.b.call_named("malloc", e.b.pointer(I8), [size], "product").value
    trap_if_null(e, pointer)
    memref = MemrefType(type_, (None, None), (1, None))
    yield Memref(memref, e.b.retype(pointer, memory_type(type_)), shape, (const_int(I64, 1), rows), type_.size)
    e.b.call_named("free", VOID, [pointer])


def _operand(e: Emitter, factor: Factor, indices: tuple[int, int], sums: Type) -> Local:
    """A factor as a matrix with two indices of the product as its dimensions."""
    memref = factor.memref
    layout = (0, 1) if factor.modes[::-1] == indices else (1, 0)
    element = tensor_element(memref.type.element)
    shape = _numbers(e, memref.shape[::-1])
    token = e.b.dynamic_load(memref.pointer, element, shape, layout, _pitches(e, memref))
    if isinstance(element, FloatType) or isinstance(sums, IntType):
        return token
    converted = cast_elements(e, e.b.tovector(token, _handle(element)), sums)
    return e.b.dynamic_typeinfo(converted, shape, layout)


def _pitches(e: Emitter, memref: Memref) -> list[Value]:
    return [const_int(I32, 0), *_numbers(e, [memref.stride[1]])]


def _numbers(e: Emitter, values: Sequence[Value]) -> list[Value]:
    """Extents as i32."""
    return [from_i64(e, value, I32) for value in values]


def _handle(element: Type) -> VectorType:
    return VectorType(1, element, scalable=True)
