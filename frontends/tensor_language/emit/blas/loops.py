"""BLAS instructions as loops over the elements of the output: correct for all types, shapes and strides.

    for j: for i:  sum = 0;  for k: sum += A[i,k] * B[k,j];  C[i,j] := alpha * sum + beta * C[i,j]

If all operands are contiguous along the first mode of the output, or along k, the loop is vectorised along it, with a
masked remainder:

    for j: for i in 0, V, ...:  <V x T> sum = 0;  for k: sum += A[i:i+V,k] * B[k,j]
    for j: for i:  <V x T> sums = 0;  for k in 0, V, ...: sums += A[k:k+V,i] * B[k:k+V,j];  sum of the lanes

`cumsum` computes running sums along a mode:

    mode 0             for outer: sum = 0; for i: sum += A[i,...]; B[i,...] := alpha * sum + beta * B[i,...]
    any other mode m   for outer: for i in 0, V, ...: <V x T> sums = 0; for j: sums += A[i:i+V,..,j,..]; ...

The atomic forms add or store each element atomically, in no order:

    beta 1        output += alpha * value                    atomic; old values are visible to others
    beta 0        output  = alpha * value
    any other     output  = alpha * value + beta * output    a compare-and-exchange loop; from version 1

A narrow float is rounded once, after the addition.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from tlx.frontends.tensor_language.emit import atomics
from tlx.frontends.tensor_language.emit.arithmetic import binary, convert, reduce_lanes
from tlx.frontends.tensor_language.emit.blas.tensors import Epilogue, Factor, Terms, accumulator_type
from tlx.frontends.tensor_language.emit.emitter import Emitter, Memref, Parts, memory_type, register_type
from tlx.frontends.tensor_language.emit.masks import run_if
from tlx.frontends.tensor_language.emit.memory import address_of, masked_load, masked_store, part_addresses
from tlx.frontends.tensor_language.emit.numbers import from_memory, full_like, is_int, splat, to_memory, undefined
from tlx.frontends.tensor_language.operations.blas import Cumsum, K
from tlx.frontends.tensor_language.types import ScalarType
from tlx.ir.types import I32, I64, VectorType
from tlx.ir.values import ConstInt, Value, const_int, const_ints


@dataclass(frozen=True, slots=True)
class Lanes:
    """The vector that a loop works on.

    Attributes:
        count: The number of lanes; 1 for scalars.
        mask: Which lanes exist, None for all.
    """

    count: int = 1
    mask: Value | None = None


ONE: Final = Lanes()


def read_element(e: Emitter, memref: Memref, indices: Sequence[Value], type_: ScalarType, lanes: Lanes = ONE) -> Parts:
    """Load an element, or the vector that starts with it, and convert it; masked lanes are zero."""
    element = memref.type.element
    parts = part_addresses(e, address_of(e, memref, indices), element)
    values = tuple(from_memory(e, _load(e, element, part, lanes), element) for part in parts)
    return convert(e, values, element, type_)


def write_element(
    e: Emitter, parts: Parts, type_: ScalarType, memref: Memref, indices: Sequence[Value], lanes: Lanes = ONE
) -> None:
    """Convert and store an element, or a vector."""
    element = memref.type.element
    values = convert(e, parts, type_, element)
    addresses = part_addresses(e, address_of(e, memref, indices), element)
    for value, part in zip(values, addresses, strict=True):
        stored = to_memory(e, value, element)
        masked_store(e, stored, part, element.part.size, lanes.mask)


def first_lanes(e: Emitter, count: int, number: Value) -> Lanes:
    """A vector of `count` lanes of which only the first `number` exist."""
    limit = e.b.splat(e.b.cast("trunc", number, I32), count)
    return Lanes(count, e.b.icmp("ult", const_ints(I32, range(count)), limit))


def _load(e: Emitter, type_: ScalarType, address: Value, lanes: Lanes) -> Value:
    memory = memory_type(type_)
    if lanes.count == 1:
        return e.b.load(memory, address, type_.part.size)
    return masked_load(e, VectorType(lanes.count, memory), address, type_.part.size, lanes.mask)


def repeat_lanes(e: Emitter, value: Value, lanes: Lanes) -> Value:
    """A number in every lane, or the number itself for a single lane."""
    return value if lanes.count == 1 else splat(e, value, lanes.count)


def write_atomically(e: Emitter, epilogue: Epilogue, value: Parts, indices: Sequence[Value]) -> None:
    """Add a value in the epilogue's type to an element atomically, or store it."""
    memory, type_ = epilogue.out.type, epilogue.type
    element = memory.element
    address = address_of(e, epilogue.out, indices)
    if epilogue.reads and epilogue.beta is not None:

        def updated(old: Value) -> Value:
            result = epilogue.apply(e, value, lambda: convert(e, (old,), element, type_), lambda part: part)
            return convert(e, result, type_, element)[0]

        atomics.replace_by(e, address, memory, updated)
        return
    scaled = epilogue.scaled(e, value, lambda part: part)
    if not epilogue.reads:
        atomics.store_scalar(e, address, memory, convert(e, scaled, type_, element))
        return
    parts = scaled if element.is_narrow_float else convert(e, scaled, type_, element)
    atomics.update_scalar(e, "add", address, memory, parts)


_VECTOR_BYTES: Final = 64

Body = Callable[[tuple[Value, ...], Lanes], None]


def emit_loops(e: Emitter, epilogue: Epilogue, terms: Terms) -> None:
    """Compute the output element by element."""
    along = _vector_index(epilogue, terms)
    lanes = lanes_of(epilogue.type) if along == 0 else 1
    depth_lanes = lanes_of(epilogue.type) if along == K else 1

    def body(indices: tuple[Value, ...], some: Lanes) -> None:
        value = _value(e, epilogue, terms, indices, some, depth_lanes)
        write_result(e, epilogue, value, indices, some)

    for_each_index(e, epilogue.out.shape, lanes, body)


