"""BLAS instructions as loops over the elements of the output: right for all types, shapes and strides.

    for j: for i:  sum = 0;  for k: sum += A[i,k] * B[k,j];  C[i,j] := alpha * sum + beta * C[i,j]

Where neighbours along the first mode of the output, or along k, are neighbours in memory for all operands, a vector of
them is computed at a time, and what is left with a mask:

    for j: for i in 0, V, ...:  <V x T> sum = 0;  for k: sum += A[i:i+V,k] * B[k,j]
    for j: for i:  <V x T> sums = 0;  for k in 0, V, ...: sums += A[k:k+V,i] * B[k:k+V,j];  sum of the lanes
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from tlx.frontends.tensor_language.emit.arithmetic import across, binary
from tlx.frontends.tensor_language.emit.blas_atomic import write_atomically
from tlx.frontends.tensor_language.emit.blas_elements import ONE, Lanes, first_lanes, read, repeated, write
from tlx.frontends.tensor_language.emit.blas_epilogue import Epilogue, summed_in
from tlx.frontends.tensor_language.emit.blas_terms import Factor, K, Terms
from tlx.frontends.tensor_language.emit.branches import run_if
from tlx.frontends.tensor_language.emit.conversions import convert
from tlx.frontends.tensor_language.emit.emitter import Emitter
from tlx.frontends.tensor_language.emit.numbers import full_like, is_int, undefined
from tlx.frontends.tensor_language.emit.values import Parts, register_type
from tlx.frontends.tensor_language.types import ScalarType
from tlx.ir.types import I64, VectorType
from tlx.ir.values import ConstInt, Value, const_int

_VECTOR_BYTES: Final = 64

Body = Callable[[tuple[Value, ...], Lanes], None]


def emit_loops(e: Emitter, epilogue: Epilogue, terms: Terms) -> None:
    """Compute the output element by element."""
    along = _vector_index(epilogue, terms)
    lanes = lanes_of(epilogue.type) if along == 0 else 1
    depth_lanes = lanes_of(epilogue.type) if along == K else 1

    def body(indices: tuple[Value, ...], some: Lanes) -> None:
        value = _value(e, epilogue, terms, indices, some, depth_lanes)
        finish(e, epilogue, value, indices, some)

    each(e, epilogue.out.shape, lanes, body)


def lanes_of(type_: ScalarType) -> int:
    """Elements of a vector of a type that is computed with."""
    return _VECTOR_BYTES * 8 // type_.bits


def _vector_index(epilogue: Epilogue, terms: Terms) -> int | None:
    """The index along which vectors are computed: 0, `K`, or None."""
    if epilogue.type.kind == "complex":
        return None
    out = Factor(epilogue.out, tuple(range(epilogue.out.type.order)))
    if out.modes and not epilogue.atomic and out.is_contiguous(0) and terms.is_contiguous(0):
        return 0
    return K if terms.depth is not None and terms.is_contiguous(K) else None


def each(e: Emitter, shape: Sequence[Value], lanes: int, body: Body) -> None:
    """Loops over all indices of a shape, the first one innermost and by several lanes at a time.

    Args:
        e: The emitter.
        shape: Extent of each mode.
        lanes: How many neighbours along mode 0 are done at a time.
        body: Writes what is done for indices and lanes.
    """
    if not shape:
        body((), ONE)
        return
    _outer(e, tuple(shape[1:]), (), lambda outer: _steps(e, shape[0], lanes, lambda i, n: body((i, *outer), n)))


def _outer(
    e: Emitter, shape: tuple[Value, ...], indices: tuple[Value, ...], body: Callable[[tuple[Value, ...]], None]
) -> None:
    if not shape:
        body(indices)
        return
    with e.b.loop(0, shape[-1], name="j") as loop:
        _outer(e, shape[:-1], (loop.index, *indices), body)


def _steps(e: Emitter, extent: Value, lanes: int, body: Callable[[Value, Lanes], None]) -> None:
    """A loop over an extent by several lanes at a time, then what is left with a mask."""
    if lanes == 1:
        with e.b.loop(0, extent, name="i") as loop:
            body(loop.index, ONE)
        return
    whole, rest = _split(e, extent, lanes)
    if not is_int(whole, 0):
        with e.b.loop(0, whole, lanes, name="i") as loop:
            body(loop.index, Lanes(lanes))
    if is_int(rest, 1):  # needs no mask
        body(whole, ONE)
    elif not is_int(rest, 0):
        left = None if isinstance(rest, ConstInt) else e.b.icmp("ne", rest, 0)
        with run_if(e, left, "rest", "rest.end"):
            body(whole, first_lanes(e, lanes, rest))


def finish(e: Emitter, epilogue: Epilogue, value: Parts, indices: tuple[Value, ...], lanes: Lanes) -> None:
    """Write `alpha * value + beta * output`."""

    def spread(number: Value) -> Value:
        return repeated(e, number, lanes)

    if epilogue.atomic:
        write_atomically(e, epilogue, value, indices)
        return
    result = epilogue.apply(e, value, lambda: read(e, epilogue.out, indices, epilogue.type, lanes), spread)
    write(e, result, epilogue.type, epilogue.out, indices, lanes)


def _value(
    e: Emitter, epilogue: Epilogue, terms: Terms, indices: tuple[Value, ...], lanes: Lanes, depth_lanes: int
) -> Parts:
    """The sum of products at some indices of the output, in the epilogue's type."""
    if terms.depth is None:
        return _product(e, terms, indices, None, epilogue.type, lanes, 0)
    type_ = summed_in(epilogue.type, [factor.memref.type.element for factor in terms.factors])
    if depth_lanes > 1:
        sums = _dot(e, terms, indices, type_, depth_lanes)
    else:
        with e.b.loop(0, terms.depth, carry=zeros(type_, lanes.count), name="k") as loop:
            product = _product(e, terms, indices, loop.index, type_, lanes, 0)
            loop.next(*binary(e, "add", type_, tuple(loop.carried), product))
        sums = tuple(loop.results)
    return convert(e, sums, type_, epilogue.type)


