"""`gemm` of extents or leading dimensions that are known only when the kernel runs, as dynamic tensors.

    if 1 <= M, N, K and all numbers fit i32 and the product is worth it:
        C^T = alpha op(B)^T op(A)^T + beta C^T      on <vscale x 1 x T>, see docs/dynamic_shapes.md
    else:
        loops

What is smaller than `_SMALL` multiplications is sooner done than copied into blocks.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import Final

from tlx.frontends.tensor_language.emit.arithmetic import Parts
from tlx.frontends.tensor_language.emit.blas_loops import emit_loops
from tlx.frontends.tensor_language.emit.blas_tensors import LARGEST, cast_elements
from tlx.frontends.tensor_language.emit.blas_terms import Factor, K, Terms
from tlx.frontends.tensor_language.emit.blas_unit import branch
from tlx.frontends.tensor_language.emit.blas_update import Update, summed_in
from tlx.frontends.tensor_language.emit.emitter import Emitter
from tlx.frontends.tensor_language.emit.values import Memref, register_type, tensor_element
from tlx.ir.types import I32, I64, FloatType, IntType, Type, VectorType
from tlx.ir.values import ConstInt, Local, Value, const_int

_SMALL: Final = 1 << 14
_MOST: Final = 1 << 20  # what a factor counts for in the comparison with `_SMALL`, lest the product overflows


def emit_dynamic(e: Emitter, update: Update, terms: Terms) -> None:
    """Compute a product of matrices; by loops where tensors do not fit."""
    factors = (*terms.factors, Factor(update.out, (0, 1)))
    unit = all(isinstance(f.memref.stride[0], ConstInt) and f.memref.stride[0].value == 1 for f in factors)
    if not unit or update.atomic or update.type.kind == "complex":
        emit_loops(e, update, terms)
        return
    condition = _is_fit(e, update.out, terms)
    branch(e, condition, lambda: _emit(e, update, terms), lambda: emit_loops(e, update, terms))


def _is_fit(e: Emitter, out: Memref, terms: Terms) -> Value:
    """Whether the numbers of a product are those of tensors, and it is large."""
    assert terms.depth is not None
    sizes = [*out.shape, terms.depth]
    pitches = [memref.stride[1] for memref in (out, *(f.memref for f in terms.factors))]
    conditions: list[Value] = [e.b.icmp("sge", size, 1) for size in sizes]
    conditions += [e.b.icmp("ule", number, LARGEST) for number in (*sizes, *pitches)]
    conditions.append(e.b.icmp("uge", out.stride[1], out.shape[0]))
    products = reduce(e.b.mul, [e.b.umin(size, const_int(I64, _MOST)) for size in sizes])
    conditions.append(e.b.icmp("uge", products, _SMALL))
    return reduce(lambda a, b: e.b.binary("and", a, b), conditions)


def _emit(e: Emitter, update: Update, terms: Terms) -> None:
    a, b = terms.factors
    out = update.out
    element = tensor_element(out.type.element)
    sums = register_type(summed_in(update.type, [a.memref.type.element, b.memref.type.element]))
    shape, pitches = _numbers(e, out.shape[::-1]), _pitches(e, out)
    lhs, rhs = _operand(e, b, (1, K), sums), _operand(e, a, (K, 0), sums)
    handle = _handle(sums)
    if update.alpha is None and update.beta is None and element == sums:
        acc = e.b.dynamic_load(out.pointer, element, shape, (0, 1), pitches)
        result: Value = e.b.mma("smma", acc, lhs, rhs, handle)
    else:
        product = cast_elements(e, e.b.matmul(lhs, rhs, handle), register_type(update.type))
        result = cast_elements(e, _epilogue(e, update, product, shape, pitches), element)
    e.b.dynamic_store(out.pointer, element, e.b.dynamic_typeinfo(result, shape, (0, 1)), pitches)


def _epilogue(e: Emitter, update: Update, product: Value, shape: list[Value], pitches: list[Value]) -> Value:
    """`alpha * product + beta * C`."""
    type_ = register_type(update.type)

    def spread(number: Value) -> Value:
        return e.b.fill(e.b.dynamic_typeinfo(product, shape, (0, 1)), number, _handle(type_))

    def old() -> Parts:
        element = tensor_element(update.out.type.element)
        token = e.b.dynamic_load(update.out.pointer, element, shape, (0, 1), pitches)
        return (cast_elements(e, e.b.tovector(token, _handle(element)), type_),)

    (result,) = update.apply(e, (product,), old, spread)
    return result


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
    return [const_int(I32, v.value) if isinstance(v, ConstInt) else e.b.cast("trunc", v, I32) for v in values]


def _handle(element: Type) -> VectorType:
    return VectorType(1, element, scalable=True)
