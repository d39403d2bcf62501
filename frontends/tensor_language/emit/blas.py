"""BLAS instructions: `axpby`, `cumsum`, `sum`, `gemm`, `gemv`, `ger` and `hadamard`.

Each instruction is emitted by one of these strategies:

    tensors     extents and strides are known, S1 = 1 or one column, real numbers       `emit_tensors`
    packed      gemm of known extents whose leading dimensions are unknown, S1 = 1      `emit_dynamic`
    dynamic     gemm of unknown extents, S1 = 1, if it is large at run time             `emit_dynamic`
    loops       everything else                                                         `emit_loops`

One thread runs a work-group, so a collective instruction runs once. Inputs may overlap the output only where each
element of the output depends on no other element of it.

Loops run over the elements of the output, and are correct for all types, shapes and strides.

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

If all extents of a `gemm` are known and some leading dimensions are not, the operands are tiles of larger matrices:

    %a = subview %A[%i:16,%k:8] : memref<f32x16x8,strided<1,?>>

Operands with an unknown leading dimension are packed column by column into local memory, so that the product is one of
tensors of known shape. An output with an unknown leading dimension is updated from a product in local memory:

    A' := A, B' := B;   P := op(A') op(B');   C := alpha P + beta C

If extents are unknown, the operands are dynamic tensors:

    if 1 <= M, N, K and all numbers fit i32 and there are at least `_SMALL` multiplications:
        P^T = op(B)^T op(A)^T       on <vscale x 1 x T>, see docs/ir/dynamic_shapes.md
        C := alpha P + beta C       a loop
    else:
        loops

`C += op(A) op(B)` and `C := op(A) op(B)` need neither P nor the loop if C has the type of the sums. For fewer than
`_SMALL` multiplications loops are faster than packing into blocks.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import reduce
from typing import Final

from tlx.frontends.tensor_language.emit import atomics, threads
from tlx.frontends.tensor_language.emit.arithmetic.registers import full_like, undefined
from tlx.frontends.tensor_language.emit.arithmetic.scalars import (
    binary,
    convert,
    from_i64,
    from_memory,
    is_int,
    reduce_lanes,
    splat,
    to_memory,
)
from tlx.frontends.tensor_language.emit.emitter import (
    Emitter,
    Memref,
    Parts,
    memory_type,
    register_type,
    tensor_element,
)
from tlx.frontends.tensor_language.emit.memory import address_of, masked_load, masked_store, part_addresses
from tlx.frontends.tensor_language.emit.subgroups import all_of, if_else, run_if, trap_if_null
from tlx.frontends.tensor_language.emit.tensors import (
    LARGEST,
    Factor,
    OutputUpdate,
    Terms,
    accumulator_type,
    cast_elements,
    emit_tensors,
    epilogue_of,
    fits_tensors,
    terms_of,
)
from tlx.frontends.tensor_language.operations.blas import Axpby, Cumsum, Gemm, Gemv, Ger, Hadamard, K, Sum
from tlx.frontends.tensor_language.types import LOCAL_ALIGNMENT, MemrefType, ScalarType
from tlx.ir.types import I8, I32, I64, VOID, ArrayType, FloatType, IntType, Type, VectorType
from tlx.ir.values import ConstInt, Local, Value, const_int, const_ints

Strategy = Callable[[Emitter, OutputUpdate, Terms], None]


def with_unit_strides(e: Emitter, epilogue: OutputUpdate, terms: Terms, strategy: Strategy) -> None:
    """Emit two versions where first strides are unknown, one of which relies on strides of 1.

    if S1(A) == 1 and S1(B) == 1: the strategy with strides 1
    else:                         the strategy with strides as they are
    """
    unknown = [m.stride[0] for m in _memrefs(epilogue, terms) if _has_unknown_first_stride(m)]
    if not unknown or epilogue.type.kind == "complex":
        strategy(e, epilogue, terms)
        return
    condition = all_of(e, [e.b.icmp("eq", stride, 1) for stride in unknown])
    factors = tuple(replace(f, memref=_unit(f.memref)) for f in terms.factors)
    unit = replace(epilogue, out=_unit(epilogue.out)), Terms(factors)
    if_else(e, condition, lambda: strategy(e, *unit), lambda: strategy(e, epilogue, terms))


def _memrefs(epilogue: OutputUpdate, terms: Terms) -> list[Memref]:
    return [epilogue.out, *(factor.memref for factor in terms.factors)]


def _has_unknown_first_stride(memref: Memref) -> bool:
    return bool(memref.stride) and not isinstance(memref.stride[0], ConstInt)


def _unit(memref: Memref) -> Memref:
    if not _has_unknown_first_stride(memref):
        return memref
    return replace(memref, stride=(const_int(I64, 1), *memref.stride[1:]))


def blas(e: Emitter, i: Axpby | Gemm | Gemv | Ger | Hadamard | Sum) -> None:
    """`output := alpha * sum of products + beta * output`."""
    epilogue, terms = epilogue_of(e, i), terms_of(e, i)
    if e.item is not None:
        threads.barrier(e)
        emit_loops(e, epilogue, terms)
        threads.barrier(e)
    elif fits_tensors(epilogue, terms):
        emit_tensors(e, epilogue, terms)
    else:
        with_unit_strides(e, epilogue, terms, emit_dynamic if isinstance(i, Gemm) else emit_loops)


def cumsum(e: Emitter, i: Cumsum) -> None:
    """`cumsum[.atomic] %alpha, %A, mode, %beta, %B`."""
    if e.item is not None:
        threads.barrier(e)
    emit_scan(e, epilogue_of(e, i), e.memref(i.a), i)
    if e.item is not None:
        threads.barrier(e)


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


def write_atomically(e: Emitter, epilogue: OutputUpdate, value: Parts, indices: Sequence[Value]) -> None:
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


def emit_loops(e: Emitter, epilogue: OutputUpdate, terms: Terms) -> None:
    """Compute the output element by element."""
    along = _vector_index(epilogue, terms) if e.item is None else None
    lanes = lanes_of(epilogue.type) if along == 0 else 1
    depth_lanes = lanes_of(epilogue.type) if along == K else 1

    def body(indices: tuple[Value, ...], some: Lanes) -> None:
        value = _value(e, epilogue, terms, indices, some, depth_lanes)
        write_result(e, epilogue, value, indices, some)

    for_each_index(e, epilogue.out.shape, lanes, body)


def lanes_of(type_: ScalarType) -> int:
    """The number of elements of a vector."""
    return _VECTOR_BYTES * 8 // type_.bits


def _vector_index(epilogue: OutputUpdate, terms: Terms) -> int | None:
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
    if e.item is not None:
        _in_threads(e, shape, body)
        return
    if not shape:
        body((), ONE)
        return
    _outer(e, tuple(shape[1:]), (), lambda outer: _steps(e, shape[0], lanes, lambda i, n: body((i, *outer), n)))


def _in_threads(e: Emitter, shape: Sequence[Value], body: Body) -> None:
    """A loop over all indices of a shape, spread over the threads of the work-group."""

    def one(number: Value) -> None:
        indices: list[Value] = []
        for extent in shape[:-1]:
            indices.append(e.b.binary("urem", number, extent))
            number = e.b.binary("udiv", number, extent)
        body((*indices, number)[: len(shape)], ONE)

    threads.for_each_thread(e, reduce(e.b.mul, shape, const_int(I64, 1)), one)


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


def write_result(e: Emitter, epilogue: OutputUpdate, value: Parts, indices: tuple[Value, ...], lanes: Lanes) -> None:
    """Write `alpha * value + beta * output`."""

    def spread(number: Value) -> Value:
        return repeat_lanes(e, number, lanes)

    if epilogue.atomic:
        write_atomically(e, epilogue, value, indices)
        return
    result = epilogue.apply(e, value, lambda: read_element(e, epilogue.out, indices, epilogue.type, lanes), spread)
    write_element(e, result, epilogue.type, epilogue.out, indices, lanes)


def _value(
    e: Emitter, epilogue: OutputUpdate, terms: Terms, indices: tuple[Value, ...], lanes: Lanes, depth_lanes: int
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
    factors: list[Parts] = []
    for factor in terms.factors:
        places = [k if mode == K and k is not None else indices[mode] for mode in factor.modes]
        if lanes.count > 1 and along in factor.modes:
            factors.append(read_element(e, factor.memref, places, type_, lanes))
        else:
            parts = read_element(e, factor.memref, places, type_)
            factors.append(tuple(repeat_lanes(e, part, lanes) for part in parts))
    return factors[0] if len(factors) == 1 else binary(e, "mul", type_, *factors)


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


def emit_scan(e: Emitter, epilogue: OutputUpdate, a: Memref, i: Cumsum) -> None:
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

    for_each_index(e, others, _lanes(e, epilogue, a, mode), body)


def _lanes(e: Emitter, epilogue: OutputUpdate, a: Memref, mode: int) -> int:
    """The number of lanes along mode 0."""
    if e.item is not None or mode == 0 or epilogue.atomic or epilogue.type.kind == "complex":
        return 1
    modes = tuple(range(a.type.order))
    contiguous = all(Factor(memref, modes).is_contiguous(0) for memref in (a, epilogue.out))
    return lanes_of(epilogue.type) if contiguous else 1


_MOST_BYTES: Final = 32 << 10  # of all packed operands, which are on the stack
_SMALL_COPIED: Final = 1 << 12  # multiplications below which packing does not pay off


def fits_packed(epilogue: OutputUpdate, terms: Terms) -> bool:
    """Whether all extents of a product are known, first strides are 1, and packing pays off."""
    memrefs = [epilogue.out, *(factor.memref for factor in terms.factors)]
    if not all(isinstance(v, ConstInt) for m in memrefs for v in (*m.shape, m.stride[0])):
        return False
    if any(_number(m.stride[0]) != 1 for m in memrefs) or epilogue.atomic or epilogue.type.kind == "complex":
        return False
    copied = sum(_count(m) * max(m.type.element.size, 4) for m in memrefs)
    assert terms.depth is not None
    return copied <= _MOST_BYTES and _count(epilogue.out) * _number(terms.depth) >= _SMALL_COPIED


def emit_packed(e: Emitter, epilogue: OutputUpdate, terms: Terms) -> None:
    """Compute a product of packed copies."""
    packed = Terms(tuple(Factor(_packed(e, f.memref), f.modes) for f in terms.factors))
    if isinstance(epilogue.out.stride[1], ConstInt):
        emit_tensors(e, epilogue, packed)
        return
    type_ = accumulator_type(epilogue.type, [factor.memref.type.element for factor in terms.factors])
    product = _local(e, type_, epilogue.out.shape, "product")
    emit_tensors(e, OutputUpdate(product, type_, alpha=None, beta=None, reads=False, atomic=False), packed)
    finish_product(e, epilogue, product)


def finish_product(e: Emitter, epilogue: OutputUpdate, product: Memref) -> None:
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


def emit_dynamic(e: Emitter, epilogue: OutputUpdate, terms: Terms) -> None:
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


def _emit(e: Emitter, epilogue: OutputUpdate, terms: Terms) -> None:
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
