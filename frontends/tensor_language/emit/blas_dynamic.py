"""`gemm` of extents or leading dimensions that are known only when the kernel runs, as dynamic tensors.

    if 1 <= M, N, K and all numbers fit i32 and the product is worth it:
        P^T = op(B)^T op(A)^T       on <vscale x 1 x T>, see docs/dynamic_shapes.md
        C := alpha P + beta C       a loop
    else:
        loops

Tiles of known shape are copied instead, see `blas_packed`. `C += op(A) op(B)` and `C := op(A) op(B)` need neither P nor
the loop where C has the type of the sums. What is smaller than `_SMALL` multiplications is sooner done than copied into
blocks.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import contextmanager
from functools import reduce
from typing import Final

from tlx.frontends.tensor_language.emit.blas_epilogue import Epilogue, summed_in
from tlx.frontends.tensor_language.emit.blas_loops import emit_loops
from tlx.frontends.tensor_language.emit.blas_packed import emit_packed, finish_product, fits_packed
from tlx.frontends.tensor_language.emit.blas_tensors import LARGEST, cast_elements
from tlx.frontends.tensor_language.emit.blas_terms import Factor, K, Terms
from tlx.frontends.tensor_language.emit.branches import all_of, if_else, trap_if_null
from tlx.frontends.tensor_language.emit.emitter import Emitter
from tlx.frontends.tensor_language.emit.numbers import from_i64, is_int
from tlx.frontends.tensor_language.emit.values import Memref, memory_type, register_type, tensor_element
from tlx.frontends.tensor_language.types import MemrefType, ScalarType
from tlx.ir.types import I8, I32, I64, VOID, FloatType, IntType, Type, VectorType
from tlx.ir.values import ConstInt, Local, Value, const_int

_SMALL: Final = 1 << 14
_MOST: Final = 1 << 20  # what a factor counts for in the comparison with `_SMALL`, lest the product overflows


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
    """`M * N * K`, or something else that is greater than `_SMALL`, if none of them is negative."""
    assert terms.depth is not None
    return reduce(e.b.mul, [e.b.umin(size, const_int(I64, _MOST)) for size in (*out.shape, terms.depth)])


def _is_fit(e: Emitter, out: Memref, terms: Terms, products: Value) -> Value:
    """Whether the numbers of a product are those of tensors, and it is large."""
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
    type_ = summed_in(epilogue.type, [a.memref.type.element, b.memref.type.element])
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
    """Memory for a packed matrix, freed at the end; a trap where memory is short."""
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