def _dot(e: Emitter, terms: Terms, indices: tuple[Value, ...], type_: ScalarType, lanes: int) -> Parts:
    """The sum over k, by several lanes at a time; lanes that are not there are zero in all factors."""
    assert terms.depth is not None
    whole, rest = _split(e, terms.depth, lanes)
    sums = zeros(type_, lanes)
    if not is_int(whole, 0):
        with e.b.loop(0, whole, lanes, carry=sums, name="k") as loop:
            product = _product(e, terms, indices, loop.index, type_, Lanes(lanes), K)
            loop.next(*binary(e, "add", type_, tuple(loop.carried), product))
        sums = tuple(loop.results)
    if not is_int(rest, 0):
        product = _product(e, terms, indices, whole, type_, first_lanes(e, lanes, rest), K)
        sums = binary(e, "add", type_, sums, product)
    return (across(e, "add", type_, *sums),)


def _product(
    e: Emitter, terms: Terms, indices: tuple[Value, ...], k: Value | None, type_: ScalarType, lanes: Lanes, along: int
) -> Parts:
    """The product of the factors; lanes go along an index of the output or along `K`."""
    found: list[Parts] = []
    for factor in terms.factors:
        places = [k if mode == K and k is not None else indices[mode] for mode in factor.modes]
        if lanes.count > 1 and along in factor.modes:
            found.append(read(e, factor.memref, places, type_, lanes))
        else:
            parts = read(e, factor.memref, places, type_)
            found.append(tuple(repeated(e, part, lanes) for part in parts))
    return found[0] if len(found) == 1 else binary(e, "mul", type_, *found)


def zeros(type_: ScalarType, lanes: int) -> Parts:
    """Zero in each part and lane."""
    register = register_type(type_)
    zero = full_like(undefined(VectorType(lanes, register) if lanes > 1 else register), 0)
    return (zero, zero) if type_.kind == "complex" else (zero,)


def _split(e: Emitter, extent: Value, lanes: int) -> tuple[Value, Value]:
    """The largest multiple of the lanes that is not greater than an extent, and what is left."""
    if isinstance(extent, ConstInt):
        rest = extent.value % lanes
        return const_int(I64, extent.value - rest), const_int(I64, rest)
    return e.b.binary("and", extent, const_int(I64, -lanes)), e.b.binary("and", extent, const_int(I64, lanes - 1))