def lanes_of(type_: ScalarType) -> int:
    """The number of elements of a vector."""
    return _VECTOR_BYTES * 8 // type_.bits


def _vector_index(epilogue: Epilogue, terms: Terms) -> int | None:
    """The index along which vectors are computed: 0, `K`, or None."""
    if epilogue.type.kind == "complex":
        return None
    out = Factor(epilogue.out, tuple(range(epilogue.out.type.order)))
    if out.modes and not epilogue.atomic and out.is_contiguous(0) and terms.is_contiguous(0):
        return 0
    return K if terms.depth is not None and terms.is_contiguous(K) else None


def for_each_index(e: Emitter, shape: Sequence[Value], lanes: int, body: Body) -> None:
    """Loops over all indices of a shape; the first is innermost and vectorised.

    Args:
        e: The emitter.
        shape: Extent of each mode.
        lanes: The number of lanes along mode 0.
        body: Emits the body, given indices and lanes.
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
    """A vectorised loop over an extent, and its masked remainder."""
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


def write_result(e: Emitter, epilogue: Epilogue, value: Parts, indices: tuple[Value, ...], lanes: Lanes) -> None:
    """Write `alpha * value + beta * output`."""

    def spread(number: Value) -> Value:
        return repeat_lanes(e, number, lanes)

    if epilogue.atomic:
        write_atomically(e, epilogue, value, indices)
        return
    result = epilogue.apply(e, value, lambda: read_element(e, epilogue.out, indices, epilogue.type, lanes), spread)
    write_element(e, result, epilogue.type, epilogue.out, indices, lanes)


def _value(
    e: Emitter, epilogue: Epilogue, terms: Terms, indices: tuple[Value, ...], lanes: Lanes, depth_lanes: int
) -> Parts:
    """The sum of products at some indices of the output, in the epilogue's type."""
    if terms.depth is None:
        return _product(e, terms, indices, None, epilogue.type, lanes, 0)
    type_ = accumulator_type(epilogue.type, [factor.memref.type.element for factor in terms.factors])
    if depth_lanes > 1:
        sums = _dot(e, terms, indices, type_, depth_lanes)
    else:
        with e.b.loop(0, terms.depth, carry=zeros(type_, lanes.count), name="k") as loop:
            product = _product(e, terms, indices, loop.index, type_, lanes, 0)
            loop.next(*binary(e, "add", type_, tuple(loop.carried), product))
        sums = tuple(loop.results)
    return convert(e, sums, type_, epilogue.type)


def _dot(e: Emitter, terms: Terms, indices: tuple[Value, ...], type_: ScalarType, lanes: int) -> Parts:
    """The vectorised sum over k; masked lanes are zero in all factors."""
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
    return (reduce_lanes(e, "add", type_, *sums),)


def _product(
    e: Emitter, terms: Terms, indices: tuple[Value, ...], k: Value | None, type_: ScalarType, lanes: Lanes, along: int
) -> Parts:
    """The product of the factors; lanes run along an index of the output or along `K`."""
    found: list[Parts] = []
    for factor in terms.factors:
        places = [k if mode == K and k is not None else indices[mode] for mode in factor.modes]
        if lanes.count > 1 and along in factor.modes:
            found.append(read_element(e, factor.memref, places, type_, lanes))
        else:
            parts = read_element(e, factor.memref, places, type_)
            found.append(tuple(repeat_lanes(e, part, lanes) for part in parts))
    return found[0] if len(found) == 1 else binary(e, "mul", type_, *found)


def zeros(type_: ScalarType, lanes: int) -> Parts:
    """Zero in each part and lane."""
    register = register_type(type_)
    zero = full_like(undefined(VectorType(lanes, register) if lanes > 1 else register), 0)
    return (zero, zero) if type_.kind == "complex" else (zero,)


def _split(e: Emitter, extent: Value, lanes: int) -> tuple[Value, Value]:
    """An extent rounded down to a multiple of the lanes, and the remainder."""
    if isinstance(extent, ConstInt):
        rest = extent.value % lanes
        return const_int(I64, extent.value - rest), const_int(I64, rest)
    return e.b.binary("and", extent, const_int(I64, -lanes)), e.b.binary("and", extent, const_int(I64, lanes - 1))


def emit_scan(e: Emitter, epilogue: Epilogue, a: Memref, i: Cumsum) -> None:
    """Compute all running sums."""
    mode, out = i.mode, epilogue.out
    others = [extent for k, extent in enumerate(out.shape) if k != mode]
    type_ = accumulator_type(epilogue.type, [a.type.element])

    def body(indices: tuple[Value, ...], lanes: Lanes) -> None:
        with e.b.loop(0, out.shape[mode], carry=zeros(type_, lanes.count), name="scan") as loop:
            places = (*indices[:mode], loop.index, *indices[mode:])
            sums = binary(e, "add", type_, tuple(loop.carried), read_element(e, a, places, type_, lanes))
            write_result(e, epilogue, convert(e, sums, type_, epilogue.type), places, lanes)
            loop.next(*sums)

    for_each_index(e, others, _lanes(epilogue, a, mode), body)


def _lanes(epilogue: Epilogue, a: Memref, mode: int) -> int:
    """The number of lanes along mode 0."""
    if mode == 0 or epilogue.atomic or epilogue.type.kind == "complex":
        return 1
    modes = tuple(range(a.type.order))
    contiguous = all(Factor(memref, modes).is_contiguous(0) for memref in (a, epilogue.out))
    return lanes_of(epilogue.type) if contiguous else 1
